"""The part that all modules have in common: tables of a store, as a torch.nn.Module."""
from __future__ import annotations

import dataclasses
from typing import Any, NoReturn

import torch

from embank import _c
from embank.errors import (FailedPreconditionError, InvalidArgumentError, NotFoundError,
                           UnimplementedError)
from embank.store import Store
from embank.table import Table

from . import _compiled, _tensor
from ._batch import VALUE_TYPES, Batch, Column, Gradients, new_structs
from ._lookup import linked

POOLINGS = {'sum': _c.EMBANK_POOL_SUM, 'mean': _c.EMBANK_POOL_MEAN, 'sqrtn': _c.EMBANK_POOL_SQRT_N}
DEFAULT_INIT = ('normal', 0.0, 1.0)
# Arguments of torch's modules that these have not, and why.
REFUSED = {
    'num_embeddings': 'a table has no size: each 64-bit number is a key',
    'max_norm': 'a lookup does not change rows; max_gradient_norm limits their gradients',
    'norm_type': 'a lookup does not change rows; max_gradient_norm limits their gradients',
    'scale_grad_by_freq': 'the gradients of a key are summed; pooling mean divides them',
    'sparse': 'the gradients of rows are no tensor: rows are stepped inside backward',
    'dtype': "the type of rows is value_type='f32', 'f16' or 'bf16'",
    '_weight': 'from_pretrained writes the rows of a tensor',
    '_freeze': 'requires_grad_(False) freezes the rows',
}
# Attributes of torch's modules that these have not, besides those arguments.
ABSENT = {
    'weight': 'rows are in a table; see .tables, Table.lookup, Table.upsert and Table.scan',
    'reset_parameters': 'Table.erase removes rows; init has the first values of new ones',
}


def refuse(arguments: dict[str, Any]) -> None:
    """Raises UnimplementedError for an argument of torch's modules that these have not.

    >>> refuse({'max_norm': 1.0})
    Traceback (most recent call last):
    embank.errors.UnimplementedError: max_norm is not there: a lookup does not change rows; \
max_gradient_norm limits their gradients
    """
    for name in arguments:
        if name in REFUSED:
            raise UnimplementedError(f'{name} is not there: {REFUSED[name]}')


def pooling_number(mode: Any) -> int:
    """Returns the number of a pooling.

    >>> pooling_number('median')
    Traceback (most recent call last):
    embank.errors.InvalidArgumentError: mode is 'median'; it must be one of 'sum', 'mean', 'sqrtn'
    """
    if mode == 'max':
        raise UnimplementedError("mode 'max' is not there; it must be one of "
                                 f'{", ".join(map(repr, POOLINGS))}')
    if not isinstance(mode, str) or mode not in POOLINGS:
        raise InvalidArgumentError(f'mode is {mode!r}; it must be one of '
                                   f'{", ".join(map(repr, POOLINGS))}')
    return POOLINGS[mode]


def open_table(store: Store, name: str, dim: int, lr: float | None, options: Any) -> Table:
    """Opens the table of a module, or makes it with the learning rate `lr`."""
    options = {'optimizer': 'adagrad', 'init': DEFAULT_INIT, **options}
    if name not in store.tables():
        return store.table(name, dim=dim, learning_rate=lr, **options)
    return store.table(name, dim=dim, **options)


def set_rate(table: Table, lr: float | None) -> None:
    """Sets the learning rate of a table, as torch's optimizers set theirs.

    A table that exists may have another one, which a scheduler had set before a checkpoint.
    """
    if lr is not None and table.learning_rate != torch.tensor(lr, dtype=torch.float32).item():
        table.learning_rate = lr


def check_arguments(store: Store, padding_idx: Any, device: Any, options: Any) -> None:
    """Raises an exception for arguments of a module, before it makes tables."""
    refuse(options)
    if not isinstance(store, Store):
        raise TypeError(f'store is a {type(store).__name__}; it must be an embank.Store')
    check_padding(padding_idx)
    row_device(store, device)


def row_device(store: Store, device: Any) -> torch.device:
    """Returns the device of the rows of a module.

    FailedPreconditionError: it is none of the store's.
    """
    wanted = torch.device('cpu' if device is None else device)
    if wanted.type == 'cpu':
        return _tensor.CPU
    if wanted.type != 'cuda':
        raise UnimplementedError(f"device is '{wanted}'; it must be 'cpu' or 'cuda:N'")
    options = store.options
    ordinal = options.cuda_device if options.hbm_bytes else -1
    wanted = torch.device('cuda', wanted.index or 0)
    if ordinal != wanted.index:
        has = f'is cuda:{ordinal}' if ordinal is not None and ordinal >= 0 else 'is none'
        raise FailedPreconditionError(
            f"device is '{wanted}', and that of the store {has}: it needs hbm_bytes and "
            f'cuda_device={wanted.index}')
    return wanted


