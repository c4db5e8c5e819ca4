"""Host: facts of one machine, read below any root, so that a host that was copied away can be looked at too.

Every fact stands alone: a file that is missing, forbidden, no file at all or full of garbage makes the facts in it
unknown, which is None, and nothing else. Nothing here raises, blocks or sends a packet.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import Literal

from mooncake_config.display import RAW_LIMIT, escaped, shortened

ROOT = Path("/")
UNLIMITED: Literal["unlimited"] = "unlimited"
Limit = int | Literal["unlimited"] | None
"""Bytes, no limit at all, or unknown."""

_FILE_LIMIT = 1 << 20
_NO_LIMIT = 1 << 60
"""Bytes. cgroup v1 has no word for "none": it writes as many whole pages as a long holds, which depends on the page."""
_IPC_LOCK = 14
"""The bit of CAP_IPC_LOCK, which lets a process lock memory whatever its limit says (capabilities(7))."""


@dataclass(frozen=True)
class Gid:
    """A global identifier of an RDMA port that is not all zero. ``kind`` is such as ``RoCE v2``."""

    index: int
    address: str
    kind: str | None
    interface: str | None

    @property
    def is_link_local(self) -> bool:
        """Whether it cannot leave its own wire."""
        return IPv6Address(self.address).is_link_local


@dataclass(frozen=True)
class Port:
    """A port of an RDMA device. ``state`` is such as ``ACTIVE`` or ``DOWN``, ``link_layer`` InfiniBand or Ethernet.

    Words that the kernel does not use are no facts, and None.
    """

    number: int
    state: str | None
    phys_state: str | None
    link_layer: str | None
    rate: str | None
    gids: tuple[Gid, ...] | None


@dataclass(frozen=True)
class RdmaDevice:
    """An RDMA device as sysfs shows it, and the network interfaces that stand before it.

    ``verbs`` is the name of the file in ``dev/infiniband`` through which it is used, None where sysfs does not say.
    """

    name: str
    ports: tuple[Port, ...]
    interfaces: tuple[str, ...]
    verbs: str | None = None

    def port(self, number: int) -> Port | None:
        """The port of that number, as the cable sees it: counted from 1."""
        return next((port for port in self.ports if port.number == number), None)


@dataclass(frozen=True)
class HostsEntry:
    """A line of ``etc/hosts``: an address, and the names that this host maps to it."""

    address: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class Host:
    """Facts of one machine. None: unknown. Sizes are bytes.

    Args:
        root: where the facts were read.
        memory_available: what new processes can have without swapping, as the kernel estimates it.
        memory_limit: the smallest limit of the control groups from ours upwards.
        memory_limit_used: what is taken of that limit, less file pages that the kernel gives back at once.
        memlock: the soft limit of locked memory of one process.
        can_lock_any: whether this process holds CAP_IPC_LOCK, beside which ``memlock`` does not count.
        huge_pages_free: bytes in free huge pages of the default size.
        rdma_devices: empty where the machine has none, None where sysfs could not be seen.
        verbs: what ``dev/infiniband`` holds; empty where it is missing although ``dev`` is there.
        ipv4, ipv6: the addresses of this host in its network namespace.
        port_range: first and last port that the kernel lends to outgoing connections.
        reserved_ports: ranges of ports that it never lends.
    """

    root: str
    hostname: str | None = None
    memory_total: int | None = None
    memory_available: int | None = None
    memory_limit: Limit = None
    memory_limit_used: int | None = None
    memlock: Limit = None
    can_lock_any: bool | None = None
    huge_pages_free: int | None = None
    rdma_devices: tuple[RdmaDevice, ...] | None = None
    verbs: tuple[str, ...] | None = None
    interfaces: tuple[str, ...] | None = None
    ipv4: tuple[str, ...] | None = None
    ipv6: tuple[str, ...] | None = None
    port_range: tuple[int, int] | None = None
    reserved_ports: tuple[tuple[int, int], ...] | None = None
    hosts: tuple[HostsEntry, ...] | None = None

    @property
    def is_copy(self) -> bool:
        """Whether these are facts of another machine than the one that looks."""
        return self.root != str(ROOT)

    @property
    def knows_nothing(self) -> bool:
        """Whether no fact at all was found below the root."""
        return all(fact is None for name, fact in vars(self).items() if name != "root")

    def mapped(self, name: str) -> tuple[str, ...]:
        """The addresses that ``etc/hosts`` maps a name to."""
        wanted = name.lower().rstrip(".")
        return tuple(entry.address for entry in self.hosts or () if wanted in entry.names)

    def device(self, name: str) -> RdmaDevice | None:
        """The RDMA device of that name."""
        return next((device for device in self.rdma_devices or () if device.name == name), None)

    def facts(self) -> dict[str, object]:
        """The facts as JSON holds them; unknown is null."""
        return asdict(self)


def read_host(root: Path = ROOT) -> Host:
    """The facts of the machine whose ``proc``, ``sys``, ``dev`` and ``etc`` lie below the root. Never raises."""
    meminfo, status = _table(root / "proc/meminfo"), _table(root / "proc/self/status")
    limit, used = _memory_limit(root)
    capabilities = _whole(status.get("CapEff"), 16)
    return Host(
        root=str(root),
        hostname=_line(root / "proc/sys/kernel/hostname") or _line(root / "etc/hostname"),
        memory_total=_kilobytes(meminfo.get("MemTotal")),
        memory_available=_kilobytes(meminfo.get("MemAvailable")),
        memory_limit=limit,
        memory_limit_used=used,
        memlock=_memlock(root),
        can_lock_any=None if capabilities is None else bool(capabilities >> _IPC_LOCK & 1),
        huge_pages_free=_huge_pages_free(meminfo),
        rdma_devices=_rdma_devices(root),
        verbs=_verbs(root),
        interfaces=_shown_names(root / "sys/class/net"),
        ipv4=_ipv4_addresses(root),
        ipv6=_ipv6_addresses(root),
        port_range=_port_range(root),
        reserved_ports=_reserved_ports(root),
        hosts=_hosts(root),
    )


def _text(path: Path) -> str | None:
    """The text of a regular file, None for anything else. A FIFO does not make it wait, a huge file is cut."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
        return _whole_content(descriptor).decode("utf-8", "replace") if regular else None
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _whole_content(descriptor: int) -> bytes:
    """All up to a limit: files of the kernel come in pieces."""
    content = b""
    while len(content) < _FILE_LIMIT and (piece := os.read(descriptor, _FILE_LIMIT - len(content))):
        content += piece
    return content


