"""Embedding: a row for each key, as nn.Embedding has it."""
from __future__ import annotations

from typing import Any

import torch

from embank.errors import InvalidArgumentError
from embank.store import Store
from embank.table import Table

from . import _compiled, _tensor
from ._batch import NONE
from ._row_module import RowModule, new_column, open_table, refuse

ROWS_OF_A_CALL = 65536


class Embedding(RowModule):
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
        table = open_table(store, name, dim, lr, options)
        super().__init__(store, [new_column(name, table, NONE, padding_idx)], device)

    @property
    def table(self) -> Table:
        """The table of the rows."""
        return self._columns[0].table

    @_compiled.not_traced
    def forward(self, keys: torch.Tensor) -> torch.Tensor:
        """Returns the rows of keys; see the class."""
        shape = getattr(keys, 'shape', None)
        batch = self.new_batch()
        keys = self.on_host(keys, 'keys')
        _tensor.index_type(keys, 'keys')
        batch.add(batch.structs[0], self._columns[0], keys, None, None)
        rows: torch.Tensor = self.answer(batch)[0]
        return rows.view(*shape, self._columns[0].table.dim) if shape is not None else rows

    def prefetch(self, keys: torch.Tensor) -> None:
        """Reads the rows of keys from the disk, for a forward that comes soon; see Prefetcher."""
        batch = self.new_batch()
        batch.add(batch.structs[0], self._columns[0], self.on_host(keys, 'keys'), None, None)
        batch.prefetch()

    @classmethod
    def from_pretrained(cls, store: Store, name: str, embeddings: torch.Tensor, *,
                        freeze: bool = True, keys: torch.Tensor | None = None,
                        **options: Any) -> Embedding:
        """Returns a module whose table has the rows of a float32 tensor of shape (n, dim).

        Row i gets the key keys[i], or i. `freeze`: as requires_grad_(False). Rows that the table
        has already are overwritten. `options` are those of the constructor.

        >>> import embank
        >>> items = Embedding.from_pretrained(embank.Store(), 'items', torch.ones(3, 2))
        >>> items(torch.tensor([2])).tolist()
        [[1.0, 1.0]]
        """
        refuse(options)
        _tensor.check_tensor(embeddings, 'embeddings', (torch.float32,))
        if embeddings.dim() != 2:
            raise InvalidArgumentError(f'embeddings has the shape {tuple(embeddings.shape)}; it '
                                       'must have two dimensions, rows and dim')
        count, dim = embeddings.shape
        keys = torch.arange(count) if keys is None else keys
        _tensor.index_type(keys, 'keys')
        if keys.shape != (count,):
            raise InvalidArgumentError(f'keys has the shape {tuple(keys.shape)}; it must be '
                                       f'({count},), one for each row')
        module = cls(store, name, dim, **options)
        dtype = module._columns[0].dtype
        for begin in range(0, count, ROWS_OF_A_CALL):
            here = slice(begin, begin + ROWS_OF_A_CALL)
            module.table.upsert(keys[here].long(), embeddings[here].detach().to(dtype))
        module.requires_grad_(not freeze)
        return module
