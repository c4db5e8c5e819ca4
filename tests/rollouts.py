"""Rollout dictionaries, the values that may be in one, and what it means that two are the same."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import strategies as st

from mooncake_config.store import CODECS, NUMERIC_CODECS, ValueSpec
from mooncake_config.store import DTYPES as SPEC_DTYPES

ROWS = 6


def rollout(rows: int = ROWS) -> dict[str, Any]:
    """The fields of the reference's rollout, as a rollout manager makes them: a shard of twice as large a batch."""
    lengths = [3 + 5 * (row % 4) for row in range(rows)]
    responses = [length // 2 for length in lengths]
    return {
        "tokens": [np.arange(length, dtype=np.int32) * 37 % 151_936 for length in lengths],
        "loss_masks": [[1] * response for response in responses],
        "rewards": [row / 3 for row in range(rows)],
        "response_lengths": responses,
        "partition": range(0, 2 * rows, 2),
        "sample_indices": list(range(100, 100 + rows)),
        "truncated": [row % 2 for row in range(rows)],
        "raw_reward": [0.1 * row for row in range(2 * rows)],
        "total_lengths": lengths * 2,
        "prompt": [[{"role": "user", "content": f"Wie viel ist {row} × 7?"}] for row in range(rows)],
        "metadata": [{"source": "gsm8k", "nested": {"steps": [1, 2.5, None], "ok": True}} for _ in range(rows)],
        "rollout_log_probs": [[-0.5 * row] * response for row, response in enumerate(responses)],
    }


def identical(left: Any, right: Any) -> bool:
    """Equal in value and in type, down to the dtype, the shape, the order of keys, and the sign of a zero."""
    if type(left) is not type(right):
        return False
    if isinstance(left, np.ndarray):
        return _identical_arrays(left, right)
    if isinstance(left, dict):
        return list(left) == list(right) and all(identical(left[key], right[key]) for key in left)
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(identical, left, right))
    if isinstance(left, float):
        return (math.isnan(left) and math.isnan(right)) or (
            left == right and math.copysign(1, left) == math.copysign(1, right)
        )
    return bool(left == right) or bool(left != left and right != right)  # noqa: PLR0124 - NaN alone


