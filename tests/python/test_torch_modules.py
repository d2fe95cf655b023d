"""Embedding and EmbeddingBag have the values and gradients of torch.nn, or refuse by name."""
import copy
import pickle
import unittest

import embank
import numpy as np
from torch_rows import (DIM, KEYS, RATE, ROWS, SGD, RowsCase, close, modules, rows_of, torch,
                        weighted_sum)

nn = torch.nn
NONE = torch.zeros(0, dtype=torch.int64)


def keys(*numbers):
    return torch.tensor(numbers)


FLAT, PAIRS = keys(1, 2, 2, 5, 9, 1), keys(1, 2, 2, 5, 9, 1).view(3, 2)
EMBEDDING_CASES = {
    'one key': ({}, torch.tensor(3)),
    'keys twice': ({}, keys(3, 7, 3)),
    'three dimensions': ({}, FLAT.view(3, 1, 2)),
    'int32': ({}, FLAT.int()),
    'no key': ({}, NONE),
    'rows of no key': ({}, NONE.view(2, 0)),
    'padding_idx': ({'padding_idx': 2}, PAIRS),
    'padding alone': ({'padding_idx': 2}, keys(2, 2)),
}
BAG_CASES = {
    'two dimensions': ({}, (PAIRS,)),
    'one key each': ({}, (FLAT.view(6, 1),)),
    'offsets': ({}, (FLAT, keys(0, 3, 5))),
    'empty bags': ({}, (FLAT, keys(0, 0, 3, 3, 6))),
    'int32': ({}, (FLAT.int(), keys(0, 4).int())),
    'int32 keys': ({}, (FLAT.int(), keys(0, 4))),
    'int32 offsets': ({}, (FLAT, keys(0, 4).int())),
    'include_last_offset': ({'include_last_offset': True}, (FLAT, keys(0, 2, 2, 6))),
    'bags without a key': ({}, (NONE, keys(0, 0, 0))),
    'no bag': ({}, (NONE, NONE)),
    'no bag of two': ({}, (NONE.view(0, 2),)),
    'no bag, but its end': ({'include_last_offset': True}, (NONE, keys(0))),
    'padding_idx': ({'padding_idx': 2}, (FLAT, keys(0, 3, 3))),
    'a bag of padding': ({'padding_idx': 2}, (FLAT, keys(0, 1, 3))),
    'padding in two dimensions': ({'padding_idx': 2}, (PAIRS,)),
}
WEIGHTS = torch.tensor([0.5, 2.0, -1.0, 3.0, 0.0, 1.5])
WEIGHT_CASES = {
    'offsets': ({}, (FLAT, keys(0, 3, 3))),
    'two dimensions': ({}, (PAIRS, None)),
    'padding_idx': ({'padding_idx': 2}, (FLAT, keys(0, 3))),
    'include_last_offset': ({'include_last_offset': True}, (FLAT, keys(0, 2, 6))),
}
REFUSED_ARGUMENTS = {
    'num_embeddings': 5, 'max_norm': 1.0, 'norm_type': 2.0, 'scale_grad_by_freq': True,
    'sparse': True, '_weight': torch.zeros(2, DIM), 'dtype': torch.float16, '_freeze': True,
}
INVALID_ARGUMENTS = (
    ({'padding_idx': 1 << 64}, ValueError, 'padding_idx is 18446744073709551616'),
    ({'padding_idx': 2.0}, TypeError, 'padding_idx is 2.0; it must be an int'),
    ({'padding_idx': True}, TypeError, 'padding_idx is True; it must be an int'),
    ({'device': 'meta'}, embank.UnimplementedError, "device is 'meta'"),
    ({'device': 'cuda:0'}, embank.FailedPreconditionError, 'that of the store is none'),
    ({'max_nrom': 1.0}, TypeError, 'max_nrom'),
)
INVALID_KEYS = (
    ([1, 2], TypeError, 'is a list; it must be a tensor'),
    (torch.tensor([1.0]), TypeError, 'has dtype torch.float32; it must be torch.int64'),
    (torch.tensor([True]), TypeError, 'has dtype torch.bool'),
    (FLAT[::2], ValueError, r'the strides \(2,\); it must be contiguous'),
    (FLAT.to_sparse(), ValueError, 'torch.sparse_coo; it must be contiguous'),
    (torch.empty(2, dtype=torch.int64, device='meta'), TypeError, 'is on meta'),
)
INVALID_BAGS = (
    ({}, (FLAT,), ValueError, 'offsets is None, and input has one dimension'),
    ({}, (PAIRS.view(1, 2, 3),), ValueError, r'has the shape \(1, 2, 3\)'),
    ({}, (PAIRS, keys(0, 3)), ValueError, r'has the shape \(3, 2\)'),
    ({}, (FLAT, keys(1, 3)), ValueError, 'begins with 1; it must be 0'),
    ({}, (FLAT, keys(0, 7)), ValueError, 'is 7; offsets'),
    ({}, (FLAT, keys(0, 5, 2)), ValueError, 'is 2; offsets begin with 0, never fall'),
    ({}, (FLAT, keys(0, 3).view(1, 2)), ValueError, r'offsets of t has the shape \(1, 2\)'),
    ({}, (FLAT, torch.tensor([0.0])), TypeError, 'offsets of t has dtype torch.float32'),
    ({}, (FLAT, [0, 3]), TypeError, 'offsets of t is a list'),
    ({'include_last_offset': True}, (FLAT, NONE), ValueError, r'has the shape \(0,\)'),
    ({'include_last_offset': True}, (FLAT, keys(-1, 3)), ValueError, 'begins with -1'),
    ({'include_last_offset': True}, (FLAT, keys(0, 7)), ValueError, 'ends with 7'),
    ({}, (FLAT, keys(0), WEIGHTS[:5]), ValueError, r'weights of t has the shape \(5,\)'),
    ({}, (PAIRS, None, WEIGHTS), ValueError, r'that of the keys, \(3, 2\)'),
    ({}, (FLAT, keys(0), WEIGHTS.double()), TypeError, 'weights of t has dtype torch.float64'),
    ({}, (FLAT, keys(0), [1.0]), TypeError, 'weights of t is a list'),
    ({'mode': 'sqrtn'}, (FLAT, keys(0), WEIGHTS), ValueError, "need pooling 'sum' or 'mean'"),
    ({'mode': 'mean'}, (FLAT, keys(0), WEIGHTS.clone().requires_grad_()), ValueError,
     'which only pooling sum has'),
)


