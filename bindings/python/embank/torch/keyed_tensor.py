"""KeyedTensor: the pooled rows of several features in one tensor, by the features' names."""
from __future__ import annotations

import torch

from embank.errors import InvalidArgumentError


class KeyedTensor:
    """Columns of one tensor by name, with the methods of torchrec's KeyedTensor.

    >>> pooled = KeyedTensor(['user', 'item'], [1, 2], torch.tensor([[1., 2., 3.]]))
    >>> pooled['item'], pooled.keys()
    (tensor([[2., 3.]]), ['user', 'item'])
    """

    def __init__(self, keys: list[str], length_per_key: list[int], values: torch.Tensor) -> None:
        self._keys, self._lengths, self._values = keys, length_per_key, values
        self._columns: dict[str, torch.Tensor] | None = None

    def keys(self) -> list[str]:
        """Returns the names of the features."""
        return self._keys

    def values(self) -> torch.Tensor:
        """Returns the tensor, of shape (bags, sum of the dims)."""
        return self._values

    def length_per_key(self) -> list[int]:
        """Returns the dim of each feature."""
        return self._lengths

    def offset_per_key(self) -> list[int]:
        """Returns the column with which each feature begins, and the end of the last one."""
        offsets = [0]
        for length in self._lengths:
            offsets.append(offsets[-1] + length)
        return offsets

    def to_dict(self) -> dict[str, torch.Tensor]:
        """Returns a tensor of shape (bags, dim) for each feature."""
        if self._columns is None:
            self._columns = dict(zip(self._keys, torch.split(self._values, self._lengths, dim=1)))
        return self._columns

    def __getitem__(self, key: str) -> torch.Tensor:
        if key not in self._keys:
            raise InvalidArgumentError(f'there is no feature {key!r}; there are '
                                       f'{", ".join(self._keys)}')
        return self.to_dict()[key]
