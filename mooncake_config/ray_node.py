"""The Ray node IP of this process or host, found without importing, starting or joining Ray, and without a packet."""

from __future__ import annotations

import fcntl
import socket
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path("/")
_SIOCGIFADDR = 0x8915
_UNSPECIFIED_ROUTE = "0" * 32


class NodeAddress(NamedTuple):
    """An address of this node. ``guessed``: no Ray said so, the default route or loopback stands in.

    ``rivals`` are the addresses of this host's raylets where they differ, so that none of them could be taken.
    """

    address: str
    guessed: bool = False
    rivals: tuple[str, ...] = ()

    @property
    def spot(self) -> str:
        """How the origin of this address is worded."""
        return "Ray node IP (guess)" if self.guessed else "Ray node IP"


def find_node_address(root: Path = ROOT) -> NodeAddress:
    """The node address: of the attached Ray, of this host's one raylet, of the default route, loopback.

    Args:
        root: where ``proc`` is read; interfaces are asked of the running kernel only for ``/``.
    """
    attached = _attached_address()
    if attached:
        return NodeAddress(attached)
    said = sorted(set(filter(None, _raylet_addresses(root / "proc"))))
    if len(said) == 1:
        return NodeAddress(said[0])
    return NodeAddress(_default_route_address(root) or "127.0.0.1", guessed=True, rivals=tuple(said))


def attached_node_count() -> int | None:
    """The number of alive Ray nodes where this process is attached to Ray, else None."""
    ray = _attached_ray()
    if ray is None:
        return None
    try:
        return sum(bool(node.get("Alive")) for node in ray.nodes()) or None
    except Exception:  # noqa: BLE001 - any failure of a foreign runtime leaves the number unknown
        return None


def _attached_ray() -> Any:
    ray = sys.modules.get("ray")
    try:
        return ray if ray is not None and ray.is_initialized() else None
    except Exception:  # noqa: BLE001 - a half-imported or foreign module named ray
        return None


def _attached_address() -> str | None:
    ray = _attached_ray()
    try:
        return str(ray.util.get_node_ip_address() or "").strip() if ray is not None else None
    except Exception:  # noqa: BLE001 - any failure of a foreign runtime leaves the address to the next way
        return None


def _raylet_addresses(proc: Path) -> Iterator[str]:
    """The addresses that the raylets of this host were started with; blank where one got none."""
    try:
        entries = [entry for entry in proc.iterdir() if entry.name.isdigit()]
    except OSError:
        return
    for entry in entries:
        try:
            words = (entry / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
        except OSError:
            continue
        if words[0].rpartition("/")[2] == "raylet":
            yield from (word.partition("=")[2].strip() for word in words if word.startswith("--node_ip_address="))


def _default_route_address(root: Path) -> str | None:
    """The address of the interface that the default route leaves by: IPv4 first, as Ray guesses."""
    interface = _default_interface(root / "proc/net/route")
    if interface and root == ROOT:
        found = interface_address(interface)
        if found:
            return found
    return _default_ipv6_address(root / "proc/net")


def _lines(path: Path) -> list[list[str]]:
    try:
        return [line.split() for line in path.read_text("ascii", "replace").splitlines()]
    except OSError:
        return []


def _default_interface(route: Path) -> str | None:
    rows = [row for row in _lines(route)[1:] if len(row) > 7 and row[1] == row[7] == "00000000"]
    rows.sort(key=lambda row: int(row[6]) if row[6].isdigit() else 0)
    return rows[0][0] if rows else None


def interface_address(name: str) -> str | None:
    """The IPv4 address of a network interface of the running kernel, None where it has none."""
    request = struct.pack("256s", name.encode()[:15])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            return socket.inet_ntoa(fcntl.ioctl(asking.fileno(), _SIOCGIFADDR, request)[20:24])
        except OSError:
            return None


def _default_ipv6_address(net: Path) -> str | None:
    interfaces = {
        row[9]
        for row in _lines(net / "ipv6_route")
        if len(row) > 9 and row[0] == _UNSPECIFIED_ROUTE and row[1] == "00" and row[9] != "lo"
    }
    for row in _lines(net / "if_inet6"):
        if len(row) > 5 and row[5] in interfaces and row[3] == "00":
            return socket.inet_ntop(socket.AF_INET6, bytes.fromhex(row[0]))
    return None
