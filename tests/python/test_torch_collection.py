"""EmbeddingBagCollection: all forms of a batch, shared tables, and dense parts of ranks."""
import tempfile
import unittest

import embank
from torch_rows import (BAGS, DIM, RATE, SGD, Jagged, RowsCase, close, flat, jagged, modules, torch,
                        weighted_sum)

nn = torch.nn
MODES = {'user': 'sum', 'tags': 'mean', 'seen': 'sum'}

FORMS = {
    'dict': {name: flat(bags) for name, bags in BAGS.items()},
    'dict of int32': {name: flat(bags, torch.int32) for name, bags in BAGS.items()},
    'dict with matrices': {'user': torch.tensor([3, 4, 3]), 'tags': flat(BAGS['tags']),
                           'seen': torch.zeros(3, 0, dtype=torch.int64)},
    'dict in another order': {name: flat(BAGS[name]) for name in ('seen', 'user', 'tags')},
    'dict with no weights': {name: (*flat(bags), None) for name, bags in BAGS.items()},
    'jagged': jagged(['user', 'tags', 'seen']),
    'jagged of int32': jagged(['user', 'tags', 'seen'], torch.int32),
    'jagged of more features': jagged(['other', 'seen', 'user', 'more', 'tags']),
}
# Batches that the module takes in a faster way: keys that are alike, and bags of one key.
SINGLE = {'user': [[3], [7], [3]], 'tags': [[1], [3], [2]], 'seen': [[9], [9], [0]]}
ALIKE_FORMS = {
    'vectors': ({name: flat(bags)[0] for name, bags in SINGLE.items()}, SINGLE),
    'columns': ({name: flat(bags)[0][:, None] for name, bags in SINGLE.items()}, SINGLE),
    'matrices': (dict.fromkeys(BAGS, torch.tensor([[3, 4], [4, 4], [0, 9]])),
                 dict.fromkeys(BAGS, [[3, 4], [4, 4], [0, 9]])),
    'jagged': (Jagged(['tags', 'user', 'seen'], torch.cat([flat(SINGLE[name])[0] for name in (
        'tags', 'user', 'seen')]), torch.arange(10)), SINGLE),
    'jagged of two and none': (Jagged(['tags', 'user', 'seen'], torch.arange(9), torch.tensor(
        [0, 2, 2, 3, 4, 5, 6, 7, 8, 9])), {'tags': [[0, 1], [], [2]], 'user': [[3], [4], [5]],
                                           'seen': [[6], [7], [8]]}),
}
KEYS, ENDS = torch.tensor([1, 2]), torch.tensor([0, 1, 2])
WHOLE = {'a': KEYS, 'b': KEYS}
REFUSED = (
    ({'a': KEYS}, ValueError, 'the batch has the features a; the module has a, b'),
    ({**WHOLE, 'c': KEYS}, ValueError, 'the batch has the features a, b, c'),
    ({**WHOLE, 'b': (KEYS,)}, ValueError, 'b has 1 parts; it must be'),
    ({**WHOLE, 'b': (KEYS, ENDS, None, None)}, ValueError, 'b has 4 parts'),
    ({**WHOLE, 'b': (KEYS, ENDS * 2)}, ValueError, 'offsets of b ends with 4; there are 2'),
    ({**WHOLE, 'b': [1, 2]}, TypeError, 'b is a list'),
    ({**WHOLE, 'b': KEYS.float()}, TypeError, 'b has dtype torch.float32'),
    ({**WHOLE, 'b': KEYS.to_sparse()}, ValueError, r'b .* strides torch.sparse_coo; it must be'),
    (KEYS, TypeError, r'the batch is a Tensor without keys\(\)'),
    (Jagged(['a'], KEYS, ENDS), ValueError, 'the batch has no feature b; it has a'),
    (Jagged(['a', 'b'], KEYS, ENDS[:2]), ValueError, 'one number more than 2 features times'),
    (Jagged(['a', 'b'], KEYS, ENDS * 2), ValueError, 'offsets ends with 4; there are 2 keys'),
    (Jagged(['a', 'b'], KEYS, torch.tensor([0, 2, 1])), ValueError, 'offsets of b go from 2 to 1'),
    (Jagged(['a', 'b'], KEYS, ENDS, torch.ones(3)), ValueError, r'weights has the shape \(3,\)'),
    (Jagged(['a', 'b'], KEYS.float(), ENDS), TypeError, 'values has dtype torch.float32'),
    (Jagged(['a', 'b'], KEYS, ENDS.float()), TypeError, 'offsets has dtype torch.float32'),
)


