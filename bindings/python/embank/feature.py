"""One feature of a packed call: keys of one table, each for itself or in bags."""
from __future__ import annotations

import ctypes
import struct as _struct
from typing import Any

import numpy as np

from . import _arrays, _c, options as _options
from ._arrays import Array, View
from .errors import InvalidArgumentError
from .table import Table

FLOATS = (_arrays.FLOAT32,)
STRUCT_BYTES = ctypes.sizeof(_c.embank_feature)
# One step of struct takes a third of the time of five fields of ctypes. Its fields are those from
# keys to weights, and rows and row_stride.
ARRAYS, ARRAYS_AT = _struct.Struct('=5Q'), _c.embank_feature.keys.offset
ROWS, ROWS_AT = _struct.Struct('=2Q'), _c.embank_feature.rows.offset


class Feature:
    """Keys of one table for Store.lookup_packed and Store.apply_gradients_packed.

    `keys`: n keys, uint64, int64, uint32 or int32 (which are widened, -1 to 2^64 - 1).
    `offsets`: bags + 1 numbers of the same types, never falling: bag i has the keys from
    keys[offsets[i]] to keys[offsets[i + 1] - 1], and may be empty. The first offset need not be 0,
    so that a feature can be a part of larger arrays. Without offsets, each key has a row of its
    own.
    `weights`: float32, of the shape of keys: each row is multiplied by its weight.
    `pooling`: 'sum' (the default with offsets), 'mean' or 'sqrt_n' of the rows of a bag; 'none'
    without offsets. Weights need 'sum' or 'mean'.
    `padding_key`: a key that adds nothing, is never created and gets no gradient.

    A feature is made once and gets the arrays of each batch by set(). It keeps them alive. One
    thread at a time uses it.

    >>> import embank
    >>> items = embank.Store().table('items', dim=2, init=('constant', 1))
    >>> tags = Feature(items, np.array([5, 6, 7]), np.array([0, 2, 2, 3]))
    >>> items.store.lookup_packed([tags])[0].tolist()
    [[2.0, 2.0], [0.0, 0.0], [1.0, 1.0]]
    >>> Feature(items, np.array([5, 6]), np.array([0, 3]))
    Traceback (most recent call last):
    embank.errors.InvalidArgumentError: offsets ends with 3; there are 2 keys
    """

    __slots__ = ('table', 'pooling', 'shape', 'row_dtype', 'key_count', 'bytes', 'first',
                 '_is_pooled', '_padding', '_is_narrow', '_kept')

    def __init__(self, table: Table, keys: Array, offsets: Array | None = None,
                 weights: Array | None = None, *, pooling: str | None = None,
                 padding_key: int | None = None) -> None:
        if not isinstance(table, Table):
            raise TypeError(f'table is a {type(table).__name__}; it must be an embank.Table')
        self.table = table
        self.pooling = pooling or ('none' if offsets is None else 'sum')
        number = _options.choice(self.pooling, 'pooling', _options.POOLINGS)
        self._is_pooled = number != _c.EMBANK_POOL_NONE
        # The rows that a lookup answers: sums are float32, whatever the table has.
        self.row_dtype = _arrays.FLOAT32 if self._is_pooled else table.dtype
        self.bytes = bytearray(STRUCT_BYTES)
        struct = self._struct()
        struct.struct_size, struct.pooling, struct.table = STRUCT_BYTES, number, table._address
        self._padding = 0
        if padding_key is not None:
            key = _options.integer(padding_key, 'padding_key', -1 << 63, _options.UINT64_MAX)
            struct.padding_key = key % (1 << 64)
            struct.flags = self._padding = _c.EMBANK_FEATURE_PADDING
        self.first, self._is_narrow = 0, False
        self.set(keys, offsets, weights)

    def set(self, keys: Array, offsets: Array | None = None, weights: Array | None = None) -> None:
        """Takes the arrays of the next batch; the pooling and the padding key stay.

        TypeError: an array has a wrong dtype. InvalidArgumentError: it has a wrong shape or is not
        contiguous, offsets are missing, or not wanted, or end beyond the keys.
        """
        kept_keys, key_type, keys_at = _arrays.indices(keys, 'keys')
        count = row_count = kept_keys.shape[0]
        kept_weights = None
        if weights is not None:
            kept_weights = _arrays.vector(weights, 'weights', FLOATS, count)
        first = bags = offset_type = offsets_at = 0
        kept_offsets = None
        if self._is_pooled != (offsets is not None):
            raise InvalidArgumentError(
                f'offsets is missing; pooling {self.pooling!r} needs it' if self._is_pooled else
                "offsets is not None; pooling 'none' has no bags")
        if offsets is not None:
            kept_offsets, offset_type, offsets_at = _arrays.indices(offsets, 'offsets')
            first, last = check_offsets(kept_offsets, count)
            count, bags = last - first, kept_offsets.shape[0] - 1
            row_count = bags
        ARRAYS.pack_into(self.bytes, ARRAYS_AT, keys_at, count, offsets_at, bags,
                         0 if kept_weights is None else _arrays.address(kept_weights))
        if key_type or offset_type or self._is_narrow:
            self._set_types(key_type, keys_at, offset_type, offsets_at)
        if first or self.first:
            self._struct().flags = self._padding | (_c.EMBANK_FEATURE_ABSOLUTE if first else 0)
        self.first, self.key_count, self.shape = first, count, (row_count, self.table.dim)
        self._kept = (kept_keys, kept_offsets, kept_weights)

    def _struct(self) -> Any:
        return _c.embank_feature.from_buffer(self.bytes)

    def _set_types(self, key_type: int, keys_at: int, offset_type: int, offsets_at: int) -> None:
        """Sets the fields of arrays of 32-bit integers, which have fields of their own."""
        struct = self._struct()
        struct.key_type, struct.offset_type = key_type, offset_type
        struct.typed_keys, struct.typed_offsets = keys_at * bool(key_type), offsets_at * bool(
            offset_type)
        struct.keys, struct.offsets = keys_at * (not key_type), offsets_at * (not offset_type)
        self._is_narrow = bool(key_type or offset_type)

    def check(self) -> None:
        """Raises InvalidArgumentError if absolute offsets were changed since set().

        They could lead beyond the keys. Offsets that begin with 0 need no look: the library
        compares the last one with n.
        """
        keys, offsets, _ = self._kept
        assert offsets is not None
        if check_offsets(offsets, len(keys)) != (self.first, self.first + self.key_count):
            raise InvalidArgumentError('offsets were changed since set(); call it again')


def check_offsets(offsets: View, key_count: int) -> tuple[int, int]:
    """Returns the first and the last offset, which must be within the keys."""
    if len(offsets) == 0:
        raise InvalidArgumentError('offsets is empty; it must have one number more than there are '
                                   'bags')
    first, last = offsets.item(0), offsets.item(-1)
    if first < 0:
        raise InvalidArgumentError(f'offsets begins with {first}; it must be 0 or more')
    if last > key_count:
        raise InvalidArgumentError(f'offsets ends with {last}; there are {key_count} keys')
    if last < first:
        raise InvalidArgumentError(f'offsets falls from {first} to {last}; it must never fall')
    return first, last
