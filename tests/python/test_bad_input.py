"""Bad inputs: each is a named exception with the value and the limit, and nothing is done."""
import array
import copy
import pickle
import unittest

import embank
import numpy as np
from embank import Feature, InvalidArgumentError, StoreOptions, TableOptions

F32, U64 = np.float32, np.uint64
KEYS = np.arange(4, dtype=U64)
ROWS = np.zeros((4, 3), F32)
WIDE = np.zeros((8, 6), F32)
READ_ONLY = np.zeros((4, 3), F32)
READ_ONLY.flags.writeable = False
UNALIGNED = np.zeros(33, np.uint8)[1:].view(U64)


class Scene(unittest.TestCase):
    """A store with two tables. A case is its name, a call, its exception, a pattern of its message.
    """

    def setUp(self):
        self.store = embank.Store()
        self.table = self.store.table('t', dim=3, optimizer='adagrad')
        self.plain = self.store.table('plain', dim=3)
        self.table.lookup(KEYS)

    def check(self, cases):
        for name, call, error, pattern in cases:
            with self.subTest(case=name), self.assertRaisesRegex(error, pattern):
                call()
        self.assertEqual(len(self.table), 4)
        self.assertFalse(self.table.lookup(KEYS).any())


class BadKeys(Scene):
    def test_keys(self):
        bad = (
            ('float', KEYS.astype(float), TypeError, 'dtype float64.*uint64 or int64'),
            ('int32', KEYS.astype(np.int32), TypeError, 'dtype int32'),
            ('bool', np.zeros(4, bool), TypeError, 'dtype bool'),
            ('object', np.zeros(4, object), TypeError, 'dtype object'),
            ('big endian', KEYS.astype('>u8'), TypeError, 'dtype >u8'),
            ('strided', np.arange(8, dtype=U64)[::2], InvalidArgumentError, 'stride of 16 bytes'),
            ('reversed', KEYS[::-1], InvalidArgumentError, 'stride of -8 bytes'),
            ('broadcast', np.broadcast_to(U64(1), 4), InvalidArgumentError, 'stride of 0 bytes'),
            ('two dimensions', KEYS.reshape(2, 2), InvalidArgumentError, r'shape \(2, 2\)'),
            ('none', np.array(1, U64), InvalidArgumentError, r'shape \(\)'),
            ('unaligned', UNALIGNED, InvalidArgumentError, 'aligned'),
            ('masked', np.ma.array(KEYS), TypeError, 'masked'),
            ('list', [1, 2], TypeError, 'keys is a list'),
            ('int', 5, TypeError, 'keys is a int'),
            ('None', None, TypeError, 'keys is a NoneType'),
            ('scalar', U64(5), TypeError, 'keys is a uint64'),
            ('bytes', b'12345678', TypeError, 'dtype uint8'),
            ('text', 'abc', TypeError, 'keys is a str'),
            ('structured', np.zeros(4, [('a', U64)]), TypeError, 'dtype'),
        )
        calls = {
            'lookup': lambda keys: self.table.lookup(keys),
            'apply_gradients': lambda keys: self.table.apply_gradients(keys, ROWS),
            'upsert': lambda keys: self.table.upsert(keys, ROWS),
            'erase': lambda keys: self.table.erase(keys),
            'contains': lambda keys: self.table.contains(keys),
            'prefetch': lambda keys: self.table.prefetch(keys),
            'get_state': lambda keys: self.table.get_state(keys),
            'set_state': lambda keys: self.table.set_state(keys, ROWS),
            'heat': lambda keys: self.table.heat(keys),
            'owner_of': lambda keys: embank.owner_of('t', keys, 2),
        }
        for of_call, call in calls.items():
            self.check([(f'{of_call}: {name}', lambda call=call, keys=keys: call(keys), error, text)
                        for name, keys, error, text in bad])

    def test_rows(self):
        bad = (
            ('dtype', ROWS.astype(float), TypeError, 'dtype float64; it must be float32'),
            ('too few', ROWS[:3], InvalidArgumentError, r'\(3, 3\); it must be \(4, 3\)'),
            ('too narrow', ROWS[:, :2], InvalidArgumentError, r'\(4, 2\); it must be \(4, 3\)'),
            ('one dimension', ROWS.ravel(), InvalidArgumentError, r'\(12,\)'),
            ('columns', WIDE[:4, ::2], InvalidArgumentError, '8 bytes within a row'),
            ('transposed', np.zeros((3, 4), F32).T, InvalidArgumentError, '16 bytes within a row'),
            ('reversed', ROWS[::-1], InvalidArgumentError, '-12 bytes between rows'),
            ('broadcast', np.broadcast_to(ROWS[:1], (4, 3)), InvalidArgumentError,
             '0 bytes between rows; it must be at least 12'),
            ('overlapping', np.lib.stride_tricks.as_strided(ROWS, (4, 3), (4, 4)),
             InvalidArgumentError, '4 bytes between rows'),
            ('list', [[0.0] * 3] * 4, TypeError, 'is a list'),
        )
        calls = {
            'out': lambda rows: self.table.lookup(KEYS, rows),
            'gradients': lambda rows: self.table.apply_gradients(KEYS, rows),
            'rows': lambda rows: self.table.upsert(KEYS, rows),
            'state': lambda rows: self.table.set_state(KEYS, rows),
            'out of get_state': lambda rows: self.table.get_state(KEYS, rows),
            'state of upsert': lambda rows: self.table.upsert(KEYS, ROWS, state=rows),
            'out of lookup_packed': lambda rows: self.store.lookup_packed(
                [Feature(self.table, KEYS)], [rows]),
            'gradients of apply_gradients_packed': lambda rows: self.store.apply_gradients_packed(
                [Feature(self.table, KEYS)], [rows]),
        }
        for of_call, call in calls.items():
            self.check([(f'{of_call}: {name}', lambda call=call, rows=rows: call(rows), error, text)
                        for name, rows, error, text in bad])
        shared = np.zeros(100, U64)
        self.check((
            ('out', lambda: self.table.lookup(KEYS, READ_ONLY), InvalidArgumentError, 'read-only'),
            ('out packed', lambda: self.store.lookup_packed([Feature(self.table, KEYS)],
                                                            [READ_ONLY]),
             InvalidArgumentError, 'read-only'),
            ('overlap', lambda: self.table.lookup(shared[:4], shared[2:8].view(F32).reshape(4, 3)),
             InvalidArgumentError, 'overlaps keys'),
            ('heat overlap', lambda: self.table.heat(shared[:4], shared[3:5].view(np.uint32)),
             InvalidArgumentError, 'overlaps keys'),
            ('heat dtype', lambda: self.table.heat(KEYS, np.zeros(4, np.int32)), TypeError,
             'dtype int32; it must be uint32'),
            ('heat', lambda: self.table.upsert(KEYS, ROWS, heat=np.full(4, 2**20, np.uint32)),
             InvalidArgumentError, '1048576.*1048575'),
            ('NaN', lambda: self.table.apply_gradients(KEYS, np.full((4, 3), np.nan, F32)),
             InvalidArgumentError, 'gradients'),
            ('no state', lambda: self.plain.get_state(KEYS), embank.FailedPreconditionError,
             'state'),
            ('no optimizer', lambda: self.plain.apply_gradients(KEYS, ROWS),
             embank.FailedPreconditionError, 'optimizer'),
            ('missing', lambda: self.table.lookup(KEYS, missing='make'), InvalidArgumentError,
             "missing is 'make'; it must be one of 'create'"),
            ('missing', lambda: self.table.lookup(KEYS, missing=1), TypeError, 'missing is 1'),
            ('batch', lambda: self.table.scan(0), InvalidArgumentError, 'batch is 0'),
            ('batch', lambda: self.table.scan(1.5), TypeError, 'batch is 1.5'),
        ))


