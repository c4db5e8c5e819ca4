"""Plain data as bytes, with every type kept."""

from __future__ import annotations

from enum import Enum
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rollouts import identical, odd_texts, values

from mooncake_config.store.packed import DEEPEST, pack, unpack


@given(st.dictionaries(odd_texts, values, max_size=3))
@example(
    {"a": np.array(["é", "bc"]), "b": np.array(["2026-01-01"], "M8[D]"), "c": np.array([[None, (1,)]], dtype=object)}
)
@example({"a": {(1, "b"): {2: 3}}, "b": {True: 1, "x": -(2**200)}, "c": 2**64, "d": -(2**63) - 1})
@example({"a": np.array(7), "b": np.longdouble(1) / 3, "c": np.str_("x"), "d": range(5, 1, -2)})
def test_comes_back(fields: dict[str, Any]) -> None:
    """Whatever is packed comes back identical in value and type."""
    assert identical(unpack(pack(fields)), fields)


def test_arrays_can_be_written_to() -> None:
    """An array that was packed is the reader's own."""
    array = unpack(pack({"a": np.arange(3)}))["a"]
    array[0] = 7
    assert array.tolist() == [7, 1, 2]


def test_bytearray() -> None:
    """A bytearray comes back as bytes, as it does from Ray's object store."""
    assert identical(unpack(pack({"a": [bytearray(b"x")]})), {"a": [b"x"]})


class Colour(Enum):
    """No data."""

    RED = 1


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"x": [1, PurePosixPath("/")]}, r"field\['x'\]\[1\] is a pathlib\.PurePosixPath"),
        (Colour.RED, r"field is a .*Colour"),
        ([{Colour.RED: 1}], r"field\[0\]\['a key'\] is a .*Colour"),
        (lambda: None, "field is a builtins.function"),
        (np.ma.masked_array([1]), "field is a numpy.ma.*MaskedArray"),
        (np.zeros(2, dtype=[("a", "i4")]), "field is an array of"),
    ],
)
def test_no_data(value: object, message: str) -> None:
    """An object that is no data is a TypeError that names its place and its type."""
    with pytest.raises(TypeError, match=message):
        pack({"field": value})


def test_depth() -> None:
    """What could not be read back because it is nested too deep is refused when it is put."""
    deep: Any = 1
    for _ in range(DEEPEST - 1):
        deep = (deep,)
    assert unpack(pack({"a": deep}))["a"] == deep
    with pytest.raises(ValueError, match="a: more than 100 containers"):
        pack({"a": [deep]})
    endless: list[Any] = []
    endless += [endless, endless]
    with pytest.raises(ValueError, match="more than 100"):
        pack({"a": endless})
