"""Lifetimes: garbage collection in any order, closing, threads, fork, and other libraries."""
import gc
import itertools
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import textwrap
import threading
import unittest
from unittest import mock

import embank
import numpy as np
from embank import _handle, _library

KEYS = np.arange(1000, dtype=np.uint64)
PACKAGE = pathlib.Path(embank.__file__).resolve().parent


def open_all():
    """A store, a table and a scan that has begun."""
    store = embank.Store()
    table = store.table('t', dim=4, optimizer='adagrad')
    table.lookup(KEYS)
    scan = table.scan(100)
    next(scan)
    return store, table, scan


class Closing(unittest.TestCase):
    def test_objects_may_go_in_any_order(self):
        for order in itertools.permutations(range(3)):
            with self.subTest(order=order):
                objects = list(open_all())
                for at in order:
                    objects[at] = None
                    gc.collect()
                    for one in objects:
                        if isinstance(one, embank.Table):
                            self.assertEqual(len(one), 1000)
                        if isinstance(one, embank.Scan):
                            self.assertEqual(len(next(one).keys), 100)

    def test_objects_of_a_circle_may_go(self):
        for _ in range(20):
            objects = [*open_all()]
            objects.append(objects)
            del objects
        self.assertGreater(gc.collect(), 0)

    def test_closing_in_any_order(self):
        for order in itertools.permutations(range(2)):
            store, table, scan = open_all()
            with self.subTest(order=order):
                for at in order:
                    (store, scan)[at].close()
                    (store, scan)[at].close()
                with self.assertRaises(embank.FailedPreconditionError):
                    next(scan)
                with self.assertRaises(embank.FailedPreconditionError):
                    table.lookup(KEYS)

    def test_scans_are_closed_before_their_store(self):
        for close in ('store.close()', 'garbage collection'):
            store, table, scan = open_all()
            scans = [scan, table.scan()]
            with self.subTest(close=close), \
                    mock.patch.object(_handle, 'library', wraps=_handle.library) as library:
                if close == 'store.close()':
                    store.close()
                del store, table, scan, scans
                gc.collect()
                self.assertEqual([name for name, *_ in library.mock_calls],
                                 ['embank_scan_close'] * 2 + ['embank_store_close'])

    def test_a_closed_store_refuses_every_call(self):
        store, table, scan = open_all()
        features = [embank.Feature(table, KEYS)]
        store.close()
        store.close()
        self.assertTrue(store.is_closed)
        self.assertIn('closed', repr(table))
        rows = np.zeros((1000, 4), np.float32)
        calls = {
            'store.options': lambda: store.options, 'table': lambda: store.table('t', dim=4),
            'tables': store.tables, 'drop_table': lambda: store.drop_table('t'),
            'lookup_packed': lambda: store.lookup_packed(features),
            'apply_gradients_packed': lambda: store.apply_gradients_packed(features, [rows]),
            'prefetch_packed': lambda: store.prefetch_packed(features),
            'checkpoint': store.checkpoint, 'checkpoint_async': store.checkpoint_async,
            'checkpoint_blob': store.checkpoint_blob, 'checkpoint_info': store.checkpoint_info,
            'export': lambda: store.export('copy'), 'flush_hot': store.flush_hot,
            'metrics': store.metrics, 'memory_report': store.memory_report,
            'describe': store.describe, 'lookup': lambda: table.lookup(KEYS),
            'apply_gradients': lambda: table.apply_gradients(KEYS, rows),
            'upsert': lambda: table.upsert(KEYS, rows),
            'upsert state': lambda: table.upsert(KEYS, rows, state=rows),
            'erase': lambda: table.erase(KEYS), 'contains': lambda: table.contains(KEYS),
            'prefetch': lambda: table.prefetch(KEYS), 'get_state': lambda: table.get_state(KEYS),
            'set_state': lambda: table.set_state(KEYS, rows), 'heat': lambda: table.heat(KEYS),
            'scan': table.scan, 'options': lambda: table.options, 'info': lambda: table.info,
            'len': lambda: len(table), 'learning_rate': lambda: table.learning_rate,
            'set': lambda: setattr(table, 'learning_rate', 1.0),
            'set_options': lambda: table.set_options(epsilon=1.0), 'next': lambda: next(scan),
        }
        for name, call in calls.items():
            with self.subTest(call=name), self.assertRaisesRegex(embank.FailedPreconditionError,
                                                                 'closed'):
                call()

    def test_closing_waits_for_the_calls_of_other_threads(self):
        for _ in range(5):
            store, table, _ = open_all()
            ended, begun = [], threading.Barrier(4)

            def work(table=table, ended=ended, begun=begun):
                begun.wait()
                try:
                    while True:
                        table.lookup(KEYS)
                except embank.FailedPreconditionError as error:
                    ended.append(str(error))
            threads = [threading.Thread(target=work) for _ in range(3)]
            for thread in threads:
                thread.start()
            begun.wait()
            store.close()
            for thread in threads:
                thread.join()
            self.assertEqual(ended, ['the store is closed'] * 3)

    def test_a_call_ends_before_its_store_is_closed(self):
        store = open_all()[0]
        told, is_told, library = [], threading.Event(), _handle.library

        def tell(what):
            told.append(what)
            is_told.set()

        def long_call():
            closer.start()
            is_told.wait()
            return 0
        closer = threading.Thread(target=store.close)
        with mock.patch.object(_handle.time, 'sleep', lambda _: tell('waits')), \
                mock.patch.object(_handle, 'library') as fake:
            fake.embank_scan_close = library.embank_scan_close
            fake.embank_store_close = lambda store: (tell('closes'),
                                                     library.embank_store_close(store))[1]
            store._handle.call(long_call)
            closer.join()
        self.assertEqual((told[0], told[-1]), ('waits', 'closes'))

    def test_threads_share_a_table(self):
        store = embank.Store()
        table = store.table('t', dim=2, optimizer='sgd', learning_rate=1)
        table.lookup(KEYS)

        def work():
            for _ in range(20):
                table.apply_gradients(KEYS, np.full((1000, 2), -1, np.float32))
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertTrue((table.lookup(KEYS) == 80).all())


