"""Tensors of PyTorch as arrays, without a copy."""
import unittest

import embank
import numpy as np

try:
    import torch
except ImportError:
    torch = None


@unittest.skipIf(torch is None, 'torch is not installed')
class Tensors(unittest.TestCase):
    def setUp(self):
        self.table = embank.Store().table('t', dim=2, optimizer='sgd', learning_rate=1.0)
        self.keys = torch.arange(3)

    def test_tensors_are_used_in_place(self):
        out = torch.full((3, 4), 9.0)
        for rows in (torch.full((3, 2), 9.0), out[:, 2:]):
            self.assertIs(self.table.lookup(self.keys, rows), rows)
            self.assertEqual(rows.tolist(), [[0.0, 0.0]] * 3)
        self.assertEqual(out[:, 0].tolist(), [9.0] * 3)
        self.table.apply_gradients(self.keys, torch.ones(3, 2))
        self.table.upsert(self.keys[:1], torch.ones(1, 2, requires_grad=True))
        rows = torch.zeros(3, 2)
        self.table.lookup(self.keys, rows)
        self.assertEqual(rows.tolist(), [[1, 1], [-1, -1], [-1, -1]])
        offsets = torch.tensor([0, 1, 3], dtype=torch.int32)
        feature = embank.Feature(self.table, self.keys.int(), offsets, torch.ones(3))
        pooled = self.table.store.lookup_packed([feature], [torch.zeros(2, 2)])
        self.assertEqual(pooled[0].tolist(), [[1, 1], [-2, -2]])

    def test_bfloat16_has_the_bits_of_the_rows(self):
        table = embank.Store().table('b', dim=2, value_type='bf16', init=('constant', 0.5))
        rows = torch.zeros(3, 2, dtype=torch.bfloat16)
        table.lookup(self.keys, rows)
        self.assertEqual(rows.tolist(), [[0.5, 0.5]] * 3)
        table.upsert(self.keys, rows * 2)
        self.assertEqual(table.lookup(self.keys).tolist(), [[0x3f80] * 2] * 3)

    def test_other_tensors_are_refused(self):
        rows = torch.zeros(3, 2)
        cases = (
            ('float keys', lambda: self.table.lookup(self.keys.float()), TypeError, 'float32'),
            ('int32 keys', lambda: self.table.lookup(self.keys.int()), TypeError, 'int32'),
            ('strided', lambda: self.table.lookup(torch.arange(6)[::2]), ValueError, '16 bytes'),
            ('double', lambda: self.table.lookup(self.keys, rows.double()), TypeError, 'float64'),
            ('transposed', lambda: self.table.upsert(self.keys, torch.zeros(2, 3).t()), ValueError,
             'within a row'),
            ('expanded', lambda: self.table.upsert(self.keys, torch.zeros(1, 2).expand(3, 2)),
             ValueError, '0 bytes between rows'),
            ('sparse', lambda: self.table.upsert(self.keys, rows.to_sparse()), TypeError, 'sparse'),
            ('meta', lambda: self.table.lookup(self.keys.to('meta')), TypeError, 'on meta'),
        )
        for name, call, error, pattern in cases:
            with self.subTest(case=name), self.assertRaisesRegex(error, '(?i)' + pattern):
                call()
        self.assertEqual(len(self.table), 0)

    def test_numpy_and_torch_see_the_same(self):
        self.table.lookup(self.keys)
        self.assertEqual(self.table.contains(self.keys.numpy()).tolist(), [True] * 3)
        self.assertEqual(self.table.heat(np.arange(3)).tolist(), [1] * 3)


if __name__ == '__main__':
    unittest.main()
