"""The Ray node IP: of the Ray that we run in, of this host's raylet, of the default route; without importing Ray."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from pathlib import Path

import pytest

from mooncake_config.ray_node import NodeAddress, attached_node_count, find_node_address, interface_address

RAYLET = "/site/ray/core/src/ray/raylet/raylet"
ROUTE = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
IPV6_DEFAULT = "0" * 32 + " 00 " + "0" * 32 + " 00 fe80" + "0" * 28 + " 00000400 00000000 00000000 00000003 {}\n"
LOOPBACK = NodeAddress("127.0.0.1", guessed=True)


def lay_out(root: Path, files: Mapping[str, str]) -> Path:
    """A host's files below a root."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return root


def cmdline(*words: str) -> str:
    """A command line as /proc has it."""
    return "\0".join(words) + "\0"


def raylets(*addresses: str) -> dict[str, str]:
    """Raylets with these addresses, among other processes."""
    others = {"proc/1/cmdline": cmdline("/sbin/init"), "proc/2/cmdline": "", "proc/self/cmdline": cmdline("python3")}
    return others | {
        f"proc/{100 + place}/cmdline": cmdline(RAYLET, "--raylet_socket_name=/tmp/x", f"--node_ip_address={address}")
        for place, address in enumerate(addresses)
    }


@pytest.mark.parametrize(
    ("addresses", "found"),
    [
        (["10.0.0.7"], NodeAddress("10.0.0.7")),
        (["10.0.0.7", "10.0.0.7"], NodeAddress("10.0.0.7")),
        (["fd00::7"], NodeAddress("fd00::7")),
        (["node-a17"], NodeAddress("node-a17")),
        (["10.0.0.8", "10.0.0.7"], NodeAddress("127.0.0.1", guessed=True, rivals=("10.0.0.7", "10.0.0.8"))),
        ([""], LOOPBACK),
        ([" "], LOOPBACK),
        (["\t\u00a0"], LOOPBACK),
        (["", " "], LOOPBACK),
        (["", "10.0.0.7"], NodeAddress("10.0.0.7")),
        ([" 10.0.0.7 "], NodeAddress("10.0.0.7")),
        ([], LOOPBACK),
    ],
)
def test_raylet(addresses: Sequence[str], found: NodeAddress, tmp_path: Path) -> None:
    """The raylet of this host says the node IP; several that differ say nothing, and neither does a blank one."""
    assert find_node_address(lay_out(tmp_path, raylets(*addresses))) == found


def test_no_raylet(tmp_path: Path) -> None:
    """A program that merely has raylet in its name or arguments is none."""
    files = {
        "proc/5/cmdline": cmdline("/bin/not-a-raylet", "--node_ip_address=10.0.0.7"),
        "proc/6/cmdline": cmdline("grep", "raylet", "--node_ip_address=10.0.0.7"),
        "proc/x/cmdline": cmdline(RAYLET, "--node_ip_address=10.0.0.7"),
        "proc/7/cmdline": cmdline(RAYLET, "--other=1"),
    }
    assert find_node_address(lay_out(tmp_path, files)) == LOOPBACK


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    """A command line that is not UTF-8, and a process that is gone, disturb nothing."""
    root = lay_out(tmp_path, raylets("10.0.0.7"))
    (root / "proc/3").mkdir()
    (root / "proc/4").mkdir()
    (root / "proc/4/cmdline").write_bytes(b"\xff\xfe\0--node_ip_address=\xff\0")
    assert find_node_address(root) == NodeAddress("10.0.0.7")


def test_nothing_is_known(tmp_path: Path) -> None:
    """A host without /proc is guessed to be loopback."""
    assert find_node_address(tmp_path) == LOOPBACK


def test_ipv6_default_route(tmp_path: Path) -> None:
    """Without an IPv4 route the global IPv6 address of the default route's interface is the guess."""
    files = {
        "proc/net/ipv6_route": IPV6_DEFAULT.format("lo") + "short line\n" + IPV6_DEFAULT.format("eth1"),
        "proc/net/if_inet6": "00000000000000000000000000000001 01 80 10 80       lo\n"
        "fd000000000000000000000000000008 03 40 00 80     eth0\n"
        "fe800000000000000000000000000007 02 40 20 80     eth1\n"
        "fd000000000000000000000000000007 02 40 00 80     eth1\n",
    }
    assert find_node_address(lay_out(tmp_path, files)) == NodeAddress("fd00::7", guessed=True)


