"""The peer of click_model.py: the same rows in modules nn.EmbeddingBag with sparse gradients."""
from __future__ import annotations

from typing import Any

import embank.torch
import numpy as np
import torch
from click_data import NAMES, Log
from torch import nn

OPTIMIZERS: dict[str, Any] = {
    'sgd': torch.optim.SGD,
    # The epsilon of Adagrad in Embank. That of torch is 1e-10.
    'adagrad': lambda rows, lr: torch.optim.Adagrad(rows, lr=lr, eps=1e-8)}


class PeerBags(nn.Module):
    """A module nn.EmbeddingBag for each feature, with a row for each id of a log.

    `ids` is int64 of shape (features, samples). The ids of a batch must be numbered, as `numbered`
    is. `seed` and `options` are those of the store and of its tables: the first values are equal.
    """

    def __init__(self, ids: torch.Tensor, dim: int, seed: int, **options: Any) -> None:
        super().__init__()
        found = [np.unique(row, return_inverse=True) for row in ids.numpy()]
        self.numbered = torch.from_numpy(np.stack([inverse for _, inverse in found]))
        bags = embank.torch.EmbeddingBagCollection(embank.Store(seed=seed),
                                                   dict.fromkeys(NAMES, dim), **options).eval()
        first = bags({name: torch.from_numpy(distinct)
                      for name, (distinct, _) in zip(NAMES, found)})
        self.bags = nn.ModuleDict({name: nn.EmbeddingBag.from_pretrained(
            rows, freeze=False, mode='sum', sparse=True) for name, rows in first.items()})
        self.register_buffer('offsets', torch.zeros(0, dtype=torch.int64), persistent=False)

    def forward(self, ids: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Returns the row of each id, by the names of the features."""
        count = len(ids[NAMES[0]])
        if len(self.offsets) != count:
            self.offsets = torch.arange(count)
        return {name: bag(ids[name], self.offsets) for name, bag in self.bags.items()}

    def numbered_log(self, log: Log) -> Log:
        """Returns the log with numbers in the place of ids."""
        return log._replace(ids=self.numbered)
