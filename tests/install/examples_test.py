"""Builds examples/train of one language against an installed Embank, interrupts it and resumes it.

Exits with 77 and says why where the language is not installed here.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent.parent / 'examples'
SKIPPED = 77
# Of every language, interrupted or not, on every machine: docs/arithmetic.md.
LAST_LINE = 'rows 58617, checksum 1c1c7966f6206410'
STOP, RESUME = 50, 'resume at batch 40 of 100'


def skip(reason):
    print(f'skipped: {reason}')
    sys.exit(SKIPPED)


def run(*command, **options):
    """Runs a command that must succeed; returns the lines that it printed."""
    command = [str(part) for part in command]
    print('+', ' '.join(command), flush=True)
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    print(done.stdout + done.stderr, flush=True)
    if done.returncode != 0:
        sys.exit(f'failed with {done.returncode}: {" ".join(command)}')
    return done.stdout.splitlines()


def tool(name):
    return shutil.which(name) or skip(f'{name} is not installed')


def python_with_numpy():
    """An interpreter that has numpy: the one of the tests may be another than the system's."""
    for python in (sys.executable, '/usr/bin/python3'):
        if os.path.exists(python) and subprocess.run(
                [python, '-c', 'import numpy'], capture_output=True, check=False).returncode == 0:
            return python
    return skip('no Python with numpy is installed (Debian: python3-numpy)')


class Language:
    """How the program of a language is built and called."""

    def __init__(self, options, libraries):
        self.options = options
        self.libraries = libraries
        self.environment = {**os.environ, 'PKG_CONFIG_PATH': str(libraries / 'pkgconfig'),
                            'LD_LIBRARY_PATH': str(libraries),
                            'GOCACHE': str(options.scratch / 'go'), 'GOFLAGS': ''}

    def flags(self):
        return run(tool('pkg-config'), '--cflags', '--libs', 'embank',
                   env=self.environment)[0].split()

    def command(self, language):
        """The command that runs the program, which is built first."""
        options, program = self.options, self.options.scratch / f'train_{language}'
        strict = ['-O2', '-Wall', '-Wextra', '-Wpedantic', '-Werror', '-pthread', '-o', program]
        if language == 'c':
            run(options.cc, '-std=c99', EXAMPLES / 'train.c', *self.flags(), *strict)
        elif language == 'cpp':
            run(options.cxx, '-std=c++17', EXAMPLES / 'train.cc', *self.flags(), *strict)
        elif language == 'python':
            return [python_with_numpy(), '-B', '-W', 'error', EXAMPLES / 'train.py']
        elif language == 'rust':
            run(tool('rustc'), '--edition', '2021', '-O', '-D', 'warnings', EXAMPLES / 'train.rs',
                '-L', f'native={self.libraries}', '-o', program)
        else:
            run(tool('go'), 'build', '-o', program, EXAMPLES / 'train.go', env=self.environment)
        return [program]


def expect(lines, first, last):
    if lines[0] != first or lines[-1] != last:
        sys.exit(f'expected {first!r} first and {last!r} last: {lines}')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--language', required=True,
                        choices=('c', 'cpp', 'python', 'rust', 'go'))
    for name in ('prefix', 'scratch', 'cc', 'cxx'):
        parser.add_argument(f'--{name}', required=True, type=pathlib.Path)
    options = parser.parse_args()
    shutil.rmtree(options.scratch, ignore_errors=True)
    options.scratch.mkdir(parents=True)
    language = Language(options, next(options.prefix.glob('lib/**/libembank.so')).parent)
    train = language.command(options.language)
    in_c = language.command('c')

    def trained(command, store, *stop):
        return run(*command, options.scratch / store, *stop, env=language.environment)

    beginning = 'resume at batch 0 of 100'
    expect(trained(train, 'whole'), beginning, LAST_LINE)
    for store, second in (('interrupted', train), ('resumed-in-c', in_c)):
        interrupted = trained(train, store, STOP)
        if interrupted[-1] == LAST_LINE:
            sys.exit(f'the run that was interrupted is whole: {interrupted}')
        expect(trained(second, store), RESUME, LAST_LINE)
    expect(trained(train, 'resumed-in-c'), 'resume at batch 100 of 100', LAST_LINE)
    shutil.rmtree(options.scratch)


if __name__ == '__main__':
    main()
