"""What a ``ValueSpec`` promises: the conversion of a field's value, the same whichever backend stores it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Any

import numpy as np

from mooncake_config.store import ValueSpec
from mooncake_config.store.tensors import array_tensor, dtype_name, is_tensor, plain_tensor, tensor_array

Array = np.ndarray[Any, Any]

NUMBER_KINDS = frozenset("biufc")
"""The kinds of dtypes that are numbers of a fixed width."""

PLAIN = frozenset({type(None), bool, int, float, str, bytes})
"""The types that msgpack gives back unchanged, beside lists, and dictionaries with text keys."""


@dataclass(frozen=True)
class Rows:
    """Rows of numbers: an array each, or None. ``listed`` tells of each row whether it came as a list.

    ``tensor`` is the name of the torch dtype where the rows came as torch tensors.
    """

    arrays: list[Array | None]
    listed: list[bool]
    tensor: str | None = None

    def all_listed(self) -> bool:
        """Whether every row came as a list; None is either."""
        return all(listed for array, listed in zip(self.arrays, self.listed, strict=True) if array is not None)

    def as_given(self) -> list[Any]:
        """The rows in the containers that they came in."""
        if self.tensor is not None:
            return [None if array is None else array_tensor(array, self.tensor) for array in self.arrays]
        return [
            array.tolist() if listed and array is not None else array
            for array, listed in zip(self.arrays, self.listed, strict=True)
        ]


def checked_fields(
    value: Mapping[str, Any], value_spec: Mapping[str, ValueSpec] | None
) -> tuple[dict[str, Any], Mapping[str, ValueSpec]]:
    """The fields of a value, and the specs of those that have one.

    Raises:
        TypeError: not a mapping with text keys, or a spec that is no mapping of field → ``ValueSpec``.
    """
    if not isinstance(value, Mapping):
        raise TypeError(f"put takes a dictionary of fields, not {type(value).__name__}")
    for name in value:
        if type(name) is not str:
            raise TypeError(f"the names of fields are text, not {type(name).__name__}: {name!r}")
    specs = {} if value_spec is None else value_spec
    if not isinstance(specs, Mapping):
        raise TypeError(f"value_spec maps a field to its ValueSpec; this is {type(value_spec).__name__}")
    for name, spec in specs.items():
        if not isinstance(spec, ValueSpec):
            raise TypeError(f"value_spec[{name!r}] is {type(spec).__name__}, not a ValueSpec")
    return dict(value), {name: spec for name, spec in specs.items() if name in value}


def promised(name: str, value: Any, spec: ValueSpec) -> Any:
    """The value that comes out of a field stored with a spec. ``Rows`` stands for rows of numbers.

    Raises:
        ValueError: the value is not what the codec is for, or a number does not fit the dtype.
    """
    return _PROMISES[spec.codec](name, value, spec)


def as_stored(fields: dict[str, Any], specs: Mapping[str, ValueSpec]) -> dict[str, Any]:
    """The fields as they come out again."""
    stored = dict(fields)
    for name, spec in specs.items():
        value = promised(name, fields[name], spec)
        stored[name] = value.as_given() if isinstance(value, Rows) else value
    return stored


def _as_it_is(name: str, value: Any, spec: ValueSpec) -> Any:
    return value


def _row_list(name: str, value: Any, spec: ValueSpec) -> list[Any]:
    if isinstance(value, (list, tuple, range)) or (isinstance(value, np.ndarray) and value.ndim):
        return list(value)
    raise ValueError(
        f"{name}: codec {spec.codec!r} is for a list with {_CODEC_ROWS[spec.codec]} for each row, "
        f"not {type(value).__name__}"
    )


_CODEC_ROWS = {
    "ndarray": "a number",
    "typed_ragged": "an array or a list of numbers",
    "utf8_ragged": "a text or None",
    "bytes_ragged": "bytes or None",
    "media_bytes": "bytes or None",
    "media_list_ragged": "a list of bytes or None",
    "msgpack_ragged": "plain data",
    "json_ragged": "what JSON can say",
    "ragged_tensor": "a torch tensor or None",
    "ragged_tensor_dict": "a dictionary of torch tensors or None",
}


def _wrong_row(name: str, row: int, item: object, spec: ValueSpec) -> ValueError:
    return ValueError(
        f"{name}[{row}]: codec {spec.codec!r} is for {_CODEC_ROWS[spec.codec]}, not {type(item).__name__}"
    )


def numbers(name: str, value: Any) -> Array:
    """The array of a list of numbers, in NumPy's common dtype.

    Raises:
        ValueError: not numbers, or lists of unequal length.
    """
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name} is not an array of numbers: {error}") from None
    if array.dtype.kind not in NUMBER_KINDS:
        raise ValueError(f"{name} is not an array of numbers, but of {array.dtype}")
    return array


def cast(name: str, array: Array, dtype: str | np.dtype[Any] | None) -> Array:
    """The array with another dtype; the same object where nothing changes.

    Raises:
        ValueError: a number would become another one: a fraction as an integer, an integer out of range, a float that
            overflows.
    """
    target = array.dtype if dtype is None else np.dtype(dtype)
    if array.dtype == target:
        return array
    if array.size == 0 or np.can_cast(array.dtype, target, "safe"):
        return array.astype(target)
    if not (np.can_cast(array.dtype, target, "same_kind") or {array.dtype.kind, target.kind} <= {"i", "u"}):
        raise ValueError(f"{name}: {array.dtype} does not become {target} without a change of its numbers")
    try:
        with np.errstate(over="raise"):
            converted = array.astype(target)
    except FloatingPointError:
        raise ValueError(f"{name}: a number is out of the range of {target}") from None
    if target.kind in "iu" and not np.array_equal(converted, array):
        raise ValueError(f"{name}: a number is out of the range of {target}")
    return converted


def _number_rows(name: str, value: Any, spec: ValueSpec) -> Rows:
    given = _row_list(name, value, spec)
    if _are_right(given, spec):
        return Rows(given, [False] * len(given))
    if any(map(is_tensor, given)):
        return _tensor_rows(name, _tensors(name, given, spec), spec)
    arrays: list[Array | None] = []
    for row, item in enumerate(given):
        if not (item is None or isinstance(item, (list, tuple, np.ndarray))):
            raise _wrong_row(name, row, item, spec)
        arrays.append(None if item is None else numbers(f"{name}[{row}]", item))
    dtype = spec.dtype or _common_dtype(arrays)
    return Rows(
        [None if array is None else cast(f"{name}[{row}]", array, dtype) for row, array in enumerate(arrays)],
        [not isinstance(item, np.ndarray) for item in given],
    )


def types_of(rows: Iterable[object]) -> set[type]:
    """The types of rows. Like rows stand together, and a group is passed through in half the time of a set."""
    return {kind for kind, _ in groupby(rows, type)}


def _are_right(rows: list[Any], spec: ValueSpec) -> bool:
    """Whether rows are arrays of one dtype, the one that was asked for: the usual case, and there may be thousands."""
    if not types_of(rows) <= {np.ndarray, type(None)}:
        return False
    dtypes = {row.dtype for row in rows if row is not None}
    return len(dtypes) == 1 and (dtype := dtypes.pop()).kind in NUMBER_KINDS and spec.dtype in {None, dtype.name}


def _tensor_rows(name: str, tensors: list[Any], spec: ValueSpec) -> Rows:
    dtype = spec.dtype or next(dtype_name(tensor) for tensor in tensors if tensor is not None)
    arrays = [
        None if tensor is None else _tensor_row(f"{name}[{row}]", tensor, spec) for row, tensor in enumerate(tensors)
    ]
    return Rows(arrays, [False] * len(arrays), dtype)


def _tensor_row(name: str, tensor: Any, spec: ValueSpec) -> Array:
    # float32 holds every bfloat16, and NumPy can go on from there.
    plain = tensor.float() if spec.dtype and dtype_name(tensor) == "bfloat16" else tensor
    return cast(name, tensor_array(plain), spec.dtype)


def _common_dtype(arrays: list[Array | None]) -> np.dtype[Any]:
    """NumPy's common dtype; an empty row has no say, since an empty list has no type."""
    dtypes = {array.dtype for array in arrays if array is not None and array.size}
    return np.result_type(*dtypes) if dtypes else np.dtype(np.int64)


