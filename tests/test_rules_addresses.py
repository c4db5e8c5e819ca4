"""Rules about the addresses of one process: loopback, families, guesses, and who reaches them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from asking import MASTER, ONE_NODE, TWO_NODES, as_text, ask, found, severities

from mooncake_config.findings import Severity
from mooncake_config.topology import Topology

ERROR, WARNING, INFO = Severity.ERROR, Severity.WARNING, Severity.INFO
UNKNOWN = replace(TWO_NODES, num_nodes=None)
LOOPBACK = (
    *("127.0.0.1", "127.0.0.2", "127.255.255.254", "127.1", "127.0.1", "0x7f000001", "0x7f.1", "2130706433"),
    *("0177.0.0.1", "017700000001", "localhost", "LOCALHOST", "localhost.", "localhost.localdomain", "localhost4"),
    *("ip6-localhost", "ip6-loopback", "node.localhost"),
)
LOOPBACK_V6 = ("::1", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1", "::ffff:7f00:1", "::0001")
NO_LOOPBACK = (
    "10.127.0.1",
    "128.0.0.1",
    "126.255.255.255",
    "localhost-7.example.net",
    "mylocalhost",
    "127.example.net",
)


def with_hostname(host: str) -> dict[str, str]:
    """An environment that says the host name."""
    return {**MASTER, "MOONCAKE_LOCAL_HOSTNAME": host}


@pytest.mark.parametrize("host", [*LOOPBACK, *LOOPBACK_V6])
def test_loopback_hostname(host: str) -> None:
    """Every spelling of loopback as host name is an error in a job of two nodes, and fine in a job of one."""
    environ = with_hostname(host)
    assert severities(ask(environ, topology=TWO_NODES), "MC101") == [ERROR]
    assert severities(ask(environ, topology=UNKNOWN), "MC101") == [WARNING]
    assert severities(ask(environ, topology=ONE_NODE), "MC101") == []


@pytest.mark.parametrize("host", NO_LOOPBACK)
def test_look_alikes_of_loopback(host: str) -> None:
    """What merely resembles loopback is none."""
    assert not found(ask(with_hostname(host), topology=TWO_NODES), "MC101")


@pytest.mark.parametrize("host", [*LOOPBACK, *(f"[{host}]" for host in LOOPBACK_V6)])
def test_loopback_master_and_metadata(host: str) -> None:
    """A master or metadata server on loopback is an error too, each on its own."""
    environ = {"MOONCAKE_MASTER": f"{host}:50051", "MOONCAKE_TE_META_DATA_SERVER": f"http://{host}:8080/metadata"}
    fields = [finding.fields for finding in found(ask(environ, topology=TWO_NODES), "MC101")]
    assert fields == [("master_server_address",), ("metadata_server",)]


def test_loopback_among_several_endpoints() -> None:
    """One endpoint of an HA master on loopback is enough."""
    process = ask({"MOONCAKE_MASTER": "etcd://10.0.0.1:2379;127.0.0.1:2379"}, topology=TWO_NODES)
    assert severities(process, "MC101") == [ERROR]


@pytest.mark.parametrize(
    ("environ", "topology", "way"),
    [
        (with_hostname("127.0.0.1"), TWO_NODES, "unset it to use the Ray node IP 10.0.0.7"),
        (
            with_hostname("127.0.0.1"),
            replace(TWO_NODES, node_ip="127.0.0.1"),
            "this node's address on the data network.",
        ),
        (MASTER, replace(TWO_NODES, node_ip="127.0.0.1"), "--node-ip-address"),
        ({"MOONCAKE_MASTER": "127.0.0.1:50051"}, TWO_NODES, "every node reaches it"),
    ],
)
def test_way_off_loopback(environ: Mapping[str, str], topology: Topology, way: str) -> None:
    """The fix depends on who made the claim: the variable, Ray, or the master's address."""
    assert way in found(ask(environ, topology=topology), "MC101")[0].fix


@pytest.mark.parametrize(
    ("nodes", "trainers", "weight", "says"),
    [
        (None, 2, [ERROR], "this job has at least 2 nodes"),
        (3, 2, [ERROR], "this job has 3 nodes"),
        (None, 1, [WARNING], "the number of nodes is unknown"),
        (1, 2, [], ""),
    ],
)
def test_loopback_and_training_nodes(nodes: int | None, trainers: int, weight: list[Severity], says: str) -> None:
    """Two nodes that train are enough to know that the job has several."""
    process = ask(with_hostname("127.0.0.1"), topology=replace(TWO_NODES, num_nodes=nodes, trainer_nodes=trainers))
    assert severities(process, "MC101") == weight
    assert all(says in finding.message for finding in found(process, "MC101"))


def test_guessed_loopback_is_no_error() -> None:
    """Loopback that was guessed for want of a Ray is no error by itself; that of a Ray is one."""
    process = ask(MASTER, topology=replace(TWO_NODES, node_ip="127.0.0.1"))
    guessed = replace(process, node=process.node._replace(guessed=True))
    assert severities(process, "MC101") == [ERROR]
    assert severities(guessed, "MC101") == [WARNING]


