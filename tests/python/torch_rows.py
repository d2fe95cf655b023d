"""A table of a store and a weight of torch with equal rows, for the tests of embank.torch."""
import unittest

import embank
import numpy as np

try:
    import torch
    import embank.torch as modules
except ImportError as missing:
    raise unittest.SkipTest(f'skipped: {missing}') from missing

DIM, ROWS, RATE = 4, 30, 0.5
SGD = {'optimizer': 'sgd', 'lr': RATE}
KEYS = np.arange(ROWS)
# The third bag of tags has no key, and no bag of seen has one.
BAGS = {'user': [[3], [4], [3]], 'tags': [[1, 2], [2, 2, 9], []], 'seen': [[], [], []]}
VERSION = tuple(map(int, torch.__version__.split('.')[:2]))


def rows_of(table):
    """The rows of all keys, without making any."""
    return table.lookup(KEYS, missing='zero')


def close(ours, theirs, message=''):
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4, err_msg=message)


def bits(numbers):
    """Numbers as integers, which are equal if all bits are; those of 16 bits as float32."""
    if isinstance(numbers, torch.Tensor):
        numbers = numbers.detach().cpu().float().numpy()
    return np.ascontiguousarray(numbers).view(np.uint32)


def weighted_sum(outputs):
    """A loss with another gradient for each number."""
    return (outputs * torch.arange(1.0, outputs.numel() + 1).reshape(outputs.shape)).sum() / 8


class RowsCase(unittest.TestCase):
    """Has a store in memory and first rows."""

    def setUp(self):
        self.store = embank.Store(seed=1)
        self.weight = np.random.default_rng(3).normal(size=(ROWS, DIM)).astype(np.float32)

    def fill(self, table):
        """Gives a table the first rows, and returns a weight of torch with them."""
        table.upsert(KEYS, self.weight)
        return torch.tensor(self.weight, requires_grad=True)

    def assert_step_is(self, table, gradient):
        """One step of SGD at RATE by `gradient` has led from the first rows to those of today."""
        close(rows_of(table), self.weight - RATE * np.asarray(gradient))

    def assert_refused(self, error, text, function, *arguments, **options):
        """A call raises this exception with this text, and no table is made or changed."""
        def now():
            return {name: (len(self.store.table(name)), rows_of(self.store.table(name)).tolist())
                    for name in self.store.tables()}
        before = now()
        with self.assertRaisesRegex(error, text):
            function(*arguments, **options)
        self.assertEqual(now(), before)

    def assert_fails_once(self, table, rows):
        """A backward steps key 2, not key 1, whose step leaves no finite number, and only once.

        `rows` are those of the keys 1 and 2 of a table of SGD at the rate 1.
        """
        table.upsert(KEYS[1:2], np.full((1, table.dim), 3e38, np.float32))
        before = table.lookup(KEYS[2:3], missing='zero').copy()
        loss = (rows * -1e38).sum()
        with self.assertRaises(embank.OutOfRangeError):
            loss.backward(retain_graph=True)
        self.assertTrue((table.lookup(KEYS[2:3], missing='zero') > before).all())
        self.assert_refused(embank.FailedPreconditionError, 'or some of them before it failed',
                            loss.backward)


class Jagged:
    """Has the methods of a KeyedJaggedTensor of torchrec."""

    def __init__(self, keys, values, offsets, weights=None):
        self._parts = keys, values, offsets, weights

    def keys(self):
        return self._parts[0]

    def values(self):
        return self._parts[1]

    def offsets(self):
        return self._parts[2]

    def weights_or_none(self):
        return self._parts[3]


def flat(bags, dtype=torch.int64):
    """The keys of bags and their offsets, with the end."""
    ends = np.cumsum([0] + [len(bag) for bag in bags])
    keys = np.array([key for bag in bags for key in bag], np.int64)
    return torch.from_numpy(keys).to(dtype), torch.from_numpy(ends).to(dtype)


def jagged(names, dtype=torch.int64, weighted=False):
    """The bags as one KeyedJaggedTensor, with other features and in another order."""
    keys, offsets = flat([bag for name in names for bag in BAGS.get(name, [[7], [8, 8], [9]])],
                         dtype)
    weights = torch.arange(1.0, len(keys) + 1) if weighted else None
    return Jagged(names, keys, offsets, weights)


__all__ = ['BAGS', 'DIM', 'Jagged', 'KEYS', 'RATE', 'ROWS', 'RowsCase', 'SGD', 'VERSION', 'bits',
           'close', 'flat', 'jagged', 'modules', 'rows_of', 'torch', 'weighted_sum']