def _line(path: Path) -> str | None:
    """The first line, fit to be shown; None where it is blank."""
    text = (_text(path) or "").strip()
    return shortened(escaped(text.splitlines()[0]), RAW_LIMIT) if text else None


def _lines(path: Path) -> list[str]:
    return (_text(path) or "").splitlines()


def _names(path: Path) -> tuple[str, ...] | None:
    """What a directory holds, in order; None where it cannot be seen."""
    try:
        return tuple(sorted(entry.name for entry in path.iterdir()))
    except (OSError, ValueError):
        return None


def _shown_names(path: Path) -> tuple[str, ...] | None:
    names = _names(path)
    return None if names is None else tuple(escaped(name) for name in names)


def _whole(text: str | None, base: int = 10) -> int | None:
    """A whole number in plain ASCII digits, None for anything else."""
    digits = (text or "").strip()
    try:
        return int(digits, base) if re.fullmatch("[0-9A-Fa-f]{1,20}", digits) else None
    except ValueError:
        return None


def _table(path: Path) -> dict[str, str]:
    """``Name: value`` lines."""
    return {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in _lines(path))}


def _kilobytes(text: str | None) -> int | None:
    number = _whole((text or "").removesuffix("kB"))
    return None if number is None else number << 10


def _huge_pages_free(meminfo: dict[str, str]) -> int | None:
    pages, size = _whole(meminfo.get("HugePages_Free")), _kilobytes(meminfo.get("Hugepagesize"))
    return None if pages is None or size is None else pages * size


def _memlock(root: Path) -> Limit:
    label = "Max locked memory"
    row = next((line for line in _lines(root / "proc/self/limits") if line.startswith(label)), "")
    soft = row.removeprefix(label).split()[:1]
    return UNLIMITED if soft == [UNLIMITED] else _whole(soft[0]) if soft else None


