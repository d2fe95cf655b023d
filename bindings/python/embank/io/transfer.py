"""Transfers of a table: to files and from files, in batches of bounded memory."""
from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .. import _text, options as _options
from .._arrays import FLOAT32, UINT32
from .._progress import Progress, Report
from ..errors import (DataLossError, EmbankError, FailedPreconditionError, InvalidArgumentError,
                      NotFoundError, ResourceExhaustedError, UnavailableError)
from ..outcome import Outcome
from ..table import Table
from . import npy, parquet, raw, safetensors
from .column import Field
from .output_files import OutputFiles
from .source import Source

BATCH_BYTES = 8 << 20
BATCH_ROWS_MAX = 1 << 16
REFUSALS = {Outcome.REFUSED: ResourceExhaustedError, Outcome.DATA_LOSS: DataLossError,
            Outcome.UNAVAILABLE: UnavailableError}

Path = str | os.PathLike[str]


class Format(NamedTuple):
    """How a format is read and written, and which columns beside keys and rows it has."""

    read: Callable[[Table, str, str], Source]
    write: Callable[..., Any]
    has_state: bool = False
    has_heat: bool = False


FORMATS = {
    'safetensors': Format(safetensors.read, safetensors.Target, True, True),
    'npy': Format(npy.read, npy.Target, True, True),
    'hkv': Format(raw.read_hkv, raw.write_hkv, has_heat=True),
    'tfra': Format(raw.read_tfra, raw.write_tfra),
    'hugectr': Format(raw.read_hugectr, raw.write_hugectr),
    'dynamicemb': Format(raw.read_dynamicemb, raw.write_dynamicemb, True, True),
    'torcheasyrec': Format(parquet.ParquetSource, parquet.Target),
}
FORMAT_NUMBERS = {name: number for number, name in enumerate(FORMATS)}


class PartialImportError(EmbankError):
    """An import has failed after some rows; `rows` is their number. The cause says why."""

    def __init__(self, message: str, rows: int = 0) -> None:
        super().__init__(message)
        self.rows = rows


def format_of(name: str) -> Format:
    """Returns a format by its name.

    >>> format_of('hdf5')
    Traceback (most recent call last):
    embank.errors.InvalidArgumentError: format is 'hdf5'; it must be one of 'safetensors', 'npy', \
'hkv', 'tfra', 'hugectr', 'dynamicemb', 'torcheasyrec'
    """
    _options.choice(name, 'format', FORMAT_NUMBERS)
    return FORMATS[name]


