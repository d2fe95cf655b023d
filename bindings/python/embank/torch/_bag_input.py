"""The keys of one feature in bags, as the modules take them."""
from __future__ import annotations

from typing import Any

import torch

from embank.errors import InvalidArgumentError

from . import _tensor
from ._batch import SQRT_N, Column
from ._row_module import RowModule

BagInput = tuple[torch.Tensor, 'torch.Tensor | None', 'torch.Tensor | None']


def with_end(offsets: Any, name: str, key_count: int) -> torch.Tensor:
    """Returns the offsets of nn.EmbeddingBag, whose last bag has no end, with the end.

    >>> with_end(torch.tensor([0, 2]), 'offsets', 5)
    tensor([0, 2, 5])
    """
    _tensor.check_tensor(offsets, name, (torch.int64, torch.int32))
    if offsets.dim() != 1:
        raise InvalidArgumentError(f'{name} has the shape {tuple(offsets.shape)}; it must have one '
                                   'dimension')
    whole = torch.cat([offsets, offsets.new_full((1,), key_count)])
    if whole[0] != 0:
        raise InvalidArgumentError(f'{name} begins with {int(whole[0])}; it must be 0 without '
                                   'include_last_offset')
    return whole


def bag_input(module: RowModule, column: Column, keys: Any, offsets: Any = None,
              weights: Any = None, *, include_last_offset: bool = True) -> BagInput:
    """Returns checked keys, and the offsets and weights that a batch needs for them.

    Keys of shape (bags, n) have no offsets, and those of shape (bags,) without offsets are bags
    of one key. Without weights, such a bag is the row of its key: no pooling is needed.
    """
    keys = module.on_host(keys, column.name)
    if not isinstance(keys, torch.Tensor):
        raise TypeError(f'{column.name} is a {type(keys).__name__}; it must be a tensor')
    if weights is not None:
        weights = module.on_host(weights, f'weights of {column.name}')
        _tensor.check_weights(weights, f'weights of {column.name}', keys)
        if column.pooling == SQRT_N:
            raise InvalidArgumentError(f"weights of {column.name} need pooling 'sum' or 'mean'; "
                                       "it is 'sqrtn'")
    shape = keys.shape
    if offsets is None and (len(shape) == 1 or len(shape) == 2):
        length = 1 if len(shape) == 1 else shape[1]
        if length == 1 and weights is None and column.dtype is torch.float32:
            return keys, None, None
        return keys, module.fixed_offsets(shape[0], length), weights
    if len(shape) != 1:
        raise InvalidArgumentError(
            f'{column.name} has the shape {tuple(shape)}; it must be (keys,) with offsets, or '
            '(bags, keys of a bag) without')
    offsets = module.on_host(offsets, f'offsets of {column.name}')
    if not include_last_offset:
        offsets = with_end(offsets, f'offsets of {column.name}', len(keys))
    return keys, offsets, weights
