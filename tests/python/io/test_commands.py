"""The commands write-table and read-table of embank, whose files are those of embank.io."""
import json
import shutil
import subprocess
import unittest

import numpy as np
from tables import OPTIMIZERS, FolderTest, contents, filled

import embank
from embank.io import export_table, import_table

COMMAND = shutil.which('embank')


@unittest.skipUnless(COMMAND, 'there is no command embank on the PATH')
class CommandTest(FolderTest):
    def run_command(self, name, *arguments):
        """Runs a command on the store `on_disk`, and returns what it has printed as JSON."""
        ran = subprocess.run([COMMAND, name, self.path('on_disk'), *arguments, '--json'],
                             capture_output=True, text=True)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return json.loads(ran.stdout)

    def tables(self):
        """Yields names and options of tables that are in the store `on_disk`."""
        with embank.Store(self.path('on_disk'), seed=1) as store:
            cases = [(optimizer, {'dim': 5, 'optimizer': optimizer,
                                  'value_type': ('f32', 'f16', 'bf16')[number % 3]})
                     for number, optimizer in enumerate(OPTIMIZERS)]
            for name, options in cases:
                filled(store, name, 200, **options)
            store.table('empty "\u00e9\u0001"', dim=2, optimizer='adagrad')
            store.checkpoint()
        return [*cases, ('empty "\u00e9\u0001"', {'dim': 2, 'optimizer': 'adagrad'})]

    def test_files_of_the_command_are_those_of_python(self):
        ways = (('safetensors', '.safetensors', '4GiB'), ('safetensors', '.safetensors', '5KiB'),
                ('npy', '', '4GiB'))
        for number, (name, options) in enumerate(self.tables()):
            for format, suffix, shard_bytes in ways:
                with self.subTest(name=name, format=format, shard_bytes=shard_bytes):
                    ours, theirs = f'c/{number}{suffix}', f'python/{number}{suffix}'
                    for folder in ('c', 'python'):
                        (self.folder / folder).mkdir(exist_ok=True)
                    self.run_command('write-table', name, '--out', self.path(ours), '--format',
                                     format, '--shard-bytes', shard_bytes)
                    with embank.Store(self.path('on_disk'), read_only=True) as store:
                        table = store.table(name)
                        export_table(table, self.path(theirs), format, shard_bytes=shard_bytes)
                        copy = self.store.table('copy', **options)
                        self.assertEqual(import_table(copy, self.path(ours), format), len(table))
                        self.assertEqual(contents(copy), contents(table))
                    self.store.drop_table('copy')
                    files = {folder: sorted((self.folder / folder).iterdir())
                             for folder in ('c', 'python')}
                    for c, python in zip(*files.values(), strict=True):
                        self.assertEqual(c.name, python.name)
                        if c.suffix == '.json':
                            self.assertEqual(json.loads(c.read_text()),
                                             json.loads(python.read_text()))
                        elif number < len(OPTIMIZERS):
                            self.assertEqual(c.read_bytes(), python.read_bytes())
                    for folder in ('c', 'python'):
                        shutil.rmtree(self.folder / folder)

    def test_the_command_reads_files_of_python(self):
        for number, (name, options) in enumerate(self.tables()):
            for format, suffix in (('safetensors', '.safetensors'), ('npy', '')):
                with self.subTest(name=name, format=format):
                    path = self.path(f'{number}{suffix}')
                    with embank.Store(self.path('on_disk'), read_only=True) as store:
                        before = contents(store.table(name))
                        export_table(store.table(name), path, format, shard_bytes='5KiB')
                    told = self.run_command('read-table', f'{format} {number}', '--in', path,
                                            '--format', format, '--optimizer',
                                            options['optimizer'])
                    self.assertTrue(told['table_created'])
                    with embank.Store(self.path('on_disk'), read_only=True) as store:
                        copy = store.table(f'{format} {number}')
                        self.assertEqual(contents(copy), before)
                        self.assertEqual(copy.options.value_type, options.get('value_type', 'f32'))

    def test_the_command_reads_files_of_numpy(self):
        self.tables()
        np.save(self.path('q.keys.npy'), np.arange(-2, 3))
        np.save(self.path('q.values.npy'), np.ones((5, 2), np.float16))
        self.run_command('read-table', 'numpy', '--in', self.path('q'), '--format', 'npy')
        found = self.run_command('get', 'numpy', str((1 << 64) - 2), '2')
        self.assertEqual([row['values'] for row in found['rows']], [[1, 1], [1, 1]])


if __name__ == '__main__':
    unittest.main()
