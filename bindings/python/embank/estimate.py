"""How much memory a store needs, and which rank owns a row: answers without a store."""
from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _arrays, _c, _text, options as _options
from ._arrays import Array, View
from ._library import library
from .errors import check
from .options import StoreOptions, TableOptions

RANKS_MAX = 256


def estimate(tables: Sequence[tuple[TableOptions, int]], options: StoreOptions = StoreOptions(),
             *, hit_ratio: float | None = None, zipf_exponent: float = 1.0) -> dict[str, Any]:
    """Returns how much memory a store with these tables and numbers of rows needs.

    The dict has dram_bytes, which suffices: without a path for all rows, with a path for nearly all
    of them on SSD; its parts fixed_bytes, index_bytes and slab_bytes; rows_in_dram; and fits, which
    says whether it is within the dram_bytes of `options`. With `hit_ratio`, 0 to 1, it is the
    memory in which that share of lookups finds its row, where the i-th most popular row is
    looked up in
    proportion to i ** -zipf_exponent; `options` needs a path then.

    InvalidArgumentError: an option or a number is invalid.

    >>> found = estimate([(TableOptions(dim=16, optimizer='adagrad'), 1_000_000)])
    >>> 128_000_000 < found['dram_bytes'] < 256_000_000
    True
    """
    count = len(tables)
    structs = (_c.embank_table_options * count)(*(_options.table_struct(table)
                                                  for table, _ in tables))
    rows = (ctypes.c_uint64 * count)(*(_options.integer(number, 'rows', 0, _options.UINT64_MAX)
                                       for _, number in tables))
    store = _options.store_struct(options)

    def write(*buffer: Any) -> None:
        if hit_ratio is None:
            check(library.embank_estimate(store, structs, rows, count, *buffer))
        else:
            check(library.embank_estimate_for_hit_ratio(
                store, structs, rows, count, _options.real(zipf_exponent, 'zipf_exponent'),
                _options.real(hit_ratio, 'hit_ratio'), *buffer))
    return _text.from_json(write)


def owner_of(table_name: str, keys: Array, ranks: int) -> View:
    """Returns which of `ranks`, 1 to 256, owns each of n keys: uint32 of shape (n,).

    The answer depends on the name of the table and the key alone.

    >>> owner_of('users', np.array([0, 42], np.uint64), 8).tolist()
    [4, 1]
    """
    keys = _arrays.keys(keys)
    owners = np.empty(len(keys), np.uint32)
    check(library.embank_owner_of(
        _text.encoded(table_name, 'table_name'), _arrays.address(keys), len(keys),
        _options.integer(ranks, 'ranks', 1, RANKS_MAX), _arrays.address(owners)))
    return owners
