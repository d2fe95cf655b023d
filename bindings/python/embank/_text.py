"""Strings that go into the library, and those that it writes into a buffer of the caller."""
from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Callable
from typing import Any

from .errors import InvalidArgumentError, ResourceExhaustedError

CAPACITY = 1 << 16

Write = Callable[[Any, int, Any], None]  # (buffer, its bytes, where the bytes of the string go)


def encoded(value: Any, name: str) -> bytes:
    """Returns a name of a table as the library takes it.

    >>> encoded('items', 'name')
    b'items'
    >>> encoded('a' + chr(0), 'name')
    Traceback (most recent call last):
    embank.errors.InvalidArgumentError: name is 'a\\x00'; it must not have a NUL character
    """
    if not isinstance(value, str):
        raise TypeError(f'{name} is a {type(value).__name__}; it must be a str')
    if '\0' in value:
        raise InvalidArgumentError(f'{name} is {value!r}; it must not have a NUL character')
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(f'{name} is {value!r}, which is no text: {error}') from error


def path(value: Any, name: str) -> bytes:
    """Returns a path, a str, bytes or os.PathLike, as the library takes it."""
    try:
        found = os.fsencode(value)
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(f'{name} is {value!r}: {error}') from error
    except TypeError as error:
        raise TypeError(f'{name} is a {type(value).__name__}; it must be a path') from error
    if b'\0' in found:
        raise InvalidArgumentError(f'{name} is {value!r}; it must not have a NUL character')
    return found


def written(write: Write, capacity: int = CAPACITY) -> bytes:
    """Returns all bytes of a string that the library writes, with its final NUL, if it has one."""
    needed = ctypes.c_uint64()
    while True:
        buffer = ctypes.create_string_buffer(capacity)
        needed.value = 0
        try:
            write(buffer, capacity, ctypes.byref(needed))
        except ResourceExhaustedError:
            if needed.value <= capacity:
                raise
            capacity = needed.value + needed.value // 8  # It may grow meanwhile.
            continue
        return buffer.raw[:needed.value]


def text(write: Write, capacity: int = CAPACITY) -> str:
    """Returns a string that the library writes."""
    return written(write, capacity)[:-1].decode('utf-8', 'replace')


def from_json(write: Write, capacity: int = CAPACITY) -> dict[str, Any]:
    """Returns the JSON object that the library writes."""
    found: dict[str, Any] = json.loads(text(write, capacity))
    return found
