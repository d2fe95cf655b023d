"""Click logs as arrays: Criteo's text format, and Parquet where pyarrow is."""
from __future__ import annotations

import gzip
import importlib
import os
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from ._arrays import View
from .errors import InvalidArgumentError, UnimplementedError
from .models import Samples

MISSING_ID = 2 ** 64 - 1
MISSING = frozenset(
    b' NA N/A n/a #NA #N/A <NA> NaN nan NAN -nan -NaN null NULL None none \\N'.split(b' ')
    + [b'#N/A N/A'])
DIGITS_MAX = 18
HEX = re.compile(rb'[0-9A-Fa-f]{8}')
SPACED = re.compile(rb'[_\s]')  # float takes these
GZIP = b'\x1f\x8b'

Path = str | os.PathLike[str]


def log_of_counts(counts: View) -> View:
    """Returns log(max(x, 0) + 1) as float32, which embank-train makes of Criteo's integers.

    >>> log_of_counts(np.array([-5, 0, 1])).tolist()
    [0.0, 0.0, 0.6931471824645996]
    """
    logs: View = np.log(np.maximum(counts, 0).astype(np.float64) + 1.0).astype(np.float32)
    return logs


def _count(field: bytes) -> int:
    if field in MISSING:
        return 0
    if len(field) > DIGITS_MAX + field.startswith(b'-'):
        raise ValueError(f'{field!r} has more than {DIGITS_MAX} digits')
    if field.removeprefix(b'-').isdigit():
        return int(field)
    number = float(field)
    if number != int(number) or abs(number) >= 2 ** 53 or SPACED.search(field):
        raise ValueError(f'{field!r} is no whole number')
    return int(number)


def _id(field: bytes) -> int:
    if field in MISSING:
        return MISSING_ID
    if HEX.fullmatch(field) is None:
        raise ValueError(f'{field!r} is no id of 8 hexadecimal digits')
    return int(field, 16)


def _opened(path: Path) -> Any:
    with open(path, 'rb') as file:
        is_gzip = file.read(2) == GZIP
    opened: Any = gzip.open(path, 'rb') if is_gzip else open(path, 'rb')
    return opened


def _samples(counts: list[list[int]], ids: list[list[int]]) -> Samples:
    columns = np.array(ids, np.uint64)
    return Samples(log_of_counts(np.array(counts, np.int64)),
                   {f'C{i + 1}': np.ascontiguousarray(columns[:, i])
                    for i in range(columns.shape[1])})


def criteo_samples(path: Path, batch: int = 65536, *, integers: int = 13,
                   ids: int = 26) -> Iterator[Samples]:
    """Yields the samples of a log in Criteo's format, plain or .gz, at most `batch` at once.

    Its lines have a label, `integers`, and `ids` of 8 hexadecimal digits, with tabs between them.
    The label is not read; all lines may lack it. The features have the names I1, ... and C1, ...;
    a missing integer is 0, and a missing id 2^64 - 1.

    InvalidArgumentError: a line is broken; the message names it.

    >>> import tempfile
    >>> log = tempfile.NamedTemporaryFile()
    >>> _ = log.write(bytes(f'1{chr(9)}2{chr(9)}{chr(9)}0000000a{chr(10)}', 'ascii')); log.flush()
    >>> samples = next(criteo_samples(log.name, integers=2, ids=1))
    >>> samples.dense.tolist(), samples.ids['C1'].tolist()
    ([[1.0986123085021973, 0.0]], [10])
    """
    counts: list[list[int]] = []
    found: list[list[int]] = []
    labels = 1
    with _opened(path) as file:
        for number, line in enumerate(file, 1):
            fields = line.rstrip(b'\r\n').split(b'\t')
            if number == 1 and len(fields) == integers + ids:
                labels = 0
            try:
                if len(fields) != labels + integers + ids:
                    raise ValueError(f'it has {len(fields)} fields; there must be '
                                     f'{labels + integers + ids}')
                counts.append([_count(field) for field in fields[labels:labels + integers]])
                found.append([_id(field) for field in fields[labels + integers:]])
            except (ValueError, OverflowError) as error:
                raise InvalidArgumentError(f'{os.fsdecode(path)}, line {number}: '
                                           f'{error}') from error
            if len(counts) == batch:
                yield _samples(counts, found)
                counts, found = [], []
    if counts:
        yield _samples(counts, found)


def _parquet_ids(column: Any, name: str, arrow: Any) -> Any:
    kind = column.type
    if arrow.types.is_list(kind) or arrow.types.is_large_list(kind):
        lengths = np.nan_to_num(column.value_lengths().to_numpy(zero_copy_only=False), nan=0)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        return _parquet_ids(column.flatten(), name, arrow), offsets
    if not arrow.types.is_integer(kind):
        raise InvalidArgumentError(f'column {name} is {kind}; ids must be integers, or lists of '
                                   'them')
    found = column.to_numpy(zero_copy_only=False) if not column.null_count else np.array(
        [MISSING_ID if one is None else one % (1 << 64) for one in column.to_pylist()], np.uint64)
    return np.ascontiguousarray(found).astype(np.int64 if found.dtype.kind == 'i' else np.uint64)


def parquet_samples(path: Path, dense: list[str], ids: list[str],
                    batch: int = 65536) -> Iterator[Samples]:
    """Yields the samples of a Parquet file, at most `batch` at once, by the names of its columns.

    `dense`, `ids`: as in the description of a model. Numbers are taken as they are: a column that
    was trained with log needs log_of_counts. A missing number is 0, a missing id 2^64 - 1, and a
    missing list has no id.

    UnimplementedError: pyarrow is not installed. InvalidArgumentError: a column is missing, or has
    another type.
    """
    try:
        arrow, parquet = map(importlib.import_module, ('pyarrow', 'pyarrow.parquet'))
    except ImportError as error:
        raise UnimplementedError(f'Parquet needs pyarrow, which is not there: {error}') from error
    file = parquet.ParquetFile(path)
    for name in [*dense, *ids]:
        if name not in file.schema_arrow.names:
            raise InvalidArgumentError(f'{os.fsdecode(path)} has no column {name!r}; it has '
                                       f'{", ".join(file.schema_arrow.names)}')
    for rows in file.iter_batches(batch_size=batch, columns=[*dense, *ids]):
        numbers = np.zeros((rows.num_rows, len(dense)), np.float32)
        for i, name in enumerate(dense):
            kind = rows.column(name).type
            if not (arrow.types.is_integer(kind) or arrow.types.is_floating(kind)):
                raise InvalidArgumentError(f'column {name} is {kind}; it must have numbers')
            values = rows.column(name).to_numpy(zero_copy_only=False)
            numbers[:, i] = np.nan_to_num(values.astype(np.float64), nan=0.0)
        yield Samples(numbers, {name: _parquet_ids(rows.column(name), name, arrow)
                                for name in ids})
