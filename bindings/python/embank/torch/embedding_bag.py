"""EmbeddingBag: pooled rows of bags of keys, as nn.EmbeddingBag has them."""
from __future__ import annotations

from typing import Any

import torch

from embank.errors import InvalidArgumentError
from embank.store import Store

from . import _compiled
from ._bag_input import bag_input
from ._batch import Batch
from ._row_module import pooling_number
from ._table_module import TableModule


class EmbeddingBag(TableModule):
    """Pooled rows of a table of a store, as nn.EmbeddingBag has those of a tensor.

    `mode`: 'sum', 'mean' (as in torch the default) or 'sqrtn', which divides the sum by the square
    root of the number of keys. `padding_idx`: this key is not in the bag. `include_last_offset`: as
    in torch. The other arguments are those of Embedding.

    forward(input, offsets=None, per_sample_weights=None): int64 or int32 keys of shape (bags, n),
    or of shape (keys,) with offsets, which begin with 0 and never fall. Weights are float32 of the
    shape of the keys; the mode is 'sum', or 'mean', which divides by their sum. Weights of 'sum'
    may want gradients. It returns float32 of shape (bags, dim); an empty bag is zeros.

    >>> import embank
    >>> tags = EmbeddingBag(embank.Store(), 'tags', 2, mode='mean', init=('constant', 3))
    >>> tags(torch.tensor([5, 6, 7]), torch.tensor([0, 2])).tolist()
    [[3.0, 3.0], [3.0, 3.0]]
    """

    def __init__(self, store: Store, name: str, dim: int, *, mode: str = 'mean',
                 padding_idx: int | None = None, include_last_offset: bool = False,
                 lr: float | None = None, device: Any = None, **options: Any) -> None:
        super().__init__(store, name, dim, pooling_number(mode), padding_idx=padding_idx, lr=lr,
                         device=device, options=options)
        self.mode, self.include_last_offset = mode, include_last_offset

    @_compiled.traced
    def forward(self, input: torch.Tensor, offsets: torch.Tensor | None = None,
                per_sample_weights: torch.Tensor | None = None) -> torch.Tensor:
        """Returns the pooled rows of bags; see the class."""
        bags = [(input, offsets, per_sample_weights)]
        if _compiled.is_compiling():
            return _compiled.look_up(self, bags)
        pooled: torch.Tensor = self.answer(self.batch_of(bags))[0]
        return pooled

    def prefetch(self, input: torch.Tensor, offsets: torch.Tensor | None = None,
                 per_sample_weights: torch.Tensor | None = None) -> None:
        """Reads the rows of keys from the disk, for a forward that comes soon; see Prefetcher."""
        self.batch_of([(input, offsets, None)]).prefetch()

    def batch_of(self, features: list[Any]) -> Batch:
        """Returns the batch of a list with one tuple of keys, offsets and weights."""
        batch, column = self.new_batch(), self._columns[0]
        # _compiled gives keys alone if they have neither.
        parts = features[0] if isinstance(features[0], tuple) else (features[0], None)
        keys, offsets = parts[:2]
        if isinstance(keys, torch.Tensor) and keys.dim() == 1 and offsets is None:
            raise InvalidArgumentError('offsets is None, and input has one dimension: it needs '
                                       'offsets, or the shape (bags, keys of a bag)')
        batch.add(batch.structs[0], column,
                  *bag_input(self, column, *parts, include_last_offset=self.include_last_offset))
        return batch
