"""Small pieces of an object in one message.

``MooncakeBundleTransfer`` sends and fetches each buffer of an object by itself: five for a column of ragged numbers,
forty for a rollout, 0.3 ms each. The two classes stand between it and the native client: they look like the client
(``BundleStore``), gather what is small, and leave the rest to it.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from mooncake_config.store.codes import OUT_OF_REACH
from mooncake_config.store.transfer_buffer import Piece

SMALL = 256 * 1024
"""Bytes up to which a piece is gathered."""

MESSAGE = 2 * 1024 * 1024
"""Bytes of a message at most."""

WriteConfig = Callable[[str | None, int], Any]
"""Makes the ``ReplicateConfig`` for so many pieces of a group."""

Acquire = Callable[[int], Piece]
"""Lends a piece of the transfer buffer, or raises RuntimeError."""


class Forwarded:
    """The native client, but for a removal that finds no master: it is not tried again for each of forty keys."""

    def __init__(self, native: Any) -> None:
        self._native = native
        self._lost: int | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._native, name)

    def batch_remove(self, keys: Sequence[str], force: bool = False) -> list[int]:  # noqa: FBT001, FBT002 - Mooncake's own
        """Removes keys; the code of each."""
        codes = list(self._native.batch_remove(keys, force))
        self._lost = next((code for code in codes if code in OUT_OF_REACH), None)
        return codes

    def remove(self, key: str, force: bool = False) -> int:  # noqa: FBT001, FBT002 - Mooncake's own
        """Removes a key, unless the master was out of reach a moment ago (4 s for each attempt)."""
        return int(self._native.remove(key, force)) if self._lost is None else self._lost


class GatheredWrites(Forwarded):
    """The native client for one put. ``flush`` sends what has gathered, and has to be called at the end.

    Every piece is stored with a ``config``, also where Mooncake forgets to pass one on (0.3.12.post1 does, for the
    rows of ragged columns: they were not pinned). ``objects`` has what all keys begin with that were to be stored.
    """

    def __init__(self, native: Any, acquire: Acquire, config: WriteConfig, message: int) -> None:
        super().__init__(native)
        self._acquire = acquire
        self._config_for = config
        self._message = min(message, MESSAGE)
        self._pieces: dict[str, bytes] = {}
        self.objects: set[str] = set()
        self._bytes = 0
        self._group: str | None = None

    def put(self, key: str, value: Any, config: Any = None) -> int:
        """Keeps a value for the next message, or sends it, where it is large."""
        self._note(key)
        size = memoryview(value).nbytes
        if size > min(SMALL, self._message):
            return int(self._native.put(key, value, config=self._config_for(_group(config), 1)))
        self._keep(key, bytes(value), config)
        return 0

    def batch_put_from(
        self, keys: Sequence[str], ptrs: Sequence[int], sizes: Sequence[int], config: Any = None
    ) -> list[int]:
        """Keeps the small ones of some pieces of memory, and sends the large ones."""
        for key in keys:
            self._note(key)
        if sum(sizes) > min(SMALL, self._message):
            pinned = self._config_for(_group(config), len(keys))
            return list(self._native.batch_put_from(keys, ptrs, sizes, config=pinned))
        for key, ptr, size in zip(keys, ptrs, sizes, strict=True):
            self._keep(key, ctypes.string_at(ptr, size), config)
        return [0] * len(keys)

    def _note(self, key: str) -> None:
        """``PREFIX/PARTITION/ID/…`` → ``PREFIX/PARTITION/ID``, kept in ``objects``."""
        self.objects.add("/".join(key.split("/", 3)[:3]))

    def _keep(self, key: str, value: bytes, config: Any) -> None:
        group = _group(config)
        if group != self._group or self._bytes + len(value) > self._message:
            self.flush()
        self._group = group
        self._pieces[key] = value
        self._bytes += len(value)

    def flush(self) -> None:
        """Sends what has gathered.

        Raises:
            RuntimeError: a piece was not stored, in the words of ``MooncakeBundleTransfer``.
        """
        pieces, size, self._pieces, self._bytes = self._pieces, self._bytes, {}, 0
        if not pieces:
            return
        loan = self._acquire(size)
        try:
            keys, sizes = list(pieces), list(map(len, pieces.values()))
            addresses = _addresses(loan.ptr, sizes)
            for address, value in zip(addresses, pieces.values(), strict=True):
                ctypes.memmove(address, value, len(value))
            config = self._config_for(self._group, len(keys))
            results = self._native.batch_put_from(keys, addresses, sizes, config=config)
        finally:
            loan.release()
        for key, status in zip(keys, results, strict=True):
            if status != 0:
                raise RuntimeError(f"batch_put_from failed for {key}: {status}")


def _group(config: Any) -> str | None:
    """The name of the group that Mooncake puts an object's pieces in; releases before 0.3.13 have no groups."""
    groups = getattr(config, "group_ids", None)
    return str(groups[0]) if groups else None


