"""Tables for the tests of import and export, and their rows in the order of keys."""
import hashlib
import pathlib
import tempfile
import unittest

import numpy as np

import embank
import embank.io

OPTIMIZERS = ('none', 'sgd', 'adagrad', 'rowwise_adagrad', 'adam', 'ftrl')


def filled(store, name, rows, seed=1, **options):
    """Returns a table with rows of any bits: also NaN, infinite and negative zero."""
    table = store.table(name, **options)
    random = np.random.default_rng(seed)
    keys = random.integers(0, 1 << 64, rows, np.uint64)
    keys[:2] = (0, (1 << 64) - 1)[:rows]
    bits = random.integers(0, 256, (rows, table.dim * table.dtype.itemsize), np.uint8)
    state = None
    if table.state_floats:
        state = random.random((rows, table.state_floats), np.float32)
        state[:, -1] = np.floor(100 * state[:, -1])  # the steps of Adam
    table.upsert(keys, bits.view(table.dtype), state=state,
                 heat=random.integers(0, 1 << 20, rows, np.uint32))
    return table


def contents(table):
    """Returns checksums of all bytes of a table: of keys, rows, states and heats, by key.

    A comparison that fails would show all bytes, and take minutes.
    """
    batches = list(table.scan(state=table.state_floats > 0, heat=True))
    columns = [np.concatenate([batch[i] for batch in batches]) if batches else np.zeros(0)
               for i in range(4) if not batches or batches[0][i] is not None]
    order = np.argsort(columns[0])
    return [hashlib.sha256(column[order].tobytes()).hexdigest() for column in columns]


class FolderTest(unittest.TestCase):
    """A test with a folder and a store of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.store = embank.Store(seed=1)
        self.addCleanup(self.store.close)

    def path(self, name):
        return str(self.folder / name)

    def files(self):
        """Returns the names of all files, also of those in directories."""
        return sorted(str(file.relative_to(self.folder)) for file in self.folder.rglob('*')
                      if file.is_file())
