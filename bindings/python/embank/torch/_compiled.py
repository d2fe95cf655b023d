"""The lookup of a module as an operator of torch, so that torch.compile needs no graph break.

torch has torch.library.custom_op from 2.4 on. Before, IS_THERE is False, and torch.compile calls
the modules of this package as they are.
"""
from __future__ import annotations

import collections
import itertools
import weakref
from typing import TYPE_CHECKING, Any

import torch

from embank.errors import FailedPreconditionError, UnimplementedError

from ._lookup import ANCHOR

if TYPE_CHECKING:
    from ._row_module import RowModule

IS_THERE = hasattr(torch.library, 'custom_op')
BATCHES_MAX = 1024  # forwards whose backward may still come
HAS_OFFSETS, HAS_WEIGHTS = 1, 2
FROZEN = 0  # the number of each batch whose rows are not stepped

# A graph has numbers, and no objects.
_modules: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
_module_numbers = itertools.count(1)
_batches: collections.OrderedDict[int, Any] = collections.OrderedDict()
_batch_numbers = itertools.count(1)
# Each call in a graph has another value of it, or the compiler would make one of two equal ones.
_calls = torch.zeros((), dtype=torch.int64)


def register(module: RowModule) -> int:
    """Returns the number of a module in graphs."""
    number = next(_module_numbers)
    _modules[number] = module
    return number


def is_compiling() -> bool:
    """Whether torch.compile is tracing this call."""
    return IS_THERE and torch.compiler.is_compiling()


def traced(function: Any) -> Any:
    """Marks a forward, which torch.compile calls as it is if torch has no such operators."""
    compiler: Any = getattr(torch, 'compiler', None)
    return function if compiler is None or IS_THERE else compiler.disable(function)


def look_up(module: RowModule, features: list[Any]) -> torch.Tensor:
    """Returns the rows of features beside each other, as a node of the graph.

    A feature is a tensor of keys, or (keys, offsets, weights), the last two of which may be None.
    """
    tensors: list[torch.Tensor] = []
    layout: list[int] = []
    for feature in features:
        parts = feature if isinstance(feature, tuple) else (feature,)
        layout.append(0)
        for part, flag in zip(parts, (0, HAS_OFFSETS, HAS_WEIGHTS)):
            if part is None:
                continue
            if part.requires_grad and torch.is_grad_enabled():
                raise UnimplementedError('weights have no gradient within torch.compile: call '
                                         '.detach() on them')
            tensors.append(part)
            layout[-1] |= flag
    rows: torch.Tensor = look_up_op(ANCHOR, _calls.add_(1), tensors, layout, module._number,
                                    module.is_stepping())[0]
    return rows


def _of_parts(tensors: list[torch.Tensor], layout: list[int]) -> list[Any]:
    """Returns a feature of tensors for each number of the layout."""
    remaining, features = iter(tensors), []
    for flags in layout:
        keys = next(remaining)
        offsets = next(remaining) if flags & HAS_OFFSETS else None
        weights = next(remaining) if flags & HAS_WEIGHTS else None
        features.append(keys if not flags else (keys, offsets, weights))
    return features


def _look_up(anchor: torch.Tensor, call: torch.Tensor, tensors: list[torch.Tensor],
             layout: list[int], number: int,
             is_stepping: bool) -> tuple[torch.Tensor, torch.Tensor]:
    module = _modules[number]
    with torch.no_grad():
        batch = module.batch_of(_of_parts(tensors, layout))
    outputs = batch.outputs
    if len({len(output) for output in outputs}) > 1:
        raise UnimplementedError('torch.compile needs features with the same number of bags')
    batch.look_up(is_stepping)
    batch.outputs = []
    values = outputs[0] if len(outputs) == 1 else torch.cat(outputs, dim=1)
    values = values.view(module.shape_of(tensors, layout))
    of_batch = FROZEN
    if is_stepping:
        batch.watch()
        of_batch = next(_batch_numbers)
        _batches[of_batch] = module, batch
        while len(_batches) > BATCHES_MAX:
            _batches.popitem(last=False)
    return values, torch.tensor(of_batch)


def _step(gradient: torch.Tensor, of_batch: torch.Tensor) -> torch.Tensor:
    number = int(of_batch)
    if number == FROZEN:
        return torch.zeros_like(ANCHOR)
    found = _batches.get(number)
    if found is None:
        raise FailedPreconditionError(
            'backward was called twice on one forward, or after more than '
            f'{BATCHES_MAX} forwards: its rows were stepped by the first one')
    module, batch = found
    batch.check_backward()
    dims = [column.table.dim for column in batch.columns]
    module.step(batch, torch.split(gradient.reshape(-1, sum(dims)), dims, dim=1))
    _batches.pop(number, None)  # Forwards in other threads may have dropped it already.
    return torch.zeros_like(ANCHOR)


def _declare() -> tuple[Any, Any]:
    """Declares the operators, with what they do to shapes and to gradients."""
    library: Any = torch.library
    look_up = library.custom_op(
        'embank::look_up', _look_up, mutates_args=(),
        schema='(Tensor anchor, Tensor call, Tensor[] tensors, int[] layout, int number,'
               ' bool is_stepping) -> (Tensor, Tensor)')
    step = library.custom_op('embank::step', _step, mutates_args=(),
                             schema='(Tensor gradient, Tensor of_batch) -> Tensor')

    def empty(anchor: Any, call: Any, tensors: Any, layout: Any, number: Any,
              is_stepping: Any) -> Any:
        module = _modules[number]
        rows = torch.empty(module.shape_of(tensors, layout), dtype=module.output_dtype,
                           device=module.device)
        return rows, torch.empty((), dtype=torch.int64)

    def keep(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(output[1])
        ctx.count = len(inputs[2])

    def backward(ctx: Any, gradient: Any, _: Any) -> Any:
        of_batch, = ctx.saved_tensors
        return step(gradient, of_batch), None, [None] * ctx.count, None, None, None

    look_up.register_fake(empty)
    step.register_fake(lambda gradient, of_batch: torch.empty(ANCHOR.shape))
    look_up.register_autograd(backward, setup_context=keep)
    return look_up, step


look_up_op: Any = None
if IS_THERE:
    look_up_op, _ = _declare()
