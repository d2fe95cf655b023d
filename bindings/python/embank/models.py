"""Models that embank-train has trained: predictions by numpy, without the program."""
from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np

from ._arrays import FLOAT32, Array, View, vector, view
from .errors import DataLossError, FailedPreconditionError, InvalidArgumentError
from .feature import Feature
from .model_text import describe
from .store import Store

DENSE_TABLE, DENSE_DIM = 'dense parameters', 1024
BATCH_SAMPLES = 4096
ID_TYPES = (np.dtype(np.uint64), np.dtype(np.int64), np.dtype(np.uint32), np.dtype(np.int32))


class Samples(NamedTuple):
    """Samples for Model.predict."""

    dense: Array
    """float32, of shape (n, number of dense features)."""
    ids: dict[str, Any]
    """By name of an id feature: n ids; or (ids, offsets) or (ids, offsets, weights) of n bags."""


def sigmoid(x: View) -> View:
    """Returns 1 / (1 + e^-x) in float64; no power overflows.

    >>> sigmoid(np.array([-1e4, 0, 1e4])).tolist()
    [0.0, 0.5, 1.0]
    """
    power = np.exp(-np.abs(x.astype(np.float64)))
    probability: View = np.where(x < 0, power, 1.0) / (1.0 + power)
    return probability


def gate(logits: View, experts: list[View]) -> View:
    """Returns the sum of the experts, weighted by the softmax of one logit for each."""
    powers = np.exp((logits - logits.max(axis=1, keepdims=True)).astype(np.float64))
    weights = (powers / powers.sum(axis=1, keepdims=True)).astype(np.float32)
    mixed: View = sum(weights[:, i:i + 1] * expert for i, expert in enumerate(experts))
    return mixed


def combine(kind: str, inputs: list[View]) -> View:
    """Returns a node that has no parameters.

    >>> combine('fm', [np.array([[1., 2.]]), np.array([[3., 4.]])]).tolist()
    [[11.0]]
    """
    found: View
    if kind == 'concat':
        found = np.concatenate(inputs, axis=1)
    elif kind == 'sum':
        found = sum(inputs[1:], inputs[0])
    elif kind == 'dot':
        vectors = np.stack(inputs, axis=1)
        rows, columns = np.tril_indices(len(inputs), -1)
        found = (vectors @ vectors.transpose(0, 2, 1))[:, rows, columns]
    elif kind == 'fm':
        total = sum(inputs[1:], inputs[0])
        squares = sum(one * one for one in inputs)
        found = 0.5 * (total * total - squares).sum(axis=1, keepdims=True)
    else:
        found = gate(inputs[0], inputs[1:])
    return found


