"""Sizes, banned words, comments, include guards, documented declarations: docs/development.md."""
import ast
import pathlib
import re

import functions
import tree as trees
import words

COLUMNS_MAX = 100
HEADER_LINES_MAX = 300
SOURCE_LINES_MAX = 600
FUNCTION_LINES_MAX = 70
MODEL_LINES_MAX = 80  # a header of train/models with a function that makes a graph
MODEL = re.compile(r'^inline LayerGraph Make\w+\(', re.M)
SPEAKS_FOR_ITSELF_LINES = 5  # an inline body this short is its own documentation
# The one header whose size follows from the number of functions of the C API.
HEADERS_OF_ANY_SIZE = ('bindings/c/embank.h', 'bindings/c/embank.hpp')
CODE = trees.CXX + ('.py', '.sh', '.cmake')
LIBRARY_CODE = r'(base|tiers|gpu|store|train|bindings/c)/.*\.(h|cc|cu|cuh)$'


def library_but(part):
    """The library's code without base's `part`.h and .cc, which are what the others use instead."""
    return rf'(?!base/(\w+/)?{part}\.(h|cc)$)' + LIBRARY_CODE


MARKERS = '|'.join(('TO' + 'DO', 'FIX' + 'ME', 'X' * 3, 'HA' + 'CK'))

# (pattern, paths, what to write instead); a pattern is looked for in code without comments.
BANNED = (
    (r'\b(std::)?(f|v)?printf\s*\(|\bputs\s*\(|std::c(out|err|log)\b',
     library_but('check'), 'base/threads/log.h: the library prints nothing'),
    (r'\b(std::)?s?rand\s*\(|std::random_device|std::(mt19937|minstd_rand)',
     r'.*\.(h|hpp|cc|c|cu)$', 'base/random.h: every draw comes from a seed of ours'),
    (r'std::(mutex|shared_mutex|recursive_mutex|lock_guard|unique_lock|scoped_lock|'
     r'condition_variable)\b', LIBRARY_CODE, 'embank::Mutex: locks that the compiler checks'),
    (r'std::(thread|jthread|async)\b(?!::)', library_but('executor'),
     'base/threads/executor.h: work runs on the injected executor'),
    (r'_clock::now\s*\(|\b(gettimeofday|clock_gettime|time)\s*\(\s*(NULL|nullptr|0|CLOCK|&)',
     library_but('clock'), 'base/threads/clock.h: time is injected'),
    (r'\bgetenv\s*\(', LIBRARY_CODE, 'an option: the library reads no environment'),
    (r'\bthrow\b', LIBRARY_CODE, 'Status: no exception crosses a room'),
    (r'\b(abort|exit|_exit|quick_exit|assert)\s*\(',
     library_but('check'), 'EMBANK_CHECK for our defects, a Status for the world'),
    (r'\b(sleep_for|sleep_until|SleepFor|usleep|nanosleep|sleep)\s*\(', LIBRARY_CODE,
     'waiting for the event itself'),
    (r'\b(sleep_for|sleep_until|SleepFor|usleep|nanosleep|sleep)\s*\(', r'tests/.*\.(h|cc|c|py)$',
     'waiting for the event itself'),
    (r'\busing\s+namespace\b', r'.*\.(h|hpp|cc|cu)$', 'the name spelled out'),
    (r'#\s*pragma\s+once', r'.*\.(h|hpp)$', 'an include guard EMBANK_ROOM_FILE_H_'),
    (r'\babsl::', LIBRARY_CODE,
     "base/status.h, base/str_cat.h: Debian's static Abseil cannot go into a shared library"),
    (r'\bvolatile\b', LIBRARY_CODE, 'std::atomic'),
    (r'\bDISABLED_', r'tests/.*\.(h|cc)$', 'a test that runs, or none'),
    (r'GTEST_SKIP\s*\(\s*\)\s*;', r'(tests|bench)/.*\.(h|cc)$', 'GTEST_SKIP() << the reason'),
    (r'\b(SUCCEED\s*\(|(EXPECT|ASSERT)_TRUE\s*\(\s*true\s*\))', r'tests/.*\.(h|cc)$',
     'an expectation that can fail'),
    (r'-march=native|-ffast-math|-ffp-contract=(fast|on)|-Ofast', r'.*(CMakeLists\.txt|\.cmake)$',
     'nothing: results are the same bits on every machine; SIMD is chosen at run time'),
)
FILE_NAME_BANNED = re.compile(r'(^|_)(util|utils|helper|helpers|manager|misc|common|stuff)(_|\.|$)')
MACHINE_PATH = re.compile(r'(?<![\w.}$:])/(work|tmp|home|root|mnt|Users)/\w')
NEEDS_NO_WORDS = re.compile(r'=\s*(default|delete)$|\boverride\b|\boperator\b|\bfriend\b'
                            r'|^(typedef|using|static_assert)\b|^[A-Z_0-9]+\s*\(')


def check_sizes(path, text, findings):
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if len(line) > COLUMNS_MAX:
            findings.add(path, number, 'columns', f'{len(line)}, at most {COLUMNS_MAX}')
    suffix = pathlib.PurePosixPath(path).suffix
    limit = HEADER_LINES_MAX if suffix in trees.HEADERS else SOURCE_LINES_MAX
    if path.startswith('train/models/') and MODEL.search(text):
        limit = MODEL_LINES_MAX
    if len(lines) > limit and path not in HEADERS_OF_ANY_SIZE:
        findings.add(path, limit + 1, 'file size', f'{len(lines)} lines, at most {limit}')


