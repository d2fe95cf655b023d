"""The files of the source tree, their code without comments, and findings about them."""
import os
import pathlib
import re
import sys

# From below to above; what stands above may include what stands below it (layering.py).
LIBRARY_ROOMS = ('base', 'base/memory', 'base/threads', 'base/files', 'base/pmem', 'tiers/row',
                 'tiers/dram', 'tiers/hbm', 'tiers/segment', 'tiers/space', 'tiers/log',
                 'tiers/logs', 'gpu', 'store/gate', 'store/index', 'store/table',
                 'store/placement', 'store/payload', 'store/batch', 'store/device', 'store/packed',
                 'store/scan', 'store/catalog', 'store/checkpoint', 'store', 'store/inspect',
                 'train/bytes', 'train/samples', 'train/data', 'train/generator', 'train/dense',
                 'train/models', 'train/popularity', 'train/fae', 'train/hot', 'train/ranks',
                 'train/pipeline', 'train/roles', 'train', 'train/hybrid',
                 'bindings/c')
ROOMS = LIBRARY_ROOMS + ('bench', 'tests', 'tools', 'examples')
CXX = ('.h', '.hpp', '.cc', '.c', '.cu', '.cuh')
HEADERS = ('.h', '.hpp', '.cuh')
TEXT = CXX + ('.py', '.sh', '.md', '.cmake', '.txt', '.json', '.in', '.map', '')
SKIPPED_FOLDERS = {'.git', '.cache', 'build', 'out', '__pycache__'}


class Tree:
    """A source tree: paths are relative to its root, with forward slashes."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.paths = sorted(self._walk())

    def _walk(self):
        for folder, folders, names in os.walk(self.root):
            folders[:] = [f for f in folders if f not in SKIPPED_FOLDERS]
            # Of a working tree beside its repository .git is a file, about this machine.
            for name in set(names) - SKIPPED_FOLDERS:
                path = pathlib.Path(folder, name)
                if path.suffix in TEXT and not path.is_symlink():
                    yield path.relative_to(self.root).as_posix()

    def with_suffix(self, *suffixes, under=None):
        return [p for p in self.paths
                if pathlib.PurePosixPath(p).suffix in suffixes
                and (under is None or p.startswith(tuple(f'{u}/' for u in under)))]

    def read(self, path):
        return (self.root / path).read_text(encoding='utf-8', errors='replace')

    def exists(self, path):
        return (self.root / path).exists()


def room_of(path):
    """The room a file stands in, or None."""
    within = [room for room in ROOMS if path.startswith(room + '/')]
    return max(within, key=len, default=None)


_TOKEN = re.compile(r'''
    (?P<raw>R"(?P<tag>[^()\\\s]{0,16})\(.*?\)(?P=tag)")
  | (?P<string>"(?:\\.|[^"\\\n])*")
  | (?P<digit>(?<=[0-9a-fA-F])'(?=[0-9a-fA-F]))
  | (?P<char>'(?:\\.|[^'\\\n])+')
  | (?P<line>//(?:\\\n|[^\n])*)
  | (?P<block>/\*.*?\*/)''', re.X | re.S)


def code_only(text, keep_strings=False):
    """C++ text with comments (and the insides of literals) blanked; lines stay where they were."""
    def blank(match):
        found = match.group(0)
        if match.lastgroup == 'digit':
            return found
        if match.group('string') or match.group('char'):
            return found if keep_strings else found[0] + ' ' * (len(found) - 2) + found[-1]
        if match.group('raw') and keep_strings:
            return found
        return re.sub(r'[^\n]', ' ', found)
    return _TOKEN.sub(blank, text)


def line_of(text, offset):
    return text.count('\n', 0, offset) + 1


class Findings:
    """What a check has found: lines "path:line: rule: text"."""

    def __init__(self):
        self.lines = []

    def add(self, path, line, rule, text):
        self.lines.append(f'{path}:{line}: {rule}: {text}')


def main(check):
    """Runs check(tree, findings) on the tree named on the command line; exits 1 on findings."""
    if len(sys.argv) != 2:
        sys.exit(f'usage: {sys.argv[0]} ROOT')
    tree, findings = Tree(sys.argv[1]), Findings()
    check(tree, findings)
    for line in findings.lines:
        print(line)
    print(f'{len(tree.paths)} files, {len(findings.lines)} findings')
    if not tree.with_suffix(*CXX):
        sys.exit(f'no sources under {sys.argv[1]}: a check of nothing is no check')
    sys.exit(1 if findings.lines else 0)