class Forks(unittest.TestCase):
    def test_a_forked_worker_is_refused(self):
        store, table, scan = open_all()
        calls = (lambda: table.lookup(KEYS), lambda: next(scan), store.metrics,
                 lambda: store.table('t'),
                 lambda: store.lookup_packed([embank.Feature(table, KEYS)]))
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            told = []
            for call in calls:
                try:
                    call()
                    told.append('answered')
                except embank.FailedPreconditionError as error:
                    told.append('refused' if 'fork' in str(error) else str(error))
            scan.close()
            store.close()
            with embank.Store() as other:
                told.append(str(len(other.table('t', dim=1))))
            os.write(write, '\n'.join(told).encode())
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as answers:
            self.assertEqual(answers.read().split('\n'), ['refused'] * len(calls) + ['0'])
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.assertEqual(len(table.lookup(KEYS)), 1000)
        self.assertEqual(sum(len(batch.keys) for batch in scan), 900)


FAKE = '''
#include <stdint.h>
uint32_t embank_abi_version(void) {{ return {abi}; }}
'''


class Libraries(unittest.TestCase):
    def test_other_libraries_are_import_errors(self):
        compiler = shutil.which('cc') or shutil.which('gcc') or shutil.which('clang')
        if compiler is None:
            self.skipTest('no C compiler')
        with tempfile.TemporaryDirectory() as folder:
            source, library = pathlib.Path(folder, 'a.c'), pathlib.Path(folder, 'libother.so')
            cases = ((FAKE.format(abi=0), 'ABI version 0; this package needs 1 or later'),
                     (FAKE.format(abi=1), 'older than this package: .*embank_version'),
                     ('int other;', 'no library of Embank'))
            for text, pattern in cases:
                source.write_text(text, encoding='utf-8')
                subprocess.run([compiler, '-shared', '-fPIC', str(source), '-o', str(library)],
                               check=True)
                with self.subTest(pattern=pattern):
                    self.assertRegex(self.import_with(library), pattern)
                library.unlink()  # A process that has it loaded keeps it.
            self.assertRegex(self.import_with(library), 'No such file.*EMBANK_LIBRARY')

    def import_with(self, library):
        """Imports the package in a new process, and returns the last line of what it says."""
        run = subprocess.run([sys.executable, '-c', 'import embank'], check=False, text=True,
                             stderr=subprocess.PIPE,
                             env={**os.environ, _library.VARIABLE: str(library)})
        self.assertEqual(run.returncode, 1)
        last = run.stderr.strip().splitlines()[-1]
        self.assertTrue(last.startswith('ImportError: '), last)
        return last

    def test_an_installation_tests_itself(self):
        run = subprocess.run([sys.executable, '-m', 'embank'], check=False, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertEqual(run.stdout.splitlines()[-1], 'ok')

    def test_stores_that_are_open_at_the_end_do_no_harm(self):
        program = textwrap.dedent('''
            import threading, embank, numpy as np
            embank.set_log_sink(lambda level, message: None)
            store = embank.Store()
            table = store.table('t', dim=64)
            scan = table.scan()
            keys = np.arange(100_000, dtype=np.uint64)
            def work():
                while True:
                    table.lookup(keys)
            threading.Thread(target=work, daemon=True).start()
            table.lookup(keys)
            print('end')
        ''')
        run = subprocess.run([sys.executable, '-c', program], check=False, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual((run.returncode, run.stdout), (0, 'end\n'))


if __name__ == '__main__':
    unittest.main()
