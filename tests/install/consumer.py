"""A Python program against the installed library, by ctypes: one round trip with known values."""
import ctypes as c
import sys
import tempfile
import time

CREATE, ZERO = 0, 2
FOUND, CREATED, ABSENT = 1, 2, 3
OK, INVALID_ARGUMENT, NOT_FOUND, FAILED_PRECONDITION = 0, 3, 5, 9
SGD, CONSTANT = 1, 1
SET_CLIPPING = 16
DIM = 3


class StoreOptions(c.Structure):
    _fields_ = [('struct_size', c.c_uint32), ('flags', c.c_uint32), ('path', c.c_char_p),
                ('dram_bytes', c.c_uint64), ('ssd_bytes', c.c_uint64), ('pmem_path', c.c_char_p),
                ('pmem_bytes', c.c_uint64), ('hbm_bytes', c.c_uint64), ('cuda_device', c.c_int32),
                ('worker_threads', c.c_uint32), ('seed', c.c_uint64), ('durability', c.c_int32),
                ('warmup_iters', c.c_uint32), ('flush_iters', c.c_uint32),
                ('reserved', c.c_uint32), ('pin_batches', c.c_uint32),
                ('reserved_2', c.c_uint32)]


class TableOptions(c.Structure):
    _fields_ = [('struct_size', c.c_uint32), ('dim', c.c_uint32), ('value_type', c.c_int32),
                ('optimizer', c.c_int32), ('learning_rate', c.c_float), ('beta1', c.c_float),
                ('beta2', c.c_float), ('epsilon', c.c_float), ('weight_decay', c.c_float),
                ('initial_accumulator', c.c_float), ('initializer', c.c_int32),
                ('init_a', c.c_float), ('init_b', c.c_float), ('eviction', c.c_int32),
                ('admission_count', c.c_uint32), ('on_full', c.c_int32),
                ('max_gradient_norm', c.c_float), ('max_gradient_value', c.c_float),
                ('rounding', c.c_int32), ('expected_rows_log2', c.c_uint32),
                ('ftrl_l1', c.c_float), ('ftrl_l2', c.c_float),
                ('decoupled_weight_decay', c.c_float)]


class TableInfo(c.Structure):
    _fields_ = [('struct_size', c.c_uint32), ('dim', c.c_uint32), ('value_type', c.c_int32),
                ('optimizer', c.c_int32), ('rows', c.c_uint64), ('rows_hbm', c.c_uint64),
                ('rows_dram', c.c_uint64), ('rows_pmem', c.c_uint64), ('rows_ssd', c.c_uint64),
                ('row_bytes', c.c_uint64)]


class CheckpointInfo(c.Structure):
    _fields_ = [('struct_size', c.c_uint32), ('reserved', c.c_uint32), ('sequence', c.c_uint64),
                ('unix_ns', c.c_int64), ('bytes', c.c_uint64), ('blob_bytes', c.c_uint64),
                ('rows', c.c_uint64)]


class Feature(c.Structure):
    _fields_ = [('struct_size', c.c_uint32), ('pooling', c.c_int32), ('table', c.c_void_p),
                ('keys', c.c_void_p), ('n', c.c_uint64), ('offsets', c.c_void_p),
                ('bags', c.c_uint64), ('weights', c.c_void_p), ('rows', c.c_void_p),
                ('row_stride', c.c_uint64), ('key_type', c.c_int32), ('offset_type', c.c_int32),
                ('typed_keys', c.c_void_p), ('typed_offsets', c.c_void_p),
                ('padding_key', c.c_uint64), ('flags', c.c_uint32), ('reserved', c.c_uint32)]


