"""Times training in embank-train and in PyTorch on the same log, in turns.

The log has 26 id features. Its first samples have each id once, so that both sides have all their
rows before they are timed; the ids of the others follow Zipf's law. Reading the log is counted in
embank-train, which does it in a thread of its own, and not in PyTorch.
"""
import argparse
import statistics

import both_sides
from needs import import_numpy

np = import_numpy()
import click_log  # noqa: E402: it needs NumPy

DIGITS = np.frombuffer(b'0123456789abcdef', np.uint8)
INTEGER_DIGITS = 3


def zipf_ids(random: np.random.Generator, rows: int, samples: int, exponent: float) -> np.ndarray:
    """Scattered ids below `rows`."""
    sums = np.cumsum(np.arange(1, rows + 1, dtype=np.float64) ** -exponent)
    ranks = np.searchsorted(sums, random.random(samples) * sums[-1])
    return random.permutation(rows)[ranks]


def log_text(random: np.random.Generator, ids: np.ndarray) -> bytes:
    """Lines of fixed width for ids (click_log.IDS, samples)."""
    samples = ids.shape[1]
    width = 2 + click_log.INTEGERS * (INTEGER_DIGITS + 1) + click_log.IDS * 9
    text = np.full((samples, width), ord('\t'), np.uint8)
    text[:, 0] = DIGITS[(random.random(samples) < 0.25).astype(np.int64)]
    column = 2
    for _ in range(click_log.INTEGERS):
        text[:, column:column + INTEGER_DIGITS] = DIGITS[
            random.integers(0, 10, (samples, INTEGER_DIGITS))]
        column += INTEGER_DIGITS + 1
    for feature in ids:
        for place in range(8):
            text[:, column + place] = DIGITS[feature >> 4 * (7 - place) & 15]
        column += 9
    text[:, -1] = ord('\n')
    return text.tobytes()


def write_log(path, rows: int, samples: int, exponent: float):
    random = np.random.default_rng(1)
    first = np.stack([random.permutation(rows) for _ in range(click_log.IDS)])
    others = np.stack([zipf_ids(random, rows, samples, exponent)
                       for _ in range(click_log.IDS)])
    with open(path, 'wb') as file:
        for ids in (first, others):
            file.write(log_text(random, ids))


def median(rounds: list[dict], *path: str) -> float:
    values = []
    for value in rounds:
        for name in path:
            value = value[name]
        values.append(value)
    return statistics.median(values)


def print_side(name: str, rounds: list[dict]):
    rates = [one['samples_per_second'] for one in rounds]
    parts = ', '.join(f'{part} {median(rounds, "seconds", part):.2f}'
                      for part in rounds[0]['seconds'])
    print(f'  {name:8} {statistics.median(rates):8.0f} samples/s ({min(rates):.0f}..'
          f'{max(rates):.0f}); seconds: {parts}', flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    both_sides.add_options(parser)
    parser.add_argument('--rows', type=int, default=400_000, help='of each of 26 features')
    parser.add_argument('--samples', type=int, default=200_000, help='that are timed')
    parser.add_argument('--zipf', type=float, default=1.0)
    parser.add_argument('--models', default='dlrm,wide-deep')
    parser.add_argument('--batches', default='1024,4096')
    parser.add_argument('--rounds', type=int, default=3)
    options = parser.parse_args()
    sides = both_sides.BothSides(options)
    log = sides.work / 'speed.txt'
    write_log(log, options.rows, options.samples, options.zipf)
    for model in options.models.split(','):
        for batch in map(int, options.batches.split(',')):
            arguments = ['--model', model, '--data', log, '--batch', batch, '--untimed-steps',
                         -(-options.rows // batch)]
            ours, theirs = [], []
            for _ in range(options.rounds):
                ours.append(sides.ours(arguments))
                theirs.append(sides.theirs(arguments, has_first_values=False))
            ratio = median(ours, 'samples_per_second') / median(theirs, 'samples_per_second')
            print(f'{model}, batch {batch}: Embank / PyTorch {ratio:.2f}')
            print_side('Embank', ours)
            print_side('PyTorch', theirs)
    log.unlink()


if __name__ == '__main__':
    main()
