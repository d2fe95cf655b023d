"""Sequences: one table, 256 to 1,024 keys a sample, row-wise Adagrad, keys that change with time.

The rows of embank.torch.Embedding are those of the arithmetic in numpy, bit for bit.
"""
import pathlib
import tempfile
import unittest

import numpy as np
from oracle import Oracle

import embank

try:
    import torch
    from embank.torch import Embedding, Prefetcher, load, save
except ImportError as missing:
    raise unittest.SkipTest(f'skipped: {missing}') from missing

DIM, RATE, FIRST = 64, 0.05, 0.125
STEPS, SAMPLES, KEYS_MIN, KEYS_MAX = 12, 8, 256, 1024
POPULAR, NEW_A_STEP = 2_000, 700
OPTIONS = {'optimizer': 'rowwise_adagrad', 'lr': RATE, 'init': ('constant', FIRST)}


def sequences(seed=5):
    """The keys and the ends of the samples of each step. Later keys are larger."""
    random, steps = np.random.default_rng(seed), []
    for step in range(STEPS):
        ends = np.cumsum(random.integers(KEYS_MIN, KEYS_MAX + 1, SAMPLES))
        ages = (POPULAR * random.random(ends[-1]) ** 3).astype(np.int64)
        steps.append((POPULAR + NEW_A_STEP * step - ages, ends))
    return steps


def gradients_of(rows, ends):
    """Each sample wants rows of its own: float32 arithmetic in an order that is defined."""
    wanted = np.repeat(np.linspace(-1, 1, len(ends), dtype=np.float32), np.diff(ends, prepend=0))
    return (rows - wanted[:, None]) / np.float32(8)


def step_of(module, keys, ends):
    """Makes a step and returns the rows before it."""
    rows = module(torch.from_numpy(keys))
    found = rows.detach().numpy().copy()
    rows.backward(torch.from_numpy(gradients_of(found, ends)))
    return found


class Sequences(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.steps = sequences()
        self.oracle = Oracle('rowwise_adagrad', RATE, np.full(DIM, FIRST))

    def open(self, path, **options):
        store = embank.Store(path, seed=1, **options)
        self.addCleanup(store.close)
        return store, Embedding(store, 'items', DIM, **OPTIONS)

    def check_step(self, module, keys, ends):
        expected, _ = self.oracle.lookup(keys)
        np.testing.assert_array_equal(step_of(module, keys, ends), expected)
        self.oracle.apply_gradients(keys, gradients_of(expected, ends))

    def check_rows(self, table):
        self.assertEqual(len(table), len(self.oracle.rows))
        keys = np.array(list(self.oracle.rows))
        rows, states = zip(*self.oracle.rows.values())
        np.testing.assert_array_equal(table.lookup(keys, missing='zero'), np.stack(rows))
        np.testing.assert_array_equal(table.get_state(keys), np.stack(states))

    def test_the_workload_is_that_of_sequences(self):
        lengths = np.concatenate([np.diff(ends, prepend=0) for _, ends in self.steps])
        self.assertTrue(KEYS_MIN <= lengths.min() < lengths.max() <= KEYS_MAX)
        medians = [np.median(keys) for keys, _ in self.steps]
        self.assertEqual(medians, sorted(medians), 'popular keys change with time')
        repeated = [1 - len(np.unique(keys)) / len(keys) for keys, _ in self.steps]
        self.assertGreater(min(repeated), 0.5)

    def test_rows_and_states_are_those_of_the_arithmetic(self):
        _, module = self.open(None)
        for keys, ends in self.steps:
            self.check_step(module, keys, ends)
        self.check_rows(module.table)

    def test_a_run_on_disk_goes_on_at_its_checkpoint(self):
        path, middle = self.folder / 'store', STEPS // 2
        store, module = self.open(path, dram_bytes='16MiB')
        batches = [{'sparse': torch.from_numpy(keys), 'ends': ends} for keys, ends in self.steps]
        for number, batch in enumerate(Prefetcher(batches, module)):
            if number == middle:
                save(store, step=number)
            if number >= middle:  # Changes that are lost.
                step_of(module, batch['sparse'].numpy(), batch['ends'])
            else:
                self.check_step(module, batch['sparse'].numpy(), batch['ends'])
        store.close()
        store, module = self.open(path, dram_bytes='16MiB')
        self.assertEqual(load(store), middle)
        self.assertEqual(module.table.info.rows_ssd, len(self.oracle.rows))
        self.check_rows(module.table)
        for keys, ends in self.steps[middle:]:
            self.check_step(module, keys, ends)
        self.check_rows(module.table)


if __name__ == '__main__':
    unittest.main()