def load(path):
    embank = c.CDLL(path)
    handle, keys, outcomes = c.c_void_p, c.POINTER(c.c_uint64), c.POINTER(c.c_uint8)
    embank.embank_version.restype = c.c_char_p
    embank.embank_last_error.restype = c.c_char_p
    embank.embank_status_name.restype = c.c_char_p
    embank.embank_store_open.argtypes = [c.POINTER(StoreOptions), c.POINTER(handle)]
    embank.embank_store_close.argtypes = [handle]
    embank.embank_table_create.argtypes = [handle, c.c_char_p, c.POINTER(TableOptions),
                                         c.POINTER(handle)]
    embank.embank_table_open.argtypes = [handle, c.c_char_p, c.POINTER(handle)]
    embank.embank_table_get_info.argtypes = [handle, c.POINTER(TableInfo)]
    embank.embank_table_get_options.argtypes = [handle, c.POINTER(TableOptions)]
    embank.embank_table_set_options.argtypes = [handle, c.POINTER(TableOptions), c.c_uint32]
    embank.embank_lookup.argtypes = [handle, keys, c.c_uint64, c.c_int32, c.c_void_p, c.c_uint64,
                                   outcomes]
    embank.embank_apply_gradients.argtypes = [handle, keys, c.c_uint64, c.c_void_p, c.c_uint64,
                                            outcomes]
    embank.embank_erase.argtypes = [handle, keys, c.c_uint64, outcomes]
    embank.embank_scan_open.argtypes = [handle, c.POINTER(handle)]
    embank.embank_scan_next.argtypes = [handle, keys, c.c_void_p, c.c_uint64, c.c_uint64,
                                      c.POINTER(c.c_uint64)]
    embank.embank_scan_close.argtypes = [handle]
    embank.embank_scan_next_full.argtypes = [handle, keys, c.c_void_p, c.c_uint64, c.c_void_p,
                                           c.c_uint64, c.POINTER(c.c_uint32), c.c_uint64,
                                           c.POINTER(c.c_uint64)]
    embank.embank_upsert_full.argtypes = [handle, keys, c.c_uint64, c.c_void_p, c.c_uint64,
                                        c.c_void_p, c.c_uint64, c.POINTER(c.c_uint32), outcomes]
    embank.embank_get_heat.argtypes = [handle, keys, c.c_uint64, c.POINTER(c.c_uint32), outcomes]
    embank.embank_store_get_options.argtypes = [handle, c.POINTER(StoreOptions)]
    embank.embank_get_checkpoint_info.argtypes = [handle, c.POINTER(CheckpointInfo)]
    embank.embank_checkpoint.argtypes = [handle, c.c_void_p, c.c_uint64, keys]
    embank.embank_owner_of.argtypes = [c.c_char_p, keys, c.c_uint64, c.c_uint32,
                                     c.POINTER(c.c_uint32)]
    features = c.POINTER(Feature)
    embank.embank_lookup_packed.argtypes = [features, c.c_uint64, c.c_int32, outcomes]
    embank.embank_apply_gradients_packed.argtypes = [features, c.c_uint64, outcomes]
    embank.embank_prefetch_packed.argtypes = [features, c.c_uint64]
    embank.embank_lookup_packed_device.argtypes = [features, c.c_uint64, c.c_int32, outcomes,
                                                   handle]
    embank.embank_apply_gradients_packed_device.argtypes = [features, c.c_uint64, outcomes, handle]
    embank.embank_device_allocate.argtypes = [handle, c.c_uint64, c.POINTER(handle)]
    embank.embank_device_copy.argtypes = [handle, c.c_void_p, c.c_void_p, c.c_uint64, handle]
    return embank


def open_store(embank, path=None, hbm_bytes=0):
    options = StoreOptions()
    embank.embank_store_options_init(c.byref(options), c.c_uint32(c.sizeof(options)))
    assert options.struct_size == c.sizeof(options) and options.cuda_device == -1
    options.path, options.flags, options.hbm_bytes = path, 1 if path else 0, hbm_bytes
    store = c.c_void_p()
    assert embank.embank_store_open(c.byref(options), c.byref(store)) == OK
    return store


