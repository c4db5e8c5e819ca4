"""MC2xx: this machine, its memory, RDMA devices and addresses, against what the configuration asks of it."""

from __future__ import annotations

from collections.abc import Iterator

from mooncake_config.addresses import endpoints_of, ip_of, is_loopback, is_wildcard, scheme_of, split_endpoint
from mooncake_config.dialogue import Outcome
from mooncake_config.display import shown
from mooncake_config.findings import Severity
from mooncake_config.host import Port, RdmaDevice
from mooncake_config.node import Node
from mooncake_config.plan import buffer_beside, room_in, rounded_down, written_size
from mooncake_config.protocols import nearest, other_kind
from mooncake_config.rules.rule import Problem, rule
from mooncake_config.sizes import human_size

_SIZES = ("local_buffer_size", "global_segment_size")
_LESS_MEMORY = "lower local_buffer_size (every process has its own) or global_segment_size"


@rule("MC200", Severity.ERROR)
def memory_above_host(node: Node) -> Iterator[Problem]:
    """The Store's clients of this node reserve more memory than the host has.

    Sees processes × local_buffer_size + one global_segment_size against MemTotal of /proc/meminfo; without a known
    number of processes, this one alone. Over TCP, where memory is reserved and filled later, the sum over several
    processes is a warning as long as each one fits alone. More than MemAvailable is a warning.

    Why: RDMA pins all of it at setup, and the kernel kills what does not fit. Over TCP one process that asks for more
    than the host has ends in MemoryError (std::bad_alloc) or -600 (measured: 32 GiB on 24 GiB).

    Fix: lower local_buffer_size, which every process has for itself; "2gb" is the walkthrough's value.

    Example: 8 trainers with the defaults reserve 8 × 32 GiB + 8 GiB = 264 GiB; a node of 128 GiB refuses.
    """
    total, available = node.host.memory_total, node.host.memory_available
    if total is None or (needed := node.job_memory) is None:
        return
    if needed > total:
        message = f"{_memory_words(node)}, and this host's memory (MemTotal) is {_counted(total)}."
        yield Problem(_SIZES, message, f"{_LESS_MEMORY}{_fitting(node, total)}.", _memory_weight(node, total))
    elif available is not None and needed > available:
        message = f"{_memory_words(node)}, and {_counted(available)} of this host's memory are free (MemAvailable)."
        yield Problem(_SIZES, message, f"free memory on this host, or {_LESS_MEMORY}.", Severity.WARNING)


@rule("MC201", Severity.ERROR)
def memory_above_cgroup_limit(node: Node) -> Iterator[Problem]:
    """The Store's clients of this node reserve more memory than their control group may have.

    Sees the smallest memory limit from our control group upwards (memory.max, or memory.limit_in_bytes of the older
    layout), which is the limit of a container or pod. More than is left of it is a warning.

    Why: the kernel kills a process of the container at the moment that memory is touched, which RDMA does at setup,
    with nothing in the job's own log.

    Fix: raise the limit of the container (Kubernetes: resources.limits.memory), or lower the sizes.

    Example: a segment of "10gb" in a pod limited to 10 GiB leaves nothing for the buffer.
    """
    limit, used = node.host.memory_limit, node.host.memory_limit_used
    if not isinstance(limit, int) or (needed := node.job_memory) is None:
        return
    fix = f"raise the memory limit of the container or pod, or {_LESS_MEMORY}"
    if needed > limit:
        message = f"{_memory_words(node)}, and the cgroup limit of this container is {_counted(limit)}."
        yield Problem(_SIZES, message, f"{fix}{_fitting(node, limit)}.", _memory_weight(node, limit))
    elif used is not None and needed > limit - used:
        left = f"{_counted(max(limit - used, 0))} are left of the cgroup limit of {_counted(limit)}"
        yield Problem(_SIZES, f"{_memory_words(node)}, and {left}.", f"{fix}.", Severity.WARNING)


