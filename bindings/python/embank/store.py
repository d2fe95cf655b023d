"""A store: tables with one budget of memory, in memory alone or with a directory."""
from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _arrays, _c, _text, options as _options
from ._arrays import Array, View
from ._handle import StoreHandle
from ._library import library
from ._progress import Progress, Report
from .checkpoint import CheckpointInfo, StartedCheckpoint
from .errors import (FailedPreconditionError, InvalidArgumentError, NotFoundError, check)
from .feature import ROWS, ROWS_AT, STRUCT_BYTES, Feature
from .options import StoreOptions, TableOptions
from .table import Table, missing_number, new_outcomes

Size = int | str  # bytes, or a text as '4GiB'


class Store:
    """An open store. Closing it, or leaving its `with`, makes nothing durable: checkpoint() does.

    Options; those that are None have the library's default, in brackets:

    path              directory of the store; its parent must exist [None: memory alone]
    dram_bytes        hard budget of index and rows in memory, at least 16 MiB [0: no limit]
    ssd_bytes         hard budget of the files under path [0: no limit]
    pmem_path, pmem_bytes   directory and hard limit of the PMem tier [None, 0]
    hbm_bytes         device memory for the hottest rows [0: none]
    cuda_device       the device of these, -1: host memory that behaves like one [-1]
    worker_threads    threads that share large batches [0: one per core]
    seed              seed of the initial values of rows [0]
    durability        'checkpoint' or 'none' ['checkpoint']
    warmup_iters, flush_iters   batches before and between top-k flushes [0: 100]
    pin_batches       batches that the pin of a prefetched row outlasts [0: 12]
    create            makes the store if there is none [with a path, unless read_only or previous]
    read_only         changes nothing; other processes may read the store, too [False]
    previous          opens the checkpoint before the last one [False]

    Sizes are integers, or texts with B, KiB, MiB, GiB or TiB. The header embank.h says more.

    Any number of threads may use a store at once; docs/python.md has the exceptions. A process that
    was forked gets FailedPreconditionError from all calls, and can open stores of its own.

    InvalidArgumentError, NotFoundError, UnavailableError (it is open elsewhere),
    FailedPreconditionError (another seed), DataLossError and others: it cannot be opened so.

    >>> with Store(dram_bytes='64MiB', seed=1) as store:
    ...     items = store.table('items', dim=4)
    ...     print(store.tables(), len(items))
    ['items'] 0
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *,
                 dram_bytes: Size | None = None, ssd_bytes: Size | None = None,
                 pmem_path: str | os.PathLike[str] | None = None, pmem_bytes: Size | None = None,
                 hbm_bytes: Size | None = None, cuda_device: int | None = None,
                 worker_threads: int | None = None, seed: int | None = None,
                 durability: str | None = None, warmup_iters: int | None = None,
                 flush_iters: int | None = None, pin_batches: int | None = None,
                 create: bool | None = None, read_only: bool | None = None,
                 previous: bool | None = None) -> None:
        wanted = StoreOptions(
            path=path, dram_bytes=dram_bytes, ssd_bytes=ssd_bytes, pmem_path=pmem_path,
            pmem_bytes=pmem_bytes, hbm_bytes=hbm_bytes, cuda_device=cuda_device,
            worker_threads=worker_threads, seed=seed, durability=durability,
            warmup_iters=warmup_iters, flush_iters=flush_iters, pin_batches=pin_batches,
            create=create, read_only=read_only, previous=previous)
        address = ctypes.c_void_p()
        check(library.embank_store_open(_options.store_struct(wanted), address))
        assert address.value is not None
        self._handle = StoreHandle(address.value)
        self._name = 'in memory' if path is None else os.fsdecode(path)
        self._started: StartedCheckpoint | None = None

    def close(self) -> None:
        """Closes the store and its scans, after all calls of other threads; twice is no error.

        Changes since the last checkpoint are lost. Every later call on the store, its tables and
        its scans is a FailedPreconditionError.
        """
        self._handle.close()

    @property
    def is_closed(self) -> bool:
        """Whether the store was closed."""
        return self._handle.address is None

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f'<embank.Store {self._name}{" (closed)" if self.is_closed else ""}>'

    def __reduce__(self) -> Any:
        raise TypeError('a Store is an open handle of this process: it cannot be copied or pickled')

    @property
    def options(self) -> StoreOptions:
        """The options with which the store works, with numbers where it chose them."""
        struct = _c.embank_store_options(struct_size=ctypes.sizeof(_c.embank_store_options))
        self._handle.call_store(library.embank_store_get_options, struct)
        return _options.store_options(struct)

    def table(self, name: str, *, dim: int | None = None, value_type: str | None = None,
              optimizer: str | None = None, learning_rate: float | None = None, init: Any = None,
              beta1: float | None = None, beta2: float | None = None, epsilon: float | None = None,
              weight_decay: float | None = None, decoupled_weight_decay: float | None = None,
              initial_accumulator: float | None = None, eviction: str | None = None,
              admission_count: int | None = None, on_full: str | None = None,
              max_gradient_norm: float | None = None, max_gradient_value: float | None = None,
              rounding: str | None = None, expected_rows_log2: int | None = None,
              ftrl_l1: float | None = None, ftrl_l2: float | None = None) -> Table:
        """Opens the table of this name, or makes it if there is none and `dim` is given.

        dim               values of a row, 1 to 4096
        value_type        'f32', 'f16' or 'bf16' ['f32']
        optimizer         'none', 'sgd', 'adagrad', 'rowwise_adagrad', 'adam' or 'ftrl' ['none']
        learning_rate     [0.01]
        init              'zero', ('constant', a), ('uniform', a, b) or ('normal', mean, standard
                          deviation) ['zero']
        beta1, beta2, epsilon   of Adam [0.9, 0.999, 1e-8]; epsilon of Adagrad, too
        weight_decay, decoupled_weight_decay   added to the gradient; as AdamW does [0, 0]
        initial_accumulator   of Adagrad and FTRL [0]
        eviction          'clock', 'lru' or 'lfu' ['clock']
        on_full           'refuse' a new row for which there is no space, or 'forget' another one
        max_gradient_norm, max_gradient_value   limits of gradients [0: none]
        rounding          of 16-bit rows: 'nearest' or 'stochastic' ['nearest']
        expected_rows_log2   a hint: there will be about 2 to this number of rows [0: unknown]
        ftrl_l1, ftrl_l2  penalties of FTRL [0, 0]

        InvalidArgumentError: a value is invalid; or the table exists with other options than those
        that are given, which the message names. Leave out what was set later, as a learning rate
        may be. NotFoundError: there is no table, and no dim.

        >>> store = Store()
        >>> items = store.table('items', dim=4)
        >>> store.table('items', dim=8)
        Traceback (most recent call last):
        embank.errors.InvalidArgumentError: table items exists with other options: dim is 4, and \
