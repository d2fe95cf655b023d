"""The files of an export: they get their names when all of them are whole."""
from __future__ import annotations

import os
from typing import BinaryIO

from ..errors import AlreadyExistsError, NotFoundError

PART = '.part'


class OutputFiles:
    """Files that are written under other names until the end of a `with`.

    When the block ends, they are on the disk under their names. After an exception all of them are
    removed, and the files that were there before stay.

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
        self._files: list[tuple[BinaryIO, str]] = []
        self._names: dict[str, str] = {}
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
        """Raises AlreadyExistsError if a file is there that may not be overwritten."""
        if not self._overwrite and os.path.lexists(path):
            raise AlreadyExistsError(f'{path} exists; overwrite=True replaces it')

    def open(self, path: str) -> BinaryIO:
        """Opens a file for reading and writing, which will have this name at the end."""
        self.check_absent(path)
        try:
            file: BinaryIO = open(path + PART, 'w+b')
        except FileNotFoundError as error:
            raise NotFoundError(f'{path}: its directory does not exist') from error
        self._files.append((file, path + PART))
        self._names[path + PART] = path
        return file

    def rename(self, old: str, new: str) -> None:
        """Gives another name to a file that was opened by the name `old`."""
        self.check_absent(new)
        self._names[old + PART] = new

    def remove(self, path: str) -> None:
        """Removes a file of an earlier export at the end, if it is there.

        AlreadyExistsError: it is there, and may not be overwritten.
        """
        self.check_absent(path)
        if os.path.lexists(path):
            self._stale.append(path)

    def __enter__(self) -> OutputFiles:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            for file, part in self._files if kind is None else []:
                file.flush()
                os.fsync(file.fileno())
            for file, part in self._files if kind is None else []:
                file.close()
                os.replace(part, self._names[part])
            for path in set(self._stale) - set(self._names.values()) if kind is None else ():
                os.remove(path)
        finally:
            self._clear()

    def _clear(self) -> None:
        for file, part in self._files:
            file.close()
            if os.path.lexists(part):
                os.remove(part)
        if self._directory is not None and not os.listdir(self._directory):
            os.rmdir(self._directory)
