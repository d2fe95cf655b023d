"""Installs Embank, moves the installed tree, and uses it from C99, C++ and Python."""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent
EXPECTED = ('include/embank.h', 'include/embank.hpp', '*/cmake/embank/embankConfig.cmake',
            '*/cmake/embank/embankConfigVersion.cmake', '*/cmake/embank/embankTargets.cmake',
            '*/pkgconfig/embank.pc', '*/libembank.so.0.1.0', '*/libembank.so.0', '*/libembank.so',
            '*/libembank.a', 'bin/embank', 'share/man/man1/embank.1', 'bin/embank-bench',
            'share/man/man1/embank-bench.1', 'bin/embank-train',
            'share/man/man1/embank-train.1', 'share/doc/embank/LICENSE',
            'share/doc/embank/CHANGELOG.md', 'share/doc/embank/docs/arithmetic.md')


def run(*command, **options):
    """Runs a command that must succeed; returns what it printed."""
    command = [str(part) for part in command]
    print('+', ' '.join(command), flush=True)
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    print(done.stdout + done.stderr, flush=True)
    if done.returncode != 0:
        sys.exit(f'failed with {done.returncode}: {" ".join(command)}')
    return done.stdout


def install(options):
    """The installed tree, moved away from the prefix that it was installed to."""
    shutil.rmtree(options.scratch, ignore_errors=True)
    run(options.cmake, '--install', options.build, '--prefix', options.scratch / 'first')
    prefix = options.scratch / 'moved'
    (options.scratch / 'first').rename(prefix)
    # The module is there where MPI was when the build was configured.
    module = ('*/libembank_mpi.so',) if (options.build / 'bin/libembank_mpi.so').exists() else ()
    for pattern in EXPECTED + module:
        if not list(prefix.glob(pattern.replace('*/', 'lib/**/', 1))):
            sys.exit(f'not installed: {pattern}')
    strangers = [p for p in prefix.rglob('*') if p.is_file() and 'embank' not in str(
        p.relative_to(prefix))]
    if strangers:
        sys.exit(f'installed, but not ours: {strangers}')
    for text in (p for p in prefix.rglob('*') if p.suffix in ('.cmake', '.pc')):
        if str(TOP) in text.read_text(encoding='utf-8'):
            sys.exit(f'{text} names the source tree')
    return prefix


def c_consumers(options, prefix, libraries):
    environment = {**os.environ, 'PKG_CONFIG_PATH': str(libraries / 'pkgconfig'),
                   'LD_LIBRARY_PATH': str(libraries)}
    version = run('pkg-config', '--modversion', 'embank', env=environment).strip()
    flags = run('pkg-config', '--cflags', '--libs', 'embank', env=environment).split()
    for source in (HERE / 'consumer.c', TOP / 'examples' / 'quickstart.c'):
        program = options.scratch / source.stem
        run(options.cc, '-std=c99', '-pedantic', '-Wall', '-Wextra', '-Werror', source, *flags,
            '-o', program)
        output = run(program, env=environment)
        if source.name == 'quickstart.c' and output != '7: -2, 42: -1\n':
            sys.exit(f'quickstart printed {output!r}')
    print('pkg-config finds version', version, 'under', prefix)
    return version


def static_consumer(options, libraries):
    """A program that needs no library at run time, not even that of C."""
    environment = {**os.environ, 'PKG_CONFIG_PATH': str(libraries / 'pkgconfig')}
    flags = run('pkg-config', '--static', '--cflags', '--libs', 'embank', env=environment).split()
    program = options.scratch / 'static_quickstart'
    run(options.cc, '-std=c99', '-static', TOP / 'examples/quickstart.c', *flags, '-o', program)
    if run(program) != '7: -2, 42: -1\n':
        sys.exit(f'{program} went wrong')
    run(options.cc, '-std=c99', '-static', HERE / 'consumer.c', *flags, '-o', program)
    run(program)
    names = run('nm', '--extern-only', '--defined-only', libraries / 'libembank.a').split('\n')
    strange = [line for line in names if len(line.split()) == 3
               and not line.split()[2].startswith('embank_')]
    if strange:
        sys.exit(f'libembank.a defines names that programs may have: {strange}')


