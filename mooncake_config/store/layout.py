"""A dictionary in the form that Mooncake's structured objects take, and back.

Mooncake stores columns: one value for each row, all columns of a *stage* equally long. So the fields that have rows
make up one stage, lists of numbers of another length (``total_lengths`` of a whole batch in a shard) one more for each
length, small single values travel inside of the ref, and what no codec gives back unchanged is packed into bytes
(``packed``). Each field keeps its name, so that a plain ``MooncakeBundleTransfer.get`` sees an ordinary dictionary;
what it cannot see, such as the order of the fields or that a column was a tuple, is written beside them as *marks*.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain, groupby
from typing import Any
from urllib.parse import quote

import msgpack  # type: ignore[import-untyped]  # no annotations upstream
import numpy as np

from mooncake_config.store import ROLLOUT_VALUE_SPEC, ValueSpec
from mooncake_config.store.packed import pack, unpack
from mooncake_config.store.tensors import array_tensor, dtype_name, is_tensor, is_tensor_type, tensor_array
from mooncake_config.store.values import NUMBER_KINDS, Rows, is_plain, promised, types_of

OWN = "mooncake_config"
"""Our key in a ref's handle, and the column of packed fields. No field of a caller is stored under this name."""

INLINE_CHARACTERS = 512
"""What a value may take as JSON and still travel inside of the ref."""

MANY_CHARACTERS = 16 * 1024 * 1024
"""Characters of a column of texts from which msgpack may exceed what Mooncake reads back of it (100 MiB)."""

MAIN_STAGE = "rows"
PACKED_STAGE = "packed"
PACKED = "packed"
"""The mark of a field that is packed."""

_SIMPLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")

Schema = tuple[str, dict[str, str]]
"""Codec and metadata of Mooncake's ``FieldSchema``."""


def wire_name(name: str) -> str:
    """The name of a field in Mooncake's keys: no slash, dot or control character, and never ``OWN``."""
    if name == OWN:
        return "%" + name
    if _SIMPLE_NAME.fullmatch(name):
        return name
    return "%" + quote(name, safe="", errors="surrogatepass").replace(".", "%2E")


@dataclass(frozen=True)
class Column:
    """One field as Mooncake takes it.

    Without a ``schema`` the values are an array, stored as it is. ``moves`` tells that the column can be in a stage of
    another length: Mooncake decodes most codecs with the length of the whole object.
    """

    values: Any
    schema: Schema | None = None
    mark: str = ""
    moves: bool = False


@dataclass(frozen=True)
class Plan:
    """Where each field of a dictionary goes: stage → column, and values in the ref, both by their names in the store.

    ``marks`` has every field by its own name, in order.
    """

    stages: dict[str, dict[str, Column]] = field(default_factory=dict)
    inline: dict[str, Any] = field(default_factory=dict)
    marks: dict[str, str] = field(default_factory=dict)

    def place(self, stage: str, name: str, column: Column) -> None:
        """Puts a field into a stage."""
        self.stages.setdefault(stage, {})[wire_name(name)] = column
        self.marks[name] = column.mark


def plan(fields: Mapping[str, Any], specs: Mapping[str, ValueSpec], packed: Iterable[str] = ()) -> Plan:
    """Where each field goes. The fields with names in ``packed`` (those in the store) are packed whatever they are.

    Raises:
        TypeError: a field holds an object that is no data.
        ValueError: a field does not hold what its spec says.
    """
    values = {name: promised(name, v, specs[name]) if name in specs else v for name, v in fields.items()}
    columns = {name: _column(name, v, specs.get(name)) for name, v in values.items() if wire_name(name) not in packed}
    rows = _row_count(column for column in columns.values() if column is not None)
    # The main stage comes first: its length is that of the whole object.
    made = Plan({} if rows is None else {MAIN_STAGE: {}})
    left: dict[str, Any] = {}
    for name, value in values.items():
        column = columns.get(name)
        if column is not None and len(column.values) == rows:
            made.place(MAIN_STAGE, name, column)
        elif wire_name(name) not in packed and _fits_inline(value):
            made.inline[wire_name(name)] = value
            made.marks[name] = ""
        elif column is not None and column.moves:
            made.place(f"{MAIN_STAGE}-{len(column.values)}", name, column)
        else:
            left[name] = value.as_given() if isinstance(value, Rows) else value
            made.marks[name] = PACKED
    if left or not made.stages:
        # An object without a stage would be in no store, and could be neither removed nor missed.
        made.stages[PACKED_STAGE] = {OWN: Column(np.frombuffer(pack(left), np.uint8))}
    return made


