"""clang-format has nothing to change. `format.py ROOT --fix` changes it."""
import shutil
import subprocess
import sys

import tree as trees

# Laid out by hand: the comments of its fields stand in columns.
BY_HAND = ('bindings/c/embank.h',)
SKIPPED = 77


def main():
    tree = trees.Tree(sys.argv[1])
    tool = shutil.which('clang-format') or shutil.which('clang-format-14')
    if tool is None:
        print('skipped: clang-format is not installed')
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
