"""safetensors files: the tensors keys, values, state and heat, in one file or in shards.

A file has 8 bytes with the size of a header, the header, which is JSON, and the bytes of tensors.
Shards are named NAME-00001-of-00002.safetensors, and NAME.safetensors.index.json says which file
has which tensor; the tensors of shard 1 are keys.00001 and so on.
"""
from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable
from typing import Any, BinaryIO

import numpy as np

from .. import options as _options
from ..errors import DataLossError, EmbankError, InvalidArgumentError, NotFoundError
from ..scan import ScanBatch
from ..table import Table
from .column import Column, Field, file_bytes
from .output_files import OutputFiles
from .source import ColumnSource, Contents, check_part

SUFFIX, INDEX = '.safetensors', '.index.json'
HEADER_BYTES_MAX = 100_000_000  # that of the format
DATA_AT = 4096  # of our files: the header is padded with blanks up to here
COPY_BYTES = 8 << 20
# In the order of our files: larger numbers are first, so that all are aligned.
NAMES = {'keys': 'keys', 'state': 'state', 'heat': 'heat', 'rows': 'values'}
DTYPES = {'BOOL': '?', 'U8': 'u1', 'I8': 'i1', 'I16': '<i2', 'U16': '<u2', 'F16': '<f2',
          'BF16': '<u2', 'I32': '<i4', 'U32': '<u4', 'F32': '<f4', 'I64': '<i8', 'U64': '<u8',
          'F64': '<f8'}
VALUE_TYPES = {'f32': 'F32', 'f16': 'F16', 'bf16': 'BF16'}
FIELD_TYPES = {'keys': 'U64', 'state': 'F32', 'heat': 'U32'}
TENSOR = re.compile(r'(keys|values|state|heat)(\.[0-9]+)?')
SHARD_NAME = re.compile(r'-[0-9]{5}-of-[0-9]{5}\.safetensors\Z')


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError('a name is there twice')
    return found


