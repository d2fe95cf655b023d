"""Times training steps of embank.torch beside PyTorch's own modules, in turns; prints medians.

steps      a whole step with a small dense part: 26 tables, bags of 1 and 10, sparse Adagrad,
against
           26 modules nn.EmbeddingBag and against one with the rows of all tables
overhead   lookup and gradients of the module beside the same two calls in C: CPU time of pairs
sequences  one table, 512 keys a sample, no pooling, row-wise Adagrad

Each part can be asked for alone. It needs EMBANK_LIBRARY and bindings/python in PYTHONPATH.
"""
import argparse
import ctypes
import os
import statistics
import time

from needs import import_torch, threads_text

torch, np = import_torch()

import embank  # noqa: E402
from embank import _c  # noqa: E402
from embank._library import library  # noqa: E402
from embank.torch import Embedding, EmbeddingBagCollection  # noqa: E402

PARTS = ('steps', 'overhead', 'sequences')
TABLES, DIM, BATCH, BAGS = 26, 16, 1024, (1, 10)
BATCHES = 16  # different ones, in turns
SEQUENCE_KEYS, SEQUENCE_DIM, SEQUENCE_BATCH = 512, 64, 32
NAMES = [f'C{number}' for number in range(TABLES)]
RATE = 0.02


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('parts', nargs='*', metavar='PART', help=', '.join(PARTS))
    parser.add_argument('--rows', type=int, default=100_000, help='of each of 26 tables')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--seconds', type=float, default=1.0, help='of a contestant in a round')
    parser.add_argument('--pairs', type=int, default=200, help='of the overhead')
    parser.add_argument('--threads', type=int, default=torch.get_num_threads(), help="PyTorch's")
    options = parser.parse_args()
    wrong = set(options.parts) - set(PARTS)
    if wrong:
        parser.error(f'there is no part {", ".join(wrong)}')
    options.parts = options.parts or PARTS
    return options


def skewed_ids(rng, rows: int, shape: tuple) -> np.ndarray:
    """Ids of which some are frequent: the cube of a uniform draw, spread over the rows."""
    ranks = (rng.random(shape) ** 3 * rows).astype(np.int64)
    return ranks * 7_919 % rows


class Dense(torch.nn.Module):
    """The dense part, the same for all contestants."""

    def __init__(self, inputs: int):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(inputs, 64), torch.nn.ReLU(),
                                          torch.nn.Linear(64, 1))

    def forward(self, rows: list) -> torch.Tensor:
        return self.layers(torch.cat(rows, dim=1)).square().mean()


class Contestant:
    """A training of which step(number) makes a step."""

    def __init__(self, inputs: int):
        torch.manual_seed(1)
        self.dense = Dense(inputs)
        self.dense_optimizer = torch.optim.SGD(self.dense.parameters(), lr=0.01)
        self.row_optimizer = None

    def rows_of(self, number: int) -> list:
        raise NotImplementedError

    def step(self, number: int) -> None:
        loss = self.dense(self.rows_of(number))
        self.dense_optimizer.zero_grad(set_to_none=True)
        if self.row_optimizer:
            self.row_optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.dense_optimizer.step()
        if self.row_optimizer:
            self.row_optimizer.step()


class Ours(Contestant):
    def __init__(self, ids: np.ndarray):
        super().__init__(TABLES * DIM)
        self.store = embank.Store(seed=1)
        self.module = EmbeddingBagCollection(self.store, {name: DIM for name in NAMES}, lr=RATE,
                                             optimizer='adagrad', init=('uniform', -0.05, 0.05))
        shape = (BATCH, -1) if ids.shape[2] > BATCH else (-1,)
        self.batches = [{name: torch.from_numpy(part[at]).reshape(shape).contiguous()
                         for at, name in enumerate(NAMES)} for part in ids]

    def rows_of(self, number: int) -> list:
        return list(self.module(self.batches[number % BATCHES]).values())


