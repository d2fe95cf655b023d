"""The keys of one forward at their owners: the ranks that hold their rows."""
from __future__ import annotations

from typing import NamedTuple

import torch

from embank.errors import (EmbankError, FailedPreconditionError, InvalidArgumentError,
                           UnavailableError, UnimplementedError)
from embank.estimate import owner_of
from embank.table import Table

from . import _gradient
from ._batch import MEAN, NONE, SQRT_N, Batch, Column, Gradients, Part, new_structs
from ._rank_exchange import RankExchange

BAD_GRADIENT, REFUSES = 1, 2  # what a rank says with its gradients; 0: nothing
RUN = 32  # occurrences of a key whose gradients are summed before the sums are: arithmetic.md


class Places(NamedTuple):
    """The positions of a feature that are not padding."""

    keys: torch.Tensor
    at: torch.Tensor
    """Their numbers among all positions of the feature."""
    bags: torch.Tensor
    """The bag of each."""
    bag_count: int
    weights: torch.Tensor | None


class Request(NamedTuple):
    """The distinct keys of a table that this rank needs, in the order of their owners."""

    keys: torch.Tensor
    counts: torch.Tensor
    """How many are of each owner."""


def places_of(part: Part) -> Places:
    """Returns the positions of a feature.

    InvalidArgumentError: its offsets fall, or a weight is not finite.
    """
    keys, bag_count = part.keys.reshape(-1), part.keys.numel()
    bags, weights, name = torch.arange(bag_count), part.weights, part.column.name
    if part.offsets is not None:
        if bool((part.offsets[1:] < part.offsets[:-1]).any()):
            raise InvalidArgumentError(f'offsets of {name} fall; they must never fall')
        if weights is not None and not bool(weights.isfinite().all()):
            raise InvalidArgumentError(f'weights of {name} have a number that is not finite')
        first, last = int(part.offsets[0]), int(part.offsets[-1])
        keys, bag_count = keys[first:last], len(part.offsets) - 1
        bags = _gradient.bag_numbers(part.offsets)
        if weights is not None:
            weights = weights.detach().reshape(-1)[first:last]
    at = torch.arange(len(keys))
    if part.column.padding_key is None:
        return Places(keys.long(), at, bags, bag_count, weights)
    alone = part._replace(keys=keys, offsets=None, weights=None)
    keys, numbers = _gradient.of_positions(alone, at[:, None])
    at = numbers[:, 0]
    return Places(keys, at, bags[at], bag_count, None if weights is None else weights[at])


def request_of(table: Table, keys: torch.Tensor, ranks: int) -> tuple[Request, torch.Tensor]:
    """Returns the request for keys, and the number of each key among the distinct ones."""
    distinct, numbers = torch.unique(keys, return_inverse=True)
    owners = torch.from_numpy(owner_of(table.name, distinct, ranks).astype('int64'))
    order = torch.sort(owners, stable=True).indices
    number_of = torch.empty_like(order)
    number_of[order] = torch.arange(len(order))
    counts = torch.bincount(owners, minlength=ranks)
    return Request(distinct[order], counts), number_of[numbers]


