"""Mooncake Store as the rollout object store: structured objects over ``MooncakeBundleTransfer``.

The only file that imports ``mooncake``, and only when a store is opened. What the native client does by itself, this
one keeps away: an object is pinned until it is removed (else the master evicts what nobody has read yet), a read never
waits for room in the transfer buffer (else it waits forever), no call reaches a closed client (else the process dies).
"""

from __future__ import annotations

import logging
import os
import re
import time
import uuid
import weakref
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from mooncake_config.display import shown
from mooncake_config.findings import ConfigError, Finding, Severity
from mooncake_config.store import ObjectStore, ValueSpec
from mooncake_config.store.batching import Forwarded, GatheredReads, GatheredWrites
from mooncake_config.store.codes import OUT_OF_REACH
from mooncake_config.store.errors import MasterUnreachableError, StoreClosedError, StoreError, StoreFullError
from mooncake_config.store.failures import (
    NATIVE_FAILURES,
    NO_ROOM,
    code_in,
    import_failure,
    put_failure,
    read_failure,
    remove_failure,
    setup_failure,
)
from mooncake_config.store.journal import Journal, opened, tell
from mooncake_config.store.layout import OWN, Plan, nbytes, plan, pool_backed, restored, unencodable
from mooncake_config.store.leaving import leave
from mooncake_config.store.master import total_capacity
from mooncake_config.store.native_log import NativeLog, set_aside
from mooncake_config.store.reading import reading
from mooncake_config.store.transfer_buffer import Borrower, NoPieces, TransferBuffer
from mooncake_config.store.values import checked_fields

if TYPE_CHECKING:
    from mooncake_config.resolve import Resolution

LOGGER = logging.getLogger("mooncake_config")

KEY_PREFIX = "bundle"
"""The first part of every key: Mooncake's own default, so that a plain ``MooncakeBundleTransfer(store)`` reads ours."""

WAIT_FOR_BUFFER = 5.0
"""Seconds that a put waits for others to leave room in the transfer buffer. Mooncake's own pool waits without end."""

RETRY_SECONDS = 3.0
"""How long an operation is tried again after a restart of the master: clients offer their segments anew within 1 s."""

RETRY_PAUSE = 0.1

OUTAGE_SECONDS = 10.0
"""How long after an answer failed to come a full store may be one whose segments are not all back."""

DEFAULT_CHUNK_BYTES = 64 * 1024 * 1024
"""Mooncake's own chunk, where ``chunk_bytes`` is unset (``structured_object_store.py``)."""

MSGPACK_LIMIT = 100 * 1024 * 1024
"""Bytes of a ``msgpack_ragged`` column that Mooncake can read back: it feeds them to a msgpack ``Unpacker`` at once."""

FORGETFUL_CODECS = frozenset({"ragged_tensor", "ragged_tensor_dict", "structured_recursive"})
"""The codecs whose decoders give rows on memory of the transfer buffer and let go of it: the next read overwrites them.

Measured with 0.3.13.post1: tokens of one rollout turned into those of the next one.
"""

_NAMESPACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
T = TypeVar("T")
_ENCODING_FAILURES = (ValueError, TypeError, OverflowError)


@dataclass(frozen=True)
class MooncakeRef:
    """Where an object is. It pickles, is about 2 kB, and says nothing about who may read it.

    ``handle`` is the ref as Mooncake exports it: ``MooncakeBundleTransfer(store).get(import_ref(ref.handle),
    type="dict")`` reads it as well. ``key`` names the object, ``nbytes`` is what it takes of the store, per replica.
    """

    key: str
    nbytes: int
    handle: Mapping[str, Any] = field(compare=False, repr=False)


@dataclass(frozen=True)
class Engine:
    """What is used of the installed ``mooncake``."""

    client: Any
    config: Any
    pool: Any
    schema: Any
    transfer: Any
    export_ref: Callable[[Any], dict[str, Any]]
    import_ref: Callable[[Mapping[str, Any]], Any]


