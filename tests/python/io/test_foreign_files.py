"""Files as other programs write them, byte by byte from the source of each.

Each fixture names the project, the file and the commit of which it is made.
"""
import json
import struct
import unittest

import numpy as np
from tables import FolderTest

import embank
from embank.io import export_table, import_table

KEYS = (3, 2 ** 63 + 1, 2 ** 64 - 2)
SIGNED = tuple(key - (1 << 64) if key >> 63 else key for key in KEYS)
ROWS = ((0.5, -1.0), (2.0, 0.25), (-0.0, 8.0))
STATES = ((1.0, 2.0), (3.0, 4.0), (5.0, 6.0))
FLOATS = tuple(number for row in ROWS for number in row)


def safetensors_file(tensors, metadata=None):
    """huggingface/safetensors, safetensors/src/tensor.rs at 000a16f45cff0d4169ca15b67ea0028952:
    a header's size as u64, the header, padded with blanks to 8 bytes, and the tensors."""
    entries, data = {} if metadata is None else {'__metadata__': metadata}, b''
    for name, (dtype, shape, content) in tensors.items():
        entries[name] = {'dtype': dtype, 'shape': shape,
                         'data_offsets': [len(data), len(data) + len(content)]}
        data += content
    header = json.dumps(entries).encode()
    header += b' ' * (-len(header) % 8)
    return struct.pack('<Q', len(header)) + header + data


def tensors(suffix='', keys=KEYS, rows=FLOATS):
    return {'values' + suffix: ('F32', [len(keys), 2], struct.pack(f'<{len(rows)}f', *rows)),
            'keys' + suffix: ('U64', [len(keys)], struct.pack(f'<{len(keys)}Q', *keys))}


def npy_file(descr, shape, content):
    """numpy/numpy, numpy/lib/format.py at v1.24.2: magic, version 1.0, a header of 64 * n bytes."""
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header = text + b' ' * (63 - (10 + len(text)) % 64) + b'\n'
    return b'\x93NUMPY\x01\x00' + struct.pack('<H', len(header)) + header + content