class Model:
    """A trained model, as load returns it, and a context manager. Any number of threads may use it.

    `description` says which features it has.
    """

    def __init__(self, store: Store) -> None:
        """Is for load."""
        blob = store.checkpoint_blob()
        if blob is None:
            raise FailedPreconditionError('there is no checkpoint yet: train the model first')
        self._store, self.description = store, describe(blob)
        self._tables = [store.table(name, dim=dim) for name, _, dim in self.description.tables]
        nodes, self._layers = self.description.nodes, dict[int, tuple[View, View]]()
        sizes = {number: node.width * (nodes[node.inputs[0]].width + 1)
                 for number, node in enumerate(nodes) if node.kind == 'linear'}
        table = store.table(DENSE_TABLE, dim=DENSE_DIM)
        keys = np.arange(-(-sum(sizes.values()) // DENSE_DIM), dtype=np.uint64)
        if not table.contains(keys).all():
            raise DataLossError(f'{int((~table.contains(keys)).sum())} of {len(keys)} rows of '
                                'dense parameters are missing')
        numbers, begin = table.lookup(keys, missing='default').reshape(-1), 0
        for number, size in sizes.items():
            width, bias = nodes[number].width, begin + size - nodes[number].width
            self._layers[number] = (numbers[begin:bias].reshape(width, -1).T,
                                    numbers[bias:begin + size])
            begin += size

    def close(self) -> None:
        """Closes the store of the model."""
        self._store.close()

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _rows(self, ids: list[Any], begin: int, end: int) -> list[View]:
        features = [Feature(table, one[0][begin:end]) if len(one) == 1 else
                    Feature(table, one[0], one[1][begin:end + 1], *one[2:])
                    for table, one in zip(self._tables, ids)]
        rows: list[View] = self._store.lookup_packed(features, missing='default')
        return rows

    def _checked(self, samples: Samples) -> tuple[View, list[Any]]:
        dense, given = view(samples[0], 'dense'), samples[1]
        if not isinstance(given, dict):
            raise TypeError(f'ids is a {type(given).__name__}; it must be a dict by the names of '
                            'the id features')
        names, shape = self.description.ids, (len(dense) if dense.ndim else 0,
                                              len(self.description.dense))
        if dense.dtype != FLOAT32 or dense.shape != shape:
            raise InvalidArgumentError(f'dense has dtype {dense.dtype} and shape {dense.shape}; it '
                                       f'must be float32, and have {shape[1]} columns')
        wrong = [name for name in names if name not in given] + [
            name for name in given if name not in names]
        if wrong:
            raise InvalidArgumentError(f'ids has {"" if wrong[0] in given else "no "}{wrong[0]!r}; '
                                       f'the id features are {", ".join(names)}')
        checked = {}
        for name in names:
            value = given[name] if isinstance(given[name], tuple) else (given[name],)
            if not 1 <= len(value) <= 3:
                raise InvalidArgumentError(f'ids[{name!r}] has {len(value)} arrays; it must be '
                                           'ids, (ids, offsets) or (ids, offsets, weights)')
            parts = [vector(one, f'ids[{name!r}]', (FLOAT32,) if i == 2 else ID_TYPES)
                     for i, one in enumerate(value)]
            count = len(parts[0]) if len(parts) == 1 else len(parts[1]) - 1
            if count != shape[0]:
                raise InvalidArgumentError(f'ids[{name!r}] has {count} samples, and dense '
                                           f'{shape[0]}')
            checked[name] = parts
        return dense, [checked[name] for _, name, _ in self.description.tables]

    def predict(self, samples: Samples) -> View:
        """Returns the probability of a click of n samples, float32 of shape (n,).

        The ids are looked up and never created: those that were not trained have their first
        values. Numbers differ from those of `embank-train predict` by 1e-6 at most.

        InvalidArgumentError: an array has another shape or type, or an id feature is missing.
        """
        dense, ids = self._checked(samples)
        found = np.empty(len(dense), np.float32)
        for begin in range(0, len(dense), BATCH_SAMPLES):
            end = min(begin + BATCH_SAMPLES, len(dense))
            found[begin:end] = sigmoid(self._logits(dense[begin:end], self._rows(ids, begin, end)))
        return found

    def _logits(self, dense: View, features: list[View]) -> View:
        values: list[View] = []
        for number, node in enumerate(self.description.nodes):
            inputs = [values[one] for one in node.inputs]
            if node.kind == 'linear':
                weights, bias = self._layers[number]
                value = inputs[0] @ weights + bias
                values.append(np.maximum(value, 0, out=value) if node.has_relu else value)
            elif node.kind in ('dense', 'feature'):
                values.append(dense if node.kind == 'dense' else features[node.feature])
            else:
                values.append(combine(node.kind, inputs))
        logits: View = values[-1][:, 0]
        return logits


def load(path: str | os.PathLike[str], **options: Any) -> Model:
    """Opens a model in the directory of its training, or in an export of it, read-only.

    `options` are those of Store, as dram_bytes and pmem_path.

    NotFoundError: there is no store. UnavailableError: it is open to be changed.
    FailedPreconditionError: it has no checkpoint of embank-train.

    >>> load('there/is/none')  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    embank.errors.NotFoundError: ...
    """
    store = Store(path, read_only=True, **options)
    try:
        return Model(store)
    except BaseException:
        store.close()
        raise