class Collections(RowsCase):
    def collection(self, name, features, **options):
        """A collection whose tables are new, and weights of torch with their rows."""
        tables = {feature: self.store.table(f'{name} {feature}', dim=DIM, optimizer='sgd',
                                            learning_rate=RATE) for feature in features}
        weights = {feature: self.fill(table) for feature, table in tables.items()}
        parts = {feature: (tables[feature], mode) for feature, mode in features.items()}
        return modules.EmbeddingBagCollection(self.store, parts, **options), tables, weights

    def expected(self, weights, samples=None, bags_of=BAGS):
        pooled = {}
        for name, bags in bags_of.items():
            keys, offsets = flat(bags)
            pooled[name] = nn.functional.embedding_bag(
                keys, weights[name], offsets, mode=MODES[name], include_last_offset=True,
                per_sample_weights=None if samples is None else samples[name])
        return pooled

    def test_all_forms_of_a_batch(self):
        forms = [(name, (batch, BAGS)) for name, batch in FORMS.items()]
        for number, (name, (batch, bags_of)) in enumerate([*forms, *ALIKE_FORMS.items()]):
            for deferred in (None, True):
                with self.subTest(name, deferred=deferred):
                    collection, tables, weights = self.collection(f'{number} {deferred}', MODES)
                    rows = deferred and modules.RowOptimizer(collection, deferred=True)
                    pooled = collection(batch)
                    theirs = self.expected(weights, bags_of=bags_of)
                    self.assertEqual(list(pooled.keys()), list(MODES))
                    for outputs in (pooled, theirs):
                        sum(factor * weighted_sum(outputs[feature])
                            for factor, feature in enumerate(MODES, 1)).backward()
                    if rows:
                        rows.step()
                    for feature in MODES:
                        close(pooled[feature].detach(), theirs[feature].detach(), feature)
                        self.assert_step_is(tables[feature], weights[feature].grad)

    def test_a_keyed_tensor_has_the_columns_of_features(self):
        collection = modules.EmbeddingBagCollection(self.store, {'user': 2, 'tags': (3, 'mean')})
        batch = {name: flat(BAGS[name]) for name in ('user', 'tags')}
        pooled, one = collection(jagged(['tags', 'user'])), collection(batch)
        self.assertIsInstance(pooled, modules.KeyedTensor)
        self.assertEqual((pooled.keys(), pooled.length_per_key(), pooled.offset_per_key()),
                         (['user', 'tags'], [2, 3], [0, 2, 5]))
        self.assertEqual(pooled.values().tolist(), torch.cat(list(one.values()), 1).tolist())
        for name, rows in pooled.to_dict().items():
            self.assertEqual(rows.tolist(), one[name].tolist())
        with self.assertRaisesRegex(ValueError, "no feature 'x'; there are user, tags"):
            pooled['x']

    def test_weights_of_samples(self):
        features = {name: 'sum' for name in BAGS}
        for form in ('dict', 'jagged', 'frozen'):
            with self.subTest(form):
                collection, tables, weights = self.collection(form, features)
                collection.requires_grad_(form != 'frozen')
                batch = jagged(['tags', 'seen', 'user'], weighted=True)
                samples = batch.weights_or_none().requires_grad_()
                expected = samples.detach().clone().requires_grad_()
                parts = dict(zip(('tags', 'user'), expected.split([5, 3])))
                parts['seen'] = expected[:0]
                if form == 'dict':
                    of_sample = dict(zip(('tags', 'user'), samples.split([5, 3])))
                    batch = {name: (*flat(BAGS[name]), of_sample.get(name, samples[:0]))
                             for name in BAGS}
                pooled, theirs = collection(batch), {}
                for name in BAGS:
                    keys, offsets = flat(BAGS[name])
                    theirs[name] = nn.functional.embedding_bag(
                        keys, weights[name], offsets, mode='sum', include_last_offset=True,
                        per_sample_weights=parts[name])
                for outputs in (pooled, theirs):
                    sum(weighted_sum(outputs[name]) for name in BAGS).backward()
                close(samples.grad, expected.grad)
                for name in BAGS:
                    close(pooled[name].detach(), theirs[name].detach())
                    self.assert_step_is(tables[name],
                                        0 if form == 'frozen' else weights[name].grad)

    def test_features_with_one_table_share_its_rows(self):
        table = self.store.table('shared', dim=DIM, optimizer='sgd', learning_rate=RATE)
        weight = self.fill(table)
        collection = modules.EmbeddingBagCollection(
            self.store, {name: (table, mode) for name, mode in MODES.items()}, padding_idx=2)
        pooled = collection(FORMS['dict'])
        theirs = {name: nn.functional.embedding_bag(
            *flat(bags)[:1], weight, flat(bags)[1], mode=MODES[name], padding_idx=2,
            include_last_offset=True) for name, bags in BAGS.items()}
        for outputs in (pooled, theirs):
            sum(weighted_sum(outputs[name]) for name in BAGS).backward()
        self.assert_step_is(table, weight.grad)
        self.assertEqual(list(collection.tables), ['shared'])

    def test_a_batch_without_a_bag(self):
        collection, _, _ = self.collection('none', MODES)
        none = torch.zeros(0, dtype=torch.int64)
        for batch in ({name: none for name in MODES},
                      Jagged(list(MODES), none, torch.tensor([0]))):
            pooled = collection(batch)
            sum(pooled[name].sum() for name in MODES).backward()
            self.assertEqual({pooled[name].shape for name in MODES}, {(0, DIM)})

    def test_offsets_without_the_end(self):
        collection, _, weights = self.collection('ends', MODES, include_last_offset=False)
        batch = {name: (keys, ends[:-1]) for name, (keys, ends) in FORMS['dict'].items()}
        pooled = collection(batch)
        for name, rows in self.expected(weights).items():
            close(pooled[name].detach(), rows.detach())

    def test_batches_that_are_refused(self):
        collection = modules.EmbeddingBagCollection(self.store, {'a': DIM, 'b': DIM}, **SGD)
        varying = Jagged(['a', 'b'], KEYS, ENDS)
        varying.variable_stride_per_key = lambda: True
        for batch, error, text in (
                *REFUSED, (varying, embank.UnimplementedError, 'different numbers of bags')):
            with self.subTest(text):
                self.assert_refused(error, text, collection, batch)
                self.assertEqual(len(collection.tables['a']), 0)

    def test_features_that_are_refused(self):
        other = embank.Store().table('t', dim=DIM)
        known = modules.Embedding(self.store, 'known', DIM, lr=0.25).table
        for features, options, error, text in (
                ({}, {}, TypeError, 'features is {}'), ([1], {}, TypeError, 'it must be a dict'),
                ({'a': DIM, 'b': (DIM, 'max')}, {}, embank.UnimplementedError, "mode 'max'"),
                ({'a': DIM, 'b': (DIM, 3)}, {}, ValueError, 'mode is 3'),
                ({'a': DIM, 'b': other}, {}, ValueError, 'the table of b is of another store'),
                # The table of a, which was made before, is gone, and known has its rate.
                ({'known': DIM, 'a': DIM, 'b': 0}, {'lr': 0.5}, ValueError, 'dim is 0'),
                ({'a': DIM}, {'padding_idx': 1 << 65}, ValueError, 'padding_idx is 3689'),
                ({'a': DIM}, {'sparse': True}, embank.UnimplementedError, 'sparse')):
            with self.subTest(text):
                self.assert_refused(error, text, modules.EmbeddingBagCollection, self.store,
                                    features, **options)
        self.assertEqual(known.learning_rate, 0.25)


