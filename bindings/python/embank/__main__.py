"""Tests an installation: `python -m embank` uses a store in memory and one on a temporary path."""
from __future__ import annotations

import pathlib
import sys
import tempfile
from typing import Any

import numpy as np

import embank
from embank import _library

KEYS = np.arange(1000, dtype=np.uint64) * 3
DIM = 16


def train(store: embank.Store) -> Any:
    """Makes a table and two steps in it, checks them, and returns its rows."""
    items = store.table('items', dim=DIM, optimizer='adagrad', learning_rate=0.1,
                        init=('uniform', -0.1, 0.1))
    first = items.lookup(KEYS)
    state = np.zeros_like(first)
    expected = first
    for scale in (1.0, 0.5):
        gradients = np.full((len(KEYS), DIM), scale, np.float32)
        items.apply_gradients(KEYS, gradients)
        state += gradients * gradients
        expected = expected - np.float32(0.1) * gradients / (np.sqrt(state) + np.float32(1e-8))
    rows = items.lookup(KEYS, missing='zero')
    if not np.array_equal(rows, expected):
        raise AssertionError('rows differ from the formula of Adagrad')
    return rows


def check() -> None:
    """Raises an exception if something does not work."""
    with embank.Store(seed=1) as store:
        rows = train(store)
    with tempfile.TemporaryDirectory(prefix='embank-') as folder:
        path = pathlib.Path(folder) / 'store'
        with embank.Store(path, seed=1, dram_bytes='32MiB') as store:
            if not np.array_equal(train(store), rows):
                raise AssertionError('rows differ between a store in memory and one on a path')
            store.checkpoint(b'two steps')
        with embank.Store(path, seed=1) as store:
            if store.checkpoint_blob() != b'two steps':
                raise AssertionError('the blob of the checkpoint is another one')
            if not np.array_equal(store.table('items').lookup(KEYS, missing='zero'), rows):
                raise AssertionError('rows differ after the store was opened again')
        if not embank.verify(path)['clean']:
            raise AssertionError('the files of the store are damaged')


def main() -> int:
    print(f'embank {embank.__version__}, ABI {_library.library.embank_abi_version()}: '
          f'{_library.candidate()}')
    print(f'python {sys.version.split()[0]}, numpy {np.__version__}')
    print(', '.join(f'{key}: {value}' for key, value in embank.build_info().items()
                    if value is not None))
    check()
    print('ok')
    return 0


if __name__ == '__main__':
    sys.exit(main())