def _memory_words(node: Node) -> str:
    """Who reserves how much, as a sum that can be checked."""
    alone = node.process.topology.processes_per_node is None
    times = f"{node.clients} × " if node.clients > 1 else ""
    total = f"{times}{human_size(node.process.size('local_buffer_size') or 0)} of buffer"
    if segment := _segment(node):
        total += f" + {human_size(segment)} of segment"
    who = "this process alone reserves" if alone else "the Store's clients of this node reserve"
    return f"{who} {total} = {_counted(node.job_memory or 0)}"


def _segment(node: Node) -> int:
    return node.segments * (node.process.size("global_segment_size") or 0)


def _memory_weight(node: Node, bound: int) -> Severity | None:
    """An error where it must fail: it is pinned, or one process alone is too large."""
    return None if node.uses_verbs or (node.own_memory or 0) > bound else Severity.WARNING


def _fitting(node: Node, bound: int) -> str:
    """A buffer that would fit, where there is one of reasonable size."""
    buffer = rounded_down(buffer_beside(room_in(bound), node.clients, _segment(node)))
    return f'; a buffer of "{written_size(buffer)}" leaves a quarter of the memory free' if buffer > 0 else ""


def _counted(size: int) -> str:
    return f"{human_size(size)} ({size} bytes)"


@rule("MC202", Severity.ERROR)
def memlock_below_registration(node: Node) -> Iterator[Problem]:
    """The process may lock less memory than RDMA has to pin.

    Sees the soft limit "Max locked memory" of /proc/self/limits against this process's buffer and segment, where the
    protocol is rdma or efa, the host has devices, and the process does not hold CAP_IPC_LOCK.

    Why: ibv_reg_mr fails with "Cannot allocate memory" and setup ends in -600.

    Fix: `ulimit -l unlimited` before Ray starts; LimitMEMLOCK=infinity in a systemd unit; `--ulimit memlock=-1` or
    `--cap-add=IPC_LOCK` for a container.

    Example: a shell that may lock 64 KiB, and a segment of 80 GiB.
    """
    limit, needed = node.host.memlock, node.own_memory
    if not node.uses_verbs or node.host.rdma_devices == () or node.host.can_lock_any:
        return
    if isinstance(limit, int) and needed is not None and needed > limit:
        message = (
            f"RDMA locks {_counted(needed)} of this process, and its memlock limit (ulimit -l) is {_counted(limit)}."
        )
        fix = "run `ulimit -l unlimited` before starting Ray, or start the container with --ulimit memlock=-1."
        yield Problem(_SIZES, message, fix)


@rule("MC203", Severity.WARNING)
def too_few_huge_pages(node: Node) -> Iterator[Problem]:
    """MC_STORE_USE_HUGEPAGE is set, and the host has too few free huge pages for what this process reserves.

    Sees free huge pages of the default size against this process's buffer and segment.

    Why: the engine maps its memory from huge pages and has no other to fall back to.

    Fix: reserve pages (`sysctl vm.nr_hugepages=…`), or unset the variable; its presence counts, even with 0.

    Example: MC_STORE_USE_HUGEPAGE=0 on a host without any huge page.
    """
    free, needed = node.host.huge_pages_free, node.own_memory
    if "MC_STORE_USE_HUGEPAGE" in node.process.variables.variables and free is not None and needed and needed > free:
        message = (
            f"huge pages are asked for, {_counted(needed)} are needed, and {_counted(free)} are free in huge pages."
        )
        fix = "reserve huge pages with `sysctl vm.nr_hugepages=N`, or unset MC_STORE_USE_HUGEPAGE."
        yield Problem(_SIZES, message, fix, origin=node.process.variables.origin("MC_STORE_USE_HUGEPAGE"))


