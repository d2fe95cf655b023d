"""Raw pairs: a file of keys and a file of values, as other stores of embeddings write them.

hkv         HierarchicalKV, LocalKVFile: PATH.keys, PATH.values, PATH.scores
tfra        TensorFlow Recommenders Addons, save_to_file_system: PATH-keys, PATH-values
hugectr     HugeCTR: PATH/key, PATH/emb_vector
dynamicemb  dynamicemb of NVIDIA's recsys-examples: PATH/NAME_emb_keys.rank_0.world_size_1, and so
            on with values, scores and opt_values

All have keys of 8 bytes. Values are float32 in hugectr and dynamicemb; those of hkv and tfra have
the type of the table, which the files do not tell.
"""
from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np

from .._arrays import FLOAT32, View
from ..errors import DataLossError, InvalidArgumentError, NotFoundError, UnimplementedError
from ..scan import ScanBatch
from ..table import Table
from .column import Column, Field, file_bytes, raw_column, raw_keys
from .output_files import OutputFiles
from .source import ColumnSource, Contents

SCORE = np.dtype('<u8')
SHARDS = '_mht_'  # stands between the name of a variable of TFRA and the number of its shard


def check_float32(table: Table, format: str) -> None:
    """Raises InvalidArgumentError if the values of a table are no float32."""
    if table.dtype != FLOAT32:
        raise InvalidArgumentError(f'table {table.name} has {table.options.value_type}; format '
                                   f'{format} has f32 alone')


def pair(keys_path: str, values_path: str, table: Table) -> dict[str, Column]:
    """Returns the columns of a file of keys and a file of values."""
    keys = raw_keys(keys_path)
    rows = raw_column(values_path, keys, table.dim, table.dtype, 'values')
    return {'keys': keys, 'rows': rows}


def read_hkv(table: Table, path: str, name: str) -> ColumnSource:
    """Returns the rows of PATH.keys and PATH.values, with PATH.scores if it is there."""
    part = pair(path + '.keys', path + '.values', table)
    has_scores = os.path.exists(path + '.scores')
    if has_scores:
        part['heat'] = raw_column(path + '.scores', part['keys'], 0, SCORE, 'scores')
    return ColumnSource(path, [part], Contents(has_scores=has_scores))


def read_tfra(table: Table, path: str, name: str) -> ColumnSource:
    """Returns the rows of PATH-keys and PATH-values, or of all shards PATH_mht_*-keys."""
    if os.path.exists(path + '-keys'):
        stems = [path]
    else:
        found = glob.glob(glob.escape(path + SHARDS) + '*-keys')
        stems = sorted(file.removesuffix('-keys') for file in found)
    if not stems:
        raise NotFoundError(f'{path}: there is neither {path}-keys nor {path}{SHARDS}*-keys')
    return ColumnSource(path, [pair(stem + '-keys', stem + '-values', table) for stem in stems],
                        Contents())


def read_hugectr(table: Table, path: str, name: str) -> ColumnSource:
    """Returns the rows of PATH/key and PATH/emb_vector."""
    check_float32(table, 'hugectr')
    part = pair(os.path.join(path, 'key'), os.path.join(path, 'emb_vector'), table)
    return ColumnSource(path, [part], Contents())


def rank_file(path: str, name: str, item: str, rank: int = 0, ranks: int = 1) -> str:
    """Returns the name of a file of dynamicemb.

    >>> rank_file('dump', 'items', 'keys')
    'dump/items_emb_keys.rank_0.world_size_1'
    """
    return os.path.join(path, f'{name}_emb_{item}.rank_{rank}.world_size_{ranks}')


def _rank_count(path: str, name: str) -> int:
    """Returns the number of ranks that have written a table."""
    pattern = re.compile(re.escape(name) + r'_emb_keys\.rank_(\d+)\.world_size_(\d+)')
    found = [match for file in (os.listdir(path) if os.path.isdir(path) else ())
             if (match := pattern.fullmatch(file)) is not None]
    if not found:
        raise NotFoundError(f'{path}: there is no {rank_file("", name, "keys", 0, 1)}, nor another '
                            'rank; name= is the name of the table in the files')
    counts = sorted({int(match.group(2)) for match in found})
    if len(counts) > 1 or len(found) != counts[0]:
        raise DataLossError(f'{path}: table {name} has {len(found)} files of keys, of world_size '
                            f'{" and ".join(map(str, counts))}; there must be one for each rank')
    return counts[0]


