"""Times packed calls of Embank and the embedding tables of PyTorch on the same ids, in turns.

Each round runs embank-bench packed once and PyTorch once with each number of OpenMP threads. The
figures are medians of the rounds; PyTorch has its best number of threads, and its best layout.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', default='build/release', help='the build of embank-bench')
    parser.add_argument('--python', default='/usr/bin/python3', help='one that has PyTorch')
    parser.add_argument('--rows', type=int, default=400_000, help='of each of 26 tables')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--seconds', type=float, default=2.0, help='of a case in a round')
    parser.add_argument('--optimizer', default='adagrad', help='of PyTorch')
    parser.add_argument('--omp-threads', default='1,2')
    return parser.parse_args()


def figures_of(command: list, path: pathlib.Path, environment=None) -> dict:
    ended = subprocess.run([*map(str, command), '--json', str(path)], env=environment, text=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    if ended.returncode != 0:
        sys.exit(f'{command[0]} failed: {ended.stderr}')
    return json.loads(path.read_text(encoding='utf-8'))


def ours(options: argparse.Namespace, work: pathlib.Path) -> list[dict]:
    return figures_of([f'{options.build}/bin/embank-bench', 'packed', '--rows', options.rows,
                       '--rounds', 1, '--seconds', options.seconds, '--save-ids', work],
                      work / 'figures.json')['cases']


def theirs(options: argparse.Namespace, work: pathlib.Path, case: dict, threads: str,
           one_table: bool) -> dict:
    command = [options.python, HERE / 'torch_embedding.py', '--ids', work / f'{case["case"]}.u32',
               '--optimizer', options.optimizer, '--rounds', 1, '--seconds', options.seconds]
    for name in ('tables', 'rows', 'dim', 'batch', 'bag'):
        command += [f'--{name}', case[name]]
    if one_table:
        command.append('--one-table')
    environment = {**os.environ, 'OMP_NUM_THREADS': threads, 'OPENBLAS_NUM_THREADS': '2'}
    return figures_of(command, work / 'figures.json', environment)



def print_case(of: list[dict], peers: dict):
    """Prints a case: its rounds of Embank, and those of each setting of PyTorch."""
    lookup = statistics.median(one['lookup']['us'] for one in of)
    gradients = statistics.median(one['gradients']['us'] for one in of)
    print(f'{of[0]["case"]}, dim {of[0]["dim"]}, batch {of[0]["batch"]}: Embank lookup '
          f'{lookup:.0f} us, gradients {gradients:.0f} us')
    for (threads, one_table), rounds in peers.items():
        forward, backward, update = (
            statistics.median(one[part] for one in rounds)
            for part in ('forward_us', 'backward_us', 'update_us'))
        layout = 'one table' if one_table else 'modules'
        print(f'  PyTorch {threads} threads, {layout:9}: forward {forward:.0f}, backward '
              f'{backward:.0f}, update {update:.0f} us; PyTorch / Embank: lookup '
              f'{forward / lookup:.2f}, gradients {(backward + update) / gradients:.2f}, both '
              f'{(forward + backward + update) / (lookup + gradients):.2f}', flush=True)


def main():
    options = parse_options()
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        all_ours, all_theirs = {}, {}
        for _ in range(options.rounds):
            for number, case in enumerate(ours(options, work)):
                all_ours.setdefault(number, []).append(case)
                for threads in options.omp_threads.split(','):
                    for one_table in (False, True) if case['tables'] > 1 else (False,):
                        peer = theirs(options, work, case, threads, one_table)
                        all_theirs.setdefault(number, {}).setdefault(
                            (threads, one_table), []).append(peer)
        for number, cases in all_ours.items():
            print_case(cases, all_theirs[number])


if __name__ == '__main__':
    main()
