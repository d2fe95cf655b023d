"""Sizes of classes and rooms: a class that needs more is two nouns, and so is a room. The library
also has a least number of run-time checks, for the size of its sources."""
import collections
import pathlib
import re

import functions
import tree as trees

FUNCTIONS_MAX = 30
MEMBERS_MAX = 20
ROOM_FILES_MAX = 30
RATCHET = 'tests/checks/large_classes.txt'
CHECKS_PER_100_LINES_MIN = 2
CHECKED_FOLDERS = ('base', 'tiers', 'gpu', 'store', 'bindings')
# A use, not the definition.
RUN_TIME_CHECK = re.compile(r'(?<!#define )\bEMBANK_CHECK\(|(?<!void )\bAssertHeld\(')
NO_MEMBER = re.compile(r'^(using|typedef|friend|static_assert|enum|struct|class|union|template)\b'
                       r'|\bstatic\b')
# What stands in front of a name says nothing about what the name is.
ATTRIBUTE = re.compile(r'\[\[[^\]]*\]\]|\balignas\s*\([^()]*\)|\bEMBANK_\w+\s*(\([^()]*\))?')


def bare(head):
    """A declaration without attributes, template arguments and its value."""
    head = ATTRIBUTE.sub(' ', head)
    head = re.sub(r'^template\s*<.*?>\s*(?=\w)', '', head.strip(), flags=re.S)
    while re.search(r'<[^<>]*>', head):
        head = re.sub(r'<[^<>]*>', '', head)
    return head.strip()


def is_function(item):
    head = bare(item.head)
    if item.kind == 'function':
        return True
    return re.match(r'[^(=]*[\w\]=]\s*\(', head) is not None and not NO_MEMBER.match(
        head.replace('static', ''))


def sizes(text):
    """{class: (functions, members, line)} of the classes of a file."""
    counts = collections.defaultdict(lambda: [0, 0, 0])
    for item in functions.scan(text):
        if not item.owner:
            continue
        count = counts[item.owner]
        count[2] = count[2] or item.first
        head = bare(item.head)
        if re.search(r'=\s*(default|delete)$', item.head):
            continue  # the compiler's
        if is_function(item):
            count[0] += 1
        elif item.kind == 'declaration' and not NO_MEMBER.search(head):
            count[1] += 1
    return {name: tuple(count) for name, count in counts.items()}


def read_ratchet(tree):
    """{(file, class): (functions, members)} of classes that are still larger; it only shrinks."""
    if not tree.exists(RATCHET):
        return {}
    rows = [line.split() for line in tree.read(RATCHET).splitlines()
            if line.strip() and not line.startswith('#')]
    return {(row[0], row[1]): (int(row[2]), int(row[3])) for row in rows}


def check_classes(tree, path, allowed, used, findings):
    for name, (made, members, line) in sizes(tree.read(path)).items():
        if made > FUNCTIONS_MAX or members > MEMBERS_MAX:
            used.add((path, name))
        functions_max, members_max = allowed.get((path, name), (0, 0))
        for count, limit, what in ((made, max(FUNCTIONS_MAX, functions_max), 'functions'),
                                   (members, max(MEMBERS_MAX, members_max), 'members')):
            if count > limit:
                findings.add(path, line, 'class size',
                             f'{name} has {count} {what}, at most {limit}')


def check_run_time_checks(tree, findings):
    checks = sum(len(RUN_TIME_CHECK.findall(trees.code_only(tree.read(path))))
                 for path in tree.with_suffix(*trees.CXX, under=CHECKED_FOLDERS))
    lines = sum(len(tree.read(path).splitlines())
                for path in tree.with_suffix('.cc', '.cu', under=CHECKED_FOLDERS))
    needed = lines * CHECKS_PER_100_LINES_MIN // 100
    if checks < needed:
        findings.add('base/check.h', 1, 'run-time checks',
                     f'{checks} in {lines} lines of sources, at least {needed}')


def check(tree, findings):
    allowed, used = read_ratchet(tree), set()
    for path in tree.with_suffix('.h', under=trees.LIBRARY_ROOMS):
        check_classes(tree, path, allowed, used, findings)
    for path, name in sorted(set(allowed) - used):
        findings.add(RATCHET, 1, 'ratchet', f'{path} {name} is small now: take it off the list')
    rooms = collections.Counter(trees.room_of(p) for p in tree.with_suffix(
        *trees.CXX, under=trees.LIBRARY_ROOMS))
    check_run_time_checks(tree, findings)
    for room, files in sorted(rooms.items()):
        if files > ROOM_FILES_MAX:
            findings.add(f'{room}/README.md', 1, 'room size',
                         f'{files} files, at most {ROOM_FILES_MAX}')


if __name__ == '__main__':
    trees.main(check)