_PYTHON_NUMBERS: dict[str | None, type] = {"int64": int, "float64": float, "bool": bool}


def _are_exact(given: list[Any], dtype: str | None) -> bool:
    """Whether Python's numbers are what comes out of the dtype, without a conversion: again the usual case."""
    if types_of(given) != {_PYTHON_NUMBERS.get(dtype)}:
        return False
    return dtype != "int64" or (min(given) >= -(2**63) and max(given) < 2**63)


def _column(name: str, value: Any, spec: ValueSpec) -> Any:
    if isinstance(value, np.ndarray) and value.ndim:
        return cast(name, numbers(name, value), spec.dtype)
    given = _row_list(name, value, spec)
    if _are_exact(given, spec.dtype):
        return given
    present = [item for item in given if item is not None]
    array = numbers(name, present) if present else np.empty(0, spec.dtype)
    if array.ndim != 1:
        raise ValueError(f"{name}: codec 'ndarray' is for one number for each row; rows of numbers take 'typed_ragged'")
    converted = iter(cast(name, array, spec.dtype).tolist())
    return [None if item is None else next(converted) for item in given]


def _texts(name: str, value: Any, spec: ValueSpec) -> list[str | None]:
    rows = _row_list(name, value, spec)
    for row, item in enumerate(rows):
        if not (item is None or isinstance(item, str)):
            raise _wrong_row(name, row, item, spec)
    return [None if item is None else str(item) for item in rows]


