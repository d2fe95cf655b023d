"""EmbeddingBagCollection: pooled rows of many features with one call for all of them."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from embank.errors import InvalidArgumentError, UnimplementedError
from embank.store import Store
from embank.table import Table

from . import _compiled, _tensor
from ._bag_input import bag_input
from ._batch import Batch, WideBatch
from ._row_module import (RowModule, check_arguments, new_column, open_table, pooling_number,
                          set_rate)
from .keyed_tensor import KeyedTensor


class EmbeddingBagCollection(RowModule):
    """Pooled rows of many features, each with a table of its own or with a common one.

    `features`: for each name the dim, or (dim, mode) with a mode of EmbeddingBag ('sum'). A name is
    that of the feature's table. In the place of the dim a Table of the store may stand, which then
    has options of its own; features with the same Table share its rows. `lr`, `device` and the
    options of tables are those of Embedding. `padding_idx`: this key is in no bag.
    `include_last_offset`: offsets have the end of the last bag (the default, other than in
    nn.EmbeddingBag), so that there is one more than bags.

    forward(features) takes one of
      a dict      for each feature a tensor of keys, of shape (bags,) or (bags, n), or a tuple
                  (keys, offsets) or (keys, offsets, weights), as EmbeddingBag takes them. It
                  returns a dict of float32 tensors of shape (bags, dim).
      a KeyedJaggedTensor of torchrec, or what has its keys(), values(), offsets() and
                  weights_or_none(). It returns a KeyedTensor.
    All features are looked up with one call, and one call in backward() steps their rows.

    >>> import embank
    >>> ebc = EmbeddingBagCollection(embank.Store(), {'user': 2, 'tags': (4, 'mean')},
    ...                              optimizer='sgd', lr=0.1, init=('constant', 1))
    >>> pooled = ebc({'user': torch.tensor([1, 2]),
    ...               'tags': (torch.tensor([7, 8, 9]), torch.tensor([0, 2, 3]))})
    >>> {name: tuple(rows.shape) for name, rows in pooled.items()}
    {'user': (2, 2), 'tags': (2, 4)}
    """

    def __init__(self, store: Store, features: Mapping[str, Any], *, lr: float | None = None,
                 padding_idx: int | None = None, include_last_offset: bool = True,
                 device: Any = None, **options: Any) -> None:
        check_arguments(store, padding_idx, device, options)
        if not isinstance(features, Mapping) or not features:
            raise TypeError(f'features is {features!r}; it must be a dict of names and dims')
        parts = []
        for name, value in features.items():
            dim, mode = value if isinstance(value, tuple) and len(value) == 2 else (value, 'sum')
            if isinstance(dim, Table) and dim.store is not store:
                raise InvalidArgumentError(f'the table of {name} is of another store')
            parts.append((name, dim, pooling_number(mode)))
        known, columns = store.tables(), []
        try:
            for name, dim, pooling in parts:
                table = dim if isinstance(dim, Table) else open_table(store, name, dim, lr, options)
                columns.append(new_column(name, table, pooling, padding_idx))
            # All tables are there: those that existed before keep their rates until here.
            for (_, dim, _), column in zip(parts, columns):
                if not isinstance(dim, Table):
                    set_rate(column.table, lr)
        except Exception:
            for column in columns:
                if column.table.name not in known:
                    store.drop_table(column.table.name)
            raise
        super().__init__(store, columns, device)
        self.include_last_offset = include_last_offset
        self._by_name = {column.name: column for column in columns}
        self._names = [column.name for column in columns]
        self._dims = [column.table.dim for column in columns]
        self._places: dict[tuple[str, ...], Any] = {}
        self._is_all_f32 = all(column.dtype is torch.float32 for column in columns)

    @property
    def embedding_dims(self) -> dict[str, int]:
        """The dim of each feature, as many columns has its tensor."""
        return {column.name: column.table.dim for column in self._columns}

    @_compiled.traced
    def forward(self, features: Any) -> Any:
        """Returns the pooled rows of all features; see the class."""
        if _compiled.is_compiling():
            return self._traced(features)
        if isinstance(features, Mapping):
            outputs = self.answer(self.batch_of_dict(features))
            return dict(zip(self._by_name, outputs))
        outputs = self.answer(self._batch_of_jagged(features))
        values = outputs[0] if len(outputs) == 1 else torch.cat(list(outputs), dim=1)
        return KeyedTensor(self._names, self._dims, values)

    def prefetch(self, features: Any) -> None:
        """Reads the rows of keys from the disk, for a forward that comes soon; see Prefetcher."""
        with torch.no_grad():  # Gradients of weights would need rows.
            batch = (self.batch_of_dict(features) if isinstance(features, Mapping) else
                     self._batch_of_jagged(features))
        batch.prefetch()

    def _traced(self, features: Any) -> Any:
        """Returns what forward does, within torch.compile."""
        if isinstance(features, Mapping):
            values = _compiled.look_up(self, [features[name] for name in self._names])
            return dict(zip(self._names, torch.split(values, self._dims, dim=1)))
        if not self.include_last_offset:
            raise UnimplementedError('torch.compile takes a KeyedJaggedTensor with '
                                     'include_last_offset=True alone')
        names, offsets = list(features.keys()), features.offsets()
        bags = (offsets.shape[0] - 1) // len(names)
        parts = [(features.values(), offsets[place * bags:(place + 1) * bags + 1],
                  features.weights_or_none()) for place in map(names.index, self._names)]
        return KeyedTensor(self._names, self._dims, _compiled.look_up(self, parts))

    def batch_of(self, features: list[Any]) -> Batch:
        """Returns the batch of a list of what a dict has."""
        return self.batch_of_dict(dict(zip(self._names, features)))

    def batch_of_dict(self, features: Mapping[str, Any]) -> Batch:
        """Is for forward: returns the batch of a dict."""
        if features.keys() != self._by_name.keys():
            raise InvalidArgumentError(f'the batch has the features {", ".join(features)}; the '
                                       f'module has {", ".join(self._by_name)}')
        batch, ends = self.new_batch(), self.include_last_offset
        if self._add_alike(batch, [features[name] for name in self._names]):
            return batch
        for struct, column in zip(batch.structs, self._columns):
            value = features[column.name]
            if isinstance(value, tuple):
                if not 2 <= len(value) <= 3:
                    raise InvalidArgumentError(f'{column.name} has {len(value)} parts; it must be '
                                               '(keys, offsets) or (keys, offsets, weights)')
                value = bag_input(self, column, *value, include_last_offset=ends)
            else:
                value = bag_input(self, column, value)
            batch.add(struct, column, *value)
        return batch

    def _add_alike(self, batch: Batch, values: list[Any]) -> bool:
        """Adds features that are all int64 keys of one shape, if they are."""
        shape = getattr(values[0], 'shape', None)
        if (shape is None or not 1 <= len(shape) <= 2 or self.device is not _tensor.CPU
                or type(batch) is not Batch):
            return False
        for value in values:
            if not (isinstance(value, torch.Tensor) and value.dtype is torch.int64
                    and value.shape == shape and value.is_cpu
                    and value.layout is torch.strided and value.is_contiguous()):
                return False
        offsets = None
        if len(shape) == 2 and shape[1] != 1 or not self._is_all_f32:
            offsets = self.fixed_offsets(shape[0], shape[1] if len(shape) == 2 else 1)
        batch.add_alike(values, offsets, self._row_optimizer is not None)
        return True

    def _batch_of_jagged(self, jagged: Any) -> Batch:
        values, offsets, weights, places, bags = self._jagged_parts(jagged)
        # The sums of a RowOptimizer and gradients of weights need the features one by one.
        is_wide = not (weights is not None and weights.requires_grad) and (
            self._row_optimizer is None or not self._row_optimizer.is_deferred)
        if is_wide:
            batch = self.new_batch(WideBatch)
            assert isinstance(batch, WideBatch)
            batch.add_all(values, offsets, weights, places, bags)
            return batch
        batch = self.new_batch()
        for struct, column, place in zip(batch.structs, self._columns, places.tolist()):
            batch.add(struct, column, values, offsets[place * bags:(place + 1) * bags + 1], weights)
        return batch

    def _jagged_parts(self, jagged: Any) -> tuple[Any, Any, Any, Any, int]:
        for method in ('keys', 'values', 'offsets', 'weights_or_none'):
            if not callable(getattr(jagged, method, None)):
                raise TypeError(f'the batch is a {type(jagged).__name__} without {method}(); it '
                                'must be a dict of tensors or a KeyedJaggedTensor')
        if getattr(jagged, 'variable_stride_per_key', lambda: False)():
            raise UnimplementedError('features with different numbers of bags are not there in a '
                                     'KeyedJaggedTensor: pass a dict')
        names = tuple(jagged.keys())
        values = self.on_host(jagged.values(), 'values')
        offsets, weights = self.on_host(jagged.offsets(), 'offsets'), jagged.weights_or_none()
        _tensor.check_tensor(values, 'values', _tensor.INDEX_TYPES)
        _tensor.check_tensor(offsets, 'offsets', (torch.int64, torch.int32))
        if weights is not None:
            weights = self.on_host(weights, 'weights')
            _tensor.check_weights(weights, 'weights', values)
        bags, rest = divmod(offsets.numel() - 1, max(len(names), 1))
        if values.dim() != 1 or offsets.dim() != 1 or rest or bags < 0:
            raise InvalidArgumentError(
                f'values and offsets have the shapes {tuple(values.shape)} and '
                f'{tuple(offsets.shape)}; offsets must have one number more than {len(names)} '
                'features times the bags')
        places = self._places.get(names)
        if places is None:
            absent = [column.name for column in self._columns if column.name not in names]
            if absent:
                raise InvalidArgumentError(f'the batch has no feature {absent[0]}; it has '
                                           f'{", ".join(names)}')
            places = np.array([names.index(column.name) for column in self._columns])
            self._places = {names: places}
        return values, offsets, weights, places, bags
