"""Compiled modules need no graph break, and have the rows and steps of eager ones."""
import os
import shutil
import tempfile
import unittest
import warnings
from unittest import mock

import embank
from torch_rows import (BAGS, DIM, SGD, VERSION, Jagged, RowsCase, close, flat, jagged, modules,
                        rows_of, torch, weighted_sum)

nn = torch.nn
KEYS, ENDS = torch.tensor([1, 2, 2, 5, 9, 1]), torch.tensor([0, 3, 3, 6])
DICT = {name: flat(bags) for name, bags in BAGS.items()}


def embedding(store, **options):
    return modules.Embedding(store, 'e', DIM, **SGD, **options)


def bag(store, **options):
    return modules.EmbeddingBag(store, 'b', DIM, **{'mode': 'sum', **options}, **SGD)


def collection(store, **options):
    return modules.EmbeddingBagCollection(store, {'user': DIM, 'tags': (DIM, 'mean'), 'seen': DIM},
                                          **SGD, **options)


def of_jagged(module):
    return lambda keys, offsets: module(Jagged(['seen', 'user', 'tags'], keys, offsets)).values()


def of_weighted(module):
    return lambda keys, offsets, weights: module(
        Jagged(['seen', 'user', 'tags'], keys, offsets, weights)).values()


def of_dict(module):
    return lambda batch: torch.cat(list(module(batch).values()), dim=1)


PACKED = jagged(['seen', 'user', 'tags'])
CASES = {
    'embedding': (embedding, {}, None, (KEYS,)),
    'embedding of a matrix': (embedding, {'padding_idx': 2}, None, (KEYS.view(2, 3),)),
    'embedding of int32': (embedding, {}, None, (KEYS.int(),)),
    'embedding of f16': (embedding, {'value_type': 'f16'}, None, (KEYS,)),
    'the same keys in two calls': (embedding, {}, lambda module: (
        lambda keys: module(keys) + module(keys)), (KEYS,)),
    'bags': (bag, {}, None, (KEYS, ENDS)),
    'bags of a matrix': (bag, {'mode': 'mean'}, None, (KEYS.view(3, 2),)),
    'bags with the end': (bag, {'include_last_offset': True}, None, (KEYS, ENDS)),
    'bags with weights': (bag, {}, None, (KEYS, ENDS, KEYS / 2)),
    'dict': (collection, {}, of_dict, (DICT,)),
    'dict without ends': (collection, {'include_last_offset': False}, of_dict, (
        {name: (keys, ends[:-1]) for name, (keys, ends) in DICT.items()},)),
    'jagged': (collection, {}, of_jagged, (PACKED.values(), PACKED.offsets())),
    'jagged with weights': (collection, {}, of_weighted, (
        PACKED.values(), PACKED.offsets(), PACKED.values() / 2)),
}


class Click(nn.Module):
    """A small click model with all modules."""

    def __init__(self, store):
        super().__init__()
        self.features, self.bag, self.rows = collection(store), bag(store), embedding(store)
        torch.manual_seed(2)
        self.dense = nn.Sequential(nn.Linear(5 * DIM, 8), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, batch, keys):
        pooled = [*self.features(batch).values(), self.bag(keys), self.rows(keys).sum(1)]
        return self.dense(torch.cat(pooled, dim=1))


