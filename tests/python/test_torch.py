"""The modules of embank.torch against those of torch.nn: values, gradients and steps."""
import pathlib
import tempfile
import unittest

import numpy as np

import embank

try:
    import torch
    from torch import nn
    import embank.torch as modules
except ImportError as missing:
    raise unittest.SkipTest(f'skipped: {missing}') from missing

DIM, ROWS, RATE = 8, 50, 0.5


class Modules(unittest.TestCase):
    """A table of the store and one of torch with equal rows."""

    def setUp(self):
        self.store = embank.Store(seed=1)
        self.weight = np.random.default_rng(3).normal(size=(ROWS, DIM)).astype(np.float32)

    def fill(self, table):
        table.upsert(np.arange(ROWS, dtype=np.uint64), self.weight)
        return torch.nn.Parameter(torch.tensor(self.weight))

    def rows(self, table):
        return table.lookup(np.arange(ROWS, dtype=np.uint64), missing='zero')

    def check(self, module, table, parameter, ours, theirs, weights=()):
        np.testing.assert_allclose(ours.detach(), theirs.detach(), rtol=1e-6, atol=1e-6)
        factor = torch.arange(1.0, ours.numel() + 1).reshape(ours.shape)
        (ours * factor).sum().backward()
        (theirs * factor).sum().backward()
        expected = self.weight - RATE * parameter.grad.numpy()
        np.testing.assert_allclose(self.rows(table), expected, rtol=1e-4, atol=1e-3)
        self.assertFalse(np.array_equal(self.rows(table), self.weight), 'a step was made')
        for one, other in weights:
            np.testing.assert_allclose(one.grad, other.grad, rtol=1e-4, atol=1e-4)

    def test_embedding_has_the_values_and_steps_of_torch(self):
        module = modules.Embedding(self.store, 'items', DIM, optimizer='sgd', lr=RATE)
        parameter = self.fill(module.table)
        keys = torch.tensor([[3, 7, 3], [0, 49, 7]])
        self.check(module, module.table, parameter, module(keys),
                   nn.functional.embedding(keys, parameter))

    def test_bags_have_the_values_and_steps_of_torch(self):
        keys, offsets = torch.tensor([1, 2, 2, 5, 9, 1]), torch.tensor([0, 3, 3, 5])
        for mode in ('sum', 'mean'):
            for padding in (None, 2):
                with self.subTest(mode=mode, padding=padding):
                    name = f'{mode}-{padding}'
                    module = modules.EmbeddingBag(self.store, name, DIM, mode=mode,
                                                  padding_idx=padding, optimizer='sgd', lr=RATE)
                    parameter = self.fill(module.table)
                    theirs = nn.functional.embedding_bag(keys, parameter, offsets, mode=mode,
                                                         padding_idx=padding)
                    self.check(module, module.table, parameter, module(keys, offsets), theirs)

    def test_weights_of_samples_have_the_gradients_of_torch(self):
        keys, offsets = torch.tensor([1, 2, 2, 5]), torch.tensor([0, 3])
        module = modules.EmbeddingBag(self.store, 'items', DIM, mode='sum', optimizer='sgd',
                                      lr=RATE)
        parameter = self.fill(module.table)
        ours, theirs = (torch.tensor([0.5, 2.0, -1.0, 3.0], requires_grad=True) for _ in range(2))
        self.check(module, module.table, parameter, module(keys, offsets, ours),
                   nn.functional.embedding_bag(keys, parameter, offsets, mode='sum',
                                               per_sample_weights=theirs), [(ours, theirs)])

    def test_evaluation_creates_no_row(self):
        collection = modules.EmbeddingBagCollection(self.store, {'a': DIM}, lr=RATE).eval()
        collection({'a': torch.tensor([1, 2])})
        self.assertEqual(len(collection.tables['a']), 0)
        collection.train()({'a': torch.tensor([1, 2])})
        self.assertEqual(len(collection.tables['a']), 2)

    def test_a_second_backward_is_refused(self):
        module = modules.Embedding(self.store, 'items', DIM, lr=RATE)
        loss = module(torch.tensor([1, 2])).sum()
        loss.backward(retain_graph=True)
        with self.assertRaises(Exception) as second:
            loss.backward()
        self.assertIn('backward', str(second.exception))

    def test_bad_input_is_named(self):
        module = modules.EmbeddingBag(self.store, 'items', DIM, lr=RATE)
        for keys, offsets in ((torch.tensor([1.0]), torch.tensor([0])),
                              (torch.tensor([1, 2]), torch.tensor([0, 3])),
                              (torch.tensor([1, 2]), torch.tensor([1, 0]))):
            with self.subTest(keys=keys, offsets=offsets):
                with self.assertRaises((TypeError, ValueError, embank.EmbankError)):
                    module(keys, offsets)
        self.assertEqual(len(module.table), 0)

    def test_a_training_goes_on_at_its_checkpoint(self):
        def step(module, dense, optimizer):
            loss = dense(module(torch.tensor([1, 2, 3]))).square().sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return float(loss.detach())

        def made(path):
            store = embank.Store(path, seed=1)
            torch.manual_seed(5)
            dense = nn.Linear(DIM, 1)
            module = modules.Embedding(store, 'items', DIM, lr=0.1,
                                       init=('uniform', -0.1, 0.1))
            return store, module, dense, torch.optim.Adam(dense.parameters())

        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory) / 'store'
            store, module, dense, optimizer = made(path)
            for _ in range(3):
                step(module, dense, optimizer)
            modules.save(store, model=dense, optimizer=optimizer, step=3)
            expected = [step(module, dense, optimizer) for _ in range(3)]
            store.close()
            store, module, dense, optimizer = made(path)
            modules.load(store, model=dense, optimizer=optimizer)
            self.assertEqual([step(module, dense, optimizer) for _ in range(3)], expected)
            store.close()


if __name__ == '__main__':
    unittest.main()
