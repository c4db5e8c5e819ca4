"""MC1xx: one process, its values against each other, its role and the job's shape."""

from __future__ import annotations

from dataclasses import replace

import pytest
from asking import MASTER, ONE_NODE, TWO_NODES, as_text, ask, found, severities

from mooncake_config.findings import Severity
from mooncake_config.process import Backend
from mooncake_config.provenance import Origin, Source
from mooncake_config.topology import Role, Topology

ERROR, WARNING, INFO = Severity.ERROR, Severity.WARNING, Severity.INFO
UNKNOWN = replace(TWO_NODES, num_nodes=None)


def with_hostname(host: str) -> dict[str, str]:
    """An environment that says the host name."""
    return {**MASTER, "MOONCAKE_LOCAL_HOSTNAME": host}


# The master


@pytest.mark.parametrize("environ", [{}, {"MOONCAKE_MASTER": ""}, {"MOONCAKE_MASTER": "  "}])
def test_missing_master(environ: dict[str, str]) -> None:
    """No master, or a blank one, is an error that no default hides."""
    (finding,) = found(ask(environ), "MC100")
    assert finding.severity is ERROR
    assert finding.fields == ("master_server_address",)


def test_malformed_master_is_not_missing() -> None:
    """A master that is malformed is not missing."""
    assert not found(ask({"MOONCAKE_MASTER": "10.0.0.5"}), "MC100")


@pytest.mark.parametrize("replicas", [10**5000, -(10**5000), 10**4000], ids=["5001", "-5001", "4001"])
@pytest.mark.parametrize("topology", [TWO_NODES, UNKNOWN])
def test_absurd_number_of_replicas(replicas: int, topology: Topology) -> None:
    """A number of replicas that is too long to be written out is a finding like any other, and no wall of digits."""
    process = ask(topology=replace(topology, trainer_nodes=topology.num_nodes), replica_num=replicas)
    (finding,) = [*found(process, "MC103"), *found(process, "MC104")]
    assert len(finding.message) < 250


def test_missing_master_with_ray() -> None:
    """With Ray's object store no master is needed."""
    assert not found(ask({}, backend=Backend.RAY), "MC100")


@pytest.mark.parametrize(
    ("environ", "hint"),
    [
        ({"MOONCAKE_MASTER_ADDR": "10.0.0.5:50051"}, "MOONCAKE_MASTER_ADDR is set, but that name is not read"),
        ({"mooncake_master": "10.0.0.5:50051"}, "mooncake_master is set"),
        (
            {"MOONCAKE_MASTER_SERVICE_HOST": "10.0.0.44", "MOONCAKE_MASTER_SERVICE_PORT": "50051"},
            "Kubernetes announces a Service at 10.0.0.44:50051",
        ),
    ],
)
def test_hint_at_a_master(environ: dict[str, str], hint: str) -> None:
    """Where another variable or Kubernetes says where the master may be, the fix says so."""
    (finding,) = found(ask(environ), "MC100")
    assert hint in finding.fix


# Chunks and replicas


@pytest.mark.parametrize(
    ("chunk", "buffer", "weight"),
    [
        ("128mb", "64mb", [ERROR]),
        ("64mb", "64mb", []),
        (None, "32mb", [WARNING]),
        (None, "64mb", []),
        ("16mb", "32mb", []),
        ("1mb", "0", []),
        (None, "8", []),
    ],
)
def test_chunk_and_buffer(chunk: str | None, buffer: str, weight: list[Severity]) -> None:
    """A chunk must fit into the buffer; Mooncake's own of 64 MiB should."""
    fields = {"local_buffer_size": buffer, **({"chunk_bytes": chunk} if chunk else {})}
    assert severities(ask(MASTER, fields), "MC102") == weight


def test_malformed_chunk_is_not_judged() -> None:
    """A chunk that cannot be read is not held against the buffer as if it were unset."""
    assert not found(ask(MASTER, {"local_buffer_size": "32mb", "chunk_bytes": "x"}), "MC102")


@pytest.mark.parametrize(("replicas", "weight"), [(-1, [ERROR]), (0, [ERROR]), (1, []), (2, [])])
def test_replicas_below_one(replicas: int, weight: list[Severity]) -> None:
    """One replica is the least."""
    process = ask(topology=replace(TWO_NODES, trainer_nodes=2), replica_num=replicas)
    assert severities(process, "MC103") == weight


