"""save and load: a checkpoint of the rows and of all else that a training has, of one moment."""
from __future__ import annotations

import hashlib
import json
import os
import pathlib
from typing import Any

from embank.errors import (DataLossError, FailedPreconditionError, InvalidArgumentError,
                           NotFoundError)
from embank.store import Store

from ._random_state import random_state, set_random_state
from ._state_tree import from_bytes, to_bytes

FORMAT, VERSION = 'embank.torch', 1
# A blob has 32 MiB at most; the rest is for the line before the state.
INLINE_BYTES_MAX = (32 << 20) - 65536
FILE_PREFIX, FILE_SUFFIX = 'training-', '.pt'


def save(store: Store, *, step: int = 0, **parts: Any) -> int:
    """Makes a checkpoint of the rows and of the parts of a training, and returns its number.

    `parts`: what has a state_dict(), under any names: model, optimizer, scheduler, scaler, a
    Prefetcher as loader. The states of the random number generators of Python, numpy and torch are
    saved with them, and `step`, a number of the caller's. All is of the moment of the call, which
    is between two steps: no backward may be under way.

    The state is the blob of the checkpoint. Beyond 32 MiB it is a file in the store's directory,
    training-*.pt, which the blob names with its checksum; Store.export does not copy it. No crash
    at any moment mixes two checkpoints.

    FailedPreconditionError: the store has no path. TypeError: a state has an object that is not a
    tensor, a number, a text or a collection of them (functions in it are left out: they are not
    changed by load). Exceptions are also those of Store.checkpoint.
    """
    _directory(store)
    if not isinstance(step, int) or isinstance(step, bool):
        raise TypeError(f'step is {step!r}; it must be an int')
    state = {'random': random_state()}
    if 'random' in parts:
        raise InvalidArgumentError("a part is called 'random', which is the name of the states of "
                                   'the generators')
    for name, part in parts.items():
        _check_method(part, name, 'state_dict')
        state[name] = part.state_dict()
    return _write(store, step, to_bytes(state))


def load(store: Store, *, random: bool = True, **parts: Any) -> int:
    """Gives the parts the states of the store's last checkpoint, and returns its step.

    `parts` are those of save(), or some of them, each with a load_state_dict(). Make the modules of
    embank.torch with the same tables before. Without a checkpoint nothing is done, and 0 is
    returned. `random`: sets the random number generators, too.

    Reading a state runs no code that it might have.

    NotFoundError: a part was not saved; then no part is changed. InvalidArgumentError: another
    program has made the blob. DataLossError: the file of the state is missing or damaged.

    >>> import embank, tempfile, torch
    >>> folder = tempfile.TemporaryDirectory()
    >>> with embank.Store(folder.name + '/store') as store:
    ...     layer = torch.nn.Linear(2, 1)
    ...     print(load(store, model=layer), save(store, model=layer, step=7))
    ...     print(load(store, model=layer))
    0 1
    7
    """
    found = _read(store)
    if found is None:
        return 0
    header, data = found
    state = from_bytes(data)
    for name, part in parts.items():
        _check_method(part, name, 'load_state_dict')
        if name not in state:
            raise NotFoundError(f'{name} was not saved; the checkpoint has {", ".join(state)}')
    for name, part in parts.items():
        part.load_state_dict(state[name])
    if random:
        set_random_state(state['random'])
    step: int = header['step']
    return step


def _check_method(part: Any, name: str, method: str) -> None:
    if not callable(getattr(part, method, None)):
        raise TypeError(f'{name} is a {type(part).__name__}, which has no {method}()')


def _directory(store: Store) -> pathlib.Path:
    path = store.options.path
    if path is None:
        raise FailedPreconditionError('the store has no path: save needs one')
    return pathlib.Path(path)


def _header(blob: bytes) -> tuple[dict[str, Any], bytes]:
    """Returns the line and the rest of a blob."""
    line, _, data = blob.partition(b'\n')
    try:
        header = json.loads(line)
        is_ours = header['format'] == FORMAT
    except (ValueError, KeyError, TypeError):
        is_ours = False
    if not is_ours:
        raise InvalidArgumentError('the blob of the checkpoint is not of embank.torch.save: it '
                                   f'begins with {blob[:16]!r}')
    if header['version'] != VERSION:
        raise FailedPreconditionError(f'the checkpoint has version {header["version"]} of the '
                                      f'state; this package knows {VERSION}')
    return header, data


def _write(store: Store, step: int, data: bytes) -> int:
    directory, digest = _directory(store), hashlib.sha256(data).hexdigest()
    is_inline = len(data) <= INLINE_BYTES_MAX
    name = None if is_inline else f'{FILE_PREFIX}{digest[:16]}{FILE_SUFFIX}'
    kept = {name, _file_of(store.checkpoint_blob())}
    if name is not None:
        _write_file(directory / name, data)
    line = json.dumps({'format': FORMAT, 'version': VERSION, 'step': step, 'bytes': len(data),
                       'sha256': digest, 'file': name})
    number = store.checkpoint(line.encode() + b'\n' + (data if is_inline else b''))
    for stale in directory.glob(f'{FILE_PREFIX}*{FILE_SUFFIX}'):
        if stale.name not in kept:  # The checkpoint before the last one can still be opened.
            stale.unlink()
    return number


def _file_of(blob: bytes | None) -> str | None:
    try:
        name: str | None = None if blob is None else _header(blob)[0]['file']
    except (InvalidArgumentError, FailedPreconditionError):
        name = None
    return name


def _write_file(path: pathlib.Path, data: bytes) -> None:
    """Writes a file that is durable, and whole if it has its name."""
    part = path.with_suffix('.part')
    with open(part, 'wb') as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _read(store: Store) -> tuple[dict[str, Any], bytes] | None:
    directory, blob = _directory(store), store.checkpoint_blob()
    if blob is None:
        return None
    header, data = _header(blob)
    if header['file'] is not None:
        path = directory / header['file']
        try:
            data = path.read_bytes()
        except OSError as error:
            raise DataLossError(f'{path} cannot be read: {error}') from error
    if len(data) != header['bytes'] or hashlib.sha256(data).hexdigest() != header['sha256']:
        raise DataLossError(f'the state of step {header["step"]} is damaged: it has {len(data)} '
                            f'bytes, and not the {header["bytes"]} that were saved, or another '
                            'checksum')
    return header, data