def _row_count(columns: Iterable[Column]) -> int | None:
    """The length of the main stage: the most common one, of those columns that cannot move where there are any.

    None where there is no column; with a length there is always one of it.
    """
    given = list(columns)
    lengths = Counter(len(column.values) for column in [c for c in given if not c.moves] or given)
    return lengths.most_common(1)[0][0] if lengths else None


def unencodable(made: Plan) -> set[str]:
    """The names of columns whose rows their codec refuses: integers beyond 64 bits, unpaired surrogates in a text."""
    return {
        name
        for columns in made.stages.values()
        for name, column in columns.items()
        if column.schema is not None and not _encodes(column.schema[0], column.values)
    }


def _encodes(codec: str, rows: Iterable[Any]) -> bool:
    try:
        for row in rows:
            if codec == "utf8_ragged" and row is not None:
                row.encode()
            elif codec == "msgpack_ragged":
                msgpack.packb(row, use_bin_type=True, strict_types=True)
    except (ValueError, TypeError, OverflowError):
        return False
    return True


def _fits_inline(value: Any) -> bool:
    """Whether a value is small, and JSON gives it back unchanged."""
    return _room_after(value, INLINE_CHARACTERS) >= 0 and len(json.dumps(value)) <= INLINE_CHARACTERS


def _room_after(value: Any, room: int) -> int:
    """The room that a JSON value leaves, roughly; below 0 where it is none, or too large. Stops when it is used up."""
    kind = type(value)
    if kind is dict and all(type(key) is str for key in value):
        items: Iterable[Any] = value.values()
    elif kind is list:
        items = value
    else:
        return room - _SCALARS[kind](value) if kind in _SCALARS else -1
    for item in items:
        if room < 0:
            break
        room = _room_after(item, room)
    return room - 1


_SCALARS: dict[type, Callable[[Any], int]] = {
    type(None): lambda _: 1,
    bool: lambda _: 1,
    float: lambda _: 1,
    int: int.bit_length,
    str: len,
}


# --- columns ---


def _column(name: str, value: Any, spec: ValueSpec | None) -> Column | None:
    """The column of a field, or None where no codec gives the value back unchanged."""
    if isinstance(value, Rows):
        return _rows_column(value)
    if spec is None or spec.codec == "auto":
        return _natural_column(name, value)
    if spec.codec == "ndarray":
        return _promised_numbers(name, value, spec.dtype)
    if spec.codec == "ragged_tensor":
        return _tensor_rows(value)
    return Column(value, (spec.codec, {}))


def _promised_numbers(name: str, value: Any, dtype: str | None) -> Column | None:
    """One number for each row: what was promised is not looked through once more."""
    if dtype is None or type(value) is not list or not value:
        return _natural_column(name, value)
    return Column(value, ("ndarray", {"dtype": dtype}), moves=True)


def _natural_column(name: str, value: Any) -> Column | None:
    kind = type(value)
    if kind is np.ndarray:
        return Column(value, moves=True) if value.ndim and value.dtype.kind in NUMBER_KINDS else None
    if is_tensor(value):
        return Column(tensor_array(value), mark=_tensor_mark(value), moves=True) if value.ndim else None
    if kind is list:
        return _list_column(name, value)
    if kind is tuple:
        return _sequence_column(value, "tuple")
    if kind is range:
        return _sequence_column(value, f"range:{value.start}:{value.stop}:{value.step}")
    return None


def _sequence_column(value: Any, mark: str) -> Column | None:
    column = _scalar_column(list(value), types_of(value))
    return column and Column(column.values, column.schema, mark, moves=True)


def _list_column(name: str, value: list[Any]) -> Column | None:
    if not value:
        return None
    kinds = types_of(value)
    column = _scalar_column(value, kinds)
    if column is not None:
        return column
    present = kinds - {type(None)}
    make = _ROW_COLUMNS.get(next(iter(present))) if len(present) == 1 else None
    if make is not None:
        column = make(name, value)
    elif any(map(is_tensor_type, present)):
        return _tensor_rows(value)
    if column is None and is_plain(value):
        column = Column(value, ("msgpack_ragged", {}))
    return column