@rule("MC210", Severity.ERROR)
def missing_rdma_device(node: Node) -> Iterator[Problem]:
    """device_name names an RDMA device that this host does not have.

    Sees each name of the list against /sys/class/infiniband, and names the nearest.

    Why: with no usable device among the names setup ends in -1 after 22 seconds (measured); with one of several missing
    the node uses fewer links than planned.

    Fix: write names as `ibv_devices` prints them on this node.

    Example: MOONCAKE_DEVICE=mlx5_0,mlx5_99 on a host with mlx5_0 to mlx5_3.
    """
    devices = node.host.rdma_devices
    if not node.uses_verbs or devices is None:
        return
    for name in _looked_for(node):
        if (
            node.host.device(name) is None
            and name.isascii()
            and not _is_spelt_otherwise(name)
            and not _is_interface(node, name)
        ):
            yield _missing_device(name, tuple(device.name for device in devices))


def _looked_for(node: Node) -> list[str]:
    """The devices that are looked for here, each once; what is none by its name alone was told without the machine."""
    return [name for name in dict.fromkeys(node.named_devices) if other_kind(name) is None]


def _missing_device(name: str, known: tuple[str, ...]) -> Problem:
    near = nearest(name, known)
    if not known:
        message = f"{shown(name)} does not exist: this host has no RDMA device at all."
        return Problem(("device_name",), message, "write protocol tcp, or expose the device to this host or container.")
    message = f"{shown(name)} does not exist on this host, which has {shown(', '.join(known), 200)}."
    meant = f"did you mean {near}? Write" if near else "write"
    return Problem(("device_name",), message, f"{meant} one of {shown(', '.join(known), 200)}.")


def _is_spelt_otherwise(name: str) -> bool:
    """A path, a port behind the name or a blank inside, which MC044 reports by the text alone."""
    return any(mark in name for mark in "/: \t")


def _is_interface(node: Node, name: str) -> bool:
    return name in (node.host.interfaces or ()) or any(node.devices_behind(name))


@rule("MC211", Severity.ERROR)
def interface_as_device(node: Node) -> Iterator[Problem]:
    """device_name names a network interface instead of the RDMA device behind it.

    Sees names of /sys/class/net, and of the interfaces that sysfs shows behind RDMA devices.

    Why: Mooncake looks for an RDMA device of that name and gives up after 22 seconds with -1 (measured).

    Fix: write the device, as `rdma link` shows it beside its netdev.

    Example: MOONCAKE_DEVICE=eth1, where eth1 belongs to mlx5_0.
    """
    if not node.uses_verbs:
        return
    for name in _looked_for(node):
        if node.host.device(name) is None and not _is_spelt_otherwise(name) and _is_interface(node, name):
            behind = ", ".join(device.name for device in node.devices_behind(name))
            message = f"{shown(name)} is a network interface, not an RDMA device"
            message += (
                f"; the device behind it is {shown(behind)}." if behind else ", and no RDMA device stands behind it."
            )
            known = ", ".join(device.name for device in node.host.rdma_devices or ())
            fix = (
                f"write {shown(behind or known)}."
                if behind or known
                else "write protocol tcp: this host shows no RDMA device."
            )
            yield Problem(("device_name",), message, fix)


@rule("MC212", Severity.ERROR)
def rdma_port_down(node: Node) -> Iterator[Problem]:
    """The port of an RDMA device that would be used is not active.

    Sees the state of port 1 (or MC_IB_PORT) of the named devices, or of all where none is named. As long as another
    device is active this is a warning; for devices that nobody named it is an info.

    Why: Mooncake drops a device whose port is not active. With none left it says "No available RNIC" and setup fails.

    Fix: bring the link up (cable, switch, `ip link set … up`, subnet manager), name a device that is active, or choose
    the other port of a dual-port device with MC_IB_PORT.

    Example: MOONCAKE_DEVICE=mlx5_1, whose port is DOWN.
    """
    if not node.uses_verbs:
        return
    used = [(device, port) for device in node.used_devices if (port := device.port(_port_number(node)))]
    down = [(device, port) for device, port in used if port.state not in (None, "ACTIVE")]
    some = len(down) < len(used)
    weight = None if not some else Severity.WARNING if node.named_devices else Severity.INFO
    active = ", ".join(device.name for device in node.host.rdma_devices or () if _is_active(device, node))
    ways = f", or name a device that is active{': ' + shown(active) if active else ''}."
    for device, port in down:
        message = f"{_port_words(device, port)} is not active: its state is {shown(port.state)}."
        other = next((item.number for item in device.ports if item.state == "ACTIVE"), None)
        port_way = f", set MC_IB_PORT={other}, the port of this device that is active" if other else ""
        yield Problem(("device_name",), message, f"bring its link up{port_way}{ways}", weight)


