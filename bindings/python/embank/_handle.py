"""The handle of an open store, which counts the calls that use it, so that it is closed after them.
"""
from __future__ import annotations

import os
import threading
import time
from typing import Any

from ._library import library
from .errors import FailedPreconditionError, check, last_error

WAIT_SECONDS = 0.0005


class StoreHandle:
    """A handle of embank_store_open. It is closed once, by close() or when nobody refers to it.

    Tables and scans refer to it, so that no garbage collection frees a store below them. Closing it
    closes its scans first, and waits for calls of other threads.
    """

    __slots__ = ('address', 'process', 'inside', 'scans', 'closing', 'setup')

    def __init__(self, address: int) -> None:
        self.address: int | None = address
        self.process = os.getpid()
        self.inside: list[int] = []  # a thread for each call under way; its changes are atomic
        self.scans: set[int] = set()
        self.closing = threading.Lock()
        self.setup = threading.RLock()  # tables are opened, made and dropped one at a time

    def call(self, function: Any, *arguments: Any) -> None:
        """Calls a function of the library and raises the exception of its status."""
        try:
            # Within the try: an interrupt after it leaves no entry for which close() would wait.
            self.inside.append(threading.get_ident())
            if self.address is None:
                raise FailedPreconditionError('the store is closed')
            status = function(*arguments)
            if status:
                raise last_error(status)
        finally:
            self.inside.pop()

    def call_store(self, function: Any, *arguments: Any) -> None:
        """Calls a function whose first argument is the store."""
        self.call(function, self.address, *arguments)

    def close(self) -> None:
        """Closes the scans and the store; does nothing if that was done.

        FailedPreconditionError: this thread is in a call of the store, as a progress callback is.
        """
        if os.getpid() != self.process:  # Locks may be held by threads that the child has not.
            address, self.address = self.address, None
            if address is not None:
                check(library.embank_store_close(address))
            return
        with self.closing:
            address, self.address = self.address, None
            if address is None:
                return
            if threading.get_ident() in self.inside:
                self.address = address
                raise FailedPreconditionError('the store is in use by the call that calls close()')
            while self.inside:
                time.sleep(WAIT_SECONDS)
            while self.scans:
                library.embank_scan_close(self.scans.pop())
            check(library.embank_store_close(address))

    def close_scan(self, scan: int) -> None:
        """Closes a scan, unless the store has closed it."""
        try:
            self.inside.append(threading.get_ident())
            if self.address is not None and scan in self.scans:
                self.scans.discard(scan)
                library.embank_scan_close(scan)
        finally:
            self.inside.pop()

    def __del__(self) -> None:
        if self.address is not None:
            self.close()
