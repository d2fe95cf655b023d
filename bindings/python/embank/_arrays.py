"""Views of the caller's arrays, without a copy: numpy, torch on CPU, DLPack, buffers.

A type that is wrong is a TypeError; a shape, a stride or a value an InvalidArgumentError. Both say
what was passed and what is needed.
"""
from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np

from . import _c
from .errors import InvalidArgumentError

View = np.ndarray[Any, np.dtype[Any]]
Array = Any  # a numpy array, a torch tensor on CPU, or anything with __dlpack__ or a buffer

FLOAT32, FLOAT16 = np.dtype(np.float32), np.dtype(np.float16)
UINT32, UINT16 = np.dtype(np.uint32), np.dtype(np.uint16)
KEY_TYPES = (np.dtype(np.uint64), np.dtype(np.int64))
# An int64 has the bits of the uint64 that it means, and needs no type of its own.
INDEX_TYPES: dict[Any, int] = {**dict.fromkeys(KEY_TYPES, _c.EMBANK_INDEX_U64),
                               UINT32: _c.EMBANK_INDEX_U32,
                               np.dtype(np.int32): _c.EMBANK_INDEX_I32}
# numpy has no bfloat16: arrays have its bits.
VALUE_TYPES: dict[int, np.dtype[Any]] = {_c.EMBANK_F32: FLOAT32, _c.EMBANK_F16: FLOAT16,
                                         _c.EMBANK_BF16: UINT16}

_address_of = ctypes.addressof
_byte_of: Any = ctypes.c_char.from_buffer


def address(array: View) -> int:
    """Returns the address of the first number of an array, which must live as long as it is used.

    >>> numbers = np.zeros(3)
    >>> address(numbers) == numbers.ctypes.data
    True
    """
    try:  # It takes a third of the time of the other, but an array that can be written.
        return _address_of(_byte_of(array))
    except (TypeError, ValueError, BufferError):
        return array.ctypes.data


def _view_of_tensor(tensor: Any, name: str) -> View:
    if tensor.device.type != 'cpu':
        raise TypeError(f'{name} is a tensor on {tensor.device}; it must be on the CPU')
    tensor = tensor.detach()
    try:
        if str(tensor.dtype) == 'torch.bfloat16':
            return np.asarray(tensor.view(sys.modules['torch'].int16).numpy()).view(np.uint16)
        return np.asarray(tensor.numpy())
    except (RuntimeError, TypeError) as error:
        raise TypeError(f'{name} is a tensor that numpy cannot view: {error}') from error


def view(value: Array, name: str) -> View:
    """Returns a numpy view of an array of the caller, which shares its memory.

    >>> import array
    >>> view(array.array('Q', [1, 2]), 'keys').dtype
    dtype('uint64')
    >>> view([1, 2], 'keys')
    Traceback (most recent call last):
    TypeError: keys is a list; it must be a numpy array, a torch tensor, or have __dlpack__
    """
    if type(value) is np.ndarray:
        return value
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(f'{name} is a masked array, whose mask has no meaning here')
    if isinstance(value, np.ndarray):
        return value.view(np.ndarray)
    torch = sys.modules.get('torch')
    if torch is not None and isinstance(value, torch.Tensor):
        return _view_of_tensor(value, name)
    try:
        if hasattr(value, '__dlpack__'):
            return np.from_dlpack(value)
        if isinstance(value, np.generic):
            raise TypeError('a scalar is no array')
        if hasattr(value, '__array_interface__'):
            return np.asarray(value)
        return np.asarray(memoryview(value))
    except (AttributeError, TypeError, ValueError, RuntimeError, BufferError) as error:
        wrong = f'{name} is a {type(value).__name__}; it must be a numpy array, a torch tensor, ' \
                'or have __dlpack__'
        if hasattr(value, '__dlpack__'):
            wrong = f'{name} cannot be viewed by DLPack: {error}'
        raise TypeError(wrong) from error


def dtype_error(array: View, name: str, types: Any) -> TypeError:
    """Returns the exception of an array with another dtype than one of `types`."""
    allowed = ' or '.join(str(kind) for kind in types)
    return TypeError(f'{name} has dtype {array.dtype}; it must be {allowed}')


def _check_writable(array: View, name: str) -> None:
    if not array.flags.writeable:
        raise InvalidArgumentError(f'{name} is read-only; it must be an array that can be written')