def batch_rows(fields: dict[str, Field]) -> int:
    """Returns how many rows a batch has."""
    row_bytes = sum(field.dtype.itemsize * max(field.width, 1) for field in fields.values())
    return min(max(BATCH_BYTES // row_bytes, 1), BATCH_ROWS_MAX)


def fields_of(table: Table, state: bool, heat: bool) -> dict[str, Field]:
    """Returns the columns of a table."""
    fields = {'keys': Field(np.dtype(np.uint64), 0), 'rows': Field(table.dtype, table.dim)}
    if state:
        fields['state'] = Field(FLOAT32, table.state_floats)
    if heat:
        fields['heat'] = Field(UINT32, 0)
    return fields


def tell(told: Progress, done: int, total: int) -> None:
    """Tells the progress. The exception with which the caller ends the transfer is raised."""
    told.callback(min(done, total), total, None)
    told.raise_error()


def export_table(table: Table, path: Path, format: str = 'safetensors', *,
                 state: bool | None = None, heat: bool | None = None, name: str | None = None,
                 overwrite: bool = False, shard_bytes: int | str = '4GiB',
                 progress: Report | None = None) -> int:
    """Writes the rows of a table to files, and returns their number.

    `format`  docs/python.md tells the files of each:
              'safetensors', 'npy': with states and heats
              'dynamicemb': with scores, which are heats, and with the states of adagrad
              'hkv': with scores
              'tfra', 'hugectr', 'torcheasyrec' (needs pyarrow)
    `state`, `heat`   whether they are written [None: if the table and the format have them]
    `name`    of the table in dynamicemb and torcheasyrec [that of the table]
    `overwrite`   whether files of these names are replaced; those that an earlier export to the
                  path has beyond them are removed then, if they can be read
    `shard_bytes` of one file of safetensors, at most
    `progress`    a function of (done, total), in rows, or a bar such as tqdm's; an exception of it
                  ends the export

    Rows are written as a scan returns them: each one whole. The files get their names when all are
    on the disk; if the export fails before, there are none, and earlier ones stay. While several
    files replace earlier ones, the file that readers need first is missing: an export that ends
    there leaves no table. The files of an export that is killed have names with .part, and stay.

    AlreadyExistsError: a file is there. InvalidArgumentError: a directory is there, or the format
    does not have the table's value type. FailedPreconditionError: states or heats are wanted that
    the table or the format does not have. DataLossError: a row cannot be read. OSError: the disk is
    full.

    >>> import embank, tempfile
    >>> items = embank.Store().table('items', dim=2, init=('constant', 1))
    >>> _ = items.lookup(np.arange(3, dtype=np.uint64))
    >>> path = tempfile.mkdtemp() + '/items.safetensors'
    >>> export_table(items, path), import_table(items, path)
    (3, 3)
    """
    chosen, place = format_of(format), os.fsdecode(_text.path(path, 'path'))
    if state and not (chosen.has_state and table.state_floats):
        raise FailedPreconditionError(f'format {format} or table {table.name} has no states')
    if heat and not chosen.has_heat:
        raise FailedPreconditionError(f'format {format} has no heats')
    has_state = chosen.has_state and table.state_floats > 0
    if state is None and format == 'dynamicemb':
        has_state = table.options.optimizer == 'adagrad'
    fields = fields_of(table, has_state if state is None else state,
                       chosen.has_heat if heat is None else heat)
    told, rows, total = Progress(progress), 0, len(table)
    with OutputFiles(overwrite) as files:
        target = chosen.write(files, table=table, path=place, fields=fields,
                              name=_text.encoded(name or table.name, 'name').decode(),
                              shard_bytes=shard_bytes)
        tell(told, 0, total)
        with table.scan(batch_rows(fields), state='state' in fields, heat='heat' in fields) as scan:
            for batch in scan:
                target.write(batch)
                rows += len(batch.keys)
                tell(told, rows, total)
        target.finish()
    tell(told, total, total)
    return rows


def _wants_state(table: Table, source: Source, state: bool | None) -> bool:
    width, optimizer = source.contents.state_width, source.contents.optimizer
    if state is None:
        state = width > 0
    if not state:
        return False
    if not width:
        raise NotFoundError(f'{source.path}: there are no states')
    own = table.options.optimizer
    if width != table.state_floats or optimizer not in (None, own):
        raise InvalidArgumentError(
            f'{source.path}: states have {width} numbers for each row, of '
            f'{optimizer or "an unknown optimizer"}; table {table.name} has {table.state_floats}, '
            f'of {own}: state=False leaves them out')
    return True


def _wants_heat(source: Source, heat: bool | None) -> bool:
    contents = source.contents
    if heat and not (contents.has_heat or contents.has_scores):
        raise NotFoundError(f'{source.path}: there are no heats')
    return contents.has_heat if heat is None else heat


def import_table(table: Table, path: Path, format: str = 'safetensors', *,
                 state: bool | None = None, heat: bool | None = None, name: str | None = None,
                 progress: Report | None = None) -> int:
    """Writes the rows of files into a table, and returns their number.

    Keys that the table has are overwritten, all others created; the last row of a repeated key
    wins. The dim and the value type of the table must be those of the files.

    `format`  as in export_table
    `state`   whether the states are taken [None: if the files have them]; without, rows get that
              of a new row
    `heat`    whether heats are taken [None: if the files have them]. True takes the scores of hkv
              and dynamicemb, which must be counts of lookups (LFU): those above 1048575 become that
    `name`    of the table in dynamicemb and torcheasyrec [that of the table]
    `progress`    as in export_table, in rows; an exception of it ends the import

    Headers and sizes of all files are checked before the first row is written.

    NotFoundError: a file is missing. DataLossError: a file is damaged or cut off, or has another
    number of rows than the others. InvalidArgumentError: the files have another dim, value type or
    optimizer than the table. PartialImportError: there was no space for a row, or a file became
    unreadable, after `rows` rows were written, which stay. An exception of `progress` has a note
    with that number.

    >>> import embank, tempfile
    >>> items = embank.Store().table('items', dim=2)
    >>> path = tempfile.mkdtemp() + '/items'
    >>> np.save(path + '.keys.npy', np.arange(3))
    >>> np.save(path + '.values.npy', np.ones((3, 2), np.float32))
    >>> import_table(items, path, 'npy'), items.lookup(np.array([2])).tolist()
    (3, [[1.0, 1.0]])
    """
    chosen, place = format_of(format), os.fsdecode(_text.path(path, 'path'))
    source = chosen.read(table, place, _text.encoded(name or table.name, 'name').decode())
    wants_state, wants_heat = _wants_state(table, source, state), _wants_heat(source, heat)
    told, rows, read = Progress(progress), 0, 0
    tell(told, 0, source.rows)
    count = batch_rows(fields_of(table, wants_state, wants_heat))
    try:
        for batch in source.batches(count, wants_state, wants_heat):
            outcomes = table.upsert(batch.keys, batch.rows, state=batch.state, heat=batch.heat,
                                    outcomes=True)
            wrong = np.flatnonzero(outcomes > Outcome.CREATED)
            rows += len(outcomes) - len(wrong)
            if len(wrong):
                outcome = Outcome(outcomes[wrong[0]])
                raise REFUSALS[outcome](f'table {table.name}: key {batch.keys[wrong[0]]} is '
                                        f'{outcome.name}')
            read = min(read + count, source.rows)
            tell(told, read, source.rows)
    except (EmbankError, OSError) as error:
        if not rows:
            raise
        raise PartialImportError(f'{place}: {rows} of {source.rows} rows were imported, and stay; '
                                 f'then: {error}', rows) from error
    except BaseException as error:
        error.add_note(f'{place}: {rows} of {source.rows} rows were imported, and stay')
        raise
    tell(told, source.rows, source.rows)
    return rows
