"""The data path, as a rollout worker and a trainer write it. What is marked as an error must be one."""

from __future__ import annotations

from typing import Any

from typing_extensions import assert_type

from mooncake_config import Resolution, ValueSpec, open_object_store, start_mooncake_master
from mooncake_config.store import ObjectStore
from mooncake_config.store.mooncake import MooncakeObjectStore
from mooncake_config.store.ray import RayObjectStore

SPEC = {"tokens": ValueSpec("typed_ragged", "int32")}


def either(backend: str, resolution: Resolution, rollout: dict[str, Any]) -> None:
    """Each backend is a store of its own kind; a name that is only known later is one of both."""
    with open_object_store("mooncake", resolution, namespace="a") as store:
        assert_type(store, MooncakeObjectStore)
        ref = store.put(rollout, value_spec=SPEC)
        with store.get(ref) as back:
            assert_type(back, dict[str, Any])
        store.remove(ref)
    with open_object_store("ray") as ray_store:
        assert_type(ray_store, RayObjectStore)
    open_object_store(backend, resolution if backend == "mooncake" else None).close()


def generic(store: ObjectStore[Any]) -> None:
    """Code that takes any store names the interface."""
    store.remove(store.put({}))


def a_master() -> str:
    """A master is a context manager, and has an address."""
    with start_mooncake_master(timeout=5) as master:
        assert_type(master.address, str)
        return master.address


def wrong_use(resolution: Resolution, store: MooncakeObjectStore, other: RayObjectStore) -> None:
    """What a type checker has to refuse."""
    open_object_store("mooncake", resolution, namespac="a")  # type: ignore[call-overload]  # wrong on purpose
    store.put([1, 2])  # type: ignore[arg-type]  # wrong on purpose
    store.get("ref")  # type: ignore[arg-type]  # wrong on purpose
    other.remove(store.put({}))  # type: ignore[arg-type]  # wrong on purpose
    ValueSpec()  # type: ignore[call-arg]  # wrong on purpose
