"""A scan: an iterator over all rows of a table."""
from __future__ import annotations

import ctypes
import os
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import _arrays, options as _options
from ._arrays import View
from ._library import library
from .errors import FailedPreconditionError

if TYPE_CHECKING:
    from .table import Table

BATCH_ROWS_MAX = (1 << 32) - 1


class ScanBatch(NamedTuple):
    """Some rows of a table, each as it was at one moment. What was not wanted is None."""

    keys: View
    """uint64, of shape (n,)."""
    rows: View | None
    """The table's dtype, of shape (n, dim)."""
    state: View | None
    """float32, of shape (n, state_floats)."""
    heat: View | None
    """uint32, of shape (n,)."""


class Scan:
    """An iterator of ScanBatch, as Table.scan returns it, and a context manager.

    It closes itself at its end, and when its store is closed. It keeps its table and the store
    alive. One thread at a time uses it. FailedPreconditionError: it is closed, or in use.

    DataLossError: rows cannot be read; the next step goes on after them.
    UnavailableError, ResourceExhaustedError: rows cannot be read now; the next step tries again.

    >>> import embank
    >>> items = embank.Store().table('items', dim=1, optimizer='adagrad', init=('constant', 2))
    >>> _ = items.lookup(np.array([8], np.uint64))
    >>> with items.scan(state=True, heat=True) as scan:
    ...     for keys, rows, state, heat in scan:
    ...         print(keys, rows, state, heat)
    [8] [[2.]] [[0.]] [1]
    """

    def __init__(self, table: Table, batch: int, *, rows: bool, state: bool, heat: bool) -> None:
        """Is for Table.scan."""
        self._batch = _options.integer(batch, 'batch', 1, BATCH_ROWS_MAX)
        if state and table.state_floats == 0:
            raise FailedPreconditionError(f'table {table.name}: its optimizer has no state to scan')
        self._table, self._handle = table, table._handle
        self._shapes = (((), np.dtype(np.uint64)), ((table.dim,), table.dtype) if rows else None,
                        ((table.state_floats,), _arrays.FLOAT32) if state else None,
                        ((), _arrays.UINT32) if heat else None)
        self._busy = threading.Lock()
        self._has_ended = False
        self._address: int | None = None
        address = ctypes.c_void_p()
        # The handle knows the scan before the store can be closed again.
        self._handle.call(self._open, address)
        self._address = address.value

    def _open(self, address: Any) -> int:
        status: int = library.embank_scan_open(self._table._address, address)
        if status == 0:
            self._handle.scans.add(address.value)
        return status

    def __iter__(self) -> Scan:
        return self

    def __next__(self) -> ScanBatch:
        if not self._busy.acquire(blocking=False):
            raise FailedPreconditionError('another thread is in a step of this scan')
        try:
            if self._has_ended:
                raise StopIteration
            # No scan needs more, and a large batch would take memory for nothing.
            count = min(self._batch, len(self._table) + 1)
            arrays = [None if shape is None else np.empty((count, *shape[0]), shape[1])
                      for shape in self._shapes]
            keys, rows, state, heat = (None if array is None else _arrays.address(array)
                                       for array in arrays)
            n = ctypes.c_uint64()
            self._handle.call(self._next, keys, rows, state, heat, count, n)
            if n.value == 0:
                self._has_ended = True
                self._close()
                raise StopIteration
            found: list[Any] = [None if array is None else array[:n.value] for array in arrays]
            return ScanBatch(*found)
        finally:
            self._busy.release()

    def _next(self, keys: Any, rows: Any, state: Any, heat: Any, count: int, n: Any) -> int:
        if self._address is None:
            raise FailedPreconditionError('the scan is closed')
        status: int = library.embank_scan_next_full(self._address, keys, rows, 0, state, 0, heat,
                                                    count, ctypes.byref(n))
        return status

    def close(self) -> None:
        """Ends the scan; does nothing if it has ended. Waits for a step of another thread."""
        # A thread that the child does not have may hold the lock.
        if os.getpid() != self._handle.process:
            self._close()
            return
        with self._busy:
            self._close()

    def _close(self) -> None:
        address, self._address = self._address, None
        if address is not None:
            self._handle.close_scan(address)

    def __enter__(self) -> Scan:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, '_address', None) is not None:
            self._close()

    def __reduce__(self) -> Any:
        raise TypeError('a Scan is an open handle of this process: it cannot be copied or pickled')