def _is_active(device: RdmaDevice, node: Node) -> bool:
    port = device.port(_port_number(node))
    return port is not None and port.state == "ACTIVE"


def _port_words(device: RdmaDevice, port: Port) -> str:
    layer = f" ({port.link_layer})" if port.link_layer else ""
    return f"port {port.number}{layer} of {device.name}"


def _port_number(node: Node) -> int:
    number = node.variable("MC_IB_PORT")
    return int(number) if number.isascii() and number.isdigit() and len(number) < 4 else 1


@rule("MC213", Severity.WARNING)
def no_rdma_device(node: Node) -> Iterator[Problem]:
    """The protocol is rdma, no device is named, and this host has none.

    Sees a /sys/class without infiniband. A sysfs that cannot be seen is unknown, and nothing is said.

    Why: setup succeeds, and all transfers silently use TCP; the master lists the segment as rdma all the same
    (measured). The job runs, slower than anybody planned.

    Fix: set the protocol to tcp if that is what this job shall use; else load the driver, or expose the device to the
    container (--device=/dev/infiniband, the RDMA device plugin of Kubernetes).

    Example: the default protocol on a laptop.
    """
    if node.uses_verbs and node.host.rdma_devices == () and not node.named_devices:
        protocol = node.process.text("protocol")
        message = f"the protocol is {protocol}, and this host has no RDMA device: Mooncake would silently use TCP."
        fix = "set the protocol to tcp, or make an RDMA device visible here (driver, --device=/dev/infiniband)."
        yield Problem(("protocol",), message, fix)


@rule("MC214", Severity.ERROR)
def missing_verbs_files(node: Node) -> Iterator[Problem]:
    """sysfs shows RDMA devices, and /dev/infiniband lacks the uverbs files to use them through.

    Sees whether there is any uverbs file, and whether those of the devices that would be used are there
    (/sys/class/infiniband_verbs says which belongs to which). As long as one of the named devices has its file this is
    a warning; where none is named, Mooncake picks among those that can be opened, and nothing is said.

    Why: a container sees the host's sysfs, and opening a device fails all the same: setup fails, or transfers silently
    use TCP.

    Fix: start the container with --device=/dev/infiniband, or load the module ib_uverbs on the host.

    Example: a container without --device on a host with mlx5_0.
    """
    verbs = node.host.verbs
    if not node.uses_verbs or not node.host.rdma_devices or verbs is None:
        return
    if not any(name.startswith("uverbs") for name in verbs):
        names = shown(", ".join(device.name for device in node.host.rdma_devices))
        message = f"sysfs shows {names}, and /dev/infiniband has no uverbs file here, so no process can open a device."
        fix = (
            "start the container with --device=/dev/infiniband (Kubernetes: the RDMA device plugin), or load ib_uverbs."
        )
        yield Problem(("device_name",), message, fix)
        return
    lacking = [device for device in node.used_devices if device.verbs and device.verbs not in verbs]
    every = len(lacking) == len(node.used_devices)
    if lacking and (every or node.named_devices):
        yield _closed_devices(lacking, node, None if every else Severity.WARNING)


def _closed_devices(lacking: list[RdmaDevice], node: Node, weight: Severity | None) -> Problem:
    files = shown(", ".join(f"{device.verbs} of {device.name}" for device in lacking), 200)
    message = f"/dev/infiniband lacks {files} here, so no process can open {'it' if len(lacking) == 1 else 'them'}."
    usable = [device.name for device in node.host.rdma_devices or () if device.verbs in (node.host.verbs or ())]
    instead = f"write a device whose file is here, {shown(', '.join(usable), 200)}, or " if usable else ""
    fix = f"{instead}start the container with --device=/dev/infiniband/{shown(lacking[0].verbs)} as well."
    return Problem(("device_name",), message, fix, weight)


