"""MC2xx: rules over the facts of a machine, each with nodes on which it fires and nodes on which it is silent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from machines import GIB, answer, device, gid, host_with, lay_out, mapped, node, problems, process

from mooncake_config.dialogue import Outcome
from mooncake_config.findings import Severity
from mooncake_config.host import UNLIMITED, Gid, Host, Port, RdmaDevice, read_host
from mooncake_config.node import Node
from mooncake_config.rules import examine_node
from mooncake_config.rules import host as host_rules
from mooncake_config.rules.rule import Problem, rules_in
from mooncake_config.topology import Role

TCP = {"MOONCAKE_PROTOCOL": "tcp"}
TWO_GIB = {"MOONCAKE_LOCAL_BUFFER_SIZE": "2gb", "MOONCAKE_GLOBAL_SEGMENT_SIZE": "2gb"}
TWO_DEVICES = host_with(device("mlx5_0", behind="eth0"), device("mlx5_1", "DOWN", behind="eth1"))
ERROR, WARNING, INFO = Severity.ERROR, Severity.WARNING, Severity.INFO


def memory(total: int | None = None, available: int | None = None, **facts: object) -> Host:
    """A host with so many GiB."""
    sizes = {"memory_total": total, "memory_available": available}
    return replace(Host("/"), **{k: v * GIB for k, v in sizes.items() if v is not None}, **facts)  # type: ignore[arg-type]  # facts of any type


def named(devices: str, host: Host = TWO_DEVICES, **environ: str) -> Node:
    """A process that names devices."""
    return node(process({"MOONCAKE_DEVICE": devices, **environ}), host)


def roce(*gids: Gid, **environ: str) -> Node:
    """A process on a host with one RoCE port."""
    return node(process(environ), host_with(device("mlx5_0", layer="Ethernet", gids=gids, behind="eth1")))


def having_files(*files: str, **environ: str) -> Node:
    """A process on a host with two devices, of whose uverbs files only these are there."""
    devices = (replace(device("mlx5_0"), verbs="uverbs0"), replace(device("mlx5_1"), verbs="uverbs1"))
    return node(process(environ), host_with(*devices, verbs=files))


def advertising(address: str, host: Host, nodes: int | None = 2, **answered: str) -> Node:
    """A process that advertises an address."""
    found = tuple(answer("local_hostname", name, Outcome.RESOLVES, ip) for name, ip in answered.items())
    return node(process({"MOONCAKE_LOCAL_HOSTNAME": address}, nodes=nodes), host, answers=found)


OWN = Host("/", ipv4=("10.0.0.7", "127.0.0.1"), ipv6=("fe80::1",))
EPHEMERAL = Host("/", ipv4=("10.0.0.5",), port_range=(32768, 60999))

FIRES: list[tuple[str, Node, Severity, str]] = [
    ("MC200", node(process(processes=8), memory(128)), ERROR, r"264 GiB (283467841536 bytes), and this host's memory"),
    ("MC200", node(process(processes=8), memory(128)), ERROR, "8 × 32 GiB of buffer + 8 GiB of segment"),
    ("MC200", node(process(TCP, processes=8), memory(128)), WARNING, "264 GiB"),
    ("MC200", node(process(TCP, processes=8), memory(16)), ERROR, "264 GiB"),
    ("MC200", node(process(processes=None), memory(16)), ERROR, "this process alone reserves 32 GiB of buffer + 8 GiB"),
    (
        "MC200",
        node(process(processes=1, role=Role.DRIVER), memory(16)),
        ERROR,
        "32 GiB of buffer = 32 GiB (34359738368 bytes)",
    ),
    (
        "MC200",
        node(process(processes=1), memory(64, 20)),
        WARNING,
        "20 GiB (21474836480 bytes) of this host's memory are free",
    ),
    ("MC201", node(process(), memory(memory_limit=10 * GIB)), ERROR, "cgroup limit of this container is 10 GiB"),
    ("MC201", node(process(TCP, processes=8), memory(memory_limit=64 * GIB)), WARNING, "264 GiB"),
    ("MC201", node(process(), memory(memory_limit=64 * GIB, memory_limit_used=60 * GIB)), WARNING, "4 GiB"),
    ("MC201", node(process(), memory(memory_limit=64 * GIB, memory_limit_used=99 * GIB)), WARNING, "0 bytes"),
    ("MC202", node(process(TWO_GIB), Host("/", memlock=65536)), ERROR, "locks 4 GiB"),
    ("MC202", node(process(TWO_GIB), Host("/", memlock=65536, can_lock_any=False)), ERROR, "64 KiB (65536 bytes)"),
    ("MC203", node(process({"MC_STORE_USE_HUGEPAGE": "0"}), Host("/", huge_pages_free=0)), WARNING, "40 GiB"),
    ("MC210", named("mlx5_0,mlx5_99"), ERROR, "mlx5_99 does not exist on this host, which has mlx5_0, mlx5_1"),
    ("MC210", named("zzz"), ERROR, "zzz does not exist"),
    ("MC210", named("mlx5_0", host_with()), ERROR, "no RDMA device at all"),
    ("MC211", named("eth1"), ERROR, "the device behind it is mlx5_1"),
    ("MC211", named("eth9", replace(TWO_DEVICES, interfaces=("eth9",))), ERROR, "no RDMA device stands behind it"),
    ("MC211", named("eth9", Host("/", rdma_devices=(), interfaces=("eth9",))), ERROR, "eth9 is a network interface"),
    ("MC212", named("mlx5_1"), ERROR, "port 1 (InfiniBand) of mlx5_1 is not active: its state is DOWN"),
    ("MC212", named("mlx5_0,mlx5_1"), WARNING, "mlx5_1"),
    ("MC212", node(host=TWO_DEVICES), INFO, "mlx5_1"),
    (
        "MC212",
        node(host=host_with(device("mlx5_0", "INIT", layer=""))),
        ERROR,
        "port 1 of mlx5_0 is not active: its state is INIT",
    ),
    ("MC213", node(host=host_with()), WARNING, "silently use TCP"),
    ("MC213", node(process({"MOONCAKE_PROTOCOL": "efa"}), host_with()), WARNING, "efa"),
    ("MC214", node(host=replace(TWO_DEVICES, verbs=())), ERROR, "sysfs shows mlx5_0, mlx5_1"),
    ("MC214", node(host=replace(TWO_DEVICES, verbs=("rdma_cm",))), ERROR, "no uverbs file"),
    ("MC215", roce(gid("fe80::1")), WARNING, "only a link-local GID"),
    ("MC215", roce(), WARNING, "has no GID"),
    (
        "MC216",
        roce(gid("fe80::1"), MC_GID_INDEX="3"),
        ERROR,
        "GID 3 (MC_GID_INDEX) of port 1 (Ethernet) of mlx5_0 is empty; there are 0",
    ),
    (
        "MC216",
        node(
            process({"MC_GID_INDEX": "1"}),
            host_with(device("a", gids=(gid("::1", 0),)), device("b", gids=(gid("::1", 0), gid("::2", 1)))),
        ),
        WARNING,
        "of a is empty",
    ),
    ("MC214", having_files("uverbs1", MOONCAKE_DEVICE="mlx5_0"), ERROR, "lacks uverbs0 of mlx5_0 here"),
    ("MC214", having_files("uverbs1", MOONCAKE_DEVICE="mlx5_0,mlx5_1"), WARNING, "lacks uverbs0 of mlx5_0 here"),
    ("MC214", having_files("uverbs7"), ERROR, "lacks uverbs0 of mlx5_0, uverbs1 of mlx5_1 here"),
    ("MC215", roce(gid("fe80::1"), NCCL_IB_GID_INDEX="-1"), WARNING, "only a link-local GID"),
    ("MC216", roce(gid("fe80::1"), NCCL_IB_GID_INDEX="3"), ERROR, "GID 3 (NCCL_IB_GID_INDEX) of port 1"),
    ("MC216", roce(gid("fe80::1"), NCCL_IB_GID_INDEX="0", MC_GID_INDEX="3"), ERROR, "GID 3 (MC_GID_INDEX) of port 1"),
    ("MC220", advertising("10.0.0.1", OWN), ERROR, "10.0.0.1 is no address of this host, which has 10.0.0.7"),
    ("MC220", advertising("10.0.0.1:12345", OWN), ERROR, "10.0.0.1 is"),
    ("MC220", advertising("10.0.0.1", OWN, nodes=None), WARNING, "10.0.0.1"),
    ("MC220", advertising("10.0.0.1", OWN, nodes=1), WARNING, "10.0.0.1"),
    ("MC220", node(process(ip="10.0.0.1", nodes=2), OWN), WARNING, "10.0.0.1"),
    ("MC220", advertising("fd00::9", OWN), ERROR, "fd00::9"),
    ("MC220", advertising("head", OWN, head="10.0.0.1"), ERROR, "head (10.0.0.1) is no address"),
    ("MC220", advertising("10.0.0.1", Host("/", ipv4=("127.0.0.1",), ipv6=())), ERROR, "which has loopback only."),
    ("MC220", advertising("10.0.0.1", Host("/", ipv4=("127.0.0.1",))), ERROR, "is no address of this host."),
    ("MC220", advertising("fd00::9", Host("/", ipv6=("::1",))), ERROR, "is no address of this host."),
    ("MC230", node(host=EPHEMERAL), INFO, "50051 lies in this host's ephemeral range, 32768 to 60999"),
    ("MC230", node(process({"MOONCAKE_MASTER": "127.0.0.1:50051"}), EPHEMERAL), INFO, "ip_local_port_range"),
    (
        "MC230",
        node(host=EPHEMERAL, answers=(answer("master_server_address", "10.0.0.5:50051", Outcome.REFUSED),)),
        WARNING,
        "50051",
    ),
    (
        "MC240",
        node(host=Host("worker/proc")),
        WARNING,
        "no fact of a host is found below worker/proc (--host-root), such as proc/meminfo.",
    ),
]

SILENT: list[tuple[str, Node]] = [
    ("MC200", node(process(processes=8), memory(512, 512))),
    ("MC200", node(process(processes=8), memory())),
    ("MC200", node(process({"MOONCAKE_LOCAL_BUFFER_SIZE": "lots"}), memory(1))),
    ("MC200", node(process(processes=1), memory(64))),
    ("MC201", node(process(processes=8), memory(memory_limit=UNLIMITED))),
    ("MC201", node(process(processes=8), memory(1))),
    ("MC201", node(process(), memory(memory_limit=64 * GIB))),
    ("MC201", node(process(), memory(memory_limit=64 * GIB, memory_limit_used=GIB))),
    ("MC201", node(process({"MOONCAKE_LOCAL_BUFFER_SIZE": "lots"}), memory(memory_limit=1))),
    ("MC202", node(process(TWO_GIB), Host("/", memlock=UNLIMITED))),
    ("MC202", node(process(TWO_GIB), Host("/", memlock=4 * GIB))),
    ("MC202", node(process(TWO_GIB), Host("/"))),
    ("MC202", node(process({**TWO_GIB, **TCP}), Host("/", memlock=1))),
    ("MC202", node(process(TWO_GIB), Host("/", memlock=1, can_lock_any=True))),
    ("MC202", node(process(TWO_GIB), Host("/", memlock=1, rdma_devices=()))),
    ("MC202", node(process({"MOONCAKE_LOCAL_BUFFER_SIZE": "lots"}), Host("/", memlock=1))),
    ("MC203", node(process(), Host("/", huge_pages_free=0))),
    ("MC203", node(process({"MC_STORE_USE_HUGEPAGE": "1"}), Host("/", huge_pages_free=64 * GIB))),
    ("MC203", node(process({"MC_STORE_USE_HUGEPAGE": "1"}))),
    ("MC210", named("mlx5_0,mlx5_1")),
    ("MC210", named("mlx5_9", Host("/"))),
    ("MC210", named("mlx5_9", MOONCAKE_PROTOCOL="tcp")),
    ("MC210", named("/sys/class/infiniband/mlx5_0")),
    ("MC210", named("mlx5_0:1")),
    ("MC210", named("eth0")),
    ("MC210", node(host=TWO_DEVICES)),
    ("MC211", named("mlx5_0")),
    ("MC211", named("nothing")),
    ("MC211", named("eth0", MOONCAKE_PROTOCOL="tcp")),
    ("MC211", named("/sys/class/net/eth0")),
    ("MC212", named("mlx5_0")),
    ("MC212", named("mlx5_1", MOONCAKE_PROTOCOL="tcp")),
    ("MC212", node(host=host_with(device("a", None)))),
    ("MC212", named("mlx5_1", MC_IB_PORT="2")),
    ("MC212", node()),
    ("MC213", node()),
    ("MC213", node(process(TCP), host_with())),
    ("MC213", node(host=TWO_DEVICES)),
    ("MC213", named("mlx5_0", host_with())),
    ("MC214", node(host=TWO_DEVICES)),
    ("MC214", node(host=replace(TWO_DEVICES, verbs=("uverbs0",)))),
    ("MC214", node(host=host_with(verbs=()))),
    ("MC214", node(process(TCP), replace(TWO_DEVICES, verbs=()))),
    ("MC215", roce(gid("fe80::1"), gid("::ffff:10.0.0.7", 1))),
    ("MC215", roce(gid("fe80::1"), MC_GID_INDEX="0")),
    ("MC215", roce(gid("fe80::1"), MOONCAKE_PROTOCOL="tcp")),
    ("MC215", roce(gid("fe80::1"), MC_IB_PORT="2")),
    ("MC215", node(host=host_with(device("a", gids=(gid("fe80::1"),))))),
    ("MC215", node(host=host_with(device("a", layer="Ethernet", gids=None)))),
    ("MC216", roce(gid("fe80::1"), MC_GID_INDEX="0")),
    ("MC216", roce(gid("fe80::1"), MC_GID_INDEX="x")),
    ("MC216", roce(gid("fe80::1"))),
    ("MC216", roce(MC_GID_INDEX="3")),
    ("MC216", roce(gid("fe80::1"), MC_GID_INDEX="3", MOONCAKE_PROTOCOL="tcp")),
    ("MC214", having_files("uverbs0", "uverbs1")),
    ("MC214", having_files("uverbs1")),
    ("MC214", having_files("uverbs1", MOONCAKE_DEVICE="mlx5_1")),
    ("MC214", having_files("uverbs1", MOONCAKE_DEVICE="mlx5_9")),
    ("MC214", having_files("uverbs9", MOONCAKE_DEVICE="mlx5_0", MOONCAKE_PROTOCOL="tcp")),
    ("MC214", named("mlx5_0", replace(TWO_DEVICES, verbs=("uverbs9",)))),
    ("MC214", named("mlx5_9", replace(TWO_DEVICES, verbs=("uverbs9",)))),
    ("MC215", roce(gid("fe80::1"), NCCL_IB_GID_INDEX="0")),
    ("MC216", roce(gid("fe80::1"), NCCL_IB_GID_INDEX="-1")),
    ("MC216", roce(gid("fe80::1"), NCCL_IB_GID_INDEX="")),
    ("MC216", roce(gid("fe80::1"), NCCL_IB_GID_INDEX="3", MC_GID_INDEX="0")),
    ("MC220", advertising("10.0.0.7", OWN)),
    ("MC220", advertising("10.0.0.1", Host("/"))),
    ("MC220", advertising("fd00::9", Host("/", ipv4=("10.0.0.7",)))),
    ("MC220", advertising("127.0.0.1", OWN)),
    ("MC220", advertising("localhost", OWN)),
    ("MC220", advertising("0.0.0.0", OWN)),
    ("MC220", advertising("me", OWN, me="10.0.0.7")),
    ("MC220", advertising("me", OWN, me="127.0.1.1")),
    ("MC220", advertising("nobody", OWN)),
    ("MC220", advertising("a b", OWN)),
    ("MC230", node(host=replace(EPHEMERAL, reserved_ports=((50051, 50051),)))),
    ("MC230", node(host=replace(EPHEMERAL, reserved_ports=((1, 2), (50000, 50100))))),
    ("MC230", node(host=replace(EPHEMERAL, ipv4=("10.0.0.9",)))),
    ("MC230", node(host=replace(EPHEMERAL, port_range=None))),
    ("MC230", node(host=replace(EPHEMERAL, port_range=(1024, 40000)))),
    ("MC230", node(process({"MOONCAKE_MASTER": "etcd://10.0.0.5:50051"}), EPHEMERAL)),
    ("MC230", node(process({"MOONCAKE_MASTER": ""}), EPHEMERAL)),
    ("MC240", node(host=Host("/"))),
    ("MC240", node(host=Host("worker", memory_total=1 << 37))),
    ("MC240", node(host=Host("worker", hosts=()))),
]


@pytest.mark.parametrize(("code", "given", "severity", "says"), FIRES)
def test_fires(code: str, given: Node, severity: Severity, says: str) -> None:
    """The rule sees one problem, of that weight, and its message says so."""
    (found,) = problems(code, given)
    assert weight(code, found) is severity
    assert says in found.message
    assert found.message.endswith(".")
    assert found.fix.strip()
    assert found.message.isprintable()


@pytest.mark.parametrize(("code", "given"), SILENT)
def test_silent(code: str, given: Node) -> None:
    """The rule sees nothing."""
    assert problems(code, given) == []


@pytest.mark.parametrize(
    ("reserved", "fix"),
    [
        ((), "run `sysctl net.ipv4.ip_local_reserved_ports=50051`"),
        (((8080, 8080), (9000, 9100)), "run `sysctl net.ipv4.ip_local_reserved_ports=8080,9000-9100,50051`"),
        (None, "add 50051 to the list of ports in net.ipv4.ip_local_reserved_ports (`sysctl` replaces the list)"),
        (
            tuple((port, port) for port in range(2, 44, 2)),
            "add 50051 to the list of ports in net.ipv4.ip_local_reserved_ports (`sysctl` replaces the list)",
        ),
    ],
    ids=["none", "some", "unknown", "many"],
)
def test_reserved_ports_stay_reserved(reserved: tuple[tuple[int, int], ...] | None, fix: str) -> None:
    """The command that reserves the master's port keeps the ports that are reserved already."""
    (found,) = problems("MC230", node(host=replace(EPHEMERAL, reserved_ports=reserved)))
    assert found.fix == f"{fix}, or give the master a port below the range."