def create_table(embank, store):
    options = TableOptions()
    embank.embank_table_options_init(c.byref(options), c.c_uint32(c.sizeof(options)))
    options.dim, options.optimizer, options.learning_rate = DIM, SGD, 0.5
    options.initializer, options.init_a = CONSTANT, 2.0
    table = c.c_void_p()
    assert embank.embank_table_create(store, b'items', c.byref(options), c.byref(table)) == OK
    options.dim = 4097
    other = c.c_void_p()
    status = embank.embank_table_create(store, b'more', c.byref(options), c.byref(other))
    assert status == INVALID_ARGUMENT and b'dim' in embank.embank_last_error()
    assert embank.embank_status_name(status) == b'INVALID_ARGUMENT'
    assert embank.embank_table_open(store, b'more', c.byref(other)) == NOT_FOUND
    return table


def round_trip(embank, table):
    keys = (c.c_uint64 * 3)(0, 2**64 - 1, 0)
    rows, outcomes = (c.c_float * (3 * DIM))(), (c.c_uint8 * 3)()
    assert embank.embank_lookup(table, keys, 3, CREATE, rows, 0, outcomes) == OK
    assert list(outcomes) == [CREATED, CREATED, FOUND] and set(rows) == {2.0}
    gradients = (c.c_float * (3 * DIM))(*([1.0] * DIM + [4.0] * DIM + [2.0] * DIM))
    assert embank.embank_apply_gradients(table, keys, 3, gradients, 0, None) == OK
    assert embank.embank_lookup(table, keys, 3, ZERO, rows, 0, outcomes) == OK
    # 2 - 0.5 * (1 + 2) and 2 - 0.5 * 4
    assert list(rows) == [0.5] * DIM + [0.0] * DIM + [0.5] * DIM, list(rows)
    scanned, scan, n = {}, c.c_void_p(), c.c_uint64()
    assert embank.embank_scan_open(table, c.byref(scan)) == OK
    while embank.embank_scan_next(scan, keys, rows, 0, 1, c.byref(n)) == OK and n.value:
        assert keys[0] not in scanned
        scanned[keys[0]] = list(rows[:DIM])
    embank.embank_scan_close(scan)
    assert scanned == {0: [0.5] * DIM, 2**64 - 1: [0.0] * DIM}, scanned
    gone = (c.c_uint64 * 2)(0, 0)
    assert embank.embank_erase(table, gone, 2, outcomes) == OK
    assert list(outcomes[:2]) == [FOUND, ABSENT]
    options = TableOptions(struct_size=c.sizeof(TableOptions))
    assert embank.embank_table_get_options(table, c.byref(options)) == OK
    assert (options.dim, options.learning_rate, options.init_a) == (DIM, 0.5, 2.0)
    options.max_gradient_norm = 1.0
    assert embank.embank_table_set_options(table, c.byref(options), SET_CLIPPING) == OK
    info = TableInfo(struct_size=c.sizeof(TableInfo))
    assert embank.embank_table_get_info(table, c.byref(info)) == OK
    assert (info.rows, info.rows_dram, info.dim) == (1, 1, DIM)


def whole_rows(embank, table):
    """The row goes out with its heat, is written anew, and has the heat that it is given."""
    keys, rows, n = (c.c_uint64 * 4)(), (c.c_float * (4 * DIM))(), c.c_uint64()
    heat, scan = (c.c_uint32 * 4)(), c.c_void_p()
    assert embank.embank_scan_open(table, c.byref(scan)) == OK
    assert embank.embank_scan_next_full(scan, keys, rows, 0, None, 0, heat, 4, c.byref(n)) == OK
    embank.embank_scan_close(scan)
    assert (n.value, keys[0], list(rows[:DIM]), heat[0]) == (1, 2**64 - 1, [0.0] * DIM, 2)
    heat[0] = 77
    assert embank.embank_upsert_full(table, keys, 1, rows, 0, None, 0, heat, None) == OK
    heat[0] = 0
    assert embank.embank_get_heat(table, keys, 1, heat, None) == OK and heat[0] == 77


