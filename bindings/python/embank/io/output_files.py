"""The files of an export: readers find all new ones, all earlier ones, or that one is missing."""
from __future__ import annotations

import os
from collections.abc import Iterable
from typing import BinaryIO

from ..errors import AlreadyExistsError, InvalidArgumentError, NotFoundError

NAMES_MAX = 100


def _open_part(path: str) -> tuple[BinaryIO, str]:
    """Opens a file beside the path with a name that no other file has."""
    for number in range(1, NAMES_MAX + 1):
        part = f'{path}.part{number if number > 1 else ""}'
        try:
            return open(part, 'x+b'), part
        except FileExistsError:
            continue
        except FileNotFoundError as error:
            raise NotFoundError(f'{path}: its directory does not exist') from error
    raise AlreadyExistsError(f'{path}.part exists, and {NAMES_MAX - 1} others with a number')


def _remove(paths: Iterable[str]) -> None:
    for path in paths:
        if os.path.lexists(path):
            os.remove(path)


class OutputFiles:
    """Files that are written under other names until the end of a `with`.

    When the block ends, they are on the disk under their names. After an exception in the block all
    of them are removed, and the files that were there before stay. One of several files is the
    head: readers need it before all others, and it is missing while earlier and new files are
    mixed, also if the process ends then. Several heads, of ranks, are removed one by one, and
    readers refuse the rest.

    AlreadyExistsError: a file is there, and `overwrite` is false.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> with OutputFiles(overwrite=False) as files:
    ...     _ = files.open(f'{folder}/keys').write(b'12345678')
    ...     print([file.name for file in folder.iterdir()])
    ['keys.part']
    >>> [file.name for file in folder.iterdir()]
    ['keys']
    """

    def __init__(self, overwrite: bool) -> None:
        self._overwrite = overwrite
        self._files: dict[str, tuple[BinaryIO, str]] = {}
        self._parts: set[str] = set()
        self._heads: list[str] = []
        self._stale: list[str] = []
        self._directory: str | None = None

    def make_directory(self, path: str) -> None:
        """Makes a directory for the files, unless it is there; its parent must exist."""
        if os.path.isdir(path):
            return
        try:
            os.mkdir(path)
        except FileNotFoundError as error:
            raise NotFoundError(f'{path}: its parent does not exist') from error
        except FileExistsError as error:
            raise AlreadyExistsError(f'{path} is a file; it must be a directory') from error
        self._directory = path

    def check_absent(self, path: str) -> None:
        """Raises AlreadyExistsError if a file is there that may not be overwritten.

        InvalidArgumentError: it is a directory, which no file replaces.
        """
        if not self._overwrite and os.path.lexists(path):
            raise AlreadyExistsError(f'{path} exists; overwrite=True replaces it')
        if os.path.isdir(path):
            raise InvalidArgumentError(f'{path} is a directory; it must be a file')

    def open(self, path: str, head: bool = False) -> BinaryIO:
        """Opens a file for reading and writing, which will have this name at the end.

        Of several files, exactly one is the head, and keeps its name.
        """
        self.check_absent(path)
        file, part = self._files[path] = _open_part(path)
        self._parts.add(part)
        if head:
            self._heads.append(path)
        return file

    def rename(self, old: str, new: str) -> None:
        """Gives another name to a file that was opened by the name `old`."""
        self.check_absent(new)
        self._files[new] = self._files.pop(old)

    def remove(self, path: str, head: bool = False) -> None:
        """Removes a file of an earlier export at the end, if it is there.

        AlreadyExistsError: it is there, and may not be overwritten.
        """
        self.check_absent(path)
        (self._heads if head else self._stale).append(path)

    def __enter__(self) -> OutputFiles:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                self._finish()
        finally:
            self._clear()

    def _finish(self) -> None:
        for file, _ in self._files.values():
            file.flush()
            os.fsync(file.fileno())
            file.close()
        # There is one head, or one file.
        head, = set(self._heads).intersection(self._files) or self._files
        others = [path for path in self._files if path != head]
        stale = [path for path in self._stale if path not in self._files]
        self._sync_directories()  # If it fails, nothing has changed.
        if others:
            # Names must be durable in this order, too: a power failure may keep a later one alone.
            _remove([head, *self._heads])
            self._sync_directories()
            _remove(stale)
            for path in others:
                self._replace(path)
            self._sync_directories()
        self._replace(head)
        self._sync_directories()
        if not others:
            _remove(stale)

    def _replace(self, path: str) -> None:
        part = self._files[path][1]
        os.replace(part, path)
        self._parts.remove(part)

    def _sync_directories(self) -> None:
        directories = {os.path.dirname(path) or '.' for path in self._files}
        if self._directory is not None:
            directories.add(os.path.dirname(self._directory.rstrip('/')) or '.')
        for directory in directories:
            number = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(number)
            finally:
                os.close(number)

    def _clear(self) -> None:
        for file, _ in self._files.values():
            file.close()
        _remove(self._parts)
        if self._directory is not None and not os.listdir(self._directory):
            os.rmdir(self._directory)
