"""Measures the verbs of a store beside their floor, and prints the table of bench/README.md.

The floor is bench/kernels/tagged_index.h: an index of the same bytes that promises nothing. Each
round of a pair is a process of its own, since the places of rows in the caches are drawn once a
process: the same lookups take up to twice as long in one as in the next. Times are of the
processor, medians of the rounds.

--instructions counts those of one call of each case with valgrind's callgrind, which runs the
clones of x86-64-v3: it knows no AVX-512.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

SIDES = ('floor', 'embank')


def run(command: list) -> str:
    ended = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        sys.exit(f'{" ".join(map(str, command))} failed: {ended.stderr}')
    return ended.stdout


def cases(program: str, wanted: str) -> list[str]:
    """The names of all pairs, without their first part."""
    names = run([program, '--benchmark_list_tests']).split()
    found = [name.partition('/')[2] for name in names if name.startswith('embank/')]
    lost = [name for name in found if f'floor/{name}' not in names]
    if lost:
        sys.exit(f'these have no floor: {", ".join(lost)}')
    return [name for name in found if re.search(wanted, name)]


def measure(program: str, case: str, options) -> dict:
    """Nanoseconds of a key for both sides: the median, the least and the most of all rounds."""
    rounds = {side: [] for side in SIDES}
    for _ in range(options.rounds):
        text = run([program, f'--benchmark_filter=^({"|".join(SIDES)})/{case}$',
                    '--benchmark_enable_random_interleaving=true', '--benchmark_repetitions=3',
                    f'--benchmark_min_time={options.seconds / 3}',
                    '--benchmark_report_aggregates_only=true', '--benchmark_format=json'])
        for one in json.loads(text)['benchmarks']:
            if one['aggregate_name'] == 'median':
                rounds[one['name'].partition('/')[0]].append(1e9 / one['items_per_second'])
    figures = {}
    for side, times in rounds.items():
        if len(times) != options.rounds:
            sys.exit(f'{case}: {side} has {len(times)} rounds of {options.rounds}')
        times.sort()
        figures[side] = {'ns': times[len(times) // 2], 'ns_min': times[0], 'ns_max': times[-1]}
    return figures


def count_instructions(program: str, case: str) -> dict:
    """Instructions of a key for both sides, in one call."""
    verb = {'lookup': 'Lookup', 'repeated': 'Lookup', 'pool': 'Pool'}[case.partition('/')[0]]
    figures = {}
    for side, rows in zip(SIDES, ('FloorRows', 'StoreRows')):
        with tempfile.NamedTemporaryFile() as profile:
            text = run(['valgrind', '--tool=callgrind', f'--callgrind-out-file={profile.name}',
                        '--collect-atstart=no', f'--toggle-collect=*{rows}::{verb}(*', program,
                        f'--benchmark_filter=^{side}/{case}$', '--benchmark_min_time=1e-9',
                        '--benchmark_format=json'])
            one = json.loads(text)['benchmarks'][0]
            if one['iterations'] != 1:
                sys.exit(f'{case}: {side} has made {one["iterations"]} calls, not one')
            counted = int(re.search(rb'^(?:summary|totals): (\d+)', profile.read(), re.M)[1])
        keys = one['items_per_second'] * one['cpu_time'] * 1e-6  # times are in microseconds
        figures[side] = counted / round(keys)
    return figures


def cpu() -> str:
    with open('/proc/cpuinfo', encoding='utf-8') as file:
        fields = dict(line.split(':', 1) for line in file if ':' in line)
    facts = {name.strip(): value.strip() for name, value in fields.items()}
    return f'{facts.get("model name", "?")}, family {facts.get("cpu family", "?")}'


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', default='build/release', help='where bin/embank-kernels is')
    parser.add_argument('--rounds', type=int, default=7)
    parser.add_argument('--seconds', type=float, default=0.2, help='of a round')
    parser.add_argument('--only', default='', help='cases with names that this pattern is in')
    parser.add_argument('--instructions', action='store_true',
                        help='count instructions of lookups and pools; takes some minutes')
    parser.add_argument('--json', help='where the figures go')
    options = parser.parse_args()
    program = f'{options.build}/bin/embank-kernels'
    commit = run(['git', 'describe', '--always', '--dirty']).strip()
    figures = {'machine': cpu(), 'commit': commit, 'rounds': options.rounds,
               'seconds': options.seconds, 'load': os.getloadavg()[0], 'cases': {}}
    print(f'{figures["machine"]}, commit {commit}, load {figures["load"]:.1f}\n')
    unit = 'instructions' if options.instructions else 'ns'
    print(f'| case | floor, {unit} a key | Embank | of the floor |\n| --- | ---: | ---: | ---: |')
    for case in cases(program, options.only):
        if options.instructions:
            pair = figures['cases'][case] = count_instructions(program, case)
            floor, ours = pair['floor'], pair['embank']
        else:
            pair = figures['cases'][case] = measure(program, case, options)
            floor, ours = pair['floor']['ns'], pair['embank']['ns']
        print(f'| {case} | {floor:.1f} | {ours:.1f} | {floor / ours:.2f} |', flush=True)
    if options.json:
        with open(options.json, 'w', encoding='utf-8') as file:
            json.dump(figures, file, indent=1)
            file.write('\n')


if __name__ == '__main__':
    main()