def extents(path, text):
    if path.endswith('.py'):
        return [(node.name, node.lineno, node.end_lineno - node.lineno + 1)
                for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    return functions.functions_of(text) if path.endswith(trees.CXX) else []


def check_functions(path, text, allowed, used, findings):
    for name, line, length in extents(path, text):
        limit = allowed.get((path, name), FUNCTION_LINES_MAX)
        used.add((path, name)) if length > FUNCTION_LINES_MAX else None
        if length > limit:
            findings.add(path, line, 'function size', f'{name} has {length} lines, at most {limit}')


def check_banned(path, text, findings):
    code = trees.code_only(text) if path.endswith(trees.CXX) else text
    for pattern, places, instead in BANNED:
        if not re.match(places, path) or path.startswith('tests/checks/'):
            continue
        for match in re.finditer(pattern, code):
            findings.add(path, trees.line_of(code, match.start()), 'banned',
                         f'{match.group(0).strip()}: write {instead}')


def check_words(path, text, findings):
    for match in re.finditer(r'\b(%s)\b' % MARKERS, text):
        findings.add(path, trees.line_of(text, match.start()), 'leftover', match.group(0))
    for match in MACHINE_PATH.finditer(text):
        findings.add(path, trees.line_of(text, match.start()), 'machine path', match.group(0))
    name = pathlib.PurePosixPath(path).name
    if path.endswith(CODE) and FILE_NAME_BANNED.search(name):
        findings.add(path, 1, 'file name', 'name the noun that the file is about')


def check_guard(path, text, findings):
    if path == 'bindings/c/embank.h':
        guard = 'EMBANK_H_'
    elif path == 'bindings/c/embank.hpp':
        guard = 'EMBANK_HPP_'
    else:
        guard = 'EMBANK_' + re.sub(r'\W', '_', path).upper() + '_'
    if not re.search(rf'#ifndef {guard}\n#define {guard}\n', text):
        findings.add(path, 1, 'include guard', f'must be {guard}')


def is_public_function(item):
    """Whether a scanned item is a function that others call and whose name does not say it all."""
    head = re.sub(r'(ABSL_\w+|EMBANK_API|alignas)\s*(\([^()]*\))?', '', item.head)
    while re.search(r'<[^<>]*>', head):
        head = re.sub(r'<[^<>]*>', '', head)
    constructor = item.owner and re.search(rf'(^|[\s~]){item.owner}\s*\(', head)
    short = item.kind == 'function' and item.last - item.first < SPEAKS_FOR_ITSELF_LINES
    # Neither a variable with its value nor a member that its class has already declared.
    function = re.match(r'[^(=]*\w\s*\(', head) and '::' not in head.split('(')[0].split()[-1]
    return (item.visible and function and not constructor and not short
            and not NEEDS_NO_WORDS.search(head.strip()))


def check_documented(path, text, findings):
    """A comment stands above each public function, or above the group without blank lines."""
    lines, last_documented = text.splitlines(), None
    every_one = path == 'bindings/c/embank.h'
    for item in functions.scan(text):
        above = lines[item.first - 2].strip() if item.first > 1 else ''
        comment = above.startswith('//') or above.endswith('*/')
        grouped = not every_one and last_documented == item.first - 1
        beside = '//' in lines[item.last - 1]
        if comment or grouped or beside:
            last_documented = item.last
        elif is_public_function(item):
            findings.add(path, item.first, 'undocumented', item.head.split('(')[0].split()[-1])


def check_readmes(tree, findings):
    for room in trees.ROOMS:
        sources = tree.with_suffix(*trees.CXX, '.py', under=(room,))
        if sources and not tree.exists(f'{room}/README.md'):
            findings.add(f'{room}/README.md', 1, 'readme', 'every room has one, of one screen')


def read_ratchet(tree, path):
    """{(file, function): lines} of functions that may stay longer; it only ever shrinks."""
    if not tree.exists(path):
        return {}
    rows = [line.split() for line in tree.read(path).splitlines()
            if line.strip() and not line.startswith('#')]
    return {(row[0], row[1]): int(row[2]) for row in rows}


def check(tree, findings):
    ratchet = 'tests/checks/long_functions.txt'
    allowed, used = read_ratchet(tree, ratchet), set()
    for path in tree.paths:
        text = tree.read(path)
        if path != 'LICENSE':
            check_words(path, text, findings)
            words.check(path, text, findings)
        if not path.endswith('.md'):
            check_banned(path, text, findings)
        if path.endswith(CODE):
            check_sizes(path, text, findings)
            check_functions(path, text, allowed, used, findings)
        if path.endswith(trees.HEADERS) and trees.room_of(path):
            check_guard(path, text, findings)
        if path.endswith(trees.HEADERS) and path.startswith(trees.LIBRARY_ROOMS):
            check_documented(path, text, findings)
    for path, name in sorted(set(allowed) - used):
        findings.add(ratchet, 1, 'ratchet', f'{path} {name} is short now: take it off the list')
    check_readmes(tree, findings)


if __name__ == '__main__':
    trees.main(check)
