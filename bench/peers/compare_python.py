"""Times training steps of embank.torch beside PyTorch's own modules, and compares what they learn.

steps      a whole step with a small dense part: 26 tables, bags of 1 and 10, Adagrad, beside 26
           modules nn.EmbeddingBag and one module with the rows of all tables
overhead   lookup and gradients of the module beside the same two calls in C: CPU time of pairs
sequences  one table, 512 keys a sample, no pooling, row-wise Adagrad, beside nn.Embedding with
           row-wise Adagrad and with PyTorch's Adagrad
auc        three epochs of a click log (--data), Adagrad and SGD, beside nn.Embedding: AUC, and
           the rows after one step from equal ones

Contestants have turns, equal first rows, ids and threads; their losses must be equal, too. Each
part can be asked for alone. It needs EMBANK_LIBRARY and bindings/python in PYTHONPATH.
"""
import argparse
import ctypes
import json
import os
import statistics
import time
import types

import click_log
from needs import import_torch, threads_text

torch, np = import_torch()

import embank  # noqa: E402
from embank import _c  # noqa: E402
from embank._library import library  # noqa: E402
from embank.torch import Embedding, EmbeddingBagCollection  # noqa: E402

TABLES, DIM, BATCH, BAGS = 26, 16, 1024, (1, 10)
BATCHES = 16  # different ones, in turns
SEQUENCE_KEYS, SEQUENCE_DIM, SEQUENCE_BATCH = 512, 64, 32
NAMES = [f'C{number}' for number in range(TABLES)]
RATE, EPSILON = 0.02, 1e-8  # that of Adagrad in Embank; PyTorch's is 1e-10
LOSS_TOLERANCE = 1e-4
EPOCHS, LOG_BATCH, HELD_OUT = 3, 128, 0.2
LOG_RATES = {'adagrad': (0.05, 0.02), 'sgd': (2.0, 0.1)}  # of rows, of the dense part
STARS = 4.0  # A rating of as many counts as a click.


def skewed_ids(rng, rows: int, shape: tuple) -> np.ndarray:
    """Ids of which some are frequent: the cube of a uniform draw, spread over the rows."""
    ranks = (rng.random(shape) ** 3 * rows).astype(np.int64)
    return ranks * 7_919 % rows


def first_rows(*shape: int) -> np.ndarray:
    return np.random.default_rng(2).random(shape, np.float32) * np.float32(0.1) - np.float32(0.05)


class Dense(torch.nn.Module):
    """The dense part, the same for all contestants."""

    def __init__(self, inputs: int):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(inputs, 64), torch.nn.ReLU(),
                                          torch.nn.Linear(64, 1))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.layers(rows)


class RowwiseAdagrad(torch.optim.Optimizer):
    """Adagrad with one number of state for each row, for sparse gradients."""

    def __init__(self, parameters, lr: float):
        super().__init__(parameters, {'lr': lr})

    @torch.no_grad()
    def step(self, closure=None) -> None:
        for group in self.param_groups:
            for weight in group['params']:
                state = self.state[weight]
                if not state:
                    state['sum'] = torch.zeros(len(weight))
                gradient = weight.grad.coalesce()
                rows, values = gradient.indices()[0], gradient.values()
                sums = state['sum'][rows].add_(values.square().mean(dim=1))
                state['sum'][rows] = sums
                values = values.div_(sums.sqrt_().add_(EPSILON)[:, None])
                weight.index_add_(0, rows, values, alpha=-group['lr'])


class Contestant:
    """A training of which step(number) makes a step and returns the loss."""

    def __init__(self, inputs: int):
        torch.manual_seed(1)
        self.dense = Dense(inputs)
        self.dense_optimizer = torch.optim.SGD(self.dense.parameters(), lr=0.01)
        self.row_optimizer = None

    def rows_of(self, number: int) -> torch.Tensor:
        raise NotImplementedError

    def step(self, number: int) -> float:
        loss = (self.dense(self.rows_of(number)) - 1).square().mean()
        self.dense_optimizer.zero_grad(set_to_none=True)
        if self.row_optimizer:
            self.row_optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.dense_optimizer.step()
        if self.row_optimizer:
            self.row_optimizer.step()
        return loss.detach()