class Modules(Contestant):
    """A module for each table."""

    def __init__(self, ids: np.ndarray, rows: int):
        super().__init__(TABLES * DIM)
        self.bags = [torch.nn.EmbeddingBag(rows, DIM, mode='sum', sparse=True)
                     for _ in range(TABLES)]
        self.row_optimizer = torch.optim.Adagrad([bag.weight for bag in self.bags], lr=RATE)
        self.batches = [[torch.from_numpy(ids_of_table).reshape(BATCH, -1)
                         for ids_of_table in part] for part in ids]

    def rows_of(self, number: int) -> list:
        return [bag(ids) for bag, ids in zip(self.bags, self.batches[number % BATCHES])]


class OneModule(Contestant):
    """One module with the rows of all tables."""

    def __init__(self, ids: np.ndarray, rows: int):
        super().__init__(TABLES * DIM)
        self.bag = torch.nn.EmbeddingBag(rows * TABLES, DIM, mode='sum', sparse=True)
        self.row_optimizer = torch.optim.Adagrad([self.bag.weight], lr=RATE)
        firsts = np.arange(TABLES)[:, None] * rows
        self.batches = [torch.from_numpy(part + firsts).reshape(TABLES * BATCH, -1)
                        for part in ids]

    def rows_of(self, number: int) -> list:
        return list(self.bag(self.batches[number % BATCHES]).view(TABLES, BATCH, DIM))


class Sequences(Contestant):
    """One table without pooling: ours, or torch's, whose Adagrad has a state for each number."""

    def __init__(self, ids: np.ndarray, rows: int, is_ours: bool):
        super().__init__(SEQUENCE_DIM)
        self.batches = [torch.from_numpy(part) for part in ids]
        if is_ours:
            self.store = embank.Store(seed=1)
            self.table = Embedding(self.store, 'items', SEQUENCE_DIM, optimizer='rowwise_adagrad',
                                   lr=RATE, init=('uniform', -0.05, 0.05))
        else:
            self.table = torch.nn.Embedding(rows, SEQUENCE_DIM, sparse=True)
            self.row_optimizer = torch.optim.Adagrad(self.table.parameters(), lr=RATE)

    def rows_of(self, number: int) -> list:
        return [self.table(self.batches[number % BATCHES]).view(-1, SEQUENCE_DIM)]


def in_turns(options: argparse.Namespace, contestants: dict) -> dict:
    """The median milliseconds of a step of each contestant, over rounds where all have a turn."""
    rounds, step = {name: [] for name in contestants}, BATCHES
    for contestant in contestants.values():
        for number in range(BATCHES):
            contestant.step(number)
    for _ in range(options.rounds):
        for name, contestant in contestants.items():
            begin, steps = time.perf_counter(), 0
            while time.perf_counter() - begin < options.seconds:
                contestant.step(step + steps)
                steps += 1
            rounds[name].append((time.perf_counter() - begin) / steps * 1e3)
    return {name: statistics.median(times) for name, times in rounds.items()}


def print_times(title: str, times: dict) -> None:
    ours = times['embank']
    print(f'{title}: embank {ours:.2f} ms', end='')
    for name, time_of in times.items():
        if name != 'embank':
            print(f'; {name} {time_of:.2f} ms, {time_of / ours:.2f} times as long', end='')
    print(flush=True)


def steps(options: argparse.Namespace) -> None:
    for bag in BAGS:
        ids = skewed_ids(np.random.default_rng(1), options.rows, (BATCHES, TABLES, BATCH * bag))
        times = in_turns(options, {
            'embank': Ours(ids), '26 modules': Modules(ids, options.rows),
            'one module': OneModule(ids, options.rows)})
        print_times(f'a step, {TABLES} tables, dim {DIM}, batch {BATCH}, bags of {bag}', times)


