"""Tables that are sharded over the ranks of torch.distributed: each row is at one rank."""
from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from embank.errors import FailedPreconditionError, InvalidArgumentError, UnimplementedError
from embank.store import Store

from . import collection, training_state
from ._bag_input import bag_input
from ._batch import Batch, Gradients
from ._rank_exchange import RankExchange
from ._row_module import set_rate
from ._sharded_batch import ShardedBatch, table_columns

REDUCTIONS = ('mean', 'sum')
RANKS_TABLE = 'embank.ranks'  # its one row has the number of ranks, and the rank of the store
RANKS_KEY = np.zeros(1, np.uint64)


class EmbeddingBagCollection(collection.EmbeddingBagCollection):
    """The collection of embank.torch, with tables that are sharded over ranks.

    Each rank has a store of its own, and holds the rows whose owner it is (embank.owner_of).
    `features` and further options are those of embank.torch.EmbeddingBagCollection, and are equal
    on all ranks, as the seeds of the stores are. `process_group`: ranks, with connections that
    nobody else uses meanwhile. None: a new group of all ranks, with the backend of torch's own.

    forward() takes the batch of this rank, which may be empty, and returns what the collection of
    one process returns for it. All ranks call forward() equally often, and backward() too.

    backward() steps the row of a key once, at its owner, by the gradients of all ranks.
    `reduction`: 'mean' divides their sum by the number of ranks, as DistributedDataParallel does
    for dense parameters: a loss that is the mean of a rank's samples, with as many samples on each
    rank, then trains as one process does with the samples of all ranks. 'sum' divides by nothing: a
    loss that is a sum over samples then trains as in one process.

    A key that only one rank has in a step gets the bits of one process. The gradients of others are
    added in the order of the ranks, so that their last bits depend on the number of ranks.
    max_gradient_value limits the sum of a rank's gradients of a key.

    FailedPreconditionError: ranks differ in their features, options or seeds, or the store is of
    another rank or of another number of ranks; all ranks raise it. UnavailableError: a rank has
    ended. UnimplementedError: rows on a device.

    >>> import embank, torch.distributed as dist
    >>> dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)
    >>> ebc = EmbeddingBagCollection(embank.Store(), {'tags': 2}, init=('constant', 1))
    >>> ebc({'tags': torch.tensor([[1, 2], [2, 3]])})['tags'].tolist()
    [[2.0, 2.0], [2.0, 2.0]]
    >>> dist.destroy_process_group()
    """

    def __init__(self, store: Store, features: Mapping[str, Any], process_group: Any = None, *,
                 reduction: str = 'mean', **options: Any) -> None:
        is_own = process_group is None
        ranks = RankExchange.own() if is_own else RankExchange(process_group)
        # A Prefetcher exchanges keys, which are in host memory, in a thread of its own.
        prefetch_ranks = RankExchange.own('gloo') if is_own else None
        made: list[str] = []
        rates: dict[str, float] = {}

        def make() -> str:
            _check(store, reduction, options.get('device'))
            known = store.tables()
            rates.update({name: store.table(name).learning_rate for name in known
                          if isinstance(features, Mapping) and name in features})
            try:
                claim(store, ranks)
                super(EmbeddingBagCollection, self).__init__(store, features, **options)
            finally:
                made.extend(name for name in store.tables() if name not in known)
            return '\n'.join(self._description(reduction))

        try:
            check_equal(ranks.together(make))
        except Exception:
            # super().__init__ has set rates before the ranks disagreed.
            try:
                for name, rate in rates.items():
                    set_rate(store.table(name), rate)
            finally:
                for name in made:
                    store.drop_table(name)
            raise
        self._ranks, self._prefetch_ranks = ranks, prefetch_ranks
        self._tables = table_columns(self._columns)
        self._divisor = ranks.ranks if reduction == 'mean' else 1

    def _description(self, reduction: str) -> list[str]:
        """Returns what must be equal on all ranks, and has a name."""
        lines = [f'seed {self._store.options.seed}', f'reduction {reduction!r}']
        for column in self._columns:
            facts = [f'{name}={value!r}' for name, value in
                     dataclasses.asdict(column.table.options).items()]
            lines.append(f'feature {column.name} with table {column.table.name}, pooling '
                         f'{column.pooling}, padding_idx {column.padding_key}, {", ".join(facts)}')
        return lines

    def new_batch(self, kind: type[Batch] = Batch) -> Batch:
        """Returns a batch of this module without its keys."""
        batch = super().new_batch(ShardedBatch)
        assert isinstance(batch, ShardedBatch)
        batch.ranks, batch.prefetch_ranks = self._ranks, self._prefetch_ranks
        batch.tables = self._tables
        return batch

    def _batch_of_jagged(self, jagged: Any) -> Batch:
        values, offsets, weights, places, bags = self._jagged_parts(jagged)
        batch = self.new_batch()
        for struct, column, place in zip(batch.structs, self._columns, places.tolist()):
            ends = offsets[place * bags:(place + 1) * bags + 1]
            batch.add(struct, column, *bag_input(self, column, values, ends, weights))
        return batch

    def _step_rows(self, batch: Batch, gradients: Gradients) -> None:
        """Sends the gradients of a batch to the owners, which step rows."""
        assert isinstance(batch, ShardedBatch)
        is_deferred = self._row_optimizer is not None and self._row_optimizer.is_deferred
        refusal = None
        if is_deferred:
            try:
                self._row_optimizer.check_grads(self._tables)
            except FailedPreconditionError as error:
                refusal = error
        owned = batch.owned_gradients(gradients, self._divisor, not is_deferred, refusal)
        # From here on ranks fail alone, and a repeated backward would wait for the others.
        batch.mark_stepped()
        super()._step_rows(*owned)
        if is_deferred:
            self._share_norms()

    def _share_norms(self) -> None:
        """Gives the RowOptimizer the norms of the sums of all ranks, so that all clip alike."""
        optimizer = self._row_optimizer
        squares = [optimizer._sums[name][1].double().square().sum()
                   if name in optimizer._sums else torch.zeros(()).double()
                   for name in self._tables]
        norms = self._ranks.sums(torch.stack(squares)).sqrt().float()
        for name, norm in zip(self._tables, norms):
            optimizer._norms[name] = norm.reshape(1)
            optimizer._parameter(name).grad = norm.reshape(1).clone()


