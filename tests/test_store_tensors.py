"""torch tensors in either store. They run where torch is installed: it is no dependency."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from rollouts import identical

from mooncake_config.resolve import resolve_store_config
from mooncake_config.store import ROLLOUT_VALUE_SPEC, ValueSpec, open_object_store
from mooncake_config.store.master import start_mooncake_master
from mooncake_config.store.mooncake import MooncakeObjectStore
from mooncake_config.store.values import as_stored
from mooncake_config.topology import Topology

torch: Any = pytest.importorskip("torch")

pytestmark = pytest.mark.mooncake


@pytest.fixture(scope="module")
def store() -> Iterator[MooncakeObjectStore]:
    """One store with a segment for the module."""
    with start_mooncake_master() as master:
        resolution = resolve_store_config(
            {
                "master_server_address": master.address,
                "local_hostname": "127.0.0.1",
                "protocol": "tcp",
                "global_segment_size": "64mb",
                "local_buffer_size": "64mb",
            },
            topology=Topology(num_nodes=1),
            environ={},
        )
        with open_object_store("mooncake", resolution) as opened:
            yield opened


def alike(left: Any, right: Any) -> bool:
    """Identical, tensors included: dtype, shape and numbers."""
    if isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor):
        return left.dtype is right.dtype and left.shape == right.shape and bool(torch.equal(left, right))
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(alike, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return list(left) == list(right) and all(alike(left[key], right[key]) for key in left)
    return identical(left, right)


def ragged(dtype: Any) -> list[Any]:
    """Rows of different lengths, one of them empty, one of them None."""
    return [torch.arange(3).to(dtype), None, torch.arange(0).to(dtype), torch.arange(5).to(dtype)]


VALUES = {
    "int32 rows": ragged(torch.int32),
    "bfloat16 rows": ragged(torch.bfloat16),
    "float16 rows": ragged(torch.float16),
    "bool rows": [torch.tensor([True, False]), torch.tensor([False])],
    "2-d rows": [torch.ones(2, 3), torch.zeros(1, 3)],
    "0-d rows": [torch.tensor(1), torch.tensor(2)],
    "mixed rows": [torch.tensor(1), torch.tensor([2.5]), None],
    "rows of two dtypes": [torch.ones(2), torch.ones(2, dtype=torch.float64)],
    "beside lists": [torch.ones(2), [1, 2]],
    "dense": torch.arange(12).reshape(4, 3).to(torch.bfloat16),
    "one": torch.tensor(7),
    "dictionaries": [{"pixels": torch.ones(2, 2), "n": 1}, None],
    "nested": {"a": [torch.arange(3), (torch.ones(1, dtype=torch.bfloat16),)]},
}


@pytest.mark.parametrize("name", VALUES)
def test_comes_back(store: MooncakeObjectStore, name: str) -> None:
    """Tensors come back as tensors, wherever they were in the dictionary."""
    ref = pickle.loads(pickle.dumps(store.put({"f": VALUES[name], "tokens": [[1], [2], [3], [4]]})))
    with store.get(ref) as got:
        assert alike(got["f"], VALUES[name])
    store.remove(ref)


def test_numbers_alone(store: MooncakeObjectStore) -> None:
    """What a tensor has beside its numbers stays behind: gradients, strides."""
    wide = torch.arange(12.0).reshape(3, 4)
    ref = store.put({"a": [torch.ones(2, requires_grad=True)], "b": [wide.T, wide.T]})
    with store.get(ref) as got:
        assert not got["a"][0].requires_grad
        assert torch.equal(got["b"][1], wide.T)
        got["a"][0][0] = 7
    store.remove(ref)


def test_rows_outlive_the_with(store: MooncakeObjectStore) -> None:
    """A tensor that somebody kept still holds its numbers; Mooncake's own decoder gives them to the next read."""
    refs = [
        store.put({"tokens": [torch.full((1 << 17,), fill, dtype=torch.int32) for _ in range(8)]}) for fill in (1, 2)
    ]
    with store.get(refs[0]) as got:
        kept = got["tokens"]
    for _ in range(20):
        with store.get(refs[1]) as other:
            assert other["tokens"][0][0] == 2
    assert all(bool((row == 1).all()) for row in kept)
    for ref in refs:
        store.remove(ref)


SPECS = {
    "typed_ragged": (ValueSpec("typed_ragged", "int32"), ragged(torch.int64), ragged(torch.int32)),
    "typed_ragged of bfloat16": (ValueSpec("typed_ragged", "float64"), ragged(torch.bfloat16), ragged(torch.float64)),
    "typed_ragged as it is": (ValueSpec("typed_ragged"), ragged(torch.bfloat16), ragged(torch.bfloat16)),
    "rollout": (ROLLOUT_VALUE_SPEC["tokens"], ragged(torch.int32), ragged(torch.int32)),
    "ragged_tensor": (ValueSpec("ragged_tensor"), ragged(torch.bfloat16), ragged(torch.bfloat16)),
    "ragged_tensor_dict": (
        ValueSpec("ragged_tensor_dict"),
        [{"a": torch.ones(2)}, None, {"a": torch.ones(1), "b": torch.arange(3)}, {}],
        [{"a": torch.ones(2)}, None, {"a": torch.ones(1), "b": torch.arange(3)}, {}],
    ),
}


@pytest.mark.parametrize("name", SPECS)
def test_explicit_spec(store: MooncakeObjectStore, name: str) -> None:
    """A spec makes the same of tensors in the Mooncake store as in Ray's."""
    spec, given, expected = SPECS[name]
    assert alike(as_stored({"f": given}, {"f": spec})["f"], expected)
    ref = store.put({"f": given}, {"f": spec})
    with store.get(ref) as got:
        assert alike(got["f"], expected)
    store.remove(ref)


@pytest.mark.parametrize(
    ("spec", "value", "message"),
    [
        (ValueSpec("ragged_tensor"), [torch.ones(2), torch.ones(2, dtype=torch.int32)], "tensors of one dtype"),
        (ValueSpec("typed_ragged", "int8"), [torch.tensor([300])], "out of the range of int8"),
        (ValueSpec("typed_ragged"), [torch.ones(2), [1]], r"f\[1\]"),
    ],
)
def test_broken_promise(spec: ValueSpec, value: Any, message: str) -> None:
    """Tensors that a spec is not for are a ValueError."""
    with pytest.raises(ValueError, match=message):
        as_stored({"f": value}, {"f": spec})


def test_foreign_tensors(store: MooncakeObjectStore) -> None:
    """Tensors that a plain MooncakeBundleTransfer put are read without the decoder's fault: they stay as they are."""
    from mooncake.structured_object_store import FieldSchema, MooncakeBundleTransfer, export_ref

    plain = MooncakeBundleTransfer(store._native)
    schemas = {"t": FieldSchema("ragged_tensor", metadata={"section": "non_tensor_batch"})}
    handles = [
        export_ref(
            plain.put({"t": [torch.full((1 << 17,), fill) for _ in range(4)]}, type="dict", field_schemas=schemas)
        )
        for fill in (1, 2)
    ]
    with store.get(handles[0]) as got:
        kept = got["t"]
    for _ in range(10):
        with store.get(handles[1]) as other:
            assert other["t"][0][0] == 2
    assert all(bool((row == 1).all()) for row in kept)
    for handle in handles:
        store.remove(handle)


def test_numpy_bfloat16_is_refused(store: MooncakeObjectStore) -> None:
    """Arrays of a dtype that is not NumPy's own are refused by name, not stored as something else."""
    with pytest.raises(TypeError, match="is an array of"):
        store.put({"a": np.zeros(2, dtype="V2")})
