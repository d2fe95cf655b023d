"""Embedding: a row for each key, as nn.Embedding has it."""
from __future__ import annotations

from typing import Any

import torch

from embank.store import Store

from . import _compiled, _tensor
from ._batch import NONE, Batch
from ._table_module import TableModule


class Embedding(TableModule):
    """The rows of a table of a store, as nn.Embedding has those of a tensor.

    `name` and `dim` are those of the table, which is made if the store has none. `optimizer`, `lr`
    and further options are those of Store.table; the defaults are 'adagrad', 0.01 and the first
    values of nn.Embedding, init=('normal', 0, 1). If the table exists, its learning rate becomes
    `lr`; other options that differ are an InvalidArgumentError. `padding_idx`: this key is always
    zeros and has no row. `device`: 'cpu', or the CUDA device of a store with hbm_bytes, whose keys
    are tensors of this device.

    forward(keys): int64 or int32 of any shape, contiguous; all numbers of 64 bits are keys. It
    returns the rows, of shape (*keys.shape, dim), float32 or the table's 16-bit type. The rows are
    stepped inside backward(), once for each forward. See docs/python.md for gradient accumulation,
    clipping, GradScaler and schedulers: RowOptimizer.

    TypeError: keys are no integers, or on another device. UnimplementedError: an argument of
    nn.Embedding that is not there, with the reason.

    >>> import embank
    >>> store = embank.Store(seed=1)
    >>> items = Embedding(store, 'items', 4, optimizer='sgd', lr=0.5, init='zero')
    >>> rows = items(torch.tensor([[7, 8], [8, 9]]))
    >>> rows.shape
    torch.Size([2, 2, 4])
    >>> rows.sum().backward()
    >>> items(torch.tensor([7, 8]))[:, 0].tolist()
    [-0.5, -1.0]
    """

    def __init__(self, store: Store, name: str, dim: int, *, padding_idx: int | None = None,
                 lr: float | None = None, device: Any = None, **options: Any) -> None:
        super().__init__(store, name, dim, NONE, padding_idx=padding_idx, lr=lr, device=device,
                         options=options)

        self.output_dtype = self._columns[0].dtype

    @_compiled.traced
    def forward(self, keys: torch.Tensor) -> torch.Tensor:
        """Returns the rows of keys; see the class."""
        if _compiled.is_compiling():
            return _compiled.look_up(self, [keys])
        rows: torch.Tensor = self.answer(self.batch_of([keys]))[0]
        return rows.view(*keys.shape, self.embedding_dim)

    def prefetch(self, keys: torch.Tensor) -> None:
        """Reads the rows of keys from the disk, for a forward that comes soon; see Prefetcher."""
        self.batch_of([keys]).prefetch()

    def batch_of(self, features: list[Any]) -> Batch:
        """Returns the batch of a list with one tensor of keys."""
        batch, keys = self.new_batch(), self.on_host(features[0], 'keys')
        _tensor.index_type(keys, 'keys')
        batch.add(batch.structs[0], self._columns[0], keys, None, None)
        return batch

    def shape_of(self, tensors: list[torch.Tensor], layout: list[int]) -> tuple[int, ...]:
        """Returns the shape of the rows of keys."""
        return *tensors[0].shape, self.embedding_dim
