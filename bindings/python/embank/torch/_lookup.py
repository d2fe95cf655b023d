"""The node of a lookup in autograd's graph: its backward steps the rows."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.autograd.function import once_differentiable as _once_differentiable

from . import _gradient
from ._batch import Batch, Gradients

if TYPE_CHECKING:
    from ._row_module import RowModule

# A node is recorded if an input wants a gradient; rows are no tensor, and this stands for them.
# It is not empty, because a compiler leaves out what only makes an empty gradient.
ANCHOR = torch.zeros(1, requires_grad=True)


# torch has no types for it.
once_differentiable: Any = _once_differentiable


def _backward(ctx: Any, *gradients: Any) -> Any:
    batch: Batch = ctx.batch
    batch.check_backward()
    of_weights = [_gradient.of_weights(part, gradient)
                  for part, gradient in zip(batch.parts, gradients) if part.rows is not None]
    if ctx.is_stepping:
        ctx.module.step(batch, gradients)
    return (None, None, None, *of_weights)


class _Lookup(torch.autograd.Function):
    """Links the outputs of a batch with the step of its rows."""

    @staticmethod
    def forward(ctx: Any, module: RowModule, batch: Batch, anchor: torch.Tensor | None,
                *weights: torch.Tensor) -> Any:
        ctx.module, ctx.batch, ctx.is_stepping = module, batch, anchor is not None
        ctx.set_materialize_grads(False)
        # A batch that kept its outputs would keep this node, which keeps the batch.
        outputs, batch.outputs = batch.outputs, []
        return tuple(outputs)

    backward = staticmethod(once_differentiable(_backward))


def linked(module: RowModule, batch: Batch, is_stepping: bool) -> Gradients:
    """Returns the outputs of a batch as they are in the graph.

    `is_stepping`: the backward steps the rows; else it only has the gradients of weights.
    """
    weights = [part.weights for part in batch.parts if part.rows is not None]
    if not is_stepping and not weights:
        return batch.outputs
    batch.watch()
    apply: Any = _Lookup.apply
    outputs: Gradients = apply(module, batch, ANCHOR if is_stepping else None, *weights)
    return outputs
