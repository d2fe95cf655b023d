"""Markdown files: one title each, links that resolve, examples that are the compiled ones."""
import pathlib
import posixpath
import re

import tree as trees

FENCE = re.compile(r'^(```|~~~).*?^\1[ \t]*$', re.M | re.S)
C_BLOCK = re.compile(r'^```c\n(.*?)^```[ \t]*$', re.M | re.S)
CPP_BLOCK = re.compile(r'^```cpp\n(.*?)^```[ \t]*$', re.M | re.S)
CPP_LINES_MAX = 30  # a first program is read at one sight
LINK = re.compile(r'!?\[[^\]\n]*\]\(([^()\s]+)(?:\s+"[^"]*")?\)')
TITLE = re.compile(r'^# .+$', re.M)


def blank(match):
    return re.sub(r'[^\n]', ' ', match.group(0))


def anchors(text):
    """The anchors of a page's headings, as the usual web views make them."""
    found = set()
    for heading in re.findall(r'^#+ (.+)$', FENCE.sub(blank, text), re.M):
        words = re.sub(r'[^\w\- ]', '', heading.strip().lower())
        found.add(words.replace(' ', '-'))
    return found


def check_link(tree, path, line, target, findings):
    if re.match(r'[a-z]+:', target):
        return
    file, _, anchor = target.partition('#')
    place = posixpath.normpath(posixpath.join(posixpath.dirname(path), file)) if file else path
    if place.startswith('..') or not tree.exists(place):
        findings.add(path, line, 'link', f'{target} is not there')
    elif anchor and place.endswith('.md') and anchor not in anchors(tree.read(place)):
        findings.add(path, line, 'link', f'{place} has no heading #{anchor}')


def check(tree, findings):
    examples = [tree.read(p) for p in tree.with_suffix('.c', under=('examples',))]
    programs = [tree.read(p) for p in tree.with_suffix('.cc', under=('examples', 'tests'))]
    for path in tree.with_suffix('.md'):
        text = tree.read(path)
        prose = re.sub(r'`[^`\n]*`', blank, FENCE.sub(blank, text))
        titles = TITLE.findall(prose)
        if len(titles) != 1 or not prose.lstrip().startswith('# '):
            findings.add(path, 1, 'title', f'{len(titles)} titles: one, on the first line')
        for match in LINK.finditer(prose):
            check_link(tree, path, trees.line_of(prose, match.start()), match.group(1), findings)
        for match in C_BLOCK.finditer(text):
            if pathlib.PurePosixPath(path).name == 'README.md' and not any(
                    match.group(1) in example for example in examples):
                findings.add(path, trees.line_of(text, match.start()), 'example',
                             'not the text of any file in examples/, so nothing compiles it')
        for match in CPP_BLOCK.finditer(text):
            line, code = trees.line_of(text, match.start()), match.group(1)
            if not any(code in program for program in programs):
                findings.add(path, line, 'example', 'not the text of any program that is compiled')
            if code.count('\n') > CPP_LINES_MAX:
                findings.add(path, line, 'example', f'more than {CPP_LINES_MAX} lines')


if __name__ == '__main__':
    trees.main(check)
