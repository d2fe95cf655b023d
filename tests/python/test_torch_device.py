"""Modules on cuda:0, which is the twin of a store, have the bits of modules on the CPU.

So these tests need no CUDA: they make the calls for device memory, without a kernel or a stream.
"""
import unittest

import embank
import numpy as np
from test_torch_collection import ALIKE_FORMS, FORMS, MODES
from test_torch_modules import BAG_CASES, EMBEDDING_CASES, FLAT, PAIRS, WEIGHT_CASES, WEIGHTS
from torch_rows import DIM, KEYS, ROWS, SGD, Jagged, RowsCase, bits, jagged, modules, rows_of, torch
from twin_tensors import CUDA, TwinDevice, tensors_of

HOT = 4  # The rows of so many keys are in device memory: 1, 2 and 3 are, and not 5, 7 and 9.


def on(device, value):
    """A batch whose tensors are on a device."""
    if isinstance(value, torch.Tensor):
        return value.detach().to(device).requires_grad_(value.requires_grad)
    if isinstance(value, dict):
        return {name: on(device, one) for name, one in value.items()}
    if isinstance(value, Jagged):
        return Jagged(*on(device, value._parts))
    return tuple(on(device, one) for one in value) if isinstance(value, tuple) else value


def outputs_of(module, batch):
    found = module(*batch)
    return [found] if isinstance(found, torch.Tensor) else [found[name] for name in found.keys()]


def cases():
    """The kind, arguments, options and batch of modules."""
    rows, bag, many = modules.Embedding, modules.EmbeddingBag, modules.EmbeddingBagCollection
    halves = {value_type: ({'value_type': value_type}, PAIRS) for value_type in ('f16', 'bf16')}
    for options, keys in (*EMBEDDING_CASES.values(), *halves.values(), ({}, FLAT + ROWS)):
        yield rows, ('t', DIM), options, (keys,)
    for mode in ('sum', 'mean', 'sqrtn'):
        for options, batch in (*BAG_CASES.values(), (halves['f16'][0], (PAIRS,))):
            yield bag, ('t', DIM), {'mode': mode, **options}, batch
    for mode in ('sum', 'mean'):  # Weights of mean have no gradient.
        for options, (keys, ends) in WEIGHT_CASES.values():
            weights = WEIGHTS.view(keys.shape).clone().requires_grad_(mode == 'sum')
            yield bag, ('t', DIM), {'mode': mode, **options}, (keys, ends, weights)
    modes = {name: (DIM, mode) for name, mode in MODES.items()}
    weighted, wanted = (jagged(list(MODES), weighted=True) for _ in range(2))
    wanted.weights_or_none().requires_grad_()
    for batch in (*FORMS.values(), *(form for form, _ in ALIKE_FORMS.values()), weighted):
        yield many, (modes,), {}, (batch,)
    yield many, (dict.fromkeys(MODES, DIM),), {}, (wanted,)


