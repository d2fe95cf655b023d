"""Deltas of TorchEasyRec: Parquet files with an embedding in each row, read and written by pyarrow.

Of their columns, key_id (int64), embedding (a list of float32) and embedding_name are read.
"""
from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from .._arrays import FLOAT32, View
from ..errors import (DataLossError, InvalidArgumentError, NotFoundError, OutOfRangeError,
                      UnimplementedError)
from ..scan import ScanBatch
from ..table import Table
from .column import file_bytes
from .output_files import OutputFiles
from .raw import check_float32
from .source import Contents

COLUMNS = {'embedding_name': 'string', 'key_id': 'int64', 'embedding': 'list<float>'}
KEY_RESERVED = 2 ** 64 - 1  # -1, which means no key in TorchEasyRec
ROLE = 'ebc'  # of bags; its other one is 'ec'


def pyarrow() -> Any:
    """Returns the module. UnimplementedError: it is not installed."""
    try:
        for part in ('pyarrow.parquet', 'pyarrow.compute'):
            importlib.import_module(part)
    except ImportError as error:
        raise UnimplementedError('format torcheasyrec needs pyarrow, which is not there: '
                                 f'{error}') from error
    return importlib.import_module('pyarrow')


class ParquetSource:
    """The rows of one name in a file, or in all files NAME.parquet of a directory and below."""

    contents = Contents()

    def __init__(self, table: Table, path: str, name: str) -> None:
        self._arrow, self.path, self._name, self._dim = pyarrow(), path, name, table.dim
        check_float32(table, 'torcheasyrec')
        if os.path.isdir(path):
            self._files = sorted(os.path.join(folder, file) for folder, _, files in os.walk(path)
                                 for file in files if file.endswith('.parquet'))
        else:
            self._files = [path] if os.path.exists(path) else []
        if not self._files:
            raise NotFoundError(f'{path}: there is no such file, and no .parquet in it')
        self.rows = sum(self._open(file).metadata.num_rows for file in self._files)

    def _open(self, path: str) -> Any:
        file_bytes(path)
        try:
            file = self._arrow.parquet.ParquetFile(path)
        except (self._arrow.ArrowException, OSError) as error:
            raise DataLossError(f'{path}: pyarrow cannot read it: {error}') from error
        schema = file.schema_arrow
        for column, kind in COLUMNS.items():
            found = schema.field(column).type if column in schema.names else None
            if found is None or str(found).replace('item', 'element') not in (
                    kind, 'list<element: float>'):
                raise InvalidArgumentError(f'{path}: column {column} is {found}; it must be '
                                           f'{kind}')
        return file

    def batches(self, rows: int, state: bool, heat: bool) -> Iterator[ScanBatch]:
        """See Source. DataLossError: an embedding has another number of values than others."""
        for path in self._files:
            at = 0
            batches = self._open(path).iter_batches(batch_size=rows, columns=list(COLUMNS))
            while True:
                try:
                    batch = next(batches, None)
                except (self._arrow.ArrowException, OSError) as error:
                    raise DataLossError(f'{path}: pyarrow cannot read it after row {at}: '
                                        f'{error}') from error
                if batch is None:
                    break
                yield self._converted(path, at, batch)
                at += batch.num_rows

    def _converted(self, path: str, at: int, batch: Any) -> ScanBatch:
        is_ours = self._arrow.compute.equal(batch.column('embedding_name'), self._name)
        ours = batch.filter(is_ours)
        keys, lists = ours.column('key_id'), ours.column('embedding')
        lengths = lists.value_lengths()
        if keys.null_count or lists.null_count or lists.flatten().null_count:
            raise DataLossError(f'{path}: a key or a value is null, from row {at} on')
        lengths = lengths.to_numpy(zero_copy_only=False)
        wrong = np.flatnonzero(lengths != self._dim)
        if len(wrong):
            raise InvalidArgumentError(
                f'{path}: the embedding of key {keys[int(wrong[0])]} has {lengths[wrong[0]]} '
                f'values, from row {at} on; the table has dim {self._dim}')
        values: View = lists.flatten().to_numpy(zero_copy_only=False)
        return ScanBatch(np.ascontiguousarray(keys.to_numpy(zero_copy_only=False)),
                         np.ascontiguousarray(values, FLOAT32).reshape(-1, self._dim), None, None)


class Target:
    """A Parquet file with the columns of TorchEasyRec, as step 1 of one rank."""

    def __init__(self, files: OutputFiles, table: Table, path: str, name: str, **_: Any) -> None:
        arrow = pyarrow()
        check_float32(table, 'torcheasyrec')
        self._arrow, self._name = arrow, name
        self._schema = arrow.schema(
            [('global_step', arrow.int64()), ('rank', arrow.int32()), ('world_size', arrow.int32()),
             ('embedding_name', arrow.string()), ('embedding_role', arrow.string()),
             ('feature_name', arrow.string()), ('table_fqn', arrow.string()),
             ('key_id', arrow.int64()), ('embedding', arrow.list_(arrow.float32()))],
            {'tzrec.delta_embedding.dynamic_key_encoding': 'UINT64_BIT_PATTERN_IN_SIGNED_INT64',
             'tzrec.delta_embedding.invalid_key': '-1'})
        self._writer = arrow.parquet.ParquetWriter(files.open(path), self._schema)

    def write(self, batch: ScanBatch) -> None:
        """Appends rows.

        OutOfRangeError: a value is NaN or infinite. InvalidArgumentError: a key is 2^64 - 1.
        TorchEasyRec takes neither.
        """
        arrow, count, rows = self._arrow, len(batch.keys), batch.rows
        assert rows is not None
        wrong = np.flatnonzero(~np.isfinite(rows).all(axis=1))
        if len(wrong):
            raise OutOfRangeError(f'the row of key {batch.keys[wrong[0]]} has a value that is NaN '
                                  'or infinite; format torcheasyrec takes none')
        if (batch.keys == np.uint64(KEY_RESERVED)).any():
            raise InvalidArgumentError(f'there is a row with the key {KEY_RESERVED}, -1 in format '
                                       'torcheasyrec, which means no key there')
        offsets = np.arange(0, rows.size + 1, rows.shape[1], dtype=np.int32)
        lists = arrow.ListArray.from_arrays(offsets, arrow.array(rows.reshape(-1)))
        constants = [1, 0, 1, self._name, ROLE, self._name, self._name]
        arrays = [arrow.repeat(arrow.scalar(value, self._schema.field(i).type), count)
                  for i, value in enumerate(constants)]
        arrays += [arrow.array(batch.keys.view(np.int64)), lists]
        self._writer.write_table(arrow.Table.from_arrays(arrays, schema=self._schema))

    def finish(self) -> None:
        """Writes the end of the file."""
        self._writer.close()
