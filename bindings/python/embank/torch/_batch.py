"""The keys of one forward: the structs of its packed calls, and what they point into."""
from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from embank import _c
from embank._arrays import View
from embank._handle import StoreHandle
from embank._library import library
from embank.errors import FailedPreconditionError, InvalidArgumentError
from embank.table import Table

from . import _tensor

STRUCT = np.dtype(_c.embank_feature)
STRUCT_BYTES = ctypes.sizeof(_c.embank_feature)
NONE, SUM, MEAN, SQRT_N = (_c.EMBANK_POOL_NONE, _c.EMBANK_POOL_SUM, _c.EMBANK_POOL_MEAN,
                           _c.EMBANK_POOL_SQRT_N)
VALUE_TYPES = {'f32': torch.float32, 'f16': torch.float16, 'bf16': torch.bfloat16}
U64 = _c.EMBANK_INDEX_U64

Gradients = Sequence[Any]  # a tensor for each output, or None: nothing depends on it


class Column(NamedTuple):
    """One feature of a module: the table of its keys, and what becomes of a bag."""

    name: str
    table: Table
    pooling: int
    dtype: torch.dtype
    padding_key: int | None


class Part(NamedTuple):
    """One feature of a batch, for the gradients of its positions."""

    column: Column
    keys: torch.Tensor
    offsets: torch.Tensor | None
    """None: each key is a row for itself."""
    weights: torch.Tensor | None
    rows: torch.Tensor | None
    """The rows of the keys, each for itself, if the weights want gradients."""


def new_structs(columns: list[Column]) -> bytes:
    """Returns the structs of columns, without the arrays of a batch."""
    structs = (_c.embank_feature * len(columns))()
    for struct, column in zip(structs, columns):
        struct.struct_size, struct.pooling = STRUCT_BYTES, column.pooling
        struct.table = column.table._address
        if column.padding_key is not None:
            struct.padding_key, struct.flags = column.padding_key, _c.EMBANK_FEATURE_PADDING
    return bytes(structs)


def set_keys(struct: Any, kind: int, address: int, count: int) -> None:
    """Sets the keys of a struct, which must be as a template has them."""
    if kind == U64:
        struct.keys = address
    else:
        struct.typed_keys, struct.key_type = address, kind
    struct.n = count


