"""A source: the rows of files, in batches of bounded memory."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np

from .._arrays import FLOAT32, UINT32, View
from ..errors import DataLossError, InvalidArgumentError
from ..scan import ScanBatch
from ..table import Table
from .column import Column, ColumnReader

HEAT_MAX = 1048575


class Contents(NamedTuple):
    """The columns that a source has beside keys and rows."""

    state_width: int = 0
    """The numbers of the optimizer's state of a row; 0: there are no states."""
    optimizer: str | None = None
    """The optimizer of the states; None: the files do not say it."""
    has_heat: bool = False
    has_scores: bool = False
    """Whether there are scores of an eviction rule, which can be read as heats."""


class Source(Protocol):
    """The rows of files."""

    path: str
    rows: int
    contents: Contents

    def batches(self, rows: int, state: bool, heat: bool) -> Iterator[ScanBatch]:
        """Yields all rows, at most `rows` at once, with states and heats where they are wanted."""


class ColumnSource:
    """A source of parts, each of which has the columns 'keys', 'rows', 'state' and 'heat'."""

    def __init__(self, path: str, parts: list[dict[str, Column]], contents: Contents) -> None:
        self.path, self.contents = path, contents
        self.rows = sum(part['keys'].rows for part in parts)
        self._parts = parts

    def batches(self, rows: int, state: bool, heat: bool) -> Iterator[ScanBatch]:
        """See Source."""
        names = ['keys', 'rows'] + ['state'] * state + ['heat'] * heat
        for part in self._parts:
            with contextlib.ExitStack() as stack:
                readers = {name: stack.enter_context(contextlib.closing(ColumnReader(part[name])))
                           for name in names}
                for begin in range(0, part['keys'].rows, rows):
                    count = min(rows, part['keys'].rows - begin)
                    read = {name: reader.read(count) for name, reader in readers.items()}
                    yield ScanBatch(read['keys'], read['rows'], read.get('state'),
                                    heats(read['heat']) if heat else None)


def heats(scores: View) -> View:
    """Returns scores as heats: those above the largest heat become that.

    >>> heats(np.array([7, 1 << 40], np.uint64)).tolist()
    [7, 1048575]
    """
    if scores.dtype == np.uint32:
        return scores
    return np.minimum(scores, np.uint64(HEAT_MAX)).astype(np.uint32)


def check_part(part: dict[str, Column], table: Table) -> None:
    """Checks that columns, which files have described, go with each other and with a table.

    InvalidArgumentError: a type or a width is another one. DataLossError: a column has another
    number of rows.
    """
    keys, rows = part['keys'], part['rows']
    if keys.dtype.kind not in 'ui' or keys.dtype.itemsize != 8 or keys.width:
        raise InvalidArgumentError(f'{keys.path}: keys have dtype {keys.dtype} and the shape '
                                   f'{keys.shape(keys.rows)}; they must be uint64 or int64, and '
                                   'have one dimension')
    if rows.dtype != table.dtype or rows.width != table.dim:
        raise InvalidArgumentError(
            f'{rows.path}: values have dtype {rows.dtype} and the shape {rows.shape(rows.rows)}; '
            f'table {table.name} has {table.options.value_type}, {table.dtype}, and dim '
            f'{table.dim}')
    state, heat = part.get('state'), part.get('heat')
    if state is not None and (state.dtype != FLOAT32 or not state.width):
        raise InvalidArgumentError(f'{state.path}: states have dtype {state.dtype} and the shape '
                                   f'{state.shape(state.rows)}; they must be float32, and have '
                                   'two dimensions')
    if heat is not None and (heat.dtype != UINT32 or heat.width):
        raise InvalidArgumentError(f'{heat.path}: heats have dtype {heat.dtype} and the shape '
                                   f'{heat.shape(heat.rows)}; they must be uint32, and have one '
                                   'dimension')
    for name, column in part.items():
        if column.rows != keys.rows:
            raise DataLossError(f'{column.path}: {name} has {column.rows} rows, and there are '
                                f'{keys.rows} keys')