def train(rank, ranks, path, seen):
    """Trains the dense part as one of `ranks` processes, each with rows of its own."""
    torch.set_num_threads(1)
    torch.set_num_threads(1)
    torch.distributed.init_process_group('gloo', init_method=f'file://{path}', rank=rank,
                                         world_size=ranks)
    collection = modules.EmbeddingBagCollection(embank.Store(seed=rank), {'a': DIM}, **SGD)
    torch.manual_seed(rank)
    model = nn.Sequential(collection, Columns(), nn.Linear(DIM, 1))
    parallel = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(parallel.parameters(), 0.1)
    losses = []
    for _ in range(12):
        loss = (parallel({'a': torch.tensor([rank, 5, 6])}) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    seen.put((rank, losses, model[2].weight.tolist(), len(collection.tables['a'])))
    torch.distributed.destroy_process_group()


class Columns(nn.Module):
    """The pooled rows of a dict in one tensor."""

    def forward(self, pooled):
        return torch.cat(list(pooled.values()), dim=1)


@unittest.skipUnless(torch.distributed.is_available(), 'this torch has no torch.distributed')
class Parallel(RowsCase):
    def test_the_dense_part_is_equal_on_all_ranks(self):
        spawn = torch.multiprocessing.get_context('spawn')
        for ranks in (1, 2):
            with self.subTest(ranks=ranks), tempfile.TemporaryDirectory() as folder:
                seen = spawn.SimpleQueue()
                started = [spawn.Process(target=train, args=(rank, ranks, f'{folder}/all', seen))
                           for rank in range(ranks)]
                for process in started:
                    process.start()
                for process in started:
                    process.join()
                self.assertEqual([process.exitcode for process in started], [0] * ranks)
                found = sorted(seen.get() for _ in started)
                for rank, losses, weights, rows in found:
                    self.assertLess(losses[-1], losses[0] / 10)
                    self.assertEqual(weights, found[0][2])
                    self.assertEqual(rows, 3, f'rank {rank}')


if __name__ == '__main__':
    unittest.main()
