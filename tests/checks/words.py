"""Words that this project does not use, and how its comments and tests do not begin."""
import re

import tree as trees

TEXT = r'.*\.(h|hpp|cc|c|cu|py|md)$'
# The words of these metrics and figures were released, or are in reports that were kept.
RELEASED = re.compile(r'embank_checkpoint_flip_seconds|longest_flip_us')
# (pattern, paths, what to write instead); looked for in code, comments, messages and documents.
OLD_WORDS = (
    (r'\b[Ff]lip(s|per)?\b(?! (of )?bits?\b)|Flip(?=[A-Z(]|\b)(?!Bits|Byte)',
     r'(?!docs/verify\.md|tests/(base/hash|bench/id_mode|support/flipped_store|'
     r'store/(manifest|logged_scan|repair|verify))).*', 'barrier, of a checkpoint'),
    (r'\b[Ss]weep(s|ing)?\b|Sweep', '', 'flush pass, of a checkpoint; rehash step, of an index'),
    (r'\b[Oo]wed\b|\b[Oo]wes?\b|IsOwed|\bowed_', '',
     'pending flush, of a row; debt, of compaction'),
    (r'\b[Tt]ickets?\b|Ticket', '', 'write guard'),
    (r'LogRoom|log_room|MakeRoom|HasRoom|NoRoom|'
     r'\b(no|enough|free|makes?|has|without|want of|out of) room\b|'
     r'\broom for (a|one|rows|it|all|them|so)\b', '', 'space; reservation; quota'),
    (r'\b[Rr]oom\b', r'.*\.(h|hpp|cc|c|cu)$', 'space'),
    (r'\bWorkOff\b|\bAskFor\b|\bask_for\b|\bAskHome\b|\b[Aa]sked for ahead\b', '',
     'debt; prefetch'),
    (r'\bPrintOf\b|kPrintBits|\bprint (of a row|20)\b|\buint32_t print\b', '', 'fingerprint'),
    (r'\b(C|[Tt]he) door\b|/door\.(h|cc)\b|_(door|DOOR)\b', '', 'C API'),
    (r'\bLocation>? home\b|\bhome->tier\b', '', "logged_at; home is an entry's first bucket"),
    (r'\bHotRow\b|\bVisitHotRow\b', '', 'heat of a row'),
    (r'\b[Hh]ot (rows?|sets?)\b|\bHot(Rows|Set|Mover|Plan)\w*|'
     r'\bhot_(rows|bytes|header)\b', r'(store|gpu|tiers)/',
     'HBM rows; hot is said of heat alone'),
    (r'\b(comes?|came|coming|brought|brings?|bringing) (\w+ )?up\b(?! (to|of) (date|now))|'
     r'ComesUp|ComeUp|BringUp', '', 'promote'),
    (r'ForgetMemory|KeepMemory|ForgiveFullIndex|SayRefusals|TellLoss|TellHeat|\bGiveBack\b|'
     r'\bHandOver|ToldOwners|told_owners|StatusWithRoom', '', 'a verb that says what it does'),
)
BEGINNINGS = re.compile(r'(Of|What|Who|Whoever)\b')
TEST_NAME = re.compile(r'\bTEST(?:_P|_F)?\(\s*\w+,\s*((?:Of|What|Who|Whoever)(?=[A-Z])\w*)')


def comments(path, text):
    """(line, words) of each comment; lines of `//` that follow each other are one."""
    block = None
    for number, line in enumerate(text.split('\n') + [''], 1):
        match = re.match(r'\s*// ?(.*)$', line)
        if match:
            block = block or (number, [])
            block[1].append(match.group(1))
            continue
        if block:
            yield block[0], ' '.join(block[1])
            block = None
        beside = re.search(r'[^:"\'/]// (.*)$', line)
        if beside:
            yield number, beside.group(1)
    for match in re.finditer(r'/\*(.*?)\*/', text, re.S):
        yield trees.line_of(text, match.start()), match.group(1).strip(' *\n')


def check(path, text, findings):
    if path.startswith('tests/checks/') or not re.match(TEXT, path):
        return
    judged = RELEASED.sub(lambda match: ' ' * len(match.group(0)), text)
    for pattern, places, instead in OLD_WORDS:
        if places and not re.match(places, path):
            continue
        for match in re.finditer(pattern, judged):
            findings.add(path, trees.line_of(text, match.start()), 'old word',
                         f'{match.group(0).strip()}: write {instead}')
    if path.endswith(trees.CXX):
        for line, words in comments(path, text):
            match = BEGINNINGS.match(words)
            if match:
                findings.add(path, line, 'comment', f'begins with {match.group(0)}: write a '
                             'sentence with a subject')
        for match in TEST_NAME.finditer(text):
            findings.add(path, trees.line_of(text, match.start()), 'test name',
                         f'{match.group(1)}: state the behaviour, with a subject')
