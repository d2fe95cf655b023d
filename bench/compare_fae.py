"""Measures hot batches, and prints the tables of docs/hot_batches.md.

estimate  the time of calibrations, by sample and by a count of everything
kernels   counts and the classifier of inputs beside their floors (embank-kernels)
parity    the AUC of hot and cold batches against a uniform shuffle, over seeds
link      bytes and times with the link of a device emulated, by the share of hot inputs
sizes     the same by the size of batches
models    the same for the synthetic models

Each part can be asked for alone.
"""
import argparse
import json
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

PARTS = ('estimate', 'kernels', 'parity', 'link', 'sizes', 'models')
PARITY_BAR, HOT_ONLY_BAR, BYTES_BAR, LINK_BAR = 0.002, 0.005, 0.65, 2.0
COUNTING_BAR, THREADS_BAR = 15.0, 1.7  # decision 0059 says what bounds the first
HOT_SHARE = 0.75
DENSE_RATE = 0.005  # of 0.03, 0.005 and 0.0005 the one with the best AUC of a uniform shuffle
LINK = '12,10'  # GB/s of PCIe 3.0 x16, and microseconds of a transfer
SIZES = (256, 512, 1024, 2048, 4096, 8192)
MODELS = ('syn-m1', 'syn-m2', 'syn-m3', 'syn-m4')