def bag_sums(rows: torch.Tensor, numbers: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """Returns the sums of the rows of bags, added in order.

    >>> bag_sums(torch.tensor([[1.], [2.]]), torch.tensor([0, 1, 1]), torch.tensor([0, 3, 3]))
    tensor([[5.],
            [0.]])
    """
    if len(numbers) == 0:
        return torch.zeros(len(offsets) - 1, rows.shape[1])
    return torch.nn.functional.embedding_bag(numbers, rows, offsets, mode='sum',
                                             include_last_offset=True)


def ends_of(groups: torch.Tensor, count: int) -> torch.Tensor:
    """Returns the offsets of groups whose numbers never fall.

    >>> ends_of(torch.tensor([0, 0, 2]), 3)
    tensor([0, 2, 2, 3])
    """
    return torch.nn.functional.pad(torch.bincount(groups, minlength=count).cumsum(0), (1, 0))


def pooled(column: Column, places: Places, rows: torch.Tensor,
           numbers: torch.Tensor) -> torch.Tensor:
    """Returns the rows of bags, with the bits of a lookup that pools where the rows are."""
    ends, weights = ends_of(places.bags, places.bag_count), places.weights
    if weights is not None:
        rows, numbers = rows[numbers] * weights[:, None], torch.arange(len(numbers))
    sums = bag_sums(rows, numbers, ends)
    divisors = (ends[1:] - ends[:-1]).float()
    if column.pooling == MEAN:
        if weights is not None:
            divisors = torch.zeros(places.bag_count).index_add_(0, places.bags, weights)
        return torch.where(divisors[:, None] == 0, 0.0, sums / divisors[:, None])
    return sums / divisors.clamp(min=1)[:, None].sqrt() if column.pooling == SQRT_N else sums


def key_sums(gradients: torch.Tensor, numbers: torch.Tensor, count: int) -> torch.Tensor:
    """Returns the sum of the gradients of each key, in the order of docs/arithmetic.md."""
    order = torch.sort(numbers, stable=True).indices
    ends = ends_of(numbers, count)
    sizes = ends[1:] - ends[:-1]
    if len(numbers) == 0 or int(sizes.max()) <= RUN:
        return bag_sums(gradients, order, ends)
    run_counts = (sizes + RUN - 1) // RUN
    run_ends = torch.nn.functional.pad(run_counts.cumsum(0), (1, 0))
    keys = torch.repeat_interleave(torch.arange(count), run_counts)
    starts = ends[keys] + RUN * (torch.arange(len(keys)) - run_ends[keys])
    runs = bag_sums(gradients, order, torch.cat([starts, ends[-1:]]))
    return bag_sums(runs, torch.arange(len(runs)), run_ends)


class ShardedBatch(Batch):
    """A batch of this rank, whose rows are looked up by their owners.

    Each rank looks up as often as the others, also without a key.
    """

    __slots__ = ('ranks', 'prefetch_ranks', 'tables', '_places', '_numbers', '_requests', '_sent',
                 '_received', '_owned_keys')

    ranks: RankExchange
    prefetch_ranks: RankExchange | None
    tables: dict[str, Column]
    """A column without pooling for each table."""

    def look_up(self, is_creating: bool) -> None:
        """Fills the outputs with rows from all ranks.

        FailedPreconditionError: another rank is in another mode. UnavailableError: another rank
        could not look up its rows, or has ended.
        """
        self._owned_keys = self._exchange_keys(self.ranks, is_creating)
        owned, failure = self._owned(self._owned_keys), None
        try:
            owned.look_up(is_creating)
        except EmbankError as error:
            failure = error
        rows = [output.float() for output in owned.outputs]
        *rows, failed = self._exchanged(rows, int(failure is not None), is_answer=True)
        if failure is not None:
            raise failure
        if bool(failed.any()):
            raise UnavailableError(f'rank {int(failed.argmax())} of {self.ranks.ranks} could not '
                                   'look up its rows; its own exception says why')
        of_table = dict(zip(self.tables, rows))
        for at, part in enumerate(self.parts):
            self._fill(at, part, of_table[part.column.table.name])

    def prefetch(self) -> None:
        """Has the owners read the rows from the disk into memory.

        UnimplementedError: the module has a process group of the caller, in which the exchange of a
        Prefetcher would meet those of a forward.
        """
        if self.prefetch_ranks is None:
            raise UnimplementedError('a Prefetcher needs process_group=None')
        self._owned(self._exchange_keys(self.prefetch_ranks, False)).prefetch()

    def _exchange_keys(self, ranks: RankExchange, is_creating: bool) -> list[torch.Tensor]:
        """Sends the keys of this rank to their owners, and returns those that it owns itself."""
        self._places = [places_of(part) for part in self.parts]
        self._numbers = [places.keys for places in self._places]
        self._requests: list[Request] = []
        for name, column in self.tables.items():
            features = self._features(name)
            keys = [self._places[at].keys for at in features]
            request, numbers = request_of(column.table, torch.cat(keys), ranks.ranks)
            self._requests.append(request)
            for at, of_feature in zip(features, torch.split(numbers, [len(one) for one in keys])):
                self._numbers[at] = of_feature
        mode = torch.full((ranks.ranks,), int(is_creating))
        sent = torch.stack([*(one.counts for one in self._requests), mode], dim=1)
        received = ranks.counts(sent)
        other = (received[:, -1] != int(is_creating)).long()
        if bool(other.any()):
            does = ('evaluates', 'trains')
            raise FailedPreconditionError(
                f'rank {int(other.argmax())} {does[not is_creating]}, and rank {ranks.rank} '
                f'{does[is_creating]}: all ranks must be in the same mode')
        self._sent, self._received = sent[:, :-1], received[:, :-1]
        keys = ranks.tables([one.keys[:, None] for one in self._requests], self._sent,
                            self._received)
        return [one[:, 0] for one in keys]

    def _features(self, table: str) -> list[int]:
        """Returns the places of the features that have a table."""
        return [at for at, column in enumerate(self.columns) if column.table.name == table]

    def _owned(self, keys: list[torch.Tensor]) -> Batch:
        """Returns the batch of keys that this rank owns."""
        columns = list(self.tables.values())
        batch = Batch(columns, new_structs(columns), self.handle, self.device)
        for struct, column, one in zip(batch.structs, columns, keys):
            batch.add(struct, column, one, None, None)
        return batch

    def _exchanged(self, matrices: list[torch.Tensor], mark: int, *,
                   is_answer: bool) -> list[torch.Tensor]:
        """Exchanges matrices with a row for each key, and returns them with the ranks' marks.

        They go to the owners of the keys, or as answers from them.
        """
        ones = torch.ones(self.ranks.ranks, 1, dtype=torch.int64)
        sent, received = (torch.cat([counts, ones], dim=1)
                          for counts in (self._sent, self._received))
        if is_answer:
            sent, received = received, sent
        marks = torch.full((self.ranks.ranks, 1), float(mark))
        return self.ranks.tables([*matrices, marks], sent, received)

    def _fill(self, at: int, part: Part, rows: torch.Tensor) -> None:
        """Fills the output of a feature from the rows of its table's distinct keys."""
        places, output, numbers = self._places[at], self.outputs[at], self._numbers[at]
        if part.offsets is not None:
            output.copy_(pooled(part.column, places, rows, numbers))
        else:
            output.zero_()
            output[places.at] = rows[numbers].to(output.dtype)
        if part.rows is not None:
            part.rows.zero_()
            part.rows[places.at] = rows[numbers].to(part.rows.dtype)

    def owned_gradients(self, gradients: Gradients, divisor: int, is_checked: bool,
                        refusal: EmbankError | None) -> tuple[Batch, Gradients]:
        """Sends gradients to the owners, and returns those of the rows that this rank owns.

        A key has a row for each rank that has looked it up, in the order of the ranks. With
        `is_checked`, a NaN or an infinity on one rank is an InvalidArgumentError on all. A rank
        that cannot make the step says why by `refusal`, and raises it: FailedPreconditionError on
        the others.
        """
        matrices = [self._table_gradients(name, request, gradients, divisor)
                    for name, request in zip(self.tables, self._requests)]
        is_bad = is_checked and not all(bool(matrix.isfinite().all()) for matrix in matrices)
        mark = REFUSES if refusal is not None else BAD_GRADIENT if is_bad else 0
        *matrices, marks = self._exchanged(matrices, mark, is_answer=False)
        if refusal is not None:
            raise refusal
        if bool((marks == REFUSES).any()):
            raise FailedPreconditionError(f'rank {int(marks.argmax())} of {self.ranks.ranks} '
                                          'cannot step its rows, and its own exception says why; '
                                          'no rank has used these gradients')
        if bool(marks.any()):
            raise InvalidArgumentError(f'rank {int(marks.argmax())} of {self.ranks.ranks} has a '
                                       'gradient that is NaN or infinite; no rank has stepped its '
                                       'rows')
        keys, found = [], []
        for key, matrix in zip(self._owned_keys, matrices):
            is_there = matrix[:, -1] > 0
            if not bool(is_there.all()):
                key, matrix = key[is_there], matrix[is_there]
            keys.append(key)
            found.append(matrix[:, :-1] if len(key) else None)
        return self._owned(keys), found

    def _table_gradients(self, name: str, request: Request, gradients: Gradients,
                         divisor: int) -> torch.Tensor:
        """Returns the gradient of each distinct key of a table, and in a last column 1.

        That column has 0 if no output with the key has a gradient: then the key gets no step.
        """
        count, dim = len(request.keys), self.tables[name].table.dim
        rows, numbers = [torch.zeros(0, dim)], [torch.zeros(0, dtype=torch.int64)]
        for at in self._features(name):
            gradient = gradients[at]
            if gradient is not None:
                divided = gradient.detach().float() / divisor
                rows.append(_gradient.of_positions(self.parts[at], divided)[1])
                numbers.append(self._numbers[at])
        joined = torch.cat(numbers)
        has_gradient = torch.bincount(joined, minlength=count).clamp(max=1).float()
        return torch.cat([key_sums(torch.cat(rows), joined, count), has_gradient[:, None]], dim=1)


def table_columns(columns: list[Column]) -> dict[str, Column]:
    """Returns a column without pooling for each table of columns."""
    return {column.table.name: column._replace(name=column.table.name, pooling=NONE,
                                               padding_key=None) for column in columns}
