"""A table that is exported and imported again has the same bits."""
import tracemalloc
import unittest

import numpy as np
from tables import OPTIMIZERS, FolderTest, contents, filled

import embank
from embank.io import export_table, import_table

SUFFIXES = {'safetensors': '.safetensors', 'torcheasyrec': '.parquet'}


def has_pyarrow():
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        return False
    return True


class RoundTripTest(FolderTest):
    def copy(self, table, format, name='copy', **options):
        """Exports a table and returns another one with its rows."""
        path = self.path(name + SUFFIXES.get(format, ''))
        rows = export_table(table, path, format, **options)
        given = table.options
        copy = self.store.table(name, dim=table.dim, value_type=given.value_type,
                                optimizer=given.optimizer)
        heat = True if format in ('hkv', 'dynamicemb') else None
        names = {'name': table.name} if format in ('dynamicemb', 'torcheasyrec') else {}
        self.assertEqual(import_table(copy, path, format, heat=heat, **names), rows)
        self.assertEqual(rows, len(table))
        return copy

    def test_states_and_heats_have_the_same_bits(self):
        for format in ('safetensors', 'npy'):
            for number, optimizer in enumerate(OPTIMIZERS):
                value_type = ('f32', 'f16', 'bf16')[number % 3]
                with self.subTest(format=format, optimizer=optimizer, value_type=value_type):
                    name = f'{format} {optimizer}'
                    table = filled(self.store, name, 300, dim=5, optimizer=optimizer,
                                   value_type=value_type)
                    copy = self.copy(table, format, name + ' copy')
                    self.assertEqual(contents(copy), contents(table))

    def test_formats_of_others_keep_what_they_have(self):
        cases = (('hkv', 'f16', 'none', True), ('tfra', 'bf16', 'none', False),
                 ('hugectr', 'f32', 'sgd', False), ('dynamicemb', 'f32', 'adagrad', True),
                 ('dynamicemb', 'f32', 'ftrl', True), ('torcheasyrec', 'f32', 'none', False))
        for format, value_type, optimizer, has_heat in cases:
            with self.subTest(format=format, optimizer=optimizer):
                if format == 'torcheasyrec' and not has_pyarrow():
                    continue  # test_foreign_files.py says that it is not there.
                name = f'{format} {optimizer}'
                table = filled(self.store, name, 300, dim=6, value_type=value_type,
                               optimizer=optimizer)
                if format == 'torcheasyrec':  # neither NaN nor the key 2^64 - 1
                    self.store.drop_table(name)
                    table = self.store.table(name, dim=6, init=('uniform', -1, 1))
                    table.lookup(np.arange(300, dtype=np.uint64))
                copy = self.copy(table, format, name + ' copy')
                keeps = [True, True] + ([optimizer == 'adagrad'] if table.state_floats else [])
                for ours, theirs, is_kept in zip(contents(table), contents(copy),
                                                 [*keeps, has_heat]):
                    self.assertEqual(ours == theirs, is_kept)

    def test_an_empty_table(self):
        for format in ('safetensors', 'npy', 'hkv', 'tfra', 'hugectr', 'dynamicemb'):
            with self.subTest(format=format):
                table = self.store.table(format, dim=3, optimizer='adagrad')
                self.assertEqual(len(self.copy(table, format, format + ' copy')), 0)

    def test_shards_are_within_their_size(self):
        table = filled(self.store, 'items', 50, dim=8, optimizer='adagrad')
        for shard_bytes, shards in ((4096 + 76, 50), ('5KiB', 4), (4096 + 76 * 49, 2)):
            with self.subTest(shard_bytes=shard_bytes):
                name = f'copy {shard_bytes}'
                copy = self.copy(table, 'safetensors', name, shard_bytes=shard_bytes)
                self.assertEqual(contents(copy), contents(table))
                files = [file for file in self.folder.iterdir() if file.name.startswith(name)]
                self.assertEqual(len(files), shards + 1)
                limit = 5120 if shard_bytes == '5KiB' else shard_bytes
                self.assertLessEqual(max(file.stat().st_size for file in files
                                         if file.suffix == '.safetensors'), limit)

    def test_a_table_that_shrinks_or_grows_meanwhile(self):
        for name, change in (('shrinks', lambda table, keys: table.erase(keys)),
                             ('grows', lambda table, keys: table.lookup(keys + np.uint64(1)))):
            with self.subTest(name):
                table = self.store.table(name, dim=4096)
                keys = np.arange(0, 4000, 2, dtype=np.uint64)
                table.lookup(keys)

                def progress(done, total, table=table, keys=keys, change=change):
                    if done == 0:
                        change(table, keys[:1000])
                path = self.path(name + '.safetensors')
                rows = export_table(table, path, progress=progress)
                copy = self.store.table(name + ' copy', dim=4096)
                self.assertEqual(import_table(copy, path), rows)
                self.assertEqual(contents(copy)[1:], contents(table)[1:])

    def test_memory_is_bounded(self):
        table = self.store.table('items', dim=1024)
        table.lookup(np.arange(12_500, dtype=np.uint64))  # 50 MB
        path = self.path('items.safetensors')
        copy = self.store.table('copy', dim=1024)
        for transfer in (lambda: export_table(table, path), lambda: import_table(copy, path)):
            tracemalloc.start()
            transfer()
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            self.assertLess(peak, 32 << 20)