@pytest.mark.parametrize(
    ("replicas", "nodes", "trainers", "weight"),
    [
        (2, 2, 1, [WARNING]),
        (2, 2, None, []),
        (5, 2, None, [WARNING]),
        (2, 1, None, [WARNING]),
        (2, None, None, [INFO]),
        (2, None, 2, []),
        (1, 1, 1, []),
    ],
)
def test_replicas_and_training_nodes(
    replicas: int, nodes: int | None, trainers: int | None, weight: list[Severity]
) -> None:
    """More replicas than training nodes is a warning; with an unknown number of them an info."""
    topology = Topology(num_nodes=nodes, trainer_nodes=trainers, node_ip="10.0.0.7")
    assert severities(ask(topology=topology, replica_num=replicas), "MC104") == weight


def test_place_of_replicas() -> None:
    """What is wrong with replicas is edited at their flag."""
    (finding,) = found(ask(replica_num=0), "MC103")
    assert finding.origin == Origin(Source.CLI, "--mooncake-replica-num")


@pytest.mark.parametrize(("nodes", "trainers", "weight"), [(2, 4, [WARNING]), (2, 2, []), (None, 4, []), (2, None, [])])
def test_more_trainer_nodes_than_nodes(nodes: int | None, trainers: int | None, weight: list[Severity]) -> None:
    """No more nodes can train than there are."""
    topology = Topology(num_nodes=nodes, trainer_nodes=trainers, node_ip="10.0.0.7")
    assert severities(ask(topology=topology), "MC117") == weight


# Roles


@pytest.mark.parametrize("size", ["0", "0gb", "0.0 GiB"])
@pytest.mark.parametrize(
    ("role", "rank", "weight"),
    [
        (Role.TRAINER, 0, [WARNING]),
        (Role.TRAINER, None, [WARNING]),
        (Role.TRAINER, 3, []),
        (Role.DRIVER, 0, []),
        (Role.ROLLOUT_MANAGER, 0, []),
    ],
)
def test_contributor_of_nothing(size: str, role: Role, rank: int | None, weight: list[Severity]) -> None:
    """A process that should contribute and gives 0 bytes is warned of; others may give nothing."""
    environ = {**MASTER, "MOONCAKE_GLOBAL_SEGMENT_SIZE": size}
    assert severities(ask(environ, role=role, topology=replace(ONE_NODE, local_rank=rank)), "MC105") == weight


@pytest.mark.parametrize(
    ("host", "processes", "weight"),
    [
        ("10.0.0.7:12345", 8, [ERROR]),
        ("node-7:12345", 2, [ERROR]),
        ("[fd00::7]:12345", 2, [ERROR]),
        ("10.0.0.7:12345", 1, []),
        ("10.0.0.7:12345", None, []),
        ("10.0.0.7", 8, []),
        ("fd00::7", 8, []),
    ],
)
def test_fixed_port(host: str, processes: int | None, weight: list[Severity]) -> None:
    """A port in the host name cannot be shared by several processes of a node."""
    topology = replace(ONE_NODE, processes_per_node=processes)
    assert severities(ask(with_hostname(host), topology=topology), "MC106") == weight


@pytest.mark.parametrize(
    ("processes", "rank", "role", "weight"),
    [
        (8, None, Role.TRAINER, [WARNING]),
        (8, 0, Role.TRAINER, []),
        (1, None, Role.TRAINER, []),
        (None, None, Role.TRAINER, []),
        (8, None, Role.DRIVER, []),
    ],
)
def test_several_processes_without_rank(
    processes: int | None, rank: int | None, role: Role, weight: list[Severity]
) -> None:
    """Several trainers of a node without a local rank would each contribute a segment."""
    topology = replace(ONE_NODE, processes_per_node=processes, local_rank=rank)
    assert severities(ask(topology=topology, role=role), "MC110") == weight


