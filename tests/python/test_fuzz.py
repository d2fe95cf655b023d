"""Random arguments: each call answers, or raises a named exception, and no call crashes.

EMBANK_TEST_FUZZ_CALLS is the number of calls; 20000 without it. EMBANK_TEST_SEED_BEGIN is the seed.
"""
import os
import random
import unittest

import embank
import numpy as np
from embank import Feature

CALLS = int(os.environ.get('EMBANK_TEST_FUZZ_CALLS', 20_000))
SEED = int(os.environ.get('EMBANK_TEST_SEED_BEGIN', 1))
NAMED = (embank.EmbankError, TypeError)
ODD = (None, 0, -1, 2**64, 1.5, float('nan'), '', 'x', b'\0', [], [1], (1, 2), {}, object(), True,
       np.float32(1), np.array(3), 1j)
DTYPES = (np.uint64, np.int64, np.uint32, np.int32, np.float32, np.float64, np.float16, np.uint16,
          np.uint8, bool, '>u8', '>f4', object, 'U3')
DIM = 4


class Draws:
    """Arguments: mostly good ones, so that calls get past their first check."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def odd(self):
        return self.random.choice(ODD)

    def count(self):
        return self.random.choice((0, 1, 2, 3, 5, 17, 64, 200))

    def numbers(self, shape, dtype):
        numbers = np.array([self.random.randrange(60) for _ in range(int(np.prod(shape)))])
        return numbers.reshape(shape).astype(dtype)

    def bent(self, array):
        """The same array, or one with another layout, shape or dtype."""
        kind = self.random.randrange(40)
        if kind == 0:
            return self.odd()
        if kind == 1:
            return array[::-1]
        if kind == 2:
            return np.repeat(array, 2, axis=0)[::2]
        if kind == 3:
            with np.errstate(all='ignore'):
                return array.astype(self.random.choice(DTYPES))
        if kind == 4:
            return array[:self.random.randrange(len(array) + 1)]
        if kind == 5 and array.size:
            return np.broadcast_to(array[:1], array.shape)
        if kind == 6:
            return array.reshape(array.shape + (1,))
        if kind == 7:
            array.flags.writeable = False
        if kind == 8:
            return np.asfortranarray(array)
        if kind == 9 and array.dtype.kind == 'f' and array.size:
            array.flat[self.random.randrange(array.size)] = self.random.choice(
                (np.nan, np.inf, -3e38, 1e-45))
        return array

    def keys(self, count):
        dtype = self.random.choice((np.uint64, np.int64))
        keys = self.numbers((count,), dtype)
        if count and self.random.randrange(8) == 0:
            keys[0] = dtype(self.random.choice((2**63 - 1, 2**62)))
        return self.bent(keys)

    def rows(self, count, dim=DIM):
        if self.random.randrange(6) == 0:
            return self.bent(self.numbers((count, 3 * dim), np.float32)[:, dim:2 * dim])
        return self.bent(self.numbers((count, dim), np.float32))

    def maybe(self, value):
        return value if self.random.randrange(3) else None

    def feature(self, tables):
        count, bags = self.count(), self.random.randrange(6)
        kind = self.random.choice((np.uint64, np.int64, np.int32, np.uint32))
        offsets = np.array(sorted(self.random.randrange(count + 1) for _ in range(bags + 1)), kind)
        if self.random.randrange(10) == 0:
            offsets[self.random.randrange(bags + 1)] = kind(self.random.choice((0, 2**31 - 1)))
        feature = Feature(
            self.random.choice(tables), self.bent(self.numbers((count,), kind)),
            self.maybe(self.bent(offsets)),
            self.maybe(self.bent(self.numbers((count,), np.float32)))
            if self.random.randrange(2) else None,
            pooling=self.random.choice((None, 'sum', 'mean', 'sqrt_n', 'none', 'max')),
            padding_key=self.random.choice((None, None, 3, -1, 2**64 - 1, 'x')))
        if self.random.randrange(5) == 0 and bags and offsets.flags.writeable:
            offsets[-1] = kind(self.random.choice((0, count + 1, 2**31 - 1)))
        return feature


class Calls:
    """One store with tables, and the calls that are drawn."""

    def __init__(self, draws):
        self.draws = draws
        self.store = embank.Store(worker_threads=1)
        self.tables = [self.store.table(name, dim=DIM, optimizer=optimizer) for name, optimizer in
                       (('none', 'none'), ('sgd', 'sgd'), ('adagrad', 'adagrad'))]
        self.scans = []
        self.names = [name for name in dir(self) if name.startswith('call_')]

    def draw(self):
        getattr(self, draw_of(self.draws, self.names))(draw_of(self.draws, self.tables))

    def call_lookup(self, table):
        count = self.draws.count()
        table.lookup(self.draws.keys(count), self.draws.maybe(self.draws.rows(count)),
                     missing=draw_of(self.draws, ('create', 'default', 'zero', 'skip', 'no', 5)),
                     outcomes=draw_of(self.draws, (True, False)))

    def call_gradients(self, table):
        count = self.draws.count()
        table.apply_gradients(self.draws.keys(count), self.draws.rows(count),
                              outcomes=draw_of(self.draws, (True, False)))

    def call_upsert(self, table):
        count = self.draws.count()
        table.upsert(self.draws.keys(count), self.draws.rows(count),
                     state=self.draws.maybe(self.draws.rows(count)),
                     heat=self.draws.maybe(self.draws.bent(
                         self.draws.numbers((count,), np.uint32))))

    def call_keys(self, table):
        keys = self.draws.keys(self.draws.count())
        draw_of(self.draws, (table.erase, table.contains, table.prefetch, table.heat,
                             lambda keys: embank.owner_of('t', keys, 3)))(keys)

    def call_state(self, table):
        count = self.draws.count()
        draw_of(self.draws, (table.get_state, table.set_state))(
            self.draws.keys(count), self.draws.rows(count),
            outcomes=draw_of(self.draws, (True, False)))

    def call_packed(self, _):
        features = [self.draws.feature(self.tables) for _ in range(self.draws.random.randrange(4))]
        if self.draws.random.randrange(20) == 0:
            features = draw_of(self.draws, (self.draws.odd(), [self.draws.odd()]))
        answered = self.store.lookup_packed(features, outcomes=True)[0]
        self.store.lookup_packed(features, [self.draws.bent(part) for part in answered])
        self.store.prefetch_packed(features)
        self.store.apply_gradients_packed(features, [self.draws.rows(part.shape[0])
                                                     for part in answered])

    def call_scan(self, table):
        if len(self.scans) < 3:
            self.scans.append(table.scan(draw_of(self.draws, (1, 10, 10**6, 0, 'x')),
                                         state=draw_of(self.draws, (True, False))))
        else:
            scan = draw_of(self.draws, self.scans)
            if next(scan, None) is None or self.draws.random.randrange(9) == 0:
                scan.close()
                self.scans.remove(scan)

    def call_options(self, table):
        name = draw_of(self.draws, ('learning_rate', 'epsilon', 'beta1', 'rounding', 'dim', 'x'))
        table.set_options(**{name: draw_of(self.draws, (0.5, 0.25, self.draws.odd()))})

    def call_table(self, _):
        name = draw_of(self.draws, ('a', 'b', self.draws.odd()))
        option = draw_of(self.draws, ('optimizer', 'init', 'value_type', 'epsilon', 'eviction'))
        if self.draws.random.randrange(3) == 0:
            self.store.drop_table(name)
        else:
            self.store.table(name, dim=draw_of(self.draws, (1, DIM, self.draws.odd())),
                             **{option: draw_of(self.draws, (None, self.draws.odd()))})

    def call_store(self, _):
        option = draw_of(self.draws, ('dram_bytes', 'seed', 'worker_threads', 'durability',
                                      'cuda_device', 'pin_batches', 'ssd_bytes', 'previous'))
        embank.Store(**{option: self.draws.odd()}).close()


def draw_of(draws, choices):
    return draws.random.choice(choices)


class Fuzz(unittest.TestCase):
    def test_random_arguments(self):
        draws = Draws(SEED)
        calls, answered, refused = Calls(draws), 0, {}
        for number in range(CALLS):
            if number % 1000 == 999:
                calls.store.close()
                calls = Calls(draws)
            try:
                calls.draw()
                answered += 1
            except NAMED as error:
                name = type(error).__name__
                refused[name] = refused.get(name, 0) + 1
            except Exception as error:
                raise AssertionError(f'seed {SEED}, call {number}') from error
        print(f'quantities: {CALLS} calls of seed {SEED}, {answered} answered, refused: {refused}')
        self.assertGreater(answered, CALLS // 5)
        self.assertGreater(sum(refused.values()), CALLS // 10)
        self.assertGreater(len(refused), 3)


if __name__ == '__main__':
    unittest.main()