def import_engine() -> Engine:
    """The names of the installed wheel.

    Raises:
        StoreImportError: there is none, or one that is too old, built for another CUDA, or not this ``mooncake``.
    """
    try:
        from mooncake.buffer_pool import BufferPool
        from mooncake.store import MooncakeDistributedStore, ReplicateConfig
        from mooncake.structured_object_store import FieldSchema, MooncakeBundleTransfer, export_ref, import_ref
    except ImportError as error:
        raise import_failure(error) from error
    return Engine(
        MooncakeDistributedStore,
        ReplicateConfig,
        BufferPool,
        FieldSchema,
        MooncakeBundleTransfer,
        export_ref,
        import_ref,
    )


def open_mooncake_store(
    resolution: Resolution,
    namespace: str,
    on_missing_replicas: str,
    ignore: Collection[str],
    native_log: str | os.PathLike[str],
    metrics_port: int | None,
) -> MooncakeObjectStore:
    """Sets up a native client and the store over it. See ``open_object_store``.

    Raises:
        ValueError: a namespace that is no plain path segment, or an unknown choice or rule.
        StoreImportError: see :func:`import_engine`.
        ConfigError: this host or the endpoints do not serve.
        StoreSetupError: setup returned a code; the half-built client is closed.
    """
    if not _NAMESPACE.fullmatch(namespace):
        raise ValueError(f"namespace {namespace!r}: letters, digits, '_', '.' and '-', at most 128, no slash")
    if on_missing_replicas not in {"error", "warn"}:
        raise ValueError(f"on_missing_replicas is 'error' or 'warn', not {on_missing_replicas!r}")
    engine = import_engine()
    started = time.monotonic()
    log_warnings([*resolution.findings, *_live_findings(resolution, ignore)])
    log = set_aside(native_log)
    try:
        native = _set_up(engine, resolution, log)
    except BaseException:
        log.end()
        raise
    tell(opened(resolution, namespace, time.monotonic() - started))
    return MooncakeObjectStore(engine, native, log, resolution, namespace, on_missing_replicas, metrics_port)


def _set_up(engine: Engine, resolution: Resolution, log: NativeLog) -> Any:
    native, settings = engine.client(), resolution.setup_kwargs()
    mark, started = log.mark(), time.monotonic()
    code = int(native.setup(settings))
    if code != 0:
        failure = setup_failure(code, settings, time.monotonic() - started)
        failure.native_log = log.complaints(mark)
        native.close()
        raise failure
    return native


def log_warnings(findings: Iterable[Finding]) -> None:
    """Each warning once, at WARNING; infos are for those who ask."""
    for finding in findings:
        if finding.severity is Severity.WARNING:
            LOGGER.warning("%s", finding)


def _live_findings(resolution: Resolution, ignore: Collection[str]) -> list[Finding]:
    """What a look at this host and at the endpoints adds to the resolution.

    Raises:
        ConfigError: an error among it.
    """
    from mooncake_config.check import check_before_opening

    # Rules MC0xx and MC1xx have had their say at resolving: what is not among its findings was ignored there.
    seen = check_before_opening(resolution.process, ignore).findings
    added = [finding for finding in seen if finding.code >= "MC2" and finding not in resolution.findings]
    if any(finding.severity is Severity.ERROR for finding in added):
        raise ConfigError(added)
    return added