not 8
        """
        wanted = TableOptions(
            dim=dim, value_type=value_type, optimizer=optimizer, learning_rate=learning_rate,
            init=init, beta1=beta1, beta2=beta2, epsilon=epsilon, weight_decay=weight_decay,
            decoupled_weight_decay=decoupled_weight_decay,
            initial_accumulator=initial_accumulator, eviction=eviction,
            admission_count=admission_count, on_full=on_full,
            max_gradient_norm=max_gradient_norm, max_gradient_value=max_gradient_value,
            rounding=rounding, expected_rows_log2=expected_rows_log2, ftrl_l1=ftrl_l1,
            ftrl_l2=ftrl_l2)
        return self._table(name, wanted)

    def _table(self, name: str, wanted: TableOptions) -> Table:
        encoded, struct = _text.encoded(name, 'name'), _options.table_struct(wanted)
        address = ctypes.c_void_p()
        with self._handle.setup:
            try:
                self._handle.call_store(library.embank_table_open, encoded, address)
            except NotFoundError:
                if wanted.dim is None:
                    raise
                self._handle.call_store(library.embank_table_create, encoded, struct, address)
        assert address.value is not None
        table = Table(self, name, address.value)
        different = _options.differences(wanted, table.options)
        if different:
            raise InvalidArgumentError(
                f'table {name} exists with other options: {"; ".join(different)}')
        return table

    def tables(self) -> list[str]:
        """Returns the names of the tables, in the order in which they were made."""
        def write(*buffer: Any) -> None:
            self._handle.call_store(library.embank_table_names, *buffer)
        return _text.text(write).splitlines()

    def drop_table(self, name: str) -> None:
        """Erases a table and its rows. Calls on its Table are a FailedPreconditionError then.

        No other thread may be in a call on the table.
        """
        with self._handle.setup:
            self._handle.call_store(library.embank_table_drop, _text.encoded(name, 'name'))

    def lookup_packed(self, features: Sequence[Feature], out: Sequence[Array] | None = None, *,
                      missing: str = 'create', outcomes: bool = False) -> Any:
        """Looks up the keys of several features, of one or many tables, and pools their bags.

        Returns a list with an array for each feature: of bags float32 of shape (bags, dim), and
        without bags the table's dtype of shape (n, dim). `out`: such arrays, which are returned;
        their rows may be parts of a wider array. `missing` is as in Table.lookup. With
        outcomes=True it returns (rows, outcomes), with one outcome for each key of all features,
        in order.

        >>> store = Store()
        >>> users, items = (store.table(name, dim=1, init=('constant', 2)) for name in 'ui')
        >>> features = [Feature(users, np.array([1, 2])),
        ...             Feature(items, np.array([7, 8, 9]), np.array([0, 3]))]
        >>> [rows.tolist() for rows in store.lookup_packed(features)]
        [[[2.0], [2.0]], [[6.0]]]
        """
        number = missing_number(missing)
        self._check_features(features)
        if out is None:
            make = np.zeros if outcomes or number == _c.EMBANK_MISSING_SKIP else np.empty
            out = [make(feature.shape, feature.row_dtype)
                   for feature in features]
        dtypes = [feature.row_dtype for feature in features]
        structs, kept, key_count = self._pack(features, out, 'out', dtypes, True)
        found, address = new_outcomes(outcomes, key_count)
        self._handle.call(library.embank_lookup_packed, structs, len(structs), number, address)
        return out if found is None else (out, found)

    def apply_gradients_packed(self, features: Sequence[Feature], gradients: Sequence[Array], *,
                               outcomes: bool = False) -> Any:
        """Makes one step for each distinct key of each table, with the sum of its gradients.

        `gradients` has an array for each feature, float32 of shape (bags, dim), or (n, dim) without
        bags: those of the rows that lookup_packed has answered. A checkpoint has all steps of the
        call or none. Outcomes and exceptions are those of Table.apply_gradients.

        >>> store = Store()
        >>> items = store.table('items', dim=1, optimizer='sgd', learning_rate=1)
        >>> features = [Feature(items, np.array([7, 8]), np.array([0, 2]), pooling='mean')]
        >>> _ = store.lookup_packed(features)
        >>> store.apply_gradients_packed(features, [np.ones((1, 1), np.float32)])
        >>> items.lookup(np.array([7])).tolist()
        [[-0.5]]
        """
        self._check_features(features)
        dtypes = [_arrays.FLOAT32] * len(features)
        structs, kept, key_count = self._pack(features, gradients, 'gradients', dtypes, False)
        found, address = new_outcomes(outcomes, key_count)
        self._handle.call(library.embank_apply_gradients_packed, structs, len(structs), address)
        return found

    def prefetch_packed(self, features: Sequence[Feature]) -> None:
        """Prefetches the keys of all features, as Table.prefetch does."""
        self._check_features(features)
        joined = bytearray().join([feature.bytes for feature in features])
        structs = (_c.embank_feature * len(features)).from_buffer(joined)
        self._handle.call(library.embank_prefetch_packed, structs, len(structs))

    def _check_features(self, features: Sequence[Feature]) -> None:
        handle = self._handle
        for at, feature in enumerate(features):
            if type(feature) is not Feature:
                raise TypeError(f'features[{at}] is a {type(feature).__name__}; it must be an '
                                'embank.Feature')
            if feature.table._handle is not handle:
                raise InvalidArgumentError(f'features[{at}] has a table of another store')
            if feature.first:
                feature.check()

    def _pack(self, features: Sequence[Feature], arrays: Sequence[Array], name: str,
              dtypes: list[Any], is_written: bool) -> tuple[Any, list[View], int]:
        """Returns the structs of a packed call, what they point into, and the number of keys."""
        if len(arrays) != len(features):
            raise InvalidArgumentError(f'{name} has {len(arrays)} arrays; there are '
                                       f'{len(features)} features')
        # A copy: other threads may call with the same features meanwhile.
        structs = bytearray().join([feature.bytes for feature in features])
        key_count, at = 0, ROWS_AT
        kept: list[View] = []
        for feature, array, dtype in zip(features, arrays, dtypes):
            stride = 0
            if (type(array) is np.ndarray and array.dtype is dtype and array.shape == feature.shape
                    and array.flags.carray):
                address = _arrays.address(array)
            else:
                array, address, stride = _arrays.rows(array, f'{name}[{len(kept)}]', *feature.shape,
                                                      dtype, is_written)
            ROWS.pack_into(structs, at, address, stride)
            at += STRUCT_BYTES
            kept.append(array)
            key_count += feature.key_count
        return (_c.embank_feature * len(features)).from_buffer(structs), kept, key_count

    def checkpoint(self, blob: Any = b'') -> int:
        """Makes all tables durable as they are at one moment, and returns the checkpoint's number.

        `blob`: bytes of the caller that are saved with it, at most 32 MiB. No batch is half in a
        checkpoint. If it fails, the checkpoint before stays.

        FailedPreconditionError: the store has no path, or is read-only. ResourceExhaustedError: the
        disk or ssd_bytes is full. UnavailableError: the device fails.
        """
        sequence, (data, size) = ctypes.c_uint64(), blob_bytes(blob)
        self._handle.call_store(library.embank_checkpoint, data, size, ctypes.byref(sequence))
        return sequence.value

    def checkpoint_async(self, blob: Any = b'') -> StartedCheckpoint:
        """Starts a checkpoint of this moment, which a thread of the store writes, and returns it.

        result() of what it returns waits for the end. Exceptions are those of checkpoint().
        FailedPreconditionError: also, another one was started, and its result() not called
        (`started_checkpoint` is that one).
        """
        if self._started is not None and not self._started.is_finished:
            raise FailedPreconditionError('a checkpoint is started and not finished: call '
                                          'store.started_checkpoint.result()')
        started, (data, size) = StartedCheckpoint(self), blob_bytes(blob)
        self._handle.call_store(library.embank_checkpoint_start, data, size)
        self._started = started
        return started

    @property
    def started_checkpoint(self) -> StartedCheckpoint | None:
        """The last checkpoint of checkpoint_async; None: there was none."""
        return self._started

    def checkpoint_blob(self) -> bytes | None:
        """Returns the blob of the last checkpoint, of this store or found at its opening.

        None: there is no checkpoint, as in a new store.
        """
        def write(*buffer: Any) -> None:
            self._handle.call_store(library.embank_checkpoint_blob, *buffer)
        try:
            return _text.written(write)
        except NotFoundError:
            return None

    def checkpoint_info(self) -> CheckpointInfo | None:
        """Returns facts about the last checkpoint, and makes none. None: there is no checkpoint."""
        size = ctypes.sizeof(_c.embank_checkpoint_info)
        struct = _c.embank_checkpoint_info(struct_size=size)
        try:
            self._handle.call_store(library.embank_get_checkpoint_info, struct)
        except NotFoundError:
            return None
        return CheckpointInfo(*(getattr(struct, field) for field in CheckpointInfo._fields))

    def export(self, directory: str | os.PathLike[str], progress: Report | None = None) -> None:
        """Makes a new store of the last checkpoint in an empty or absent directory.

        `progress`: a function of (done, total), in bytes, or a bar such as tqdm's. An exception of
        it ends the export and is raised.

        AlreadyExistsError: the directory is not empty. NotFoundError: its parent does not exist.
        FailedPreconditionError: there is no checkpoint.
        """
        told = Progress(progress)
        try:
            self._handle.call_store(library.embank_export, _text.path(directory, 'directory'),
                                    told.callback, None)
        finally:
            told.raise_error()

    def flush_hot(self) -> None:
        """Renews the set of rows in device memory now. FailedPreconditionError: no hbm_bytes."""
        self._handle.call_store(library.embank_flush_hot)

    def metrics(self) -> str:
        """Returns counters and gauges in the Prometheus text format; see docs/metrics.md."""
        def write(*buffer: Any) -> None:
            self._handle.call_store(library.embank_metrics, *buffer)
        return _text.text(write)

    def memory_report(self) -> dict[str, Any]:
        """Returns bytes by tier, as embank_memory_report in embank.h lists them.

        >>> sorted(Store(dram_bytes='64MiB').memory_report())
        ['dram']
        """
        def write(*buffer: Any) -> None:
            self._handle.call_store(library.embank_memory_report, *buffer)
        return _text.from_json(write)

    def describe(self) -> dict[str, Any]:
        """Returns what the store is, for a log: options, tables with options and rows, checkpoint.

        >>> store = Store(seed=3)
        >>> _ = store.table('items', dim=4)
        >>> description = store.describe()
        >>> description['options']['seed'], description['tables']['items']['options']['dim']
        (3, 4)
        """
        info = self.checkpoint_info() if self.options.path is not None else None
        tables = {name: self.table(name) for name in self.tables()}
        return {'options': vars(self.options).copy(),
                'checkpoint': None if info is None else info._asdict(),
                'tables': {name: {'options': vars(table.options).copy(),
                                  **table.info._asdict()} for name, table in tables.items()}}


def blob_bytes(blob: Any) -> tuple[Any, int]:
    """Returns a blob as the library takes it, and its bytes.

    >>> blob_bytes('text')
    Traceback (most recent call last):
    TypeError: blob is a str; it must be bytes, or have a contiguous buffer
    """
    try:
        data = bytes(memoryview(blob).cast('B')) if type(blob) is not bytes else blob
    except TypeError as error:
        raise TypeError(f'blob is a {type(blob).__name__}; it must be bytes, or have a contiguous '
                        'buffer') from error
    return data, len(data)