class BadFeatures(Scene):
    def test_features(self):
        keys, offsets = np.arange(4), np.array([0, 2, 4])
        weights = np.ones(4, F32)
        other = embank.Store().table('t', dim=3)

        def feature(*arrays, **more):
            return lambda: self.store.lookup_packed([Feature(self.table, *arrays, **more)])
        self.check((
            ('float keys', feature(keys.astype(float)), TypeError, 'keys has dtype float64'),
            ('strided keys', feature(np.arange(8)[::2]), InvalidArgumentError, 'stride of 16'),
            ('int16', feature(keys.astype(np.int16)), TypeError, 'int16'),
            ('float offsets', feature(keys, offsets.astype(F32)), TypeError, 'offsets has dtype'),
            ('strided offsets', feature(keys, np.arange(4)[::2]), InvalidArgumentError, 'stride'),
            ('beyond', feature(keys, np.array([0, 5])), InvalidArgumentError,
             'offsets ends with 5; there are 4 keys'),
            ('beyond, 32 bits', feature(keys, np.array([0, 5], np.int32)), InvalidArgumentError,
             'offsets ends with 5'),
            ('far beyond', feature(keys, np.array([0, 2**64 - 1], U64)), InvalidArgumentError,
             'offsets ends with 18446744073709551615'),
            ('negative', feature(keys, np.array([-1, 4])), InvalidArgumentError, 'begins with -1'),
            ('negative within', feature(keys, np.array([0, -1, 4])), InvalidArgumentError,
             'never fall'),
            ('beyond within', feature(keys, np.array([0, 9, 4])), InvalidArgumentError,
             'never fall'),
            ('falling', feature(keys, np.array([0, 3, 2, 4])), InvalidArgumentError, 'never fall'),
            ('falling at once', feature(keys, np.array([3, 1])), InvalidArgumentError, 'falls'),
            ('falling, absolute', feature(keys, np.array([1, 3, 2, 4], np.int32)),
             InvalidArgumentError, 'never fall'),
            ('no offset', feature(keys, np.array([], np.int64)), InvalidArgumentError,
             'offsets is empty'),
            ('weights', feature(keys, offsets, weights[:3]), InvalidArgumentError, r'\(4,\)'),
            ('dtype of weights', feature(keys, offsets, weights.astype(float)), TypeError,
             'weights has dtype float64'),
            ('NaN weight', feature(keys, offsets, weights * np.nan), InvalidArgumentError,
             r'weights\[0\]'),
            ('weights of sqrt_n', feature(keys, offsets, weights, pooling='sqrt_n'),
             InvalidArgumentError, 'weights'),
            ('weights without bags', feature(keys, None, weights), InvalidArgumentError, 'weights'),
            ('pooling', feature(keys, offsets, pooling='max'), InvalidArgumentError,
             "pooling is 'max'"),
            ('pooling without offsets', feature(keys, pooling='sum'), InvalidArgumentError,
             'offsets is missing'),
            ('offsets without pooling', feature(keys, offsets, pooling='none'),
             InvalidArgumentError, 'has no bags'),
            ('padding', feature(keys, padding_key=2**64), InvalidArgumentError,
             'padding_key is 18446744073709551616'),
            ('padding', feature(keys, padding_key=0.5), TypeError, 'padding_key is 0.5'),
            ('other store', lambda: self.store.lookup_packed([Feature(other, keys)]),
             InvalidArgumentError, r'features\[0\] has a table of another store'),
            ('no feature', lambda: self.store.lookup_packed([keys]), TypeError,
             r'features\[0\] is a ndarray; it must be an embank.Feature'),
            ('no table', lambda: Feature(keys, keys), TypeError, 'table is a ndarray'),
            ('out', lambda: self.store.lookup_packed([Feature(self.table, keys)], []),
             InvalidArgumentError, 'out has 0 arrays; there are 1 features'),
            ('prefetch', lambda: self.store.prefetch_packed([1]), TypeError, 'int'),
        ))


