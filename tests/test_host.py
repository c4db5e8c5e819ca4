"""Facts of a host, read below any root."""

from __future__ import annotations

import os
import pickle
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from machines import GIB, lay_out

from mooncake_config.host import UNLIMITED, Host, HostsEntry, read_host

MEMINFO = """MemTotal:       134217728 kB
MemFree:        1 kB
MemAvailable:   67108864 kB
HugePages_Total:    1024
HugePages_Free:      512
Hugepagesize:       2048 kB
"""
LIMITS = """Limit                     Soft Limit           Hard Limit           Units
Max locked memory         {soft}               unlimited            bytes
Max file locks            unlimited            unlimited            locks
"""
TRIE = """Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 10.0.0.0/24 2 0 2
        |-- 10.0.0.0
           /24 link UNICAST
        |-- 10.0.0.7
           /32 host LOCAL
        |-- 10.0.0.255
           /32 link BROADCAST
     |-- 127.0.0.1
        /32 host LOCAL
Local:
     |-- 10.0.0.7
        /32 host LOCAL
"""


def test_memory(tmp_path: Path) -> None:
    """Kilobytes of meminfo become bytes; free huge pages are counted in bytes."""
    host = read_host(lay_out(tmp_path, {"proc/meminfo": MEMINFO}))
    assert host.memory_total == 128 * GIB
    assert host.memory_available == 64 * GIB
    assert host.huge_pages_free == GIB


CGROUPS = [
    # the new layout: the group itself, a parent that is smaller, no limit, a word that is none
    ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1024\n"}, 1024),
    (
        {
            "proc/self/cgroup": "0::/pods/one\n",
            "sys/fs/cgroup/pods/one/memory.max": "4096",
            "sys/fs/cgroup/pods/memory.max": "2048",
            "sys/fs/cgroup/memory.max": "max",
        },
        2048,
    ),
    ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, UNLIMITED),
    ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "plenty\n"}, None),
    # in a container the path leads out of the mount, or to a group that is not below it
    ({"proc/self/cgroup": "0::/../../x\n", "sys/fs/cgroup/memory.max": "77"}, 77),
    ({"proc/self/cgroup": "0::/docker/abc\n", "sys/fs/cgroup/memory.max": "77"}, 77),
    ({"proc/self/cgroup": f"0::{'/a' * 100}\n", "sys/fs/cgroup/memory.max": "77"}, 77),
    ({"proc/self/cgroup": "\n", "sys/fs/cgroup/memory.max": "77"}, 77),
    ({"sys/fs/cgroup/memory.max": "77"}, 77),
    # the old layout, alone and beside the new one
    (
        {"proc/self/cgroup": "5:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"},
        UNLIMITED,
    ),
    (
        {"proc/self/cgroup": "5:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "18446744073709551615"},
        UNLIMITED,
    ),
    (
        {
            "proc/self/cgroup": "4:cpu,memory:/pod\n0::/\n",
            "sys/fs/cgroup/memory/pod/memory.limit_in_bytes": "4096",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "8192",
        },
        4096,
    ),
    ({}, None),
]


@pytest.mark.parametrize(("files", "limit"), CGROUPS)
def test_cgroup_limit(tmp_path: Path, files: dict[str, str], limit: object) -> None:
    """The smallest limit from our group upwards counts; "max" and the largest number mean none."""
    assert read_host(lay_out(tmp_path, files)).memory_limit == limit


@pytest.mark.parametrize(
    ("stat", "used"),
    [("inactive_file 100\n", 400), ("anon 5\n", 500), ("inactive_file 9999\n", 0), ("inactive_file x\n", 500)],
)
def test_cgroup_use(tmp_path: Path, stat: str, used: int) -> None:
    """What is used of a limit leaves out file pages that the kernel gives back."""
    group = {"memory.max": "1000", "memory.current": "500", "memory.stat": stat}
    assert (
        read_host(lay_out(tmp_path, {f"sys/fs/cgroup/{name}": text for name, text in group.items()})).memory_limit_used
        == used
    )


def test_cgroup_use_of_the_old_layout(tmp_path: Path) -> None:
    """The old layout has other names for the same numbers."""
    group = {"memory.limit_in_bytes": "1000", "memory.usage_in_bytes": "500", "memory.stat": "total_inactive_file 50\n"}
    host = read_host(lay_out(tmp_path, {f"sys/fs/cgroup/memory/{name}": text for name, text in group.items()}))
    assert (host.memory_limit, host.memory_limit_used) == (1000, 450)


@pytest.mark.parametrize(("soft", "memlock"), [("65536    ", 65536), ("unlimited", UNLIMITED), ("lots     ", None)])
def test_memlock(tmp_path: Path, soft: str, memlock: object) -> None:
    """The soft limit of locked memory: a number, unlimited, or unknown."""
    assert read_host(lay_out(tmp_path, {"proc/self/limits": LIMITS.format(soft=soft)})).memlock == memlock


