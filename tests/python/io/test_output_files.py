"""An export that is ended anywhere leaves one table or none, and no file of others is lost."""
import contextlib
import json
import os
import signal
import stat
import struct
import unittest
from unittest import mock

import numpy as np
from tables import FolderTest, contents, filled

import embank
from embank.io import export_table, import_table
from embank.io.output_files import OutputFiles

SMALL, MIDDLE = {'shard_bytes': 4096 + 20 * 28}, {'shard_bytes': 4096 + 30 * 28}  # 3 and 2 shards
PLAIN = {'heat': False}
TWO_RANKS = {}  # The files are renamed to those of two ranks, of which one has no row.
# The format, the path, and the options of an earlier export and of one that replaces it.
REPLACED = (('safetensors', 't.safetensors', {}, SMALL),
            ('safetensors', 't.safetensors', SMALL, {}),
            ('safetensors', 't.safetensors', SMALL, SMALL),
            ('safetensors', 't.safetensors', SMALL, MIDDLE),
            ('npy', 't', {}, {}), ('npy', 't', {}, PLAIN), ('npy', 't', PLAIN, {}),
            ('hkv', 't', {}, PLAIN), ('tfra', 't', {}, {}), ('hugectr', 't', {}, {}),
            ('dynamicemb', 't', {}, PLAIN), ('dynamicemb', 't', TWO_RANKS, {}))


class EndedError(BaseException):
    pass


def close_files(files):
    """Leaves the names as the end of a process does."""
    for file, _ in files._files.values():
        file.close()


class Calls:
    """Notes the calls that change or sync names; raises once, before call number `calls_max`."""

    def __init__(self, folder, calls_max=None):
        self.folder, self.calls_max, self.calls = folder, calls_max, []
        self.real = {name: getattr(os, name) for name in ('replace', 'remove', 'fsync')}

    def call(self, name, *arguments):
        if len(self.calls) == self.calls_max:
            self.calls_max = None
            raise EndedError
        paths = [os.readlink(f'/proc/self/fd/{path}') if name == 'fsync' else path
                 for path in arguments]
        self.calls.append(' '.join([name] + [os.path.relpath(path, self.folder)
                                             for path in paths]))
        return self.real[name](*arguments)

    @contextlib.contextmanager
    def watched(self, is_killed=False):
        """Watches all calls. After a kill, no file is removed."""
        with contextlib.ExitStack() as stack:
            for name in self.real:
                stack.enter_context(mock.patch.object(
                    os, name, lambda *arguments, name=name: self.call(name, *arguments)))
            # Readers would miss no file of states, and those are listed first.
            names = os.listdir
            stack.enter_context(mock.patch.object(os, 'listdir', lambda path: sorted(
                names(path), key=lambda name: 'opt_values' not in name)))
            if is_killed:
                stack.enter_context(mock.patch.object(OutputFiles, '_clear', close_files))
            yield


