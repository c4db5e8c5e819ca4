"""The data path: one interface, two object stores behind it.

Neither ``ray`` nor ``mooncake`` nor ``numpy`` is imported before a store is opened.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from difflib import get_close_matches
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

if TYPE_CHECKING:
    from typing_extensions import Self

    from mooncake_config.resolve import Resolution
    from mooncake_config.store.mooncake import MooncakeObjectStore
    from mooncake_config.store.ray import RayObjectStore

RefT = TypeVar("RefT")

CODECS = {
    "auto": "any value, as it is",
    "ndarray": "one number for each row: a list of numbers, or an array",
    "typed_ragged": "an array or a list of numbers for each row",
    "utf8_ragged": "a text for each row",
    "bytes_ragged": "bytes for each row",
    "media_bytes": "the bytes of a picture or sound for each row",
    "media_list_ragged": "a list of such bytes for each row",
    "msgpack_ragged": "plain data for each row: lists, dictionaries with text keys, text, bytes, numbers",
    "json_ragged": "what JSON can say for each row",
    "ragged_tensor": "a torch tensor for each row",
    "ragged_tensor_dict": "a dictionary of torch tensors for each row",
}
"""The codecs of Mooncake's ``FieldSchema`` (0.3.13.post1) and the values that each is for."""

NUMERIC_CODECS = frozenset({"ndarray", "typed_ragged"})
"""The codecs that take a dtype."""

_WIDTHS = {"int": (8, 16, 32, 64), "uint": (8, 16, 32, 64), "float": (16, 32, 64), "complex": (64, 128)}
DTYPES = frozenset({"bool", *(f"{kind}{width}" for kind, widths in _WIDTHS.items() for width in widths)})
"""The dtypes of a ``ValueSpec``: NumPy's names of numbers with a fixed width."""


@dataclass(frozen=True)
class ValueSpec:
    """How the values of one field are stored, and what comes out: the same with either backend.

    ``codec`` names the values (see ``CODECS``). With ``dtype`` (``ndarray`` and ``typed_ragged`` only) numbers are
    converted to it, and come out with it: arrays as arrays of this dtype, lists as lists of Python numbers. A number
    that would change its value beyond rounding (an integer out of range, a fraction as an integer) is an error at put.

    Raises:
        TypeError: codec or dtype is not text.
        ValueError: an unknown codec or dtype, or a dtype beside a codec that has none.
    """

    codec: str
    dtype: str | None = None

    def __post_init__(self) -> None:
        _known("codec", self.codec, CODECS)
        if self.dtype is None:
            return
        if self.codec not in NUMERIC_CODECS:
            allowed = " and ".join(sorted(NUMERIC_CODECS))
            raise ValueError(f"codec {self.codec!r} takes no dtype; only {allowed} do")
        _known("dtype", self.dtype, DTYPES)


def _known(what: str, name: object, names: Mapping[str, object] | frozenset[str]) -> None:
    if not isinstance(name, str):
        raise TypeError(f"{what} must be a text such as {min(names)!r}, not {type(name).__name__}")
    if name not in names:
        near = get_close_matches(name, names, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(names))}"
        raise ValueError(f"unknown {what} {name!r}: {hint}")


ROLLOUT_VALUE_SPEC: Mapping[str, ValueSpec] = {
    "tokens": ValueSpec("typed_ragged", "int32"),
    "loss_masks": ValueSpec("typed_ragged", "int32"),
    "rollout_log_probs": ValueSpec("typed_ragged", "float32"),
    "rewards": ValueSpec("ndarray", "float64"),
    "raw_reward": ValueSpec("ndarray", "float64"),
    "response_lengths": ValueSpec("ndarray", "int64"),
    "total_lengths": ValueSpec("ndarray", "int64"),
    "sample_indices": ValueSpec("ndarray", "int64"),
    "partition": ValueSpec("ndarray", "int64"),
    "truncated": ValueSpec("ndarray", "int64"),
    "prompt": ValueSpec("msgpack_ragged"),
    "metadata": ValueSpec("msgpack_ragged"),
}
"""What the reference's rollout fields hold: the spec to start from when you write your own.

Unasked, it is only a preference of the Mooncake backend: a field without a spec is stored with this dtype where its
values come back unchanged in value and type (Python integers that fit int32 travel as int32 and come back as Python
integers), and as its own type calls for where they would not. Passed as ``value_spec``, it is a promise like any other.
"""