def _memory_limit(root: Path) -> tuple[Limit, int | None]:
    """The smallest limit among our control groups, and what is used of it."""
    levels = [level for level in _control_groups(root) if level[0] is not None]
    numbers = [(limit, used) for limit, used in levels if isinstance(limit, int)]
    if numbers:
        return min(numbers, key=lambda level: level[0])
    return (UNLIMITED, None) if levels else (None, None)


def _control_groups(root: Path) -> Iterator[tuple[Limit, int | None]]:
    """Limit and use of each control group from ours upwards, in the new layout and the old."""
    mount = root / "sys/fs/cgroup"
    for group in _upwards(mount, _group_path(root, "")):
        used, spare = _whole(_line(group / "memory.current")), _statistic(group, "inactive_file")
        yield _group_limit(group / "memory.max"), _less(used, spare)
    for group in _upwards(mount / "memory", _group_path(root, "memory")):
        used, spare = _whole(_line(group / "memory.usage_in_bytes")), _statistic(group, "total_inactive_file")
        yield _group_limit(group / "memory.limit_in_bytes"), _less(used, spare)


def _group_path(root: Path, controller: str) -> str:
    """Our path in the hierarchy of a controller; the unified hierarchy has no controller's name."""
    for line in _lines(root / "proc/self/cgroup"):
        controllers, _, path = line.partition(":")[2].partition(":")
        if controller in controllers.split(","):
            return path
    return "/"


def _upwards(mount: Path, path: str) -> Iterator[Path]:
    """The group and all above it. Where the path leads out of the mount (containers), the mount is what there is."""
    parts = [part for part in path.split("/") if part]
    if ".." in parts or len(parts) > 64:
        parts = []
    for depth in range(len(parts), -1, -1):
        yield mount.joinpath(*parts[:depth])


def _group_limit(path: Path) -> Limit:
    text = _line(path)
    number = _whole(text)
    return UNLIMITED if text == "max" or (number or 0) >= _NO_LIMIT else number


def _statistic(group: Path, name: str) -> int:
    row = next((line for line in _lines(group / "memory.stat") if line.startswith(f"{name} ")), "")
    return _whole(row.removeprefix(name)) or 0


def _less(used: int | None, spare: int) -> int | None:
    return None if used is None else max(used - spare, 0)


def _rdma_devices(root: Path) -> tuple[RdmaDevice, ...] | None:
    """The devices. A sysfs that is there and lacks their class says that there are none."""
    sysfs = root / "sys"
    names = _names(sysfs / "class/infiniband")
    if names is not None:
        verbs = _verbs_by_device(sysfs / "class/infiniband_verbs")
        return tuple(_rdma_device(sysfs / "class/infiniband" / name, verbs) for name in names[:256])
    classes = _names(sysfs / "class")
    if classes is None:
        top = _names(sysfs)
        return () if top and "class" not in top else None
    return None if "infiniband" in classes else ()


def _verbs_by_device(path: Path) -> dict[str, str]:
    """Device to the name of its verbs file, such as ``mlx5_0`` to ``uverbs0``."""
    names = [name for name in _names(path) or () if re.fullmatch("uverbs[0-9]{1,4}", name)]
    return {device: name for name in names if (device := _line(path / name / "ibdev"))}


def _rdma_device(path: Path, verbs: dict[str, str]) -> RdmaDevice:
    numbers = sorted(int(name) for name in _names(path / "ports") or () if re.fullmatch("[0-9]{1,3}", name))
    ports = tuple(_port(path / "ports", number) for number in numbers)
    behind = {gid.interface for port in ports for gid in port.gids or () if gid.interface}
    behind.update(_shown_names(path / "device/net") or ())
    return RdmaDevice(escaped(path.name), ports, tuple(sorted(behind)), verbs.get(escaped(path.name)))


def _port(ports: Path, number: int) -> Port:
    path = ports / str(number)
    return Port(
        number=number,
        state=_known(_after_number(path / "state"), _STATES),
        phys_state=_after_number(path / "phys_state"),
        link_layer=_known(_line(path / "link_layer"), _LINK_LAYERS),
        rate=_line(path / "rate"),
        gids=_gids(path),
    )


