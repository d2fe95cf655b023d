"""The progress of a long call, told to a function or to a bar such as tqdm's."""
from __future__ import annotations

from typing import Any

from . import _c

Report = Any  # a function of (done, total), or an object with `total` and update(n), as tqdm's


class Progress:
    """Tells the progress of one call. An exception of the function cancels the call.

    The library calls back even if nobody wants to know, so that Ctrl-C ends the call.

    >>> told = []
    >>> progress = Progress(lambda done, total: told.append((done, total)))
    >>> progress.callback(1, 4, None), told
    (0, [(1, 4)])
    """

    def __init__(self, report: Report | None) -> None:
        if report is not None and not callable(report) and not hasattr(report, 'update'):
            raise TypeError(f'progress is a {type(report).__name__}; it must be a function of '
                            '(done, total), or have update(n) as a bar of tqdm has')
        self._report = report
        self._told = 0
        self._error: BaseException | None = None
        self.callback = _c.embank_progress(self._tell)

    def _tell(self, done: int, total: int, _: Any) -> int:
        try:
            if hasattr(self._report, 'update'):
                self._report.total = total  # type: ignore[union-attr]
                self._report.update(done - self._told)  # type: ignore[union-attr]
                self._told = done
            elif self._report is not None:
                self._report(done, total)
        except BaseException as error:  # It must not leave a callback of C.
            self._error = error
            return 1
        return 0

    def raise_error(self) -> None:
        """Raises the exception with which the function has cancelled the call, if it has."""
        if self._error is not None:
            raise self._error
