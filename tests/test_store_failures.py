"""What the native client's failures become. The texts are those of 0.3.13.post1."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mooncake_config.store.errors import (
    BufferTooSmallError,
    MasterUnreachableError,
    ObjectNotFoundError,
    StoreError,
    StoreFullError,
    TransferError,
)
from mooncake_config.store.failures import (
    code_in,
    import_failure,
    put_failure,
    read_failure,
    remove_failure,
    setup_failure,
)

NO_JSON = json.JSONDecodeError("Expecting value", "", 0)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("put failed for bundle/rollout/7-1/meta: -200", -200),
        ("get_into_ranges failed for bundle/x-12/meta: expected 40, got -704", -704),
        ("requested buffer size exceeds pool capacity", None),
        ("batch_get_into returned 1 results for 2 chunks", None),
    ],
)
def test_code_in(text: str, code: int | None) -> None:
    """The code is the number at the end of the text, and no part of a key."""
    assert code_in(RuntimeError(text)) == code


def module_error(text: str, name: str, kind: type[ImportError] = ModuleNotFoundError) -> ImportError:
    """What Python raises for a module."""
    return kind(text, name=name)


@pytest.mark.parametrize(
    ("error", "message", "extra"),
    [
        (
            module_error("No module named 'mooncake'", "mooncake"),
            r"not installed.*mooncake-cuda13.*no CUDA",
            "mooncake-cpu",
        ),
        (
            module_error("No module named 'msgpack'", "msgpack"),
            r"msgpack is not installed, which comes with Mooncake: pip install 'mooncake-config\[mooncake\]'",
            "mooncake-cpu",
        ),
        (
            module_error("libibverbs.so.1: cannot open shared object file", "mooncake.store", ImportError),
            r"libibverbs\.so\.1.*apt-get install libibverbs1",
            "mooncake-cpu",
        ),
        (
            module_error(
                "libcudart.so.12: cannot open shared object file: No such file", "mooncake.engine", ImportError
            ),
            r"libcudart\.so\.12: this wheel is built for another CUDA.*mooncake-cpu",
            "mooncake-cpu",
        ),
        (
            module_error("libodd.so.3: cannot open shared object file", "mooncake.store", ImportError),
            r"libodd\.so\.3: install the system package",
            "mooncake-cpu",
        ),
        (
            module_error("No module named 'mooncake.structured_object_store'", "mooncake.structured_object_store"),
            r"no structured objects.*older than 0\.3\.12\.post1, or a CUDA 12 build.*mooncake-cuda13",
            "mooncake-cuda13",
        ),
        (
            module_error(
                "cannot import name 'FieldSchema' from 'mooncake.structured_object_store' (/x.py)",
                "mooncake.structured_object_store",
                ImportError,
            ),
            r"no structured objects.*older than 0\.3\.12\.post1",
            "mooncake-cuda13",
        ),
        (module_error("No module named 'mooncake.store'", "mooncake.store"), "is not Mooncake Store", "mooncake-cpu"),
    ],
)
def test_import_failure(error: ImportError, message: str, extra: str) -> None:
    """An engine that cannot be imported is told with its cause and the extra to install."""
    failure = import_failure(error)
    assert failure.extra == extra
    assert failure.module == error.name
    with pytest.raises(StoreError, match=message):
        raise failure


SETTINGS: dict[str, int | str] = {
    "local_hostname": "10.0.0.7",
    "metadata_server": "P2PHANDSHAKE",
    "global_segment_size": 8,
    "local_buffer_size": 16,
    "protocol": "tcp",
    "rdma_devices": "",
    "master_server_addr": "10.0.0.5:50051",
}


@pytest.mark.parametrize(
    ("code", "seconds", "changes", "first"),
    [
        (-1, 90.0, {}, "no master answers at 10.0.0.5:50051"),
        (-600, 4.3, {}, "no master answers at 10.0.0.5:50051"),
        (-600, 0.0, {}, "a setting is refused: global_segment_size 8"),
        (-1, 22.0, {"protocol": "rdma", "rdma_devices": "mlx5_9"}, "the RDMA device mlx5_9 does not exist here"),
    ],
)
def test_setup_failure(code: int, seconds: float, changes: dict[str, str], first: str) -> None:
    """The likeliest cause of a failed setup comes first; how long it took says much."""
    failure = setup_failure(code, {**SETTINGS, **changes}, seconds)
    assert f"Likeliest first: {first}" in str(failure)
    assert (failure.code, failure.elapsed) == (code, seconds)
    assert failure.name in str(failure)


def test_setup_failure_masks_passwords() -> None:
    """A password in an address is in no message."""
    failure = setup_failure(-1, {**SETTINGS, "master_server_addr": "redis://u:hunter2@10.0.0.5"}, 9.0)
    assert "hunter2" not in str(failure)


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("batch_put_from failed for bundle/k: -200", StoreFullError, "no room for 1,000 bytes"),
        ("put failed for bundle/k: -900", MasterUnreachableError, "the master at m:1 does not answer"),
        ("put failed for bundle/k: -901", MasterUnreachableError, "RPC_TIMEOUT"),
        ("batch_put_from failed for bundle/k: -800", TransferError, "local_hostname"),
        ("put failed for bundle/k: -705", StoreError, "OBJECT_ALREADY_EXISTS"),
        ("no room for a piece of 5 bytes", BufferTooSmallError, "other operations are using it"),
        ("requested buffer size exceeds pool capacity", BufferTooSmallError, "local_buffer_size"),
        ("something else", StoreError, "could not be stored: something else"),
    ],
)
def test_put_failure(text: str, kind: type[StoreError], message: str) -> None:
    """A failed put has the error of its cause."""
    failure = put_failure(RuntimeError(text), master="m:1", needed=1000, replicas=1, buffer=64, chunk=32, holders=())
    assert type(failure) is kind
    assert message in str(failure)


def test_key_of_a_failed_put() -> None:
    """A piece that could not be moved is named."""
    error = RuntimeError("batch_put_from failed for bundle/rollout/1/buffer/a: -800")
    failure = put_failure(error, master="m:1", needed=1000, replicas=1, buffer=64, chunk=32, holders=())
    assert isinstance(failure, TransferError)
    assert (failure.key, failure.peer) == ("bundle/rollout/1/buffer/a", "")


class Descriptor:
    """A replica as the native client describes it."""

    transport_endpoint = "127.0.0.1:16060"

    def is_memory_replica(self) -> bool:
        """In memory."""
        return True

    def get_memory_descriptor(self) -> Any:
        """Where in memory."""
        return type("Memory", (), {"buffer_descriptor": self})


class Client:
    """The answers of a native client about one key."""

    def __init__(self, exists: int, replicas: list[Any] | None = None) -> None:
        self._exists = exists
        self._replicas = replicas

    def is_exist(self, key: str) -> int:
        """1, 0 or a code."""
        return self._exists

    def get_replica_desc(self, key: str) -> list[Any]:
        """The replicas, or what the client raises."""
        if self._replicas is None:
            raise RuntimeError(key)
        return self._replicas


@pytest.mark.parametrize(
    ("error", "client", "kind", "message"),
    [
        (NO_JSON, Client(0), ObjectNotFoundError, "bundle/k/manifest is forgotten"),
        (NO_JSON, Client(-900), MasterUnreachableError, "does not answer"),
        (NO_JSON, Client(1, [Descriptor()]), TransferError, "loopback address"),
        (NO_JSON, Client(1), TransferError, "the process that holds them"),
        (RuntimeError("got -704"), Client(1), ObjectNotFoundError, "has no object"),
        (RuntimeError("got -800"), Client(1, []), TransferError, "-800 TRANSFER_FAIL"),
        (MemoryError("std::bad_alloc"), Client(1), StoreError, "no memory"),
    ],
)
def test_read_failure(error: Exception, client: Client, kind: type[StoreError], message: str) -> None:
    """A failed get has the error of its cause, which the master is asked for: the client itself says nothing."""
    failure = read_failure(
        error, client, ["bundle/k/manifest"], master="m:1", buffer=64, fate=lambda key: f"{key} is forgotten"
    )
    assert type(failure) is kind
    assert message in str(failure)


def test_read_without_a_buffer() -> None:
    """Without a transfer buffer nothing can be read, whatever the code."""
    failure = read_failure(NO_JSON, Client(1), ["k"], master="m:1", buffer=0, fate=str)
    assert isinstance(failure, BufferTooSmallError)


def test_remove_failure() -> None:
    """What was not removed keeps its space, and the error says so."""
    assert isinstance(remove_failure(-900, "k", "m:1"), MasterUnreachableError)
    assert "k was not removed, and keeps its space (-714 OBJECT_REPLICA_BUSY" in str(remove_failure(-714, "k", "m:1"))