@pytest.mark.parametrize(
    ("rank", "processes", "weight"), [(8, 8, [WARNING]), (7, 8, []), (0, 1, []), (1, 1, [WARNING]), (9, None, [])]
)
def test_rank_outside_the_node(rank: int, processes: int | None, weight: list[Severity]) -> None:
    """A local rank is below the number of processes."""
    topology = replace(ONE_NODE, local_rank=rank, processes_per_node=processes)
    assert severities(ask(topology=topology), "MC111") == weight


# What reaches every node


@pytest.mark.parametrize(
    ("host", "own", "nodes", "as_json", "as_mapping"),
    [
        ("10.0.0.1", "10.0.0.7", 2, [ERROR], [WARNING]),
        ("10.0.0.7", "10.0.0.7", 2, [WARNING], []),
        ("::ffff:10.0.0.7", "10.0.0.7", 2, [WARNING], []),
        ("node-7", "10.0.0.7", 2, [WARNING], []),
        ("10.0.0.1", "node-7", 2, [WARNING], []),
        ("10.0.0.1", "10.0.0.7", None, [WARNING], [WARNING]),
        ("10.0.0.1", "10.0.0.7", 1, [], []),
        ("127.0.0.1", "10.0.0.7", 2, [], []),
        ("0.0.0.0", "10.0.0.7", 2, [], []),
        ("bad host", "10.0.0.7", 2, [], []),
    ],
)
def test_job_wide_hostname(
    host: str, own: str, nodes: int | None, as_json: list[Severity], as_mapping: list[Severity]
) -> None:
    """A host name in the JSON of a job of several nodes is wrong on all but one; a mapping may be made on each node."""
    topology = Topology(num_nodes=nodes, local_rank=0, node_ip=own)
    assert severities(ask(MASTER, as_text(local_hostname=host), topology=topology), "MC107") == as_json
    assert severities(ask(MASTER, {"local_hostname": host}, topology=topology), "MC107") == as_mapping


def test_hostname_from_a_variable_is_the_nodes_own() -> None:
    """A host name from a variable belongs to this node; one from a runtime environment reaches every node."""
    environ = with_hostname("10.0.0.1")
    assert not found(ask(environ, topology=TWO_NODES), "MC107")
    spots = {"MOONCAKE_LOCAL_HOSTNAME": "--runtime-env-json MOONCAKE_LOCAL_HOSTNAME"}
    (finding,) = found(ask(environ, topology=TWO_NODES, spots=spots), "MC107")
    assert finding.severity is ERROR
    assert "--runtime-env-json" in finding.message


@pytest.mark.parametrize(
    ("fields", "nodes", "weight"),
    [
        ({"device_name": "mlx5_0"}, 2, [WARNING]),
        ({"device_name": "mlx5_0"}, None, [WARNING]),
        ({"device_name": "mlx5_0"}, 1, []),
        ({"device_name": "auto-discovery"}, 2, []),
        ({"device_name": ""}, 2, []),
        ({"device_name": "mlx5_0", "protocol": "tcp"}, 2, []),
    ],
)
def test_job_wide_device(fields: dict[str, str], nodes: int | None, weight: list[Severity]) -> None:
    """A device in the JSON of a job of several nodes is a warning; in a mapping it may be made on each node."""
    topology = replace(TWO_NODES, num_nodes=nodes)
    assert severities(ask(MASTER, as_text(**fields), topology=topology), "MC108") == weight
    assert severities(ask(MASTER, fields, topology=topology), "MC108") == []


def test_device_from_a_runtime_environment() -> None:
    """A device from a runtime environment reaches every node."""
    environ, spots = {**MASTER, "MOONCAKE_DEVICE": "mlx5_0"}, {"MOONCAKE_DEVICE": "--runtime-env-json MOONCAKE_DEVICE"}
    assert severities(ask(environ, topology=TWO_NODES), "MC108") == []
    assert severities(ask(environ, topology=TWO_NODES, spots=spots), "MC108") == [WARNING]


def test_device_without_rdma() -> None:
    """A device beside tcp does nothing; the word for automatic choice names no device."""
    environ = {**MASTER, "MOONCAKE_PROTOCOL": "tcp"}
    assert severities(ask({**environ, "MOONCAKE_DEVICE": "mlx5_0"}), "MC109") == [WARNING]
    assert severities(ask({**environ, "MOONCAKE_DEVICE": "auto-discovery"}), "MC109") == []