def read_dynamicemb(table: Table, path: str, name: str) -> ColumnSource:
    """Returns the rows of all ranks, with their scores and states if they are there."""
    check_float32(table, 'dynamicemb')
    ranks = _rank_count(path, name)
    parts, widths = [], set()
    for rank in range(ranks):
        def file(item: str, rank: int = rank) -> str:
            return rank_file(path, name, item, rank, ranks)
        part = pair(file('keys'), file('values'), table)
        if os.path.exists(file('scores')):
            part['heat'] = raw_column(file('scores'), part['keys'], 0, SCORE, 'scores')
        # Older versions leave "emb" out of the name.
        older = os.path.join(path, f'{name}_opt_values.rank_{rank}.world_size_{ranks}')
        states = next((one for one in (file('opt_values'), older) if os.path.exists(one)), None)
        if states is not None:
            row_bytes = part['keys'].rows * FLOAT32.itemsize
            width = file_bytes(states) // row_bytes if row_bytes else 0
            widths |= {width} if width else set()
            part['state'] = raw_column(states, part['keys'], width or table.dim, FLOAT32, 'states')
        parts.append(part)
    for item in ('heat', 'state'):
        having = [item in part for part in parts]
        if any(having) and not all(having):
            raise DataLossError(f'{path}: rank {having.index(False)} of table {name} has no '
                                f'{"scores" if item == "heat" else "opt_values"}, and rank '
                                f'{having.index(True)} has')
    if len(widths) > 1:
        raise DataLossError(f'{path}: states of table {name} have {min(widths)} and '
                            f'{max(widths)} numbers')
    width = max(widths, default=0)
    # Their other optimizers have no steps of a row, or states that are padded.
    optimizer = 'adagrad' if width == table.dim else 'another optimizer than Adagrad'
    return ColumnSource(path, parts, Contents(width, optimizer, has_scores='heat' in parts[0]))


def _bytes(array: View) -> Any:
    return array.data


def _scores(heat: View) -> Any:
    return heat.astype(SCORE).data


class Target:
    """The files of an export. The functions below open those of a format."""

    def __init__(self, files: dict[str, BinaryIO]) -> None:
        self._files = files

    def write(self, batch: ScanBatch) -> None:
        """Appends rows."""
        for column, file in self._files.items():
            convert: Callable[[View], Any] = _scores if column == 'heat' else _bytes
            file.write(convert(getattr(batch, column)))

    def finish(self) -> None:
        """Has nothing to do: raw files have no header."""


def write_hkv(files: OutputFiles, table: Table, path: str, fields: dict[str, Field],
              **_: Any) -> Target:
    """Opens the files of HierarchicalKV."""
    names = {'keys': '.keys', 'rows': '.values', 'heat': '.scores'}
    for column in names.keys() - fields.keys():
        files.remove(path + names[column])
    return Target({column: files.open(path + suffix, head=column == 'keys')
                   for column, suffix in names.items() if column in fields})


def write_tfra(files: OutputFiles, table: Table, path: str, **_: Any) -> Target:
    """Opens the files of TFRA."""
    return Target({'keys': files.open(path + '-keys', head=True),
                   'rows': files.open(path + '-values')})


def write_hugectr(files: OutputFiles, table: Table, path: str, **_: Any) -> Target:
    """Opens the files of HugeCTR."""
    check_float32(table, 'hugectr')
    files.make_directory(path)
    return Target({'keys': files.open(os.path.join(path, 'key'), head=True),
                   'rows': files.open(os.path.join(path, 'emb_vector'))})


def write_dynamicemb(files: OutputFiles, table: Table, path: str, fields: dict[str, Field],
                     name: str, **_: Any) -> Target:
    """Opens the files of dynamicemb, as one rank."""
    check_float32(table, 'dynamicemb')
    if 'state' in fields and table.options.optimizer != 'adagrad':
        raise UnimplementedError(f'table {table.name} has the states of {table.options.optimizer}; '
                                 'format dynamicemb takes those of adagrad: state=False leaves '
                                 'them out')
    files.make_directory(path)
    items = {'keys': 'keys', 'rows': 'values', 'heat': 'scores', 'state': 'opt_values'}
    # Files of other ranks would be read with ours.
    earlier = re.compile(re.escape(name) + r'_(emb_(keys|values|scores|opt_values)|opt_values)'
                         r'\.rank_\d+\.world_size_\d+')
    for file in filter(earlier.fullmatch, os.listdir(path)):
        files.remove(os.path.join(path, file), head=file.startswith(name + '_emb_keys.'))
    return Target({column: files.open(rank_file(path, name, item), head=column == 'keys')
                   for column, item in items.items() if column in fields})
