"""clang-format has nothing to change. `format.py ROOT --fix` changes it."""
import re
import shutil
import subprocess
import sys

import tree as trees

# Laid out by hand: the comments of its fields stand in columns.
BY_HAND = ('bindings/c/embank.h',)
SKIPPED = 77
# Other versions lay some declarations out otherwise.
VERSION = '14'


def find_tool():
    for name in ('clang-format', f'clang-format-{VERSION}'):
        tool = shutil.which(name)
        if tool is None:
            continue
        told = subprocess.run([tool, '--version'], capture_output=True, text=True, check=False)
        if re.search(rf'version {VERSION}\.', told.stdout):
            return tool
    return None


def main():
    tree = trees.Tree(sys.argv[1])
    tool = find_tool()
    if tool is None:
        print(f'skipped: clang-format {VERSION} is not installed')
        return SKIPPED
    paths = [p for p in tree.with_suffix(*trees.CXX) if p not in BY_HAND]
    mode = ['-i'] if '--fix' in sys.argv[2:] else ['--dry-run', '-Werror', '--ferror-limit=3']
    print(f'{len(paths)} files')
    if not paths:
        return 1
    return subprocess.run([tool, '--style=file', *mode, *paths], cwd=tree.root,
                          check=False).returncode


if __name__ == '__main__':
    sys.exit(main())
