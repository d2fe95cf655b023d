"""A table: rows of one dimension and one value type, found by 64-bit keys."""
from __future__ import annotations

import ctypes
import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import _arrays, _c, options as _options
from ._arrays import Array, View
from ._library import library
from .errors import DataLossError, InvalidArgumentError, UnavailableError
from .options import TableOptions
from .outcome import Outcome
from .scan import Scan

if TYPE_CHECKING:
    from .store import Store

OUTCOMES = (np.dtype(np.uint8),)
HEATS = (_arrays.UINT32,)


class TableInfo(NamedTuple):
    """The numbers of rows of a table, in all and in each tier, and their bytes."""

    rows: int
    rows_hbm: int
    rows_dram: int
    rows_pmem: int
    rows_ssd: int
    row_bytes: int
    lookups_hbm: int


def state_floats(optimizer: int, dim: int) -> int:
    """Returns how many float32 numbers of state a row has.

    >>> state_floats(_c.EMBANK_OPT_ADAM, 8)
    17
    """
    return {_c.EMBANK_OPT_ADAGRAD: dim, _c.EMBANK_OPT_ROWWISE_ADAGRAD: 1,
            _c.EMBANK_OPT_ADAM: 2 * dim + 1, _c.EMBANK_OPT_FTRL: 2 * dim}.get(optimizer, 0)


def missing_number(missing: str) -> int:
    """Returns the number of an answer for keys without rows."""
    found = _options.MISSING.get(missing) if isinstance(missing, str) else None
    return _options.choice(missing, 'missing', _options.MISSING) if found is None else found


def new_outcomes(wanted: bool, count: int) -> tuple[Any, Any]:
    """Returns an array for outcomes and its address; twice None if they are not wanted."""
    if not wanted:
        return None, None
    outcomes = np.zeros(count, np.uint8)
    return outcomes, _arrays.address(outcomes)