class RowModule(torch.nn.Module):
    """A module whose rows are in tables of a store. It has no parameters.

    A forward in training mode creates the rows of new keys, and its backward makes one step of the
    optimizer of each table. A forward after eval(), after requires_grad_(False) or under no_grad()
    answers the initial value of new keys, and creates nothing.
    """

    include_last_offset = True
    output_dtype = torch.float32

    def __init__(self, store: Store, columns: list[Column], device: Any) -> None:
        super().__init__()
        self._store, self._columns, self._handle = store, columns, store._handle
        self._template = new_structs(columns)
        self.device = row_device(store, device)
        self._row_optimizer: Any = None
        self._is_frozen = False
        self._offsets: dict[tuple[int, int], torch.Tensor] = {}
        self._number = _compiled.register(self)

    @property
    def store(self) -> Store:
        """The store of the rows."""
        return self._store

    @property
    def tables(self) -> dict[str, Table]:
        """The tables of the rows, by their names."""
        return {column.table.name: column.table for column in self._columns}

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Freezes the rows (False) or trains them; frozen rows are not created, either.

        That of a module around this one sees parameters alone, and rows are none.
        """
        self._is_frozen = not requires_grad
        return self

    def new_batch(self, kind: type[Batch] = Batch) -> Batch:
        """Returns a batch of this module without its keys."""
        return kind(self._columns, self._template, self._handle, self.device)

    def batch_of(self, features: list[Any]) -> Batch:
        """Returns the batch of features as _compiled.look_up takes them."""
        raise NotImplementedError

    def shape_of(self, tensors: list[torch.Tensor], layout: list[int]) -> tuple[int, ...]:
        """Returns the shape of the rows of all features within torch.compile."""
        bags = tensors[0].shape[0]
        if layout[0] & _compiled.HAS_OFFSETS:
            bags = tensors[1].shape[0] - (1 if self.include_last_offset else 0)
        return bags, sum(column.table.dim for column in self._columns)

    def is_stepping(self) -> bool:
        """Whether a forward creates rows, and its backward steps them."""
        return self.training and not self._is_frozen and torch.is_grad_enabled()

    def answer(self, batch: Batch) -> Gradients:
        """Looks up a batch and returns its outputs."""
        is_stepping = self.is_stepping()
        batch.look_up(is_stepping)
        return linked(self, batch, is_stepping)

    def step(self, batch: Batch, gradients: Gradients) -> None:
        """Steps the rows of a batch, and marks it unless the step is refused as a whole."""
        try:
            self._step_rows(batch, gradients)
        except (InvalidArgumentError, FailedPreconditionError):
            raise  # After these nothing was done (embank.h); after others rows may have changed.
        except BaseException:
            batch.mark_stepped()
            raise
        batch.mark_stepped()

    def _step_rows(self, batch: Batch, gradients: Gradients) -> None:
        """Steps the rows of a batch, or gives their gradients to the RowOptimizer."""
        if self._row_optimizer is not None and self._row_optimizer.takes(batch, gradients):
            return
        try:
            batch.step(gradients)
        except NotFoundError:
            # Rows of a table that forgets may go between forward and backward.
            if all(table.options.on_full == 'refuse' for table in self.tables.values()):
                raise

    def fixed_offsets(self, bags: int, keys: int) -> torch.Tensor:
        """Returns the offsets of bags with as many keys each."""
        found = self._offsets.get((bags, keys))
        if found is None:
            if len(self._offsets) > 64:  # Batches of ever new shapes must not fill memory.
                self._offsets.clear()
            found = torch.arange(bags + 1) * keys
            self._offsets[bags, keys] = found
        return found

    def on_host(self, tensor: torch.Tensor, name: str) -> torch.Tensor:
        """Returns a tensor of the batch in host memory, where calls take keys.

        TypeError: it is not on the device of the module.
        """
        if self.device is _tensor.CPU:
            return tensor
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f'{name} is a {type(tensor).__name__}; it must be a tensor')
        if tensor.device != self.device:
            raise TypeError(f'{name} is on {tensor.device}, and the rows of this module on '
                            f"{self.device}: call .to('{self.device}') on it")
        return tensor.cpu()

    def get_extra_state(self) -> dict[str, Any]:
        """Returns what state_dict() says of the tables: their rows are in the store."""
        return {'tables': {name: _identity(table) for name, table in self.tables.items()}}

    def set_extra_state(self, state: Any) -> None:
        """Checks that the tables are such as state_dict() has described.

        FailedPreconditionError: they are others.
        """
        mine = self.get_extra_state()
        if state != mine:
            raise FailedPreconditionError(f'the state is of the tables {state}; the module has '
                                          f'{mine}')

    def __getattr__(self, name: str) -> Any:
        reason = ABSENT.get(name) or REFUSED.get(name)
        if reason is not None:
            raise AttributeError(f'{type(self).__name__} has no {name}: {reason}')
        return super().__getattr__(name)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError(f'{type(self).__name__} uses an open store of this process: it cannot be '
                        'copied or pickled. Make another one with the same store; save() keeps its '
                        'rows')

    def extra_repr(self) -> str:
        """Returns the features, for repr()."""
        return ', '.join(f'{column.name}: {column.table.dim}' for column in self._columns)


def _identity(table: Table) -> dict[str, Any]:
    options = dataclasses.asdict(table.options)
    return {name: options[name] for name in ('dim', 'value_type', 'optimizer')}


def check_padding(padding_idx: Any) -> None:
    """Raises an exception unless `padding_idx` is a key, or None.

    >>> check_padding(1 << 64)
    Traceback (most recent call last):
    embank.errors.InvalidArgumentError: padding_idx is 18446744073709551616; it must be a 64-bit \
integer
    """
    if padding_idx is None:
        return
    if not isinstance(padding_idx, int) or isinstance(padding_idx, bool):
        raise TypeError(f'padding_idx is {padding_idx!r}; it must be an int')
    if not -1 << 63 <= padding_idx < 1 << 64:
        raise InvalidArgumentError(f'padding_idx is {padding_idx}; it must be a 64-bit integer')


def new_column(name: str, table: Table, pooling: int, padding_idx: int | None) -> Column:
    """Returns a feature of a module, whose padding_idx was checked."""
    if padding_idx is not None:
        padding_idx %= 1 << 64
    value_type = table.options.value_type or 'f32'
    return Column(name, table, pooling, VALUE_TYPES[value_type], padding_idx)
