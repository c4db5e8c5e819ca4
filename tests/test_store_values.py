"""What a spec promises."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rollouts import identical

from mooncake_config.store import ValueSpec
from mooncake_config.store.values import as_stored, checked_fields, is_plain, types_of


def stored(value: Any, codec: str, dtype: str | None = None) -> Any:
    """What comes out of the field ``f``."""
    return as_stored({"f": value}, {"f": ValueSpec(codec, dtype)})["f"]


@pytest.mark.parametrize(
    ("codec", "dtype", "value", "result"),
    [
        ("auto", None, (1, {2: 3}), (1, {2: 3})),
        ("ndarray", "int64", [1, True, None], [1, 1, None]),
        ("ndarray", "int64", range(3), [0, 1, 2]),
        ("ndarray", "float32", [0.1, 2], [float(np.float32(0.1)), 2.0]),
        ("ndarray", None, [1, 2.5], [1.0, 2.5]),
        ("ndarray", "bool", [], []),
        ("ndarray", "int8", [None, None], [None, None]),
        ("ndarray", "int16", np.arange(4).reshape(2, 2), np.arange(4, dtype=np.int16).reshape(2, 2)),
        ("ndarray", None, [np.float32(0.5), np.int8(1)], [0.5, 1.0]),
        ("typed_ragged", "int32", [[1], [], None, (2, 3)], [[1], [], None, [2, 3]]),
        ("typed_ragged", "int32", [np.arange(2), [7]], [np.arange(2, dtype=np.int32), [7]]),
        ("typed_ragged", None, [[1], [0.5], []], [[1.0], [0.5], []]),
        ("typed_ragged", None, [[], []], [[], []]),
        (
            "typed_ragged",
            "int32",
            np.arange(4).reshape(2, 2),
            [np.arange(2, dtype=np.int32), np.arange(2, 4, dtype=np.int32)],
        ),
        ("typed_ragged", "int64", [[[1, 2], [3, 4]]], [[[1, 2], [3, 4]]]),
        ("utf8_ragged", None, ("a", None), ["a", None]),
        ("bytes_ragged", None, [b"a", bytearray(b"b"), memoryview(b"c"), None], [b"a", b"b", b"c", None]),
        ("media_bytes", None, [b"a"], [b"a"]),
        ("media_list_ragged", None, [(b"a", b""), None, []], [[b"a", b""], None, []]),
        (
            "msgpack_ragged",
            None,
            [{"a": [1, b"x", None, {"b": 0.5}]}, "t", 7],
            [{"a": [1, b"x", None, {"b": 0.5}]}, "t", 7],
        ),
        ("json_ragged", None, [{1: (2, 3)}, None], [{"1": [2, 3]}, None]),
        ("ragged_tensor", None, [None], [None]),
        ("ragged_tensor_dict", None, [None, {}], [None, {}]),
    ],
)
def test_promise(codec: str, dtype: str | None, value: Any, result: Any) -> None:
    """What a codec makes of a value: numbers get the dtype, the container stays."""
    assert identical(stored(value, codec, dtype), result)


@pytest.mark.parametrize(
    ("codec", "dtype", "value", "message"),
    [
        ("ndarray", "int32", 7, "f: codec 'ndarray' is for a list with a number for each row, not int"),
        ("ndarray", "int32", "abc", "not str"),
        ("ndarray", "int32", ["a"], "not an array of numbers"),
        ("ndarray", "int32", [[1], [2]], "rows of numbers take 'typed_ragged'"),
        ("ndarray", "int32", [0.5], "f: float64 does not become int32"),
        ("ndarray", "int8", [300], "f: a number is out of the range of int8"),
        ("ndarray", "uint8", [-1], "f: a number is out of the range of uint8"),
        ("ndarray", "float32", [1e300], "f: a number is out of the range of float32"),
        ("ndarray", "float64", [2**70], "not an array of numbers, but of object"),
        (
            "typed_ragged",
            "int32",
            [[1], 7],
            r"f\[1\]: codec 'typed_ragged' is for an array or a list of numbers, not int",
        ),
        ("typed_ragged", "int32", [[1], [[2], [3, 4]]], r"f\[1\] is not an array of numbers"),
        ("typed_ragged", "int32", [["a"]], r"f\[0\] is not an array of numbers, but of <U1"),
        ("typed_ragged", "int32", [[1], np.array([2**40])], r"f\[1\]: a number is out of the range of int32"),
        ("utf8_ragged", None, ["a", b"b"], r"f\[1\]: codec 'utf8_ragged' is for a text or None, not bytes"),
        ("bytes_ragged", None, ["a"], r"f\[0\]: codec 'bytes_ragged' is for bytes"),
        ("media_list_ragged", None, [[1]], r"f\[0\]: codec 'media_list_ragged'"),
        ("media_list_ragged", None, [b"ab"], r"f\[0\]: codec 'media_list_ragged'"),
        ("msgpack_ragged", None, [{"a": 1}, {"a": (1,)}], r"f\[1\]: codec 'msgpack_ragged'.*'auto'"),
        ("msgpack_ragged", None, [{1: "a"}], r"f\[0\]"),
        ("json_ragged", None, [{"a": b""}], "what JSON can say"),
        (
            "ragged_tensor",
            None,
            [np.zeros(2)],
            r"f\[0\]: codec 'ragged_tensor' is for a torch tensor or None, not ndarray",
        ),
        ("ragged_tensor_dict", None, [[1]], r"f\[0\]"),
    ],
)
def test_broken_promise(codec: str, dtype: str | None, value: Any, message: str) -> None:
    """A value that a codec is not for is a ValueError that names the field and the row."""
    with pytest.raises(ValueError, match=message):
        stored(value, codec, dtype)


def test_plain() -> None:
    """Plain is what msgpack keeps: by exact type, with text keys, at any depth, and nothing that holds itself."""
    assert is_plain([{"a": [1, None, {"b": [b"", 0.5, "c", True]}]}, 7])
    endless: list[Any] = []
    endless += [endless, endless]
    for other in ([(1,)], {"a": {1: 2}}, [[bytearray()]], {"a": [[np.int64(1)]]}, [{1}], endless):
        assert not is_plain(other)


@given(st.lists(st.one_of(st.none(), st.booleans(), st.integers(), st.floats())))
def test_types_of_rows(rows: list[Any]) -> None:
    """The types of rows are the exact ones, in whatever order the rows stand."""
    assert types_of(rows) == set(map(type, rows))


def test_nothing_is_copied_in_vain() -> None:
    """An array that has its dtype already is handed on as it is."""
    rows = [np.arange(3, dtype=np.int32), np.arange(2, dtype=np.int32)]
    result = stored(rows, "typed_ragged", "int32")
    assert [row is given for row, given in zip(result, rows, strict=True)] == [True, True]


@pytest.mark.parametrize(
    ("value", "spec", "message"),
    [
        ([1], None, "put takes a dictionary of fields, not list"),
        ({1: 2}, None, "names of fields are text, not int: 1"),
        ({"a": 1}, ValueSpec("auto"), "value_spec maps a field to its ValueSpec"),
        ({"a": 1}, {"a": "auto"}, r"value_spec\['a'\] is str, not a ValueSpec"),
        ({"a": 1}, {"b": {"c": ValueSpec("auto")}}, r"value_spec\['b'\] is dict"),
    ],
)
def test_wrong_arguments(value: Any, spec: Any, message: str) -> None:
    """What put does not take is a TypeError, before anything is looked at."""
    with pytest.raises(TypeError, match=message):
        checked_fields(value, spec)


def test_absent_fields() -> None:
    """A spec of a field that the value does not have is left aside."""
    assert checked_fields({"a": 1}, {"b": ValueSpec("auto")}) == ({"a": 1}, {})