@pytest.mark.parametrize(("line", "expected"), [("Max locked memory", None), ("Max file locks 1 1 locks", None)])
def test_memlock_row_without_number(tmp_path: Path, line: str, expected: object) -> None:
    """A row that is cut off, or is missing, is unknown."""
    assert read_host(lay_out(tmp_path, {"proc/self/limits": line})).memlock == expected


@pytest.mark.parametrize(
    ("status", "can"),
    [("CapEff:\t000001ffffffffff\n", True), ("CapEff:\t00000000a80425fb\n", False), ("CapEff:\tx\n", None), ("", None)],
)
def test_capability(tmp_path: Path, status: str, can: bool | None) -> None:
    """CAP_IPC_LOCK is a bit of the effective capabilities; Docker's default lacks it."""
    assert read_host(lay_out(tmp_path, {"proc/self/status": status})).can_lock_any is can


def test_rdma_device(tmp_path: Path) -> None:
    """A device has its ports with state, layer, rate and GIDs, and the interfaces before it."""
    base = "sys/class/infiniband/mlx5_0"
    port = f"{base}/ports/1"
    files = {
        f"{port}/state": "4: ACTIVE\n",
        f"{port}/phys_state": "5: LinkUp\n",
        f"{port}/link_layer": "Ethernet\n",
        f"{port}/rate": "400 Gb/sec (4X NDR)\n",
        f"{port}/gids/0": "fe80:0000:0000:0000:0000:0000:0000:0001\n",
        f"{port}/gids/1": "0000:0000:0000:0000:0000:0000:0000:0000\n",
        f"{port}/gids/2": "0000:0000:0000:0000:0000:ffff:0a00:0007\n",
        f"{port}/gids/3": "junk\n",
        f"{port}/gid_attrs/types/0": "IB/RoCE v1\n",
        f"{port}/gid_attrs/types/2": "RoCE v2\n",
        f"{port}/gid_attrs/ndevs/2": "eth1\n",
        f"{base}/ports/lost/state": "1: DOWN\n",
        f"{base}/device/net/eth2/address": "aa\n",
    }
    (found,) = read_host(lay_out(tmp_path, files)).rdma_devices or ()
    (seen,) = found.ports
    assert (found.name, found.interfaces) == ("mlx5_0", ("eth1", "eth2"))
    assert (seen.number, seen.state, seen.phys_state) == (1, "ACTIVE", "LinkUp")
    assert (seen.link_layer, seen.rate) == ("Ethernet", "400 Gb/sec (4X NDR)")
    assert [(gid.index, gid.is_link_local, gid.interface) for gid in seen.gids or ()] == [
        (0, True, None),
        (2, False, "eth1"),
    ]
    assert found.port(1) is seen
    assert found.port(2) is None


@pytest.mark.parametrize(
    ("text", "state"),
    [
        *((f"{number}: {word}\n", word) for number, word in enumerate(("NOP", "DOWN", "INIT", "ARMED", "ACTIVE"))),
        ("5: ACTIVE_DEFER\n", "ACTIVE_DEFER"),
        ("whatever\n", None),
        ("4: whatever\n", None),
        ("ACTIVE", None),
        ("4: ACTIVE extra", None),
        ("9: <unknown>\n", None),
        ("", None),
        (b"\xff\xfe\0\x1b", None),
        (b"4: \xff", None),
    ],
)
def test_state_of_a_port(tmp_path: Path, text: str | bytes, state: str | None) -> None:
    """A state is one of the kernel's words; anything else is unknown, and not a port that is down."""
    files = {"sys/class/infiniband/mlx5_0/ports/1/state": text}
    (found,) = read_host(lay_out(tmp_path, files)).rdma_devices or ()
    assert found.ports[0].state == state


@pytest.mark.parametrize(("text", "layer"), [("Ethernet\n", "Ethernet"), ("InfiniBand", "InfiniBand"), ("x", None)])
def test_link_layer_of_a_port(tmp_path: Path, text: str, layer: str | None) -> None:
    """A link layer is one of the kernel's words."""
    files = {"sys/class/infiniband/mlx5_0/ports/1/link_layer": text}
    (found,) = read_host(lay_out(tmp_path, files)).rdma_devices or ()
    assert found.ports[0].link_layer == layer


