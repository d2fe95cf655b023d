"""Rows against a numpy oracle, bit for bit, and the calls of a table."""
import unittest

import embank
import numpy as np
import oracle
from embank import Outcome

DIM, RATE = 5, 0.05
FIRST = np.full(DIM, 0.25, np.float32)


def keys_of(random, count=200, key_type=np.uint64):
    return random.integers(0, 60, count).astype(key_type)


class Steps(unittest.TestCase):
    def test_rows_and_states_are_those_of_the_formulas(self):
        for optimizer in oracle.RULES:
            with self.subTest(optimizer=optimizer), embank.Store() as store:
                table = store.table('t', dim=DIM, optimizer=optimizer, learning_rate=RATE,
                                    init=('constant', 0.25))
                model, random = oracle.Oracle(optimizer, RATE, FIRST), np.random.default_rng(1)
                for _ in range(8):
                    keys = keys_of(random)
                    gradients = random.standard_normal((len(keys), DIM), np.float32)
                    rows, outcomes = table.lookup(keys, outcomes=True)
                    expected, expected_outcomes = model.lookup(keys)
                    np.testing.assert_array_equal(rows, expected)
                    np.testing.assert_array_equal(outcomes, expected_outcomes)
                    table.apply_gradients(keys, gradients)
                    model.apply_gradients(keys, gradients)
                self.assertEqual(len(table), len(model.rows))
                keys = np.array(sorted(model.rows), np.uint64)
                np.testing.assert_array_equal(table.lookup(keys, missing='zero'),
                                              [model.rows[key][0] for key in keys.tolist()])
                if table.state_floats:
                    np.testing.assert_array_equal(table.get_state(keys),
                                                  [model.rows[key][1] for key in keys.tolist()])

    def test_missing_rows_are_answered_as_told(self):
        for missing in ('default', 'zero', 'skip'):
            with self.subTest(missing=missing), embank.Store() as store:
                table = store.table('t', dim=DIM, init=('constant', 0.25))
                table.lookup(np.array([1], np.uint64))
                out = np.full((2, DIM), 9, np.float32)
                rows, outcomes = table.lookup(np.array([1, 2]), out, missing=missing, outcomes=True)
                self.assertIs(rows, out)
                self.assertEqual(outcomes.tolist(), [Outcome.FOUND, Outcome.ABSENT])
                other = {'default': 0.25, 'zero': 0, 'skip': 9}[missing]
                self.assertEqual(rows[:, 0].tolist(), [0.25, other])
                self.assertEqual(len(table), 1)
                skipped = table.lookup(np.array([2]), missing='skip')
                self.assertEqual(skipped.tolist(), np.zeros((1, DIM)).tolist())

    def test_signed_keys_are_the_unsigned_ones_with_their_bits(self):
        table = embank.Store().table('t', dim=1)
        table.upsert(np.array([-1, -2**63]), np.array([[1], [2]], np.float32))
        keys = np.array([2**64 - 1, 2**63], np.uint64)
        self.assertEqual(table.lookup(keys, missing='zero').tolist(), [[1], [2]])

    def test_rows_of_16_bits(self):
        for value_type, dtype, bits in (('f16', np.float16, 0x3555), ('bf16', np.uint16, 0x3eab)):
            with self.subTest(value_type=value_type):
                table = embank.Store().table('t', dim=3, value_type=value_type, optimizer='sgd',
                                             init=('constant', 1 / 3))
                self.assertEqual(table.dtype, dtype)
                rows = table.lookup(np.array([1], np.uint64))
                self.assertEqual(rows.dtype, dtype)
                self.assertEqual(rows.view(np.uint16).tolist(), [[bits] * 3])
                table.upsert(np.array([2], np.uint64), rows)
                self.assertEqual(table.lookup(np.array([2])).tolist(), rows.tolist())


