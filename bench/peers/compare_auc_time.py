"""Times embank-train and PyTorch up to a held-out AUC, on the same log, from equal first values.

A first run of each side evaluates every few steps, and finds the step that is good enough; then
both train to their step in turns, without evaluations. The time of embank-train has the reading of
the log in it, which a thread of its own does. PyTorch's is shown without, and with the part of its
reading that these samples are.
"""
import argparse
import re
import statistics
import subprocess
import sys

import both_sides


def write_logs(sides: both_sides.BothSides, options: argparse.Namespace) -> tuple[str, str]:
    """Writes the log of the training and that of the evaluation."""
    whole = sides.work / 'whole.txt'
    sides.write_log(['--generate', 'criteo-kaggle', '--divisor', options.divisor, '--samples',
                     options.samples, '--eval-samples', options.eval_samples], whole)
    paths = sides.work / 'train.txt', sides.work / 'eval.txt'
    with open(whole, 'rb') as lines, open(paths[0], 'wb') as train, open(paths[1], 'wb') as held:
        for number, line in enumerate(lines):
            (train if number < options.samples else held).write(line)
    whole.unlink()
    return str(paths[0]), str(paths[1])


def first_step(aucs: list, target: float, name: str) -> int:
    """The first step whose AUC, of four digits, is the target."""
    for step, auc in aucs:
        if round(auc, 4) >= target:
            return step
    return sys.exit(f'{name} ends at {aucs[-1] if aucs else "nothing"}, below {target}')


def our_aucs(sides: both_sides.BothSides, arguments: list) -> list:
    ended = subprocess.run([sides.train, *map(str, arguments)], stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE, text=True, check=True)
    return [(int(step), float(auc)) for step, auc in
            re.findall(r'step (\d+)  evaluation: logloss [\d.]+, auc ([\d.]+)', ended.stderr)]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    both_sides.add_options(parser)
    parser.add_argument('--auc', type=float, default=0.75)
    parser.add_argument('--divisor', type=int, default=1000, help='of the log\'s cardinalities')
    parser.add_argument('--samples', type=int, default=100_000, help='of the training, at most')
    parser.add_argument('--eval-samples', type=int, default=50_000)
    parser.add_argument('--eval-every', type=int, default=10, help='steps')
    parser.add_argument('--batch', type=int, default=1024)
    parser.add_argument('--dense-rate', default='0.0005', help='0.01 lets rounding grow')
    parser.add_argument('--rounds', type=int, default=5)
    options = parser.parse_args()
    sides = both_sides.BothSides(options)
    log, held = write_logs(sides, options)
    timed = ['--model', 'dlrm', '--data', log, '--batch', options.batch, '--dense-rate',
             options.dense_rate]
    evaluated = [*timed, '--eval', held, '--eval-every', options.eval_every]
    our_step = first_step(our_aucs(sides, [*evaluated, '--threads', 2]), options.auc, 'Embank')
    their_step = first_step(sides.theirs(evaluated, has_first_values=True)['evaluations'],
                            options.auc, 'PyTorch')
    ours, theirs = [], []
    for _ in range(options.rounds):
        ours.append(sides.ours([*timed, '--threads', 2, '--steps', our_step])['seconds']['all'])
        theirs.append(sides.theirs([*timed, '--steps', their_step], has_first_values=True))
    of_us = statistics.median(ours)
    without = statistics.median(one['seconds']['all'] for one in theirs)
    reading = statistics.median(one['read_seconds'] / one['read_samples'] for one in theirs)
    with_reading = without + reading * their_step * options.batch
    print(f'dlrm to AUC {options.auc} of {options.eval_samples:,} held-out samples, batch '
          f'{options.batch}: {theirs[0]["peer"]}')
    print('| side | step | seconds | PyTorch / Embank |')
    print('| --- | ---: | ---: | ---: |')
    print(f'| Embank, reading counted | {our_step} | {of_us:.2f} ({min(ours):.2f} to '
          f'{max(ours):.2f}) | |')
    print(f'| PyTorch, reading counted | {their_step} | {with_reading:.2f} | '
          f'{with_reading / of_us:.2f} |')
    print(f'| PyTorch, reading not counted | {their_step} | {without:.2f} | '
          f'{without / of_us:.2f} |')


if __name__ == '__main__':
    main()
