"""The states of a training as bytes: a text for what they consist of, and their tensors.

torch.load reads them as weights, with which torch 1.13 takes no numbers; so they are in the text.
"""
from __future__ import annotations

import collections
import io
import json
from collections.abc import Mapping
from typing import Any

import torch

KINDS = ('dict', 'tuple', 'counter')


class _Tensors:
    """The tensors of a tree, each of which is written once."""

    def __init__(self) -> None:
        self.all: list[torch.Tensor] = []
        self._numbers: dict[int, int] = {}

    def number(self, tensor: torch.Tensor) -> int:
        if id(tensor) not in self._numbers:
            self._numbers[id(tensor)] = len(self.all)
            self.all.append(tensor)
        return self._numbers[id(tensor)]


def to_bytes(state: dict[str, Any]) -> bytes:
    """Returns the bytes of a state; functions in it are left out.

    TypeError: it has an object that is no tensor, number, text or collection of them.

    >>> from_bytes(to_bytes({'lr': 0.1, 'betas': (0.9, 1), 'state': {0: torch.ones(1)}}))
    {'lr': 0.1, 'betas': (0.9, 1), 'state': {0: tensor([1.])}}
    """
    tensors = _Tensors()
    tree = json.dumps({name: _encoded(value, name, tensors) for name, value in state.items()})
    buffer = io.BytesIO()
    torch.save({'tree': tree, 'tensors': [tensor.detach() for tensor in tensors.all]}, buffer)
    return buffer.getvalue()


def from_bytes(data: bytes) -> dict[str, Any]:
    """Returns the state of to_bytes. It runs no code that the bytes might have."""
    loaded = torch.load(io.BytesIO(data), map_location='cpu', weights_only=True)
    return {name: _decoded(value, loaded['tensors'])
            for name, value in json.loads(loaded['tree']).items()}


def _encoded(value: Any, name: str, tensors: _Tensors) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, torch.Tensor):
        return {'tensor': tensors.number(value)}
    if isinstance(value, list):
        return [_encoded(item, f'{name}[{at}]', tensors) for at, item in enumerate(value)]
    if isinstance(value, tuple):
        return {'tuple': _encoded(list(value), name, tensors)}
    if isinstance(value, Mapping):
        kind = 'counter' if isinstance(value, collections.Counter) else 'dict'
        pairs = [[_encoded(key, name, tensors), _encoded(item, f'{name}.{key}', tensors)]
                 for key, item in value.items() if not callable(item)]
        # state_dict() of modules keeps the versions of their parts so.
        metadata = _encoded(getattr(value, '_metadata', None), name, tensors)
        return {kind: pairs, 'metadata': metadata}
    if hasattr(value, 'item') and getattr(value, 'shape', None) == ():
        return _encoded(value.item(), name, tensors)  # a number of numpy
    raise TypeError(f'{name} is a {type(value).__name__}; a state must be of tensors, numbers, '
                    'texts, and collections of them')


def _decoded(value: Any, tensors: list[torch.Tensor]) -> Any:
    if isinstance(value, list):
        return [_decoded(item, tensors) for item in value]
    if not isinstance(value, dict):
        return value
    if 'tensor' in value:
        return tensors[value['tensor']]
    kind = next(kind for kind in KINDS if kind in value)
    items = _decoded(value[kind], tensors)
    if kind != 'dict':
        return tuple(items) if kind == 'tuple' else collections.Counter(dict(items))
    metadata = _decoded(value['metadata'], tensors)
    if metadata is None:
        return dict(items)
    ordered: Any = collections.OrderedDict(items)
    ordered._metadata = metadata
    return ordered