def _bytes(name: str, value: Any, spec: ValueSpec) -> list[bytes | None]:
    return [None if item is None else _bytes_of(name, row, item, spec) for row, item in _numbered(name, value, spec)]


def _numbered(name: str, value: Any, spec: ValueSpec) -> enumerate[Any]:
    return enumerate(_row_list(name, value, spec))


def _bytes_of(name: str, row: int, item: Any, spec: ValueSpec) -> bytes:
    if not isinstance(item, (bytes, bytearray, memoryview)):
        raise _wrong_row(name, row, item, spec)
    return bytes(item)


def _byte_lists(name: str, value: Any, spec: ValueSpec) -> list[list[bytes] | None]:
    rows: list[list[bytes] | None] = []
    for row, item in _numbered(name, value, spec):
        if not (item is None or isinstance(item, (list, tuple))):
            raise _wrong_row(name, row, item, spec)
        rows.append(None if item is None else [_bytes_of(name, row, part, spec) for part in item])
    return rows


def is_plain(value: Any) -> bool:
    """Whether msgpack gives the value back equal in value and type, integers of more than 64 bits left aside.

    It is asked of every prompt and every metadata, so it goes through a level of containers at a time, not an item.
    """
    level = [value]
    for depth in range(_LEVELS):
        kinds = set(map(type, level))
        if kinds <= PLAIN:
            return True
        if not kinds <= _PLAIN_OR_CONTAINER:
            return False
        if depth >= _SHARED_FROM:
            level = list({id(item): item for item in level}.values())
        tables = _of_type(dict, level, kinds)
        if not set(map(type, set().union(*tables))) <= {str}:
            return False
        inside = list(chain.from_iterable(map(dict.values, tables)))
        inside.extend(chain.from_iterable(_of_type(list, level, kinds)))
        level = inside
    return False


def _of_type(kind: type, items: list[Any], kinds: set[type]) -> list[Any]:
    if kind not in kinds:
        return []
    return items if len(kinds) == 1 else [item for item in items if type(item) is kind]


_PLAIN_OR_CONTAINER = PLAIN | {list, dict}
_LEVELS = 100
_SHARED_FROM = 8
"""The level from which on each container is looked at once: one that holds itself twice doubles with every level."""


def _plain_rows(name: str, value: Any, spec: ValueSpec) -> list[Any]:
    rows = _row_list(name, value, spec)
    if not is_plain(rows):
        row = next(row for row, item in enumerate(rows) if not is_plain(item))
        raise ValueError(
            f"{name}[{row}]: codec 'msgpack_ragged' is for text, bytes, numbers, None, lists, and dictionaries "
            "with text keys; codec 'auto' takes tuples, arrays and other keys too"
        )
    return rows


def _json_rows(name: str, value: Any, spec: ValueSpec) -> list[Any]:
    try:
        return [json.loads(json.dumps(item)) for item in _row_list(name, value, spec)]
    except (TypeError, RecursionError) as error:
        raise ValueError(f"{name}: codec 'json_ragged' is for what JSON can say: {error}") from None


def _tensors(name: str, value: Any, spec: ValueSpec) -> list[Any]:
    rows = _row_list(name, value, spec)
    for row, item in enumerate(rows):
        if not (item is None or is_tensor(item)):
            raise _wrong_row(name, row, item, spec)
    if len({item.dtype for item in rows if item is not None}) > 1:
        raise ValueError(f"{name}: codec 'ragged_tensor' is for tensors of one dtype")
    return [None if item is None else plain_tensor(item) for item in rows]


def _tensor_dicts(name: str, value: Any, spec: ValueSpec) -> list[dict[str, Any] | None]:
    rows: list[dict[str, Any] | None] = []
    for row, item in _numbered(name, value, spec):
        if not (item is None or (isinstance(item, dict) and all(map(is_tensor, item.values())))):
            raise _wrong_row(name, row, item, spec)
        rows.append(None if item is None else {key: plain_tensor(tensor) for key, tensor in item.items()})
    return rows


_PROMISES: dict[str, Callable[[str, Any, ValueSpec], Any]] = {
    "auto": _as_it_is,
    "ndarray": _column,
    "typed_ragged": _number_rows,
    "utf8_ragged": _texts,
    "bytes_ragged": _bytes,
    "media_bytes": _bytes,
    "media_list_ragged": _byte_lists,
    "msgpack_ragged": _plain_rows,
    "json_ragged": _json_rows,
    "ragged_tensor": _tensors,
    "ragged_tensor_dict": _tensor_dicts,
}
