"""Plain data as bytes, with every type kept: for the values that no codec of Mooncake gives back unchanged.

It is msgpack with extension types for what msgpack would turn into something else: tuples, sets, arrays, NumPy's
numbers, integers beyond 64 bits, text with unpaired surrogates. It is data and never code: unlike pickle it cannot run
anything when it is read, and the segment of a Mooncake Store can be written by whoever reaches it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import msgpack  # type: ignore[import-untyped]  # no annotations upstream
import numpy as np

from mooncake_config.store.tensors import array_tensor, dtype_name, is_tensor, tensor_array

TUPLE, SET, FROZENSET, RANGE, INTEGER, TEXT, COMPLEX, ARRAY, NUMBER, OBJECTS, TENSOR = range(1, 12)
"""The extension types. A number is never used for something else."""

ARRAY_KINDS = frozenset("biufcSUmM")
"""The kinds of NumPy dtypes that are bytes and nothing else."""


DEEPEST = 100
"""Containers within containers. msgpack takes 511 and Python's stack fewer; a failure to read would come too late."""

Path = tuple[object, ...]
"""Where a value stands: the field, then a key or an index for each container on the way."""


def pack(fields: Mapping[str, object]) -> bytes:
    """The bytes of some fields of a dictionary.

    Raises:
        TypeError: a type that is not data, such as an instance of a class. It names the place.
        ValueError: nested too deep, or an item of more than 4 GiB.
    """
    plain = {_text(name, (name,)): _plain(value, (name,)) for name, value in fields.items()}
    packed: bytes = msgpack.packb(plain, use_bin_type=True, strict_types=True)
    return packed


def unpack(packed: bytes | memoryview) -> Any:
    """The fields that :func:`pack` was given."""
    return msgpack.unpackb(packed, raw=False, strict_map_key=False, ext_hook=_restored)


def _place(path: Path) -> str:
    return str(path[0]) + "".join(f"[{step!r}]" for step in path[1:])


def _plain(value: object, path: Path) -> object:
    """The value in the types of msgpack, the others wrapped in extension types."""
    if len(path) > DEEPEST:
        raise ValueError(f"{path[0]}: more than {DEEPEST} containers within each other cannot be stored")
    encode = _ENCODERS.get(type(value))
    if encode is not None:
        return encode(value, path)
    if isinstance(value, np.generic):
        return _extension(NUMBER, [*_array_parts(np.asarray(value), path)])
    if is_tensor(value):
        return _tensor(value, path)
    kind = type(value)
    raise TypeError(
        f"{_place(path)} is a {kind.__module__}.{kind.__qualname__}, which cannot be stored: store plain data, "
        "such as lists, dictionaries, text, numbers and NumPy arrays"
    )


def _extension(kind: int, content: object) -> object:
    return msgpack.ExtType(kind, msgpack.packb(content, use_bin_type=True, strict_types=True))


def _items(value: Any, path: Path) -> list[object]:
    return [_plain(item, (*path, index)) for index, item in enumerate(value)]


def _mapping(value: dict[Any, Any], path: Path) -> object:
    return {_plain(key, (*path, "a key")): _plain(item, (*path, key)) for key, item in value.items()}


def _integer(value: int, path: Path) -> object:
    if -(2**63) <= value < 2**64:
        return value
    size = value.bit_length() // 8 + 1
    return msgpack.ExtType(INTEGER, value.to_bytes(size, "little", signed=True))


def _text(value: str, path: Path) -> object:
    if value.isascii():
        return value
    encoded = value.encode("utf-8", "surrogatepass")
    try:
        encoded.decode("utf-8")
    except UnicodeDecodeError:
        return msgpack.ExtType(TEXT, encoded)
    return value


def _array(value: np.ndarray[Any, Any], path: Path) -> object:
    if value.dtype.kind == "O":
        return _extension(OBJECTS, [list(value.shape), _items(value.reshape(-1).tolist(), path)])
    return _extension(ARRAY, [*_array_parts(value, path)])


def _array_parts(value: np.ndarray[Any, Any], path: Path) -> tuple[str, list[int], bytes]:
    if value.dtype.kind not in ARRAY_KINDS:
        raise TypeError(
            f"{_place(path)} is an array of {value.dtype}, which cannot be stored: use numbers, text or times"
        )
    return value.dtype.str, list(value.shape), value.tobytes()


def _tensor(value: Any, path: Path) -> object:
    return _extension(TENSOR, [dtype_name(value), [*_array_parts(tensor_array(value), path)]])


_ENCODERS: dict[type, Callable[[Any, Path], object]] = {
    type(None): lambda value, _: value,
    bool: lambda value, _: value,
    float: lambda value, _: value,
    bytes: lambda value, _: value,
    int: _integer,
    str: _text,
    list: _items,
    dict: _mapping,
    tuple: lambda value, path: _extension(TUPLE, _items(value, path)),
    set: lambda value, path: _extension(SET, _items(value, path)),
    frozenset: lambda value, path: _extension(FROZENSET, _items(value, path)),
    range: lambda value, _: _extension(RANGE, [value.start, value.stop, value.step]),
    bytearray: lambda value, _: bytes(value),  # As Ray does.
    complex: lambda value, _: _extension(COMPLEX, [value.real, value.imag]),
    np.ndarray: _array,
}


def _restored(kind: int, data: bytes) -> Any:
    decode = _DECODERS.get(kind)
    return msgpack.ExtType(kind, data) if decode is None else decode(data)


def _array_of(dtype: str, shape: list[int], data: bytes) -> np.ndarray[Any, Any]:
    return np.frombuffer(bytearray(data), dtype=dtype, count=math.prod(shape)).reshape(shape)


def _objects_of(shape: list[int], items: list[Any]) -> np.ndarray[Any, Any]:
    array = np.empty(len(items), dtype=object)
    for index, item in enumerate(items):
        array[index] = item
    return array.reshape(shape)


_DECODERS: dict[int, Callable[[bytes], Any]] = {
    TUPLE: lambda data: tuple(unpack(data)),
    SET: lambda data: set(unpack(data)),
    FROZENSET: lambda data: frozenset(unpack(data)),
    RANGE: lambda data: range(*unpack(data)),
    INTEGER: lambda data: int.from_bytes(data, "little", signed=True),
    TEXT: lambda data: data.decode("utf-8", "surrogatepass"),
    COMPLEX: lambda data: complex(*unpack(data)),
    ARRAY: lambda data: _array_of(*unpack(data)),
    NUMBER: lambda data: _array_of(*unpack(data))[()],
    OBJECTS: lambda data: _objects_of(*unpack(data)),
    TENSOR: lambda data: _tensor_of(*unpack(data)),
}


def _tensor_of(name: str, parts: list[Any]) -> Any:
    return array_tensor(_array_of(*parts), name)
