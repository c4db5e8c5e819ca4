"""sizing: one job, the host that stands for its nodes, and every finding about it."""

from __future__ import annotations

from pathlib import Path

import pytest
from asking import MASTER, ask
from machines import lay_out

from mooncake_config.findings import Severity
from mooncake_config.host import UNLIMITED, Host
from mooncake_config.init_kwargs import InitKwargs
from mooncake_config.job import Job
from mooncake_config.plan import Load
from mooncake_config.process import Backend
from mooncake_config.sizing import PlanResult, node_memory, plan_job, plan_process
from mooncake_config.topology import Role, Topology

GIB = 1 << 30


def planned(
    root: Path,
    init_kwargs: InitKwargs = None,
    *,
    role: Role = Role.TRAINER,
    rank: int | None = None,
    shape: Topology | None = None,
    replicas: int = 1,
    ignore: tuple[str, ...] = (),
) -> PlanResult:
    """The plan of a job of two nodes, of which one trains with eight processes unless said otherwise."""
    topology = shape or Topology(2, 1, local_rank=rank, processes_per_node=8, node_ip="10.0.0.7")
    return plan_job(Job(init_kwargs, Backend.MOONCAKE, role, replicas, topology), Load(), ignore, root=root)


def host(root: Path, gib: int, limit: int | None = None) -> Path:
    """A host with so much memory, half of it taken, and perhaps a control group."""
    total = f"MemTotal: {gib << 20} kB\nMemAvailable: {gib << 19} kB\n"
    files: dict[str, str | bytes] = {"proc/meminfo": total, "proc/self/cgroup": "0::/\n"}
    if limit:
        files |= {"sys/fs/cgroup/memory.max": f"{limit * GIB}\n", "sys/fs/cgroup/memory.current": f"{limit * GIB}\n"}
    return lay_out(root, files)


@pytest.mark.parametrize(
    ("total", "limit", "memory"),
    [(64, 32, 32), (64, 128, 64), (64, UNLIMITED, 64), (64, None, 64), (None, 32, 32), (None, None, None)],
)
def test_node_memory(total: int | None, limit: int | str | None, memory: int | None) -> None:
    """A node has what its host has, or its control group may have; unknown is None."""
    bound = limit * GIB if isinstance(limit, int) else limit
    found = node_memory(Host("/", memory_total=total and total * GIB, memory_limit=bound))  # type: ignore[arg-type]  # a word or bytes
    assert found == (None if memory is None else memory * GIB)


def test_memory_of_a_copied_host(tmp_path: Path) -> None:
    """The memory of the host below the root stands for that of every node, its control group's limit counted."""
    assert planned(host(tmp_path, 512)).plan.memory == 512 * GIB
    assert planned(host(tmp_path, 512, 64)).plan.memory == 64 * GIB
    assert planned(lay_out(tmp_path / "empty", {"proc/": ""})).plan.memory is None


def test_memory_is_judged_on_the_fullest_node(tmp_path: Path) -> None:
    """Too little memory is told once, of the node that needs most, in the words of check."""
    (finding,) = planned(host(tmp_path, 128)).findings
    assert (finding.code, finding.severity, finding.node) == ("MC200", Severity.ERROR, "trainer")
    assert finding.message.startswith(
        "the Store's clients of this node reserve 8 × 32 GiB of buffer + 8 GiB of segment = 264 GiB"
    )


def test_head_with_one_trainer_elsewhere(tmp_path: Path) -> None:
    """The head is the fullest node where its two buffers are more than a trainer's buffer and segment."""
    shape = Topology(2, 1, processes_per_node=1, node_ip="10.0.0.7")
    (finding,) = planned(host(tmp_path, 32), shape=shape).findings
    assert (finding.code, finding.node) == ("MC200", "head")
    assert "reserve 2 × 32 GiB of buffer = 64 GiB" in finding.message


def test_head_that_trains(tmp_path: Path) -> None:
    """Where every node trains the head has its trainers' buffers and two more."""
    shape = Topology(2, 2, processes_per_node=8, node_ip="10.0.0.7")
    (finding,) = planned(host(tmp_path, 300), shape=shape).findings
    assert finding.node == "head and trainer"
    assert "reserve 10 × 32 GiB of buffer + 8 GiB of segment = 328 GiB" in finding.message


def test_control_group(tmp_path: Path) -> None:
    """A control group's limit is told as such; what is taken of it today is no matter of a plan."""
    small = {"global_segment_size": "2gb", "local_buffer_size": "2gb"}
    assert [finding.code for finding in planned(host(tmp_path, 64, 16), small).findings] == ["MC201"]
    assert planned(host(tmp_path, 64, 18), small).findings == ()


def test_tcp_only_reserves(tmp_path: Path) -> None:
    """Over TCP, where memory is reserved and not pinned, the same sum is a warning."""
    (finding,) = planned(host(tmp_path, 128), {"protocol": "tcp"}).findings
    assert (finding.code, finding.severity) == ("MC200", Severity.WARNING)


@pytest.mark.parametrize(("role", "rank"), [(Role.DRIVER, None), (Role.ROLLOUT_MANAGER, 0), (Role.TRAINER, 7)])
def test_plan_is_of_the_whole_job(tmp_path: Path, role: Role, rank: int | None) -> None:
    """Whichever process is asked about, the plan is that of its job."""
    root = host(tmp_path, 512)
    assert planned(root, role=role, rank=rank) == planned(root)


@pytest.mark.parametrize(
    ("init_kwargs", "codes"),
    [
        ('{"local_hostname": "127.0.0.1", "metadata_server": "p2p", "device_name": "mlx5_0"}', []),
        ('{"protocol": "rmda"}', ["MC027"]),
        ('{"global_segment_size": "8 gigs"}', ["MC011"]),
        ('{"global_segment_size": 0}', ["MC105"]),
        ('{"global_segment_size": "1mb"}', ["MC041"]),
        ('{"local_buffer_size": "16mb"}', ["MC102"]),
        ("{", ["MC001"]),
    ],
)
def test_findings_about_what_a_plan_reads(tmp_path: Path, init_kwargs: str, codes: list[str]) -> None:
    """Sizes, protocol and the JSON itself are judged as explain does; addresses and devices are no matter of a plan."""
    result = planned(host(tmp_path, 512), init_kwargs)
    assert [finding.code for finding in result.findings] == codes


def test_shape_is_judged(tmp_path: Path) -> None:
    """Replicas without a segment each, and more training nodes than nodes, are told as explain tells them."""
    root = host(tmp_path, 512)
    assert [finding.code for finding in planned(root, replicas=2).findings] == ["MC104"]
    shape = Topology(2, 4, processes_per_node=8, node_ip="10.0.0.7")
    assert [finding.code for finding in planned(root, shape=shape).findings] == ["MC117"]


def test_ignore(tmp_path: Path) -> None:
    """A finding can be ignored by name, and a rule that does not exist is wrong use."""
    root = host(tmp_path, 128)
    assert planned(root, ignore=("memory-above-host",)).findings == ()
    with pytest.raises(ValueError, match="MC999"):
        planned(root, ignore=("MC999",))


def test_nothing_of_mooncake_over_ray() -> None:
    """With the backend Ray a small host is no finding."""
    result = plan_process(ask(MASTER, backend=Backend.RAY), Load(GIB, 99), Host("/copy", memory_total=GIB))
    assert (result.findings, result.plan.capacity) == ((), None)
