"""Where each field of a dictionary goes. That it all comes back is the matter of the tests over a real store."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rollouts import identical, odd_texts, rollout

from mooncake_config.store import ValueSpec
from mooncake_config.store.layout import OWN, PACKED, Plan, nbytes, plan, restored, unencodable, wire_name


def stages(made: Plan) -> dict[str, list[str]]:
    """The names of the columns of each stage."""
    return {stage: list(columns) for stage, columns in made.stages.items()}


def schema(value: Any, name: str = "f") -> tuple[str, str | None, str] | None:
    """Codec, dtype and mark of a field's column; None where it has none."""
    made = plan({name: value}, {})
    column = next((columns[wire_name(name)] for columns in made.stages.values() if wire_name(name) in columns), None)
    if column is None:
        return None
    if column.schema is None:
        return ("array", str(column.values.dtype), column.mark)
    return (column.schema[0], column.schema[1].get("dtype"), column.mark)


def test_rollout() -> None:
    """A rollout makes one stage of rows; lists of a whole batch make another, or are in the ref while short."""
    made = plan(rollout(), {})
    assert stages(made) == {
        "rows": [name for name in rollout() if name not in {"raw_reward", "total_lengths"}],
    }
    assert list(made.inline) == ["raw_reward", "total_lengths"]
    assert list(made.marks) == list(rollout())
    large = plan(rollout(rows=400), {})
    assert stages(large)["rows-800"] == ["raw_reward", "total_lengths"]
    assert large.inline == {}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.zeros((2, 3), np.float16), ("array", "float16", "")),
        ([np.zeros(2, np.int8), None], ("typed_ragged", "|i1", "arrays:|i1")),
        ([[1], [2, 3]], ("typed_ragged", "<i8", "")),
        ([[0.5], []], ("typed_ragged", "<f8", "")),
        ([1, None], ("ndarray", "int64", "")),
        ([0.5, 1.0], ("ndarray", "float64", "")),
        ([True, False], ("ndarray", "bool", "")),
        (["a", None], ("msgpack_ragged", None, "")),
        ([b"a"], ("bytes_ragged", None, "")),
        ([{"a": 1}, None], ("msgpack_ragged", None, "")),
        ([1, 0.5], ("msgpack_ragged", None, "")),
        ([[1], [0.5]], ("msgpack_ragged", None, "")),
        ([[True], [False]], ("msgpack_ragged", None, "")),
        ([None, None], ("msgpack_ragged", None, "")),
        ((1, 2), ("ndarray", "int64", "tuple")),
        (range(5, 1, -2), ("ndarray", "int64", "range:5:1:-2")),
        ([np.float32(1), np.float32(2)], ("array", "float32", "scalars")),
        ([{1: "a"}], None),
        ([2**64], ("msgpack_ragged", None, "")),
        ([np.zeros(2, np.int8), np.zeros(2, np.int16)], None),
        ([np.zeros(2), np.zeros(())], None),
        ([np.zeros(2), [1.0]], None),
        (np.zeros(()), None),
        (np.array(["a"]), None),
        ((1, "a"), None),
        ({"a": 1}, None),
        (7, None),
    ],
)
def test_codecs(value: Any, expected: tuple[str, str | None, str] | None) -> None:
    """A field takes the codec that gives its type back, and none where there is no such codec."""
    assert schema(value) == expected


@pytest.mark.parametrize(
    ("name", "value", "dtype"),
    [
        ("tokens", [[1], [2]], "<i4"),
        ("tokens", [[1], [2**31]], "<i8"),
        ("rollout_log_probs", [[0.5], [float("nan"), -0.25]], "<f4"),
        ("rollout_log_probs", [[0.1]], "<f8"),
        ("rollout_log_probs", [[1e300]], "<f8"),
        ("tokens", [np.array([1])], "<i8"),
    ],
)
def test_preferred_dtype(name: str, value: Any, dtype: str) -> None:
    """A field of the rollout takes the narrow dtype where its numbers come back unchanged."""
    found = schema(value, name)
    assert found is not None
    assert found[1] == dtype


@pytest.mark.parametrize(
    ("value", "dtype"),
    [([1, 2], "int64"), ([1, None], "int64"), ([0.5], "float32"), ([True, False], "bool"), ([1j], "complex64")],
)
def test_promised_numbers(value: list[Any], dtype: str) -> None:
    """Numbers with a spec travel with its dtype, also where the values alone would call for a wider one."""
    column = plan({"f": value}, {"f": ValueSpec("ndarray", dtype)}).stages["rows"]["f"]
    assert (column.schema, column.moves) == (("ndarray", {"dtype": dtype}), True)
    assert identical(column.values, value)


def test_promise_is_kept_as_given() -> None:
    """Python's numbers of the promised type are handed over as the list that came, unless one is out of range."""
    for value, dtype in (([1, 2], "int64"), ([0.5], "float64"), ([True], "bool")):
        assert plan({"f": value}, {"f": ValueSpec("ndarray", dtype)}).stages["rows"]["f"].values == value
    with pytest.raises(ValueError, match="f is not an array of numbers, but of object"):
        plan({"f": [1, 2**64]}, {"f": ValueSpec("ndarray", "int64")})


def test_no_copy() -> None:
    """Arrays are handed over as they are: the first copy is the one into the transfer buffer."""
    rows = [np.arange(3, dtype=np.int32), np.arange(2, dtype=np.int32)]
    for specs in ({}, {"tokens": ValueSpec("typed_ragged", "int32")}):
        column = plan({"tokens": rows}, specs).stages["rows"]["tokens"]
        assert [given is kept for given, kept in zip(rows, column.values, strict=True)] == [True, True]


