"""The files of a store that is not open: looking for damage, and saving what can be read."""
from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import Any

from . import _text
from ._library import library
from ._progress import Progress, Report
from .errors import CLASSES, DataLossError, EmbankError, NotFoundError, check

COMMAND = 'embank'
EXIT_CLEAN, EXIT_DAMAGED = 0, 1
REPORT_BYTES = 1 << 20

Path = str | os.PathLike[str]


def verify(directory: Path, progress: Report | None = None) -> dict[str, Any]:
    """Reads all files of a store and returns a report of their damage; it writes nothing.

    The report is that of docs/verify.md: report['clean'] says whether there is no damage, which is
    no exception. The store must be closed, or open read-only. `progress`: a function of
    (done, total), in segments, or a bar such as tqdm's; an exception of it ends the call.

    NotFoundError: there is no store. UnavailableError: it is open to be changed.

    >>> import tempfile, embank
    >>> folder = tempfile.TemporaryDirectory()
    >>> with embank.Store(folder.name + '/store') as store:
    ...     _ = store.checkpoint()
    >>> verify(folder.name + '/store')['clean']
    True
    >>> folder.cleanup()
    """
    told, encoded = Progress(progress), _text.path(directory, 'directory')

    def write(*buffer: Any) -> None:
        try:
            check(library.embank_verify(encoded, told.callback, None, *buffer))
        except DataLossError:
            pass  # The report says it.
    try:
        return _text.from_json(write, REPORT_BYTES)
    finally:
        told.raise_error()


def repair(directory: Path, target: Path, *, previous: bool = False,
           pmem_path: Path | None = None) -> dict[str, Any]:
    """Makes a new store in `target` of all rows of a damaged store that can be read.

    Returns the report of `embank repair --json`; docs/verify.md lists its fields. It runs the
    command `embank`, which `cmake --install` installs, and which must be on the PATH. `previous`
    saves the checkpoint before the last one.

    NotFoundError: the command is not installed. Other exceptions are those of the command.
    """
    command = shutil.which(COMMAND)
    if command is None:
        raise NotFoundError(f'the command {COMMAND} is not on the PATH; cmake --install installs '
                            'it')
    words = [command, 'repair', os.fsdecode(_text.path(directory, 'directory')), '--to',
             os.fsdecode(_text.path(target, 'target')), '--json']
    if previous:
        words.append('--previous')
    if pmem_path is not None:
        words += ['--pmem', os.fsdecode(_text.path(pmem_path, 'pmem_path'))]
    run = subprocess.run(words, capture_output=True, text=True, check=False)
    if run.returncode not in (EXIT_CLEAN, EXIT_DAMAGED):
        raise command_error(run.stderr.strip())
    report: dict[str, Any] = json.loads(run.stdout)
    return report


def command_error(message: str) -> EmbankError:
    """Returns the exception of a command's message, which has the name of a status in it.

    >>> command_error('embank: NOT_FOUND: there is no store').name
    'NOT_FOUND'
    """
    for kind in CLASSES.values():
        if kind.name in message:
            return kind(message)
    return EmbankError(message)