class TransferTest(FolderTest):
    def test_files_are_overwritten_only_when_asked(self):
        table = filled(self.store, 'items', 10, dim=2, optimizer='adagrad')
        for format in ('safetensors', 'npy', 'hkv', 'tfra', 'hugectr', 'dynamicemb'):
            with self.subTest(format=format):
                path = self.path(format + SUFFIXES.get(format, ''))
                export_table(table, path, format)
                before = self.files()
                with self.assertRaisesRegex(embank.AlreadyExistsError, 'overwrite=True'):
                    export_table(table, path, format)
                export_table(table, path, format, overwrite=True)
                self.assertEqual(self.files(), before)
                # Files that the new export does not have would be read with it.
                if format not in ('tfra', 'hugectr'):
                    export_table(table, path, format, heat=False, overwrite=True)
                    self.assertRaises(embank.NotFoundError, import_table, table, path, format,
                                      heat=True)

    def test_shards_of_an_earlier_export_are_removed(self):
        table = filled(self.store, 'items', 100, dim=8)
        path = self.path('items.safetensors')
        export_table(table, path, shard_bytes='5KiB')
        with self.assertRaises(embank.AlreadyExistsError):
            export_table(table, path)
        export_table(table, path, overwrite=True)
        self.assertEqual(self.files(), ['items.safetensors'])
        export_table(table, path, shard_bytes='5KiB', overwrite=True)
        self.assertNotIn('items.safetensors', self.files())

    def test_progress(self):
        table = self.store.table('items', dim=1024)
        table.lookup(np.arange(5000, dtype=np.uint64))
        path = self.path('items')
        for transfer in (export_table, import_table):
            told = []
            transfer(table, path, 'npy', progress=lambda *numbers: told.append(numbers))
            self.assertEqual((told[0], told[-1]), ((0, 5000), (5000, 5000)))
            self.assertGreater(len(told), 3)
            self.assertEqual(told, sorted(told))

    def test_an_exception_of_progress_ends_the_export_without_files(self):
        table = self.store.table('items', dim=1024)
        table.lookup(np.arange(5000, dtype=np.uint64))

        def progress(done, total):
            if done:
                raise KeyboardInterrupt
        for format in ('safetensors', 'hugectr'):
            path = self.path('items' + SUFFIXES.get(format, ''))
            self.assertRaises(KeyboardInterrupt, export_table, table, path, format,
                              progress=progress)
            self.assertEqual(list(self.folder.iterdir()), [])
        export_table(table, self.path('items'), 'npy')
        copy = self.store.table('copy', dim=1024)
        with self.assertRaises(KeyboardInterrupt) as raised:
            import_table(copy, self.path('items'), 'npy', progress=progress)
        self.assertRegex(raised.exception.__notes__[0], f'{len(copy)} of 5000 rows were imported')

    def test_a_full_table_says_how_many_rows_it_took(self):
        table = self.store.table('items', dim=256)
        table.lookup(np.arange(30_000, dtype=np.uint64))
        path = self.path('items.safetensors')
        export_table(table, path)
        with embank.Store(dram_bytes='16MiB') as store:
            small = store.table('items', dim=256)
            with self.assertRaisesRegex(embank.io.PartialImportError, 'of 30000 .* REFUSED') as it:
                import_table(small, path)
            self.assertEqual(it.exception.rows, len(small))
            self.assertIsInstance(it.exception.__cause__, embank.ResourceExhaustedError)
            self.assertGreater(len(small), 1000)

    def test_wrong_arguments(self):
        plain = self.store.table('plain', dim=2)
        half = self.store.table('half', dim=2, value_type='f16')
        cases = (
            (TypeError, 'path is a int', plain, 3, 'npy', {}),
            (TypeError, 'format is 1', plain, 'p', 1, {}),
            (embank.InvalidArgumentError, "format is 'csv'", plain, 'p', 'csv', {}),
            (embank.InvalidArgumentError, 'must end with .safetensors', plain, 'p', 'safetensors',
             {}),
            (embank.InvalidArgumentError, 'shard_bytes is 10; .* 4116', plain, 'p.safetensors',
             'safetensors', {'shard_bytes': 10}),
            (embank.FailedPreconditionError, 'no states', plain, 'p', 'npy', {'state': True}),
            (embank.FailedPreconditionError, 'no heats', plain, 'p', 'tfra', {'heat': True}),
            (embank.InvalidArgumentError, 'half has f16', half, 'p', 'hugectr', {}),
            (embank.InvalidArgumentError, 'half has f16', half, 'p', 'dynamicemb', {}),
            (embank.NotFoundError, 'directory does not exist', plain, 'no/p', 'npy', {}),
            (embank.NotFoundError, 'parent does not exist', plain, 'no/p', 'hugectr', {}),
            (TypeError, 'progress', plain, 'p', 'npy', {'progress': 3}),
        )
        for error, message, table, path, format, options in cases:
            with self.subTest(message=message):
                path = self.path(path) if isinstance(path, str) else path
                with self.assertRaisesRegex(error, message):
                    export_table(table, path, format, **options)
                self.assertEqual(list(self.folder.iterdir()), [])


if __name__ == '__main__':
    unittest.main()