@pytest.mark.parametrize(
    ("files", "verbs"),
    [
        ({"uverbs3/ibdev": "mlx5_0\n", "uverbs0/ibdev": "mlx5_1\n"}, "uverbs3"),
        ({"uverbs0/ibdev": "mlx5_1\n"}, None),
        ({"uverbs0/ibdev": ""}, None),
        ({"abi_version": "6\n", "x/ibdev": "mlx5_0"}, None),
        ({}, None),
    ],
)
def test_verbs_file_of_a_device(tmp_path: Path, files: dict[str, str], verbs: str | None) -> None:
    """sysfs says through which file of dev/infiniband a device is used."""
    tree = {f"sys/class/infiniband_verbs/{name}": text for name, text in files.items()}
    (found,) = read_host(lay_out(tmp_path, {"sys/class/infiniband/mlx5_0/": "", **tree})).rdma_devices or ()
    assert found.verbs == verbs


@pytest.mark.parametrize("files", [{}, {"ports/1/gids/": ""}, {"ports/1/gids/0": ""}])
def test_gids_unknown(tmp_path: Path, files: dict[str, str]) -> None:
    """Without a readable table the GIDs are unknown, which is not the same as none."""
    base = "sys/class/infiniband/mlx5_0/"
    (found,) = (
        read_host(lay_out(tmp_path, {f"{base}ports/1/": "", **{base + k: v for k, v in files.items()}})).rdma_devices
        or ()
    )
    assert found.ports[0].gids is None


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, None),
        ({"sys/": ""}, None),
        ({"sys/fs/x": ""}, ()),
        ({"sys/class/": ""}, ()),
        ({"sys/class/net/lo/x": ""}, ()),
        ({"sys/class/infiniband/": ""}, ()),
        ({"sys/class/infiniband": "a file\n"}, None),
        ({"sys/class": "a file\n"}, None),
    ],
)
def test_no_rdma_device_and_unknown(tmp_path: Path, files: dict[str, str], expected: object) -> None:
    """A sysfs without the class has no device; a sysfs that is not there says nothing."""
    assert read_host(lay_out(tmp_path, files)).rdma_devices == expected


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, None),
        ({"dev/": ""}, None),
        ({"dev/null": ""}, ()),
        ({"dev/infiniband": "a file"}, None),
        ({"dev/infiniband/": ""}, ()),
        ({"dev/infiniband/uverbs0": "", "dev/infiniband/rdma_cm": ""}, ("rdma_cm", "uverbs0")),
    ],
)
def test_verbs_files(tmp_path: Path, files: dict[str, str], expected: object) -> None:
    """The files of dev/infiniband; none where dev is there without it; unknown without dev."""
    assert read_host(lay_out(tmp_path, files)).verbs == expected


def test_addresses(tmp_path: Path) -> None:
    """Local addresses come from the routing trie and from if_inet6, broadcast and networks left out."""
    inet6 = "fd000000000000000000000000000007 02 40 00 80     eth0\njunk\n\n"
    host = read_host(lay_out(tmp_path, {"proc/net/fib_trie": TRIE, "proc/net/if_inet6": inet6}))
    assert host.ipv4 == ("10.0.0.7", "127.0.0.1")
    assert host.ipv6 == ("fd00::7",)


@pytest.mark.parametrize("trie", ["", "no trie\n", "/32 host LOCAL\n", "|-- 999.1.1.1\n/32 host LOCAL\n"])
def test_addresses_unknown(tmp_path: Path, trie: str) -> None:
    """A trie without a local address is unknown: every host has loopback."""
    host = read_host(lay_out(tmp_path, {"proc/net/fib_trie": trie}))
    assert host.ipv4 is None
    assert host.ipv6 is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", None), ("\n", None), ("garbage\n", None), (b"\xff\xfe", None), ("00 01 lo\n", None)],
)
def test_ipv6_addresses_unknown(tmp_path: Path, text: str | bytes, expected: object) -> None:
    """An if_inet6 without an address says nothing; empty it may be a file of /proc that was archived by its size."""
    assert read_host(lay_out(tmp_path, {"proc/net/if_inet6": text})).ipv6 is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("32768\t60999\n", (32768, 60999)), ("9000 65000", (9000, 65000)), ("1 2 3", None), ("a b", None), ("", None)],
)
def test_port_range(tmp_path: Path, text: str, expected: object) -> None:
    """First and last ephemeral port."""
    assert read_host(lay_out(tmp_path, {"proc/sys/net/ipv4/ip_local_port_range": text})).port_range == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("\n", ()), ("8080,9000-9100\n", ((8080, 8080), (9000, 9100))), ("8080,x-9,7-y", ((8080, 8080),))],
)
def test_reserved_ports(tmp_path: Path, text: str, expected: object) -> None:
    """Single ports and ranges; what is neither is left out."""
    assert read_host(lay_out(tmp_path, {"proc/sys/net/ipv4/ip_local_reserved_ports": text})).reserved_ports == expected