_STATES = ("NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER")
_LINK_LAYERS = ("InfiniBand", "Ethernet")
"""The kernel's own words (drivers/infiniband/core/sysfs.c)."""


def _known(text: str | None, words: tuple[str, ...]) -> str | None:
    return text if text in words else None


def _after_number(path: Path) -> str | None:
    """``ACTIVE`` of ``4: ACTIVE``, None for anything else."""
    match = re.fullmatch("[0-9]: ?([A-Za-z][A-Za-z _]{0,40})", _line(path) or "")
    return match[1] if match else None


def _gids(port: Path) -> tuple[Gid, ...] | None:
    """The GIDs that are not all zero; None where no entry of the table can be read."""
    names = _names(port / "gids")
    if names is None:
        return None
    numbers = sorted(int(name) for name in names if re.fullmatch("[0-9]{1,4}", name))
    texts = {number: text for number in numbers if (text := _line(port / f"gids/{number}"))}
    return tuple(_gids_of(port / "gid_attrs", texts)) if texts else None


def _gids_of(attributes: Path, texts: dict[int, str]) -> Iterator[Gid]:
    for index, text in texts.items():
        with suppress(ValueError):
            address = IPv6Address(text)
            if int(address):
                kind, interface = _line(attributes / f"types/{index}"), _line(attributes / f"ndevs/{index}")
                yield Gid(index, str(address), kind, interface)


def _verbs(root: Path) -> tuple[str, ...] | None:
    """The character devices through which a process uses RDMA."""
    names = _shown_names(root / "dev/infiniband")
    if names is not None:
        return names
    everything = _names(root / "dev")
    return () if everything and "infiniband" not in everything else None


def _ipv4_addresses(root: Path) -> tuple[str, ...] | None:
    """The addresses that the kernel's routing trie calls local."""
    found, leaf = set(), ""
    for line in _lines(root / "proc/net/fib_trie"):
        if "|--" in line:
            leaf = line.rpartition("|--")[2].strip()
        elif line.split() == ["/32", "host", "LOCAL"] and _is_address(leaf):
            found.add(leaf)
    return tuple(sorted(found)) or None


def _ipv6_addresses(root: Path) -> tuple[str, ...] | None:
    """The addresses of if_inet6. Empty it says that IPv6 is off, or, in a copy, that it was archived by its size, 0."""
    text = _text(root / "proc/net/if_inet6")
    if text is None:
        return None
    found = {row[0] for line in text.splitlines() if (row := line.split()) and re.fullmatch("[0-9a-fA-F]{32}", row[0])}
    if not found and (text.strip() or root != ROOT):
        return None
    return tuple(sorted(str(IPv6Address(int(digits, 16))) for digits in found))


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _port_range(root: Path) -> tuple[int, int] | None:
    words = (_text(root / "proc/sys/net/ipv4/ip_local_port_range") or "").split()
    first, last = (_whole(word) for word in words) if len(words) == 2 else (None, None)
    return None if first is None or last is None else (first, last)


def _reserved_ports(root: Path) -> tuple[tuple[int, int], ...] | None:
    """The ranges of ``8080,9000-9100``; a single port is a range of its own."""
    text = _text(root / "proc/sys/net/ipv4/ip_local_reserved_ports")
    if text is None:
        return None
    found = []
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        low, high = _whole(first), _whole(last or first)
        if low is not None and high is not None:
            found.append((low, high))
    return tuple(found)


def _hosts(root: Path) -> tuple[HostsEntry, ...] | None:
    """The first lines of ``etc/hosts``; names in lower case, as they are compared."""
    text = _text(root / "etc/hosts")
    if text is None:
        return None
    rows = [line.partition("#")[0].split() for line in text.splitlines()[:4096]]
    return tuple(
        HostsEntry(row[0], tuple(shortened(escaped(name.lower().rstrip(".")), RAW_LIMIT) for name in row[1:]))
        for row in rows
        if len(row) > 1 and _is_address(row[0].partition("%")[0])
    )
