"""The Ray store, over a real Ray on this machine."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from rollouts import dictionaries, differences, rollout

from mooncake_config.store import ValueSpec, open_object_store
from mooncake_config.store.errors import ObjectNotFoundError, StoreClosedError, StoreError, StoreImportError
from mooncake_config.store.ray import RayObjectStore, RayRef

pytestmark = pytest.mark.ray

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A Ray of two processors on this machine."""
    ray = pytest.importorskip("ray")
    ray.init(
        num_cpus=2,
        num_gpus=0,
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=128 * 1024 * 1024,
        runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(map(str, [ROOT, ROOT / "tests"]))}},
    )
    yield ray
    ray.shutdown()


@pytest.fixture
def store(cluster: Any) -> Iterator[RayObjectStore]:
    """A store for one test."""
    with open_object_store("ray") as opened:
        yield opened


def test_round_trip(store: RayObjectStore) -> None:
    """A rollout comes back identical, and the dictionary is empty after the with, as with Mooncake."""
    ref = store.put(rollout())
    with store.get(ref) as got:
        assert differences(rollout(), got) == {}
    assert got == {}
    store.remove(ref)


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture])
@given(value=dictionaries())
def test_any_dictionary(store: RayObjectStore, value: dict[str, Any]) -> None:
    """Whatever the Mooncake store can hold comes back from Ray identical too."""
    ref = store.put(value)
    with store.get(ref) as got:
        assert differences(value, got) == {}
    store.remove(ref)


def test_bytearray(store: RayObjectStore) -> None:
    """A bytearray comes back as bytes: the one type that Ray's own serializer changes."""
    ref = store.put({"a": [bytearray(b"x")]})
    with store.get(ref) as got:
        assert differences({"a": [b"x"]}, got) == {}


def test_explicit_spec(store: RayObjectStore) -> None:
    """A spec is kept by Ray as by Mooncake: numbers come out with its dtype."""
    spec = {"tokens": ValueSpec("typed_ragged", "int32"), "rewards": ValueSpec("ndarray", "float32")}
    ref = store.put({"tokens": [np.arange(2), [1, 2]], "rewards": (1, 2)}, spec)
    with store.get(ref) as got:
        assert differences({"tokens": [np.arange(2, dtype=np.int32), [1, 2]], "rewards": [1.0, 2.0]}, got) == {}
    with pytest.raises(ValueError, match="out of the range of int32"):
        store.put({"tokens": [[2**40]]}, spec)


def test_arrays_are_shared(store: RayObjectStore) -> None:
    """Arrays are read-only views of Ray's shared memory, and an array that somebody kept stays valid."""
    ref = store.put({"a": np.ones(100_000)})
    with store.get(ref) as got:
        kept = got["a"]
    store.remove(ref)
    assert not kept.flags.writeable
    assert kept.sum() == 100_000


def test_actors(cluster: Any, store: RayObjectStore) -> None:
    """What one actor puts another one gets, with the ref passed like any argument, alone, nested, or pickled."""

    class Manager:
        def __init__(self) -> None:
            self.store = open_object_store("ray")

        def put(self) -> RayRef:
            return self.store.put(rollout(rows=2000))

        def rows(self, ref: RayRef) -> int:
            with self.store.get(ref) as got:
                return len(got["tokens"])

        def rows_of(self, refs: dict[str, list[RayRef]]) -> int:
            return self.rows(refs["refs"][0])

        def rows_of_pickled(self, pickled: bytes) -> int:
            return self.rows(pickle.loads(pickled))

    actor = cluster.remote(Manager)
    producer, consumer = actor.remote(), actor.remote()
    ref = cluster.get(producer.put.remote(), timeout=60)
    calls = [
        consumer.rows.remote(ref),
        consumer.rows_of.remote({"refs": [ref]}),
        consumer.rows_of_pickled.remote(pickle.dumps(ref)),
    ]
    assert cluster.get(calls, timeout=60) == [2000] * 3
    with store.get(ref) as got:
        assert differences(rollout(rows=2000), got) == {}

    cluster.kill(producer)
    with pytest.raises(ObjectNotFoundError, match="the process that put it") as caught:
        _get_until_lost(store, ref)
    assert caught.value.key == ref.key


def _get_until_lost(store: RayObjectStore, ref: RayRef) -> None:
    for _ in range(1000):
        with store.get(ref):
            pass


def test_remove(cluster: Any, store: RayObjectStore) -> None:
    """Remove gives up the reference: the ref finds nothing any more, and Ray counts none."""
    ref = store.put({"a": np.ones(100_000)})
    counted = cluster._private.worker.global_worker.core_worker.get_all_reference_counts
    assert ref.key.encode() in counted()
    store.remove(ref)
    store.remove(ref)
    assert ref.key.encode() not in counted()
    with pytest.raises(ObjectNotFoundError, match="removed through this ref"), store.get(ref):
        pass
    with pytest.raises(ObjectNotFoundError):
        pickle.dumps(ref)


def test_refs(store: RayObjectStore) -> None:
    """Refs are equal to their copies, small, and say whether they were removed."""
    ref, other = store.put({"a": 1}), store.put({"a": 1})
    copy = pickle.loads(pickle.dumps(ref))
    assert copy == ref != other
    assert len({ref, copy, other}) == 2
    assert len(pickle.dumps(ref)) < 2000
    store.remove(ref)
    assert "removed" in repr(ref)
    assert "removed" not in repr(copy)


def test_wrong_use(store: RayObjectStore) -> None:
    """What is no ref of this store or no dictionary is a TypeError."""
    with pytest.raises(TypeError, match="not a ref of the Ray store"), store.get("x"):  # type: ignore[arg-type]  # wrong on purpose
        pass
    with pytest.raises(TypeError, match="not a ref of the Ray store"):
        store.remove(None)  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(TypeError, match="dictionary"):
        store.put(7)  # type: ignore[arg-type]  # wrong on purpose


def test_closed(store: RayObjectStore) -> None:
    """A closed store refuses everything; Ray itself goes on."""
    ref = store.put({"a": 1})
    store.close()
    store.close()
    for use in (lambda: store.put({}), lambda: store.get(ref).__enter__(), lambda: store.remove(ref)):
        with pytest.raises(StoreClosedError):
            use()
    with open_object_store("ray") as other, other.get(ref) as got:
        assert got == {"a": 1}


def _in_child(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60, check=True, cwd=ROOT
    )
    return done.stdout.strip()


def test_without_ray_init() -> None:
    """In a process that is not attached to Ray the store is not opened, and Ray is not started behind its back."""
    code = """
        from mooncake_config.store import open_object_store
        from mooncake_config.store.errors import StoreError
        try:
            open_object_store("ray")
        except StoreError as error:
            import ray
            print(error, ray.is_initialized())
        """
    assert _in_child(code) == (
        "Ray is not initialised in this process: call ray.init() before the store is opened. False"
    )
    assert issubclass(StoreImportError, StoreError)


def test_without_ray() -> None:
    """Where Ray is not installed the error names the extra."""
    code = """
        import sys
        sys.modules["ray"] = None
        from mooncake_config.store import open_object_store
        from mooncake_config.store.errors import StoreImportError
        try:
            open_object_store("ray")
        except StoreImportError as error:
            print(error, error.extra)
        """
    assert "pip install 'mooncake-config[ray]'. ray" in _in_child(code)