class ObjectStore(ABC, Generic[RefT]):
    """Where a rollout dictionary waits between the process that makes it and the one that reads it.

    A store is a context manager: leaving it closes it. Errors are those of ``mooncake_config.store.errors``.
    """

    @abstractmethod
    def put(self, value: Mapping[str, Any], value_spec: Mapping[str, ValueSpec] | None = None) -> RefT:
        """Stores a dictionary, whole or not at all, and returns a small handle that pickles.

        Args:
            value: field → anything that the table of types in the docs lists. A field without a spec comes back equal
                in value and type.
            value_spec: field → how to store it. Fields that the value does not have are allowed, so that one constant
                serves all.

        Raises:
            TypeError: the value is no dictionary with text keys, or holds an object that cannot be stored.
            ValueError: a field does not hold what its spec says.
            StoreError: it was not stored; nothing is left behind.
        """

    @abstractmethod
    def get(self, ref: RefT) -> AbstractContextManager[dict[str, Any]]:
        """The stored dictionary, for the body of a ``with`` statement.

        On leaving, the dictionary is emptied and its share of the transfer buffer is released. An array that is still
        referred to elsewhere stays valid and keeps its share until it goes.

        Raises:
            TypeError: not a ref of this store.
            StoreError: it could not be read.
        """

    @abstractmethod
    def remove(self, ref: RefT) -> None:
        """Frees the object's space. Removing what is gone already is no error.

        Raises:
            TypeError: not a ref of this store.
            StoreError: the space was not freed.
        """

    @abstractmethod
    def close(self) -> None:
        """Leaves the store. The second time it does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


@overload
def open_object_store(
    backend: Literal["mooncake"],
    resolution: Resolution,
    *,
    namespace: str = ...,
    on_missing_replicas: str = ...,
    ignore: Collection[str] = ...,
    native_log: str | os.PathLike[str] = ...,
    metrics_port: int | None = ...,
) -> MooncakeObjectStore: ...


@overload
def open_object_store(
    backend: Literal["ray"],
    resolution: None = ...,
    *,
    namespace: str = ...,
    on_missing_replicas: str = ...,
    ignore: Collection[str] = ...,
    native_log: str | os.PathLike[str] = ...,
    metrics_port: int | None = ...,
) -> RayObjectStore: ...


@overload
def open_object_store(
    backend: str,
    resolution: Resolution | None = ...,
    *,
    namespace: str = ...,
    on_missing_replicas: str = ...,
    ignore: Collection[str] = ...,
    native_log: str | os.PathLike[str] = ...,
    metrics_port: int | None = ...,
) -> MooncakeObjectStore | RayObjectStore: ...


def open_object_store(
    backend: str,
    resolution: Resolution | None = None,
    *,
    namespace: str = "rollout",
    on_missing_replicas: str = "error",
    ignore: Collection[str] = (),
    native_log: str | os.PathLike[str] = "inherit",
    metrics_port: int | None = None,
) -> MooncakeObjectStore | RayObjectStore:
    """Opens the object store of this process.

    Before the Mooncake client is set up, this host and the endpoints are looked at (``check_before_opening``, at most
    some seconds): a master that does not answer would block the native client for 90 s.

    Args:
        backend: ``"mooncake"`` or ``"ray"``, the value of ``--object-store-backend``.
        resolution: what ``resolve_store_config`` returned; needed by ``mooncake``, not allowed with ``ray``. Each of
            its warnings, and of the look at the host, is logged once, at WARNING, on the logger ``mooncake_config``.
        namespace: a part of every key in the Mooncake Store, one path segment: jobs that share a master take different
            ones. Ray has no such thing.
        on_missing_replicas: what a put does that got fewer copies than ``--mooncake-replica-num``: ``"error"`` takes
            the object back and raises ``StoreFullError``, ``"warn"`` logs a warning. Mooncake itself says nothing.
        ignore: codes or names of rules about the host and the endpoints whose findings are dropped.
        native_log: where Mooncake's own log goes, which native code writes to standard error: ``"inherit"`` leaves it
            there, ``"quiet"`` keeps it away, a path appends it to that file. With the last two its errors and warnings
            are in ``native_log`` of the exceptions that they explain. It is file descriptor 2 of the whole process that
            moves until the store is closed, so what a C library or a child process writes there goes along, a
            traceback of ``faulthandler`` too; Python's own ``sys.stderr`` stays. Several such stores of a process are
            closed in reverse order.
        metrics_port: the HTTP port of the master; with it a ``StoreFullError`` can tell the capacity.

    Raises:
        OSError: ``native_log`` is a path that cannot be written.
        TypeError: a resolution where none belongs, or none where one is needed.
        ValueError: an unknown backend, namespace, choice or rule.
        ConfigError: this host or the endpoints do not serve; all findings at once.
        StoreImportError: the backend's engine is not installed.
        StoreSetupError: the native client could not be set up.
        StoreError: Ray is not initialised in this process.
    """
    if backend == "mooncake":
        if resolution is None:
            raise TypeError('open_object_store("mooncake") needs the resolution of resolve_store_config()')
        _refuse_unresolved(resolution)
        try:
            from mooncake_config.store.mooncake import open_mooncake_store
        except ModuleNotFoundError as error:
            from mooncake_config.store.failures import import_failure

            raise import_failure(error) from error
        return open_mooncake_store(resolution, namespace, on_missing_replicas, ignore, native_log, metrics_port)
    if backend == "ray":
        if resolution is not None:
            raise TypeError('open_object_store("ray") takes no resolution: Ray has no settings of Mooncake')
        from mooncake_config.store.ray import RayObjectStore

        return RayObjectStore()
    raise ValueError(f"unknown backend {backend!r}: it is 'ray' or 'mooncake'")


def _refuse_unresolved(resolution: object) -> None:
    from mooncake_config.resolve import Resolution

    if not isinstance(resolution, Resolution):
        what = type(resolution).__name__
        raise TypeError(f"not a {what}, but what resolve_store_config() makes of it: call that, and pass the result")