@rule("MC215", Severity.WARNING)
def link_local_gids_only(node: Node) -> Iterator[Problem]:
    """A RoCE port has no GID but link-local ones, and no index is chosen.

    Sees ports of link layer Ethernet whose GIDs all lie in fe80::/10, or that have none.

    Why: RoCE packets with such an address do not leave their own Ethernet segment; Mooncake's choice of a GID asks for
    one that comes from an IPv4 address. Connections between nodes then fail at the first transfer.

    Fix: give the interface behind the device an IP address; then the kernel adds a GID for it. Or set MC_GID_INDEX,
    which falls back to NCCL_IB_GID_INDEX.

    Example: mlx5_0 over eth1, and eth1 has no address.
    """
    if not node.uses_verbs or node.gid_index:
        return
    for device in node.used_devices:
        port = device.port(_port_number(node))
        if port is None or port.link_layer != "Ethernet" or port.gids is None:
            continue
        if all(gid.is_link_local for gid in port.gids):
            what = "only a link-local GID" if port.gids else "no GID"
            message = f"{_port_words(device, port)} has {what}, which no other network reaches."
            behind = shown(", ".join(device.interfaces) or "the interface behind it")
            yield Problem(
                ("device_name",), message, f"give {behind} an IP address, or set MC_GID_INDEX to a routable GID."
            )


@rule("MC216", Severity.ERROR)
def empty_gid_index(node: Node) -> Iterator[Problem]:
    """MC_GID_INDEX points to an entry of the GID table that is empty.

    Sees the entry of that number at each device that would be used. As long as another one has it, this is a warning.
    Where MC_GID_INDEX is unset the engine takes NCCL_IB_GID_INDEX, and so does this rule.

    Why: Mooncake drops such a device with "GID is NULL, please check your GID index"; with none left setup fails.

    Fix: unset MC_GID_INDEX, so that Mooncake picks one, or take an index from `show_gids`.

    Example: MC_GID_INDEX=3 where the table has entries 0 and 1.
    """
    if not node.uses_verbs or node.gid_index is None:
        return
    variable, index = node.gid_index
    ports = [(device, port) for device in node.used_devices if (port := device.port(_port_number(node))) and port.gids]
    without = [(device, port) for device, port in ports if index not in {gid.index for gid in port.gids or ()}]
    weight = None if len(without) == len(ports) else Severity.WARNING
    origin = node.process.variables.origin(variable)
    for device, port in without:
        known = ", ".join(str(gid.index) for gid in port.gids or ())
        message = f"GID {index} ({variable}) of {_port_words(device, port)} is empty; there are {shown(known)}."
        fix = "unset MC_GID_INDEX, or choose one of these."
        if variable != "MC_GID_INDEX":
            fix = f"set MC_GID_INDEX to one of these: the engine takes {variable} only where it is unset."
        yield Problem(("device_name",), message, fix, weight, origin)


@rule("MC220", Severity.ERROR)
def address_of_another_host(node: Node) -> Iterator[Problem]:
    """local_hostname is no address of this host.

    Sees an IP, or a name that resolves to addresses, none of which this host has in its network namespace. Where a
    person wrote it and the job has several nodes this is an error, else a warning: Ray itself may know better, and
    address translation can make it right.

    Why: setup succeeds (measured), and every transfer to this node goes to the other host, or to nobody.

    Fix: unset it to use the Ray node IP, or write an address of this host.

    Example: MOONCAKE_LOCAL_HOSTNAME=10.0.0.1 exported on every node from one script.
    """
    host = split_endpoint(node.process.text("local_hostname") or "").host
    addresses = [item for item in node.addresses_of("local_hostname", host) if not is_loopback(item)]
    if not addresses or is_loopback(host) or is_wildcard(host):
        return
    if all(node.is_own(item) is False for item in addresses):
        certain = node.several_nodes and node.claimed("local_hostname")
        named = shown(host) if ip_of(host) else f"{shown(host)} ({shown(', '.join(addresses))})"
        fix = "write an address of this host on the data network, or unset it to use the Ray node IP."
        if not node.claimed("local_hostname"):
            fix = "start Ray with --node-ip-address of this host, correct --node-ip, or export MOONCAKE_LOCAL_HOSTNAME."
        message = f"{named} is no address of this host{_known_words(node)}."
        yield Problem(("local_hostname",), message, fix, None if certain else Severity.WARNING)