def weight(code: str, problem: Problem) -> Severity:
    """How much a problem weighs."""
    own = next(rule.severity for rule in rules_in(host_rules) if rule.code == code)
    return problem.severity or own


def test_every_rule_has_both() -> None:
    """No rule of this module goes without an example that fires and one that is silent."""
    codes = {rule.code for rule in rules_in(host_rules)}
    assert {code for code, *_ in FIRES} == codes
    assert {code for code, _ in SILENT} == codes


@pytest.mark.parametrize("rule", rules_in(host_rules), ids=lambda rule: rule.code)
def test_pages(rule: object) -> None:
    """A page says why it matters, what to do, and gives an example."""
    page = getattr(rule, "page", "")
    assert all(f"{part}:" in page for part in ("Why", "Fix", "Example"))


def test_fix_names_a_size_that_fits() -> None:
    """The fix for too little memory names a buffer that fits, where one of a whole GiB does."""
    (found,) = problems("MC200", node(process(processes=8), memory(128)))
    assert '"11gb"' in found.fix
    (found,) = problems("MC200", node(process({"MOONCAKE_GLOBAL_SEGMENT_SIZE": "60gb"}, processes=8), memory(16)))
    assert "gb" not in found.fix.replace("_", "")


def test_nearest_device() -> None:
    """The fix for a missing device names the nearest one."""
    (found,) = problems("MC210", named("mlx_0"))
    assert "did you mean mlx5_0" in found.fix