def vector(value: Array, name: str, types: Any, length: int | None = None,
           is_written: bool = False) -> View:
    """Returns a view of an array of one dimension whose numbers are next to each other.

    `types` is a dict or a tuple of dtypes; `length`, if any, the number of its numbers.
    """
    array = value if type(value) is np.ndarray else view(value, name)
    if array.dtype not in types:
        raise dtype_error(array, name, types)
    if array.ndim != 1 or (length is not None and array.shape[0] != length):
        needed = 'one dimension' if length is None else f'the shape ({length},)'
        raise InvalidArgumentError(f'{name} has the shape {array.shape}; it must have {needed}')
    flags = array.flags
    if not flags.c_contiguous:
        raise InvalidArgumentError(
            f'{name} has a stride of {array.strides[0]} bytes; it must be contiguous, with '
            f'{array.itemsize} bytes: numpy.ascontiguousarray makes a copy')
    if not flags.aligned:
        raise InvalidArgumentError(f'{name} begins at an address that is no multiple of '
                                   f'{array.itemsize}; it must be aligned')
    if is_written:
        _check_writable(array, name)
    return array


def keys(value: Array) -> View:
    """Returns a view of n keys: uint64, or int64 with the same bits.

    >>> keys(np.array([1.5]))
    Traceback (most recent call last):
    TypeError: keys has dtype float64; it must be uint64 or int64
    """
    if type(value) is np.ndarray and value.dtype in KEY_TYPES and value.ndim == 1:
        if value.flags.carray:
            return value
    return vector(value, 'keys', KEY_TYPES)


def indices(value: Array, name: str) -> tuple[View, int, int]:
    """Returns a view of integers, their EMBANK_INDEX_*, and the address of the first."""
    if type(value) is np.ndarray and value.ndim == 1 and value.flags.carray:
        kind = INDEX_TYPES.get(value.dtype)
        if kind is not None and len(value):
            return value, kind, _address_of(_byte_of(value))
    array = vector(value, name, INDEX_TYPES)
    return array, INDEX_TYPES[array.dtype], address(array)


def _row_stride(array: View, name: str) -> int:
    """Returns the bytes between the starts of rows that are not next to each other."""
    rows, dim = array.shape
    row_bytes = dim * array.itemsize
    if dim > 1 and array.strides[1] != array.itemsize:
        raise InvalidArgumentError(
            f'{name} has a stride of {array.strides[1]} bytes within a row; the numbers of a row '
            f'must be next to each other, with {array.itemsize} bytes')
    if rows < 2:
        return 0
    stride = array.strides[0]
    if stride < row_bytes:
        raise InvalidArgumentError(f'{name} has a stride of {stride} bytes between rows; it must '
                                   f'be at least {row_bytes}, the bytes of a row')
    return stride


def rows(value: Array, name: str, count: int, dim: int, dtype: Any,
         is_written: bool = False) -> tuple[View, int, int]:
    """Returns a view of `count` rows of `dim` numbers, its address, and its stride in bytes.

    The numbers of a row must be next to each other. Rows may be farther apart: so may a part of the
    columns of a larger array be. A stride of 0 says that they are not.

    >>> table = np.zeros((3, 8), np.float32)
    >>> rows(table[:, 4:], 'rows', 3, 4, FLOAT32)[2]
    32
    >>> rows(table.T, 'rows', 8, 3, FLOAT32)
    Traceback (most recent call last):
    embank.errors.InvalidArgumentError: rows has a stride of 32 bytes within a row; the numbers of \
a row must be next to each other, with 4 bytes
    """
    array = value if type(value) is np.ndarray else view(value, name)
    if array.dtype != dtype:
        if not (dtype == UINT16 and array.dtype.name == 'bfloat16'):
            raise dtype_error(array, name, (dtype,))
        array = array.view(dtype)
    if array.shape != (count, dim):
        raise InvalidArgumentError(f'{name} has the shape {array.shape}; it must be '
                                   f'({count}, {dim})')
    flags = array.flags
    stride = 0 if flags.c_contiguous else _row_stride(array, name)
    if is_written and not flags.writeable:
        _check_writable(array, name)
    return array, address(array), stride


def check_apart(name: str, begin: int, size_bytes: int, keys_begin: int, key_count: int) -> None:
    """Raises InvalidArgumentError if an array that a call writes is in the memory of its keys."""
    if begin < keys_begin + 8 * key_count and keys_begin < begin + size_bytes:
        raise InvalidArgumentError(f'{name} overlaps keys in memory; they must be apart')
