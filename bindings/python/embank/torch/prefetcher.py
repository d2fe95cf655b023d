"""Prefetcher: batches of a loader, whose rows are read from the disk before their turn."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

from embank.errors import FailedPreconditionError

from ._random_state import random_state, set_random_state
from ._row_module import RowModule

_END = object()


def sparse_of(batch: Any) -> Any:
    """Returns batch.sparse, or batch['sparse'].

    >>> sparse_of({'sparse': 3})
    3
    """
    if isinstance(batch, Mapping) and 'sparse' in batch:
        return batch['sparse']
    if hasattr(batch, 'sparse'):
        return batch.sparse
    raise TypeError(f'the batch is a {type(batch).__name__} without sparse; give inputs=, a '
                    'function that returns what the module takes from a batch')


class Prefetcher:
    """An iterable over the batches of a loader, such as a DataLoader, in their order.

    While the caller works on a batch, a thread takes the next one from the loader and reads its
    rows from the disk into memory. It changes no number: a training has the same bits without it.
    Only a data set that draws from the generators of the main process would draw in another order;
    draw in the workers of a DataLoader, or from a generator of its own.

    `inputs`: a function that returns what `module` takes from a batch; a tuple is its arguments.
    Without it, that is batch.sparse or batch['sparse'].

    `epoch` counts the passes that came to their end, and `batches` those of this pass that the
    caller has got. save() and load() keep both, and the order of a loader that shuffles: after
    load(), a pass goes on with the batch that follows. The batches before it are read again, and
    skipped.

    >>> import embank
    >>> bag = embank.torch.EmbeddingBag(embank.Store(), 'items', 2)
    >>> batches = Prefetcher([{'sparse': torch.tensor([[1, 2]])}] * 3, bag)
    >>> sum(bag(batch['sparse']).shape[0] for batch in batches), batches.epoch
    (3, 1)
    """

    def __init__(self, loader: Iterable[Any], module: torch.nn.Module, *,
                 inputs: Callable[[Any], Any] = sparse_of) -> None:
        if not isinstance(module, RowModule):
            raise TypeError(f'module is a {type(module).__name__}; it must be a module of '
                            'embank.torch')
        self._loader, self._module, self._inputs = loader, module, inputs
        self.epoch = self.batches = 0
        self._start: dict[str, Any] | None = None
        self._resumed: dict[str, Any] | None = None

    def __len__(self) -> int:
        """Returns the number of batches of a pass."""
        return len(self._loader)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Any]:
        iterator, batch = self._begin()
        with ThreadPoolExecutor(1, 'embank-prefetch') as thread:
            while batch is not _END:
                ahead = thread.submit(self._next, iterator)
                self.batches += 1
                yield batch
                batch = ahead.result()
        self.epoch, self.batches, self._start = self.epoch + 1, 0, None

    def _begin(self) -> tuple[Iterator[Any], Any]:
        """Returns an iterator of the loader and its first batch, or the one after a load()."""
        resumed, self._resumed = self._resumed, None
        now, skipped = random_state(), 0
        if resumed is not None and resumed['start'] is not None:
            set_random_state(resumed['start'])
            skipped = resumed['batches']
        self._start, self._generators = random_state(), self._generator_states()
        iterator = iter(self._loader)
        for done in range(skipped):
            if next(iterator, _END) is _END:
                raise FailedPreconditionError(f'the loader has {done} batches; the checkpoint was '
                                              f'made after {skipped}')
        self.batches = skipped
        # A loader that shuffles draws its seed here, and not in the thread.
        batch = next(iterator, _END)
        if skipped:
            set_random_state(now)
        return iterator, batch

    def _next(self, iterator: Iterator[Any]) -> Any:
        batch = next(iterator, _END)
        if batch is not _END:
            keys = self._inputs(batch)
            prefetch: Any = self._module.prefetch
            prefetch(*keys) if isinstance(keys, tuple) else prefetch(keys)
        return batch

    def _own_generators(self) -> list[torch.Generator]:
        loader = self._loader
        found = [getattr(part, 'generator', None)
                 for part in (loader, getattr(loader, 'sampler', None))]
        return [one for one in found if isinstance(one, torch.Generator)]

    def _generator_states(self) -> list[torch.Tensor]:
        return [generator.get_state() for generator in self._own_generators()]

    def state_dict(self) -> dict[str, Any]:
        """Returns the position, for save()."""
        is_within = self._start is not None
        return {'epoch': self.epoch, 'batches': self.batches, 'start': self._start,
                'generators': self._generators if is_within else self._generator_states()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Sets the position of the next pass, for load()."""
        self.epoch, self.batches, self._resumed = state['epoch'], state['batches'], state
        self._start = None
        for generator, of_generator in zip(self._own_generators(), state['generators']):
            generator.set_state(of_generator)
