"""What can go wrong with an open store.

The tree, below ``MooncakeConfigError``::

    StoreError                   an operation on a store failed
    ├── StoreImportError         the engine of the backend is not installed, or not the one that is needed
    ├── StoreSetupError          the native client refused its settings, or reached nothing
    ├── StoreClosedError         the store was closed, or belongs to the process that forked this one
    ├── StoreFullError           no room for the object, or fewer copies of it than were asked for
    ├── ObjectNotFoundError      removed, evicted, or lost with the process that held it
    ├── MasterUnreachableError   the master does not answer
    ├── TransferError            the object is known, and its bytes cannot be moved
    ├── BufferTooSmallError      this client's transfer buffer cannot take a piece of the object
    └── MasterStartError         a mooncake_master could not be started

Every one of them pickles with all of its attributes, since they cross Ray. ``message`` states a fact and a way out.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mooncake_config.findings import MooncakeConfigError


@dataclass(eq=False)
class StoreError(MooncakeConfigError):
    """An operation on a store failed. ``code`` is the native client's number, where it gave one (see ``codes``).

    ``native_log`` holds what the native client wrote meanwhile: errors and warnings, the last few. It is empty unless
    ``open_object_store`` was told to set that log aside.
    """

    message: str
    code: int | None = field(default=None, kw_only=True)
    native_log: tuple[str, ...] = field(default=(), kw_only=True)

    def __str__(self) -> str:
        return "\n".join([self.message, *(f"  native log: {line}" for line in self.native_log)])


@dataclass(eq=False)
class StoreImportError(StoreError):
    """The engine cannot be imported. ``module`` is what was missing, ``extra`` the one to install."""

    module: str = field(default="", kw_only=True)
    extra: str = field(default="", kw_only=True)


@dataclass(eq=False)
class StoreSetupError(StoreError):
    """``MooncakeDistributedStore.setup`` returned ``code``, called ``name``, after ``elapsed`` seconds."""

    name: str = field(default="", kw_only=True)
    elapsed: float = field(default=0.0, kw_only=True)


@dataclass(eq=False)
class StoreClosedError(StoreError):
    """The store is closed, or it was opened by another process: the native client would crash."""


@dataclass(eq=False)
class StoreFullError(StoreError):
    """Nothing was stored. ``needed`` is the object's size in bytes, ``replicas`` the copies of it asked for.

    ``capacity`` is what all segments have, full or not, in bytes: None where no ``metrics_port`` was given at opening,
    or the master does not tell.
    """

    needed: int | None = field(default=None, kw_only=True)
    capacity: int | None = field(default=None, kw_only=True)
    replicas: int = field(default=1, kw_only=True)


@dataclass(eq=False)
class ObjectNotFoundError(StoreError):
    """The object is not there any more. ``key`` is its name in the store."""

    key: str = field(default="", kw_only=True)


@dataclass(eq=False)
class MasterUnreachableError(StoreError):
    """``master`` did not answer."""

    master: str = field(default="", kw_only=True)


@dataclass(eq=False)
class TransferError(StoreError):
    """The bytes of ``key`` could not be moved from or to ``peer``, a segment's ``host:port``.

    ``peer`` is empty for a put: the native client does not tell which segment the master had chosen.
    """

    key: str = field(default="", kw_only=True)
    peer: str = field(default="", kw_only=True)


@dataclass(eq=False)
class BufferTooSmallError(StoreError):
    """The transfer buffer has no room. Sizes are bytes.

    ``unreleased`` counts pieces that results still use, ``holders`` are the keys of the objects that these are of.
    """

    local_buffer_size: int | None = field(default=None, kw_only=True)
    chunk_bytes: int | None = field(default=None, kw_only=True)
    unreleased: int = field(default=0, kw_only=True)
    holders: tuple[str, ...] = field(default=(), kw_only=True)


@dataclass(eq=False)
class MasterStartError(StoreError):
    """``mooncake_master`` did not become ready. ``log`` is the end of what it wrote, ``returncode`` how it ended."""

    returncode: int | None = field(default=None, kw_only=True)
    log: str = field(default="", kw_only=True)
