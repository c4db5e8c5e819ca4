"""Small pieces of an object in one message: what reaches the native client, and what comes back from it."""

from __future__ import annotations

import ctypes
import json
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from mooncake_config.store.batching import SMALL, Forwarded, GatheredReads, GatheredWrites
from mooncake_config.store.transfer_buffer import NoPieces, Piece, TransferBuffer

MB = 1024 * 1024


class Memory:
    """A pool of this process's memory."""

    def acquire(self, size: int, block: bool) -> Any:
        """Never waits."""
        assert not block
        memory = ctypes.create_string_buffer(size)
        return SimpleNamespace(ptr=ctypes.addressof(memory), size=size, release=lambda: None, owner=memory)


def lend(size: int) -> Piece:
    """A piece of it."""
    return TransferBuffer(Memory(), 64 * MB).lend(size, 0)


@dataclass
class Client:
    """A native client over a dictionary. ``messages`` holds the keys of each message to it."""

    objects: dict[str, bytes] = field(default_factory=dict)
    configs: dict[str, Any] = field(default_factory=dict)
    messages: list[list[str]] = field(default_factory=list)
    codes: dict[str, int] = field(default_factory=dict)

    def put(self, key: str, value: Any, config: Any) -> int:
        """Stores a value."""
        self.messages.append([key])
        self.objects[key], self.configs[key] = bytes(value), config
        return 0

    def batch_put_from(self, keys: list[str], ptrs: list[int], sizes: list[int], config: Any) -> list[int]:
        """Stores memory."""
        self.messages.append(list(keys))
        for key, ptr, size in zip(keys, ptrs, sizes, strict=True):
            self.objects[key], self.configs[key] = ctypes.string_at(ptr, size), config
        return [self.codes.get(key, 0) for key in keys]

    def get_batch(self, keys: list[str]) -> list[bytes]:
        """Reads values; nothing where there is none."""
        self.messages.append(list(keys))
        return [self.objects.get(key, b"") for key in keys]

    def batch_get_into(self, keys: list[str], ptrs: list[int], sizes: list[int]) -> list[int]:
        """Reads into memory."""
        self.messages.append(list(keys))
        read = []
        for key, ptr, size in zip(keys, ptrs, sizes, strict=True):
            ctypes.memmove(ptr, self.objects.get(key, b"").ljust(size), size)
            read.append(len(self.objects[key]) if key in self.objects else -704)
        return read

    def get_into_ranges(self, *arguments: Any) -> Any:
        """Notes that it was asked."""
        self.messages.append(["ranges", *arguments[1][0]])
        return "native"

    def batch_remove(self, keys: list[str], force: bool) -> list[int]:
        """Removes keys."""
        assert force
        return [self.codes.get(key, 0) for key in keys]

    def remove(self, key: str, force: bool) -> int:
        """Removes a key."""
        assert force
        self.messages.append(["remove", key])
        return self.codes.get(key, 0)


def config_for(group: str | None, count: int) -> tuple[str | None, int]:
    """What a configuration is made of."""
    return group, count


def writes(client: Client, message: int = MB) -> GatheredWrites:
    """A put over the client."""
    return GatheredWrites(client, lend, config_for, message)


GROUP = SimpleNamespace(group_ids=["g"])


def test_small_writes_are_one_message() -> None:
    """Small values and small pieces of memory are sent together, each with the group's name."""
    client = Client()
    gathered = writes(client)
    memory = ctypes.create_string_buffer(b"memory", 6)
    assert gathered.put("a", b"value", GROUP) == 0
    assert gathered.batch_put_from(["b"], [ctypes.addressof(memory)], [6], GROUP) == [0]
    assert client.messages == []
    gathered.flush()
    gathered.flush()
    assert client.messages == [["a", "b"]]
    assert client.objects == {"a": b"value", "b": b"memory"}
    assert client.configs == {"a": ("g", 2), "b": ("g", 2)}


def test_large_writes_go_at_once() -> None:
    """What is large is sent by itself, and pinned also where Mooncake passed no configuration on."""
    client = Client()
    gathered = writes(client)
    large = ctypes.create_string_buffer(SMALL + 1)
    gathered.put("a", bytes(SMALL + 1), GROUP)
    gathered.batch_put_from(["b"], [ctypes.addressof(large)], [SMALL + 1])
    assert client.messages == [["a"], ["b"]]
    assert client.configs == {"a": ("g", 1), "b": (None, 1)}