def test_guessed_node_is_no_proof() -> None:
    """Against a guessed node IP a host name of the JSON is a warning: the guess may be the wrong one."""
    process = ask(MASTER, as_text(local_hostname="10.0.0.1"), topology=TWO_NODES)
    assert severities(replace(process, node=process.node._replace(guessed=True)), "MC107") == [WARNING]


@pytest.mark.parametrize(
    ("own", "master", "metadata", "fields"),
    [
        ("fd00::5", "10.0.0.5:50051", "P2PHANDSHAKE", ["master_server_address"]),
        ("10.0.0.7", "[fd00::5]:50051", "http://[fd00::5]/metadata", ["master_server_address", "metadata_server"]),
        ("10.0.0.7", "10.0.0.5:50051", "http://10.0.0.5/metadata", []),
        ("::ffff:10.0.0.7", "10.0.0.5:50051", "P2PHANDSHAKE", []),
        ("node-7", "[fd00::5]:50051", "P2PHANDSHAKE", []),
        ("fd00::5", "head:50051", "P2PHANDSHAKE", []),
    ],
)
def test_mixed_families(own: str, master: str, metadata: str, fields: list[str]) -> None:
    """IPv4 on one side and IPv6 on the other is a warning, once for each field."""
    environ = {"MOONCAKE_MASTER": master, "MOONCAKE_TE_META_DATA_SERVER": metadata, "MOONCAKE_LOCAL_HOSTNAME": own}
    findings = found(ask(environ, topology=TWO_NODES), "MC113")
    assert [finding.fields for finding in findings] == [("local_hostname", field) for field in fields]


@pytest.mark.parametrize(
    ("code", "host", "fires"),
    [
        ("MC114", "169.254.3.4", True),
        ("MC114", "[fe80::1]", True),
        ("MC114", "[fe80::1%eth0]", True),
        ("MC114", "169.255.0.1", False),
        ("MC115", "172.17.0.3", True),
        ("MC115", "172.17.255.255", True),
        ("MC115", "[::ffff:172.17.0.3]", True),
        ("MC115", "172.18.0.3", False),
        ("MC115", "[fd00::1]", False),
    ],
)
def test_addresses_of_one_wire(code: str, host: str, fires: bool) -> None:
    """Link-local addresses and Docker's default bridge are reported in every address field, unless the job is local."""
    environ = {
        "MOONCAKE_MASTER": f"{host}:50051",
        "MOONCAKE_LOCAL_HOSTNAME": host,
        "MOONCAKE_TE_META_DATA_SERVER": f"http://{host}:8080/metadata",
    }
    fields = {finding.fields for finding in found(ask(environ, topology=TWO_NODES), code)}
    assert fields == ({("master_server_address",), ("local_hostname",), ("metadata_server",)} if fires else set())
    assert not found(ask(environ, topology=ONE_NODE), code)


def test_guessed_node_ip() -> None:
    """A guess of the node IP is a warning unless the job has one node or somebody says the host name."""
    process = ask(topology=TWO_NODES)
    guessed = replace(process, node=process.node._replace(guessed=True))
    assert severities(guessed, "MC112") == [WARNING]
    assert severities(process, "MC112") == []
    assert "no Ray runs here" in found(guessed, "MC112")[0].message
    one = replace(guessed, topology=ONE_NODE)
    assert severities(one, "MC112") == []
    said = ask(with_hostname("10.0.0.7"), topology=TWO_NODES)
    assert severities(replace(said, node=said.node._replace(guessed=True)), "MC112") == []


def test_raylets_that_differ() -> None:
    """Where the raylets of a host differ the guess names them, and does not say that none runs."""
    process = ask(topology=TWO_NODES)
    given = replace(process, node=process.node._replace(guessed=True, rivals=("10.0.0.8", "10.0.0.9")))
    (finding,) = found(given, "MC112")
    assert "the raylets of this host differ (10.0.0.8, 10.0.0.9)" in finding.message
    assert "no Ray" not in finding.message
    assert "the one of this job" in finding.fix
    assert "where Ray runs" not in finding.fix


@pytest.mark.parametrize(
    ("environ", "topology", "weight"),
    [
        ({"MOONCAKE_TE_META_DATA_SERVER": "http://10.0.0.5:8080/metadata"}, TWO_NODES, [INFO]),
        ({"MOONCAKE_TE_META_DATA_SERVER": "etcd://10.0.0.5:2379"}, UNKNOWN, [INFO]),
        ({"MOONCAKE_TE_META_DATA_SERVER": "http://10.0.0.5:8080/metadata"}, ONE_NODE, []),
        (
            {"MOONCAKE_TE_META_DATA_SERVER": "http://10.0.0.5/metadata", "MC_TCP_BIND_ADDRESS": "10.0.0.7"},
            TWO_NODES,
            [],
        ),
        ({"MOONCAKE_TE_META_DATA_SERVER": "bogus"}, TWO_NODES, []),
        ({"MOONCAKE_TE_META_DATA_SERVER": "etcd://a:1", "MOONCAKE_LOCAL_HOSTNAME": "a b"}, TWO_NODES, []),
        ({}, TWO_NODES, []),
    ],
)
def test_hostname_not_advertised(environ: dict[str, str], topology: Topology, weight: list[Severity]) -> None:
    """With a metadata server the engine advertises another address, unless it is told which to bind."""
    assert severities(ask({**MASTER, **environ}, topology=topology), "MC116") == weight
