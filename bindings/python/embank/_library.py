"""Finds and loads libembank.so, and checks that it fits this package.

EMBANK_LIBRARY, a path, comes first; then the library of the wheel, beside this file; then the
system's. The one that is found is `library`.
"""
from __future__ import annotations

import ctypes
import os
import pathlib

from . import _c

VARIABLE = 'EMBANK_LIBRARY'
BUNDLED = 'libembank.so'
SYSTEM = 'libembank.so.0'  # its soname


def candidate() -> str:
    """Returns what is to be loaded: a path, or a name that the system's loader looks for.

    >>> candidate().endswith(('libembank.so', 'libembank.so.0')) or VARIABLE in os.environ
    True
    """
    named = os.environ.get(VARIABLE)
    if named:
        return named
    bundled = pathlib.Path(__file__).resolve().parent / BUNDLED
    return str(bundled) if bundled.exists() else SYSTEM


def check_abi(path: str, abi: int) -> None:
    """Raises ImportError if a library with this version of the ABI lacks what the package needs.

    Later versions only append to the ABI, so that a newer library fits.

    >>> check_abi('libembank.so', _c.ABI_VERSION)
    >>> check_abi('libembank.so', 0)
    Traceback (most recent call last):
    ImportError: libembank.so has ABI version 0; this package needs 1 or later
    """
    if abi < _c.ABI_VERSION:
        raise ImportError(f'{path} has ABI version {abi}; this package needs {_c.ABI_VERSION} or '
                          'later', path=path)


def load(path: str) -> ctypes.CDLL:
    """Loads a library and gives its functions their prototypes.

    ImportError says why it cannot be used: it is not there, or is not Embank, or is too old.
    """
    try:
        loaded = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f'{error}; {VARIABLE} can name the path of libembank.so',
                          path=path) from error
    try:
        version = loaded.embank_abi_version
    except AttributeError as error:
        raise ImportError(f'{path} is no library of Embank: it has no embank_abi_version',
                          path=path) from error
    version.restype, version.argtypes = ctypes.c_uint32, []
    check_abi(path, version())
    try:
        _c.declare(loaded)
    except AttributeError as error:
        raise ImportError(f'{path} is older than this package: {error}', path=path) from error
    return loaded


library = load(candidate())