class BadOptions(unittest.TestCase):
    def test_stores(self):
        cases = (
            ({'dram_bytes': '4GB'}, InvalidArgumentError, "dram_bytes is '4GB'"),
            ({'dram_bytes': -1}, InvalidArgumentError, 'dram_bytes is -1; it must be 0 to 184'),
            ({'dram_bytes': 2**64}, InvalidArgumentError, 'dram_bytes is 18446744073709551616'),
            ({'dram_bytes': '99999999999TiB'}, InvalidArgumentError, 'dram_bytes'),
            ({'dram_bytes': 1.5}, TypeError, 'dram_bytes is 1.5; it must be an integer'),
            ({'dram_bytes': 100}, InvalidArgumentError, 'dram_bytes is 100'),
            ({'seed': -1}, InvalidArgumentError, 'seed is -1'),
            ({'cuda_device': 2**31}, InvalidArgumentError, 'cuda_device is 2147483648'),
            ({'worker_threads': 2000}, InvalidArgumentError, 'worker_threads is 2000.*1024'),
            ({'durability': 'batch'}, embank.UnimplementedError, 'BATCH'),
            ({'durability': 'never'}, InvalidArgumentError, "durability is 'never'"),
            ({'path': 5}, TypeError, 'path is a int'),
            ({'path': 'a\0b'}, InvalidArgumentError, 'NUL'),
            ({'path': 'no/such/parent'}, embank.EmbankError, 'no/such'),
            ({'path': 'absent', 'create': False}, embank.NotFoundError, 'absent'),
            ({'path': 'absent', 'create': True, 'read_only': True}, InvalidArgumentError, ''),
            ({'ssd_bytes': '1GiB'}, InvalidArgumentError, 'ssd_bytes'),
            ({'budget': 1}, TypeError, 'budget'),
        )
        for options, error, pattern in cases:
            with self.subTest(options=options), self.assertRaisesRegex(error, pattern):
                embank.Store(**options)

    def test_tables(self):
        store = embank.Store()
        store.table('t', dim=3, optimizer='adagrad', learning_rate=0.1)
        cases = (
            ('t', {'dim': 4}, InvalidArgumentError, 'dim is 3, and not 4'),
            ('t', {'dim': 3, 'optimizer': 'sgd', 'init': ('constant', 2)}, InvalidArgumentError,
             "optimizer is 'adagrad', and not 'sgd'; init is 'zero', and not"),
            ('t', {'learning_rate': 0.2}, InvalidArgumentError, 'learning_rate is 0.1'),
            ('u', {}, embank.NotFoundError, 'u'),
            ('u', {'dim': 0}, InvalidArgumentError, 'dim is 0'),
            ('u', {'dim': 4097}, InvalidArgumentError, 'dim is 4097.*4096'),
            ('u', {'dim': 2**32 + 4}, InvalidArgumentError, 'dim is 4294967300'),
            ('u', {'dim': '4'}, TypeError, "dim is '4'"),
            ('u', {'dim': 4, 'optimizer': 'adamw'}, InvalidArgumentError, "optimizer is 'adamw'"),
            ('u', {'dim': 4, 'optimizer': 4}, TypeError, 'optimizer is 4'),
            ('u', {'dim': 4, 'learning_rate': float('nan')}, InvalidArgumentError, 'learning_rate'),
            ('u', {'dim': 4, 'learning_rate': 10**400}, InvalidArgumentError, 'finite'),
            ('u', {'dim': 4, 'learning_rate': '1'}, TypeError, "learning_rate is '1'"),
            ('u', {'dim': 4, 'init': 'uniform'}, InvalidArgumentError, 'has 2 numbers, and not 0'),
            ('u', {'dim': 4, 'init': ('uniform', 1, 0)}, InvalidArgumentError, 'init'),
            ('u', {'dim': 4, 'init': 0.5}, TypeError, 'init is 0.5'),
            ('u', {'dim': 4, 'init': ()}, TypeError, 'init is'),
            ('u', {'dim': 4, 'init': (1, 2)}, TypeError, 'init is 1'),
            ('u', {'dim': 4, 'admission_count': 2}, embank.UnimplementedError, 'admission'),
            ('a/b', {'dim': 4}, InvalidArgumentError, "name contains '/'"),
            ('', {'dim': 4}, InvalidArgumentError, 'name'),
            ('a\0b', {'dim': 4}, InvalidArgumentError, 'NUL'),
            ('\ud800', {'dim': 4}, InvalidArgumentError, 'name'),
            ('u' * 256, {'dim': 4}, InvalidArgumentError, '255'),
            (b'u', {'dim': 4}, TypeError, 'name is a bytes'),
        )
        for name, options, error, pattern in cases:
            with self.subTest(name=name, options=options):
                with self.assertRaisesRegex(error, pattern):
                    store.table(name, **options)
        self.assertEqual(store.tables(), ['t'])

    def test_others(self):
        store = embank.Store()
        table = store.table('t', dim=3, optimizer='sgd')
        cases = (
            (lambda: table.set_options(dim=4), InvalidArgumentError, 'dim cannot be changed'),
            (lambda: table.set_options(beta1=2), InvalidArgumentError, 'beta1'),
            (lambda: setattr(table, 'learning_rate', -1), InvalidArgumentError, 'learning_rate'),
            (lambda: setattr(table, 'learning_rate', None), TypeError, 'learning_rate is None'),
            (lambda: setattr(table, 'dim', 4), AttributeError, ''),
            (lambda: store.checkpoint(b'x'), embank.FailedPreconditionError, 'path'),
            (lambda: store.checkpoint('x'), TypeError, 'blob is a str'),
            (lambda: store.checkpoint(np.arange(8)[::2]), TypeError, 'blob'),
            (lambda: store.checkpoint_blob(), embank.FailedPreconditionError, 'path'),
            (lambda: store.export('a', progress=5), TypeError, 'progress is a int'),
            (lambda: embank.verify('absent'), embank.NotFoundError, 'absent'),
            (lambda: embank.verify(5), TypeError, 'directory is a int'),
            (lambda: embank.owner_of('t', KEYS, 257), InvalidArgumentError, 'ranks is 257.*256'),
            (lambda: embank.owner_of('', KEYS, 2), InvalidArgumentError, 'name'),
            (lambda: embank.set_log_sink(5), TypeError, 'sink is a int'),
            (lambda: embank.estimate([(TableOptions(), 5)]), InvalidArgumentError, 'dim'),
            (lambda: embank.estimate([(TableOptions(dim=4), -5)]), InvalidArgumentError,
             'rows is -5'),
            (lambda: embank.estimate([], StoreOptions(path='p'), hit_ratio=2),
             InvalidArgumentError, 'hit_ratio'),
            (lambda: pickle.dumps(store), TypeError, 'cannot be copied or pickled'),
            (lambda: copy.deepcopy(table), TypeError, 'cannot be copied or pickled'),
            (lambda: copy.copy(table.scan()), TypeError, 'cannot be copied or pickled'),
        )
        for at, (call, error, pattern) in enumerate(cases):
            with self.subTest(at=at), self.assertRaisesRegex(error, pattern):
                call()


