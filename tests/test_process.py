"""Process: what its values amount to."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import product

import pytest
from asking import MASTER, ONE_NODE, TWO_NODES, as_text, ask

from mooncake_config.addresses import Endpoint
from mooncake_config.process import Backend, Process, fingerprint, setup_kwargs
from mooncake_config.topology import Role

KEYS = {
    "local_hostname": str,
    "metadata_server": str,
    "global_segment_size": int,
    "local_buffer_size": int,
    "protocol": str,
    "rdma_devices": str,
    "master_server_addr": str,
}


def test_setup_dictionary() -> None:
    """The setup dictionary has Mooncake's own seven names, sizes as bytes and the rest as text."""
    assert setup_kwargs(ask(MASTER, as_text(device_name="mlx5_0", chunk_bytes="64mb", global_segment_size="2gb"))) == {
        "local_hostname": "10.0.0.7",
        "metadata_server": "P2PHANDSHAKE",
        "global_segment_size": 2 << 30,
        "local_buffer_size": 32 << 30,
        "protocol": "rdma",
        "rdma_devices": "mlx5_0",
        "master_server_addr": "10.0.0.5:50051",
    }


@pytest.mark.parametrize(("role", "rank"), list(product(Role, (None, 0, 1))))
def test_segment_is_handed_over_by_contributors(role: Role, rank: int | None) -> None:
    """Who contributes hands over the resolved segment, everybody else 0, whatever was configured."""
    process = ask(role=role, topology=replace(ONE_NODE, local_rank=rank))
    contributes = role is Role.TRAINER and rank in (None, 0)
    assert process.contributes_segment is contributes
    handed = setup_kwargs(process)
    assert handed["global_segment_size"] == (8 << 30 if contributes else 0)
    assert process.values["global_segment_size"] == 8 << 30
    assert {key: type(value) for key, value in handed.items()} == KEYS


def test_values_by_kind() -> None:
    """A text is asked for as text, a size as size; neither is given for the other or for a malformed one."""
    process = ask(MASTER, as_text(protocol="rmda"))
    assert process.text("device_name") == ""
    assert process.size("local_buffer_size") == 32 << 30
    assert process.text("local_buffer_size") is None
    assert process.size("device_name") is None
    assert process.text("protocol") is None
    assert process.winner("protocol") is not None


@pytest.mark.parametrize(
    ("processes", "fields", "memory"),
    [
        (8, {}, 264 << 30),
        (1, {"local_buffer_size": "1gb", "global_segment_size": 0}, 1 << 30),
        (None, {}, None),
        (8, {"local_buffer_size": "x"}, None),
        (8, {"global_segment_size": "x"}, None),
    ],
)
def test_memory_of_a_node(processes: int | None, fields: dict[str, object], memory: int | None) -> None:
    """A training node reserves processes × buffer + one segment, where all three are known."""
    assert ask(MASTER, fields, topology=replace(ONE_NODE, processes_per_node=processes)).node_memory == memory


def test_endpoints() -> None:
    """The endpoints of all address fields are taken apart, each with its field."""
    process = ask({"MOONCAKE_MASTER": "etcd://a:1;[fd00::5]:2"}, as_text(metadata_server="http://u:p@c:8080/metadata"))
    assert sorted(process.endpoints, key=lambda item: item[0]) == [
        ("local_hostname", Endpoint("10.0.0.7", None)),
        ("master_server_address", Endpoint("a", 1)),
        ("master_server_address", Endpoint("fd00::5", 2)),
        ("metadata_server", Endpoint("c", 8080)),
    ]
    assert process.own_endpoint == Endpoint("10.0.0.7", None)


def test_no_endpoint_of_its_own() -> None:
    """A process whose host name is malformed advertises nothing."""
    assert ask({**MASTER, "MOONCAKE_LOCAL_HOSTNAME": "a b"}).own_endpoint is None


def test_unread_variables() -> None:
    """The variables that concern Mooncake and are no value are listed by name."""
    process = ask({**MASTER, "MC_B": "2", "MC_A": "1", "PATH": "/bin", "MOONCAKE_PROTOCOL": "tcp"})
    assert process.unread_variables == (("MC_A", "1"), ("MC_B", "2"))


# The fingerprint


def of(**fields: object) -> str | None:
    """The fingerprint of a process with these fields."""
    return fingerprint(ask({}, {"master_server_address": "10.0.0.5:50051", **fields}))


def test_fingerprint_is_of_what_nodes_agree_on() -> None:
    """Master, metadata server and protocol make the fingerprint; what may differ by node or role does not."""
    base = of()
    assert base is not None
    assert base.startswith("sha256:")
    assert of(protocol="RDMA") == base
    assert of(local_hostname="10.0.0.8", device_name="mlx5_1", global_segment_size="1gb", chunk_bytes=2**20) == base
    assert len({base, of(protocol="tcp"), of(metadata_server="etcd://a:1"), of(master_server_address="a:1")}) == 4


def test_fingerprint_knows_no_secret() -> None:
    """Two passwords give one fingerprint: it is made of masked values."""
    assert of(metadata_server="http://u:one@h/metadata") == of(metadata_server="http://u:two@h/metadata")


def test_no_fingerprint() -> None:
    """Where one of the three has no value, and with Ray's object store, there is no fingerprint."""
    assert fingerprint(ask({})) is None
    assert of(protocol="rmda") is None
    assert fingerprint(ask(backend=Backend.RAY)) is None


# Across processes, and in logs


def test_process_pickles() -> None:
    """A process pickles with all that it claims, also where some of it is malformed."""
    process = ask(
        {"MOONCAKE_MASTER": "x", "MC_GID_INDEX": "3"}, '{"protocol": [[1.5]], "chunk_bytes": 1e400}', topology=TWO_NODES
    )
    assert process.endpoints
    copy: Process = pickle.loads(pickle.dumps(process))
    assert copy == process
    assert copy.unread_variables == process.unread_variables


def test_repr_is_safe() -> None:
    """The repr of a process holds no password, no control character and no value of other variables."""
    environ = {
        "MOONCAKE_MASTER": "http://u:hunter2@h",
        "MOONCAKE_TE_META_DATA_SERVER": "http://u:hunter2@h:1/metadata",
        "MC_REDIS_PASSWORD": "hunter2",
        "MOONCAKE_DEVICE": "\x1b[2J" + "x" * 10_000,
    }
    process = ask(environ, {"metadata_server": "redis://:hunter2@h:6379", "http://u:hunter2@h": 1})
    assert process.text("metadata_server") == "redis://:hunter2@h:6379"
    assert "hunter2" not in repr(process)
    assert repr(process).isprintable()
    assert len(repr(process)) < 10_000