def test_hosts_table(tmp_path: Path) -> None:
    """Lines of etc/hosts: comments and junk left out, names compared without case and final dot."""
    text = "127.0.0.1 localhost # home\n127.0.1.1\tNode-A17.example. node-a17\n# 1.1.1.1 x\nno address\n10.0.0.9\n"
    text += "fe80::1%eth0 l\n"
    host = read_host(lay_out(tmp_path, {"etc/hosts": text}))
    assert host.hosts == (
        HostsEntry("127.0.0.1", ("localhost",)),
        HostsEntry("127.0.1.1", ("node-a17.example", "node-a17")),
        HostsEntry("fe80::1%eth0", ("l",)),
    )
    assert host.mapped("NODE-A17.") == ("127.0.1.1",)
    assert host.mapped("x") == ()


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"etc/hostname": "node-7\n"}, "node-7"),
        ({"etc/hostname": "old\n", "proc/sys/kernel/hostname": "new\n"}, "new"),
        ({"etc/hostname": "\n"}, None),
        ({"etc/hostname": b"\xff\x1b[31m"}, "�\\x1b[31m"),
    ],
)
def test_hostname(tmp_path: Path, files: dict[str, str | bytes], expected: object) -> None:
    """What the kernel says counts before what a file says; control characters are written as escapes."""
    assert read_host(lay_out(tmp_path, files)).hostname == expected


def test_empty_root(tmp_path: Path) -> None:
    """Below an empty root, and below one that does not exist, everything is unknown."""
    for root in (tmp_path, tmp_path / "nowhere"):
        assert read_host(root) == Host(str(root))


def test_fifo(tmp_path: Path) -> None:
    """A FIFO where a file should be does not make the reading wait."""
    (tmp_path / "proc").mkdir()
    os.mkfifo(tmp_path / "proc/meminfo")
    assert read_host(tmp_path).memory_total is None


def test_directory_and_loop(tmp_path: Path) -> None:
    """A directory or a link that leads to itself where a file should be is unknown."""
    (tmp_path / "proc/meminfo").mkdir(parents=True)
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/hosts").symlink_to("hosts")
    host = read_host(tmp_path)
    assert (host.memory_total, host.hosts) == (None, None)


def test_huge_file(tmp_path: Path) -> None:
    """A huge file is read in part."""
    text = MEMINFO + "x" * (3 << 20)
    assert read_host(lay_out(tmp_path, {"proc/meminfo": text})).memory_total == 128 * GIB


def test_this_machine() -> None:
    """This machine's own facts can be read, pickled and put into JSON types."""
    host = read_host()
    assert host.memory_total
    assert "127.0.0.1" in (host.ipv4 or ())
    assert not host.is_copy
    assert pickle.loads(pickle.dumps(host)) == host
    assert host.facts()["memory_total"] == host.memory_total


def test_unknown_is_null() -> None:
    """What is unknown is None among the facts, and stays there by its name."""
    facts = replace(Host("/x"), memlock=UNLIMITED).facts()
    assert facts["memory_total"] is None
    assert facts["memlock"] == "unlimited"
    assert Host("/x").is_copy


def test_device_by_name() -> None:
    """A host knows its devices by name, and none where they are unknown."""
    assert Host("/").device("mlx5_0") is None


FILES = [
    "proc/meminfo",
    "proc/self/cgroup",
    "proc/self/limits",
    "proc/self/status",
    "proc/net/fib_trie",
    "proc/net/if_inet6",
    "proc/sys/net/ipv4/ip_local_port_range",
    "proc/sys/net/ipv4/ip_local_reserved_ports",
    "proc/sys/kernel/hostname",
    "sys/fs/cgroup/memory.max",
    "sys/fs/cgroup/memory.current",
    "sys/fs/cgroup/memory.stat",
    "sys/fs/cgroup/memory/memory.limit_in_bytes",
    "sys/class/infiniband/mlx5_0/ports/1/state",
    "sys/class/infiniband/mlx5_0/ports/1/gids/0",
    "sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0",
    "dev/infiniband/uverbs0",
    "etc/hosts",
    "etc/hostname",
]
WORDS = st.sampled_from(
    [
        *(
            "MemTotal:",
            "kB",
            "max",
            "Max locked memory",
            "unlimited",
            "0::",
            ":memory:",
            "/",
            "..",
            "\0",
            "-",
            ",",
            " ",
            "\n",
        ),
        *("\t", "|--", "/32 host LOCAL", "CapEff:", "fe80::1", "127.0.1.1", "9" * 30, "12", "٣"),
    ]
)
GARBAGE = st.one_of(st.binary(max_size=200), st.lists(WORDS, max_size=30).map(lambda words: "".join(words).encode()))


@given(files=st.dictionaries(st.sampled_from(FILES), GARBAGE, max_size=8))
def test_garbage(files: dict[str, bytes]) -> None:
    """Whatever the files hold, reading ends in facts that can be pickled, and never in an exception."""
    with tempfile.TemporaryDirectory() as root:
        host = read_host(lay_out(Path(root), dict(files)))
    assert pickle.loads(pickle.dumps(host)) == host
