"""Stores: options, tables, checkpoints, scans, reports and files."""
import pathlib
import shutil
import tempfile
import unittest

import embank
import numpy as np
from embank import StoreOptions, TableOptions

KEYS = np.arange(3000, dtype=np.uint64)
TABLE = {'dim': 8, 'optimizer': 'adagrad', 'learning_rate': 0.1, 'init': ('normal', 0, 0.5)}


class OnDisk(unittest.TestCase):
    """A temporary folder, and the path of a store that is not there yet."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.path = self.folder / 'store'


class Checkpoints(OnDisk):
    def test_a_store_is_opened_as_its_checkpoint_was(self):
        with embank.Store(self.path, seed=4, dram_bytes='16MiB') as store:
            self.assertIsNone(store.checkpoint_blob())
            self.assertIsNone(store.checkpoint_info())
            table = store.table('t', **TABLE)
            table.lookup(KEYS)
            table.apply_gradients(KEYS, np.ones((len(KEYS), 8), np.float32))
            rows, state = table.lookup(KEYS), table.get_state(KEYS)
            self.assertEqual(store.checkpoint(b'one\0two'), 1)
            table.apply_gradients(KEYS, np.ones((len(KEYS), 8), np.float32))
        with embank.Store(self.path, seed=4) as store:
            table = store.table('t', **TABLE)
            np.testing.assert_array_equal(table.lookup(KEYS, missing='zero'), rows)
            np.testing.assert_array_equal(table.get_state(KEYS), state)
            self.assertEqual(store.checkpoint_blob(), b'one\0two')
            info = store.checkpoint_info()
            self.assertEqual((info.sequence, info.blob_bytes, info.rows), (1, 7, len(KEYS)))
            self.assertGreater(info.unix_ns, 10**18)

    def test_a_blob_may_be_any_buffer_of_any_size(self):
        blobs = (b'', b'x', bytes(200_000), bytearray(b'abc'), np.arange(4, dtype=np.int16))
        with embank.Store(self.path) as store:
            for blob in blobs:
                with self.subTest(type=type(blob).__name__):
                    store.checkpoint(blob)
                    self.assertEqual(store.checkpoint_blob(), bytes(blob))

    def test_a_started_checkpoint_has_its_moment(self):
        with embank.Store(self.path) as store:
            table = store.table('t', **TABLE)
            table.lookup(KEYS[:10])
            started = store.checkpoint_async(b'ten')
            table.lookup(KEYS)
            self.assertIs(store.started_checkpoint, started)
            with self.assertRaisesRegex(embank.FailedPreconditionError, 'result()'):
                store.checkpoint_async()
            self.assertEqual(started.result(), 1)
            self.assertEqual(started.result(), 1)
            self.assertTrue(started.done())
            self.assertEqual(store.checkpoint_async(b'more').result(), 2)
        with embank.Store(self.path, previous=True, read_only=True) as store:
            self.assertEqual(len(store.table('t')), 10)
            self.assertEqual(store.checkpoint_blob(), b'ten')

    def test_read_only_stores_share_a_path(self):
        with embank.Store(self.path) as store:
            store.table('t', **TABLE).lookup(KEYS)
            store.checkpoint()
            with self.assertRaises(embank.UnavailableError):
                embank.Store(self.path)
        with embank.Store(self.path, read_only=True) as one, \
                embank.Store(self.path, read_only=True) as two:
            self.assertTrue(one.options.read_only)
            for store in (one, two):
                outcomes = store.table('t').lookup(KEYS + np.uint64(2990), outcomes=True)[1]
                self.assertEqual(np.bincount(outcomes).tolist(), [0, 10, 0, 2990])
                with self.assertRaises(embank.FailedPreconditionError):
                    store.table('t').erase(KEYS)
                with self.assertRaises(embank.FailedPreconditionError):
                    store.table('new', dim=3)

    def test_a_store_is_exported_and_verified(self):
        told = []
        with embank.Store(self.path) as store:
            store.table('t', **TABLE).lookup(KEYS)
            with self.assertRaises(embank.FailedPreconditionError):
                store.export(self.folder / 'copy')
            store.checkpoint(b'blob')
            store.export(self.folder / 'copy', lambda done, total: told.append((done, total)))
            self.assertEqual((told[0][0], told[-1][0]), (0, told[-1][1]))
            with self.assertRaises(embank.AlreadyExistsError):
                store.export(self.folder / 'copy')
            with self.assertRaises(embank.NotFoundError):
                store.export(self.folder / 'no' / 'copy')
        bar = Bar()
        report = embank.verify(self.folder / 'copy', bar)
        self.assertTrue(report['clean'])
        self.assertEqual(bar.n, bar.total)
        with embank.Store(self.folder / 'copy') as store:
            self.assertEqual(len(store.table('t')), len(KEYS))

    def test_damage_is_in_the_report(self):
        with embank.Store(self.path) as store:
            row = store.table('t', **TABLE).lookup(KEYS)[7].tobytes()
            store.checkpoint()
        segment = next(path for path in self.path.rglob('*')
                       if path.is_file() and row in path.read_bytes())
        segment.write_bytes(segment.read_bytes().replace(row, bytes(len(row))))
        report = embank.verify(self.path)
        self.assertFalse(report['clean'])
        self.assertEqual(report['damage_count'], 1)
        if shutil.which('embank') is None:
            self.skipTest('the command embank is not on the PATH: repair is not run')
        repaired = embank.repair(self.path, self.folder / 'repaired')
        self.assertEqual((repaired['rows_saved'], repaired['rows_lost']), (len(KEYS) - 1, 1))
        with self.assertRaises(embank.NotFoundError):
            embank.repair(self.folder / 'absent', self.folder / 'repaired_2')

    def test_an_exception_of_a_progress_function_ends_the_call(self):
        def stop(done, total):
            raise KeyboardInterrupt(f'{done} of {total}')
        with embank.Store(self.path) as store:
            store.checkpoint()
            with self.assertRaisesRegex(KeyboardInterrupt, '0 of '):
                store.export(self.folder / 'copy', stop)
            with self.assertRaisesRegex(embank.FailedPreconditionError, 'in use'):
                store.export(self.folder / 'copy', lambda done, total: store.close())
            self.assertFalse(store.is_closed)
        with self.assertRaises(KeyboardInterrupt):
            embank.verify(self.path, stop)


class Bar:
    """The part of tqdm that is used."""

    def __init__(self):
        self.n, self.total = 0, None

    def update(self, more):
        self.n += more


class Scans(unittest.TestCase):
    def setUp(self):
        self.store = embank.Store()
        self.table = self.store.table('t', **TABLE)
        self.rows = self.table.lookup(KEYS)
        self.table.lookup(KEYS[:100])
        self.state = np.arange(3000 * 8, dtype=np.float32).reshape(3000, 8)
        self.table.set_state(KEYS, self.state)

    def test_all_rows_come_once_with_state_and_heat(self):
        for batch in (1, 7, 1000, 3000, 10**9):
            with self.subTest(batch=batch):
                parts = list(self.table.scan(batch, state=True, heat=True))
                self.assertTrue(all(0 < len(part.keys) <= batch for part in parts))
                keys, rows, state, heat = (np.concatenate(field) for field in zip(*parts))
                order = np.argsort(keys)
                np.testing.assert_array_equal(keys[order], KEYS)
                np.testing.assert_array_equal(rows[order], self.rows)
                np.testing.assert_array_equal(state[order], self.state)
                np.testing.assert_array_equal(heat[order], 1 + (KEYS < 100))

    def test_only_what_is_wanted_comes(self):
        for wanted in ({}, {'rows': False}, {'state': True}, {'heat': True, 'rows': False}):
            with self.subTest(wanted=wanted):
                part = next(self.table.scan(**wanted))
                told = {name for name in ('rows', 'state', 'heat')
                        if getattr(part, name) is not None}
                self.assertEqual(told, {name for name in ('rows', 'state', 'heat')
                                        if wanted.get(name, name == 'rows')})

    def test_a_scan_ends_once_and_can_be_closed(self):
        scan = self.table.scan()
        self.assertEqual(len(next(scan).keys), 3000)
        self.assertEqual([list(scan), list(scan)], [[], []])
        with self.table.scan(10) as scan:
            next(scan)
        with self.assertRaisesRegex(embank.FailedPreconditionError, 'scan is closed'):
            next(scan)
        scan.close()
        self.assertEqual(list(self.store.table('empty', dim=1).scan()), [])
        with self.assertRaises(embank.FailedPreconditionError):
            self.store.table('empty').scan(state=True)


class Facts(unittest.TestCase):
    def test_tables_are_listed_opened_and_dropped(self):
        store = embank.Store()
        names = ['b', 'a', 'ü']
        for name in names:
            store.table(name, dim=1).lookup(KEYS[:3])
        self.assertEqual(store.tables(), names)
        table = store.table('a', dim=1)
        store.drop_table('a')
        self.assertEqual(store.tables(), ['b', 'ü'])
        with self.assertRaises(embank.FailedPreconditionError):
            table.lookup(KEYS)
        self.assertEqual(len(store.table('a', dim=2)), 0)
        with self.assertRaises(embank.NotFoundError):
            store.drop_table('c')

    def test_options_are_read_back(self):
        store = embank.Store(dram_bytes='64MiB', seed=2**64 - 1, worker_threads=2, pin_batches=5)
        options = store.options
        self.assertEqual((options.path, options.dram_bytes, options.seed, options.worker_threads,
                          options.pin_batches, options.durability, options.create),
                         (None, 64 << 20, 2**64 - 1, 2, 5, 'none', False))
        wanted = TableOptions(
            dim=3, value_type='bf16', optimizer='adam', learning_rate=0.5, init=('normal', 0.5, 2),
            beta1=0.5, beta2=0.25, epsilon=0.125, weight_decay=1, decoupled_weight_decay=2,
            eviction='lfu', on_full='forget', max_gradient_norm=3, max_gradient_value=4,
            rounding='stochastic', expected_rows_log2=3)
        table = store.table('t', **vars(wanted))
        told = table.options
        for name, value in vars(wanted).items():
            if value is not None:
                self.assertEqual(getattr(told, name), value, name)
        self.assertEqual(store.table('t', **vars(told)).options, told)

    def test_hot_rows_are_in_the_memory_of_a_twin(self):
        with embank.Store(hbm_bytes='1MiB') as store:
            table = store.table('t', **TABLE)
            rows = table.lookup(KEYS)
            store.flush_hot()
            self.assertGreater(table.info.rows_hbm, 0)
            np.testing.assert_array_equal(table.lookup(KEYS), rows)
            self.assertEqual(store.memory_report()['hbm']['device'], 'twin')
        with self.assertRaises(embank.FailedPreconditionError):
            embank.Store().flush_hot()

    def test_a_store_describes_itself(self):
        store = embank.Store(dram_bytes='64MiB')
        store.table('t', **TABLE).lookup(KEYS)
        self.assertIn('embank_batches_total{table="t",op="lookup"} 1\n', store.metrics())
        self.assertEqual(store.memory_report()['dram']['budget'], 64 << 20)
        described = store.describe()
        self.assertEqual(described['tables']['t']['rows'], len(KEYS))
        self.assertIsNone(described['checkpoint'])

    def test_estimates(self):
        tables = [(TableOptions(**TABLE), 10**6)]
        plain = embank.estimate(tables, StoreOptions(dram_bytes='16MiB'))
        self.assertFalse(plain['fits'])
        on_disk = StoreOptions(path='unused')
        half = embank.estimate(tables, on_disk, hit_ratio=0.5)
        most = embank.estimate(tables, on_disk, hit_ratio=0.9, zipf_exponent=1.1)
        self.assertLess(half['dram_bytes'], plain['dram_bytes'])
        self.assertLess(0, most['rows_in_dram'])
        self.assertEqual(embank.estimate([])['rows_in_dram'], 0)

    def test_owners(self):
        """The table of docs/arithmetic.md."""
        keys = np.array([0, 42, 2**64 - 1], np.uint64)
        for ranks, expected in ((2, [1, 0, 0]), (3, [1, 0, 1]), (256, [137, 63, 127])):
            self.assertEqual(embank.owner_of('users', keys, ranks).tolist(), expected)

    def test_the_build_and_its_log(self):
        self.assertRegex(embank.__version__, r'^\d+\.\d+\.\d+$')
        self.assertIn('git', embank.build_info())
        lines = []
        embank.set_log_sink(lambda level, message: lines.append((level, message)))
        self.addCleanup(embank.set_log_sink, None)
        embank.Store(dram_bytes='16MiB').close()
        self.assertEqual([level for level, line in lines if 'dram_bytes 16777216' in line],
                         ['info'])


if __name__ == '__main__':
    unittest.main()