class EndedExportTest(FolderTest):
    def table(self, name, first):
        """Makes a table whose keys and values say which one it is."""
        table = self.store.table(name, dim=2, optimizer='adagrad')
        keys = np.arange(first, first + 100, 2, dtype=np.uint64)
        table.upsert(keys, np.full((50, 2), first, np.float32),
                     state=np.full((50, 2), 5 + first, np.float32),
                     heat=np.full(50, first, np.uint32))
        return table

    def read(self, path, format):
        """Returns the contents of the table that is read, or the exception."""
        copy = self.store.table('copy', dim=2, optimizer='adagrad')
        try:
            import_table(copy, path, format, name='t')
            return tuple(contents(copy))
        except (embank.NotFoundError, embank.DataLossError) as error:
            return type(error)
        finally:
            self.store.drop_table('copy')

    def replace(self, tables, format, name, options, calls_max=None, is_killed=False):
        """Exports a table, replaces it by another until the end, and returns what is read then."""
        for file in self.files():
            (self.folder / file).unlink()
        path = self.path(name)
        export_table(tables[0], path, format, name='t', **options[0])
        if options[0] is TWO_RANKS:
            for file in (self.folder / name).iterdir():
                first = file.rename(str(file).replace('world_size_1', 'world_size_2'))
                open(str(first).replace('rank_0', 'rank_1'), 'x').close()
        before, is_done = self.read(path, format), True
        with Calls(self.folder, calls_max).watched(is_killed):
            try:
                export_table(tables[1], path, format, name='t', overwrite=True, **options[1])
            except EndedError:
                is_done = False
        if not is_killed:
            self.assertNotIn('.part', ' '.join(self.files()))
        return before, self.read(path, format), is_done

    def test_an_end_anywhere_leaves_one_table_or_none(self):
        tables = [self.table('even', 0), self.table('odd', 1)]
        for format, name, *options in REPLACED:
            old, new, _ = self.replace(tables, format, name, options)
            for is_killed in (False, True):
                found, is_done, calls_max = [], False, 0
                while not is_done:
                    _, read, is_done = self.replace(tables, format, name, options, calls_max,
                                                    is_killed)
                    found.append('old' if read == old else 'new' if read == new else read)
                    calls_max += 1
                with self.subTest(format=format, options=options, is_killed=is_killed):
                    is_one_file = format == 'safetensors' and not options[1]
                    self.assertEqual(set(found), {'old', 'new'} | (
                        set() if is_one_file else {embank.NotFoundError}) | (
                        # The keys of one rank are removed before those of the other.
                        {embank.DataLossError} if options[0] is TWO_RANKS else set()))
                    self.assertEqual(found[-1], 'new')

    def test_names_are_durable_in_the_order_in_which_readers_need_them(self):
        table = self.table('even', 0)
        path = self.path('t.safetensors')
        export_table(table, path, **SMALL)
        calls = Calls(self.folder)
        with calls.watched():
            export_table(table, path, overwrite=True, **MIDDLE)
        shards = [f't-0000{number}-of-00002.safetensors' for number in (1, 2)]
        parts = [f't.safetensors.{number}.part' for number in (1, 2)]
        index = 't.safetensors.index.json'
        stale = sorted(call for call in calls.calls if '-of-00003' in call)
        self.assertEqual([call for call in calls.calls if call not in stale],
                         [f'fsync {part}' for part in [*parts, index + '.part']] +
                         ['fsync .', f'remove {index}', 'fsync .'] +
                         [f'replace {part} {shard}' for part, shard in zip(parts, shards)] +
                         ['fsync .', f'replace {index}.part {index}', 'fsync .'])
        self.assertEqual(stale, [f'remove t-0000{number}-of-00003.safetensors'
                                 for number in (1, 2, 3)])
        self.assertEqual(sorted(calls.calls[6:9]), stale)
        calls = Calls(self.folder)
        with calls.watched():
            export_table(table, self.path('new'), 'hugectr')
        self.assertEqual(sorted(calls.calls[-2:]), ['fsync .', 'fsync new'])

    def test_files_of_others_stay(self):
        table = self.table('even', 0)
        header = b'{"w":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}'
        others = {'m-00001-of-00002.safetensors': struct.pack('<Q', len(header)) + header,
                  'm.safetensors.index.json': json.dumps(
                      {'weight_map': {'w': 'm-00001-of-00002.safetensors'}}).encode(),
                  'm.safetensors.1.part': b'a part of another program',
                  'm/t_emb_notes.rank_0.world_size_2': b'notes'}
        (self.folder / 'm').mkdir()
        for name, content in others.items():
            (self.folder / name).write_bytes(content)
        for overwrite in (False, True):
            for format, path in (('safetensors', 'm.safetensors'), ('dynamicemb', 'm')):
                export_table(table, self.path(path), format, name='t', overwrite=overwrite)
        for name, content in others.items():
            self.assertEqual((self.folder / name).read_bytes(), content)
        with self.assertRaisesRegex(embank.AlreadyExistsError, 'm-00001-of-00002.safetensors'):
            (self.folder / 'm.safetensors').unlink()
            export_table(table, self.path('m.safetensors'), **MIDDLE)

    def test_a_directory_in_the_place_of_a_file_changes_nothing(self):
        table = self.table('even', 0)
        export_table(table, self.path('t'), 'npy', heat=False)
        (self.folder / 't.heat.npy').mkdir()
        for heat in (False, True):
            with self.assertRaisesRegex(embank.InvalidArgumentError, 'heat.npy is a directory'):
                export_table(table, self.path('t'), 'npy', heat=heat, overwrite=True)
        self.assertEqual(len(self.files()), 3)

    def test_a_directory_that_cannot_be_synced_changes_nothing(self):
        table = self.table('even', 0)
        for format, name in (('npy', 't'), ('hugectr', 't'), ('safetensors', 't.safetensors')):
            export_table(table, self.path(name), format)
            before = {file: (self.folder / file).read_bytes() for file in self.files()}
            with mock.patch.object(os, 'open', side_effect=PermissionError(13, 'denied')):
                with self.assertRaisesRegex(PermissionError, 'denied'):
                    export_table(table, self.path(name), format, overwrite=True)
            self.assertEqual(before, {file: (self.folder / file).read_bytes()
                                      for file in self.files()})

    def test_a_table_that_is_named_like_a_shard_stays(self):
        tables = [self.table('even', 0), self.table('odd', 1)]
        name = 't-00001-of-00002.safetensors'
        export_table(tables[0], self.path(name))
        header = b'{"keys":{"dtype":[],"shape":[0],"data_offsets":[0,0]}}'
        damaged = self.folder / 't-00002-of-00002.safetensors'
        damaged.write_bytes(struct.pack('<Q', len(header)) + header)
        export_table(tables[1], self.path('t.safetensors'), overwrite=True)
        self.assertEqual(self.read(self.path(name), 'safetensors'), tuple(contents(tables[0])))
        self.assertTrue(damaged.exists())


