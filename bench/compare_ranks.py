"""Measures trainings of several ranks, and prints the tables of bench/README.md.

Each part can be asked for alone. `instructions` compares with the build of another commit, and
needs valgrind.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

PROGRAM_PARTS = ('exchange', 'dense', 'bytes', 'load')
PARTS = PROGRAM_PARTS + ('efficiency', 'reshard', 'instructions')
MPIRUN = ('mpirun', '-n', '2', '--bind-to', 'none')


def run(command, environment=None) -> str:
    """What a command prints on standard error, or the end of this script."""
    ended = subprocess.run([*map(str, command)], env=environment, stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE, text=True, check=False)
    if ended.returncode != 0:
        sys.exit(f'{" ".join(map(str, command))} failed: {ended.stderr}')
    return ended.stderr


def run_programs(options, part: str):
    under = MPIRUN if part in ('exchange', 'dense') else ()
    subprocess.run([*under, f'{options.build}/bin/embank-ranks', part], check=True)


class Efficiency:
    """Two ranks on two cores beside one rank on one core, on the same log."""

    def __init__(self, options):
        self.train = f'{options.build}/bin/embank-train'
        self.work = pathlib.Path(options.work)
        self.rounds = options.rounds
        self.samples = options.samples
        self.log = self.work / 'ranks.txt'
        run([self.train, '--generate', 'criteo-kaggle', '--divisor', 20, '--samples',
             self.samples, '--write-log', self.log])

    def start(self, name: str, before, model: str, batch: int, more=()):
        """Trains the log twice: all rows are there before the time begins."""
        figures = self.work / f'{name}.json'
        command = [*before, self.train, '--model', model, '--data', self.log, '--batch', batch,
                   '--threads', 1, '--epochs', 2, '--untimed-steps', -(-self.samples // batch),
                   '--json', figures, *more]
        process = subprocess.Popen([*map(str, command)], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)
        return process, figures

    @staticmethod
    def end(started) -> dict:
        process, figures = started
        _, errors = process.communicate()
        if process.returncode != 0:
            sys.exit(f'embank-train failed: {errors}')
        return json.loads(figures.read_text(encoding='utf-8'))

    def one_round(self, model: str, batch: int) -> dict:
        def figures(*arguments):
            return self.end(self.start(*arguments))
        return {
            'one': figures('one', ('taskset', '-c', 0), model, batch),
            'twice': [self.end(started) for started in
                      [self.start(f'job{core}', ('taskset', '-c', core), model, batch)
                       for core in (0, 1)]],
            'threads': figures('threads', ('taskset', '-c', '0,1'), model, batch,
                               ('--ranks', 2)),
            'mpirun': figures('mpirun', ('taskset', '-c', '0,1', *MPIRUN), model, batch),
        }

    def print_model(self, model: str, batch: int):
        rounds = [self.one_round(model, batch) for _ in range(self.rounds)]

        def median(of_round) -> float:
            return statistics.median(of_round(one) for one in rounds)

        def rate(name):
            return median(lambda one: one[name]['samples_per_second'])

        twice = median(lambda one: sum(job['samples_per_second'] for job in one['twice']) / 2
                       / one['one']['samples_per_second'])
        print(f'| {model} | {batch:,} | 1 | {rate("one"):,.0f} | | {twice:.2f} | | | |')
        for name in ('threads', 'mpirun'):
            def share(of_round, name=name):
                return median(lambda one: of_round(one[name]) / one[name]['seconds']['all'])
            efficiency = median(lambda one, name=name: one[name]['samples_per_second'] / 2
                                / one['one']['samples_per_second'])
            imbalance = median(lambda one, name=name: 2 * one[name]['lookups']
                               / one['one']['lookups'])
            link = share(lambda of: of['link_seconds'])
            rows = share(lambda of: of['seconds']['lookup'] + of['seconds']['gradients'])
            dense = share(lambda of: of['seconds']['dense'])
            print(f'| {model} | {batch:,} | 2, {name} | {rate(name):,.0f} | {efficiency:.2f} | '
                  f'| {link:.2f} | {rows:.2f}, {dense:.2f} | {imbalance:.3f} |', flush=True)

    def print_all(self):
        print('| model | batch | ranks | samples/s | efficiency | two jobs at once | link | '
              'rows, dense | lookups |')
        print('| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |')
        for model in ('rmc2', 'wide-deep'):
            for batch in (1024, 4096):
                self.print_model(model, batch)
        self.log.unlink()


def measure_reshard(options):
    """Makes a job of 8 ranks of one of 4."""
    job = pathlib.Path(options.work) / 'job4'
    made = pathlib.Path(options.work) / 'job8'
    shutil.rmtree(job, ignore_errors=True)
    run([f'{options.build}/bin/embank-train', '--generate', 'criteo-kaggle', '--copies', 8,
         '--model', 'ffnn', '--samples', options.reshard_samples, '--batch', 8192, '--ranks', 4,
         '--path', job])
    rates, peaks = [], []
    for _ in range(options.rounds):
        shutil.rmtree(made, ignore_errors=True)
        process = subprocess.Popen([f'{options.build}/bin/embank', 'reshard', str(job), '--to',
                                    '8', '--out', str(made)], stdout=subprocess.PIPE, text=True)
        text = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        if status != 0:
            sys.exit(f'embank reshard failed: {text}')
        rows, rate = re.search(r'(\d+) rows, (\d+) per second', text).groups()
        rates.append(int(rate))
        peaks.append(usage.ru_maxrss / 1024)
    print(f'reshard 4 -> 8: {int(rows):,} rows, {statistics.median(rates):,.0f} rows/s '
          f'({min(rates):,}..{max(rates):,}), peak memory {max(peaks):.0f} MiB')
    shutil.rmtree(job)
    shutil.rmtree(made)


def instructions(build: str, work: str, model: str, steps: int) -> int:
    """The instructions within all calls of Trainer::BeginStep and EndStep, which older builds have
    in Step."""
    words = run(['valgrind', '--tool=callgrind', f'--callgrind-out-file={work}/callgrind.out',
                 '--toggle-collect=embank::Trainer::Step*',
                 '--toggle-collect=embank::Trainer::BeginStep*',
                 '--toggle-collect=embank::Trainer::EndStep*', f'{build}/bin/embank-train',
                 '--model', model, '--generate', 'criteo-kaggle', '--divisor', 1000,
                 '--samples', 40000, '--batch', 256, '--threads', 1, '--steps', steps])
    return int(re.search(r'Collected : (\d+)', words).group(1))


def measure_instructions(options):
    """Those of a step of one process. Two lengths of a run, since first steps create rows."""
    if options.parent is None:
        print('instructions: not measured, there is no --parent')
        return
    few, many = 4, 16
    for model in ('wide-deep', 'rmc2'):
        of_step = [(instructions(build, options.work, model, many)
                    - instructions(build, options.work, model, few)) / (many - few)
                   for build in (options.parent, options.build)]
        print(f'{model}: {of_step[0]:,.0f} instructions of a step of 256 samples in --parent, '
              f'{of_step[1]:,.0f} here: {of_step[1] / of_step[0] - 1:+.2%}', flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('parts', nargs='*', default=PARTS, help=', '.join(PARTS))
    parser.add_argument('--build', default='build/release')
    parser.add_argument('--parent', help='the build of the commit before ranks (7f9176d)')
    parser.add_argument('--work', default=f'{tempfile.gettempdir()}/embank-ranks',
                        help='directory for large files')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--samples', type=int, default=200_000, help='of the log for efficiency')
    parser.add_argument('--reshard-samples', type=int, default=500_000)
    options = parser.parse_args()
    for part in options.parts:
        if part not in PARTS:
            parser.error(f'{part} is none of {", ".join(PARTS)}')
    pathlib.Path(options.work).mkdir(parents=True, exist_ok=True)
    for part in options.parts:
        if part in PROGRAM_PARTS:
            run_programs(options, part)
        elif part == 'efficiency':
            Efficiency(options).print_all()
        elif part == 'reshard':
            measure_reshard(options)
        else:
            measure_instructions(options)


if __name__ == '__main__':
    main()
