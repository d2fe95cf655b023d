"""A training loop that can be stopped at any moment and goes on where its last checkpoint was.

  train.py DIR         trains to the end; called again, it goes on at the last checkpoint
  train.py DIR STOP    is interrupted after batch STOP, without a checkpoint

The rows take more memory than the store may use: the others are on disk, and a second thread
brings those of the next batch up while this one is trained. Needs numpy.
"""
import concurrent.futures
import ctypes as c
import sys

import numpy as np

DIM, BATCH, BATCHES, BATCHES_PER_CHECKPOINT = 64, 2048, 100, 20
OK, NOT_FOUND = 0, 5
OPEN_CREATE, MISSING_CREATE, OPT_ADAGRAD, INIT_UNIFORM = 1, 0, 2, 2

embank = c.CDLL('libembank.so.0')  # LD_LIBRARY_PATH says where it is
embank.embank_status_name.restype = c.c_char_p
embank.embank_last_error.restype = c.c_char_p


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
                ('admission_count', c.c_uint32), ('on_full', c.c_int32)]


class TableInfo(c.Structure):
    _fields_ = [('struct_size', c.c_uint32), ('dim', c.c_uint32), ('value_type', c.c_int32),
                ('optimizer', c.c_int32), ('rows', c.c_uint64), ('rows_hbm', c.c_uint64),
                ('rows_dram', c.c_uint64), ('rows_pmem', c.c_uint64), ('rows_ssd', c.c_uint64),
                ('row_bytes', c.c_uint64)]


def check(status):
    if status != OK:
        sys.exit(f'{embank.embank_status_name(status).decode()}: '
                 f'{embank.embank_last_error().decode()}')


def pointer(array):
    """An array as the library takes it. ctypes lets other threads run while a call lasts."""
    return c.c_void_p(array.ctypes.data)


def number(value):
    return c.c_uint64(value)


def mix(x):
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def keys_of(batch):
    """The data set: a batch asks for these keys, small ones more often."""
    random = mix(np.arange(batch * BATCH, (batch + 1) * BATCH, dtype=np.uint64)) >> np.uint64(40)
    return (random * random) >> np.uint64(32)


def targets(keys):
    """The model: each value of a row should become this."""
    places = np.arange(DIM, dtype=np.uint64) * np.uint64(13)
    steps = (keys[:, None] * np.uint64(7) + places[None, :]) % np.uint64(64)
    return steps.astype(np.float32) / np.float32(64) - np.float32(0.5)


def prefetch(table, batch):
    """A hint: rows that it does not bring are read later."""
    keys = keys_of(batch)
    check(embank.embank_prefetch(table, pointer(keys), number(BATCH)))


def train(table, batch):
    """Returns the loss: the mean square of the errors."""
    keys, rows = keys_of(batch), np.empty((BATCH, DIM), np.float32)
    check(embank.embank_lookup(table, pointer(keys), number(BATCH), MISSING_CREATE, pointer(rows),
                               number(0), None))
    gradients = rows - targets(keys)
    check(embank.embank_apply_gradients(table, pointer(keys), number(BATCH), pointer(gradients),
                                        number(0), None))
    return float(np.mean(gradients.astype(np.float64) ** 2))


def open_store(directory):
    options, store = StoreOptions(), c.c_void_p()
    embank.embank_store_options_init(c.byref(options), c.c_uint32(c.sizeof(options)))
    options.path, options.flags = directory.encode(), OPEN_CREATE
    options.dram_bytes, options.seed = 16 << 20, 1
    check(embank.embank_store_open(c.byref(options), c.byref(store)))
    return store


def open_table(store):
    """The table of the checkpoint, or, in a new store, a new one."""
    table = c.c_void_p()
    status = embank.embank_table_open(store, b'items', c.byref(table))
    if status == NOT_FOUND:
        options = TableOptions()
        embank.embank_table_options_init(c.byref(options), c.c_uint32(c.sizeof(options)))
        options.dim, options.optimizer, options.learning_rate = DIM, OPT_ADAGRAD, 0.1
        options.initializer, options.init_a, options.init_b = INIT_UNIFORM, -0.5, 0.5
        status = embank.embank_table_create(store, b'items', c.byref(options), c.byref(table))
    check(status)
    return table


def position_of(store):
    """How many batches the checkpoint has: its blob. It belongs to the rows, whatever happens."""
    batches, needed = c.c_uint64(0), c.c_uint64()
    status = embank.embank_checkpoint_blob(store, c.byref(batches), number(8), c.byref(needed))
    if status != NOT_FOUND:  # else there is no checkpoint yet
        check(status)
    return batches.value


def print_rows(table):
    info = TableInfo(struct_size=c.sizeof(TableInfo))
    check(embank.embank_table_get_info(table, c.byref(info)))
    print(f'in memory {info.rows_dram} rows, on disk alone {info.rows_ssd}')
    keys, rows = np.empty(BATCH, np.uint64), np.empty((BATCH, DIM), np.float32)
    scan, n, total, checksum = c.c_void_p(), c.c_uint64(1), 0, 0
    check(embank.embank_scan_open(table, c.byref(scan)))
    while n.value > 0:
        check(embank.embank_scan_next(scan, pointer(keys), pointer(rows), number(0),
                                      number(BATCH), c.byref(n)))
        hashes = keys[:n.value].copy()
        for bits in rows[:n.value].view(np.uint32).T:
            hashes = mix(hashes ^ bits.astype(np.uint64))
        total += n.value
        # A scan has no order, and a sum needs none.
        checksum = (checksum + int(hashes.sum(dtype=np.uint64))) % 2**64
    embank.embank_scan_close(scan)
    print(f'rows {total}, checksum {checksum:016x}')


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(f'usage: {sys.argv[0]} DIR [STOP]')
    end = int(sys.argv[2]) if len(sys.argv) == 3 else BATCHES
    store = open_store(sys.argv[1])
    table, batch = open_table(store), position_of(store)
    print(f'resume at batch {batch} of {BATCHES}')
    with concurrent.futures.ThreadPoolExecutor(max_workers=1) as thread:
        while batch < end:
            coming = thread.submit(prefetch, table, batch + 1)
            loss = train(table, batch)
            coming.result()
            batch += 1
            if batch % BATCHES_PER_CHECKPOINT != 0:
                continue
            blob, sequence = c.c_uint64(batch), c.c_uint64()
            check(embank.embank_checkpoint(store, c.byref(blob), number(8), c.byref(sequence)))
            print(f'batch {batch}: loss {loss:.4f}, checkpoint {sequence.value}')
    print_rows(table)
    check(embank.embank_store_close(store))


if __name__ == '__main__':
    main()
