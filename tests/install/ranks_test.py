"""Builds examples/ranks.c against an installed Embank, and runs it with 1 to 4 ranks of MPI.

Exits with 77 and says why where MPI is not installed, but fails if EMBANK_TEST_NEED_MPI is set.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

from examples_test import EXAMPLES, Language, run, skip

# The same on every machine: docs/arithmetic.md.
LINES = ['batch 20: loss 0.17954288116627606', 'batch 40: loss 0.081031630258526957',
         'batch 60: loss 0.03985258127920463', 'rows 4096']
# Ranks have no core of their own, and root may be the user.
SETTINGS = ('OMPI_MCA_mpi_yield_when_idle', 'OMPI_ALLOW_RUN_AS_ROOT',
            'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM', 'PRTE_ALLOW_RUN_AS_ROOT',
            'PRTE_ALLOW_RUN_AS_ROOT_CONFIRM')


def mpi_tool(name, package):
    path = shutil.which(name)
    if path is None:
        missing = f'{name} is not installed (Debian: {package})'
        if 'EMBANK_TEST_NEED_MPI' in os.environ:
            sys.exit(missing)
        skip(missing)
    return path


def check_job(mpirun, program, ranks, environment):
    """The lines are those of any number of ranks, and each rank has a part of the rows."""
    command = [mpirun, '-n', str(ranks), '--timeout', '60', '--oversubscribe', '--bind-to', 'none',
               str(program)]
    print('+', ' '.join(command), flush=True)
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    print(done.stdout + done.stderr, flush=True)
    parts = [int(part) for part in re.findall(rf'of {ranks} has (\d+) rows', done.stderr)]
    if done.returncode != 0 or done.stdout.splitlines() != LINES:
        sys.exit(f'{ranks} ranks: status {done.returncode}; expected status 0 and {LINES}')
    if len(parts) != ranks or min(parts) < max(parts) // 2 or LINES[-1] != f'rows {sum(parts)}':
        sys.exit(f'{ranks} ranks: the rows are not spread over them: {parts}')


def main():
    parser = argparse.ArgumentParser()
    for name in ('prefix', 'scratch', 'cc'):
        parser.add_argument(f'--{name}', required=True, type=pathlib.Path)
    options = parser.parse_args()
    mpicc = mpi_tool('mpicc', 'libopenmpi-dev')
    mpirun = mpi_tool('mpirun', 'openmpi-bin')
    shutil.rmtree(options.scratch, ignore_errors=True)
    options.scratch.mkdir(parents=True)
    installed = Language(options, next(options.prefix.glob('lib/**/libembank.so')).parent)
    environment = {**installed.environment, **dict.fromkeys(SETTINGS, '1'),
                   'OMPI_CC': str(options.cc)}
    program = options.scratch / 'ranks'
    run(mpicc, '-std=c11', '-O2', '-Wall', '-Wextra', '-Wpedantic', '-Werror',
        EXAMPLES / 'ranks.c', *installed.flags(), '-o', program, env=environment)
    for ranks in (1, 2, 3, 4):
        check_job(mpirun, program, ranks, environment)
    shutil.rmtree(options.scratch)


if __name__ == '__main__':
    main()
