"""Packed calls against single calls and the numpy oracle, bit for bit."""
import itertools
import unittest

import embank
import numpy as np
import oracle
from embank import Feature, Outcome

POOLINGS = ('sum', 'mean', 'sqrt_n')
INDEX_TYPES = (np.int64, np.int32, np.uint64, np.uint32)


def make_store():
    """Two tables, each with its oracle."""
    store = embank.Store()
    tables, models = [], []
    for name, dim, optimizer in (('users', 3, 'adagrad'), ('items', 4, 'sgd')):
        tables.append(store.table(name, dim=dim, optimizer=optimizer, learning_rate=0.5,
                                  init=('constant', 0.75)))
        models.append(oracle.Oracle(optimizer, 0.5, np.full(dim, 0.75, np.float32)))
    return store, tables, models


def bags_of(random, bags):
    offsets = np.concatenate([[0], np.cumsum(random.integers(0, 5, bags))])
    return random.integers(0, 30, offsets[-1]), offsets


class Packed(unittest.TestCase):
    def test_pooled_rows_and_steps_are_those_of_the_oracle(self):
        cases = itertools.product(POOLINGS, (False, True), INDEX_TYPES)
        random = np.random.default_rng(5)
        for pooling, weighted, kind in cases:
            if weighted and pooling == 'sqrt_n':
                continue
            with self.subTest(pooling=pooling, weighted=weighted, kind=kind.__name__):
                store, tables, models = make_store()
                for _ in range(3):
                    features, checks = [], []
                    for table, model in zip(tables, models):
                        keys, offsets = bags_of(random, 9)
                        weights = (random.standard_normal(len(keys)).astype(np.float32)
                                   if weighted else None)
                        features.append(Feature(table, keys.astype(kind), offsets.astype(kind),
                                                weights, pooling=pooling))
                        checks.append((model, keys, offsets, weights))
                    rows = store.lookup_packed(features)
                    gradients = [random.standard_normal(part.shape).astype(np.float32)
                                 for part in rows]
                    for (model, keys, offsets, weights), part in zip(checks, rows):
                        found, _ = model.lookup(keys)
                        np.testing.assert_array_equal(
                            part, oracle.pooled(found, offsets, weights, pooling))
                    store.apply_gradients_packed(features, gradients)
                    for (model, keys, offsets, weights), part in zip(checks, gradients):
                        model.apply_gradients(
                            keys, oracle.bag_gradients(part, offsets, weights, pooling))

    def test_without_bags_it_is_lookup_and_apply_gradients(self):
        store, tables, _ = make_store()
        other, singles, _ = make_store()
        random = np.random.default_rng(6)
        for _ in range(3):
            keys = [random.integers(0, 20, 12) for _ in tables]
            gradients = [np.float32(random.standard_normal((12, table.dim))) for table in tables]
            features = [Feature(table, part) for table, part in zip(tables, keys)]
            rows, outcomes = store.lookup_packed(features, outcomes=True)
            told = [table.lookup(part, outcomes=True) for table, part in zip(singles, keys)]
            for part, (expected, _) in zip(rows, told):
                np.testing.assert_array_equal(part, expected)
            np.testing.assert_array_equal(outcomes, np.concatenate([one for _, one in told]))
            outcomes = store.apply_gradients_packed(features, gradients, outcomes=True)
            self.assertTrue((outcomes == Outcome.FOUND).all())
            for table, part, gradient in zip(singles, keys, gradients):
                table.apply_gradients(part, gradient)
        other.close()

    def test_a_part_of_larger_arrays(self):
        """32-bit offsets that are read as 64-bit ones, or relative ones, would be others."""
        store, (users, _), _ = make_store()
        users.upsert(np.arange(8), np.arange(24, dtype=np.float32).reshape(8, 3))
        keys = np.arange(8)
        for kind in INDEX_TYPES:
            with self.subTest(kind=kind.__name__):
                offsets = np.array([0, 2, 3, 5, 5, 8], kind)
                weights = np.arange(8, dtype=np.float32)
                parts = [Feature(users, keys.astype(kind), offsets[:3], weights),
                         Feature(users, keys.astype(kind), offsets[2:], weights)]
                rows = store.lookup_packed(parts, missing='zero')
                expected = oracle.pooled(users.lookup(keys, missing='zero'), offsets, weights,
                                         'sum')
                np.testing.assert_array_equal(np.concatenate(rows), expected)
                self.assertEqual([part.key_count for part in parts], [3, 5])

    def test_padding_keys_are_nothing(self):
        store, (users, _), _ = make_store()
        for padding in (-1, 2**64 - 1):
            feature = Feature(users, np.array([-1, 1, -1]), np.array([0, 1, 3]), pooling='mean',
                              padding_key=padding)
            rows, outcomes = store.lookup_packed([feature], outcomes=True)
            self.assertEqual(rows[0][:, 0].tolist(), [0.0, 0.75])
            self.assertEqual(outcomes[[0, 2]].tolist(), [Outcome.ABSENT] * 2)
        self.assertEqual(len(users), 1)

    def test_features_take_the_arrays_of_the_next_batch(self):
        store, (users, _), _ = make_store()
        users.upsert(np.arange(8), np.arange(24, dtype=np.float32).reshape(8, 3))
        keys, offsets = np.arange(6), np.array([0, 2, 6])
        feature = Feature(users, keys, offsets)
        batches = (([5, 6, 7], [0, 1, 3], np.int32), ([1, 2], [0, 2], np.int64),
                   ([3, 4, 5], [1, 1, 3], np.int64), ([0], [0, 0, 1], np.uint32))
        for keys, offsets, kind in batches:
            with self.subTest(keys=keys):
                feature.set(np.array(keys, kind), np.array(offsets, kind))
                rows, = store.lookup_packed([feature])
                told = users.lookup(np.array(keys))
                np.testing.assert_array_equal(rows, oracle.pooled(told, offsets, None, 'sum'))

    def test_out_may_be_columns_of_one_array(self):
        store, tables, _ = make_store()
        keys, offsets = np.array([1, 2, 3]), np.array([0, 1, 3])
        features = [Feature(table, keys, offsets) for table in tables]
        wide = np.zeros((2, 7), np.float32)
        out = [wide[:, :3], wide[:, 3:]]
        self.assertIs(store.lookup_packed(features, out), out)
        self.assertEqual(wide.tolist(), [[0.75] * 7, [1.5] * 7])
        store.apply_gradients_packed(features, [wide[:, :3], wide[:, 3:]])
        self.assertEqual(tables[1].lookup(np.array([1]))[0, 0], 0.75 - 0.5 * 0.75)
        store.prefetch_packed(features)
        self.assertEqual(store.lookup_packed([]), [])

    def test_offsets_that_are_changed_later_do_not_lead_beyond_the_keys(self):
        store, (users, _), _ = make_store()
        for begin in (0, 1):
            offsets = np.array([begin, 2, 3])
            feature = Feature(users, np.arange(3), offsets)
            store.lookup_packed([feature])
            offsets[2] = 10**6
            with self.subTest(begin=begin), self.assertRaises(embank.InvalidArgumentError):
                store.lookup_packed([feature])


if __name__ == '__main__':
    unittest.main()
