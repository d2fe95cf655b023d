"""Checkpoints: facts about the last one, and one that is under way."""
from __future__ import annotations

import ctypes
import threading
from typing import TYPE_CHECKING, NamedTuple

from ._library import library

if TYPE_CHECKING:
    from .store import Store


class CheckpointInfo(NamedTuple):
    """The facts about a checkpoint."""

    sequence: int
    """Its number, greater than that of any before."""
    unix_ns: int
    """Its moment, in nanoseconds since 1970 (UTC); 0: unknown."""
    bytes: int
    """The bytes of the records of its rows, its heat and its blob."""
    blob_bytes: int
    rows: int
    """The rows of all tables."""


class StartedCheckpoint:
    """A checkpoint that a thread of the store is writing, as Store.checkpoint_async returns it.

    >>> import tempfile, embank
    >>> folder = tempfile.TemporaryDirectory()
    >>> with embank.Store(folder.name + '/store') as store:
    ...     started = store.checkpoint_async(b'step 1')
    ...     started.result(), started.done()
    (1, True)
    >>> folder.cleanup()
    """

    def __init__(self, store: Store) -> None:
        """Is for Store.checkpoint_async."""
        self._store = store
        self._finishing = threading.Lock()
        self._sequence: int | None = None
        self._error: BaseException | None = None
        info = store.checkpoint_info()
        self._before = info.sequence if info else 0

    def result(self) -> int:
        """Waits until the checkpoint is durable, at full speed, and returns its number.

        ResourceExhaustedError, UnavailableError: it has failed, and the one before stays. Further
        calls return or raise the same.
        """
        with self._finishing:
            if self._sequence is None and self._error is None:
                sequence = ctypes.c_uint64()
                try:
                    self._store._handle.call_store(library.embank_checkpoint_finish,
                                                   ctypes.byref(sequence))
                    self._sequence = sequence.value
                except Exception as error:
                    self._error = error
            if self._error is not None:
                raise self._error
            assert self._sequence is not None
            return self._sequence

    def done(self) -> bool:
        """Says, without waiting, whether the checkpoint is durable; False also if it has failed.

        A checkpoint that Store.checkpoint has made since counts, too: it is the later one.
        """
        if self._sequence is not None:
            return True
        info = self._store.checkpoint_info()
        return self._error is None and info is not None and info.sequence > self._before

    @property
    def is_finished(self) -> bool:
        """Whether result() has returned or raised, so that another checkpoint can be started."""
        return self._sequence is not None or self._error is not None