class Ours(Contestant):
    def __init__(self, ids: np.ndarray, rows: np.ndarray, threads: int):
        super().__init__(TABLES * DIM)
        self.store = embank.Store(seed=1, worker_threads=threads)
        self.module = EmbeddingBagCollection(self.store, {name: DIM for name in NAMES}, lr=RATE,
                                             optimizer='adagrad')
        for table, of_table in zip(self.module.tables.values(), rows):
            table.upsert(np.arange(len(of_table)), of_table)
        shape = (BATCH, -1) if ids.shape[2] > BATCH else (-1,)
        self.batches = [{name: torch.from_numpy(part[at]).reshape(shape).contiguous()
                         for at, name in enumerate(NAMES)} for part in ids]

    def rows_of(self, number: int) -> torch.Tensor:
        return torch.cat(list(self.module(self.batches[number % BATCHES]).values()), dim=1)


class Modules(Contestant):
    """A module for each table."""

    def __init__(self, ids: np.ndarray, rows: np.ndarray):
        super().__init__(TABLES * DIM)
        self.bags = [torch.nn.EmbeddingBag.from_pretrained(
            torch.tensor(of_table), freeze=False, mode='sum', sparse=True) for of_table in rows]
        self.row_optimizer = torch.optim.Adagrad([bag.weight for bag in self.bags], lr=RATE,
                                                 eps=EPSILON)
        # Offsets that are there need no call of arange, as ids of two dimensions do.
        self.offsets = torch.arange(BATCH) * (ids.shape[2] // BATCH)
        self.batches = [torch.from_numpy(part) for part in ids]

    def rows_of(self, number: int) -> torch.Tensor:
        return torch.cat([bag(ids, self.offsets)
                          for bag, ids in zip(self.bags, self.batches[number % BATCHES])], dim=1)


class OneModule(Contestant):
    """One module with the rows of all tables. Its bags are in the order of the dense part."""

    def __init__(self, ids: np.ndarray, rows: np.ndarray):
        super().__init__(TABLES * DIM)
        self.bag = torch.nn.EmbeddingBag.from_pretrained(
            torch.tensor(rows.reshape(-1, DIM)), freeze=False, mode='sum', sparse=True)
        self.row_optimizer = torch.optim.Adagrad([self.bag.weight], lr=RATE, eps=EPSILON)
        first, keys = np.arange(TABLES)[:, None] * rows.shape[1], ids.shape[2] // BATCH
        self.offsets = torch.arange(TABLES * BATCH) * keys
        self.batches = [torch.from_numpy((part + first).reshape(TABLES, BATCH, keys)
                                         .transpose(1, 0, 2).ravel()) for part in ids]

    def rows_of(self, number: int) -> torch.Tensor:
        return self.bag(self.batches[number % BATCHES], self.offsets).view(BATCH, TABLES * DIM)


class Sequences(Contestant):
    """One table without pooling: ours without an optimizer, or nn.Embedding with one."""

    def __init__(self, ids: np.ndarray, rows: np.ndarray, threads: int, optimizer=None):
        super().__init__(SEQUENCE_DIM)
        self.batches = [torch.from_numpy(part) for part in ids]
        if optimizer is None:
            self.store = embank.Store(seed=1, worker_threads=threads)
            self.table = Embedding(self.store, 'items', SEQUENCE_DIM, lr=RATE,
                                   optimizer='rowwise_adagrad')
            self.table.table.upsert(np.arange(len(rows)), rows)
        else:
            self.table = torch.nn.Embedding.from_pretrained(torch.tensor(rows), freeze=False,
                                                            sparse=True)
            self.row_optimizer = optimizer(self.table.parameters(), lr=RATE)

    def rows_of(self, number: int) -> torch.Tensor:
        return self.table(self.batches[number % BATCHES]).view(-1, SEQUENCE_DIM)


def check_losses(losses: dict, other_rules: tuple) -> None:
    """Ends the program if contestants do not make the same steps."""
    ours = np.array(losses['embank'])
    for name, theirs in losses.items():
        if name not in other_rules and not np.allclose(theirs, ours, rtol=LOSS_TOLERANCE):
            raise SystemExit(f'{name} has the losses {theirs}; embank has {ours.tolist()}')


def in_turns(options: argparse.Namespace, contestants: dict, other_rules: tuple = ()) -> dict:
    """Milliseconds of a step of each contestant, elapsed and of the CPU, a pair for each round."""
    rounds, step = {name: [] for name in contestants}, BATCHES
    losses = {name: [float(contestant.step(number)) for number in range(BATCHES)]
              for name, contestant in contestants.items()}
    check_losses(losses, other_rules)
    for _ in range(options.rounds):
        for name, contestant in contestants.items():
            begin, cpu_begin, steps = time.perf_counter(), time.process_time(), 0
            while time.perf_counter() - begin < options.seconds:
                contestant.step(step + steps)
                steps += 1
            rounds[name].append(((time.perf_counter() - begin) / steps * 1e3,
                                 (time.process_time() - cpu_begin) / steps * 1e3))
        step += 1
    return rounds


def print_times(title: str, rounds: dict, figures: dict) -> None:
    """Prints the medians of the rounds, and how they compare with those of embank."""
    print(f'\n{title}; load {os.getloadavg()[0]:.1f}\n')
    print('| contestant | ms | from | to | CPU ms | ms / embank | CPU / embank |')
    print('| --- | ---: | ---: | ---: | ---: | ---: | ---: |')
    medians = {name: [statistics.median(way) for way in zip(*pairs)]
               for name, pairs in rounds.items()}
    for name, (elapsed, cpu) in medians.items():
        every = [pair[0] for pair in rounds[name]]
        ratios = [mine / ours for mine, ours in zip(medians[name], medians['embank'])]
        print(f'| {name} | {elapsed:.2f} | {min(every):.2f} | {max(every):.2f} | {cpu:.2f} | '
              f'{ratios[0]:.2f} | {ratios[1]:.2f} |', flush=True)
    figures[title] = {'rounds': rounds, 'load': os.getloadavg()[0]}


def steps(options: argparse.Namespace, figures: dict) -> None:
    rows = first_rows(TABLES, options.rows, DIM)
    for threads in options.threads:
        torch.set_num_threads(threads)
        for bag in BAGS:
            ids = skewed_ids(np.random.default_rng(1), options.rows,
                             (BATCHES, TABLES, BATCH * bag))
            times = in_turns(options, {
                'embank': Ours(ids, rows, threads), '26 nn.EmbeddingBag': Modules(ids, rows),
                'one nn.EmbeddingBag': OneModule(ids, rows)})
            print_times(f'A step, {TABLES} tables of {options.rows:,} rows, dim {DIM}, batch '
                        f'{BATCH}, bags of {bag}, threads {threads}', times, figures)


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


def jagged(batch: dict, bag: int) -> types.SimpleNamespace:
    """A batch as a KeyedJaggedTensor has it."""
    values = torch.cat([keys.reshape(-1) for keys in batch.values()])
    offsets = torch.arange(TABLES * BATCH + 1) * bag
    return types.SimpleNamespace(keys=lambda: NAMES, values=lambda: values,
                                 offsets=lambda: offsets, weights_or_none=lambda: None)


def overhead(options: argparse.Namespace, figures: dict) -> None:
    rows, threads = first_rows(TABLES, options.rows, DIM), options.threads[0]
    torch.set_num_threads(threads)
    for bag in BAGS:
        ids = skewed_ids(np.random.default_rng(1), options.rows, (BATCHES, TABLES, BATCH * bag))
        ours, other = Ours(ids, rows, threads), Ours(ids, rows, threads)
        arrays = [np.full((BATCH, DIM), 1e-4, np.float32) for _ in NAMES]
        gradients = [torch.from_numpy(array) for array in arrays]
        calls = Calls(other, arrays, bag)

        joined = [jagged(batch, bag) for batch in ours.batches]
        wide_gradients = torch.full((BATCH, TABLES * DIM), 1e-4)

        def dict_step(number: int) -> None:
            pooled = ours.module(ours.batches[number % BATCHES])
            torch.autograd.backward(list(pooled.values()), gradients)

        def jagged_step(number: int) -> None:
            ours.module(joined[number % BATCHES]).values().backward(wide_gradients)

        for form, module_step in (('dict', dict_step), ('KeyedJaggedTensor', jagged_step)):
            times = ([], [])
            for pair in range(-BATCHES, options.pairs):
                for way, step in enumerate((module_step, calls.step)):
                    begin = time.process_time()
                    step(pair)
                    if pair >= 0:
                        times[way].append((time.process_time() - begin) * 1e3)
            module, call = map(statistics.median, times)
            ratio = statistics.median(mine / theirs for mine, theirs in zip(*times))
            print(f'\nCPU time of lookup and gradients, bags of {bag}, {form}, threads {threads}: '
                  f'module {module:.2f} ms, calls {call:.2f} ms; median of {options.pairs} pairs '
                  f'{100 * (ratio - 1):+.1f} %; load {os.getloadavg()[0]:.1f}', flush=True)
            figures[f'overhead, bags of {bag}, {form}'] = {'module': module, 'calls': call,
                                                           'ratio': ratio}


def sequences(options: argparse.Namespace, figures: dict) -> None:
    ids = skewed_ids(np.random.default_rng(1), options.rows,
                     (BATCHES, SEQUENCE_BATCH, SEQUENCE_KEYS))
    rows, names = first_rows(options.rows, SEQUENCE_DIM), 'nn.Embedding, row-wise Adagrad'
    for threads in options.threads:
        torch.set_num_threads(threads)
        times = in_turns(options, {
            'embank': Sequences(ids, rows, threads),
            names: Sequences(ids, rows, threads, RowwiseAdagrad),
            'nn.Embedding, Adagrad': Sequences(ids, rows, threads, torch.optim.Adagrad)},
            other_rules=('nn.Embedding, Adagrad',))
        print_times(f'A step, one table of {options.rows:,} rows, dim {SEQUENCE_DIM}, batch '
                    f'{SEQUENCE_BATCH}, {SEQUENCE_KEYS} keys a sample, threads {threads}', times,
                    figures)


def read_log(path: str) -> click_log.ClickLog:
    """A log in Criteo's format, or the ratings of MovieLens in the order of time."""
    with open(path, 'rb') as file:
        is_ratings = file.readline().startswith(b'userId,movieId,rating,timestamp')
    if not is_ratings:
        return click_log.read(path)
    users, movies, stars, times = np.loadtxt(path, delimiter=',', skiprows=1).T
    order = np.argsort(times, kind='stable')
    return click_log.ClickLog((stars[order] >= STARS).astype(np.float32),
                              np.zeros((len(order), 0), np.float32),
                              np.stack([users[order], movies[order]]).astype(np.uint64))


class OfLog:
    """A click model over a log: our rows, or those of nn.Embedding with equal first values."""

    def __init__(self, log: click_log.ClickLog, optimizer: str):
        self.names = [f'C{number}' for number in range(1, len(log.ids) + 1)]
        row_rate, dense_rate = LOG_RATES[optimizer]
        torch.manual_seed(1)
        self.dense = Dense(log.dense.shape[1] + DIM * len(self.names))
        rule = {'sgd': torch.optim.SGD, 'adagrad': torch.optim.Adagrad}[optimizer]
        self.optimizers = [rule(self.dense.parameters(), lr=dense_rate)]
        self.collection = EmbeddingBagCollection(
            embank.Store(seed=1), dict.fromkeys(self.names, DIM), optimizer=optimizer,
            lr=row_rate, init=('uniform', -0.05, 0.05))
        self.log, self.ids, self.tables = log, log.ids.view(np.int64), None

    def use_torch(self, distinct: list, numbers: np.ndarray) -> 'OfLog':
        """Takes modules of torch, whose rows have the numbers of the distinct ids."""
        rows = self.collection.eval()({name: torch.from_numpy(ids.view(np.int64))
                                       for name, ids in zip(self.names, distinct)})
        self.tables = [torch.nn.Embedding.from_pretrained(one, freeze=False, sparse=True)
                       for one in rows.values()]
        rates = {'lr': self.collection.tables['C1'].learning_rate}
        if isinstance(self.optimizers[0], torch.optim.Adagrad):
            rates['eps'] = EPSILON
        self.optimizers.append(type(self.optimizers[0])([one.weight for one in self.tables],
                                                        **rates))
        self.ids = numbers
        return self

    def logits(self, here: slice) -> torch.Tensor:
        ids = [torch.from_numpy(np.ascontiguousarray(row[here])) for row in self.ids]
        if self.tables is None:
            rows = list(self.collection(dict(zip(self.names, ids))).values())
        else:
            rows = [table(one) for table, one in zip(self.tables, ids)]
        dense = torch.from_numpy(self.log.dense[here])
        return self.dense(torch.cat([dense, *rows], dim=1)).squeeze(1)

    def step(self, here: slice) -> None:
        loss = torch.nn.functional.binary_cross_entropy_with_logits(
            self.logits(here), torch.from_numpy(self.log.labels[here]))
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=True)
        loss.backward()
        for optimizer in self.optimizers:
            optimizer.step()

    def auc(self, here: slice) -> float:
        self.collection.eval()
        with torch.no_grad():
            scores = self.logits(here).numpy()
        self.collection.train()
        return click_log.auc(scores, self.log.labels[here])