def _scalar_column(value: list[Any], kinds: set[type]) -> Column | None:
    """The column of a list with one number for each row, all of one type, some of them None."""
    present = kinds - {type(None)}
    if len(present) != 1:
        return None
    (kind,) = present
    if kind is int:
        ints = value if len(kinds) == 1 else [item for item in value if item is not None]
        return Column(value, _INT64, moves=True) if min(ints) >= -(2**63) and max(ints) < 2**63 else None
    if kind in _NUMBERS:
        return Column(value, _NUMBERS[kind], moves=True)
    if issubclass(kind, np.generic) and len(kinds) == 1:
        scalars = np.array(value)
        return Column(scalars, mark="scalars", moves=True) if scalars.dtype.kind in NUMBER_KINDS else None
    return None


_INT64: Schema = ("ndarray", {"dtype": "int64"})
_NUMBERS: dict[type, Schema] = {float: ("ndarray", {"dtype": "float64"}), bool: ("ndarray", {"dtype": "bool"})}


def _texts(name: str, value: list[Any]) -> Column:
    # As msgpack they are encoded and decoded five times as fast as in the codec for texts (0.3.13.post1).
    characters = sum(map(len, filter(None, value)))
    return Column(value, ("msgpack_ragged" if characters <= MANY_CHARACTERS else "utf8_ragged", {}))


def _byte_rows(name: str, value: list[Any]) -> Column:
    return Column(value, ("bytes_ragged", {}))


def _array_rows(name: str, value: list[Any]) -> Column | None:
    dtypes = {item.dtype for item in value if item is not None}
    dtype = dtypes.pop()
    if dtypes or dtype.kind not in NUMBER_KINDS or not _alike(value):
        return None
    return _ragged(value, dtype, f"arrays:{dtype.str}")


def _alike(rows: Collection[Any]) -> bool:
    """Whether Mooncake keeps the shapes of arrays: all of one number of dimensions, and none of them lost.

    A number beside rows of numbers becomes a row (0.3.13.post1); through lists, the way of 0.3.12.post1, a row of no
    dimension and an empty one of several lose their shape.
    """
    dimensions = {item.ndim for item in rows if item is not None}
    return dimensions <= {1} or (
        len(dimensions) == 1 and 0 not in dimensions and all(item.size for item in rows if item is not None)
    )


def _tensor_rows(value: list[Any]) -> Column | None:
    present = [item for item in value if item is not None]
    if not all(map(is_tensor, present)) or len({item.dtype for item in present}) > 1:
        return None
    if not _alike(present):
        return None
    arrays = [None if item is None else tensor_array(item) for item in value]
    mark = _tensor_mark(present[0]) if present else ""
    return _ragged(arrays, _dtype_of(arrays), mark)


def _tensor_mark(tensor: Any) -> str:
    return f"tensor:{dtype_name(tensor)}"


def _dtype_of(arrays: Iterable[Any]) -> np.dtype[Any]:
    return next((item.dtype for item in arrays if item is not None), np.dtype(np.int64))


def _list_rows(name: str, value: list[Any]) -> Column | None:
    """Lists of Python numbers, converted once, into the narrowest of the dtypes at hand that gives them back."""
    kind = type(next(chain.from_iterable(filter(None, value)), 0))
    preferred = ROLLOUT_VALUE_SPEC.get(name)
    for dtype in _LIST_DTYPES.get(kind, ()):
        if dtype.itemsize < 8 and (preferred is None or preferred.dtype != dtype.name):
            continue
        try:
            with np.errstate(over="ignore"):
                return _ragged([None if item is None else _number_row(item, kind, dtype) for item in value], dtype)
        except (OverflowError, ValueError):
            continue
    return None


_LIST_DTYPES: dict[type, list[np.dtype[Any]]] = {
    int: [np.dtype(np.int32), np.dtype(np.int64)],
    float: [np.dtype(np.float32), np.dtype(np.float64)],
}
"""Python's numbers and the dtypes, narrow ones first, that may hold them."""


def _number_row(numbers: list[Any], kind: type, dtype: np.dtype[Any]) -> memoryview:
    """The memory of a row, which Mooncake takes for a list, and gives back as one, as it does all but NumPy arrays.

    Raises:
        OverflowError: an integer is out of the range of 64 bits.
        ValueError: a number is of another type, or not the same in this dtype.
    """
    # A set of the types takes 23 ns a number, groupby 14.
    if not all(found is kind for found, _ in groupby(numbers, type)):
        raise ValueError(kind.__name__)
    wide = np.fromiter(numbers, _WIDEST[dtype.kind], len(numbers))
    if dtype == wide.dtype:
        return wide.data
    narrow = wide.astype(dtype)
    # As bytes, since NaN is not equal to itself.
    if narrow.astype(wide.dtype).tobytes() != wide.tobytes():
        raise ValueError(dtype.name)
    return narrow.data