class Calls(unittest.TestCase):
    def setUp(self):
        self.store = embank.Store(seed=3)
        self.table = self.store.table('t', dim=DIM, optimizer='adagrad', learning_rate=RATE,
                                      init=('uniform', -1, 1), initial_accumulator=0.5)
        self.keys = np.arange(4, dtype=np.uint64)

    def test_first_rows_follow_seed_name_and_key(self):
        rows = self.table.lookup(self.keys)
        with embank.Store(seed=3) as other:
            same = other.table('t', dim=DIM, init=('uniform', -1, 1))
            np.testing.assert_array_equal(same.lookup(self.keys), rows)
            named = other.table('u', dim=DIM, init=('uniform', -1, 1))
            self.assertFalse(np.array_equal(named.lookup(self.keys), rows))
        self.assertTrue(((rows >= -1) & (rows < 1)).all())
        self.assertEqual(len(np.unique(rows)), rows.size)

    def test_whole_rows_go_out_and_in(self):
        rows = np.arange(4 * DIM, dtype=np.float32).reshape(4, DIM)
        state, heat = rows * 2, np.array([5, 0, 1048575, 9], np.uint32)
        outcomes = self.table.upsert(self.keys, rows, state=state, heat=heat, outcomes=True)
        self.assertEqual(outcomes.tolist(), [Outcome.CREATED] * 4)
        np.testing.assert_array_equal(self.table.get_state(self.keys), state)
        np.testing.assert_array_equal(self.table.heat(self.keys), heat)
        np.testing.assert_array_equal(self.table.lookup(self.keys), rows)
        self.assertEqual(self.table.heat(self.keys)[1], 1)
        self.table.upsert(self.keys, rows, heat=heat)
        np.testing.assert_array_equal(self.table.get_state(self.keys), np.full((4, DIM), 0.5))
        self.table.set_state(self.keys, state)
        np.testing.assert_array_equal(self.table.get_state(self.keys), state)

    def test_rows_are_erased(self):
        self.table.lookup(self.keys)
        outcomes = self.table.erase(np.array([1, 9, 1]), outcomes=True)
        self.assertEqual(outcomes.tolist(), [Outcome.FOUND, Outcome.ABSENT, Outcome.ABSENT])
        self.assertEqual(self.table.contains(self.keys).tolist(), [True, False, True, True])
        self.assertIsNone(self.table.erase(self.keys))
        self.assertEqual(len(self.table), 0)
        self.assertTrue(self.table)

    def test_absent_rows_are_an_exception_or_an_outcome(self):
        gradients = np.ones((1, DIM), np.float32)
        absent = np.array([77])
        for call, name in ((lambda **more: self.table.apply_gradients(absent, gradients, **more),
                            1),
                           (lambda **more: self.table.set_state(absent, gradients, **more), 1),
                           (lambda **more: self.table.get_state(absent, **more), 2)):
            with self.subTest(name=name):
                with self.assertRaises(embank.NotFoundError) as raised:
                    call()
                self.assertEqual((raised.exception.name, raised.exception.code), ('NOT_FOUND', 5))
                self.assertIsInstance(raised.exception, LookupError)
                told = call(outcomes=True)
                self.assertEqual(np.asarray(told if name == 1 else told[1]).tolist(),
                                 [Outcome.ABSENT])

    def test_a_step_that_is_not_finite_is_not_made(self):
        self.table.lookup(self.keys)
        before = self.table.lookup(self.keys)
        gradients = np.full((4, DIM), 3e38, np.float32)
        with self.assertRaises(embank.OutOfRangeError):
            self.table.apply_gradients(self.keys, gradients)
        outcomes = self.table.apply_gradients(self.keys, gradients, outcomes=True)
        self.assertEqual(outcomes.tolist(), [Outcome.NOT_FINITE] * 4)
        np.testing.assert_array_equal(self.table.lookup(self.keys), before)

    def test_options_are_read_and_set(self):
        self.table.learning_rate = 0.5
        self.assertEqual(self.table.learning_rate, 0.5)
        self.table.set_options(epsilon=0.25, max_gradient_value=2)
        options = self.table.options
        self.assertEqual((options.dim, options.optimizer, options.init, options.learning_rate,
                          options.epsilon, options.max_gradient_value),
                         (DIM, 'adagrad', ('uniform', -1.0, 1.0), 0.5, 0.25, 2.0))
        self.assertEqual(self.table.options.initial_accumulator, 0.5)
        self.table.prefetch(self.keys)
        self.assertEqual(self.table.info.rows, 0)

    def test_rows_in_the_columns_of_a_wider_array(self):
        wide = np.zeros((4, 3 * DIM), np.float32)
        rows = self.table.lookup(self.keys, wide[:, DIM:2 * DIM])
        np.testing.assert_array_equal(rows, self.table.lookup(self.keys))
        self.assertEqual(np.count_nonzero(wide), rows.size)
        wide[:, DIM:2 * DIM] = 1
        self.table.apply_gradients(self.keys, wide[:, DIM:2 * DIM])
        self.table.upsert(self.keys, wide[:, DIM:2 * DIM])
        self.assertTrue((self.table.lookup(self.keys) == 1).all())

    def test_empty_batches(self):
        none = np.empty(0, np.uint64)
        self.assertEqual(self.table.lookup(none).shape, (0, DIM))
        self.assertIsNone(self.table.apply_gradients(none, np.empty((0, DIM), np.float32)))
        self.assertEqual(self.table.contains(none).tolist(), [])
        self.assertEqual(self.table.lookup(none, outcomes=True)[1].tolist(), [])


if __name__ == '__main__':
    unittest.main()