class ForeignFileTest(FolderTest):
    def write(self, files):
        for name, content in files.items():
            file = self.folder / name
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(content)

    def check(self, format, path, heats=(0, 0, 0), states=None, **options):
        """Imports files and compares the table with the rows above."""
        optimizer = 'none' if states is None else 'adagrad'
        table = self.store.table(f'table {len(self.store.tables())}', dim=2, optimizer=optimizer)
        self.assertEqual(import_table(table, self.path(path), format, **options), len(KEYS))
        keys = np.array(KEYS, np.uint64)
        rows, outcomes = table.lookup(keys, missing='default', outcomes=True)
        self.assertEqual(rows.tobytes(), struct.pack('<6f', *FLOATS))
        self.assertEqual(outcomes.tolist(), [embank.Outcome.FOUND] * 3)
        # The lookup adds one.
        self.assertEqual(table.heat(keys).tolist(), [min(heat + 1, 1048575) for heat in heats])
        if states is not None:
            self.assertEqual(table.get_state(keys).tolist(), [list(state) for state in states])

    def test_safetensors(self):
        self.write({'items.safetensors': safetensors_file(tensors(), {'format': 'np'}),
                    'signed.safetensors': safetensors_file({
                        'other': ('F64', [], bytes(8)), **tensors(),
                        'keys': ('I64', [3], struct.pack('<3q', *SIGNED)),
                        'heat': ('U32', [3], struct.pack('<3I', 1, 1048575, 0)),
                        'state': ('F32', [3, 2], struct.pack('<6f', *np.ravel(STATES)))})})
        self.check('safetensors', 'items.safetensors')
        self.check('safetensors', 'signed.safetensors', (1, 1048575, 0), STATES)

    def test_safetensors_shards(self):
        # huggingface/huggingface_hub, src/huggingface_hub/serialization/_base.py at
        # 122aa5cc086c89643b30efe845398d54505f7866 has the names of shards and the index.
        def index(names):
            return json.dumps({'metadata': {'total_size': 48}, 'weight_map': names}).encode()
        first, second = 'm-00001-of-00002.safetensors', 'm-00002-of-00002.safetensors'
        self.write({first: safetensors_file(tensors('.1', KEYS[:1], FLOATS[:2])),
                    second: safetensors_file(tensors('.2', KEYS[1:], FLOATS[2:])),
                    'm.safetensors.index.json': index({
                        'keys.1': first, 'values.1': first, 'keys.2': second, 'values.2': second})})
        self.check('safetensors', 'm.safetensors')
        self.check('safetensors', 'm.safetensors.index.json')
        one = tensors()
        self.write({'n-1.safetensors': safetensors_file({'keys': one['keys']}),
                    'n-2.safetensors': safetensors_file({'values': one['values']}),
                    'n.safetensors.index.json': index({'keys': 'n-1.safetensors',
                                                       'values': 'n-2.safetensors'})})
        self.check('safetensors', 'n.safetensors')

    def test_npy(self):
        self.write({'items.keys.npy': npy_file('<i8', (3,), struct.pack('<3q', *SIGNED)),
                    'items.values.npy': npy_file('<f4', (3, 2), struct.pack('<6f', *FLOATS)),
                    'items.heat.npy': npy_file('<u4', (3,), struct.pack('<3I', 7, 0, 9))})
        self.check('npy', 'items', (7, 0, 9))
        self.check('npy', 'items', heat=False)

    def test_hierarchical_kv(self):
        # NVIDIA-Merlin/HierarchicalKV, include/merlin_localfile.hpp at
        # 08d735b58260fb36a72b48a928e51a4c55acfcb8: LocalKVFile writes keys, vectors and metas
        # (later scores, uint64) to a file each.
        self.write({'items.keys': struct.pack('<3Q', *KEYS),
                    'items.values': struct.pack('<6f', *FLOATS),
                    'items.scores': struct.pack('<3Q', 4, 2 ** 63 + 5, 0)})
        self.check('hkv', 'items')
        self.check('hkv', 'items', (4, 1048575, 0), heat=True)

    def test_tfra(self):
        # tensorflow/recommenders-addons, tensorflow_recommenders_addons/dynamic_embedding/core/
        # kernels/cuckoo_hashtable_op.cc at 7f45aa242a00197c257f3797ef487c243f583e9f:
        # SaveToFileSystemImpl, and LoadFromFileSystem with load_entire_dir.
        self.write({'items-keys': struct.pack('<3q', *SIGNED),
                    'items-values': struct.pack('<6f', *FLOATS),
                    'all_mht_1of2_rank0_size1-keys': struct.pack('<2q', *SIGNED[:2]),
                    'all_mht_1of2_rank0_size1-values': struct.pack('<4f', *FLOATS[:4]),
                    'all_mht_2of2_rank0_size1-keys': struct.pack('<q', SIGNED[2]),
                    'all_mht_2of2_rank0_size1-values': struct.pack('<2f', *FLOATS[4:])})
        self.check('tfra', 'items')
        self.check('tfra', 'all')

    def test_hugectr(self):
        # NVIDIA-Merlin/HugeCTR, HugeCTR/src/hps/modelloader.cpp at
        # 0d4084a629985570acb8d9a4644df25fbc4393b5: RawModelLoader::load takes long long and float.
        self.write({'items/key': struct.pack('<3q', *SIGNED),
                    'items/emb_vector': struct.pack('<6f', *FLOATS),
                    'items/slot_id': bytes(24)})
        self.check('hugectr', 'items')

    def test_dynamicemb(self):
        # NVIDIA/recsys-examples, corelib/dynamicemb/dynamicemb/dump_load.py at
        # 0c45b80e4f22a9ccf28df64d8eb378ed5a523073 (opt_values), and batched_dynamicemb_tables.py at
        # 01eaaf9dfa766f325296f86d56e701f714e453a6 (emb_opt_values).
        for folder, state_name in (('old', 'opt_values'), ('new', 'emb_opt_values')):
            for rank, part in enumerate((slice(0, 2), slice(2, 3))):
                end = f'.rank_{rank}.world_size_2'
                self.write({
                    f'{folder}/t_emb_keys{end}': struct.pack(f'<{len(SIGNED[part])}q',
                                                             *SIGNED[part]),
                    f'{folder}/t_emb_values{end}': np.array(ROWS[part], '<f4').tobytes(),
                    f'{folder}/t_emb_scores{end}': np.array((5, 6, 1)[part], '<i8').tobytes(),
                    f'{folder}/t_{state_name}{end}': np.array(STATES[part], '<f4').tobytes()})
            self.check('dynamicemb', folder, states=STATES, name='t')
            self.check('dynamicemb', folder + '/', (5, 6, 1), STATES, name='t', heat=True)

    def test_torcheasyrec(self):
        # alibaba/TorchEasyRec, tzrec/utils/delta_embedding_dump.py at
        # eeaace12c961b255b85f3b1a3af76e266d114913: _DELTA_DUMP_SCHEMA and _append_table_chunk.
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError as error:
            with self.assertRaisesRegex(embank.UnimplementedError, 'needs pyarrow'):
                self.check('torcheasyrec', 'items.parquet')
            self.skipTest(f'pyarrow is not there: {error}')
        schema = pa.schema([
            ('global_step', pa.int64()), ('rank', pa.int32()), ('world_size', pa.int32()),
            ('embedding_name', pa.string()), ('embedding_role', pa.string()),
            ('feature_name', pa.string()), ('table_fqn', pa.string()), ('key_id', pa.int64()),
            ('embedding', pa.list_(pa.float32()))])
        names = ['t', 'other', 't', 't']
        columns = [[9] * 4, [0] * 4, [1] * 4, names, ['ebc'] * 4, ['f'] * 4, ['m.t'] * 4,
                   [SIGNED[0], 77, *SIGNED[1:]],
                   [ROWS[0], (1.0, 2.0, 3.0), *ROWS[1:]]]
        arrays = [pa.array(column, field.type) for column, field in zip(columns, schema)]
        path = self.folder / 'step_9' / 'd_step_9_rank_0_of_1.parquet'
        path.parent.mkdir()
        pq.write_table(pa.Table.from_arrays(arrays, schema=schema), path)
        self.check('torcheasyrec', 'step_9', name='t')
        self.check('torcheasyrec', 'step_9/d_step_9_rank_0_of_1.parquet', name='t')
        with self.assertRaisesRegex(embank.InvalidArgumentError, 'key 77 has 3 values'):
            self.check('torcheasyrec', 'step_9', name='other')
        table = self.store.table('t', dim=2)
        import_table(table, path, 'torcheasyrec')
        export_table(table, self.path('ours.parquet'), 'torcheasyrec')
        self.assertEqual(pq.read_schema(self.path('ours.parquet')).remove_metadata(), schema)