def _check(store: Any, reduction: Any, device: Any) -> None:
    if not isinstance(store, Store):
        raise TypeError(f'store is a {type(store).__name__}; it must be an embank.Store')
    if reduction not in REDUCTIONS:
        raise InvalidArgumentError(f'reduction is {reduction!r}; it must be one of '
                                   f'{", ".join(map(repr, REDUCTIONS))}')
    if device is not None and torch.device(device).type != 'cpu':
        raise UnimplementedError(f"device is '{device}'; rows of ranks are on 'cpu'")


def check_equal(descriptions: list[str]) -> None:
    """Raises FailedPreconditionError unless all ranks have the same lines.

    >>> check_equal(['seed 1', 'seed 2'])
    Traceback (most recent call last):
    embank.errors.FailedPreconditionError: rank 1 has seed 2, and rank 0 has seed 1: all ranks \
must have the same
    """
    first = descriptions[0].splitlines()
    for rank, description in enumerate(descriptions):
        lines = description.splitlines()
        for mine, other in zip(first, lines):
            if mine != other:
                raise FailedPreconditionError(f'rank {rank} has {other}, and rank 0 has {mine}: '
                                              'all ranks must have the same')
        if len(lines) != len(first):
            raise FailedPreconditionError(f'rank {rank} has {len(lines) - 2} features, and rank 0 '
                                          f'{len(first) - 2}')