def run(command: list) -> str:
    ended = subprocess.run([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           text=True, check=False)
    if ended.returncode != 0:
        sys.exit(f'{" ".join(map(str, command))} failed: {ended.stderr}')
    return ended.stdout


class Bench:
    """The program, a directory for its files, and the logs that were made there."""

    def __init__(self, options):
        self.options = options
        self.program = f'{options.build}/bin/embank-train'
        self.work = pathlib.Path(options.work)

    def figures(self, *words) -> dict:
        path = self.work / 'figures.json'
        run([self.program, *words, '--json', path])
        return json.loads(path.read_text(encoding='utf-8'))

    def auc(self, held_out, *words) -> float:
        """Trains a model, and returns its AUC on samples that nothing of the training has seen."""
        path = self.work / 'model'
        shutil.rmtree(path, ignore_errors=True)
        run([self.program, *words, '--path', path])
        text = run([self.program, 'evaluate', '--path', path, '--data', held_out])
        return float(re.search(r'^auc +([0-9.]+)', text, re.M).group(1))

    def log(self, samples: int, seed: int, divisor: int) -> pathlib.Path:
        path = self.work / f'log-{samples}-{seed}-{divisor}.txt'
        if not path.exists():
            run([self.program, '--generate', 'criteo-kaggle', '--divisor', divisor, '--samples',
                 samples, '--seed', seed, '--write-log', path])
        return path

    def calibrate(self, log, budget: int, *more) -> tuple[pathlib.Path, dict]:
        path = log.with_suffix('.fae')
        return path, self.figures('calibrate', log, '--budget', budget, '--out', path, *more)

    def with_hot_share(self, log, share: float, *more) -> tuple[pathlib.Path, dict]:
        """A calibration with about this share of hot inputs: bisects the budget. All inputs are
        counted: a sample of a log as short as these lacks many ids."""
        low, high = 1 << 16, 1 << 32
        figures = None
        for _ in range(24):
            budget = int((low * high) ** 0.5)
            try:
                path, figures = self.calibrate(log, budget, '--sample', 1, *more)
            except SystemExit as failed:
                if 'small tables' not in str(failed):
                    raise
                low = budget
                continue
            if abs(figures['hot_input_share'] - share) < 0.01:
                break
            if figures['hot_input_share'] < share:
                low = budget
            else:
                high = budget
        if figures is None:
            sys.exit('no budget is enough for the small tables')
        return path, figures


def met(is_met: bool, bar) -> str:
    return f'{"met" if is_met else "missed"}: {bar}'


def measure_estimate(bench: Bench):
    """Seconds of the whole command, and of counting alone, for a sample and for all inputs."""
    log = bench.log(bench.options.samples, 1, bench.options.divisor)
    print(f'calibration of {bench.options.samples:,} inputs')
    print('| sample | counting s | estimate s | hot bytes / budget | bound / hot bytes | hot |')
    print('| ---: | ---: | ---: | ---: | ---: | ---: |')
    counting = {}
    for share in (0.05, 1.0):
        rounds = []
        for _ in range(bench.options.rounds):
            _, of_log = bench.calibrate(log, bench.options.budget, '--sample', share)
            estimate = of_log['estimate']
            rounds.append((estimate['counting_seconds'], estimate['seconds']))
        counting[share] = statistics.median(one for one, _ in rounds)
        print(f'| {share:.0%} | {counting[share]:.3f} '
              f'| {statistics.median(one for _, one in rounds):.2f} '
              f'| {of_log["hot_bytes"] / of_log["budget_bytes"]:.3f} '
              f'| {of_log["bound_bytes"] / of_log["hot_bytes"]:.3f} '
              f'| {of_log["hot_input_share"]:.1%} |')
    ratio = counting[1.0] / counting[0.05]
    print(f'counting: {ratio:.1f} x faster by a sample; '
          f'{met(ratio >= COUNTING_BAR, COUNTING_BAR)}', flush=True)


def measure_kernels(bench: Bench):
    path = bench.work / 'kernels.json'
    run([f'{bench.options.build}/bin/embank-kernels', '--benchmark_filter=^(Classify|Probe|Count)',
         f'--benchmark_repetitions={bench.options.rounds}', '--benchmark_out_format=json',
         '--benchmark_enable_random_interleaving=true', f'--benchmark_out={path}'])
    rates = {one['run_name']: one['items_per_second']
             for one in json.loads(path.read_text(encoding='utf-8'))['benchmarks']
             if one.get('aggregate_name') == 'median'}
    for name, rate in rates.items():
        print(f'{name}: {rate / 1e6:.2f} M inputs/s')

    def rate(text: str) -> float:
        return next(value for name, value in rates.items() if name.startswith(text))
    floor = rate('ProbeAllIds')
    one, two = (rate(f'ClassifyInputs/all hot:1/threads:{threads}') for threads in (1, 2))
    print(f'classifier: {one / floor:.2f} of its floor; two threads {two / one:.2f} x, '
          f'{met(two / one >= THREADS_BAR, THREADS_BAR)}')
    ratio = rate('CountIds/sampled:1') / rate('CountIds/sampled:0')
    print(f'counts of parsed ids: {ratio:.1f} x by a sample of 5 %; '
          f'{met(ratio >= COUNTING_BAR, COUNTING_BAR)}', flush=True)


def standard_error(values: list[float]) -> float:
    return statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else float('nan')


def split(log, samples: int) -> tuple[pathlib.Path, pathlib.Path]:
    """The first samples of a log, and the others."""
    parts = log.with_suffix('.train.txt'), log.with_suffix('.eval.txt')
    with open(log, encoding='utf-8') as lines, open(parts[0], 'w', encoding='utf-8') as first, \
            open(parts[1], 'w', encoding='utf-8') as rest:
        for number, line in enumerate(lines):
            (first if number < samples else rest).write(line)
    return parts


def measure_parity(bench: Bench):
    options = bench.options
    print(f'dlrm, criteo-kaggle / {options.parity_divisor}, {options.parity_samples:,} samples, '
          f'batch {options.parity_batch}, dense rate {DENSE_RATE}, R(50) at first; the loss of '
          f'{options.eval_samples // 2:,} held-out samples steers the schedule, and the AUC is of '
          'as many others')
    print('| seed | hot inputs | uniform | hot and cold | gap | hot only | gap |')
    print('| ---: | ---: | ---: | ---: | ---: | ---: | ---: |')
    gaps, hot_gaps = [], []
    for seed in range(1, options.seeds + 1):
        log = bench.log(options.parity_samples + options.eval_samples, seed,
                        options.parity_divisor)
        train, rest = split(log, options.parity_samples)
        schedule_log, held_out = split(rest, options.eval_samples // 2)
        words = ['--model', 'dlrm', '--dim', 16, '--batch', options.parity_batch, '--seed', seed,
                 '--dense-rate', DENSE_RATE]
        batches, figures = bench.with_hot_share(train, options.parity_hot_share, '--dim', 16)
        uniform = bench.auc(held_out, '--data', train, '--shuffle', options.parity_samples, *words)
        mixed = bench.auc(held_out, '--data', batches, '--eval', schedule_log, *words)
        hot = bench.auc(held_out, '--data', batches, '--hot-only', *words)
        gaps.append(mixed - uniform)
        hot_gaps.append(hot - uniform)
        print(f'| {seed} | {figures["hot_input_share"]:.1%} | {uniform:.5f} | {mixed:.5f} '
              f'| {gaps[-1]:+.5f} | {hot:.5f} | {hot_gaps[-1]:+.5f} |', flush=True)
        for path in (log, train, rest, schedule_log, held_out, batches):
            path.unlink()
    mean, error = statistics.mean(gaps), standard_error(gaps)
    print(f'mean gap {mean:+.5f} with a standard error of {error:.5f}, largest '
          f'{max(map(abs, gaps)):.5f}; with two errors '
          f'{met(abs(mean) + 2 * error <= PARITY_BAR, PARITY_BAR)}')
    mean, error = statistics.mean(hot_gaps), standard_error(hot_gaps)
    print(f'hot only: {mean:+.5f} with a standard error of {error:.5f}; '
          f'{met(mean + 2 * error <= -HOT_ONLY_BAR, -HOT_ONLY_BAR)}', flush=True)


def embedding_seconds(figures: dict) -> float:
    """Lookup, update and link of a run."""
    seconds = figures['seconds']
    return seconds['lookup'] + seconds['gradients'] + figures['device_link']['seconds']


def compare_link(bench: Bench, batches, words: list) -> dict:
    """All-cold batches beside hot ones, in turns: bytes, and seconds of the embedding part."""
    rounds = {'cold': [], 'hot': []}
    for _ in range(bench.options.rounds):
        for name, more in (('cold', ['--no-bag']), ('hot', [])):
            rounds[name].append(bench.figures('--data', batches, *words, *more, '--emulate-link',
                                              LINK))
    of = {name: runs[0]['device_link'] for name, runs in rounds.items()}
    bytes_of = {name: one['bytes_to_device'] + one['bytes_to_host'] for name, one in of.items()}

    def median(name: str, value) -> float:
        return statistics.median(value(one) for one in rounds[name])
    return {'bytes': bytes_of['hot'] / bytes_of['cold'],
            'cold': median('cold', embedding_seconds), 'hot': median('hot', embedding_seconds),
            'cold_all': median('cold', lambda one: one['seconds']['all']),
            'hot_all': median('hot', lambda one: one['seconds']['all']),
            'cold_link': median('cold', lambda one: one['device_link']['seconds']),
            'hot_link': median('hot', lambda one: one['device_link']['seconds'])}


def print_link_head(first: str):
    print(f'| {first} | hot inputs | bytes | all cold: embedding, link s | hot: embedding, link s '
          '| embedding | whole step |')
    print('| --- | ---: | ---: | ---: | ---: | ---: | ---: |')


def print_link(name, share: float, figures: dict):
    print(f'| {name} | {share:.1%} | {figures["bytes"]:.3f} '
          f'| {figures["cold"]:.2f}, {figures["cold_link"]:.2f} '
          f'| {figures["hot"]:.2f}, {figures["hot_link"]:.2f} '
          f'| {figures["cold"] / figures["hot"]:.2f} x '
          f'| {figures["cold_all"] / figures["hot_all"]:.2f} x |', flush=True)


def print_link_shape(bench: Bench):
    options = bench.options
    print(f'criteo-kaggle / {options.divisor}, {options.samples:,} samples, link of {LINK} (GB/s, '
          f'us) emulated, {options.rounds} rounds in turns')


def measure_link(bench: Bench):
    options = bench.options
    print_link_shape(bench)
    print_link_head('wanted')
    log = bench.log(options.samples, 1, options.divisor)
    for wanted in (0.5, HOT_SHARE, 0.9):
        batches, made = bench.with_hot_share(log, wanted, '--dim', 16)
        figures = compare_link(bench, batches, ['--batch', 1024, '--dim', 16])
        print_link(f'{wanted:.0%}', made['hot_input_share'], figures)
        if wanted != HOT_SHARE:
            continue
        speed = figures['cold'] / figures['hot']
        print(f'at {wanted:.0%}: bytes {met(figures["bytes"] <= BYTES_BAR, BYTES_BAR)}, embedding '
              f'part {met(speed >= LINK_BAR, LINK_BAR)}', flush=True)


def measure_sizes(bench: Bench):
    print_link_shape(bench)
    print_link_head('batch')
    log = bench.log(bench.options.samples, 1, bench.options.divisor)
    batches, made = bench.with_hot_share(log, HOT_SHARE, '--dim', 16)
    for size in SIZES:
        print_link(size, made['hot_input_share'],
                   compare_link(bench, batches, ['--batch', size, '--dim', 16]))


def measure_models(bench: Bench):
    print_link_shape(bench)
    print_link_head('model')
    log = bench.log(bench.options.samples, 1, bench.options.divisor)
    for model in MODELS:
        batches, made = bench.with_hot_share(log, HOT_SHARE, '--model', model)
        print_link(model, made['hot_input_share'],
                   compare_link(bench, batches, ['--model', model, '--batch', 1024]))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('parts', nargs='*', choices=[*PARTS, []], help='without: all')
    parser.add_argument('--build', default='build/release', help='with bin/embank-train')
    parser.add_argument('--work', help='for logs; without: a temporary directory')
    parser.add_argument('--samples', type=int, default=400_000)
    parser.add_argument('--divisor', type=int, default=100, help='of cardinalities')
    parser.add_argument('--budget', default='8MiB', help='of the part estimate')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--seeds', type=int, default=10)
    parser.add_argument('--parity-samples', type=int, default=200_000)
    parser.add_argument('--parity-divisor', type=int, default=1000)
    parser.add_argument('--parity-batch', type=int, default=256)
    parser.add_argument('--parity-hot-share', type=float, default=0.5)
    parser.add_argument('--eval-samples', type=int, default=100_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        options.work = options.work or directory
        bench = Bench(options)
        for part in options.parts or PARTS:
            print(f'\n{part}')
            globals()[f'measure_{part}'](bench)


if __name__ == '__main__':
    main()
