"""Runs embank-train and the trainer in PyTorch on the same log, each in a process of its own."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
MODELS = ('dlrm', 'wide-deep', 'deep-fm')


def add_options(parser: argparse.ArgumentParser):
    parser.add_argument('--build', default='build/release', help='the build of embank-train')
    parser.add_argument('--python', default='/usr/bin/python3', help='one that has PyTorch')
    parser.add_argument('--work', default=f'{tempfile.gettempdir()}/embank-peers',
                        help='directory for large files')
    parser.add_argument('--omp-threads', type=int, default=1, help='OpenMP threads of PyTorch')
    parser.add_argument('--blas-threads', type=int, default=2, help='OpenBLAS threads of PyTorch')


def without(arguments: list, *options: str) -> list:
    """The arguments without these options and their values."""
    return [word for before, word in zip([None, *arguments], arguments)
            if word not in options and before not in options]


class BothSides:
    def __init__(self, options: argparse.Namespace):
        build = pathlib.Path(options.build)
        self.train = str(build / 'bin' / 'embank-train')
        self.library = str(build / 'bindings' / 'c' / 'libembank.so')
        self.python = options.python
        self.work = pathlib.Path(options.work)
        self.work.mkdir(parents=True, exist_ok=True)
        self.environment = {**os.environ, 'OMP_NUM_THREADS': str(options.omp_threads),
                            'OPENBLAS_NUM_THREADS': str(options.blas_threads)}

    def _figures(self, command: list, environment=None) -> dict:
        path = self.work / 'figures.json'
        ended = subprocess.run([*map(str, command), '--json', str(path)], env=environment,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                               check=False)
        if ended.returncode != 0:
            sys.exit(f'{command[0]} failed: {ended.stderr}')
        return json.loads(path.read_text(encoding='utf-8'))

    def write_log(self, arguments: list, path) -> None:
        """Writes a generated log."""
        subprocess.run([self.train, *map(str, arguments), '--write-log', str(path)], check=True)

    def ours(self, arguments: list) -> dict:
        return self._figures([self.train, *arguments])

    def theirs(self, arguments: list, has_first_values: bool, blas_threads: int = 0,
               extra: tuple = ()) -> dict:
        """Trains in PyTorch; with our first weights and rows, or with values of its own."""
        command = [self.python, HERE / 'torch_click.py', *arguments, *extra]
        if has_first_values:
            weights = self.work / 'weights.f32'
            first = without(arguments, '--eval', '--eval-every', '--steps')
            self._figures([self.train, *first, '--steps', '0', '--weights', weights])
            command += ['--weights', weights, '--library', self.library]
        environment = dict(self.environment)
        if blas_threads:
            environment['OPENBLAS_NUM_THREADS'] = str(blas_threads)
        return self._figures(command, environment)