def _identical_arrays(left: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> bool:
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    if left.dtype.kind == "O":
        return all(map(identical, left.reshape(-1).tolist(), right.reshape(-1).tolist()))
    return left.tobytes() == right.tobytes()


def differences(left: dict[str, Any], right: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """The fields of two dictionaries that are not identical."""
    names = [*left, *(name for name in right if name not in left)]
    return {name: (left.get(name), right.get(name)) for name in names if not identical(left.get(name), right.get(name))}


# --- any value ---

DTYPES = ["bool", "int8", "int32", "int64", "uint16", "float16", "float32", "float64", "complex64", ">i4"]

texts = st.text(max_size=8)
odd_texts = st.one_of(texts, st.text(st.characters(categories=["Cs", "Lu"]), max_size=4))
integers = st.one_of(st.integers(-3, 300), st.integers(-(2**70), 2**70))
floats = st.one_of(st.floats(), st.floats(width=32), st.just(-0.0))
scalars = st.one_of(st.none(), st.booleans(), integers, floats, odd_texts, st.binary(max_size=6))


@st.composite
def arrays(draw: st.DrawFn, dtypes: list[str] | None = None, shape: tuple[int, ...] | None = None) -> Any:
    """A NumPy array of any numeric dtype and up to three dimensions, some of them empty, some not contiguous."""
    dtype = draw(st.sampled_from(dtypes or DTYPES))
    sizes = shape if shape is not None else tuple(draw(st.lists(st.integers(0, 3), max_size=3)))
    count = math.prod(sizes)
    numbers = draw(st.lists(st.integers(0, 100), min_size=count, max_size=count))
    array = np.array(numbers).astype(dtype).reshape(sizes)
    return draw(st.sampled_from([array, array.T])) if len(sizes) == 2 else array


def numpy_scalars() -> st.SearchStrategy[Any]:
    """NumPy's own numbers."""
    return st.sampled_from([np.float32(1.5), np.int64(-3), np.bool_(True), np.uint8(200), np.float64("nan")])


def nested(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Containers within containers, of all kinds that can be stored."""
    hashable = st.one_of(st.none(), st.booleans(), st.integers(-5, 5), texts, st.tuples(texts, st.integers(0, 2)))
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(texts, inner, max_size=3),
            st.dictionaries(hashable, inner, max_size=2),
            st.tuples(inner, inner),
            st.sets(st.integers(0, 9), max_size=3),
            st.frozensets(texts, max_size=2),
            st.builds(range, st.integers(-3, 3), st.integers(-3, 9), st.integers(1, 3)),
        ),
        max_leaves=6,
    )


values = nested(st.one_of(scalars, arrays(), numpy_scalars(), st.complex_numbers(allow_nan=False)))
"""Any value of a field that can be stored."""


@st.composite
def columns(draw: st.DrawFn, rows: int) -> Any:
    """A field with one value for each row, all of one kind, or nearly."""
    dtype = draw(st.sampled_from(DTYPES))
    kind = draw(
        st.sampled_from(
            [
                integers,
                st.integers(-5, 5),
                floats,
                st.booleans(),
                texts,
                odd_texts,
                st.binary(max_size=5),
                arrays([dtype]),
                arrays([dtype], (2,)),
                arrays(),
                st.lists(st.integers(0, 9), max_size=4),
                st.lists(integers, max_size=3),
                st.lists(st.floats(width=32), max_size=4),
                st.lists(floats, max_size=4),
                st.lists(st.booleans(), max_size=3),
                st.lists(st.one_of(st.integers(0, 2), st.booleans(), floats), max_size=3),
                st.lists(texts, max_size=2),
                st.lists(st.lists(st.integers(0, 3), max_size=2), max_size=2),
                st.dictionaries(texts, scalars, max_size=2),
                st.just(np.float32(0.5)),
                values,
            ]
        )
    )
    if draw(st.booleans()):
        kind = st.one_of(kind, st.none())
    listed = draw(st.lists(kind, min_size=rows, max_size=rows))
    return draw(st.sampled_from([list, list, tuple]))(listed)


NAMES = ["tokens", "loss_masks", "rollout_log_probs", "rewards", "prompt", "metadata", "partition"]


@st.composite
def dictionaries(draw: st.DrawFn) -> dict[str, Any]:
    """A dictionary as somebody might put it: columns of a common length, some of another one, and anything else."""
    rows = draw(st.integers(0, 4))
    names = st.one_of(
        st.sampled_from(NAMES), odd_texts, st.sampled_from(["mooncake_config", "a/b", "a.data", "a", "", "%"])
    )
    fields: dict[str, Any] = {}
    for name in draw(st.lists(names, max_size=6, unique=True)):
        kind = draw(st.integers(0, 4))
        if kind < 3:
            fields[name] = draw(columns(rows))
        elif kind == 3:
            fields[name] = draw(columns(draw(st.integers(0, 5))))
        else:
            fields[name] = draw(values)
    return fields


@st.composite
def specified(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, ValueSpec]]:
    """A dictionary, and specs of some of its fields, that suit them or not. (Tensors have tests of their own.)"""
    value = draw(dictionaries())
    codecs = sorted(set(CODECS) - {"ragged_tensor", "ragged_tensor_dict"})
    spec = {}
    for name in value:
        codec = draw(st.sampled_from(codecs))
        dtype = draw(st.sampled_from([None, *sorted(SPEC_DTYPES)])) if codec in NUMERIC_CODECS else None
        if draw(st.booleans()):
            spec[name] = ValueSpec(codec, dtype)
    return value, spec