class Calls:
    """The two calls of a step, with structs and arrays that were made before."""

    def __init__(self, ours: Ours, gradients: list, bag: int):
        tables = [ours.module.tables[name] for name in NAMES]
        self.arrays, self.batches = [gradients], []
        offsets = np.arange(BATCH + 1) * bag
        for batch in ours.batches:
            outputs = [np.empty((BATCH, DIM), np.float32) for _ in NAMES]
            self.arrays.append((batch, offsets, outputs))
            self.batches.append([self.structs(tables, batch, offsets, rows, bag)
                                 for rows in (outputs, gradients)])

    @staticmethod
    def structs(tables: list, batch: dict, offsets: np.ndarray, arrays: list, bag: int):
        structs = (_c.embank_feature * TABLES)()
        for struct, table, keys, rows in zip(structs, tables, batch.values(), arrays):
            struct.struct_size, struct.table = ctypes.sizeof(_c.embank_feature), table._address
            struct.typed_keys, struct.key_type = keys.data_ptr(), _c.EMBANK_INDEX_I64
            struct.n = keys.numel()
            if bag > 1:
                struct.pooling, struct.bags = _c.EMBANK_POOL_SUM, BATCH
                struct.typed_offsets = offsets.ctypes.data
                struct.offset_type = _c.EMBANK_INDEX_I64
            struct.rows = rows.ctypes.data
        return structs

    def step(self, number: int) -> None:
        lookup, gradients = self.batches[number % BATCHES]
        if (library.embank_lookup_packed(lookup, TABLES, _c.EMBANK_MISSING_CREATE, None)
                or library.embank_apply_gradients_packed(gradients, TABLES, None)):
            raise RuntimeError(library.embank_last_error())


def overhead(options: argparse.Namespace) -> None:
    for bag in BAGS:
        ids = skewed_ids(np.random.default_rng(1), options.rows, (BATCHES, TABLES, BATCH * bag))
        ours, other = Ours(ids), Ours(ids)
        arrays = [np.full((BATCH, DIM), 1e-4, np.float32) for _ in NAMES]
        gradients = [torch.from_numpy(array) for array in arrays]
        calls = Calls(other, arrays, bag)

        def module_step(number: int) -> None:
            torch.autograd.backward(ours.rows_of(number), gradients)

        times = ([], [])
        for pair in range(-BATCHES, options.pairs):
            for way, step in enumerate((module_step, calls.step)):
                begin = time.process_time()
                step(pair)
                if pair >= 0:
                    times[way].append((time.process_time() - begin) * 1e3)
        module, call = map(statistics.median, times)
        ratio = statistics.median(mine / theirs for mine, theirs in zip(*times))
        print(f'CPU time of lookup and gradients, bags of {bag}: module {module:.2f} ms, calls '
              f'{call:.2f} ms; median of {options.pairs} pairs {100 * (ratio - 1):+.1f} %',
              flush=True)


def sequences(options: argparse.Namespace) -> None:
    ids = skewed_ids(np.random.default_rng(1), options.rows,
                     (BATCHES, SEQUENCE_BATCH, SEQUENCE_KEYS))
    times = in_turns(options, {'embank': Sequences(ids, options.rows, True),
                               'nn.Embedding': Sequences(ids, options.rows, False)})
    print_times(f'a step, one table, dim {SEQUENCE_DIM}, batch {SEQUENCE_BATCH}, {SEQUENCE_KEYS} '
                'keys a sample, row-wise Adagrad (nn.Embedding: Adagrad)', times)


def main() -> None:
    options = parse_options()
    torch.set_num_threads(options.threads)
    load, cores = os.getloadavg()[0], os.cpu_count()
    print(f'{threads_text(torch)}, embank {embank.__version__}; {cores} cores, load {load:.1f}')
    for part in options.parts:
        {'steps': steps, 'overhead': overhead, 'sequences': sequences}[part](options)


if __name__ == '__main__':
    main()