def claim(store: Store, ranks: RankExchange) -> None:
    """Writes into a store whose it is, or raises FailedPreconditionError if it is another's."""
    mine = [float(ranks.ranks), float(ranks.rank)]
    if RANKS_TABLE in store.tables():
        found = store.table(RANKS_TABLE).lookup(RANKS_KEY, missing='zero')[0].tolist()
        if found != mine:
            raise FailedPreconditionError(
                f'{store!r} is of rank {found[1]:.0f} of {found[0]:.0f}; this process is rank '
                f'{ranks.rank} of {ranks.ranks}')
        return
    for name in store.tables():
        if len(store.table(name)):
            raise FailedPreconditionError(f'{store!r} has rows of table {name} and is of no rank: '
                                          'use a new store')
    store.table(RANKS_TABLE, dim=2).upsert(RANKS_KEY, np.array([mine], np.float32))


def open_store(path: str | os.PathLike[str], process_group: Any = None, **options: Any) -> Store:
    """Opens the store of this rank, path/rank_N, at the last checkpoint that all ranks have.

    The directory `path` is made if there is none; on a disk of its own, each machine needs those of
    its ranks alone. `options` are those of Store, but `previous`; a `pmem_path` is one of this
    rank's. All ranks call it. If they were killed between the checkpoints of one save(), those that
    are ahead open the checkpoint before.

    FailedPreconditionError: the store is of another rank or number of ranks, or the ranks have no
    checkpoint in common.
    """
    ranks = RankExchange(process_group)
    own = os.path.join(os.fspath(path), f'rank_{ranks.rank}')
    opened: list[Store] = []

    def open_last() -> str:
        os.makedirs(os.fspath(path), exist_ok=True)
        opened.append(Store(own, **options))
        claim(opened[0], ranks)
        return str(_step_of(opened[0]))

    def open_previous() -> str:
        if _step_of(opened[0]) > common:
            # What was before the first checkpoint is an empty store.
            opened.pop().close()
            opened.append(Store(own, previous=True, **options))
        return str(_step_of(opened[0]))

    try:
        common = min(map(int, ranks.together(open_last)))
        steps = ranks.together(open_previous)
        _check_steps(steps, 'their checkpoints cannot be used together: begin again with an empty '
                     'directory, or with copies of all stores from one step')
    except Exception:
        for store in opened:
            store.close()
        raise
    return opened[0]


def save(store: Store, *, step: int, process_group: Any = None, **parts: Any) -> int:
    """Makes a checkpoint on each rank as embank.torch.save does, and returns its number.

    All ranks call it with the same step, which is greater than that of the last checkpoint. It
    returns when the checkpoints of all ranks are durable. If one rank fails, all raise an
    exception: end the training then.
    """
    ranks = RankExchange(process_group)

    def check_step() -> str:
        if not isinstance(step, int) or isinstance(step, bool):
            raise TypeError(f'step is {step!r}; it must be an int')
        last = _step_of(store)
        if step <= last:
            raise InvalidArgumentError(f'step is {step}; it must be greater than that of the last '
                                       f'checkpoint, {last}')
        return str(step)

    _check_steps(ranks.together(check_step), 'all ranks must save the same step')
    numbers = ranks.together(lambda: str(training_state.save(store, step=step, **parts)))
    return int(numbers[ranks.rank])


def load(store: Store, *, process_group: Any = None, random: bool = True, **parts: Any) -> int:
    """Gives the parts their states as embank.torch.load does, and returns the step.

    All ranks call it. FailedPreconditionError: the stores are not at one step: see open_store.
    """
    ranks = RankExchange(process_group)
    steps = ranks.together(lambda: str(_step_of(store)))
    _check_steps(steps, 'open the stores with embank.torch.sharded.open_store')
    if int(steps[0]) == 0:
        return 0
    ranks.together(lambda: str(training_state.load(store, random=random, **parts)))
    return int(steps[0])


def _step_of(store: Store) -> int:
    """Returns the step of the last checkpoint; 0: there is none."""
    blob = store.checkpoint_blob()
    return int(training_state._header(blob)[0]['step']) if blob else 0


def _check_steps(steps: list[str], advice: str) -> None:
    if len(set(steps)) > 1:
        raise FailedPreconditionError(f'ranks are at the steps {", ".join(steps)}: {advice}')