def cpp_consumer(options, prefix, version):
    build = options.scratch / 'cpp'
    run(options.cmake, '-S', HERE / 'cpp', '-B', build, '-G', 'Ninja',
        f'-DCMAKE_PREFIX_PATH={prefix}', f'-DCMAKE_CXX_COMPILER={options.cxx}',
        f'-DEXPECTED_VERSION={version}')
    run(options.cmake, '--build', build)
    if 'libembank' in run('ldd', build / 'consumer_static'):
        sys.exit('consumer_static needs the shared library')
    for program in ('consumer_17', 'consumer_20', 'consumer_static'):
        run(build / program)


def commands(prefix, version):
    """The installed commands run, wherever the tree went."""
    program = prefix / 'bin' / 'embank'
    if version not in run(program, '--version'):
        sys.exit(f'{program} --version does not say {version}')
    nowhere = subprocess.run([program, 'verify', prefix / 'nowhere'], capture_output=True,
                             text=True, check=False)
    if nowhere.returncode != 2 or 'nowhere' not in nowhere.stderr:
        sys.exit(f'{program} verify: {nowhere.returncode}, {nowhere.stderr!r}')
    bench = prefix / 'bin' / 'embank-bench'
    keys = prefix.parent / 'keys.txt'
    keys.write_text('1\n2\n1\n3\n', encoding='utf-8')
    if 'mismatches      0\n' not in run(bench, 'replay', '--trace', keys, '--dim', '4'):
        sys.exit(f'{bench} replay does not say that nothing differed')
    page = (prefix / 'share/man/man1/embank-bench.1').read_text(encoding='utf-8')
    listed = run(bench, '--help').partition('Subcommands:')[2]
    words = re.findall(r'^  (\w+) +\w', listed, re.M)
    missing = [word for word in words if f'.B {word}\n' not in page]
    if not words or missing:
        sys.exit(f'commands of {bench}: {words}; not in its manual page: {missing}')
    for word in ('replay', 'survive'):
        flags = re.findall(r'--[a-z-]+', run(bench, word, '--help').partition('Options:')[2])
        missing = [flag for flag in flags if not re.search(
            rf'^\.BR?I? .*{flag}\b(?!-)', page.replace('\\-', '-'), re.M)]
        if not flags or missing:
            sys.exit(f'options of {word}: {flags}; not in its manual page: {missing}')
    train_page(prefix)


def train_page(prefix):
    """The manual page of embank-train has its options and its models."""
    page = (prefix / 'share/man/man1/embank-train.1').read_text(encoding='utf-8')
    listed = run(prefix / 'bin/embank-train', '--help').partition('Options:')[2]
    # A newer CLI11 has the default in brackets behind the type.
    models = re.search(r'--model \S+ +(?:\[\S+\] +)?(.*)', listed).group(1)
    words = re.findall(r'^  (?:-\w,)?(--[a-z-]+)', listed, re.M)
    words += re.split(', | or ', models.strip())
    missing = [word for word in words if word != '--help' and not re.search(
        rf'(?<![\w-]){word}\b(?!-)', page.replace('\\-', '-').replace('\\fB', ''))]
    if len(words) < 40 or missing:
        sys.exit(f'options and models of embank-train: {words}; not in its page: {missing}')


def main():
    parser = argparse.ArgumentParser()
    for name in ('build', 'scratch', 'cmake', 'cc', 'cxx'):
        parser.add_argument(f'--{name}', required=True, type=pathlib.Path)
    options = parser.parse_args()
    prefix = install(options)
    libraries = next(prefix.glob('lib/**/libembank.so')).parent
    version = c_consumers(options, prefix, libraries)
    static_consumer(options, libraries)
    cpp_consumer(options, prefix, version)
    commands(prefix, version)
    run(sys.executable, '-B', HERE / 'consumer.py', libraries / 'libembank.so.0')
    print('C, C++, both libraries, Python and the commands work from the installed tree')


if __name__ == '__main__':
    main()
