"""Trains models in embank-train and in PyTorch, and compares logloss and AUC.

  compare_training.py --generate 150000              a generated log with planted labels
  compare_training.py --data FILE --batch 128        a log in Criteo's format, plain or .zst

The first 80 % of the samples are trained on, in their order; the others are the evaluation. The
last columns show what rounding does: PyTorch against itself with another number of BLAS threads,
and the distances of Embank and of PyTorch from PyTorch in float64.
"""
import argparse
import subprocess
import sys

import both_sides

BAR = 1e-4


def lines_of(sides: both_sides.BothSides, options: argparse.Namespace) -> list[bytes]:
    if options.data and options.data.endswith('.zst'):
        return subprocess.run(['zstd', '-dc', options.data], check=True,
                              stdout=subprocess.PIPE).stdout.splitlines(keepends=True)
    path = options.data
    if not path:
        path = sides.work / 'generated.txt'
        sides.write_log(['--generate', 'criteo-kaggle', '--divisor', options.divisor, '--samples',
                         options.generate], path)
    with open(path, 'rb') as file:
        return file.readlines()


def split(sides: both_sides.BothSides, lines: list[bytes]) -> tuple[str, str]:
    """Writes the log of the training and that of the evaluation."""
    end = len(lines) * 4 // 5
    paths = sides.work / 'train.txt', sides.work / 'eval.txt'
    for path, part in zip(paths, (lines[:end], lines[end:])):
        path.write_bytes(b''.join(part))
    return str(paths[0]), str(paths[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    both_sides.add_options(parser)
    data = parser.add_mutually_exclusive_group(required=True)
    data.add_argument('--data', help='a log')
    data.add_argument('--generate', type=int, help='samples of a generated log')
    parser.add_argument('--divisor', type=int, default=1000, help='of its cardinalities')
    parser.add_argument('--models', default=','.join(both_sides.MODELS))
    parser.add_argument('--batch', type=int, default=1024)
    parser.add_argument('--dense-rate', default='0.01', help='learning rate of dense parameters')
    options = parser.parse_args()
    sides = both_sides.BothSides(options)
    train, evaluation = split(sides, lines_of(sides, options))
    print(f'{"model":10} {"figure":13} {"Embank":>10} {"PyTorch":>10} {"difference":>11} '
          f'{"rounding":>9} {"from f64":>9} {"theirs":>9}')
    worst = 0.0
    for model in options.models.split(','):
        arguments = ['--model', model, '--data', train, '--eval', evaluation, '--batch',
                     str(options.batch), '--dense-rate', options.dense_rate]
        ours = sides.ours(arguments)
        theirs = sides.theirs(arguments, has_first_values=True)
        again = sides.theirs(arguments, has_first_values=True,
                             blas_threads=3 - min(options.blas_threads, 2))
        exact = sides.theirs(arguments, has_first_values=True, extra=('--float64',))
        for figure in ('logloss', 'auc', 'eval_logloss', 'eval_auc'):
            difference = ours[figure] - theirs[figure]
            worst = max(worst, abs(difference))
            print(f'{model:10} {figure:13} {ours[figure]:10.6f} {theirs[figure]:10.6f} '
                  f'{difference:+11.1e} {abs(again[figure] - theirs[figure]):9.1e} '
                  f'{abs(ours[figure] - exact[figure]):9.1e} '
                  f'{abs(theirs[figure] - exact[figure]):9.1e}')
    print(f'the largest difference is {worst:.1e}; the bar is {BAR:.0e}')
    return 0 if worst <= BAR else 1


if __name__ == '__main__':
    sys.exit(main())
