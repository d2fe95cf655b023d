"""Measures hybrid training, and prints the tables of docs/training.md and bench/README.md.

drop      the AUC that lost updates cost, over seeds
auc       the AUC that staleness costs, over seeds
waits     a step with waits of 10 ms in rows, beside dense work
schedules the schedules of a step of two ranks with waits, beside the simulator
ssd       staleness where rows come from an SSD
links     staleness where rows come from another process
roles     the rate of a training by roles
simulate  four schedules of a step, by the simulator
torch     the time to an AUC beside PyTorch (bench/peers/compare_auc_time.py)

Each part can be asked for alone.
"""
import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PARTS = ('drop', 'auc', 'waits', 'schedules', 'ssd', 'links', 'roles', 'simulate', 'torch')
WAIT_BATCH = 64
# Stages that mostly wait: threads of two ranks share two cores, which a simulator does not know.
SCHEDULE_BATCH = 128
SCHEDULE_BUCKETS = 2  # of rmc2
SCHEDULE_SLICES = 4  # of a rank, one after the other: 8 / 2 ranks
SCHEDULE_WAITS = {'Gather': 10, 'Dense': 10, 'Update': 4, 'AllReduce': 3}
SCHEDULES = (('sync', ('--staleness', 0, '--sums-after-backward')),
             ('raw hybrid', ('--staleness', 4, '--sums-after-backward')),
             ('hybrid', ('--staleness', 4)))
DROP_BAR, STALENESS_BAR = 0.0005, 0.001
SHARES = (0.001, 0.01, 0.1)
# Staleness and its seeds, as a share of all.
STALENESS = ((1, 0.5), (4, 1.0), (16, 0.5), (50, 0.5))


MPIRUN = ('mpirun', '--allow-run-as-root', '--oversubscribe', '-n', 2)
SSD_BATCH, SSD_SAMPLES, SSD_STEPS, SSD_DRAM_SHARE = 256, 400_000, 500, 0.25
SSD_DIM = 32
SSD_ROW_BYTES = 16 + 2 * 4 * SSD_DIM  # header, vector, state of Adagrad
LINK_STEPS, LINK_BATCH = 200, 1024
STALE = (0, 1, 4)
ROLE_WAYS = (('one process', ()), ('1,1,1', ('--roles', '1,1,1')), ('1,2,2', ('--roles', '1,2,2')))


