"""The lookup of a collection as an operator of torch, so that torch.compile needs no graph break.

torch has torch.library.custom_op from 2.4 on. Before, IS_THERE is False and nothing compiles a
module of this package.
"""
from __future__ import annotations

import collections
import itertools
import weakref
from typing import TYPE_CHECKING, Any

import torch

from embank.errors import FailedPreconditionError, UnimplementedError

if TYPE_CHECKING:
    from .collection import EmbeddingBagCollection

IS_THERE = hasattr(torch.library, 'custom_op')
BATCHES_MAX = 1024  # forwards whose backward may still come
HAS_OFFSETS, HAS_WEIGHTS = 1, 2

# A graph has numbers, and no objects.
_modules: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
_module_numbers = itertools.count(1)
_batches: collections.OrderedDict[int, Any] = collections.OrderedDict()
_batch_numbers = itertools.count(1)


def register(module: EmbeddingBagCollection) -> int:
    """Returns the number of a module in graphs."""
    number = next(_module_numbers)
    _modules[number] = module
    return number


def is_compiling() -> bool:
    """Whether torch.compile is tracing this call."""
    return IS_THERE and torch.compiler.is_compiling()


def not_traced(function: Any) -> Any:
    """Marks a forward that torch.compile calls as it is, with a graph break."""
    compiler: Any = getattr(torch, 'compiler', None)
    return function if compiler is None else compiler.disable(function)


def _of_parts(tensors: list[torch.Tensor], layout: list[int]) -> list[Any]:
    """Returns a feature of tensors for each number of the layout, as forward takes it."""
    remaining, features = iter(tensors), []
    for flags in layout:
        keys = next(remaining)
        offsets = next(remaining) if flags & HAS_OFFSETS else None
        weights = next(remaining) if flags & HAS_WEIGHTS else None
        features.append(keys if not flags else (keys, offsets, weights))
    return features


def _look_up(anchor: torch.Tensor, tensors: list[torch.Tensor], layout: list[int], number: int,
             is_stepping: bool) -> tuple[torch.Tensor, torch.Tensor]:
    module = _modules[number]
    features = dict(zip(module.embedding_dims, _of_parts(tensors, layout)))
    with torch.no_grad():
        batch = module.batch_of_dict(features)
    if len({len(output) for output in batch.outputs}) > 1:
        raise UnimplementedError('torch.compile needs features with the same number of bags')
    batch.look_up(is_stepping)
    values = torch.cat(batch.outputs, dim=1)
    batch.outputs = []
    of_batch = 0
    if is_stepping:
        batch.watch()
        of_batch = next(_batch_numbers)
        _batches[of_batch] = module, batch
        while len(_batches) > BATCHES_MAX:
            _batches.popitem(last=False)
    return values, torch.tensor(of_batch)


def _step(gradient: torch.Tensor, of_batch: torch.Tensor) -> torch.Tensor:
    found = _batches.pop(int(of_batch), None)
    if found is None:
        raise FailedPreconditionError(
            'backward was called twice on one forward, or after more than '
            f'{BATCHES_MAX} forwards: its rows were stepped by the first one')
    module, batch = found
    batch.use()
    module.step(batch, torch.split(gradient, list(module.embedding_dims.values()), dim=1))
    return torch.zeros(0)


def _declare() -> tuple[Any, Any]:
    """Declares the operators, with what they do to shapes and to gradients."""
    library: Any = torch.library
    look_up = library.custom_op(
        'embank::look_up', _look_up, mutates_args=(),
        schema='(Tensor anchor, Tensor[] tensors, int[] layout, int number, bool is_stepping)'
               ' -> (Tensor, Tensor)')
    step = library.custom_op('embank::step', _step, mutates_args=(),
                             schema='(Tensor gradient, Tensor of_batch) -> Tensor')

    def shape_of(anchor: Any, tensors: Any, layout: Any, number: Any, is_stepping: Any) -> Any:
        module = _modules[number]
        bags = tensors[0].shape[0]
        if layout[0] & HAS_OFFSETS:
            bags = tensors[1].shape[0] - (1 if module.include_last_offset else 0)
        width = sum(module.embedding_dims.values())
        return (torch.empty((bags, width), device=module.device),
                torch.empty((), dtype=torch.int64))

    def keep(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(output[1])
        ctx.count = len(inputs[1])

    def backward(ctx: Any, gradient: Any, _: Any) -> Any:
        of_batch, = ctx.saved_tensors
        return step(gradient, of_batch), [None] * ctx.count, None, None, None

    look_up.register_fake(shape_of)
    step.register_fake(lambda gradient, of_batch: torch.empty(0))
    look_up.register_autograd(backward, setup_context=keep)
    return look_up, step


look_up_op: Any = None
if IS_THERE:
    look_up_op, _ = _declare()