_WIDEST = {"i": np.int64, "f": np.float64}


def _rows_column(rows: Rows) -> Column | None:
    """Rows with a spec: those that came as a list are handed over as memory, which Mooncake takes for a list."""
    listed = any(rows.listed)
    if not _alike(rows.arrays) or (listed and not rows.all_listed()):
        return None
    dtype = _dtype_of(rows.arrays)
    if rows.tensor is not None:
        return _ragged(rows.arrays, dtype, f"tensor:{rows.tensor}")
    if listed:
        return _ragged([None if item is None else item.data for item in rows.arrays], dtype)
    return _ragged(rows.arrays, dtype, f"arrays:{dtype.str}")


def _ragged(rows: list[Any], dtype: np.dtype[Any], mark: str = "") -> Column:
    # np.array(rows, dtype=object) would look into rows of equal length.
    values = np.fromiter(rows, dtype=object, count=len(rows))
    return Column(values, ("typed_ragged", {"dtype": dtype.str}), mark)


_ROW_COLUMNS: dict[type, Callable[[str, list[Any]], Column | None]] = {
    str: _texts,
    bytes: _byte_rows,
    np.ndarray: _array_rows,
    list: _list_rows,
}


# --- and back ---


def restored(native: Mapping[str, Any], marks: Mapping[str, str] | None) -> dict[str, Any]:
    """The dictionary that was put, of what Mooncake read. A ref that another program made has no marks."""
    if marks is None:
        return {name: _unwrapped(value) for name, value in native.items()}
    own = native.get(OWN)
    packed = {} if own is None else unpack(memoryview(own).cast("B"))
    return {
        name: packed[name] if mark == PACKED else _unmarked(mark, _unwrapped(native[wire_name(name)]))
        for name, mark in marks.items()
    }


def _unwrapped(value: Any) -> Any:
    """The value without Mooncake's own subclasses of list and array."""
    if isinstance(value, np.ndarray):
        return value.view(np.ndarray)
    if not isinstance(value, list):
        return value
    first = next((item for item in value if item is not None), None)
    if isinstance(first, np.ndarray) and type(first) is not np.ndarray:
        return [item.view(np.ndarray) if isinstance(item, np.ndarray) else item for item in value]
    return list(value)


def _unmarked(mark: str, value: Any) -> Any:
    kind, _, detail = mark.partition(":")
    return _MARKS[kind](value, detail)


def _tensors(value: Any, name: str) -> Any:
    if isinstance(value, np.ndarray):
        return array_tensor(value, name)
    rows = _arrays(value, "<i2" if name == "bfloat16" else f"{name}")
    return [None if row is None else array_tensor(row, name) for row in rows]


def _arrays(rows: list[Any], dtype: str) -> list[Any]:
    """Rows that were arrays: Mooncake before 0.3.13 gives lists."""
    if any(isinstance(row, np.ndarray) for row in rows):
        return rows
    return [None if row is None else np.asarray(row, dtype) for row in rows]


_MARKS: dict[str, Callable[[Any, str], Any]] = {
    "": lambda value, _: value,
    "tuple": lambda value, _: tuple(value),
    "range": lambda _, detail: range(*map(int, detail.split(":"))),
    "scalars": lambda value, _: list(value),
    "tensor": _tensors,
    "arrays": _arrays,
}


def pool_backed(native: Mapping[str, Any]) -> Iterable[tuple[Any, Any]]:
    """The pieces of the transfer buffer that a result uses: the owner of each, and the object all its arrays rest on.

    ``_mooncake_pool_owner`` is the attribute that ``MooncakeBundleTransfer.release_result`` looks for.
    """
    for value in native.values():
        arrays = [value] if isinstance(value, np.ndarray) else value if isinstance(value, list) else ()
        used = next((item for item in arrays if item is not None), None)
        if not isinstance(used, np.ndarray):
            continue
        owner = getattr(value, "_mooncake_pool_owner", None) or getattr(used, "_mooncake_pool_owner", None)
        if owner is not None:
            while isinstance(used.base, np.ndarray):
                used = used.base
            yield owner, used.base


def nbytes(column: Column) -> int:
    """What a column takes, roughly, in bytes."""
    values = column.values
    if isinstance(values, np.ndarray) and values.dtype.kind != "O":
        return int(values.nbytes)
    return sum(item.nbytes if hasattr(item, "nbytes") else sys.getsizeof(item) for item in values)