def parse_json(path: str, text: bytes) -> dict[str, Any]:
    """Returns a JSON object. DataLossError: it is none, or has a name twice."""
    try:
        found = json.loads(text.decode('utf-8'), object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        raise DataLossError(f'{path}: its JSON is not understood: {error}') from error
    if not isinstance(found, dict):
        raise DataLossError(f'{path}: its JSON is a {type(found).__name__}; it must be an object')
    return found


def _integers(value: Any, count: int | None = None) -> list[int]:
    if not isinstance(value, list) or count not in (None, len(value)) or not all(
            type(number) is int and number >= 0 for number in value):
        raise ValueError(f'{value!r} must be a list of numbers')
    return value


def _tensor(path: str, name: str, entry: Any, data_at: int) -> tuple[Column, int]:
    """Returns a tensor, and the byte of the data at which it ends."""
    try:
        kind = str(entry['dtype'])
        shape, (begin, end) = _integers(entry['shape']), _integers(entry['data_offsets'], 2)
    except (TypeError, KeyError, ValueError) as error:
        raise DataLossError(f'{path}: the header of tensor {name!r} is not understood: '
                            f'{error}') from error
    if kind not in DTYPES or len(shape) not in (1, 2) or 0 in shape[1:]:
        raise InvalidArgumentError(f'{path}: tensor {name!r} has dtype {kind} and shape {shape}; '
                                   f'it must have one of {", ".join(DTYPES)}, and one dimension '
                                   'or two')
    dtype = np.dtype(DTYPES[kind])
    if end - begin != math.prod(shape) * dtype.itemsize:
        raise DataLossError(f'{path}: tensor {name!r} has {end - begin} bytes, from {begin} to '
                            f'{end}; dtype {kind} and shape {shape} need '
                            f'{math.prod(shape) * dtype.itemsize}')
    width = shape[1] if len(shape) == 2 else 0
    # Values that are integers must not pass for bfloat16, which has their dtype here.
    dtype = np.dtype('<i2') if kind == 'U16' else dtype
    return Column(path, data_at + begin, shape[0], width, dtype), end


def read_header(path: str,
                named: Iterable[str] = ()) -> tuple[dict[str, Column], dict[str, str]]:
    """Returns the tensors of a file by name, and its metadata; all others are left out.

    DataLossError: the file is no safetensors file, is cut off, has bytes that belong to no tensor
    or to two, or lacks a tensor of `named`, which are those of an index.
    """
    size = file_bytes(path)
    with open(path, 'rb') as file:
        length = int.from_bytes(file.read(8), 'little')
        if size < 8 or length > min(size - 8, HEADER_BYTES_MAX):
            raise DataLossError(f'{path}: its header has {length} bytes; the file has {size}, and '
                                f'headers at most {HEADER_BYTES_MAX}')
        header = parse_json(path, file.read(length))
    metadata = header.pop('__metadata__', {})
    if not isinstance(metadata, dict):
        raise DataLossError(f'{path}: its metadata is a {type(metadata).__name__}')
    for name in named:
        if name not in header:
            raise DataLossError(f'{path}: tensor {name!r} of the index is not there')
    ours, extents = {}, []
    for name, entry in header.items():
        is_ours = TENSOR.fullmatch(name)
        try:
            begin, end = _integers(entry['data_offsets'], 2)
        except (TypeError, KeyError, ValueError) as error:
            raise DataLossError(f'{path}: the header of tensor {name!r} is not understood: '
                                f'{error}') from error
        extents.append((begin, end, name))
        if is_ours:
            ours[name], _ = _tensor(path, name, entry, 8 + length)
    at = 0
    for begin, end, name in sorted(extents):
        if begin != at or end < begin:
            raise DataLossError(f'{path}: tensor {name!r} has the bytes from {begin} to {end}; it '
                                f'must begin at {at}')
        at = end
    if size != 8 + length + at:
        raise DataLossError(f'{path} has {size} bytes; its tensors end at {8 + length + at}')
    return ours, metadata


def read_index(index: str) -> dict[str, str]:
    """Returns which tensor is in which file of the directory of an index."""
    file_bytes(index)
    with open(index, 'rb') as file:
        files = parse_json(index, file.read(HEADER_BYTES_MAX)).get('weight_map')
    if not isinstance(files, dict) or not files or not all(
            isinstance(name, str) and name == os.path.basename(name) and name not in ('', '.', '..')
            for name in files.values()):
        raise DataLossError(f'{index}: weight_map must name files of its directory')
    return files


def files_of(path: str) -> dict[str, list[str]]:
    """Returns the file of a path, or those that its index names with the tensors of each."""
    index = path if path.endswith(INDEX) else path + INDEX
    if not path.endswith(INDEX) and os.path.exists(path):
        return {path: []}
    if not os.path.exists(index):
        raise NotFoundError(f'{path}: there is no such file, and no {index}')
    files: dict[str, list[str]] = {}
    for tensor, name in sorted(read_index(index).items(), key=lambda item: item[1]):
        files.setdefault(os.path.join(os.path.dirname(index), name), []).append(tensor)
    return files


def is_shard(tensors: Iterable[str], metadata: dict[str, str]) -> bool:
    """Whether a file of these tensors is a shard of a table that Embank has written."""
    return 'embank' in metadata and any('.' in tensor for tensor in tensors)


def check_no_shard(file: str, tensors: Iterable[str], metadata: dict[str, str]) -> None:
    """Raises InvalidArgumentError for a shard of ours, which by itself would pass for a table."""
    if is_shard(tensors, metadata):
        name = (SHARD_NAME.sub(SUFFIX, file) if SHARD_NAME.search(file) else
                f'the name NAME{SUFFIX} that it had without its number')
        raise InvalidArgumentError(f'{file} is a shard of a table; give {name}, whose index names '
                                   'all shards')


def earlier_files(path: str) -> list[str]:
    """Returns the index and the shards of an earlier export of ours to the path.

    A file that cannot be read is taken for one of others.
    """
    found = []
    try:
        if all(TENSOR.fullmatch(tensor) and '.' in tensor for tensor in read_index(path + INDEX)):
            found.append(path + INDEX)
    except (EmbankError, OSError):
        pass
    directory, stem = os.path.dirname(path), os.path.basename(path).removesuffix(SUFFIX)
    for name in os.listdir(directory or '.') if os.path.isdir(directory or '.') else ():
        if SHARD_NAME.search(name) and SHARD_NAME.sub('', name) == stem:
            file = os.path.join(directory, name)
            try:
                if is_shard(*read_header(file)):
                    found.append(file)
            except (EmbankError, OSError):
                pass
    return found


def read(table: Table, path: str, name: str) -> ColumnSource:
    """Returns the rows of a file, of an index, or of the shards of an index beside the path."""
    tensors: dict[str, Column] = {}
    optimizer = None
    for file, named in files_of(path).items():
        found, metadata = read_header(file, named)
        if not named:
            check_no_shard(file, found, metadata)
        twice = next((tensor for tensor in found if tensor in tensors), None)
        if twice is not None:
            raise DataLossError(f'{file}: tensor {twice!r} is in {tensors[twice].path}, too')
        tensors.update(found)
        optimizer = metadata.get('optimizer', optimizer)
    parts: dict[str, dict[str, Column]] = {}
    columns = {tensor: column for column, tensor in NAMES.items()}
    for tensor, column in tensors.items():
        base, _, number = tensor.partition('.')
        parts.setdefault(number, {})[columns[base]] = column
    if not parts:
        raise DataLossError(f'{path}: there is no tensor keys')
    for number, part in parts.items():
        missing = (parts[min(parts)].keys() | {'keys', 'rows'}) - part.keys()
        if missing:
            tensor = NAMES[min(missing)] + ('.' + number if number else '')
            raise DataLossError(f'{path}: tensor {tensor!r} is missing')
        check_part(part, table)
    first = parts[min(parts)]
    widths = {part['state'].width for part in parts.values() if 'state' in part}
    if len(widths) > 1:
        raise DataLossError(f'{path}: states have {min(widths)} and {max(widths)} numbers')
    contents = Contents(max(widths, default=0), optimizer, 'heat' in first)
    return ColumnSource(path, [parts[number] for number in sorted(parts)], contents)


class Shard:
    """A file of the export, with space for a fixed number of rows."""

    def __init__(self, file: BinaryIO, rows_max: int, fields: dict[str, Field]) -> None:
        self._file, self.rows_max, self.rows = file, rows_max, 0
        self._row_bytes = {name: fields[name].dtype.itemsize * max(fields[name].width, 1)
                           for name in NAMES if name in fields}

    def _begins(self, rows: int) -> dict[str, int]:
        at, begins = DATA_AT, {}
        for name, size in self._row_bytes.items():
            begins[name] = at
            at += rows * size
        return begins

    def write(self, batch: ScanBatch, begin: int, end: int) -> None:
        """Appends rows of a batch."""
        for name, at in self._begins(self.rows_max).items():
            self._file.seek(at + self.rows * self._row_bytes[name])
            self._file.write(getattr(batch, name)[begin:end].data)
        self.rows += end - begin

    def close_gaps(self) -> int:
        """Moves the tensors together, if there are fewer rows than space; returns their bytes."""
        old, new = self._begins(self.rows_max), self._begins(self.rows)
        end = DATA_AT
        for name, size in self._row_bytes.items():
            end = new[name] + self.rows * size
            moved = range(0, self.rows * size if old[name] != new[name] else 0, COPY_BYTES)
            for at in moved:
                self._file.seek(old[name] + at)
                data = self._file.read(min(COPY_BYTES, self.rows * size - at))
                self._file.seek(new[name] + at)
                self._file.write(data)
        self._file.truncate(end)
        return end - DATA_AT

    def write_header(self, suffix: str, fields: dict[str, Field], value_type: str,
                     metadata: dict[str, str]) -> list[str]:
        """Writes the header, and returns the names of the tensors."""
        begins, header = self._begins(self.rows), {}
        for name, at in begins.items():
            width = fields[name].width
            begin = at - DATA_AT
            header[NAMES[name] + suffix] = {
                'dtype': FIELD_TYPES.get(name, value_type),
                'shape': [self.rows, width] if width else [self.rows],
                'data_offsets': [begin, begin + self.rows * self._row_bytes[name]]}
        text = json.dumps({'__metadata__': metadata, **header}, ensure_ascii=False,
                          separators=(',', ':')).encode()
        self._file.seek(0)
        self._file.write((DATA_AT - 8).to_bytes(8, 'little') + text.ljust(DATA_AT - 8))
        return list(header)


class Target:
    """The file of an export, or its shards and their index."""

    def __init__(self, files: OutputFiles, table: Table, path: str, fields: dict[str, Field],
                 shard_bytes: int | str, **_: Any) -> None:
        if not path.endswith(SUFFIX):
            raise InvalidArgumentError(f'path is {path!r}; it must end with {SUFFIX}')
        self._files, self._path, self._fields = files, path, fields
        row_bytes = sum(field.dtype.itemsize * max(field.width, 1) for field in fields.values())
        limit = _options.byte_size(shard_bytes, 'shard_bytes')
        if limit < DATA_AT + row_bytes:
            raise InvalidArgumentError(f'shard_bytes is {limit}; a header and one row of table '
                                       f'{table.name} need {DATA_AT + row_bytes}')
        self._rows_max = (limit - DATA_AT) // row_bytes
        self._expected = len(table)
        options = table.options
        assert options.value_type is not None and options.optimizer is not None
        self._value_type = VALUE_TYPES[options.value_type]
        self._metadata = {'embank': '1', 'table': table.name, 'optimizer': options.optimizer}
        for file in (path, *earlier_files(path)):
            files.remove(file)
        self._names: list[str] = []
        self._shards: list[Shard] = []
        self._begin_shard()

    def _begin_shard(self) -> None:
        rows = self._expected - sum(shard.rows for shard in self._shards)
        # Rows that came while the table was scanned get a shard of their own.
        rows = min(max(rows, 1 << 16 if self._shards else 0), self._rows_max)
        name = f'{self._path}.{len(self._shards) + 1}'
        self._names.append(name)
        self._shards.append(Shard(self._files.open(name), rows, self._fields))

    def write(self, batch: ScanBatch) -> None:
        """Appends rows."""
        begin = 0
        while begin < len(batch.keys):
            shard = self._shards[-1]
            count = min(shard.rows_max - shard.rows, len(batch.keys) - begin)
            if count == 0:
                self._begin_shard()
                continue
            shard.write(batch, begin, begin + count)
            begin += count

    def finish(self) -> None:
        """Writes the headers and, if there are several shards, the index."""
        count = len(self._shards)
        index: dict[str, str] = {}
        total = 0
        for number, (shard, name) in enumerate(zip(self._shards, self._names), 1):
            total += shard.close_gaps()
            suffix = f'-{number:05d}-of-{count:05d}' if count > 1 else ''
            file = self._path.removesuffix(SUFFIX) + suffix + SUFFIX
            tensors = shard.write_header(f'.{number:05d}' if count > 1 else '', self._fields,
                                         self._value_type, self._metadata)
            index.update((tensor, os.path.basename(file)) for tensor in tensors)
            self._files.rename(name, file)
        if count > 1:
            text = json.dumps({'metadata': {'total_size': total}, 'weight_map': index}, indent=2)
            self._files.open(self._path + INDEX, head=True).write(text.encode() + b'\n')