@unittest.skipIf(VERSION < (2, 4), 'torch has operators of others from 2.4 on')
class Compiled(RowsCase):
    def compiled(self, function, backend='aot_eager', **options):
        torch._dynamo.reset()
        return torch.compile(function, fullgraph=True, backend=backend, **options)

    def test_rows_and_steps_are_those_of_eager_modules(self):
        for name, (made, options, wrapped, batch) in CASES.items():
            with self.subTest(name):
                results = []
                for is_compiled in (False, True):
                    store = embank.Store(seed=1)
                    module = made(store, **options)
                    function = wrapped(module) if wrapped else module
                    if is_compiled:
                        function = self.compiled(function)
                    outputs = function(*batch)
                    weighted_sum(outputs.float()).backward()
                    results.append((outputs, [torch.tensor(rows_of(store.table(name)).astype('f4'))
                                              for name in store.tables()]))
                (eager, eager_rows), (ours, our_rows) = results
                self.assertEqual((ours.dtype, ours.shape), (eager.dtype, eager.shape))
                close(ours.detach(), eager.detach())
                for one, other in zip(our_rows, eager_rows):
                    close(one, other)
                self.assertGreater(sum(one.abs().sum() for one in our_rows), 0)

    def losses(self, backend):
        store = embank.Store(seed=1)
        model = Click(store)
        rows = modules.RowOptimizer(model, deferred=backend == 'eager')
        function = self.compiled(model, backend, dynamic=True) if backend else model
        optimizer, losses = torch.optim.SGD(model.parameters(), 0.1), []
        for at in range(5):
            keys = torch.randint(0, 9, (4 + at, 3), generator=torch.Generator().manual_seed(at))
            loss = (function({'user': keys, 'tags': keys, 'seen': keys}, keys) - 1).square().mean()
            for one in (optimizer, rows):
                one.zero_grad()
            loss.backward()
            for one in (optimizer, rows):
                one.step()
            losses.append(loss.item())
        counts = [len(store.table(name)) for name in store.tables()]
        model.eval()
        keys += 100
        losses.append(function({'user': keys, 'tags': keys, 'seen': keys}, keys).sum().item())
        model.train().requires_grad_(False)
        for module in (model.features, model.bag, model.rows):
            module.requires_grad_(False)
        model.requires_grad_(True)  # torch has no lookup among the parameters
        frozen = function({'user': keys, 'tags': keys, 'seen': keys}, keys).sum()
        optimizer.zero_grad()
        frozen.backward()
        losses.append(sum(one.grad.abs().sum().item() for one in model.parameters()))
        self.assertEqual([len(store.table(name)) for name in store.tables()], counts)
        return losses

    def test_a_click_model_has_the_losses_of_an_eager_one(self):
        expected = self.losses(None)
        self.assertLess(expected[4], expected[0])
        for backend in ('eager', 'aot_eager'):
            with self.subTest(backend):
                close(self.losses(backend), expected)

    @unittest.skipUnless(shutil.which(os.environ.get('CXX', 'g++')), 'there is no C++ compiler')
    def test_the_compiler_of_torch_keeps_the_steps(self):
        store = embank.Store(seed=1)
        module = embedding(store)
        weight = self.fill(module.table)
        with (tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(),
              mock.patch.dict(os.environ, TORCHINDUCTOR_CACHE_DIR=folder)):
            warnings.simplefilter('ignore')
            function = self.compiled(lambda keys: weighted_sum(module(keys) * module(keys)),
                                     'inductor', options={'compile_threads': 1})
            function(KEYS).backward()
        weighted_sum(weight[KEYS] * weight[KEYS]).backward()
        self.assert_step_is(module.table, weight.grad)

    def test_what_is_refused(self):
        module = bag(self.store)
        function = self.compiled(module)
        loss = function(KEYS, ENDS).sum()
        loss.backward(retain_graph=True)
        self.assert_refused(RuntimeError, 'backward was called twice', loss.backward)
        single = modules.Embedding(self.store, 'one', 1, optimizer='sgd', lr=1.0)
        self.assert_fails_once(single.table, self.compiled(single)(torch.tensor([1, 2])))
        self.compiled(single)(KEYS).sum().backward()
        self.assert_refused(ValueError, 'is 9; offsets', function, KEYS, torch.tensor([0, 9]))
        self.assert_refused(TypeError, 'has dtype torch.float32', function, KEYS.float(), ENDS)
        with self.assertRaisesRegex(Exception, 'weights have no gradient within torch.compile'):
            function(KEYS, ENDS, torch.ones(6, requires_grad=True))
        features = collection(self.store, include_last_offset=False)
        with self.assertRaisesRegex(Exception, 'include_last_offset=True alone'):
            self.compiled(of_jagged(features))(PACKED.values(), PACKED.offsets())
        single = modules.EmbeddingBagCollection(self.store, {'user': DIM, 'tags': DIM}, **SGD)
        with self.assertRaisesRegex(embank.UnimplementedError, 'the same number of bags'):
            self.compiled(of_dict(single))({'user': KEYS, 'tags': KEYS[:2]})


if __name__ == '__main__':
    unittest.main()
