"""The states of the random number generators of a process, as tensors and numbers."""
from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch


def random_state() -> dict[str, Any]:
    """Returns the states of Python's, numpy's and torch's generators.

    >>> before = random_state()
    >>> drawn = torch.rand(1)
    >>> set_random_state(before)
    >>> bool(torch.rand(1) == drawn)
    True
    """
    name, words, *rest = np.random.get_state()
    if name != 'MT19937':
        raise TypeError(f'the generator of numpy.random is {name}; it must be MT19937')
    version, numbers, gauss = random.getstate()
    return {'python': [version, list(numbers), gauss],
            'numpy': [name, torch.from_numpy(np.asarray(words).astype(np.int64)), *rest],
            'torch': torch.get_rng_state(),
            'cuda': torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []}


def set_random_state(state: dict[str, Any]) -> None:
    """Sets the states that random_state has returned."""
    version, numbers, gauss = state['python']
    random.setstate((version, tuple(numbers), gauss))
    name, words, *rest = state['numpy']
    np.random.set_state((name, words.numpy().astype(np.uint32), *rest))
    torch.set_rng_state(state['torch'])
    if state['cuda'] and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(state['cuda'])