class Table:
    """A table of an open store, as Store.table returns it.

    Every call takes n keys, an array of uint64 or int64 (the same 64 bits), and works on them as
    one batch; a key may be repeated. Arrays are numpy arrays, torch tensors on the CPU, or have
    __dlpack__ or a buffer; they are used in place, and never copied. Rows of bfloat16 are arrays of
    uint16 with their bits. Any number of threads may call at once.

    Without outcomes=True a key that could not be served is an exception, after the rest of the
    batch is done. With it the call also returns an array of n outcomes (embank.Outcome), and no key
    is an exception.

    >>> import embank
    >>> store = embank.Store(seed=1)
    >>> items = store.table('items', dim=2, optimizer='sgd', learning_rate=0.5)
    >>> keys = np.array([7, 42, 7], np.int64)
    >>> items.lookup(keys).shape
    (3, 2)
    >>> items.apply_gradients(keys, np.ones((3, 2), np.float32))
    >>> items.lookup(keys)[:, 0]
    array([-1. , -0.5, -1. ], dtype=float32)
    """

    def __init__(self, store: Store, name: str, address: int) -> None:
        """Is for Store.table."""
        self._store, self._name, self._address = store, name, address
        self._handle = store._handle
        struct = self._options_struct()
        self._dim: int = struct.dim
        self._dtype = _arrays.VALUE_TYPES[struct.value_type]
        self._state_floats = state_floats(struct.optimizer, struct.dim)

    @property
    def store(self) -> Store:
        """The store of the table, which lives as long as the table does."""
        return self._store

    @property
    def name(self) -> str:
        """The name of the table."""
        return self._name

    @property
    def dim(self) -> int:
        """The number of values of a row."""
        return self._dim

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of rows: float32, float16, or uint16 with the bits of bfloat16."""
        return self._dtype

    @property
    def state_floats(self) -> int:
        """The number of float32 numbers of the optimizer's state of a row; 0: there is none."""
        return self._state_floats

    @property
    def options(self) -> TableOptions:
        """The options of the table as they are now."""
        return _options.table_options(self._options_struct())

    @property
    def info(self) -> TableInfo:
        """The numbers of rows, in all and in each tier, and their bytes."""
        struct = _c.embank_table_info(struct_size=ctypes.sizeof(_c.embank_table_info))
        self._call(library.embank_table_get_info, struct)
        return TableInfo(*(getattr(struct, field) for field in TableInfo._fields))

    @property
    def learning_rate(self) -> float:
        """The learning rate; setting it affects the gradients that are applied from then on.

        >>> import embank
        >>> items = embank.Store().table('items', dim=1, optimizer='sgd')
        >>> items.learning_rate = 0.25
        >>> items.learning_rate
        0.25
        """
        rate: float = self._options_struct().learning_rate
        return rate

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        self._call(library.embank_set_learning_rate, _options.real(value, 'learning_rate'))

    def set_options(self, **changes: Any) -> None:
        """Changes several options at one moment, for the gradients that are applied from then on.

        They are learning_rate, beta1, beta2, epsilon, weight_decay, decoupled_weight_decay,
        max_gradient_norm, max_gradient_value, rounding, ftrl_l1 and ftrl_l2. Checkpoints save them.

        InvalidArgumentError: a value is invalid, or an option cannot be changed.

        >>> import embank
        >>> items = embank.Store().table('items', dim=1, optimizer='adam')
        >>> items.set_options(learning_rate=0.5, beta1=0.75)
        >>> items.options.beta1
        0.75
        """
        fixed = [name for name in changes if name not in _options.SETTABLE]
        if fixed:
            raise InvalidArgumentError(f'{fixed[0]} cannot be changed; these can: '
                                       f'{", ".join(_options.SETTABLE)}')
        now = self.options
        changed = dataclasses.replace(now, **changes)
        fields = 0
        for name in changes:
            fields |= _options.SETTABLE[name]
        self._call(library.embank_table_set_options, _options.table_struct(changed), fields)

    def __len__(self) -> int:
        """Returns the number of rows."""
        return self.info.rows

    def __bool__(self) -> bool:
        """An empty table is a table."""
        return True

    def __repr__(self) -> str:
        return f'<embank.Table {self._name!r} of {self._store!r}>'

    def __reduce__(self) -> Any:
        raise TypeError('a Table is an open handle of this process: it cannot be copied or pickled')

    def lookup(self, keys: Array, out: Array | None = None, *, missing: str = 'create',
               outcomes: bool = False) -> Any:
        """Returns the rows of n keys, of shape (n, dim) and the table's dtype.

        `out`: an array of that shape for the rows, which is returned; its rows may be farther apart
        than their bytes. `missing` is the answer for a key without a row: 'create' makes the row
        with its initial value and answers that; 'default' answers it and makes nothing; 'zero'
        answers zeros; 'skip' leaves the row of `out` as it is. Each row that is found or created
        gets one more heat.

        With outcomes=True it returns (rows, outcomes): FOUND, CREATED, REFUSED (no space: the
        initial value is answered), ABSENT, and DATA_LOSS or UNAVAILABLE, whose row of `out` stays
        as it is. Without, REFUSED is a ResourceExhaustedError.

        >>> import embank
        >>> items = embank.Store().table('items', dim=2, init=('constant', 3))
        >>> rows, outcomes = items.lookup(np.array([5, 5], np.uint64), outcomes=True)
        >>> rows.tolist(), [embank.Outcome(one).name for one in outcomes]
        ([[3.0, 3.0], [3.0, 3.0]], ['CREATED', 'FOUND'])
        """
        keys = _arrays.keys(keys)
        count = len(keys)
        number = missing_number(missing)
        if out is None:
            # A row that is not written is zeros, and no bytes of others.
            make = np.zeros if outcomes or number == _c.EMBANK_MISSING_SKIP else np.empty
            out = make((count, self._dim), self._dtype)
        rows, address, stride = _arrays.rows(out, 'out', count, self._dim, self._dtype, True)
        found, outcomes_address = new_outcomes(outcomes, count)
        keys_address = _arrays.address(keys)
        _arrays.check_apart('out', address, (stride or rows.itemsize * self._dim) * count,
                            keys_address, count)
        self._call(library.embank_lookup, keys_address, count, number, address, stride,
                   outcomes_address)
        return out if found is None else (out, found)

    def apply_gradients(self, keys: Array, gradients: Array, *, outcomes: bool = False) -> Any:
        """Makes one optimizer step for each distinct key, with the sum of its gradients.

        `gradients` has the shape (n, dim) and is float32, whatever the table's dtype. Outcomes are
        FOUND, ABSENT (without outcomes=True: NotFoundError), NOT_FINITE (OutOfRangeError: the step
        would leave a number that is NaN or infinite, and was not made), REFUSED, DATA_LOSS and
        UNAVAILABLE.

        InvalidArgumentError: a gradient is NaN or infinite; no step was made.
        FailedPreconditionError: the table has no optimizer.
        """
        keys = _arrays.keys(keys)
        count = len(keys)
        kept, address, stride = _arrays.rows(gradients, 'gradients', count, self._dim,
                                             _arrays.FLOAT32)
        found, outcomes_address = new_outcomes(outcomes, count)
        self._call(library.embank_apply_gradients, _arrays.address(keys), count, address, stride,
                   outcomes_address)
        return found

    def upsert(self, keys: Array, rows: Array, *, state: Array | None = None,
               heat: Array | None = None, outcomes: bool = False) -> Any:
        """Writes rows of shape (n, dim): creates those that are absent, overwrites the others.

        `state`, float32 of shape (n, state_floats), is the optimizer's state; without it, rows get
        that of a new row. `heat`, uint32 of shape (n,), is the heat; without it, a row keeps its
        own. The last position of a repeated key wins. Outcomes are FOUND, CREATED, REFUSED,
        DATA_LOSS and UNAVAILABLE.

        FailedPreconditionError: there is a state, and the table's optimizer has none.

        >>> import embank
        >>> items = embank.Store().table('items', dim=2)
        >>> items.upsert(np.array([1], np.uint64), np.array([[1, 2]], np.float32))
        >>> items.lookup(np.array([1], np.uint64)).tolist()
        [[1.0, 2.0]]
        """
        keys = _arrays.keys(keys)
        count = len(keys)
        kept, address, stride = _arrays.rows(rows, 'rows', count, self._dim, self._dtype)
        found, outcomes_address = new_outcomes(outcomes, count)
        if state is None and heat is None:
            self._call(library.embank_upsert, _arrays.address(keys), count, address, stride,
                       outcomes_address)
            return found
        kept_state, state_address, state_stride = (
            (None, None, 0) if state is None else self._states(state, 'state', count))
        heats = None if heat is None else _arrays.vector(heat, 'heat', HEATS, count)
        self._call(library.embank_upsert_full, _arrays.address(keys), count, address, stride,
                   state_address, state_stride,
                   None if heats is None else _arrays.address(heats), outcomes_address)
        return found

    def erase(self, keys: Array, *, outcomes: bool = False) -> Any:
        """Erases rows. Outcomes are FOUND, ABSENT, DATA_LOSS and UNAVAILABLE.

        Without outcomes=True, a key without a row is no exception.
        """
        keys = _arrays.keys(keys)
        found, outcomes_address = new_outcomes(outcomes, len(keys))
        self._call(library.embank_erase, _arrays.address(keys), len(keys), outcomes_address)
        return found

    def contains(self, keys: Array) -> View:
        """Says which keys have rows, as an array of n bools; adds no heat.

        DataLossError, UnavailableError: it cannot be known of a key.

        >>> import embank
        >>> items = embank.Store().table('items', dim=1)
        >>> _ = items.lookup(np.array([3], np.uint64))
        >>> items.contains(np.array([3, 4], np.uint64))
        array([ True, False])
        """
        keys = _arrays.keys(keys)
        found, outcomes_address = new_outcomes(True, len(keys))
        self._call(library.embank_contains, _arrays.address(keys), len(keys), outcomes_address)
        for outcome, error in ((Outcome.DATA_LOSS, DataLossError),
                               (Outcome.UNAVAILABLE, UnavailableError)):
            at = np.flatnonzero(found == outcome)
            if len(at):
                raise error(f'table {self._name}: it cannot be read whether key {keys[at[0]]} '
                            f'has a row; {len(at)} such keys')
        present: View = found == Outcome.FOUND
        return present

    def prefetch(self, keys: Array) -> None:
        """Reads rows from the disk into memory, so that the next lookup finds them there.

        It is a hint, to be called by a thread of its own for a batch that comes soon. It creates
        nothing, changes nothing and adds no heat. The rows are pinned for a while, see
        embank_prefetch in embank.h.
        """
        keys = _arrays.keys(keys)
        self._call(library.embank_prefetch, _arrays.address(keys), len(keys))

    def get_state(self, keys: Array, out: Array | None = None, *, outcomes: bool = False) -> Any:
        """Returns the optimizer's state of n rows, float32 of shape (n, state_floats).

        A row is s of Adagrad (dim numbers) and of row-wise Adagrad (one); m, v and the number of
        steps of Adam; z and n of FTRL. `out`: an array for the states. A key that is ABSENT
        (without outcomes=True: NotFoundError), DATA_LOSS or UNAVAILABLE leaves its row of `out` as
        it is.

        FailedPreconditionError: the table's optimizer has no state.
        """
        keys = _arrays.keys(keys)
        count = len(keys)
        if out is None:
            out = np.zeros((count, self._state_floats), np.float32)
        kept, address, stride = self._states(out, 'out', count, True)
        found, outcomes_address = new_outcomes(outcomes, count)
        keys_address = _arrays.address(keys)
        _arrays.check_apart('out', address, (stride or 4 * self._state_floats) * count,
                            keys_address, count)
        self._call(library.embank_get_state, keys_address, count, address, stride,
                   outcomes_address)
        return out if found is None else (out, found)

    def set_state(self, keys: Array, state: Array, *, outcomes: bool = False) -> Any:
        """Writes the optimizer's state of rows that exist; see get_state.

        Outcomes are FOUND, ABSENT (NotFoundError), REFUSED, DATA_LOSS and UNAVAILABLE.
        """
        keys = _arrays.keys(keys)
        count = len(keys)
        kept, address, stride = self._states(state, 'state', count)
        found, outcomes_address = new_outcomes(outcomes, count)
        self._call(library.embank_set_state, _arrays.address(keys), count, address, stride,
                   outcomes_address)
        return found

    def heat(self, keys: Array, out: Array | None = None, *, outcomes: bool = False) -> Any:
        """Returns how often each row was looked up, uint32 of shape (n,); 0 without a row.

        Heat is at most 1048575, and halves as the lookups of the store go on.
        """
        keys = _arrays.keys(keys)
        count = len(keys)
        if out is None:
            out = np.zeros(count, np.uint32)
        heats = _arrays.vector(out, 'out', HEATS, count, is_written=True)
        found, outcomes_address = new_outcomes(outcomes, count)
        address, keys_address = _arrays.address(heats), _arrays.address(keys)
        _arrays.check_apart('out', address, 4 * count, keys_address, count)
        self._call(library.embank_get_heat, keys_address, count, address, outcomes_address)
        return out if found is None else (out, found)

    def scan(self, batch: int = 65536, *, rows: bool = True, state: bool = False,
             heat: bool = False) -> Scan:
        """Returns an iterator over all rows, by batches of at most `batch` of them.

        Each item is a ScanBatch (keys, rows, state, heat); what is not wanted is None in it. Every
        row that exists from the start to the end appears once, in no particular order; rows that
        are created or erased meanwhile may appear.

        FailedPreconditionError: state is wanted, and the table's optimizer has none.

        >>> import embank
        >>> items = embank.Store().table('items', dim=1)
        >>> _ = items.lookup(np.arange(10, dtype=np.uint64))
        >>> sorted(key for batch in items.scan(4) for key in batch.keys.tolist())
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
        """
        return Scan(self, batch, rows=rows, state=state, heat=heat)

    def _call(self, function: Any, *arguments: Any) -> None:
        self._handle.call(function, self._address, *arguments)

    def _options_struct(self) -> Any:
        struct = _c.embank_table_options(struct_size=ctypes.sizeof(_c.embank_table_options))
        self._call(library.embank_table_get_options, struct)
        return struct

    def _states(self, value: Array, name: str, count: int,
                is_written: bool = False) -> tuple[View, int, int]:
        return _arrays.rows(value, name, count, self._state_floats, _arrays.FLOAT32, is_written)