def _known_words(node: Node) -> str:
    """The addresses of this host, as far as they are known."""
    known = shown(", ".join(_reachable(node)))
    if not known and None not in (node.host.ipv4, node.host.ipv6):
        known = "loopback only"
    return f", which has {known}" if known else ""


def _reachable(node: Node) -> Iterator[str]:
    """This host's addresses that others can reach it by."""
    for address in (*(node.host.ipv4 or ()), *(node.host.ipv6 or ())):
        ip = ip_of(address)
        if ip is not None and not ip.is_loopback and not ip.is_link_local:
            yield address


@rule("MC230", Severity.INFO)
def master_in_ephemeral_range(node: Node) -> Iterator[Problem]:
    """The master's port on this host lies among those that the kernel lends to outgoing connections.

    Sees ip_local_port_range and ip_local_reserved_ports, where the master's address is this host. While nothing answers
    there this is a warning.

    Why: any outgoing connection may take the port before the master binds it; then the master does not start. The
    defaults of both meet: 50051 lies in 32768 to 60999.

    Fix: reserve it, `sysctl net.ipv4.ip_local_reserved_ports=50051`, or choose a port below the range. The command
    replaces the list that stands there: write its ports as well.

    Example: a master on 10.0.0.5:50051, started on 10.0.0.5.
    """
    address, span = node.process.text("master_server_address") or "", node.host.port_range
    if scheme_of(address) or span is None:
        return
    for endpoint in endpoints_of(address):
        port = endpoint.port or 0
        reserved = any(low <= port <= high for low, high in node.host.reserved_ports or ())
        here = any(node.is_own(item) for item in node.addresses_of("master_server_address", endpoint.host))
        if here and span[0] <= port <= span[1] and not reserved:
            dead = any(answer.outcome is Outcome.REFUSED for answer in node.probes.of("master_server_address"))
            span_words = f"{span[0]} to {span[1]} (ip_local_port_range)"
            message = f"the master's port {port} lies in this host's ephemeral range, {span_words}."
            fix = f"{_reserving(port, node.host.reserved_ports)}, or give the master a port below the range."
            yield Problem(("master_server_address",), message, fix, Severity.WARNING if dead else None)


@rule("MC240", Severity.WARNING)
def no_host_facts(node: Node) -> Iterator[Problem]:
    """Nothing about a host stands below --host-root.

    Sees a directory below which neither proc nor sys nor etc nor dev holds anything that is read here.

    Why: what is unknown is no error, so a wrong directory looks like a host on which all is well.

    Fix: give the directory that holds proc, sys, etc and dev, and copy proc/meminfo with its place kept.

    Example: --host-root worker/proc, where worker was meant.
    """
    if node.host.is_copy and node.host.knows_nothing:
        message = f"no fact of a host is found below {shown(node.host.root)} (--host-root), such as proc/meminfo."
        yield Problem((), message, "give the directory that holds proc, sys, etc and dev.")


def _reserving(port: int, reserved: tuple[tuple[int, int], ...] | None) -> str:
    """How a port is reserved beside those that are: what sysctl is given replaces the whole list."""
    name = "net.ipv4.ip_local_reserved_ports"
    if reserved is None or len(reserved) > _PORTS_TO_REPEAT:
        return f"add {port} to the list of ports in {name} (`sysctl` replaces the list)"
    spans = [f"{low}" if low == high else f"{low}-{high}" for low, high in reserved]
    return f"run `sysctl {name}={','.join([*spans, str(port)])}`"


_PORTS_TO_REPEAT = 20
"""Ranges of reserved ports that a command repeats; more are no longer read by anybody."""
