"""Ray's object store behind the same interface.

The only file of the store that imports ``ray``, and only when it is used. The store never starts Ray;
``private_ray`` does, for as long as a demo or a test lasts.
"""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from mooncake_config.display import shown
from mooncake_config.store import ObjectStore, ValueSpec
from mooncake_config.store.errors import (
    ObjectNotFoundError,
    StoreClosedError,
    StoreError,
    StoreFullError,
    StoreImportError,
)
from mooncake_config.store.reading import reading

PRIVATE_PREFIX = "mooncake-config-ray-"
"""How the temporary directory of a private Ray begins."""


class RayRef:
    """A handle of an object in Ray's object store.

    Ray keeps an object as long as somebody in the cluster refers to it, and this is such a reference. Pass it to tasks
    and actors like any argument, alone or inside of another value. It also pickles outside of Ray's own serializer,
    for another process of the same cluster; Ray cannot see such a copy, so it then keeps the object until the
    process that pickled the ref ends (``ray.cloudpickle`` has the same rule). Either way the object is gone with the
    process that put it.
    """

    __slots__ = ("key", "object_ref")

    def __init__(self, object_ref: Any) -> None:
        self.key: str = object_ref.hex()
        self.object_ref: Any | None = object_ref

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RayRef) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"RayRef(key={self.key!r}{', removed' if self.object_ref is None else ''})"

    def __reduce__(self) -> tuple[Any, ...]:
        if self.object_ref is None:
            raise _removed(self.key)
        # Inside of Ray's serializer this registers the reference with Ray; outside it carries the owner's address.
        import ray

        serializer: Any = ray.cloudpickle
        return _unpickled, (serializer.dumps(self.object_ref),)


def _unpickled(pickled: bytes) -> RayRef:
    import ray

    return RayRef(ray.cloudpickle.loads(pickled))


def _removed(key: str) -> ObjectNotFoundError:
    return ObjectNotFoundError(f"the object {key} was removed through this ref.", key=key)


class RayObjectStore(ObjectStore[RayRef]):
    """The object store of the Ray cluster that this process is part of. Made by ``open_object_store``.

    Raises:
        StoreImportError: Ray is not installed.
        StoreError: this process is not attached to a cluster.
    """

    def __init__(self) -> None:
        self._closed = False
        self._ray()

    def put(self, value: Mapping[str, Any], value_spec: Mapping[str, ValueSpec] | None = None) -> RayRef:
        from mooncake_config.store.values import as_stored, checked_fields

        ray = self._ray()
        fields, specs = checked_fields(value, value_spec)
        try:
            return RayRef(ray.put(as_stored(fields, specs)))
        except (ray.exceptions.ObjectStoreFullError, ray.exceptions.OutOfDiskError) as error:
            raise StoreFullError(
                "Ray's object store is full, and so is the disk that it spills to: remove refs that were read, "
                "or start Ray with a larger --object-store-memory."
            ) from error

    @reading
    def get(self, ref: RayRef) -> Iterator[dict[str, Any]]:
        """As ``ObjectStore.get``. Arrays lie in Ray's shared memory, without a copy, and are read-only."""
        object_ref = self._object_ref(ref)
        ray = self._ray()
        try:
            value: dict[str, Any] = ray.get(object_ref)
        except ray.exceptions.ObjectLostError as error:
            raise ObjectNotFoundError(
                f"Ray has lost the object {ref.key}: the process that put it or the node that held it is gone.",
                key=ref.key,
            ) from error
        except ray.exceptions.RayError as error:
            raise StoreError(f"Ray could not fetch the object {ref.key}: {shown(str(error))}") from error
        try:
            yield value
        finally:
            value.clear()

    def remove(self, ref: RayRef) -> None:
        """Gives up this reference. Ray frees the space when no other process refers to the object any more.

        Ray has no way to take an object from those who still hold a ref of it.
        """
        self._check_ref(ref)
        self._ray()
        ref.object_ref = None

    def close(self) -> None:
        """Leaves the store. Ray and its objects stay."""
        self._closed = True

    def _ray(self) -> Any:
        """The module, in a process that is attached to a cluster: its functions would start one where there is none."""
        if self._closed:
            raise StoreClosedError("this store is closed; open another one")
        try:
            import ray
            import ray.exceptions
        except ImportError as error:
            raise StoreImportError(
                f"Ray cannot be imported ({shown(str(error))}): pip install 'mooncake-config[ray]'.",
                module="ray",
                extra="ray",
            ) from error
        if not ray.is_initialized():
            raise StoreError("Ray is not initialised in this process: call ray.init() before the store is opened.")
        return ray

    def _object_ref(self, ref: RayRef) -> Any:
        self._check_ref(ref)
        if ref.object_ref is None:
            raise _removed(ref.key)
        return ref.object_ref

    @staticmethod
    def _check_ref(ref: object) -> None:
        if not isinstance(ref, RayRef):
            raise TypeError(f"not a ref of the Ray store: {type(ref).__name__}")


@contextmanager
def private_ray(object_store_memory: int = 256 << 20) -> Iterator[None]:
    """A small Ray of one's own on loopback, which leaves no process and no file.

    Ray 2.60 writes a token to ``~/.ray/auth_token`` for a cluster that ``ray.init`` starts, and the next ``ray start``
    of this user demands it. So this one asks for no token, as every Ray before it, unless ``RAY_AUTH_MODE`` is set.

    Args:
        object_store_memory: bytes of its object store.

    Raises:
        ImportError: Ray is not installed.
        RuntimeError: this process is attached to a Ray already.
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # read when ray is imported; it would send a report outward
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # Ray 2.60 announces the change of its default
    import ray

    if ray.is_initialized():
        raise RuntimeError("this process is attached to a Ray already")
    # Not in TMPDIR: below a long path Ray's Unix sockets exceed the 107 bytes that the kernel allows.
    directory = tempfile.mkdtemp(prefix=PRIVATE_PREFIX, dir="/tmp")
    try:
        with _without_token():
            ray.init(
                num_cpus=1,
                num_gpus=0,
                object_store_memory=object_store_memory,
                include_dashboard=False,
                logging_level=logging.ERROR,
                log_to_driver=False,
                _node_ip_address="127.0.0.1",
                _temp_dir=directory,
            )
            yield
    finally:
        ray.shutdown()
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def _without_token() -> Iterator[None]:
    """No token for a Ray that is started in here. A mode that the user set stays."""
    if "RAY_AUTH_MODE" in os.environ:
        yield
        return
    os.environ["RAY_AUTH_MODE"] = "disabled"
    try:
        yield
    finally:
        del os.environ["RAY_AUTH_MODE"]
