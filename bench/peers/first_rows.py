"""The first values of embedding rows, from the library itself."""
import ctypes as c
import sys

import numpy as np

OK, MISSING_DEFAULT, INIT_UNIFORM = 0, 1, 2


class StoreOptions(c.Structure):
    _fields_ = [('struct_size', c.c_uint32), ('flags', c.c_uint32), ('path', c.c_char_p),
                ('dram_bytes', c.c_uint64), ('ssd_bytes', c.c_uint64), ('pmem_path', c.c_char_p),
                ('pmem_bytes', c.c_uint64), ('hbm_bytes', c.c_uint64), ('cuda_device', c.c_int32),
                ('worker_threads', c.c_uint32), ('seed', c.c_uint64), ('durability', c.c_int32),
                ('warmup_iters', c.c_uint32), ('flush_iters', c.c_uint32),
                ('reserved', c.c_uint32)]


class TableOptions(c.Structure):
    _fields_ = [('struct_size', c.c_uint32), ('dim', c.c_uint32), ('value_type', c.c_int32),
                ('optimizer', c.c_int32), ('learning_rate', c.c_float), ('beta1', c.c_float),
                ('beta2', c.c_float), ('epsilon', c.c_float), ('weight_decay', c.c_float),
                ('initial_accumulator', c.c_float), ('initializer', c.c_int32),
                ('init_a', c.c_float), ('init_b', c.c_float), ('eviction', c.c_int32),
                ('admission_count', c.c_uint32), ('on_full', c.c_int32)]


class FirstRows:
    """A store in memory with a seed. It stays empty: rows are only asked for."""

    def __init__(self, library: str, seed: int):
        self._embank = c.CDLL(library)
        self._embank.embank_last_error.restype = c.c_char_p
        options, self._store = StoreOptions(), c.c_void_p()
        self._embank.embank_store_options_init(c.byref(options), c.c_uint32(c.sizeof(options)))
        options.seed = seed
        self._check(self._embank.embank_store_open(c.byref(options), c.byref(self._store)))

    def _check(self, status: int):
        if status != OK:
            sys.exit(self._embank.embank_last_error().decode())

    def of(self, name: str, dim: int, bound: float, ids: np.ndarray) -> np.ndarray:
        """The rows of a new table whose values are uniform in [-bound, bound), or all 0."""
        options, table = TableOptions(), c.c_void_p()
        self._embank.embank_table_options_init(c.byref(options), c.c_uint32(c.sizeof(options)))
        options.dim = dim
        if bound > 0:
            options.initializer, options.init_a, options.init_b = INIT_UNIFORM, -bound, bound
        self._check(self._embank.embank_table_create(self._store, name.encode(), c.byref(options),
                                                     c.byref(table)))
        keys, rows = np.ascontiguousarray(ids), np.empty((len(ids), dim), np.float32)
        outcomes = np.empty(len(ids), np.uint8)
        self._check(self._embank.embank_lookup(
            table, c.c_void_p(keys.ctypes.data), c.c_uint64(len(keys)), MISSING_DEFAULT,
            c.c_void_p(rows.ctypes.data), c.c_uint64(0), c.c_void_p(outcomes.ctypes.data)))
        return rows
