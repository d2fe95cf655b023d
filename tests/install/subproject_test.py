"""Includes Embank in a project of somebody else, whose own targets must stay as they were."""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent
# What FetchContent, FindThreads and find_library of liburing leave in the cache.
CACHE_OF_OTHERS = ('FETCHCONTENT_', 'FIND_PACKAGE_MESSAGE_DETAILS_', 'CMAKE_HAVE_', '_CMAKE')


def run(*command, **options):
    """Runs a command that must succeed; returns what it printed."""
    command = [str(part) for part in command]
    print('+', ' '.join(command), flush=True)
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    print(done.stdout + done.stderr, flush=True)
    if done.returncode != 0:
        sys.exit(f'failed with {done.returncode}: {" ".join(command)}')
    return done.stdout


def configure(options, name, *settings):
    build = options.scratch / name
    run(options.cmake, '-S', HERE / 'parent', '-B', build, '-G', 'Ninja',
        f'-DCMAKE_C_COMPILER={options.cc}', f'-DCMAKE_CXX_COMPILER={options.cxx}', *settings)
    return build


def own_commands(build):
    """{target: command} of the parent's own sources."""
    commands = {}
    for entry in json.loads((build / 'compile_commands.json').read_text(encoding='utf-8')):
        if entry['file'].endswith('own.cc'):
            output = re.search(r' -o (\S+)', entry['command']).group(1)
            commands[output] = entry['command'].replace(str(build), 'BUILD')
    if len(commands) != 2:
        sys.exit(f'the parent has {len(commands)} commands of its own: {commands}')
    return commands


def cache_names(build):
    lines = (build / 'CMakeCache.txt').read_text(encoding='utf-8').splitlines()
    return {line.split(':')[0] for line in lines if ':' in line and line[0] not in '#/ '}


def check_parent_is_unchanged(alone, together):
    for target, command in own_commands(alone).items():
        if own_commands(together)[target] != command:
            sys.exit(f'{target}: Embank changed\n{command}\ninto\n{own_commands(together)[target]}')
    strange = [name for name in cache_names(together) - cache_names(alone)
               if not name.lower().startswith('embank') and not name.startswith(CACHE_OF_OTHERS)]
    if strange:
        sys.exit(f'Embank left in the cache of its parent: {sorted(strange)}')


def check_nothing_is_installed(options, build):
    prefix = options.scratch / 'installed'
    run(options.cmake, '--install', build, '--prefix', prefix)
    if prefix.exists() and any(path.is_file() for path in prefix.rglob('*')):
        sys.exit(f'installed unasked: {list(prefix.rglob("*"))}')


def check_commit_is_not_the_parents(options):
    """A copy of the sources inside somebody's repository does not name that one's commit."""
    repository = options.scratch / 'repository'
    copy = repository / 'third_party'
    copy.mkdir(parents=True)
    git = ['git', '-C', repository, '-c', 'user.name=n', '-c', 'user.email=e']
    if shutil.which('git') is None:
        print('git is absent: a commit is never named')
        return
    run(*git, 'init', '-q')
    run(*git, 'commit', '-q', '--allow-empty', '-m', 'Not of Embank')
    out = options.scratch / 'commit.cc'
    run(options.cmake, f'-DOUT={out}', f'-DSOURCE_DIR={copy}', '-P', TOP / 'cmake/git_commit.cmake')
    if '"unknown"' not in out.read_text(encoding='utf-8'):
        sys.exit(f'a strange commit: {out.read_text(encoding="utf-8")}')


def expect_quickstart(program):
    output = run(program)
    if output != '7: -2, 42: -1\n':
        sys.exit(f'quickstart printed {output!r}')


def build_and_run(options, build):
    run(options.cmake, '--build', build)
    expect_quickstart(build / 'user')


def use_installed(options, build):
    """Programs find what the parent installs, of which the static library is the only one."""
    prefix = options.scratch / 'prefix'
    run(options.cmake, '--install', build, '--prefix', prefix)
    library = next(prefix.glob('lib/**/libembank.a'))
    if list(prefix.glob('lib/**/libembank.so*')):
        sys.exit('a shared library is installed that nobody asked for')
    environment = {**os.environ, 'PKG_CONFIG_PATH': str(library.parent / 'pkgconfig')}
    version = run('pkg-config', '--modversion', 'embank', env=environment).strip()
    flags = run('pkg-config', '--cflags', '--libs', 'embank', env=environment).split()
    program = options.scratch / 'installed_quickstart'
    run(options.cc, '-std=c99', TOP / 'examples/quickstart.c', *flags, '-o', program)
    expect_quickstart(program)
    consumers = options.scratch / 'consumers'
    run(options.cmake, '-S', HERE / 'cpp', '-B', consumers, '-G', 'Ninja',
        f'-DCMAKE_PREFIX_PATH={prefix}', f'-DCMAKE_CXX_COMPILER={options.cxx}',
        f'-DEXPECTED_VERSION={version}')
    run(options.cmake, '--build', consumers)
    for kind in ('17', '20', 'static'):
        run(consumers / f'consumer_{kind}')


def main():
    parser = argparse.ArgumentParser()
    for name in ('scratch', 'cmake', 'cc', 'cxx'):
        parser.add_argument(f'--{name}', required=True, type=pathlib.Path)
    parser.add_argument('--build', action='store_true', help='build and run it too: minutes')
    options = parser.parse_args()
    shutil.rmtree(options.scratch, ignore_errors=True)
    options.scratch.mkdir(parents=True)
    if options.build:
        # The static library: the other test installs and uses both.
        build = configure(options, 'built', '-DWITH_EMBANK=ON', f'-DEMBANK_SOURCE_DIR={TOP}',
                          '-DBUILD_SHARED_LIBS=OFF', '-DEMBANK_INSTALL=ON')
        build_and_run(options, build)
        use_installed(options, build)
        print('Embank is built, installed and used as a part of another project')
        return
    alone = configure(options, 'alone', '-DWITH_EMBANK=OFF')
    together = configure(options, 'together', '-DWITH_EMBANK=ON', f'-DEMBANK_SOURCE_DIR={TOP}')
    check_parent_is_unchanged(alone, together)
    check_nothing_is_installed(options, together)
    check_commit_is_not_the_parents(options)
    print('Embank is a part of another project and leaves it alone')


if __name__ == '__main__':
    main()