def test_lists_stay_lists() -> None:
    """Rows that were lists are handed over as what Mooncake takes for lists: anything but NumPy arrays."""
    made = plan({"tokens": [[1, 2], [3]]}, {})
    assert [type(row) for row in made.stages["rows"]["tokens"].values] == [memoryview, memoryview]
    made = plan({"tokens": [[1, 2], [3]]}, {"tokens": ValueSpec("typed_ragged", "int32")})
    assert [type(row) for row in made.stages["rows"]["tokens"].values] == [memoryview, memoryview]
    made = plan({"tokens": [[1, 2], np.array([3])]}, {"tokens": ValueSpec("typed_ragged", "int32")})
    assert made.marks == {"tokens": PACKED}


numbers = st.one_of(st.integers(-(2**40), 2**64), st.floats(), st.floats(width=32), st.booleans())
number_rows = st.lists(
    st.one_of(st.none(), *(st.lists(kind) for kind in (st.integers(), st.floats(), st.floats(width=32), numbers))),
    min_size=1,
)


@given(number_rows, st.sampled_from(["tokens", "rollout_log_probs", "f"]))
def test_lists_of_numbers(rows: list[Any], name: str) -> None:
    """Lists of numbers travel as memory where that gives every number back in value and type, NaN too."""
    column = plan({name: rows}, {}).stages["rows"][name]
    assert identical([None if row is None else list(row) for row in column.values], rows)


@pytest.mark.parametrize("odd", [True, np.int64(1), np.float64(0.5), 0.5, None, 2**63])
def test_one_odd_number(odd: Any) -> None:
    """One number of another type, or beyond 64 bits, keeps the lists of a rollout's field from travelling as memory."""
    made = plan({"tokens": [[1, 2], [3, odd]]}, {})
    assert made.marks == {"tokens": PACKED} or made.stages["rows"]["tokens"].schema == ("msgpack_ragged", {})


def test_packed() -> None:
    """What no codec keeps is packed together, and an object that would be in the ref alone is packed as well."""
    made = plan({"a": (1, "x"), "b": {2: 3}, "c": 7}, {})
    assert stages(made) == {"packed": [OWN]}
    assert made.marks == {"a": PACKED, "b": PACKED, "c": ""}
    assert stages(plan({"c": 7}, {})) == {"packed": [OWN]}
    assert stages(plan({}, {})) == {"packed": [OWN]}
    assert plan({"a": [1, 2]}, {}, packed={"a"}).marks == {"a": PACKED}


def test_inline_is_small() -> None:
    """Only what is short as JSON, and exact, travels in the ref."""
    assert plan({"a": {"b": [1, 2.5, None, True, "x"]}}, {}).inline == {"a": {"b": [1, 2.5, None, True, "x"]}}
    for value in ("x" * 600, {"a": "x" * 600}, {"a": list(range(600))}, 2**5000, {"a": (1,)}, {1: 2}, np.int64(1)):
        assert plan({"a": value}, {}).inline == {}


def test_specs_of_another_length() -> None:
    """A codec that cannot be in a stage of its own is packed: Mooncake would decode it with the wrong length."""
    fields = {"tokens": [[1]] * 3, "prompt": ["a" * 300, "b" * 300], "rewards": [0.5] * 400}
    specs = {"prompt": ValueSpec("utf8_ragged"), "rewards": ValueSpec("ndarray", "float32")}
    made = plan(fields, specs)
    assert made.marks == {"tokens": "", "prompt": PACKED, "rewards": ""}
    assert stages(made) == {"rows": ["tokens"], "rows-400": ["rewards"], "packed": [OWN]}


def test_unencodable() -> None:
    """Rows that their codec refuses are found: integers beyond 64 bits, unpaired surrogates."""
    made = plan({"a": [{"x": 2**70}], "b": ["\ud800"], "c": ["fine"], "d": [{"x": "\ud800"}]}, {})
    assert unencodable(made) == {"a", "b", "d"}


@given(odd_texts)
def test_wire_names(name: str) -> None:
    """Names in the store hold no slash, dot or control character, and are neither empty nor our own."""
    wire = wire_name(name)
    assert wire
    assert wire.isascii()
    assert wire.isprintable()
    assert not set(wire) & set("/.")
    assert wire != OWN


def test_wire_names_differ() -> None:
    """Different fields have different names in the store."""
    names = ["a", "a.b", "a/b", "a%2Eb", "%a", OWN, "%" + OWN, "", " ", "ä", "1", "a-b"]
    assert len({wire_name(name) for name in names}) == len(names)


def test_sizes() -> None:
    """The size of a column counts the bytes of its arrays."""
    made = plan({"a": [np.zeros(1000), np.zeros(500)], "b": np.zeros((2, 100))}, {})
    assert {name: nbytes(column) for name, column in made.stages["rows"].items()} == {"a": 12_000, "b": 1600}


def test_lists_of_an_older_mooncake() -> None:
    """Before 0.3.13 rows come as lists, also those that were arrays: they become arrays of their dtype again."""
    rows = {"a": [[1, 2], [], None]}
    assert identical(
        restored(rows, {"a": "arrays:<i4"}), {"a": [np.array([1, 2], np.int32), np.array([], np.int32), None]}
    )
    assert identical(restored(rows, {"a": ""}), rows)


def test_foreign_result() -> None:
    """A result without marks is given as it is, in plain lists and arrays."""

    class Owned(list[Any]):
        pass

    assert identical(restored({"a": Owned([1]), "b": 2}, None), {"a": [1], "b": 2})