class Batch:
    """The structs of one forward. A forward makes one, and its backward steps its rows once."""

    __slots__ = ('columns', 'structs', 'outputs', 'parts', 'kept', 'handle', 'device', '_versions',
                 '_is_stepped', '_extra')

    def __init__(self, columns: list[Column], template: bytes, handle: StoreHandle,
                 device: torch.device) -> None:
        self.columns, self.handle, self.device = columns, handle, device
        self.structs = (_c.embank_feature * len(columns)).from_buffer_copy(template)
        self.outputs: list[torch.Tensor] = []
        self.parts: list[Part] = []
        self.kept: list[torch.Tensor] = []
        self._extra: list[Any] = []  # structs of rows that the gradients of weights need
        self._is_stepped = False

    def add(self, struct: Any, column: Column, keys: torch.Tensor, offsets: torch.Tensor | None,
            weights: torch.Tensor | None) -> None:
        """Adds a feature, with its output. Without offsets, each key is a row for itself.

        `struct` is the next one of `structs`. The caller has checked the dimensions of keys, and
        the weights.
        """
        kind, address = _tensor.index_type(keys, column.name), keys.data_ptr()
        self.kept.append(keys)
        count, first = keys.numel(), 0
        dtype = torch.float32
        if offsets is None:
            struct.pooling, bags, dtype = NONE, count, column.dtype
        else:
            offset_kind = _tensor.index_type(offsets, f'offsets of {column.name}')
            first, last = _tensor.ends(offsets, f'offsets of {column.name}', count)
            count, bags = last - first, len(offsets) - 1
            struct.typed_offsets, struct.offset_type = offsets.data_ptr(), offset_kind
            struct.bags = bags
            if first:
                struct.flags |= _c.EMBANK_FEATURE_ABSOLUTE
            self.kept.append(offsets)
        set_keys(struct, kind, address, count)
        rows = None
        if weights is not None:
            self.kept.append(weights)
            struct.weights = weights.data_ptr()
            if weights.requires_grad and torch.is_grad_enabled():
                rows = self._add_rows(struct, column, kind, address + first * keys.element_size())
        output = torch.empty((bags, column.table.dim), dtype=dtype, device=self.device)
        struct.rows = output.data_ptr()
        self.outputs.append(output)
        self.parts.append(Part(column, keys, offsets, weights, rows))

    def add_alike(self, keys: list[torch.Tensor], offsets: torch.Tensor | None,
                  has_parts: bool) -> None:
        """Adds all features at once: int64 keys of one shape in host memory, without weights.

        `offsets`: those of each of them; without, each key is a row for itself. `has_parts`: the
        gradients of positions are wanted. add() does the same, at the cost of 26 features of a
        call that takes a few milliseconds.
        """
        count = bags = keys[0].numel()
        self.kept += keys
        view: Any = np.frombuffer(memoryview(self.structs).cast('B'), STRUCT)
        view['typed_keys'] = [of_feature.data_ptr() for of_feature in keys]
        view['key_type'], view['n'] = _c.EMBANK_INDEX_I64, count
        if offsets is None:
            view['pooling'] = NONE
        else:
            bags = len(offsets) - 1
            view['typed_offsets'], view['offset_type'] = offsets.data_ptr(), _c.EMBANK_INDEX_I64
            view['bags'] = bags
            self.kept.append(offsets)
        self.outputs = [torch.empty((bags, column.table.dim), dtype=torch.float32,
                                    device=self.device) for column in self.columns]
        view['rows'] = [output.data_ptr() for output in self.outputs]
        if has_parts:
            self.parts = [Part(column, of_feature, offsets, None, None)
                          for column, of_feature in zip(self.columns, keys)]

    def _add_rows(self, pooled: Any, column: Column, kind: int, address: int) -> torch.Tensor:
        """Adds the rows of the keys of a pooled struct, each for itself."""
        if pooled.pooling != SUM:
            raise InvalidArgumentError(f'weights of {column.name} want a gradient, which only '
                                       'pooling sum has: call .detach() on them')
        struct = _c.embank_feature(struct_size=STRUCT_BYTES, pooling=NONE, table=pooled.table,
                                   flags=pooled.flags & _c.EMBANK_FEATURE_PADDING,
                                   padding_key=pooled.padding_key)
        set_keys(struct, kind, address, pooled.n)
        rows = torch.empty((pooled.n, column.table.dim), dtype=column.dtype, device=self.device)
        struct.rows = rows.data_ptr()
        self._extra.append(struct)
        return rows

    def look_up(self, is_creating: bool) -> None:
        """Fills the outputs."""
        structs, count = self.structs, len(self.structs)
        if self._extra:
            count += len(self._extra)
            joined = b''.join([bytes(structs), *map(bytes, self._extra)])
            structs = (_c.embank_feature * count).from_buffer_copy(joined)
        missing = _c.EMBANK_MISSING_CREATE if is_creating else _c.EMBANK_MISSING_DEFAULT
        self._call(library.embank_lookup_packed, library.embank_lookup_packed_device, structs,
                   count, missing)

    def prefetch(self) -> None:
        """Reads the rows from the disk into memory."""
        self.handle.call(library.embank_prefetch_packed, self.structs, len(self.structs))

    def watch(self) -> None:
        """Notes the versions of the tensors, which a backward must find unchanged."""
        self._versions = self._versions_now()

    def _versions_now(self) -> list[int]:
        # Tensors of the inference mode have no version.
        return [-1 if tensor.is_inference() else tensor._version for tensor in self.kept]

    def mark_stepped(self) -> None:
        """Notes that a backward has stepped rows, so that no other one does it again."""
        self._is_stepped = True

    def check_backward(self) -> None:
        """Checks that a backward may run.

        FailedPreconditionError: one has stepped rows, or the tensors were changed since the
        forward.
        """
        if self._is_stepped:
            raise FailedPreconditionError(
                'backward was called twice on one forward: the first one has stepped its rows, or '
                'some of them before it failed. Call the module again, or add the losses before '
                'one backward')
        if self._versions_now() != self._versions:
            raise FailedPreconditionError(
                'keys, offsets or weights were changed in place between forward and backward: '
                'leave them as they are, or pass a clone()')

    def step(self, gradients: Gradients) -> None:
        """Makes one step for each distinct key of each table, by the gradients of the outputs."""
        structs, kept = self.structs, []
        if all(gradient is not None and gradient.dtype is torch.float32
               and gradient.is_contiguous() for gradient in gradients):
            view: Any = np.frombuffer(memoryview(structs).cast('B'), STRUCT)
            view['rows'] = [gradient.data_ptr() for gradient in gradients]
            self._call(library.embank_apply_gradients_packed,
                       library.embank_apply_gradients_packed_device, structs, len(structs))
            return
        for struct, gradient in zip(structs, gradients):
            if gradient is not None:
                rows = row_tensor(gradient)
                struct.rows = rows.data_ptr()
                struct.row_stride = 0 if rows.is_contiguous() else 4 * rows.stride(0)
                kept.append(rows)
        count = len(kept)
        if count < len(structs):
            structs = (_c.embank_feature * count)(
                *[struct for struct, gradient in zip(structs, gradients) if gradient is not None])
        self._call(library.embank_apply_gradients_packed,
                   library.embank_apply_gradients_packed_device, structs, count)

    def _call(self, host: Any, device: Any, structs: Any, count: int, *arguments: Any) -> None:
        if self.device is _tensor.CPU:
            self.handle.call(host, structs, count, *arguments, None)
            return
        stream = torch.cuda.current_stream(self.device).cuda_stream
        self.handle.call(device, structs, count, *arguments, None, stream)


