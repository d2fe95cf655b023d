"""A column of a file: an array of numbers, one or a fixed number for each row of a table."""
from __future__ import annotations

import io
import os
import stat
from typing import Any, NamedTuple

import numpy as np

from .._arrays import View
from ..errors import DataLossError, InvalidArgumentError, NotFoundError


class Field(NamedTuple):
    """The numbers of each row of a column."""

    dtype: np.dtype[Any]
    width: int
    """How many; 0: the array has one dimension, with one number for each row."""


class Column(NamedTuple):
    """Numbers in a file, little-endian and row after row."""

    path: str
    offset: int
    """The byte at which they begin."""
    rows: int
    width: int
    """Numbers of each row; 0: the array has one dimension, with one number for each row."""
    dtype: np.dtype[Any]

    @property
    def row_bytes(self) -> int:
        """The bytes of one row."""
        return max(self.width, 1) * self.dtype.itemsize

    def shape(self, rows: int) -> tuple[int, ...]:
        """Returns the shape of an array of `rows` rows."""
        return (rows, self.width) if self.width else (rows,)


class ColumnReader:
    """Reads a column from its first row on, and keeps its file open until close().

    >>> import tempfile
    >>> file = tempfile.NamedTemporaryFile()
    >>> _ = file.write(np.arange(6, dtype='<f4').tobytes()); file.flush()
    >>> reader = ColumnReader(Column(file.name, 8, 2, 2, np.dtype('<f4')))
    >>> reader.read(2).tolist()
    [[2.0, 3.0], [4.0, 5.0]]
    >>> reader.close()
    """

    def __init__(self, column: Column) -> None:
        self._column = column
        self._file: io.BufferedReader = open(column.path, 'rb')
        self._file.seek(column.offset)

    def read(self, rows: int) -> View:
        """Returns the next rows. DataLossError: the file has become shorter meanwhile."""
        array = np.empty(self._column.shape(rows), self._column.dtype)
        begin = self._file.tell()
        count = self._file.readinto(array.reshape(-1).view(np.uint8).data)
        if count != array.nbytes:
            raise DataLossError(f'{self._column.path} ends at byte {begin + count}, and not at '
                                f'{begin + array.nbytes} or later: it was cut off meanwhile')
        return array

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def file_bytes(path: str) -> int:
    """Returns the size of a file.

    NotFoundError: there is none. InvalidArgumentError: it is no regular file, such as a pipe, which
    an open would wait for.
    """
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFoundError(f'{path}: there is no such file') from error
    if not stat.S_ISREG(found.st_mode):
        raise InvalidArgumentError(f'{path} is no regular file; it must be one')
    return found.st_size


def raw_keys(path: str) -> Column:
    """Returns the keys of a file that has nothing else: 8 bytes each.

    DataLossError: the size of the file is no multiple of 8.
    """
    size = file_bytes(path)
    if size % 8:
        raise DataLossError(f'{path} has {size} bytes, which are no whole keys of 8: '
                            f'{size % 8} bytes are over')
    return Column(path, 0, size // 8, 0, np.dtype('<u8'))


def raw_column(path: str, keys: Column, width: int, dtype: Any, of: str) -> Column:
    """Returns the numbers of a file that has nothing else, for the rows of some keys.

    InvalidArgumentError: the file has another number of numbers for each row; the message tells
    it. DataLossError: its size does not go with the number of keys.
    """
    column = Column(path, 0, keys.rows, width, np.dtype(dtype))
    size, expected = file_bytes(path), keys.rows * column.row_bytes
    if size == expected:
        return column
    message = (f'{path} has {size} bytes; {keys.rows} keys of {keys.path} need {expected}, '
               f'{max(width, 1)} {of} of {column.dtype.itemsize} bytes each')
    whole = keys.rows * column.dtype.itemsize
    if width and whole and size and size % whole == 0:
        raise InvalidArgumentError(f'{message}; the file has {size // whole} of them for each key')
    raise DataLossError(message)
