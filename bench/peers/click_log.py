"""Reads a click log in Criteo's format: 13 integers and 26 ids, as embank-train does."""
import dataclasses

import numpy as np

INTEGERS, IDS = 13, 26
COLUMNS = 1 + INTEGERS + IDS
MISSING_ID = np.uint64(0xFFFFFFFFFFFFFFFF)
PART_BYTES = 16 << 20


@dataclasses.dataclass
class ClickLog:
    labels: np.ndarray  # float32, (samples,)
    dense: np.ndarray   # float32, (samples, INTEGERS): log(max(x, 0) + 1), and 0 where empty
    ids: np.ndarray     # uint64, (IDS, samples)


def hex_values(fields: np.ndarray) -> np.ndarray:
    """The numbers of fields with eight hexadecimal digits; MISSING_ID where they are empty."""
    digits = np.ascontiguousarray(fields.astype('S8')).view(np.uint8).reshape(-1, 8)
    values = np.where(digits >= ord('a'), digits - ord('a') + 10, digits - ord('0'))
    ids = np.zeros(len(digits), np.uint64)
    for place in range(8):
        ids = (ids << np.uint64(4)) | values[:, place].astype(np.uint64)
    return np.where(digits[:, 0] == 0, MISSING_ID, ids)


def parse(text: bytes) -> ClickLog:
    """Parses whole lines, none of which is broken."""
    fields = np.array(text.rstrip(b'\n').replace(b'\n', b'\t').split(b'\t')).reshape(-1, COLUMNS)
    integers = fields[:, 1:1 + INTEGERS]
    numbers = np.where(integers == b'', b'0', integers).astype(np.int64)
    dense = np.log(np.maximum(numbers, 0).astype(np.float64) + 1.0).astype(np.float32)
    ids = np.stack([hex_values(fields[:, 1 + INTEGERS + i]) for i in range(IDS)])
    return ClickLog(fields[:, 0].astype(np.float32), dense, ids)


def read(path: str) -> ClickLog:
    parts = []
    with open(path, 'rb') as file:
        while text := file.read(PART_BYTES):
            parts.append(parse(text + file.readline()))
    return ClickLog(np.concatenate([part.labels for part in parts]),
                    np.concatenate([part.dense for part in parts]),
                    np.concatenate([part.ids for part in parts], axis=1))


def number_ids(logs: list[ClickLog]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Returns the distinct ids of each feature, and the ids of each log as indices into them."""
    distinct, indices = [], [np.empty(log.ids.shape, np.int64) for log in logs]
    for feature in range(IDS):
        ids, inverse = np.unique(np.concatenate([log.ids[feature] for log in logs]),
                                 return_inverse=True)
        distinct.append(ids)
        begin = 0
        for log, numbered in zip(logs, indices):
            numbered[feature] = inverse[begin:begin + len(log.labels)]
            begin += len(log.labels)
    return distinct, indices


def auc(scores: np.ndarray, labels: np.ndarray) -> float:
    """The area under the ROC curve; equal scores count half."""
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2.0)[inverse]
    positive = labels > 0.5
    positives = int(positive.sum())
    pairs = positives * (len(labels) - positives)
    return float((ranks[positive].sum() - positives * (positives + 1) / 2.0) / pairs)


def log_loss(logits: np.ndarray, labels: np.ndarray) -> float:
    z = logits.astype(np.float64)
    return float(np.mean(np.maximum(z, 0) - z * labels + np.log1p(np.exp(-np.abs(z)))))