def equal_state(ours: OfLog, theirs: OfLog, distinct: list) -> None:
    """Gives nn.Embedding our rows, their state, and our dense part."""
    theirs.dense.load_state_dict(ours.dense.state_dict())
    for module, table, ids in zip(theirs.tables, ours.collection.tables.values(), distinct):
        with torch.no_grad():
            module.weight.copy_(torch.from_numpy(table.lookup(ids, missing='default')))
        known = table.contains(ids)
        if table.state_floats:
            sums = theirs.optimizers[1].state[module.weight]['sum']
            sums[torch.from_numpy(known)] = torch.from_numpy(table.get_state(ids[known]))


def ulps_of_a_step(ours: OfLog, theirs: OfLog, distinct: list, here: slice) -> float:
    """The largest difference of the rows of ids that occur once, after one step from equal rows.

    In units in the last place of the largest of the old value, the new one and the step.
    """
    equal_state(ours, theirs, distinct)
    before = [module.weight.detach().numpy().copy() for module in theirs.tables]
    ours.step(here)
    theirs.step(here)
    largest = 0.0
    for at, (module, table) in enumerate(zip(theirs.tables, ours.collection.tables.values())):
        numbers, counts = np.unique(theirs.ids[at, here], return_counts=True)
        once = numbers[counts == 1]
        found, expected = table.lookup(distinct[at][once]), module.weight.detach().numpy()[once]
        old = before[at][once]
        unit = np.spacing(np.maximum.reduce([np.abs(old), np.abs(expected),
                                             np.abs(expected - old)]))
        largest = max([largest, *(np.abs(found - expected) / unit).ravel()])
    return float(largest)