def test_active_device_named() -> None:
    """The fix for a dead port names the devices that are active."""
    (found,) = problems("MC212", named("mlx5_1"))
    assert "mlx5_0" in found.fix


@pytest.mark.parametrize(
    ("states", "asked", "way"),
    [
        (("DOWN", "ACTIVE"), "", "MC_IB_PORT=2"),
        (("ACTIVE", "DOWN"), "2", "MC_IB_PORT=1"),
        (("DOWN", "DOWN"), "", None),
        (("DOWN", None), "", None),
        (("DOWN",), "", None),
    ],
)
def test_other_port_of_a_device(states: tuple[str | None, ...], asked: str, way: str | None) -> None:
    """Where another port of the same device is active the fix names it."""
    ports = tuple(Port(number, state, None, None, None, None) for number, state in enumerate(states, 1))
    given = node(process({"MC_IB_PORT": asked}), host_with(RdmaDevice("mlx5_0", ports, ())))
    (found,) = problems("MC212", given)
    assert ("MC_IB_PORT" in found.fix) is (way is not None)
    assert (way or "bring its link up") in found.fix


KERNEL_FILES = (
    *("proc/meminfo", "proc/self/limits", "proc/self/status", "proc/self/cgroup", "proc/net/fib_trie"),
    *("proc/net/if_inet6", "proc/sys/net/ipv4/ip_local_port_range", "proc/sys/net/ipv4/ip_local_reserved_ports"),
    *("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes", "sys/class/net/eth0/address"),
    *(f"sys/class/infiniband/mlx5_0/ports/1/{name}" for name in ("state", "link_layer", "gids/0", "gid_attrs/ndevs/0")),
    *("sys/class/infiniband_verbs/uverbs0/ibdev", "etc/hosts", "etc/hostname"),
)


