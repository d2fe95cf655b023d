"""The library that was loaded: its version, how it was built, its log lines."""
from __future__ import annotations

import atexit
from collections.abc import Callable
from typing import Any

from . import _c
from ._library import library

BUILD_KEYS = ('cuda', 'io_uring', 'pmem', 'mpi', 'nccl', 'simd', 'git')
LOG_LEVELS = {_c.EMBANK_LOG_INFO: 'info', _c.EMBANK_LOG_WARNING: 'warning',
              _c.EMBANK_LOG_ERROR: 'error'}
_SinkType: Any = _c.PROTOTYPES['embank_set_log_sink'][1][0]
_sinks: list[Any] = []  # A thread of the library may still be in any of them.


def version() -> str:
    """Returns the version of the library, "major.minor.patch"."""
    found: bytes = library.embank_version()
    return found.decode()


def build_info() -> dict[str, str | None]:
    """Returns how the library was built, and what it uses here. None: not in this build.

    >>> sorted(build_info())
    ['cuda', 'git', 'io_uring', 'mpi', 'nccl', 'pmem', 'simd']
    """
    told = {key: library.embank_build_info(key.encode()) for key in BUILD_KEYS}
    return {key: None if value is None else value.decode() for key, value in told.items()}


def set_log_sink(sink: Callable[[str, str], None] | None) -> None:
    """Sets the function that gets the log lines of all stores of the process; None: none does.

    It is called with a level, 'info', 'warning' or 'error', and a message, from any thread, and
    must not use a store. An exception of it is printed and has no other effect.

    >>> set_log_sink(lambda level, message: print(level, message))
    >>> set_log_sink(None)
    """
    if sink is None:
        library.embank_set_log_sink(_SinkType(), None)
        return
    if not callable(sink):
        raise TypeError(f'sink is a {type(sink).__name__}; it must be a function of (level, '
                        'message)')

    def told(level: int, message: bytes, _: Any) -> None:
        sink(LOG_LEVELS.get(level, str(level)), message.decode('utf-8', 'replace'))
    callback = _SinkType(told)
    _sinks.append(callback)
    library.embank_set_log_sink(callback, None)


# Threads of the library outlive the interpreter, which could not run a sink any more.
atexit.register(set_log_sink, None)