class Devices(RowsCase):
    def setUp(self):
        super().setUp()
        self.twin = embank.Store(seed=1, hbm_bytes='4MiB')
        self.device = TwinDevice(self.twin)
        used = self.device.used()
        used.__enter__()
        self.addCleanup(used.__exit__, None, None, None)

    def pair(self, kind, *arguments, **options):
        """A module on the CPU and one on cuda:0, with the same rows, some in device memory."""
        pair = [kind(store, *arguments, device=device, **SGD, **options)
                for store, device in ((self.store, 'cpu'), (self.twin, 'cuda:0'))]
        for module in pair:
            for column in module._columns:
                rows = torch.tensor(self.weight).to(column.dtype)
                column.table.upsert(KEYS[:HOT], rows[:HOT])
                if module is pair[1]:
                    self.twin.flush_hot()
                    self.assertEqual(column.table.info.rows_hbm, HOT)
                column.table.upsert(KEYS[HOT:], rows[HOT:])
        return pair

    def assert_same_rows(self, pair):
        for ours, theirs in zip(*(module.tables.values() for module in pair), strict=True):
            np.testing.assert_array_equal(bits(rows_of(ours)), bits(rows_of(theirs)))

    def trained(self, module, batch, is_deferred):
        """The outputs and gradients of weights of two steps, or of one that is deferred."""
        optimizer = None if is_deferred is None else modules.RowOptimizer(
            module, deferred=is_deferred)
        found = []
        for factor in (1, 2):
            here, self.device.streams = on(module.device, batch), []
            outputs = outputs_of(module, here)
            gradients = [(torch.arange(1.0, 1 + one.numel()) * factor / 8).view(one.shape).to(
                one.dtype).to(module.device) for one in outputs]
            torch.autograd.backward(outputs, gradients)
            self.assertEqual({one.device for one in outputs}, {module.device})
            self.assertEqual(self.device.streams, [CUDA] * (1 if is_deferred else 2)
                             if module.device == CUDA else [])
            parts = tensors_of([getattr(one, '_parts', one) for one in here])
            found += [*outputs, *(one.grad for one in parts if one.requires_grad)]
        if is_deferred:
            parameters = [one for group in optimizer.param_groups for one in group['params']]
            self.assertEqual({one.device for one in parameters}, {module.device})
            found.append(torch.nn.utils.clip_grad_norm_(parameters, 1.0))
            optimizer.step()
        return map(bits, found)

    def test_bits_are_those_of_the_cpu(self):
        for kind, arguments, options, batch in cases():
            optimizers = (None, False, True) if kind is modules.EmbeddingBagCollection else (None,)
            for is_deferred in optimizers:
                with self.subTest(kind.__name__, options=options, batch=batch,
                                  is_deferred=is_deferred):
                    pair = self.pair(kind, *arguments, **options)
                    found = [self.trained(one, batch, is_deferred) for one in pair]
                    for ours, theirs in zip(*found, strict=True):
                        np.testing.assert_array_equal(ours, theirs)
                    self.assert_same_rows(pair)
                for store in (self.store, self.twin):
                    for table in store.tables():
                        store.drop_table(table)

    def test_forwards_that_create_nothing(self):
        def without_grad(module, batch):
            with torch.no_grad():
                return module(batch)

        found = []
        for forward in (without_grad, lambda module, batch: module.eval()(batch),
                        lambda module, batch: module.requires_grad_(False)(batch)):
            for module in self.pair(modules.Embedding, 't', DIM):
                found.append(forward(module, on(module.device, FLAT + ROWS)))
                self.assertEqual((len(module.table), found[-1].device, found[-1].requires_grad),
                                 (ROWS, module.device, False))
            for store in (self.store, self.twin):
                store.drop_table('t')
        for outputs in found:
            np.testing.assert_array_equal(bits(outputs), bits(found[0]))

    def test_a_prefetcher_and_gradients_that_are_not_contiguous(self):
        pair = self.pair(modules.EmbeddingBagCollection, {'a': DIM, 'b': DIM})
        losses = (lambda a, b: (a + b).sum(), lambda a, b: torch.cat([a, b], 1).square().sum())
        for module in pair:
            loader = [{'sparse': on(module.device, {'a': PAIRS + at, 'b': PAIRS})}
                      for at in range(2)]
            for batch, loss in zip(modules.Prefetcher(loader, module), losses):
                loss(*outputs_of(module, [batch['sparse']])).backward()
        self.assert_same_rows(pair)

    def test_what_the_library_refuses_changes_nothing(self):
        _, module = self.pair(modules.Embedding, 't', DIM)
        before, batch = rows_of(module.table), on(CUDA, FLAT)
        for call in (lambda: module(batch), module(batch).sum().backward):
            self.device.stream = 64  # is none of the twin's
            with self.assertRaisesRegex(embank.InvalidArgumentError, 'stream'):
                call()
            self.device.stream = 0
        self.device.has_gradients = False
        with self.assertRaisesRegex(embank.InvalidArgumentError, "memory of the store's device"):
            module(batch).sum().backward()
        np.testing.assert_array_equal(rows_of(module.table), before)

    def test_tensors_on_another_device(self):
        bags = self.pair(modules.EmbeddingBag, 'bag', DIM, mode='sum')
        both = self.pair(modules.EmbeddingBagCollection, {'a': DIM, 'b': DIM})
        for at, (ours, theirs) in enumerate((('cpu', 'cuda:0'), ('cuda:0', 'cpu'))):
            parts = FLAT, torch.tensor([0, 2, 6]), WEIGHTS
            for wrong in range(3):
                batch = [on(theirs if wrong == number else ours, one)
                         for number, one in enumerate(parts)]
                alike = dict.fromkeys('ab', batch[0])
                for module, value in ((bags[at], batch), (both[at], [Jagged(['a'], *batch)]),
                                      (both[at], [{'a': tuple(batch), 'b': batch[0]}]),
                                      *([(both[at], [alike])] if wrong == 0 else [])):
                    with self.assertRaisesRegex(TypeError, f'is on {theirs}, and the rows of this '
                                                f'module on {ours}: call .to'):
                        module(*value)
        # These tensors notice a module that mixes devices.
        with self.assertRaisesRegex(RuntimeError, 'devices cpu and cuda:0'):
            on(CUDA, FLAT) + FLAT


if __name__ == '__main__':
    unittest.main()