class WrittenFileTest(FolderTest):
    """One row of ours is the bytes that other programs read."""

    def test_bytes(self):
        table = self.store.table('t', dim=2, optimizer='adagrad')
        key, row = np.array([KEYS[1]], np.uint64), np.array([ROWS[1]], np.float32)
        table.upsert(key, row, state=np.array([STATES[1]], np.float32),
                     heat=np.array([6], np.uint32))
        key, row = struct.pack('<Q', KEYS[1]), struct.pack('<2f', *ROWS[1])
        end = '.rank_0.world_size_1'
        cases = {
            'hkv': {'o.keys': key, 'o.values': row, 'o.scores': struct.pack('<Q', 6)},
            'tfra': {'o-keys': key, 'o-values': row},
            'hugectr': {'o/key': key, 'o/emb_vector': row},
            'dynamicemb': {f'o/t_emb_keys{end}': key, f'o/t_emb_values{end}': row,
                           f'o/t_emb_scores{end}': struct.pack('<q', 6),
                           f'o/t_emb_opt_values{end}': struct.pack('<2f', *STATES[1])}}
        for format, files in cases.items():
            with self.subTest(format=format):
                export_table(table, self.path('o'), format)
                self.assertEqual(self.files(), sorted(files))
                for name, content in files.items():
                    self.assertEqual((self.folder / name).read_bytes(), content)
                    (self.folder / name).unlink()
            if (self.folder / 'o').is_dir():
                (self.folder / 'o').rmdir()

    def test_numpy_reads_npy(self):
        table = self.store.table('t', dim=2, optimizer='adagrad')
        table.upsert(np.array(KEYS, np.uint64), np.array(ROWS, np.float32))
        export_table(table, self.path('o'), 'npy')
        keys = np.load(self.path('o.keys.npy'), mmap_mode='r')
        order = np.argsort(keys)
        self.assertEqual(keys[order].tolist(), list(KEYS))
        self.assertEqual(np.load(self.path('o.values.npy'))[order].tobytes(),
                         struct.pack('<6f', *FLOATS))

    def test_the_header_of_safetensors(self):
        table = self.store.table('täble"', dim=2, value_type='bf16')
        table.upsert(np.array(KEYS, np.uint64), np.zeros((3, 2), np.uint16))
        export_table(table, self.path('o.safetensors'))
        content = (self.folder / 'o.safetensors').read_bytes()
        length, = struct.unpack('<Q', content[:8])
        header = json.loads(content[8:8 + length])
        self.assertEqual(header, {
            '__metadata__': {'embank': '1', 'table': 'täble"', 'optimizer': 'none'},
            'keys': {'dtype': 'U64', 'shape': [3], 'data_offsets': [0, 24]},
            'heat': {'dtype': 'U32', 'shape': [3], 'data_offsets': [24, 36]},
            'values': {'dtype': 'BF16', 'shape': [3, 2], 'data_offsets': [36, 48]}})
        self.assertEqual(len(content), 8 + length + 48)
        self.assertEqual((8 + length) % 8, 0)


if __name__ == '__main__':
    unittest.main()