class WideBatch(Batch):
    """A batch whose features have one output: rows of bags, in columns beside each other.

    It has no parts: a batch whose weights want gradients is none of these.
    """

    __slots__ = ()

    def add_all(self, values: torch.Tensor, offsets: torch.Tensor, weights: torch.Tensor | None,
                places: View, bags: int) -> None:
        """Adds all features, which have places among those of the tensors.

        The bags of the feature at place p begin with offset p * bags.
        """
        kind = _tensor.index_type(values, 'values')
        offset_kind = _tensor.index_type(offsets, 'offsets')
        _tensor.ends(offsets, 'offsets', len(values))
        # Without a bag there is one offset, with which each feature begins and ends.
        bounds = offsets.numpy()[::max(bags, 1)].astype(np.int64)
        first, last = bounds[places * (bags > 0)], bounds[(places + 1) * (bags > 0)]
        if first.min() < 0 or last.max() > len(values) or (last < first).any():
            at = int(np.flatnonzero((first < 0) | (last > len(values)) | (last < first))[0])
            raise InvalidArgumentError(
                f'offsets of {self.columns[at].name} go from {first[at]} to {last[at]}; they must '
                f'be within the {len(values)} values, and never fall')
        view: Any = np.frombuffer(memoryview(self.structs).cast('B'), STRUCT)
        field = 'keys' if kind == U64 else 'typed_keys'
        view[field], view['key_type'], view['n'] = values.data_ptr(), kind, last - first
        self.kept += [values, offsets]
        if weights is None and self._has_single_keys(offsets, last - first, bags):
            view['pooling'] = NONE
            view[field] += (first * values.element_size()).astype(np.uint64)
        else:
            view['bags'], view['offset_type'] = bags, offset_kind
            view['typed_offsets'] = offsets.data_ptr() + places * bags * offsets.element_size()
            view['flags'] |= _c.EMBANK_FEATURE_ABSOLUTE
        if weights is not None:
            view['weights'] = weights.data_ptr()
            self.kept.append(weights)
        starts = np.cumsum([0] + [column.table.dim for column in self.columns])
        output = torch.empty((bags, int(starts[-1])), dtype=torch.float32, device=self.device)
        view['rows'], view['row_stride'] = output.data_ptr() + 4 * starts[:-1], 4 * int(starts[-1])
        self.outputs.append(output)

    def _has_single_keys(self, offsets: torch.Tensor, counts: View, bags: int) -> bool:
        """Whether each bag has one key, whose row needs no pooling."""
        return (bool((counts == bags).all()) and bool((offsets.diff() == 1).all())
                and all(column.dtype is torch.float32 for column in self.columns))

    def step(self, gradients: Gradients) -> None:
        """Makes one step for each distinct key, by the gradient of the one output."""
        gradient, = gradients
        if gradient is not None:
            dims = [column.table.dim for column in self.columns]
            super().step(torch.split(row_tensor(gradient), dims, dim=1))


def row_tensor(gradient: torch.Tensor) -> torch.Tensor:
    """Returns gradients as float32 rows whose numbers are next to each other.

    Some columns of a larger tensor are such rows; one row for all, as sum() has, is not.

    >>> row_tensor(torch.ones(1, 1).expand(3, 2)).stride()
    (2, 1)
    """
    if gradient.dtype is not torch.float32:
        gradient = gradient.float()
    if gradient.is_contiguous():
        return gradient
    row_stride, stride = gradient.stride()
    is_of_rows = stride == 1 and row_stride >= gradient.shape[1]
    return gradient if is_of_rows else gradient.contiguous()