class OtherArrays(unittest.TestCase):
    """Arrays that are taken as they are, though they are not numpy's."""

    def test_buffers_and_dlpack_are_used_in_place(self):
        table = embank.Store().table('t', dim=1, init=('constant', 2))
        out = array.array('f', [0, 0])
        with self.assertRaises(InvalidArgumentError):
            table.lookup(array.array('Q', [1, 2]), out)
        rows = memoryview(out).cast('B').cast('f', (2, 1))
        self.assertIs(table.lookup(array.array('Q', [1, 2]), rows), rows)
        self.assertEqual(out.tolist(), [2, 2])
        self.assertEqual(table.lookup(OnlyDLPack(KEYS)).tolist(), [[2.0]] * 4)
        self.assertEqual(table.lookup(OnlyInterface(KEYS)).tolist(), [[2.0]] * 4)
        with self.assertRaisesRegex(TypeError, 'DLPack'):
            table.lookup(OnlyDLPack(5))


class OnlyDLPack:
    def __init__(self, wrapped):
        self.wrapped = wrapped

    def __dlpack__(self, **more):
        return self.wrapped.__dlpack__(**more)

    def __dlpack_device__(self):
        return (1, 0)


class OnlyInterface:
    def __init__(self, wrapped):
        self.__array_interface__ = wrapped.__array_interface__


if __name__ == '__main__':
    unittest.main()
