"""The options of stores and tables: keywords in Python, structs in C."""
from __future__ import annotations

import ctypes
import dataclasses
import numbers
import operator
import os
import re
from typing import Any

from . import _c, _text
from ._library import library
from .errors import InvalidArgumentError

UNITS = {'': 0, 'B': 0, 'KiB': 10, 'MiB': 20, 'GiB': 30, 'TiB': 40}
UINT64_MAX, UINT32_MAX = (1 << 64) - 1, (1 << 32) - 1


def _choices(prefix: str) -> dict[str, int]:
    return {name.removeprefix(prefix).lower(): number for name, number in vars(_c).items()
            if name.startswith(prefix)}


VALUE_TYPES = {'f32': _c.EMBANK_F32, 'f16': _c.EMBANK_F16, 'bf16': _c.EMBANK_BF16}
OPTIMIZERS = _choices('EMBANK_OPT_')
INITIALIZERS = _choices('EMBANK_INIT_')
INITIALIZER_NUMBERS = {'zero': 0, 'constant': 1, 'uniform': 2, 'normal': 2}
EVICTIONS = _choices('EMBANK_EVICT_')
ON_FULL = _choices('EMBANK_FULL_')
ROUNDINGS = _choices('EMBANK_ROUNDING_')
DURABILITIES = _choices('EMBANK_DURABLE_')
MISSING = _choices('EMBANK_MISSING_')
POOLINGS = _choices('EMBANK_POOL_')

CHOICES = {'value_type': VALUE_TYPES, 'optimizer': OPTIMIZERS, 'eviction': EVICTIONS,
           'on_full': ON_FULL, 'rounding': ROUNDINGS, 'durability': DURABILITIES}
SIZES = ('dram_bytes', 'ssd_bytes', 'pmem_bytes', 'hbm_bytes')
PATHS = ('path', 'pmem_path')
FLAGS = {'create': _c.EMBANK_OPEN_CREATE, 'read_only': _c.EMBANK_OPEN_READ_ONLY,
         'previous': _c.EMBANK_OPEN_PREVIOUS}