def _addresses(start: int, sizes: Iterable[int]) -> list[int]:
    addresses = []
    for size in sizes:
        addresses.append(start)
        start += size
    return addresses


class _Found(NamedTuple):
    """A small piece that was fetched: where it is, and how large."""

    address: int
    size: int


class GatheredReads(Forwarded):
    """The native client for one get. ``fetch`` takes the small parts in one message, ``release`` gives them up."""

    def __init__(self, native: Any, acquire: Acquire, message: int) -> None:
        super().__init__(native)
        self._acquire = acquire
        self._message = min(message, MESSAGE)
        self._found: dict[str, _Found] = {}
        self._loans: list[Piece] = []

    def manifests(self, keys: Sequence[str]) -> list[dict[str, Any]]:
        """The lists of parts of the stages of an object.

        Raises:
            ValueError: one cannot be read (the native client then gives nothing, which is no JSON).
        """
        return [json.loads(blob) for blob in self._native.get_batch(list(keys))]

    def fetch(self, manifest: Mapping[str, Any]) -> None:
        """Fetches the small parts of a manifest. What is not there is left for the one who asks for it."""
        payloads = [manifest["meta"], *manifest["buffers"].values()]
        chunks = [(chunk["key"], chunk["bytes"]) for payload in payloads for chunk in payload["chunks"]]
        batch: dict[str, int] = {}
        for key, size in chunks:
            if size > min(SMALL, self._message):
                continue
            if sum(batch.values()) + size > self._message:
                self._fetch(batch)
                batch = {}
            batch[key] = size
        self._fetch(batch)

    def _fetch(self, batch: Mapping[str, int]) -> None:
        if not batch:
            return
        try:
            loan = self._acquire(sum(batch.values()))
        except RuntimeError:
            return
        self._loans.append(loan)
        keys, sizes = list(batch), list(batch.values())
        addresses = _addresses(loan.ptr, sizes)
        read = self._native.batch_get_into(keys, addresses, sizes)
        self._found.update(
            (key, _Found(address, size))
            for key, address, size, got in zip(keys, addresses, sizes, read, strict=True)
            if got == size
        )

    def batch_get_into(self, keys: Sequence[str], ptrs: Sequence[int], sizes: Sequence[int]) -> list[int]:
        """Pieces into memory: from what was fetched, where all of them were."""
        found = [self._found.get(key) for key in keys]
        if any(piece is None or piece.size != size for piece, size in zip(found, sizes, strict=True)):
            return list(self._native.batch_get_into(keys, ptrs, sizes))
        for piece, ptr in zip(found, ptrs, strict=True):
            if piece is not None:
                ctypes.memmove(ptr, piece.address, piece.size)
        return list(sizes)

    def get_into_ranges(
        self,
        ptrs: Sequence[int],
        keys: Sequence[Sequence[str]],
        targets: Sequence[Sequence[Sequence[int]]],
        sources: Sequence[Sequence[Sequence[int]]],
        sizes: Sequence[Sequence[Sequence[int]]],
    ) -> Any:
        """Ranges of pieces into memory: from what was fetched, where all of them were."""
        if not all(key in self._found for names in keys for key in names):
            return self._native.get_into_ranges(ptrs, keys, targets, sources, sizes)
        for ptr, names, *ranges in zip(ptrs, keys, targets, sources, sizes, strict=True):
            for name, into, out_of, lengths in zip(names, *ranges, strict=True):
                for target, source, length in zip(into, out_of, lengths, strict=True):
                    ctypes.memmove(ptr + target, self._found[name].address + source, length)
        return [[list(lengths) for lengths in each] for each in sizes]

    def release(self) -> None:
        """Gives the memory of what was fetched back."""
        self._found.clear()
        while self._loans:
            self._loans.pop().release()
