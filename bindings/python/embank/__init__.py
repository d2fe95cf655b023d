"""Embank: an embedded key-value store for embeddings.

A store holds tables; a table holds rows, embedding vectors with their optimizer state, found by
64-bit keys. See Store and Table; docs/python.md tells the first hour.

>>> import numpy as np
>>> store = Store(seed=1)
>>> items = store.table('items', dim=8, optimizer='adagrad', init=('uniform', -0.1, 0.1))
>>> keys = np.array([3, 5, 3], np.uint64)
>>> rows = items.lookup(keys)
>>> items.apply_gradients(keys, rows)
>>> len(items)
2
"""
from .build import build_info, set_log_sink, version
from .checkpoint import CheckpointInfo, StartedCheckpoint
from .errors import (AlreadyExistsError, CancelledError, DataLossError, EmbankError,
                     FailedPreconditionError, InternalError, InvalidArgumentError, NotFoundError,
                     OutOfRangeError, PermissionDeniedError, ResourceExhaustedError,
                     UnavailableError, UnimplementedError)
from .estimate import estimate, owner_of
from .feature import Feature
from .files import repair, verify
from .options import StoreOptions, TableOptions
from .outcome import Outcome
from .scan import Scan, ScanBatch
from .store import Store
from .table import Table, TableInfo

__version__ = version()

__all__ = [
    'AlreadyExistsError', 'CancelledError', 'CheckpointInfo', 'DataLossError', 'EmbankError',
    'FailedPreconditionError', 'Feature', 'InternalError', 'InvalidArgumentError', 'NotFoundError',
    'Outcome', 'OutOfRangeError', 'PermissionDeniedError', 'ResourceExhaustedError', 'Scan',
    'ScanBatch', 'StartedCheckpoint', 'Store', 'StoreOptions', 'Table', 'TableInfo',
    'TableOptions', 'UnavailableError', 'UnimplementedError', 'build_info', 'estimate', 'owner_of',
    'repair', 'set_log_sink', 'verify', 'version',
]