def auc(options: argparse.Namespace, figures: dict) -> None:
    log = read_log(options.data)
    samples = len(log.labels)
    end = int(samples * (1 - HELD_OUT))
    distinct, (numbers,) = click_log.number_ids([log]) if len(log.ids) == TABLES else (
        [np.unique(row) for row in log.ids],
        [np.stack([np.unique(row, return_inverse=True)[1] for row in log.ids])])
    print(f'\n{os.path.basename(options.data)}: {end:,} samples for the training, '
          f'{samples - end:,} held out, {log.labels.mean():.1%} clicks; batch {LOG_BATCH}\n')
    print('| optimizer | epoch | AUC embank | AUC nn.Embedding | difference | ulp of a step |')
    print('| --- | ---: | ---: | ---: | ---: | ---: |')
    for optimizer in LOG_RATES:
        ours, theirs = OfLog(log, optimizer), OfLog(log, optimizer).use_torch(distinct, numbers)
        aucs = []
        for epoch in range(1, EPOCHS + 1):
            for begin in range(0, end, LOG_BATCH):
                for contestant in (ours, theirs):
                    contestant.step(slice(begin, min(begin + LOG_BATCH, end)))
            aucs.append([contestant.auc(slice(end, samples)) for contestant in (ours, theirs)])
            ulps = ulps_of_a_step(ours, theirs, distinct, slice(0, LOG_BATCH)) \
                if epoch == EPOCHS else None
            print(f'| {optimizer} | {epoch} | {aucs[-1][0]:.5f} | {aucs[-1][1]:.5f} | '
                  f'{aucs[-1][0] - aucs[-1][1]:+.6f} | {"" if ulps is None else f"{ulps:.2f}"} |',
                  flush=True)
        figures[f'auc, {optimizer}'] = {'aucs': aucs, 'ulps': ulps}