def facts(embank):
    with tempfile.TemporaryDirectory() as folder:
        path = f'{folder}/store'.encode()
        store = open_store(embank, path)
        used = StoreOptions(struct_size=c.sizeof(StoreOptions))
        assert embank.embank_store_get_options(store, c.byref(used)) == OK
        assert used.path == path and used.worker_threads > 0
        info = CheckpointInfo(struct_size=c.sizeof(CheckpointInfo))
        assert embank.embank_get_checkpoint_info(store, c.byref(info)) == NOT_FOUND
        assert embank.embank_checkpoint(store, b'blob', 4, None) == OK
        assert embank.embank_get_checkpoint_info(store, c.byref(info)) == OK
        assert info.sequence > 0 and info.blob_bytes == 4 and info.rows == 0
        assert abs(info.unix_ns - time.time_ns()) < 600 * 10**9
        assert embank.embank_store_close(store) == OK
    owners = (c.c_uint32 * 2)()
    keys = (c.c_uint64 * 2)(0, 42)
    assert embank.embank_owner_of(b'users', keys, 2, 256, owners) == OK
    assert list(owners) == [137, 63]  # docs/arithmetic.md


def packed(embank, table):
    """Two bags of 32-bit keys at an offset, one of them padding; there is no device."""
    keys, offsets = (c.c_int32 * 4)(9, 5, 6, 5), (c.c_int32 * 3)(1, 3, 4)
    sums, outcomes = (c.c_float * (2 * DIM))(), (c.c_uint8 * 3)()
    feature = Feature(struct_size=c.sizeof(Feature), pooling=1, table=table, n=3, bags=2,
                      rows=c.addressof(sums), key_type=3, offset_type=3,
                      typed_keys=c.addressof(keys), typed_offsets=c.addressof(offsets),
                      padding_key=6, flags=3)
    assert embank.embank_lookup_packed(feature, 1, CREATE, outcomes) == OK
    assert list(outcomes) == [CREATED, ABSENT, FOUND] and set(sums) == {2.0}
    assert embank.embank_prefetch_packed(feature, 1) == OK
    assert embank.embank_apply_gradients_packed(feature, 1, None) == OK
    assert embank.embank_lookup_packed_device(feature, 1, ZERO, None, None) == FAILED_PRECONDITION
    assert embank.embank_apply_gradients_packed_device(feature, 1, None,
                                                       None) == FAILED_PRECONDITION
    assert embank.embank_erase(table, (c.c_uint64 * 1)(5), 1, outcomes) == OK


def packed_device(embank):
    """Two rows of one key, by the twin of a device: 2 - 0.5 * (2 + 2)."""
    store = open_store(embank, hbm_bytes=1 << 20)
    table, memory, rows = create_table(embank, store), c.c_void_p(), (c.c_float * (2 * DIM))()
    keys, outcomes = (c.c_uint64 * 2)(5, 5), (c.c_uint8 * 2)()
    assert embank.embank_device_allocate(store, c.sizeof(rows), c.byref(memory)) == OK
    feature = Feature(struct_size=c.sizeof(Feature), table=table, n=2, rows=memory,
                      keys=c.addressof(keys))
    for expected, missing in ((2.0, CREATE), (0.0, ZERO)):
        assert embank.embank_lookup_packed_device(feature, 1, missing, outcomes, None) == OK
        assert embank.embank_device_copy(store, rows, memory, c.sizeof(rows), None) == OK
        assert set(rows) == {expected}, list(rows)
        assert embank.embank_apply_gradients_packed_device(feature, 1, outcomes, None) == OK
        assert list(outcomes) == [FOUND, FOUND]
    assert embank.embank_store_close(store) == OK


def main():
    structs = (StoreOptions, TableOptions, TableInfo, CheckpointInfo, Feature)
    assert [c.sizeof(s) for s in structs] == [96, 92, 64, 48, 112]
    embank = load(sys.argv[1])
    assert embank.embank_version() == b'0.1.0'
    store = open_store(embank)
    table = create_table(embank, store)
    packed(embank, table)
    round_trip(embank, table)
    whole_rows(embank, table)
    facts(embank)
    packed_device(embank)
    assert embank.embank_store_close(store) == OK
    print('Python: 0 differences')


if __name__ == '__main__':
    main()