class MooncakeObjectStore(ObjectStore[MooncakeRef]):
    """The store over one native client. Made by ``open_object_store``; safe to use from several threads."""

    def __init__(
        self,
        engine: Engine,
        native: Any,
        log: NativeLog,
        resolution: Resolution,
        namespace: str,
        on_missing_replicas: str,
        metrics_port: int | None,
    ) -> None:
        self.namespace = namespace
        self._engine = engine
        self._native = native
        self._master = shown(resolution.setup_kwargs()["master_server_addr"])
        self._buffer_bytes = int(resolution.setup_kwargs()["local_buffer_size"])
        self._on_missing_replicas = on_missing_replicas
        self._replica_num = resolution.replica_num
        self._buffer = TransferBuffer(engine.pool(native), self._buffer_bytes) if self._buffer_bytes else None
        self._chunk_bytes = resolution.settings.chunk_bytes or DEFAULT_CHUNK_BYTES
        if self._buffer is not None:
            # A chunk that does not fit the buffer could never be put; in smaller ones the object is the same.
            self._chunk_bytes = min(self._chunk_bytes, self._buffer.room)
        self._message_bytes = self._buffer.room // 4 if self._buffer is not None else 0
        self._process = os.getpid()
        self._closed = False
        self._leases: dict[int, str] = {}
        self._live: set[str] = set()
        self._debris: set[str] = set()
        self._removed: deque[str] = deque(maxlen=1000)
        self._outage = -OUTAGE_SECONDS
        self._metrics_port = metrics_port
        self._log = log
        self._journal = Journal()
        address = str(resolution.setup_kwargs()["master_server_addr"])
        self._end = weakref.finalize(self, leave, native, log, self._process, address)

    def put(self, value: Mapping[str, Any], value_spec: Mapping[str, ValueSpec] | None = None) -> MooncakeRef:
        fields, specs = checked_fields(value, value_spec)
        with self._explained():
            ref = self._put_fields(fields, specs)
        self._live.add(ref.key)
        self._journal.done("put", ref.nbytes)
        return ref

    def _put_fields(self, fields: dict[str, Any], specs: Mapping[str, ValueSpec]) -> MooncakeRef:
        refused: set[str] = set()
        while True:
            made = plan(fields, specs, refused)
            try:
                return self._persistently(partial(self._put_plan, made))
            except _ENCODING_FAILURES:
                # Encoding comes before the first byte is sent, so nothing is left behind.
                found = unencodable(made) - refused
                if not found:
                    raise
            except _UnreadableColumnsError as error:
                found = error.names - refused
                if not found:
                    raise
            refused |= found

    @property
    def unreleased(self) -> int:
        """The pieces of the transfer buffer that arrays of results still use."""
        return len(self._leases)

    @reading
    def get(self, ref: MooncakeRef | Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """As ``ObjectStore.get``. Takes also a plain handle, of ours or of Mooncake's own ``export_ref``.

        Arrays and tensors lie in this client's transfer buffer and may be written to.
        """
        handle = _handle(ref)
        with self._explained():
            value = self._persistently(lambda: self._read(handle))
        self._journal.done("get", _size(ref))
        try:
            yield value
        finally:
            value.clear()

    def remove(self, ref: MooncakeRef | Mapping[str, Any]) -> None:
        """As ``ObjectStore.remove``, at once: also from under a reader's lease."""
        handle = _handle(ref)
        with self._explained():
            self._persistently(lambda: self._remove(handle))
        key = _manifest_keys(handle)[0]
        self._live.discard(key)
        self._removed.append(key)
        self._journal.done("remove", _size(ref))

    def purge(self) -> int:
        """Removes every object of this namespace, whoever put it: what a crashed job has left. Returns how many keys.

        The master looks at all of its keys for that, so it is for between jobs.

        Raises:
            StoreError: the master refused, or does not answer.
        """
        with self._explained():
            count = self._persistently(lambda: self._remove_below(f"{KEY_PREFIX}/{self.namespace}"))
        self._live.clear()
        self._journal.done("purge")
        return count

    def close(self) -> None:
        """Leaves the store, in 5 s or so at most. While an array of a result is in use, the native client stays.

        The native client takes 1 to 2 s of that, in which no other thread of the process runs (measured with
        0.3.13.post1). Where the master does not answer, or is highly available, it would be up to 80 s: there the
        client is left alone, which a warning tells. Its segment and its buffers then go with the process, and the
        process takes that time to end: ``MC_RPC_TIMEOUT_MS``, which Mooncake reads when a store is opened, shortens it
        (with 3000 a master that hangs costs 8 s).
        """
        if self._closed:
            return
        self._closed = True
        counts = {"live_refs": len(self._live), "unreleased_results": self.unreleased}
        tell({"event": "store closed", "namespace": self.namespace, **self._journal.summary(), **counts})
        if self._leases:
            LOGGER.warning(
                "the store of %s was closed while %d pieces of its results are in use; its segment stays until they go",
                self._master,
                len(self._leases),
            )
            return
        self._end()

    # --- every operation ---

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Counts an operation that fails, and gives its error what the native log said meanwhile."""
        self._check_usable()
        mark = self._log.mark()
        try:
            yield
        except StoreError as error:
            error.native_log = self._log.complaints(mark)
            self._journal.failed(error)
            raise

    def _persistently(self, operation: Callable[[], T]) -> T:
        """An operation, tried again for a while where a master that has just been restarted would explain its failure.

        Its first answer after that is a broken connection, and then that no segment has room: they are not back yet.
        """
        deadline = time.monotonic() + RETRY_SECONDS
        tries = 0
        while True:
            tries += 1
            try:
                return operation()
            except (MasterUnreachableError, StoreFullError) as error:
                if not self._may_pass(error) or time.monotonic() >= deadline:
                    raise
                if tries == 1:
                    LOGGER.warning("trying again for %.0f s: %s", RETRY_SECONDS, error)
            time.sleep(RETRY_PAUSE)

    def _may_pass(self, error: StoreError) -> bool:
        if isinstance(error, MasterUnreachableError):
            self._outage = time.monotonic()
            return True
        if time.monotonic() - self._outage < OUTAGE_SECONDS:
            return True
        return error.code == NO_ROOM and not self._takes_a_byte()

    def _takes_a_byte(self) -> bool:
        """Whether there is a segment at all: without one, a store refuses a single byte too."""
        key = f"{KEY_PREFIX}/{self.namespace}/byte-{uuid.uuid4().hex}"
        code = int(self._native.put(key, b"0", config=self._config()))
        if code == 0:
            self._native.remove(key, True)
        return code != NO_ROOM

    def _capacity(self) -> int | None:
        return None if self._metrics_port is None else total_capacity(self._master, self._metrics_port)

    def _fate(self, key: str) -> str:
        """What became of a key that the master does not know."""
        if key in self._removed:
            return "it was removed through this store"
        since = time.monotonic() - self._outage
        if self._outage > 0:
            return f"the master was out of reach {since:.0f} s ago, and one that is restarted has forgotten everything"
        return "it was removed, or the master was restarted and has forgotten it"

    # --- one object ---

    def _check_usable(self) -> None:
        if self._closed:
            raise StoreClosedError("this store is closed; open another one")
        if os.getpid() != self._process:
            raise StoreClosedError(
                f"this store was opened by process {self._process}, and a forked child cannot use its connections; "
                "open a store in this process"
            )

    def _transfer(self, client: Any, prefix: str, pool: Borrower | NoPieces) -> Any:
        return self._engine.transfer(client, key_prefix=prefix, buffer_pool=pool)

    def _config(self, group: str | None = None, count: int = 1) -> Any:
        """How pieces are stored: with so many replicas, and pinned, since the master evicts what nobody has read."""
        config = self._engine.config()
        config.replica_num = self._replica_num
        config.with_hard_pin = True
        if group is not None:
            config.group_ids = [group] * count
        return config

    def _pool(self, seconds: float) -> Borrower | NoPieces:
        return NoPieces() if self._buffer is None else Borrower(self._buffer, seconds)

    def _reading_pool(self, handle: Mapping[str, Any]) -> Borrower | NoPieces:
        codecs = {encoded["codec"] for encoded in handle["encoded_non_tensor"].values()}
        return NoPieces() if codecs & FORGETFUL_CODECS else self._pool(seconds=0)

    def _put_plan(self, made: Plan) -> MooncakeRef:
        pool = self._pool(WAIT_FOR_BUFFER)
        client = GatheredWrites(self._native, pool.acquire, self._config, self._message_bytes)
        transfer = self._transfer(client, KEY_PREFIX, pool)
        parts: list[Any] = []
        try:
            with self._translated(made):
                for stage, columns in made.stages.items():
                    parts.append(self._put_stage(transfer, stage, columns))
                client.flush()
            self._check_stored(parts)
        except BaseException as error:
            dropped = [self._drop(part) for part in parts]
            if not all(dropped) or isinstance(error, MasterUnreachableError):
                self._debris |= client.objects
            raise
        self._sweep()
        handle = self._engine.export_ref(_joined(parts, made))
        handle[OWN] = {"version": 1, "marks": made.marks}
        specs = [spec for part in parts for spec in _payloads(part)]
        return MooncakeRef(_manifest_keys(handle)[0], sum(spec["bytes"] for spec in specs), handle)

    def _put_stage(self, transfer: Any, stage: str, columns: Mapping[str, Any]) -> Any:
        envelope: dict[str, dict[str, Any]] = {"batch": {}, "non_tensor_batch": {}, "meta_info": {}}
        schemas = {}
        for name, column in columns.items():
            envelope["batch" if column.schema is None else "non_tensor_batch"][name] = column.values
            if column.schema is not None:
                codec, metadata = column.schema
                schemas[name] = self._engine.schema(codec, metadata=metadata)
        return transfer.put(
            envelope,
            type="dataproto",
            namespace=self.namespace,
            partition=self.namespace,
            stage=stage,
            chunk_bytes=self._chunk_bytes,
            config=self._config(),
            field_schemas=schemas,
        )

    @contextmanager
    def _translated(self, made: Plan) -> Iterator[None]:
        """What the native client raises while an object is put becomes one of our errors."""
        try:
            yield
        except (RuntimeError, MemoryError) as error:
            needed = sum(nbytes(column) for columns in made.stages.values() for column in columns.values())
            failure = put_failure(
                error,
                master=self._master,
                needed=needed,
                replicas=self._replica_num,
                buffer=self._buffer_bytes,
                chunk=self._chunk_bytes,
                holders=list(self._leases.values()),
            )
            if isinstance(failure, StoreFullError):
                failure.capacity = self._capacity()
            raise failure from error

    def _check_stored(self, parts: list[Any]) -> None:
        unreadable = {name for part in parts for name in _too_long(part)}
        if unreadable:
            raise _UnreadableColumnsError(unreadable)
        asked = self._replica_num
        if asked > 1:
            keys = [key for part in parts for key in _keys(part)]
            found = self._native.batch_get_replica_desc(keys)
            fewest = min(len(found.get(key, ())) for key in keys)
            if fewest < asked:
                self._report_missing(asked, fewest)

    def _report_missing(self, asked: int, fewest: int) -> None:
        message = (
            f"{asked} replicas were asked for and the store of {self._master} made {fewest}: "
            "each needs a segment of its own. Let more nodes contribute a segment, or ask for fewer replicas"
        )
        if self._on_missing_replicas == "error":
            raise StoreFullError(f"{message}; the object was taken back.", replicas=asked, capacity=self._capacity())
        LOGGER.warning("%s.", message)

    def _drop(self, part: Any) -> bool:
        """Removes a part of an object; False where that did not succeed."""
        try:
            self._transfer(Forwarded(self._native), KEY_PREFIX, NoPieces()).cleanup_dataproto(part)
        except NATIVE_FAILURES as error:
            LOGGER.warning("a put failed, and what it had stored is not removed before the next one: %s", error)
            return False
        return True

    def _sweep(self) -> None:
        """Removes what earlier puts had stored when the master went out of reach."""
        while self._debris:
            base = self._debris.pop()
            try:
                self._remove_below(base)
            except StoreError:
                self._debris.add(base)
                return

    def _read(self, handle: Mapping[str, Any]) -> dict[str, Any]:
        keys = _manifest_keys(handle)
        pool = self._reading_pool(handle)
        client = GatheredReads(self._native, self._pool(seconds=0).acquire, self._message_bytes)
        ref = self._engine.import_ref(handle)
        try:
            for stage, manifest in zip(ref.stage_refs.values(), client.manifests(keys), strict=True):
                stage.manifest = manifest
                client.fetch(manifest)
            native = self._transfer(client, _prefix(keys[0]), pool).get(ref, type="dict")
        except NATIVE_FAILURES as error:
            raise read_failure(
                error, self._native, keys, master=self._master, buffer=self._buffer_bytes, fate=self._fate
            ) from error
        finally:
            client.release()
        for owner, memory in pool_backed(native):
            self._keep(owner, memory, keys[0])
        own = handle.get(OWN)
        return restored(native, None if own is None else own["marks"])

    def _keep(self, owner: Any, memory: Any, key: str) -> None:
        """Ties a piece of the transfer buffer to the memory of its arrays: it is released when none is left."""
        lease = id(owner)
        self._leases[lease] = key
        weakref.finalize(memory, self._release, owner, lease).atexit = False

    def _release(self, owner: Any, lease: int) -> None:
        owner.release()
        self._leases.pop(lease, None)
        if self._closed and not self._leases:
            self._end()

    def _remove(self, handle: Mapping[str, Any]) -> None:
        keys = _manifest_keys(handle)
        transfer = self._transfer(Forwarded(self._native), _prefix(keys[0]), NoPieces())
        try:
            transfer.cleanup_dataproto(self._engine.import_ref(handle))
        except NATIVE_FAILURES as error:
            if code_in(error) in OUT_OF_REACH:
                raise remove_failure(code_in(error) or 0, keys[0], self._master) from error
            # The list of parts cannot be read, or a part refused: the master can go by the beginning of the keys.
            for key in keys:
                self._remove_below(key.removesuffix("/manifest"))

    def _remove_below(self, base: str) -> int:
        """Removes the keys that begin with ``base/``, leases or not; the master looks at all of its keys."""
        count = int(self._native.remove_by_regex(f"^{_literal(base)}/", force=True))
        if count < 0:
            raise remove_failure(count, base, self._master)
        return count


class _UnreadableColumnsError(Exception):
    """Columns were stored that Mooncake could not read back."""

    def __init__(self, names: set[str]) -> None:
        super().__init__(names)
        self.names = names


# --- Mooncake's refs ---


def _handle(ref: MooncakeRef | Mapping[str, Any]) -> Mapping[str, Any]:
    handle: object = ref.handle if isinstance(ref, MooncakeRef) else ref
    if not isinstance(handle, Mapping) or not handle.get("stage_refs"):
        raise TypeError(f"not a ref of the Mooncake store: {type(ref).__name__}")
    return handle


def _size(ref: MooncakeRef | Mapping[str, Any]) -> int:
    return ref.nbytes if isinstance(ref, MooncakeRef) else 0


def _manifest_keys(handle: Mapping[str, Any]) -> list[str]:
    return [stage["manifest_key"] for stage in handle["stage_refs"].values()]


def _prefix(manifest_key: str) -> str:
    """``PREFIX/PARTITION/ID/manifest`` → ``PREFIX``: others may have put it under a prefix of theirs."""
    return manifest_key.rsplit("/", 3)[0]


def _literal(text: str) -> str:
    """A regular expression for the text itself, in the dialect of C++: only characters that it knows are escaped."""
    return re.sub(r"[.^$|()\[\]{}*+?\\]", r"\\\g<0>", text)


def _joined(parts: list[Any], made: Plan) -> Any:
    """One ref over all stages of an object. Mooncake reads each field from the stage that it names."""
    first = parts[0]
    return replace(
        first,
        stage_refs={stage: ref for part in parts for stage, ref in part.stage_refs.items()},
        field_index={name: place for part in parts for name, place in part.field_index.items()},
        encoded_non_tensor={name: how for part in parts for name, how in part.encoded_non_tensor.items()},
        meta_info=made.inline,
    )


def _payloads(part: Any) -> Iterator[dict[str, Any]]:
    for ref in part.stage_refs.values():
        yield ref.manifest["meta"]
        yield from ref.manifest["buffers"].values()


def _keys(part: Any) -> Iterator[str]:
    for ref in part.stage_refs.values():
        yield ref.manifest_key
    for payload in _payloads(part):
        for chunk in payload["chunks"]:
            yield chunk["key"]


def _too_long(part: Any) -> Iterator[str]:
    for name, encoded in part.encoded_non_tensor.items():
        if encoded["codec"] == "msgpack_ragged":
            member = encoded["payload_members"]["data"]
            ref = part.stage_refs[part.field_index[name].stage]
            if ref.manifest["buffers"][member]["bytes"] > MSGPACK_LIMIT:
                yield name