PARTS = {'steps': steps, 'overhead': overhead, 'sequences': sequences, 'auc': auc}


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('parts', nargs='*', metavar='PART', help=', '.join(PARTS))
    parser.add_argument('--rows', type=int, default=100_000, help='of each table')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--seconds', type=float, default=1.0, help='of a contestant in a round')
    parser.add_argument('--pairs', type=int, default=200, help='of the overhead')
    parser.add_argument('--threads', type=int, nargs='+', default=[1, 2],
                        help='of both sides; the overhead takes the first number')
    parser.add_argument('--data', help='a plain click log, or ratings.csv of MovieLens')
    parser.add_argument('--json', help='file for the figures')
    options = parser.parse_args()
    wrong = set(options.parts) - set(PARTS)
    if wrong:
        parser.error(f'there is no part {", ".join(wrong)}')
    options.parts = options.parts or [name for name in PARTS if name != 'auc' or options.data]
    if 'auc' in options.parts and not options.data:
        parser.error('auc needs --data')
    return options


def main() -> None:
    options = parse_options()
    figures = {'peer': threads_text(torch), 'embank': embank.__version__,
               'cores': os.cpu_count(), 'load': os.getloadavg()[0]}
    print(f'PyTorch {torch.__version__}, embank {embank.__version__}; {figures["cores"]} cores, '
          f'load {figures["load"]:.1f}')
    for part in options.parts:
        PARTS[part](options, figures)
    if options.json:
        with open(options.json, 'w', encoding='utf-8') as file:
            json.dump(figures, file, indent=1)


if __name__ == '__main__':
    main()
