"""npy files: keys, values, state and heat of a table in a file each, as numpy.load reads them."""
from __future__ import annotations

import ast
import operator
from typing import Any, BinaryIO

import numpy as np

from ..errors import DataLossError, InvalidArgumentError, NotFoundError
from ..scan import ScanBatch
from ..table import Table
from .column import Column, Field, file_bytes
from .output_files import OutputFiles
from .source import ColumnSource, Contents, check_part

MAGIC = b'\x93NUMPY'
HEADER_BYTES = 128  # of our files; numpy wants a multiple of 64
HEADER_BYTES_MAX = 65536
NAMES = {'keys': 'keys', 'rows': 'values', 'state': 'state', 'heat': 'heat'}


def file_of(path: str, column: str) -> str:
    """Returns the name of a file.

    >>> file_of('out/items', 'rows')
    'out/items.values.npy'
    """
    return f'{path}.{NAMES[column]}.npy'


def header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Returns the header of a file, version 1.0 of the format.

    >>> header(np.dtype('<u8'), (3,))[10:70]
    b"{'descr': '<u8', 'fortran_order': False, 'shape': (3,), }   "
    """
    text = repr({'descr': dtype.str, 'fortran_order': False, 'shape': shape})[:-1] + ', }'
    fixed = MAGIC + b'\x01\x00' + (HEADER_BYTES - 10).to_bytes(2, 'little')
    return fixed + text.encode().ljust(HEADER_BYTES - 11) + b'\n'


def read_column(path: str) -> Column:
    """Returns the array of an npy file.

    DataLossError: the file is no npy file, or is cut off. InvalidArgumentError: its numbers are in
    the order of Fortran, or it has neither one dimension nor two.
    """
    size = file_bytes(path)
    with open(path, 'rb') as file:
        begin = file.read(12)
        version = begin[6:7]
        if not begin.startswith(MAGIC) or version not in (b'\1', b'\2', b'\3') or len(begin) < 12:
            raise DataLossError(f'{path} begins with {begin[:8]!r}; it is no npy file')
        at = 10 if version == b'\1' else 12
        length = int.from_bytes(begin[8:at], 'little')
        if length > min(size - at, HEADER_BYTES_MAX):
            raise DataLossError(f'{path}: its header has {length} bytes; the file has {size}, and '
                                f'headers at most {HEADER_BYTES_MAX}')
        file.seek(at)
        text = file.read(length)
    try:
        found = ast.literal_eval(text.decode('utf-8').strip())
        dtype, shape = np.dtype(str(found['descr'])), tuple(map(operator.index, found['shape']))
        is_fortran = bool(found['fortran_order'])
    except (ValueError, TypeError, KeyError, SyntaxError, RecursionError, MemoryError) as error:
        raise DataLossError(f'{path}: its header is not understood: {error}') from error
    if dtype.hasobject or dtype.byteorder == '>' or len(shape) not in (1, 2) or (
            len(shape) == 2 and (is_fortran or shape[1] < 1)) or shape[0] < 0:
        raise InvalidArgumentError(
            f'{path} has dtype {dtype.str}, shape {shape} and fortran_order {is_fortran}; it must '
            'have little-endian numbers in C order, and one dimension or two of at least 1')
    column = Column(path, at + length, shape[0], shape[1] if len(shape) == 2 else 0, dtype)
    expected = column.offset + shape[0] * column.row_bytes
    if size != expected:
        raise DataLossError(f'{path} has {size} bytes; an array of {dtype.str} and shape {shape} '
                            f'ends at {expected}')
    return column


def read(table: Table, path: str, name: str) -> ColumnSource:
    """Returns the rows of PATH.keys.npy and PATH.values.npy; states and heats if they are there."""
    part = {column: read_column(file_of(path, column)) for column in ('keys', 'rows')}
    for column in ('state', 'heat'):
        try:
            part[column] = read_column(file_of(path, column))
        except NotFoundError:
            pass
    check_part(part, table)
    contents = Contents(state_width=part['state'].width if 'state' in part else 0,
                        has_heat='heat' in part)
    return ColumnSource(path, [part], contents)


class Target:
    """The files of an export, whose headers are written at the end."""

    def __init__(self, files: OutputFiles, table: Table, path: str, fields: dict[str, Field],
                 **_: Any) -> None:
        for column in set(NAMES) - set(fields):
            files.remove(file_of(path, column))
        self._fields, self._rows = fields, 0
        self._files: dict[str, BinaryIO] = {}
        for column in fields:
            self._files[column] = files.open(file_of(path, column), head=column == 'keys')
            self._files[column].write(bytes(HEADER_BYTES))

    def write(self, batch: ScanBatch) -> None:
        """Appends rows."""
        for column, file in self._files.items():
            file.write(getattr(batch, column).data)
        self._rows += len(batch.keys)

    def finish(self) -> None:
        """Writes the headers."""
        for column, file in self._files.items():
            dtype, width = self._fields[column]
            file.seek(0)
            file.write(header(dtype, (self._rows, width) if width else (self._rows,)))
