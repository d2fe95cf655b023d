"""Checks of the tensors of a batch, and the addresses of their numbers.

A type that is wrong is a TypeError; a shape, a stride or a value an InvalidArgumentError.
"""
from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import torch

from embank import _c
from embank.errors import InvalidArgumentError

# torch has uint64 from 2.3 on.
INDEX_TYPES: dict[Any, int] = {torch.int64: _c.EMBANK_INDEX_I64, torch.int32: _c.EMBANK_INDEX_I32}
if hasattr(torch, 'uint64'):
    INDEX_TYPES[torch.uint64] = _c.EMBANK_INDEX_U64
_READERS: dict[Any, Callable[[int], Any]] = {
    torch.int64: ctypes.c_int64.from_address, torch.int32: ctypes.c_int32.from_address}
CPU = torch.device('cpu')


def check_tensor(value: Any, name: str, types: Any, device: torch.device = CPU) -> None:
    """Raises an exception unless `value` is a contiguous tensor of one of `types` on `device`.

    >>> check_tensor(torch.zeros(2), 'keys', INDEX_TYPES)
    Traceback (most recent call last):
    TypeError: keys has dtype torch.float32; it must be torch.int64 or torch.int32
    >>> check_tensor([1], 'keys', INDEX_TYPES)
    Traceback (most recent call last):
    TypeError: keys is a list; it must be a tensor
    """
    if not isinstance(value, torch.Tensor):
        raise TypeError(f'{name} is a {type(value).__name__}; it must be a tensor')
    if value.dtype not in types:
        # uint64 is left out: few operations of torch take it.
        allowed = ' or '.join(str(kind) for kind in types if str(kind) != 'torch.uint64')
        raise TypeError(f'{name} has dtype {value.dtype}; it must be {allowed}')
    if value.device != device:
        raise TypeError(f'{name} is on {value.device}, and the rows of this module on {device}: '
                        f"call .to('{device}') on it")
    if value.layout is not torch.strided or not value.is_contiguous():
        strides = value.stride() if value.layout is torch.strided else value.layout
        raise InvalidArgumentError(f'{name} has the shape {tuple(value.shape)} and the strides '
                                   f'{strides}; it must be contiguous: .contiguous() makes a copy')


def index_type(value: Any, name: str) -> int:
    """Returns the EMBANK_INDEX_* of keys or offsets in host memory, and checks them."""
    # A sparse tensor says that it is contiguous.
    if (isinstance(value, torch.Tensor) and value.is_cpu and value.is_contiguous()
            and value.layout is torch.strided):
        kind = INDEX_TYPES.get(value.dtype)
        if kind is not None:
            return kind
    check_tensor(value, name, INDEX_TYPES)
    return INDEX_TYPES[value.dtype]


def ends(offsets: torch.Tensor, name: str, key_count: int) -> tuple[int, int]:
    """Returns the first and the last of checked offsets, which must be within the keys.

    >>> ends(torch.tensor([0, 3]), 'offsets', 2)
    Traceback (most recent call last):
    embank.errors.InvalidArgumentError: offsets ends with 3; there are 2 keys
    """
    if offsets.dim() != 1 or len(offsets) == 0:
        raise InvalidArgumentError(f'{name} has the shape {tuple(offsets.shape)}; it must have one '
                                   'dimension, and one number more than there are bags')
    read = _READERS.get(offsets.dtype)
    if read is None:
        raise TypeError(f'{name} has dtype {offsets.dtype}; it must be torch.int64 or torch.int32')
    at = offsets.data_ptr()
    first = read(at).value
    last = read(at + (len(offsets) - 1) * offsets.element_size()).value
    if first < 0 or last > key_count or last < first:
        raise _ends_error(name, first, last, key_count)
    return first, last


def _ends_error(name: str, first: int, last: int, key_count: int) -> InvalidArgumentError:
    if first < 0:
        return InvalidArgumentError(f'{name} begins with {first}; it must be 0 or more')
    if last > key_count:
        return InvalidArgumentError(f'{name} ends with {last}; there are {key_count} keys')
    return InvalidArgumentError(f'{name} falls from {first} to {last}; it must never fall')


def check_weights(weights: Any, name: str, keys: torch.Tensor) -> None:
    """Raises an exception unless `weights` are float32, in host memory and as many as the keys."""
    check_tensor(weights, name, (torch.float32,))
    if weights.shape != keys.shape:
        raise InvalidArgumentError(f'{name} has the shape {tuple(weights.shape)}; it must have '
                                   f'that of the keys, {tuple(keys.shape)}')
