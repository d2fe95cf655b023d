"""The outcome of one key of a batch."""
from __future__ import annotations

import enum

from . import _c


class Outcome(enum.IntEnum):
    """The outcome of one key: an array of outcomes has n numbers of uint8, one for each key.

    >>> import numpy as np
    >>> outcomes = np.array([1, 2, 2], np.uint8)
    >>> outcomes == Outcome.CREATED
    array([False,  True,  True])
    >>> Outcome(outcomes[0]).name
    'FOUND'
    """

    FOUND = _c.EMBANK_ROW_FOUND
    """The row exists."""
    CREATED = _c.EMBANK_ROW_CREATED
    """This call created the row."""
    ABSENT = _c.EMBANK_ROW_ABSENT
    """There is no row with this key."""
    REFUSED = _c.EMBANK_ROW_REFUSED
    """There is no space to create or change the row: nothing was changed."""
    DATA_LOSS = _c.EMBANK_ROW_DATA_LOSS
    """The row exists, but its bytes cannot be read."""
    NOT_FINITE = _c.EMBANK_ROW_NOT_FINITE
    """The step would leave a number that is NaN or infinite: it was not made."""
    UNAVAILABLE = _c.EMBANK_ROW_UNAVAILABLE
    """The row cannot be read now; it is not damaged."""
