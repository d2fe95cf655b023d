"""What Embedding and EmbeddingBag have in common: the rows of one table."""
from __future__ import annotations

from typing import Any, TypeVar

import torch

from embank.errors import InvalidArgumentError
from embank.store import Store
from embank.table import Table

from . import _tensor
from ._row_module import RowModule, check_arguments, new_column, open_table, refuse, set_rate

ROWS_OF_A_CALL = 65536
Module = TypeVar('Module', bound='TableModule')


class TableModule(RowModule):
    """The rows of one table. `embedding_dim` and `padding_idx` are as in nn.Embedding."""

    def __init__(self, store: Store, name: str, dim: int, pooling: int, *,
                 padding_idx: int | None, lr: float | None, device: Any, options: Any) -> None:
        check_arguments(store, padding_idx, device, options)
        table = open_table(store, name, dim, lr, options)
        set_rate(table, lr)
        super().__init__(store, [new_column(name, table, pooling, padding_idx)], device)
        self.embedding_dim, self.padding_idx = dim, padding_idx

    @property
    def table(self) -> Table:
        """The table of the rows."""
        return self._columns[0].table

    @classmethod
    def from_pretrained(cls: type[Module], store: Store, name: str, embeddings: torch.Tensor, *,
                        freeze: bool = True, keys: torch.Tensor | None = None,
                        **options: Any) -> Module:
        """Returns a module whose table has the rows of a float32 tensor of shape (n, dim).

        Row i gets the key keys[i], or i. `freeze`: as requires_grad_(False). Rows that the table
        has already are overwritten. `options` are those of the constructor.

        >>> import embank
        >>> items = embank.torch.Embedding.from_pretrained(embank.Store(), 'items',
        ...                                                torch.ones(3, 2))
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
        module: Any = cls
        made: Module = module(store, name, dim, **options)
        dtype = made._columns[0].dtype
        for begin in range(0, count, ROWS_OF_A_CALL):
            here = slice(begin, begin + ROWS_OF_A_CALL)
            made.table.upsert(keys[here].long(), embeddings[here].detach().to(dtype))
        made.requires_grad_(not freeze)
        return made
