"""Files that are damaged, cut off or of another table are exceptions, and no row is imported."""
import json
import random
import struct
import unittest

import numpy as np
from tables import FolderTest, filled

import embank
from embank.io import export_table, import_table

DamageError, WrongError = embank.DataLossError, embank.InvalidArgumentError


def with_header(content, change):
    """Returns a safetensors file whose header, an object, was changed."""
    length, = struct.unpack('<Q', content[:8])
    header = json.loads(content[8:8 + length])
    change(header)
    text = json.dumps(header).encode()
    return struct.pack('<Q', len(text)) + text + content[8 + length:]


def entry(name, field, value):
    """Returns a change of a header that sets a field of a tensor."""
    def change(content):
        return with_header(content, lambda header: header[name].update({field: value}))
    return change


def without(name):
    return lambda content: with_header(content, lambda header: header.pop(name))


def replaced(old, new):
    assert len(old) == len(new)

    def change(content):
        assert old in content
        return content.replace(old, new)
    return change


class DamagedFileTest(FolderTest):
    """Each case changes one file of an export: (its name, the change, the exception, a text)."""

    def check(self, format, cases, path='items', **table_options):
        options = {'dim': 4, 'optimizer': 'adagrad'} | table_options
        table = filled(self.store, 'items', 50, **options)
        copy = self.store.table('copy', **options)
        export_table(table, self.path(path), format, overwrite=True)
        for name, change, error, message in cases:
            file = self.folder / name
            whole = file.read_bytes()
            with self.subTest(file=name, message=message):
                file.write_bytes(change(whole)) if change else file.unlink()
                with self.assertRaisesRegex(error, message) as raised:
                    import_table(copy, self.path(path), format, name='items')
                self.assertIn(str(self.folder), str(raised.exception))
                self.assertEqual(len(copy), 0)
            file.write_bytes(whole)
        self.assertEqual(import_table(copy, self.path(path), format, name='items'), 50)

    def test_safetensors(self):
        cases = [
            (None, embank.NotFoundError, 'no such file'),
            (lambda content: b'', DamageError, 'the file has 0'),
            (lambda content: content[:100], DamageError, 'the file has 100'),
            (lambda content: content[:-1], DamageError, 'tensors end at 6296'),
            (lambda content: content + b'x', DamageError, 'tensors end at 6296'),
            (lambda content: b'\xff' * 8 + content[8:], DamageError, 'at most 100000000'),
            (replaced(b'"__metadata__"', b'"__metadata__ '), DamageError, 'JSON'),
            (replaced(b'"heat"', b'"keys"'), DamageError, 'is there twice'),
            (without('keys'), DamageError, "keys|begin"),
            (lambda content: with_header(content, lambda header: header.update(x=[1])),
             DamageError, "'x' is not understood"),
            (entry('keys', 'dtype', 'F64'), WrongError, 'keys have dtype float64'),
            (entry('keys', 'dtype', 'F8'), WrongError, 'dtype F8'),
            (entry('keys', 'shape', [50, 1]), WrongError, 'keys have dtype uint64'),
            (entry('keys', 'shape', [50, 0]), WrongError, r'shape \[50, 0\]'),
            (entry('keys', 'shape', [49]), DamageError, 'need 392'),
            (entry('keys', 'shape', [True]), DamageError, 'list of numbers'),
            (entry('keys', 'shape', 50), DamageError, 'list of numbers'),
            (entry('keys', 'data_offsets', [8, 408]), DamageError, 'must begin at|from 8'),
            (entry('values', 'dtype', 'I32'), WrongError, 'values have dtype int32'),
            (entry('values', 'shape', [100, 2]), WrongError, r'\(100, 2\); .* dim 4'),
            (entry('heat', 'dtype', 'F32'), WrongError, 'heats have dtype float32'),
            (entry('state', 'shape', [25, 8]), DamageError, 'state has 25 rows'),
            (lambda content: with_header(content, lambda header: header['__metadata__'].update(
                optimizer='ftrl')), WrongError, 'of ftrl; table copy has 4, of adagrad'),
        ]
        self.check('safetensors', [('items.safetensors', *case) for case in cases],
                   'items.safetensors')

    def test_an_index_of_safetensors(self):
        table = filled(self.store, 'items', 50, dim=4)
        path = self.path('items.safetensors')
        export_table(table, path, shard_bytes='5KiB')
        file = self.folder / 'items.safetensors.index.json'
        whole = file.read_text()
        cases = (('{}', DamageError, 'weight_map'), ('[', DamageError, 'JSON'),
                 ('[]', DamageError, 'must be an object'),
                 (whole.replace('items-00001', '../items-00001'), DamageError, 'weight_map'),
                 (whole.replace('items-00001', 'items-00009'), embank.NotFoundError, '00009'))
        copy = self.store.table('copy', dim=4)
        for text, error, message in cases:
            with self.subTest(message=message):
                file.write_text(text)
                with self.assertRaisesRegex(error, message):
                    import_table(copy, path)
                self.assertEqual(len(copy), 0)

    def test_npy(self):
        cases = [
            ('items.keys.npy', None, embank.NotFoundError, 'no such file'),
            ('items.keys.npy', lambda content: content[1:], DamageError, 'no npy file'),
            ('items.keys.npy', lambda content: content[:9], DamageError, 'no npy file'),
            ('items.keys.npy', lambda content: content[:-1], DamageError, 'ends at 528'),
            ('items.keys.npy', lambda content: content[:50], DamageError, 'header has 118 bytes'),
            ('items.keys.npy', replaced(b"'<u8',", b"'|O' ,"), WrongError, r'dtype \|O'),
            ('items.keys.npy', replaced(b"'<u8'", b"'<f8'"), WrongError, 'keys have dtype float64'),
            ('items.keys.npy', replaced(b"'<u8'", b"'>u8'"), WrongError, 'little-endian'),
            ('items.keys.npy', replaced(b'(50,)', b'(-9,)'), WrongError, r'shape \(-9,\)'),
            ('items.keys.npy', replaced(b'(50,)', b'f(x,)'), DamageError, 'not understood'),
            ('items.keys.npy', replaced(b'(50,)', b'(((((('[:5]), DamageError, 'not understood'),
            ('items.values.npy', replaced(b'(50, 4)', b'(25, 8)'), WrongError, 'dim 4'),
            ('items.values.npy', replaced(b'(50, 4)', b'(200, )'), WrongError, r'\(200,\)'),
            ('items.values.npy', replaced(b'False', b'True '), WrongError, 'fortran_order True'),
            ('items.state.npy', replaced(b'(50, 4)', b'(40, 5)'), DamageError, 'state has 40 rows'),
            ('items.state.npy', replaced(b"'<f4'", b"'<i4'"), WrongError, 'have dtype int32'),
            ('items.heat.npy', replaced(b"'<u4'", b"'<f4'"), WrongError, 'heats have dtype'),
        ]
        self.check('npy', cases)

    def test_raw_pairs(self):
        end = '.rank_0.world_size_1'
        for format, keys, values in (('hkv', 'items.keys', 'items.values'),
                                     ('tfra', 'items-keys', 'items-values'),
                                     ('hugectr', 'items/key', 'items/emb_vector'),
                                     ('dynamicemb', f'items/items_emb_keys{end}',
                                      f'items/items_emb_values{end}')):
            with self.subTest(format=format):
                self.check(format, [
                    (keys, None, embank.NotFoundError, 'there is n'),
                    (values, None, embank.NotFoundError, 'no such file'),
                    (keys, lambda content: content[:-3], DamageError, '397 bytes.* 5 bytes'),
                    (values, lambda content: content[:-1], DamageError, '799 bytes; 50 keys.* 800'),
                    (values, lambda content: content * 2, WrongError, 'the file has 8 of them'),
                    (values, lambda content: b'', DamageError, 'has 0 bytes')])
                self.store.drop_table('copy')

    def test_other_files_of_raw_pairs(self):
        self.check('hkv', [('items.scores', lambda content: content[:-8], DamageError,
                            '50 keys .* need 400, 1 scores')])
        self.store.drop_table('copy')
        name = 'items/items_emb_{}.rank_0.world_size_{}'.format
        self.check('dynamicemb', [
            (name('opt_values', 1), lambda content: content * 2, WrongError, 'states have 8 num'),
            (name('opt_values', 1), lambda content: content[:-1], DamageError, '799 bytes'),
            (name('scores', 1), lambda content: content[:-8], DamageError, '392 bytes')])
        (self.folder / name('keys', 2)).write_bytes(b'')
        with self.assertRaisesRegex(DamageError, '2 files of keys, of world_size 1 and 2'):
            import_table(self.store.table('copy'), self.path('items'), 'dynamicemb', name='items')

    def test_other_tables(self):
        table = filled(self.store, 'items', 50, dim=4, optimizer='adagrad')
        for format, path in (('safetensors', 'items.safetensors'), ('npy', 'items')):
            export_table(table, self.path(path), format)
            for options, message in (({'dim': 5}, 'dim 5'),
                                     ({'dim': 4, 'value_type': 'f16'}, 'f16'),
                                     ({'dim': 4, 'value_type': 'bf16'}, 'bf16'),
                                     ({'dim': 4}, 'state=False'),
                                     ({'dim': 4, 'optimizer': 'adam'}, 'has 9, of adam')):
                with self.subTest(format=format, message=message):
                    other = self.store.table(f'{format} {message}', **options)
                    with self.assertRaisesRegex(WrongError, message):
                        import_table(other, self.path(path), format)
                    self.assertEqual(len(other), 0)
            plain = self.store.table(f'{format} plain', dim=4)
            self.assertEqual(import_table(plain, self.path(path), format, state=False), 50)
        export_table(table, self.path('q'), 'npy', state=False, heat=False)
        for option in ('state', 'heat'):
            with self.assertRaisesRegex(embank.NotFoundError, f'no {option}s'):
                import_table(table, self.path('q'), 'npy', **{option: True})

    def test_random_damage_is_an_exception_or_harmless(self):
        table = filled(self.store, 'items', 20, dim=4, optimizer='adagrad')
        copy = self.store.table('copy', dim=4, optimizer='adagrad')
        draw = random.Random(1)
        wrong = 0
        for format, path, file in (('safetensors', 'items.safetensors', 'items.safetensors'),
                                   ('npy', 'items', 'items.values.npy')):
            export_table(table, self.path(path), format)
            whole = (self.folder / file).read_bytes()
            used = len(whole.rstrip(b' ')) if format == 'npy' else 500
            for _ in range(400):
                content = bytearray(whole)
                for _ in range(draw.randint(1, 3)):
                    content[draw.randrange(min(used, len(content)))] = draw.randrange(256)
                if draw.random() < 0.2:
                    del content[draw.randrange(len(content)):]
                (self.folder / file).write_bytes(content)
                try:
                    import_table(copy, self.path(path), format)
                except embank.EmbankError:
                    wrong += 1
        self.assertGreater(wrong, 300)

    def test_a_file_that_becomes_shorter_meanwhile(self):
        table = self.store.table('items', dim=1024)
        table.lookup(np.arange(5000, dtype=np.uint64))
        export_table(table, self.path('items'), 'hkv')
        copy = self.store.table('copy', dim=1024)

        def progress(done, total):
            if done > 2000:
                with open(self.path('items.values'), 'r+b') as file:
                    file.truncate(9 << 20)
        with self.assertRaisesRegex(embank.io.PartialImportError, 'ends at byte 9437184') as raised:
            import_table(copy, self.path('items'), 'hkv', progress=progress)
        self.assertEqual(raised.exception.rows, len(copy))
        self.assertGreater(len(copy), 2000)


if __name__ == '__main__':
    unittest.main()
