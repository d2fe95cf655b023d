"""The gradients of the positions of bags: what a step takes, and what weights get."""
from __future__ import annotations

import torch

from ._batch import MEAN, SQRT_N, Part


def bag_numbers(offsets: torch.Tensor) -> torch.Tensor:
    """Returns the bag of each position from the first offset to the last.

    >>> bag_numbers(torch.tensor([4, 6, 6, 7]))
    tensor([0, 0, 2])
    """
    bags = torch.arange(len(offsets) - 1)
    return torch.repeat_interleave(bags, (offsets[1:] - offsets[:-1]).long())


def of_weights(part: Part, gradient: torch.Tensor | None) -> torch.Tensor | None:
    """Returns the gradient of the weights of a feature whose pooling is sum."""
    if part.rows is None or gradient is None:
        return None
    assert part.offsets is not None and part.weights is not None
    bags = bag_numbers(part.offsets).to(gradient.device)
    products = (gradient[bags] * part.rows.to(gradient.dtype)).sum(dim=1)
    result = torch.zeros(part.weights.numel(), dtype=torch.float32)
    first = int(part.offsets[0])
    result[first:first + len(products)] = products
    return result.view(part.weights.shape)


def of_positions(part: Part, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the keys of all positions but the padding, and the gradient of each.

    `gradient` is that of the output of the feature, of float32 in host memory.
    """
    keys = part.keys.reshape(-1).long()
    if part.offsets is None:
        is_key = _is_key(part, keys)
        return keys[is_key], gradient[is_key]
    first, last = int(part.offsets[0]), int(part.offsets[-1])
    keys, bags = keys[first:last], bag_numbers(part.offsets)
    is_key = _is_key(part, keys)
    keys, bags = keys[is_key], bags[is_key]
    divisors = torch.zeros(len(part.offsets) - 1)
    weights = None
    if part.weights is not None:
        weights = part.weights.detach().reshape(-1)[first:last][is_key]
    if part.column.pooling == MEAN:
        divisors.index_add_(0, bags, torch.ones(len(bags)) if weights is None else weights)
        # A bag whose weights sum up to 0 is zeros, and so are its gradients.
        gradient = torch.where(divisors[:, None] == 0, 0.0, gradient / divisors[:, None])
    elif part.column.pooling == SQRT_N:
        divisors.index_add_(0, bags, torch.ones(len(bags)))
        gradient = gradient / divisors.clamp(min=1)[:, None].sqrt()
    rows = gradient[bags]
    return keys, rows if weights is None else rows * weights[:, None]


def _is_key(part: Part, keys: torch.Tensor) -> torch.Tensor:
    """Says which positions are not padding."""
    padding = part.column.padding_key
    if padding is None:
        return torch.ones(len(keys), dtype=torch.bool)
    return keys != (padding if padding < 1 << 63 else padding - (1 << 64))