class Modules(RowsCase):
    def assert_as_torch(self, module, theirs, arguments, weights=None):
        """Equal outputs, and one step by equal gradients, also of weights."""
        table = module.table
        both = [module(*arguments), theirs(*arguments)]
        if weights is not None:
            weights = [weights.clone().requires_grad_() for _ in both]
            both = [one(*arguments, weight) for one, weight in zip((module, theirs), weights)]
        self.assertEqual(both[0].shape, both[1].shape)
        close(both[0].detach(), both[1].detach())
        for outputs in both:
            weighted_sum(outputs).backward()
        self.assert_step_is(table, theirs.weight.grad)
        if weights is not None:
            close(weights[0].grad, weights[1].grad)

    def test_embedding(self):
        for name, (options, batch) in EMBEDDING_CASES.items():
            with self.subTest(name):
                module = modules.Embedding(self.store, name, DIM, **SGD, **options)
                weight = self.fill(module.table).detach()
                padding = options.get('padding_idx')
                if padding is not None:
                    weight[padding] = 0
                theirs = nn.Embedding(ROWS, DIM, _weight=weight, **options)
                self.assert_as_torch(module, theirs, (batch,))

    def test_bags(self):
        for mode in ('sum', 'mean'):
            for name, (options, batch) in BAG_CASES.items():
                with self.subTest(name, mode=mode):
                    module = modules.EmbeddingBag(self.store, f'{name} {mode}', DIM, mode=mode,
                                                  **SGD, **options)
                    theirs = nn.EmbeddingBag(ROWS, DIM, mode=mode, **options,
                                             _weight=self.fill(module.table).detach())
                    self.assert_as_torch(module, theirs, batch)

    def test_weights_of_samples(self):
        for name, (options, batch) in WEIGHT_CASES.items():
            with self.subTest(name):
                module = modules.EmbeddingBag(self.store, name, DIM, mode='sum', **SGD, **options)
                theirs = nn.EmbeddingBag(ROWS, DIM, mode='sum', **options,
                                         _weight=self.fill(module.table).detach())
                weights = WEIGHTS if batch[1] is not None else WEIGHTS.view(3, 2)
                self.assert_as_torch(module, theirs, batch, weights)

    def test_bags_that_torch_has_not(self):
        bags = [FLAT[:3], FLAT[3:]]
        module = modules.EmbeddingBag(self.store, 'sqrtn', DIM, mode='sqrtn', **SGD)
        weight = self.fill(module.table)
        expected = [weight[bag].sum(0) / len(bag) ** 0.5 for bag in bags]
        wide = modules.EmbeddingBag(self.store, 'weighted mean', DIM, **SGD)
        of_mean = self.fill(wide.table)
        parts = [WEIGHTS[:3], WEIGHTS[3:]]
        weighted = [part @ of_mean[bag] / part.sum() for part, bag in zip(parts, bags)]
        for ours, theirs, table, start in (
                (module(FLAT, keys(0, 3)), expected, module.table, weight),
                (wide(FLAT, keys(0, 3), WEIGHTS), weighted, wide.table, of_mean)):
            with self.subTest(table=table.name):
                theirs = torch.stack(theirs)
                close(ours.detach(), theirs.detach())
                for outputs in (ours, theirs):
                    weighted_sum(outputs).backward()
                self.assert_step_is(table, start.grad)

    def test_offsets_may_be_of_a_part_of_the_keys(self):
        module = modules.EmbeddingBag(self.store, 't', DIM, include_last_offset=True, **SGD)
        self.fill(module.table)
        close(module(FLAT, keys(1, 3, 4)).detach(), module(FLAT[1:4], keys(0, 2, 3)).detach())

    def test_gradients_are_those_of_finite_differences(self):
        for mode in ('sum', 'mean', 'sqrtn'):
            with self.subTest(mode=mode):
                module = modules.EmbeddingBag(self.store, mode, DIM, mode=mode, **SGD)
                self.fill(module.table)

                def loss():
                    return module(FLAT, keys(0, 3)).square().sum()

                differences = np.zeros((ROWS, DIM))
                module.eval()
                for key, column in np.ndindex(10, DIM):
                    ends = []
                    for change in (-1 / 64, 1 / 64):
                        row = self.weight[key:key + 1].copy()
                        row[0, column] += change
                        module.table.upsert(KEYS[key:key + 1], row)
                        ends.append(float(loss()))
                    differences[key, column] = (ends[1] - ends[0]) * 32
                    self.fill(module.table)
                module.train()
                loss().backward()
                step = (self.weight - rows_of(module.table)) / RATE
                np.testing.assert_allclose(step, differences, rtol=0.01, atol=0.01)

    def test_weights_of_frozen_rows_pass_gradcheck(self):
        module = modules.EmbeddingBag(self.store, 't', DIM, mode='sum', **SGD)
        self.fill(module.table)
        module.requires_grad_(False)
        weights = WEIGHTS.double().requires_grad_()
        self.assertTrue(torch.autograd.gradcheck(
            lambda one: module(FLAT, keys(0, 0, 4), one.float()).double(), weights, eps=1 / 16,
            atol=1e-3))
        self.assert_step_is(module.table, 0)

    def test_rows_of_16_bits(self):
        for value_type, dtype in (('f16', torch.float16), ('bf16', torch.bfloat16)):
            with self.subTest(value_type):
                module = modules.Embedding(self.store, value_type, DIM, value_type=value_type,
                                           **SGD)
                weight = torch.tensor(self.weight).to(dtype)
                module.table.upsert(torch.arange(ROWS), weight)
                rows = module(FLAT)
                self.assertEqual((rows.dtype, rows.tolist()), (dtype, weight[FLAT].tolist()))
                rows.float().sum().backward()
                count = np.bincount(FLAT, minlength=ROWS)[:, None]
                found = module.eval()(torch.tensor(KEYS)).float()
                np.testing.assert_allclose(found, weight.float().numpy() - RATE * count, rtol=0.01,
                                           atol=0.01)
                bag = modules.EmbeddingBag(self.store, value_type, DIM, value_type=value_type,
                                           mode='sum', **SGD)
                pooled = bag(FLAT, keys(0))
                self.assertEqual({pooled.dtype, bag(FLAT.view(6, 1)).dtype}, {torch.float32})
                close(pooled.detach()[0], found[FLAT].sum(0))

    def test_outputs_may_be_changed_in_place(self):
        module = modules.Embedding(self.store, 't', DIM, **SGD)
        weight = self.fill(module.table)
        weighted_sum(module(FLAT).mul_(2)).backward()
        weighted_sum(nn.functional.embedding(FLAT, weight).mul_(2)).backward()
        self.assert_step_is(module.table, weight.grad)

    def test_steps_of_adagrad(self):
        module = modules.EmbeddingBag(self.store, 't', DIM, optimizer='adagrad', lr=0.1)
        theirs = nn.EmbeddingBag(ROWS, DIM, _weight=self.fill(module.table).detach())
        optimizer = torch.optim.Adagrad(theirs.parameters(), 0.1)
        for offset in (2, 3, 4):
            for one in (module, theirs):
                weighted_sum(one(FLAT, keys(0, offset))).backward()
            optimizer.step()
            optimizer.zero_grad()
        close(rows_of(module.table), theirs.weight.detach())

    def test_from_pretrained(self):
        for kind, batch in ((modules.Embedding, (PAIRS,)), (modules.EmbeddingBag, (PAIRS,))):
            for freeze in (True, False):
                with self.subTest(kind.__name__, freeze=freeze):
                    module = kind.from_pretrained(
                        self.store, f'{kind.__name__} {freeze}', torch.tensor(self.weight),
                        freeze=freeze, padding_idx=9, **SGD)
                    weight = torch.tensor(self.weight)
                    weight[9] = 0
                    theirs = getattr(nn, kind.__name__).from_pretrained(weight, freeze=freeze,
                                                                        padding_idx=9)
                    outputs = module(*batch), theirs(*batch)
                    close(outputs[0].detach(), outputs[1].detach())
                    self.assertEqual(outputs[0].requires_grad, outputs[1].requires_grad)
        moved = modules.Embedding.from_pretrained(self.store, 'moved', torch.ones(2, DIM),
                                                  keys=keys(-1, 7))
        self.assertEqual(moved(keys(7, -1, 0)).sum(1).tolist()[:2], [DIM, DIM])
        self.assertEqual(len(moved.table), 2)
        for rows, options, error, text in (
                (torch.ones(2), {}, ValueError, r'embeddings has the shape \(2,\)'),
                (torch.ones(2, 2).double(), {}, TypeError, 'embeddings has dtype torch.float64'),
                (torch.ones(2, 2), {'keys': keys(1)}, ValueError, r'keys has the shape \(1,\)'),
                (torch.ones(2, 2), {'sparse': True}, embank.UnimplementedError, 'sparse')):
            with self.subTest(text):
                self.assert_refused(error, text, modules.EmbeddingBag.from_pretrained, self.store,
                                    'new', rows, **options)

    def test_attributes(self):
        module = modules.EmbeddingBag(self.store, 't', DIM, mode='sum', padding_idx=-1)
        self.assertEqual((module.embedding_dim, module.padding_idx, module.mode,
                          module.include_last_offset), (DIM, -1, 'sum', False))
        self.assertEqual(list(module.parameters()), [])
        modules.Embedding(self.store, 't', DIM, lr=0.125)
        self.assertEqual(module.table.learning_rate, 0.125)
        for name in ('weight', 'reset_parameters', *REFUSED_ARGUMENTS):
            with self.assertRaisesRegex(AttributeError, f'EmbeddingBag has no {name}: '):
                getattr(module, name)

    def test_what_is_refused(self):
        for kind in (modules.Embedding, modules.EmbeddingBag):
            for name, value in REFUSED_ARGUMENTS.items():
                with self.subTest(kind.__name__, name=name):
                    self.assert_refused(embank.UnimplementedError, f'{name} is not there: ', kind,
                                        self.store, 'new', DIM, **{name: value})
            for options, error, text in INVALID_ARGUMENTS:
                with self.subTest(kind.__name__, options=options):
                    self.assert_refused(error, text, kind, self.store, 'new', DIM, **options)
        for mode, error in (('max', embank.UnimplementedError), ('median', ValueError),
                            (None, ValueError)):
            self.assert_refused(error, 'must be one of', modules.EmbeddingBag, self.store, 'new',
                                DIM, mode=mode)
        self.assert_refused(TypeError, 'store is a dict', modules.Embedding, {}, 'new', DIM)

    def test_batches_that_are_refused(self):
        single = modules.Embedding(self.store, 'single', DIM, **SGD)
        for batch, error, text in INVALID_KEYS:
            with self.subTest(text):
                self.assert_refused(error, text, single, batch)
                bag = modules.EmbeddingBag(self.store, 't', DIM, **SGD)
                self.assert_refused(error, text, bag, batch, keys(0))
        for options, batch, error, text in INVALID_BAGS:
            with self.subTest(text, options=options):
                bag = modules.EmbeddingBag(self.store, 't', DIM, **{'mode': 'sum', **options},
                                           **SGD)
                self.assert_refused(error, text, bag, *batch)
                self.assertEqual(len(bag.table), 0)

    def test_gradients_that_are_refused(self):
        module = modules.Embedding(self.store, 't', DIM, **SGD)
        self.fill(module.table)
        for factor in (np.nan, np.inf):
            outputs = module(FLAT)
            self.assert_refused(ValueError, 'row 0 .* has a NaN or an infinity',
                                (outputs * factor).sum().backward)
        changed = FLAT.clone()
        outputs = module(changed)
        changed[0] = 7
        self.assert_refused(embank.FailedPreconditionError, 'changed in place',
                            outputs.sum().backward)
        outputs = module(FLAT).sum()
        outputs.backward(retain_graph=True)
        self.assert_refused(embank.FailedPreconditionError, 'backward was called twice',
                            outputs.backward)

    def test_a_step_that_fails_in_the_middle_is_made_once(self):
        module = modules.Embedding(self.store, 't', 1, optimizer='sgd', lr=1.0)
        self.assert_fails_once(module.table, module(keys(1, 2)))

    def test_a_gradient_of_other_inputs_steps_no_row(self):
        module = modules.Embedding(self.store, 't', DIM, **SGD)
        weight, factor = self.fill(module.table), torch.ones(6, DIM, requires_grad=True)
        gradient, = torch.autograd.grad(weighted_sum(module(FLAT) * factor), factor)
        close(gradient, torch.autograd.grad(weighted_sum(weight[FLAT] * factor), factor)[0])
        self.assert_step_is(module.table, 0)

    def test_forwards_that_create_nothing(self):
        module = modules.Embedding(self.store, 't', DIM, init=('constant', 3), **SGD)

        def frozen():
            outputs = module.requires_grad_(False)(FLAT)
            module.requires_grad_(True)
            return outputs

        def evaluated():
            outputs = module.eval()(FLAT)
            module.train()
            return outputs

        for forward in (frozen, evaluated, torch.no_grad()(lambda: module(FLAT)),
                        torch.inference_mode()(lambda: module(FLAT))):
            outputs = forward()
            self.assertEqual((len(module.table), outputs.requires_grad), (0, False))
            self.assertTrue((outputs == 3).all())
        module(FLAT)
        self.assertEqual(len(module.table), 4)

    def test_keys_that_change_after_a_batch_of_inference_mode(self):
        bag = modules.EmbeddingBag(self.store, 't', DIM, include_last_offset=True)
        keys = torch.tensor([[1, 2], [3, 4]])
        with torch.inference_mode():
            bag(keys)
            ends = torch.tensor([0, 2, 4])
        for batch in ((keys,), (keys.view(-1), ends)):
            loss = bag(*batch).sum()
            keys.add_(1)
            self.assert_refused(embank.FailedPreconditionError, 'changed in place', loss.backward)

    def test_copies_are_refused(self):
        bag = modules.EmbeddingBag(self.store, 't', DIM)
        model = nn.Sequential(bag, nn.Linear(DIM, 1))
        for copied in (copy.copy, copy.deepcopy, pickle.dumps):
            self.assert_refused(TypeError, 'cannot be copied or pickled', copied, bag)
        with self.assertRaisesRegex(TypeError, 'cannot be copied or pickled'):
            copy.deepcopy(model)
        state = model.state_dict()
        model.load_state_dict(pickle.loads(pickle.dumps(state)))
        other = nn.Sequential(modules.EmbeddingBag(self.store, 'u', DIM), nn.Linear(DIM, 1))
        self.assert_refused(embank.FailedPreconditionError, 'the state is of the tables',
                            other.load_state_dict, state)


if __name__ == '__main__':
    unittest.main()