def test_ipv6_route_without_an_address(tmp_path: Path) -> None:
    """A default route whose interface has no global address leaves loopback."""
    files = {"proc/net/ipv6_route": IPV6_DEFAULT.format("eth1"), "proc/net/if_inet6": "odd\n"}
    assert find_node_address(lay_out(tmp_path, files)) == LOOPBACK


def test_ipv4_route_of_another_host(tmp_path: Path) -> None:
    """The interfaces of a host that was copied away cannot be asked of this kernel."""
    route = ROUTE + "lo\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
    assert find_node_address(lay_out(tmp_path, {"proc/net/route": route})) == LOOPBACK


def test_this_host() -> None:
    """On the host that the tests run on an address comes out, and no exception."""
    found = find_node_address()
    assert found.address
    assert not found.guessed or str(ip_address(found.address)) == found.address


def test_interface_address() -> None:
    """The loopback interface has its address; one that does not exist has none."""
    assert interface_address("lo") == "127.0.0.1"
    assert interface_address("no-such-interface") is None


def test_spots() -> None:
    """A guess is worded as one."""
    assert NodeAddress("10.0.0.7").spot == "Ray node IP"
    assert NodeAddress("10.0.0.7", guessed=True).spot == "Ray node IP (guess)"


# The Ray that this process runs in. Stand-ins for it live in child processes.

ASK = """
import json, sys
{before}
from mooncake_config.ray_node import attached_node_count, find_node_address
from pathlib import Path
imported = "ray" in sys.modules
found = find_node_address(Path("/nowhere"))
print(json.dumps([found.address, found.guessed, attached_node_count(), imported, "ray" in sys.modules]))
"""

WORKING = """
def is_initialized(): return True
def nodes(): return [{"Alive": True}, {"Alive": False}, {"Alive": True}]
class util:
    get_node_ip_address = staticmethod(lambda: "10.0.0.9")
"""


def answer(tmp_path: Path, module: str, before: str = "import ray") -> list[object]:
    """Address, whether it is a guess, the node count, and whether ray was imported before and after asking."""
    (tmp_path / "ray.py").write_text(module, "utf-8")
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{ASK.format(before=before)}"]
    result: list[object] = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=60).stdout)
    return result


def test_attached(tmp_path: Path) -> None:
    """A Ray that this process is attached to says its node IP and how many nodes are alive."""
    assert answer(tmp_path, WORKING) == ["10.0.0.9", False, 2, True, True]


def test_ray_is_never_imported(tmp_path: Path) -> None:
    """A Ray that is installed and not imported stays so."""
    assert answer(tmp_path, WORKING, before="") == ["127.0.0.1", True, None, False, False]


@pytest.mark.parametrize(
    "module",
    [
        "def is_initialized(): return False",
        "",
        "def is_initialized(): raise RuntimeError",
        "def is_initialized(): return True",
        "def is_initialized(): return True\ndef nodes(): raise RuntimeError\nclass util: pass",
        "def is_initialized(): return True\nclass util:\n    get_node_ip_address = staticmethod(lambda: ' ')",
        "def is_initialized(): return True\nclass util:\n    get_node_ip_address = staticmethod(lambda: None)",
    ],
    ids=["not attached", "something else", "broken", "half imported", "disconnected", "blank", "none"],
)
def test_ray_that_does_not_answer(module: str, tmp_path: Path) -> None:
    """A Ray that is not attached, or that fails, leaves the next way to find out."""
    assert answer(tmp_path, module)[:3] == ["127.0.0.1", True, None]


def test_no_node_alive(tmp_path: Path) -> None:
    """A Ray without an alive node does not know how many there are."""
    assert answer(tmp_path, WORKING + "\ndef nodes(): return []")[2] is None


def test_not_attached() -> None:
    """This test process is attached to no Ray."""
    assert attached_node_count() is None


REAL = """
import ray, json
from mooncake_config.ray_node import attached_node_count, find_node_address
ray.init(num_cpus=1, include_dashboard=False, object_store_memory=80_000_000, log_to_driver=False)
inside = find_node_address()
print(json.dumps([inside.address, inside.guessed, attached_node_count(), ray.nodes()[0]["NodeManagerAddress"]]))
ray.shutdown()
"""


@pytest.mark.ray
def test_real_ray() -> None:
    """Attached to a real Ray, the node IP is that of its node manager, and the nodes are counted."""
    command = [sys.executable, "-c", REAL]
    done = subprocess.run(command, capture_output=True, check=True, timeout=100, text=True)
    address, guessed, count, manager = json.loads(done.stdout.splitlines()[-1])
    assert (address, guessed, count) == (manager, False, 1)