def figures_of(options, *words) -> dict:
    """Runs embank-train, behind the words of a launcher, and returns the figures of its --json."""
    figures = pathlib.Path(options.work) / 'figures.json'
    launcher = words[0] if words and isinstance(words[0], tuple) else ()
    words = words[1:] if launcher else words
    command = [*launcher, f'{options.build}/bin/embank-train', *words, '--json', figures]
    ended = subprocess.run([*map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                           text=True, check=False)
    if ended.returncode != 0:
        sys.exit(f'{" ".join(map(str, command))} failed: {ended.stderr}')
    return json.loads(figures.read_text(encoding='utf-8'))


class Trainings:
    """Trainings of generated data, each of which is made once."""

    def __init__(self, options):
        self.options = options
        self.known = {}

    def run(self, seed: int, more: tuple = ()) -> dict:
        if (seed, more) in self.known:
            return self.known[seed, more]
        options = self.options
        self.known[seed, more] = figures_of(
            options, '--model', 'dlrm', '--generate', 'criteo-kaggle', '--divisor',
            options.divisor, '--samples', options.samples, '--eval-samples', options.eval_samples,
            '--batch', options.batch, '--dense-rate', options.dense_rate, '--seed', seed, *more)
        return self.known[seed, more]

    def print_shape(self):
        options = self.options
        print(f'dlrm, criteo-kaggle / {options.divisor}, {options.samples:,} samples in batches of '
              f'{options.batch:,}, dense rate {options.dense_rate}; AUC of '
              f'{options.eval_samples:,} held-out samples')


def changes_text(changes: list[float]) -> tuple[float, str]:
    """The mean of paired changes, and a text with its standard error."""
    mean = statistics.mean(changes)
    error = statistics.stdev(changes) / len(changes) ** 0.5 if len(changes) > 1 else float('nan')
    return mean, f'{mean:+.5f} | {error:.5f} | {min(changes):+.5f} to {max(changes):+.5f}'


def compare_auc(trainings: Trainings, name: str, seeds: int, base: tuple, other: tuple,
                bar: float = None):
    """Prints a row of a table: the AUC of two settings over equal seeds."""
    pairs = [(trainings.run(seed, base), trainings.run(seed, other))
             for seed in range(1, seeds + 1)]
    mean, text = changes_text([b['eval_auc'] - a['eval_auc'] for a, b in pairs])
    auc = statistics.mean(b['eval_auc'] for _, b in pairs)
    judged = '' if bar is None else f'{"met" if abs(mean) <= bar else "missed"}: {bar}'
    lost = statistics.mean(b['lost_updates'] for _, b in pairs)
    print(f'| {name} | {seeds} | {auc:.5f} | {text} | {lost:,.0f} | {judged} |', flush=True)


def print_head(first: str):
    print(f'| {first} | seeds | AUC | change | standard error | range | lost updates | bar |')
    print('| ---: | ---: | ---: | ---: | ---: | --- | ---: | --- |')


def measure_drop(trainings: Trainings):
    trainings.print_shape()
    print_head('share lost')
    seeds = trainings.options.seeds
    compare_auc(trainings, '0', seeds, (), ())
    for share in SHARES:
        compare_auc(trainings, f'{share:.1%}', seeds, (), ('--drop-updates', share),
                    DROP_BAR if share == SHARES[0] else None)


def measure_auc(trainings: Trainings):
    """Without --staleness the rows of a batch have all updates before it."""
    trainings.print_shape()
    print_head('staleness')
    seeds = trainings.options.seeds
    compare_auc(trainings, '0', seeds, (), ())
    for staleness, part in STALENESS:
        if staleness in trainings.options.staleness:
            compare_auc(trainings, str(staleness), max(2, round(seeds * part)), (),
                        ('--staleness', staleness, '--deterministic'),
                        STALENESS_BAR if staleness == 4 else None)


def train_ms(options, more: tuple) -> float:
    """Milliseconds of a step, of those after the first ones."""
    of_run = figures_of(
        options, '--model', 'ffnn', '--dim', 4, '--generate', 'criteo-kaggle', '--divisor', 5000,
        '--samples', 60 * WAIT_BATCH, '--batch', WAIT_BATCH, '--slices', 2, '--warmup-steps', 5,
        '--untimed-steps', 20, '--threads', 1, *more)
    return 1000.0 * WAIT_BATCH / of_run['samples_per_second']


def measure_waits(options):
    """A wait of 10 ms in rows beside c ms of dense work."""
    print('| wait in | c | without staleness | bar | staleness 4 | bar |')
    print('| --- | ---: | ---: | --- | ---: | --- |')
    for name, wait, more in (('the log', 'Gather=10', ()),
                             ('the link', 'ShuffleRows=10', ('--ranks', 2))):
        for c in (2, 5, 10, 20):
            both = ('--emulate', f'{wait},Dense={c}', *more)
            steps = [statistics.median(train_ms(options, ('--staleness', s, *both))
                                       for _ in range(options.rounds)) for s in (0, 4)]
            bars = (0.9 * (c + 10), 1.1 * max(c, 10))
            print(f'| {name} | {c} | {steps[0]:.2f} | '
                  f'{"met" if steps[0] >= bars[0] else "missed"}: at least {bars[0]:.1f} | '
                  f'{steps[1]:.2f} | {"met" if steps[1] <= bars[1] else "missed"}: at most '
                  f'{bars[1]:.1f} |', flush=True)


def schedule_run(options, more: tuple) -> dict:
    """Milliseconds of a step of two ranks, and of its parts on rank 0."""
    of_run = figures_of(
        options, '--model', 'rmc2', '--generate', 'criteo-kaggle', '--divisor', 1000, '--samples',
        120 * SCHEDULE_BATCH, '--batch', SCHEDULE_BATCH, '--warmup-steps', 5, '--untimed-steps',
        20, '--threads', 1, '--ranks', 2, *more)
    steps = 100
    parts = {name: 1000.0 * value / steps for name, value in of_run['seconds'].items()}
    parts['link'] = 1000.0 * of_run['link_seconds'] / steps
    parts['step'] = 1000.0 * SCHEDULE_BATCH / of_run['samples_per_second']
    return parts


def simulated_ms(options, stages: dict) -> list[float]:
    """Milliseconds of a step of the four schedules."""
    command = [f'{options.build}/bin/embank-ranks', 'schedules', '--staleness', 4, '--buckets',
               SCHEDULE_BUCKETS]
    for name, ms in stages.items():
        command += [f'--{name}-ms', f'{ms:.3f}']
    text = subprocess.run([*map(str, command)], stdout=subprocess.PIPE, text=True,
                          check=True).stdout
    rows = [line.split() for line in text.splitlines()]
    return [float(row[-3]) for row in rows
            if row and ' '.join(row[:-3]) in ('sync', 'raw hybrid', 'hybrid', 'async')]


def measure_schedules(options):
    """Real schedules with waits in rows and sums, beside the simulator with the same stages."""
    # Waits stand before the parts of a step, whose own times are those without waits. A bucket is
    # there when the last of the slices of a rank has it, so that only the backward pass of this
    # slice, two thirds of its time, can be beside sums.
    runs = [schedule_run(options, ()) for _ in range(options.rounds)]
    plain = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
    backward = plain['dense'] / SCHEDULE_SLICES * 2 / 3
    waits = ('--emulate', ','.join(f'{name}={ms}' for name, ms in SCHEDULE_WAITS.items()))
    stages = {'lookup': plain['lookup'] + SCHEDULE_WAITS['Gather'],
              'forward': plain['dense'] - backward + SCHEDULE_WAITS['Dense'],
              'backward': backward,
              'sync': SCHEDULE_BUCKETS * SCHEDULE_WAITS['AllReduce'],
              'update': plain['gradients'] + SCHEDULE_WAITS['Update'],
              # All else of a step: votes, the dense optimizer, and waits of ranks for each other.
              'step': max(0, plain['step'] - plain['lookup'] - plain['dense'] -
                          plain['gradients'])}
    simulated = simulated_ms(options, stages)
    print(', '.join(f'{name} {ms:.1f} ms' for name, ms in stages.items()))
    print('| schedule | simulated ms | real ms | real / simulated |')
    print('| --- | ---: | ---: | ---: |')
    for i, (name, more) in enumerate(SCHEDULES):
        real = statistics.median(schedule_run(options, (*more, *waits))['step']
                                 for _ in range(options.rounds))
        print(f'| {name} | {simulated[i]:.1f} | {real:.1f} | {real / simulated[i]:.2f} |',
              flush=True)
    print(f'| async | {simulated[3]:.1f} | | |')


def measure_ssd(options):
    """Steps in the second half of a log, a quarter of whose rows fit into DRAM."""
    path = pathlib.Path(options.work) / 'ssd'
    log = ('--model', 'dlrm', '--dim', SSD_DIM, '--generate', 'criteo-kaggle', '--divisor', 10,
           '--samples', SSD_SAMPLES, '--batch', SSD_BATCH, '--path', path)
    half = SSD_SAMPLES // SSD_BATCH // 2
    shutil.rmtree(path, ignore_errors=True)
    rows = sum(figures_of(options, *log)['rows'].values())
    shutil.rmtree(path)
    figures_of(options, *log, '--steps', half)
    mib = max(1, round(SSD_DRAM_SHARE * rows * SSD_ROW_BYTES / 2**20))
    print(f'{rows:,} rows of {SSD_ROW_BYTES} bytes, {mib} MiB of DRAM')
    kept = path.with_suffix('.kept')
    shutil.rmtree(kept, ignore_errors=True)
    path.rename(kept)
    rates = {f'staleness {staleness}': [] for staleness in STALE}
    for _ in range(options.rounds):
        for staleness in STALE:
            shutil.rmtree(path, ignore_errors=True)
            shutil.copytree(kept, path)
            trace = pathlib.Path(options.work) / f'ssd-{staleness}.svg'
            rates[f'staleness {staleness}'].append(figures_of(
                options, *log, '--resume', '--dram-mib', mib, '--staleness', staleness, '--steps',
                half + SSD_STEPS, '--trace', trace))
    print_ways(rates)


def print_ways(rates: dict):
    """A row for each way of training: its rate, and the rate by that of the first one."""
    base = None
    print('| training | samples/s | of the first | rows read from logs a step |')
    print('| --- | ---: | ---: | ---: |')
    for name, runs in rates.items():
        rate = statistics.median(run['samples_per_second'] for run in runs)
        base = base or rate
        read = statistics.median(run['rows_read_per_step'] for run in runs)
        print(f'| {name} | {rate:,.0f} | {rate / base:.2f} | {read:,.0f} |', flush=True)


def measure_ways(options, ways: tuple):
    """Trainings in turns, each by its words."""
    rates = {name: [] for name, _ in ways}
    for _ in range(options.rounds):
        for name, words in ways:
            rates[name].append(figures_of(options, *words))
    print_ways(rates)


def measure_links(options):
    """Two ranks under mpirun, with a thread each for its slices."""
    words = ('--model', 'rmc2', '--generate', 'criteo-kaggle', '--divisor', 100, '--samples',
             LINK_STEPS * LINK_BATCH, '--batch', LINK_BATCH, '--untimed-steps', LINK_STEPS // 4,
             '--threads', 1)
    ways = [('one process, 2 threads', (*words[:-1], 2))]
    for staleness in STALE:
        trace = ('--trace', pathlib.Path(options.work) / f'links-{staleness}.svg')
        ways.append((f'2 ranks, staleness {staleness}',
                     (MPIRUN, *words, '--staleness', staleness, *trace)))
    measure_ways(options, tuple(ways))


def measure_roles(options):
    for model, schema, samples in (('dlrm', 'criteo-kaggle', 100_000),
                                   ('wide-deep', 'product-3', 20_000)):
        print(f'{model}, {schema} / 100, {samples:,} samples')
        words = ('--model', model, '--generate', schema, '--divisor', 100, '--samples', samples)
        measure_ways(options, tuple((name, (*words, *more)) for name, more in ROLE_WAYS))


def simulate(options):
    command = [f'{options.build}/bin/embank-ranks', 'schedules', *options.stages.split()]
    subprocess.run(command, check=True)


def compare_with_torch(options):
    subprocess.run([sys.executable, HERE / 'peers' / 'compare_auc_time.py', '--build',
                    options.build, '--work', options.work], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('parts', nargs='*', default=PARTS, help=', '.join(PARTS))
    parser.add_argument('--build', default='build/release')
    parser.add_argument('--work', default=f'{tempfile.gettempdir()}/embank-hybrid',
                        help='directory for files')
    parser.add_argument('--seeds', type=int, default=10)
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--divisor', type=int, default=100, help='of the cardinalities')
    parser.add_argument('--samples', type=int, default=200_000)
    parser.add_argument('--eval-samples', type=int, default=100_000)
    parser.add_argument('--batch', type=int, default=256)
    parser.add_argument('--dense-rate', default='0.0005')
    parser.add_argument('--staleness', type=int, nargs='*',
                        default=[staleness for staleness, _ in STALENESS])
    parser.add_argument('--stages', default='', help='options of embank-ranks schedules')
    options = parser.parse_args()
    for part in options.parts:
        if part not in PARTS:
            parser.error(f'{part} is none of {", ".join(PARTS)}')
    pathlib.Path(options.work).mkdir(parents=True, exist_ok=True)
    trainings = Trainings(options)
    measures = {'waits': measure_waits, 'schedules': measure_schedules, 'ssd': measure_ssd,
                'links': measure_links, 'roles': measure_roles, 'simulate': simulate}
    for part in options.parts:
        if part == 'drop':
            measure_drop(trainings)
        elif part == 'auc':
            measure_auc(trainings)
        elif part in measures:
            measures[part](options)
        else:
            compare_with_torch(options)


if __name__ == '__main__':
    main()
