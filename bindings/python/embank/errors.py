"""The exceptions of the package: one for each status of the C API."""
from __future__ import annotations

from . import _c
from ._library import library


class EmbankError(Exception):
    """A call has failed. The message names the argument, its value, the limit and a remedy.

    `code` is the status as a number (EMBANK_* in embank.h), and `name` its name.

    >>> error = InvalidArgumentError('dim is 0; it must be 1 to 4096')
    >>> error.name, isinstance(error, ValueError)
    ('INVALID_ARGUMENT', True)
    """

    code: int = _c.EMBANK_UNKNOWN
    name: str = 'UNKNOWN'


class CancelledError(EmbankError):
    """A long call was cancelled."""

    code, name = _c.EMBANK_CANCELLED, 'CANCELLED'


class InvalidArgumentError(EmbankError, ValueError):
    """An argument is invalid, whatever the state of the store."""

    code, name = _c.EMBANK_INVALID_ARGUMENT, 'INVALID_ARGUMENT'


class NotFoundError(EmbankError, LookupError):
    """There is no such store, table or row."""

    code, name = _c.EMBANK_NOT_FOUND, 'NOT_FOUND'


class AlreadyExistsError(EmbankError):
    """There is one already."""

    code, name = _c.EMBANK_ALREADY_EXISTS, 'ALREADY_EXISTS'


class PermissionDeniedError(EmbankError, PermissionError):
    """The system does not allow access to a file."""

    code, name = _c.EMBANK_PERMISSION_DENIED, 'PERMISSION_DENIED'


class ResourceExhaustedError(EmbankError, MemoryError):
    """A budget, the machine's memory, a disk or the process's descriptors are used up."""

    code, name = _c.EMBANK_RESOURCE_EXHAUSTED, 'RESOURCE_EXHAUSTED'


class FailedPreconditionError(EmbankError, RuntimeError):
    """The state of the object forbids the call: it is closed, read-only, or of a parent process."""

    code, name = _c.EMBANK_FAILED_PRECONDITION, 'FAILED_PRECONDITION'


class OutOfRangeError(EmbankError, ArithmeticError):
    """A step would have left a number that is NaN or infinite, and was not made."""

    code, name = _c.EMBANK_OUT_OF_RANGE, 'OUT_OF_RANGE'


class UnimplementedError(EmbankError, NotImplementedError):
    """This version does not have that part."""

    code, name = _c.EMBANK_UNIMPLEMENTED, 'UNIMPLEMENTED'


class InternalError(EmbankError):
    """This is a defect of Embank: please report it."""

    code, name = _c.EMBANK_INTERNAL, 'INTERNAL'


class UnavailableError(EmbankError):
    """The store is open elsewhere, or a device fails, or rows cannot be read now."""

    code, name = _c.EMBANK_UNAVAILABLE, 'UNAVAILABLE'


class DataLossError(EmbankError):
    """A file is damaged or missing, or rows cannot be read."""

    code, name = _c.EMBANK_DATA_LOSS, 'DATA_LOSS'


CLASSES: dict[int, type[EmbankError]] = {kind.code: kind for kind in EmbankError.__subclasses__()}


def last_error(status: int) -> EmbankError:
    """Returns the exception of a status that a call of this thread has just returned."""
    message = library.embank_last_error().decode('utf-8', 'replace')
    error = CLASSES.get(status, EmbankError)(message)
    if status not in CLASSES:
        error.code = status
        error.name = library.embank_status_name(status).decode()
    return error


def check(status: int) -> None:
    """Raises the exception of a status that is not OK."""
    if status:
        raise last_error(status)