# The options that embank_table_set_options changes, with the field that it wants to be told.
SETTABLE = {
    'learning_rate': _c.EMBANK_SET_LEARNING_RATE, 'beta1': _c.EMBANK_SET_BETAS,
    'beta2': _c.EMBANK_SET_BETAS, 'epsilon': _c.EMBANK_SET_EPSILON,
    'weight_decay': _c.EMBANK_SET_WEIGHT_DECAY,
    'decoupled_weight_decay': _c.EMBANK_SET_WEIGHT_DECAY,
    'max_gradient_norm': _c.EMBANK_SET_CLIPPING, 'max_gradient_value': _c.EMBANK_SET_CLIPPING,
    'rounding': _c.EMBANK_SET_ROUNDING, 'ftrl_l1': _c.EMBANK_SET_FTRL,
    'ftrl_l2': _c.EMBANK_SET_FTRL,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class StoreOptions:
    """The options of a store; embank.Store explains them. None: the library's default."""

    path: str | os.PathLike[str] | None = None
    dram_bytes: int | str | None = None
    ssd_bytes: int | str | None = None
    pmem_path: str | os.PathLike[str] | None = None
    pmem_bytes: int | str | None = None
    hbm_bytes: int | str | None = None
    cuda_device: int | None = None
    worker_threads: int | None = None
    seed: int | None = None
    durability: str | None = None
    warmup_iters: int | None = None
    flush_iters: int | None = None
    pin_batches: int | None = None
    create: bool | None = None
    read_only: bool | None = None
    previous: bool | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableOptions:
    """The options of a table; Store.table explains them. None: the library's default."""

    dim: int | None = None
    value_type: str | None = None
    optimizer: str | None = None
    learning_rate: float | None = None
    init: Any = None
    beta1: float | None = None
    beta2: float | None = None
    epsilon: float | None = None
    weight_decay: float | None = None
    decoupled_weight_decay: float | None = None
    initial_accumulator: float | None = None
    eviction: str | None = None
    admission_count: int | None = None
    on_full: str | None = None
    max_gradient_norm: float | None = None
    max_gradient_value: float | None = None
    rounding: str | None = None
    expected_rows_log2: int | None = None
    ftrl_l1: float | None = None
    ftrl_l2: float | None = None


def byte_size(value: Any, name: str) -> int:
    """Returns the bytes of a size: an integer, or a text with B, KiB, MiB, GiB or TiB.

    >>> byte_size('512MiB', 'dram_bytes')
    536870912
    >>> byte_size('4GB', 'dram_bytes')
    Traceback (most recent call last):
    embank.errors.InvalidArgumentError: dram_bytes is '4GB'; it must be a whole number of B, KiB, \
MiB, GiB or TiB, as in '512MiB'
    """
    if not isinstance(value, str):
        return integer(value, name, 0, UINT64_MAX)
    match = re.fullmatch(r'([0-9]{1,20}) ?([A-Za-z]*)', value)
    if match is None or match.group(2) not in UNITS:
        raise InvalidArgumentError(f'{name} is {value!r}; it must be a whole number of B, KiB, '
                                   "MiB, GiB or TiB, as in '512MiB'")
    return integer(int(match.group(1)) << UNITS[match.group(2)], name, 0, UINT64_MAX)


def integer(value: Any, name: str, least: int, most: int) -> int:
    """Returns an integer within its limits.

    >>> integer(-1, 'seed', 0, UINT64_MAX)
    Traceback (most recent call last):
    embank.errors.InvalidArgumentError: seed is -1; it must be 0 to 18446744073709551615
    """
    try:
        number = operator.index(value)
    except TypeError as error:
        raise TypeError(f'{name} is {value!r}; it must be an integer') from error
    if not least <= number <= most:
        raise InvalidArgumentError(f'{name} is {number}; it must be {least} to {most}')
    return number


def real(value: Any, name: str) -> float:
    """Returns a number as a float; the library checks its limits."""
    if not isinstance(value, numbers.Real):
        raise TypeError(f'{name} is {value!r}; it must be a number')
    try:
        return float(value)
    except OverflowError as error:
        raise InvalidArgumentError(f'{name} is {value}; it must be a finite number') from error


def choice(value: Any, name: str, choices: dict[str, int]) -> int:
    """Returns the number of a named choice.

    >>> choice('lru', 'eviction', EVICTIONS)
    0
    >>> choice('fifo', 'eviction', EVICTIONS)
    Traceback (most recent call last):
    embank.errors.InvalidArgumentError: eviction is 'fifo'; it must be one of 'lru', 'clock', 'lfu'
    """
    if not isinstance(value, str):
        raise TypeError(f'{name} is {value!r}; it must be a str')
    if value not in choices:
        allowed = ', '.join(map(repr, choices))
        raise InvalidArgumentError(f'{name} is {value!r}; it must be one of {allowed}')
    return choices[value]


def choice_name(number: int, choices: dict[str, int]) -> str:
    return next((name for name, of_name in choices.items() if of_name == number), str(number))


def _given(options: Any) -> dict[str, Any]:
    """The options that are not None."""
    return {field.name: value for field in dataclasses.fields(options)
            if (value := getattr(options, field.name)) is not None}


def _fill_initializer(struct: Any, init: Any) -> None:
    """An initializer is 'zero', or a tuple of its name and its numbers."""
    name, *values = (init,) if isinstance(init, str) else tuple(init)
    struct.initializer = choice(name, 'init', INITIALIZERS)
    if len(values) != INITIALIZER_NUMBERS[name]:
        raise InvalidArgumentError(f'init is {init!r}; {name!r} has {INITIALIZER_NUMBERS[name]} '
                                   f'numbers, and not {len(values)}')
    struct.init_a, struct.init_b = ([real(value, 'init') for value in values] + [0.0, 0.0])[:2]


def _fill(struct: Any, kinds: dict[str, Any], name: str, value: Any) -> None:
    """Sets the field of a struct that has the name of an option."""
    if name == 'init':
        if not isinstance(value, (str, tuple, list)) or not value:
            raise TypeError(f"init is {value!r}; it must be 'zero' or a tuple, as in "
                            "('uniform', -0.1, 0.1)")
        _fill_initializer(struct, value)
    elif name in CHOICES:
        setattr(struct, name, choice(value, name, CHOICES[name]))
    elif name in SIZES:
        setattr(struct, name, byte_size(value, name))
    elif name in PATHS:
        setattr(struct, name, _text.path(value, name))
    elif kinds[name] is ctypes.c_float:
        setattr(struct, name, real(value, name))
    else:
        bits = 8 * ctypes.sizeof(kinds[name])
        is_signed = kinds[name](-1).value < 0
        least = -(1 << (bits - 1)) if is_signed else 0
        most = (1 << (bits - is_signed)) - 1
        setattr(struct, name, integer(value, name, least, most))


def store_struct(options: StoreOptions) -> Any:
    """Returns the options of a store as the library takes them."""
    struct = _c.embank_store_options()
    library.embank_store_options_init(struct, ctypes.sizeof(struct))
    kinds = {field[0]: field[1] for field in _c.embank_store_options._fields_}
    given = _given(options)
    flags = {name: bool(given.pop(name)) for name in FLAGS if name in given}
    opens_as_it_is = flags.get('read_only', False) or flags.get('previous', False)
    flags.setdefault('create', options.path is not None and not opens_as_it_is)
    for name, value in given.items():
        _fill(struct, kinds, name, value)
    struct.flags = sum(FLAGS[name] for name, is_set in flags.items() if is_set)
    return struct


def table_struct(options: TableOptions) -> Any:
    """Returns the options of a table as the library takes them."""
    struct = _c.embank_table_options()
    library.embank_table_options_init(struct, ctypes.sizeof(struct))
    kinds = {field[0]: field[1] for field in _c.embank_table_options._fields_}
    for name, value in _given(options).items():
        _fill(struct, kinds, name, value)
    return struct


def store_options(struct: Any) -> StoreOptions:
    """Returns the options that the library has told."""
    values: dict[str, Any] = {name: bool(struct.flags & flag) for name, flag in FLAGS.items()}
    for field in dataclasses.fields(StoreOptions):
        if field.name in CHOICES:
            values[field.name] = choice_name(getattr(struct, field.name), CHOICES[field.name])
        elif field.name in PATHS:
            found = getattr(struct, field.name)
            values[field.name] = None if found is None else os.fsdecode(found)
        elif field.name not in FLAGS:
            values[field.name] = getattr(struct, field.name)
    return StoreOptions(**values)


def table_options(struct: Any) -> TableOptions:
    """Returns the options that the library has told."""
    initializer = choice_name(struct.initializer, INITIALIZERS)
    init = (initializer, struct.init_a, struct.init_b)[:1 + INITIALIZER_NUMBERS.get(initializer, 2)]
    values: dict[str, Any] = {'init': initializer if len(init) == 1 else init}
    for field in dataclasses.fields(TableOptions):
        if field.name in CHOICES:
            values[field.name] = choice_name(getattr(struct, field.name), CHOICES[field.name])
        elif field.name != 'init':
            values[field.name] = getattr(struct, field.name)
    return TableOptions(**values)


def differences(wanted: TableOptions, found: TableOptions) -> list[str]:
    """Says in which options a table differs from those that are wanted.

    >>> table = table_options(table_struct(TableOptions(dim=8, learning_rate=0.1)))
    >>> differences(TableOptions(dim=8, learning_rate=0.1), table)
    []
    >>> differences(TableOptions(dim=4, init=('constant', 1)), table)
    ['dim is 8, and not 4', "init is 'zero', and not ('constant', 1.0)"]
    """
    rounded = table_options(table_struct(wanted))
    return [f'{name} is {getattr(found, name)!r}, and not {getattr(rounded, name)!r}'
            for name in _given(wanted) if getattr(found, name) != getattr(rounded, name)]