@pytest.mark.parametrize(
    "garbage", ["", "\n", "whatever\n", b"\xff\xfe\0\x1b[2J", "-1\n", "9" * 400, "0x10: y\n", "%s"]
)
@pytest.mark.parametrize("own", ["10.0.0.1", "fd00::9", "node-a17"])
def test_garbage_is_no_offence(tmp_path: Path, garbage: str | bytes, own: str) -> None:
    """A host whose files all hold garbage is unknown, and of what is unknown no rule of the machine speaks."""
    root = lay_out(tmp_path, {"dev/infiniband/uverbs0": "", **dict.fromkeys(KERNEL_FILES, garbage)})
    environ = {"MOONCAKE_DEVICE": "mlx5_0", "MOONCAKE_LOCAL_HOSTNAME": own, "MC_GID_INDEX": "3"}
    given = node(process(environ, nodes=2, processes=8), read_host(root))
    assert [problem for rule in rules_in(host_rules) for problem in problems(rule.code, given)] == []


def test_way_out_of_an_address_that_ray_says() -> None:
    """What Ray says is not unset: Ray is started otherwise."""
    (found,) = problems("MC220", node(process(ip="10.0.0.1", nodes=2), OWN))
    assert "--node-ip-address" in found.fix
    assert "unset" not in found.fix
    (found,) = problems("MC220", advertising("10.0.0.1", OWN))
    assert "unset it to use the Ray node IP" in found.fix