def test_messages_have_a_limit() -> None:
    """A message is sent before it grows beyond its limit, or when another group begins."""
    client = Client()
    gathered = writes(client, message=1000)
    for key in "abc":
        gathered.put(key, bytes(400), GROUP)
    gathered.put("d", bytes(400), SimpleNamespace(group_ids=["other"]))
    gathered.put("e", bytes(1001), GROUP)
    gathered.flush()
    assert client.messages == [["a", "b"], ["c"], ["e"], ["d"]]


def test_failed_write() -> None:
    """A piece that was refused is an error in Mooncake's own words, whatever became of the others."""
    gathered = writes(Client(codes={"b": -200}))
    gathered.put("a", b"1", GROUP)
    gathered.put("b", b"2", GROUP)
    with pytest.raises(RuntimeError, match="batch_put_from failed for b: -200"):
        gathered.flush()


def test_removal_without_a_master() -> None:
    """A removal that finds no master is not tried again for each key; any other refusal is."""
    client = Client(codes={"a": -900})
    forwarded = Forwarded(client)
    assert forwarded.batch_remove(["a", "b"], True) == [-900, 0]
    assert forwarded.remove("a", True) == -900
    assert client.messages == []
    client.codes = {"a": -706}
    assert forwarded.batch_remove(["a"], True) == [-706]
    assert forwarded.remove("a", True) == -706
    assert client.messages == [["remove", "a"]]


def manifest(**sizes: int) -> dict[str, Any]:
    """A list of parts: the first is the metadata."""
    specs = {key: {"chunks": [{"key": key, "bytes": size}]} for key, size in sizes.items()}
    meta = specs.pop("meta")
    return {"meta": meta, "buffers": specs}


def read(client: Any, key: str, size: int) -> bytes:
    """One piece, the way Mooncake reads its metadata."""
    memory = ctypes.create_string_buffer(size)
    assert client.batch_get_into([key], [ctypes.addressof(memory)], [size]) == [size]
    return memory.raw


def ranges(client: Any, key: str, size: int, source: int) -> Any:
    """A range of one piece, the way Mooncake reads its buffers; the bytes where it succeeded."""
    memory = ctypes.create_string_buffer(size)
    sizes = client.get_into_ranges([ctypes.addressof(memory)], [[key]], [[[0]]], [[[source]]], [[[size]]])
    return memory.raw if sizes == [[[size]]] else sizes


def test_small_reads_are_one_message() -> None:
    """The small parts of an object are fetched together, and read from there; the large ones are left for later."""
    client = Client({"meta": b"{}", "a": b"abcdef", "large": bytes(SMALL + 1), "m": json.dumps({"x": 1}).encode()})
    gathered = GatheredReads(client, lend, MB)
    assert gathered.manifests(["m"]) == [{"x": 1}]
    gathered.fetch(manifest(meta=2, a=6, large=SMALL + 1))
    assert client.messages == [["m"], ["meta", "a"]]
    assert read(gathered, "meta", 2) == b"{}"
    assert ranges(gathered, "a", 3, 2) == b"cde"
    assert len(client.messages) == 2
    assert ranges(gathered, "large", 3, 0) == "native"
    gathered.release()
    assert ranges(gathered, "a", 3, 2) == "native"
    assert read(gathered, "a", 6) == b"abcdef"


def test_missing_part() -> None:
    """A part that is not there is left for the one who asks: the native client then says what it is."""
    client = Client({"meta": b"{}"})
    gathered = GatheredReads(client, lend, MB)
    gathered.fetch(manifest(meta=2, a=6))
    assert ranges(gathered, "a", 6, 0) == "native"
    with pytest.raises(ValueError, match="Expecting value"):
        gathered.manifests(["m"])


def test_reads_in_several_messages() -> None:
    """Fetching keeps to the limit of a message too."""
    client = Client({key: bytes(400) for key in ("meta", "a", "b")})
    gathered = GatheredReads(client, lend, 1000)
    gathered.fetch(manifest(meta=400, a=400, b=400))
    assert client.messages == [["meta", "a"], ["b"]]
    assert read(gathered, "b", 400) == bytes(400)


def test_no_room_to_fetch_into() -> None:
    """Without room in the transfer buffer nothing is fetched ahead, and every part is read by itself."""
    client = Client({"meta": b"{}"})
    gathered = GatheredReads(client, NoPieces().acquire, MB)
    gathered.fetch(manifest(meta=2))
    assert client.messages == []
    assert read(gathered, "meta", 2) == b"{}"