class RefusedFileTest(FolderTest):
    def test_a_shard_by_itself_is_refused(self):
        table = filled(self.store, 'items', 50, dim=4)
        copy = self.store.table('copy', dim=4)
        path = self.path('t.safetensors')
        export_table(table, path, shard_bytes='5KiB')
        (self.folder / 'renamed.safetensors').write_bytes(
            (self.folder / 't-00001-of-00002.safetensors').read_bytes())
        for name, message in (('t-00001-of-00002', f'; give {path}, whose index names all shards'),
                              ('renamed', 'that it had without its number')):
            with self.assertRaisesRegex(embank.InvalidArgumentError,
                                        f'{name}.safetensors is a shard of a table.*{message}'):
                import_table(copy, self.path(f'{name}.safetensors'))
        self.assertEqual(import_table(copy, path), 50)
        index = self.folder / 't.safetensors.index.json'
        found = json.loads(index.read_text())
        found['weight_map']['heat.00009'] = 't-00001-of-00002.safetensors'
        index.write_text(json.dumps(found))
        with self.assertRaisesRegex(embank.DataLossError, "'heat.00009' of the index is not there"):
            import_table(copy, path)

    def test_a_pipe_is_refused_at_once(self):
        table = self.store.table('items', dim=2)
        signal.alarm(60)  # It ends the test if an open waits.
        self.addCleanup(signal.alarm, 0)
        for format, path, file in (('safetensors', 'p.safetensors', 'p.safetensors'),
                                   ('safetensors', 'q.safetensors', 'q.safetensors.index.json'),
                                   ('npy', 'p', 'p.keys.npy'), ('hkv', 'p', 'p.keys'),
                                   ('tfra', 'p', 'p-keys')):
            os.mkfifo(self.path(file))
            self.assertTrue(stat.S_ISFIFO(os.stat(self.path(file)).st_mode))
            with self.assertRaisesRegex(embank.InvalidArgumentError, 'no regular file'):
                import_table(table, self.path(path), format)


if __name__ == '__main__':
    unittest.main()
