"""The samples of click_model.py: a generated click log, or a file in Criteo's format."""
from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import embank.click_log
import numpy as np
import torch

INTEGERS, IDS = 13, 26
NAMES = [f'C{number}' for number in range(1, IDS + 1)]
# Different ids of each feature of the generated log: many features are small, and some are large.
CARDINALITIES = [120_000, 90_000, 60_000, 30_000, 10_000, 10_000, 5_000, 2_000, 2_000, 1_000, 1_000,
                 500, 500, 200, 200, 100, 100, 100, 50, 50, 20, 20, 10, 10, 5, 3]
SKEW = 2.5  # Ids are powers of uniform numbers, so that small ones are frequent.
CLICK_RATE_LOGIT = -2.0
# Standard deviation of what an id adds to the logit. There are few samples for an id of many.
SPREAD, LARGE, LARGE_SPREAD = 0.35, 5_000, 0.1
ID_FACTOR = 2_654_435_761  # is odd, so that it maps 32-bit numbers to 32-bit numbers one to one


class Log(NamedTuple):
    """Samples in the order of time."""

    dense: torch.Tensor
    """float32, of shape (samples, INTEGERS)."""
    ids: torch.Tensor
    """int64, of shape (IDS, samples)."""
    labels: torch.Tensor
    """float32, of shape (samples,): 1 is a click."""
    probabilities: np.ndarray[Any, Any] | None
    """That of each label, with which it was drawn. No model can have a better AUC. None: unknown.
    """

    def part(self, begin: int, end: int) -> Log:
        """Returns the samples from `begin` to `end`."""
        known = self.probabilities
        return Log(self.dense[begin:end], self.ids[:, begin:end], self.labels[begin:end],
                   None if known is None else known[begin:end])

    def batches(self, size: int, first: int = 0) -> Iterator[dict[str, Any]]:
        """Yields batches of `size` samples, from the batch `first` on."""
        for begin in range(first * size, len(self.labels), size):
            here = slice(begin, begin + size)
            yield {'dense': self.dense[here], 'labels': self.labels[here],
                   'sparse': dict(zip(NAMES, self.ids[:, here]))}


def drawn(samples: int, seed: int) -> Log:
    """Returns a log of a hidden model: integers, ids and pairs of ids add to the logit of a click.

    >>> log = drawn(1000, seed=1)
    >>> log.ids.shape, 100 < int(log.labels.sum()) < 400
    (torch.Size([26, 1000]), True)
    """
    random = np.random.default_rng(seed)
    counts = np.floor(np.exp(random.normal(1.0, 1.5, (samples, INTEGERS))))
    counts[random.random(counts.shape) < 0.1] = 0  # missing
    dense = embank.click_log.log_of_counts(counts)
    logits = CLICK_RATE_LOGIT + (dense - 1.3) @ random.normal(0, 0.1, INTEGERS)
    ids, added = np.empty((IDS, samples), np.int64), []
    for feature, cardinality in enumerate(CARDINALITIES):
        ranks = (cardinality * random.random(samples) ** SKEW).astype(np.int64)
        ids[feature] = (ranks + 1) * ID_FACTOR % 2 ** 32
        spread = LARGE_SPREAD if cardinality >= LARGE else SPREAD
        added.append(random.normal(0, spread, cardinality)[ranks])
        logits += added[-1]
    for one, other in zip(added[8::2], added[9::2]):
        logits += one * other / SPREAD
    probabilities = 1 / (1 + np.exp(-logits))
    labels = (random.random(samples) < probabilities).astype(np.float32)
    return Log(torch.from_numpy(dense), torch.from_numpy(ids), torch.from_numpy(labels),
               probabilities)


def _labels(path: str) -> list[bool]:
    with open(path, 'rb') as file:
        is_gzip = file.read(2) == embank.click_log.GZIP
    found = []
    with gzip.open(path) if is_gzip else open(path, 'rb') as lines:
        for number, line in enumerate(lines, 1):
            label = line.partition(b'\t')[0]
            if label not in (b'0', b'1'):
                raise embank.InvalidArgumentError(f'{path}, line {number}: the label is {label!r}; '
                                                  'it must be 0 or 1')
            found.append(label == b'1')
    return found


def read(path: str | os.PathLike[str]) -> Log:
    """Returns the log of a file: label, 13 integers and 26 ids with tabs between; plain or .gz.

    InvalidArgumentError: a line is broken, or there is none; the message says which.
    """
    labels = np.array(_labels(os.fsdecode(path)), np.float32)
    parts = list(embank.click_log.criteo_samples(path))
    if not parts:
        raise embank.InvalidArgumentError(f'{os.fsdecode(path)} has no line')
    ids = np.stack([np.concatenate([part.ids[name] for part in parts]) for name in NAMES])
    return Log(torch.from_numpy(np.concatenate([part.dense for part in parts])),
               torch.from_numpy(ids.view(np.int64)), torch.from_numpy(labels), None)


def auc(scores: Any, labels: Any) -> float:
    """Returns the area under the ROC curve; equal scores count half.

    >>> auc(np.array([0.1, 0.4, 0.4, 0.9]), np.array([0, 0, 1, 1]))
    0.875
    """
    _, inverse, counts = np.unique(np.asarray(scores), return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    is_click = np.asarray(labels) > 0.5
    clicks = int(is_click.sum())
    pairs = clicks * (len(is_click) - clicks)
    return float((ranks[is_click].sum() - clicks * (clicks + 1) / 2) / pairs) if pairs else 0.5


def sizes(store: embank.Store) -> dict[str, int]:
    """Returns the rows of a store and their bytes in memory and on disk."""
    tables = [store.table(name).info for name in store.tables()]
    report = store.memory_report()
    return {'rows': sum(table.rows for table in tables),
            'rows_in_memory': sum(table.rows_dram for table in tables),
            'row_bytes': sum(table.rows * table.row_bytes for table in tables),
            'memory_bytes': report['dram']['used'], 'memory_limit': report['dram']['budget'],
            'disk_bytes': report['ssd']['used']}