@pytest.mark.parametrize(
    ("devices", "host", "said"),
    [
        ("eth0", TWO_DEVICES, ["MC211"]),
        ("eth9", TWO_DEVICES, ["MC210"]),
        ("eth0", Host("/"), ["MC056"]),
        ("eth0,mlx5_0", TWO_DEVICES, ["MC211"]),
        ("eth0,eth0", TWO_DEVICES, ["MC211"]),
        ("cuda0", TWO_DEVICES, ["MC057"]),
        ("auto,mlx5_9", TWO_DEVICES, ["MC057", "MC210"]),
        ("mlx5_0", TWO_DEVICES, []),
    ],
)
@pytest.mark.parametrize("ignored", [(), ("MC210", "MC211")])
def test_device_is_told_once(devices: str, host: Host, said: list[str], ignored: tuple[str, ...]) -> None:
    """A device that is none is told of once: as the word that it is, else as the machine says, else by its name."""
    codes = [item.code for item in examine_node(named(devices, host), ignored)]
    about = [code for code in codes if code in ("MC056", "MC057", "MC210", "MC211")]
    assert about == [code for code in said if code not in ignored]


def test_port_by_number() -> None:
    """MC_IB_PORT chooses the port that is looked at."""
    ports = (Port(1, "ACTIVE", None, None, None, None), Port(2, "DOWN", None, None, None, None))
    host = host_with(RdmaDevice("mlx5_0", ports, ()))
    assert problems("MC212", node(host=host)) == []
    (found,) = problems("MC212", node(process({"MC_IB_PORT": "2"}), host))
    assert found.message.startswith("port 2 of mlx5_0")
    assert problems("MC212", node(process({"MC_IB_PORT": "9999"}), host)) == []


def test_place_of_an_engine_variable() -> None:
    """What a variable of the engine causes is to be edited there."""
    (found,) = problems("MC216", roce(gid("fe80::1"), MC_GID_INDEX="3"))
    assert found.origin is not None
    assert found.origin.spot == "MC_GID_INDEX"


def test_copied_host_with_a_name() -> None:
    """On a host that was copied away its own table says whether a name is its own."""
    host = replace(mapped("head", "10.0.0.1"), ipv4=("10.0.0.7",))
    assert problems("MC220", advertising("head", host))


@pytest.mark.parametrize(("total", "offer"), [(128, '"11gb"'), (24, '"1.25gb"'), (12, '"128mb"'), (10, None)])
def test_buffer_that_fits(total: int, offer: str | None) -> None:
    """The buffer that is offered leaves a quarter of the memory free, as in a plan; where none does, none is."""
    (problem,) = problems("MC200", node(process(processes=8), memory(total)))
    behind = f"; a buffer of {offer} leaves a quarter of the memory free." if offer else "."
    assert problem.fix == f"lower local_buffer_size (every process has its own) or global_segment_size{behind}"
