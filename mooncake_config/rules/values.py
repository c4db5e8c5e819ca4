"""MC04x and MC05x: one value that could be read, and is still none to start with."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mooncake_config.addresses import Endpoint, Reach, scheme_of
from mooncake_config.damage import NOTHING
from mooncake_config.display import masked, shown
from mooncake_config.findings import Severity
from mooncake_config.process import Process
from mooncake_config.protocols import AUTO_DISCOVERY, devices_of, is_device_name, other_kind
from mooncake_config.rules.rule import Problem, rule
from mooncake_config.settings import FIELDS
from mooncake_config.sizes import ADDRESS_SPACE, BUFFER_RANGE, LARGEST, SEGMENT_FLOOR, exact_size, format_size

_UNBOUNDED_SIZES = tuple(spec.name for spec in FIELDS if spec.takes_numbers and spec.name != "local_buffer_size")
"""The sizes that have no range of their own."""
TINY_CHUNK = 1 << 20
"""Bytes. Below it a put is slowed down many times (measured)."""


@rule("MC040", Severity.ERROR, about="odd_endpoints")
def wildcard_address(process: Process) -> Iterator[Problem]:
    """An address is the wildcard, 0.0.0.0 or ::.

    Why: it means "listen everywhere" to a server. As an address to connect to, it is this machine itself, and as the
    address that a client advertises it reaches nobody.

    Fix: write the address on the data network.

    Fires:
        MOONCAKE_MASTER=0.0.0.0:50051 explain --num-nodes 1
    Silent:
        MOONCAKE_MASTER=10.0.0.5:50051 explain --num-nodes 1
    """
    for name, endpoint in process.odd_endpoints:
        if endpoint.reach is Reach.WILDCARD:
            message = (
                f"{shown(endpoint.host)} is the wildcard address: a server listens on it, nobody can connect to it."
            )
            yield Problem((name,), message, "write the address that the other nodes reach it by.")


@rule("MC041", Severity.ERROR, about="odd_sizes")
def segment_below_minimum(process: Process) -> Iterator[Problem]:
    """The segment that this process contributes is smaller than Mooncake can allocate.

    Sees less than 16 MiB (16777216 bytes) and more than 0 in a process that contributes.

    Why: setup answers -600 although the key's own check passes (measured at 1 MiB). Mostly a unit was forgotten: "8"
    is 8 bytes.

    Fix: write at least "16mb"; 0 where no memory shall be given.

    Fires:
        MOONCAKE_GLOBAL_SEGMENT_SIZE=1mb explain --num-nodes 1
    Silent:
        MOONCAKE_GLOBAL_SEGMENT_SIZE=16mb explain --num-nodes 1
    """
    size = process.contributed
    if size and size < SEGMENT_FLOOR:
        message = f"{exact_size(size)} is below Mooncake's minimum of 16 MiB (16777216 bytes) for a segment."
        yield Problem(("global_segment_size",), message, f'write "16mb" or more{_unit_hint(size)}.')


@rule("MC042", Severity.ERROR, about="odd_sizes")
def buffer_out_of_range(process: Process) -> Iterator[Problem]:
    """The local buffer is smaller than 1 KiB or larger than 1 TiB.

    Why: setup answers -600 (measured at 2 TiB). With 0 the setup passes and every put fails with -600 (measured).

    Fix: write a size that holds the largest chunk in flight, such as "2gb".

    Fires:
        MOONCAKE_LOCAL_BUFFER_SIZE=2048gb explain --num-nodes 1
    Silent:
        MOONCAKE_LOCAL_BUFFER_SIZE=1tb explain --num-nodes 1
    """
    size = process.size("local_buffer_size")
    if size is None or BUFFER_RANGE[0] <= size <= BUFFER_RANGE[1]:
        return
    if size == 0:
        message = "0 leaves no room to stage data: setup succeeds and every put fails with -600."
    else:
        message = f"{exact_size(size)} is outside what Mooncake takes, 1 KiB to 1 TiB (1024 to 1099511627776 bytes)."
    yield Problem(("local_buffer_size",), message, f'write a size such as "2gb"{_unit_hint(size)}.')


@rule("MC043", Severity.ERROR, about="odd_sizes")
def size_beyond_64_bits(process: Process) -> Iterator[Problem]:
    """A size does not fit into the 64 bits that Mooncake has for it.

    Why: the number would wrap around or be rounded by the double that Mooncake parses it with.

    Fix: write the size that was meant.

    Fires:
        MOONCAKE_GLOBAL_SEGMENT_SIZE=99999999999gb explain --num-nodes 1
    Silent:
        MOONCAKE_GLOBAL_SEGMENT_SIZE=99gb explain --num-nodes 1
    """
    for name in _UNBOUNDED_SIZES:
        size = process.size(name)
        if size is not None and size > LARGEST:
            yield Problem((name,), f"{shown(size)} bytes do not fit into 64 bits.", 'write a size such as "8gb".')


@rule("MC044", Severity.ERROR, about="device_text")
def device_is_no_device_name(process: Process) -> Iterator[Problem]:
    """device_name holds a path, a port, several names without a comma, or nothing beside a comma (a warning).

    Sees /sys/class/infiniband/mlx5_0, /dev/infiniband/uverbs0, mlx5_0:1, "mlx5_0 mlx5_1", mlx5_0;mlx5_1 and any other
    character that no RDMA device has in its name.

    Why: Mooncake looks for a device of exactly that name and gives up after 22 seconds with -1 (measured).

    Fix: write names as `ibv_devices` prints them, separated by commas.

    Fires:
        MOONCAKE_DEVICE=mlx5_0:1 explain --num-nodes 1
    Silent:
        MOONCAKE_DEVICE=mlx5_0,mlx5_1 explain --num-nodes 1
    """
    # Masked before it is taken apart: a part of a password cannot be told for one.
    names = [name.strip() for name in masked(process.device_text).split(",")]
    odd = [name for name in names if name and not is_device_name(name)]
    if odd:
        meant = [_device_meant(word) for name in names for word in re.split(r"[;\s，、；]+", name) if word]
        message = f"{shown(', '.join(odd))} is {_what_instead(odd[0])}, not the name of an RDMA device."
        fix = "write names as `ibv_devices` prints them, for example mlx5_0,mlx5_1."
        if all(meant):
            fix = f"write {shown(','.join(dict.fromkeys(map(str, meant))))}; several names are separated by commas."
        yield Problem(("device_name",), message, fix)
    if len(names) > 1 and "" in names:
        message = f"{shown(','.join(names))} has a comma with no device name beside it."
        yield Problem(("device_name",), message, "take the comma away.", Severity.WARNING)


def _device_meant(word: str) -> str | None:
    """The device that a word names beside a port or as a directory; None where that cannot be known."""
    found = re.fullmatch(r"(?:/sys/class/infiniband/)?(?P<name>[A-Za-z0-9_.-]+)(?:[:/][0-9]+|/ports(?:/.*)?|/)?", word)
    return found["name"] if found and other_kind(found["name"]) is None else None


@rule("MC057", Severity.ERROR, about="device_text")
def device_of_another_kind(process: Process) -> Iterator[Problem]:
    """device_name holds a word, an address or the name of something else than an RDMA device.

    Sees auto, all, any, another spelling of auto-discovery and that word beside devices, uverbs0, IP addresses, cuda0.
    A warning with the protocol tcp, which asks no device.

    Why: Mooncake looks for a device of exactly that name, finds none, and setup fails.

    Fix: write names as `ibv_devices` prints them; leave the field out where Mooncake shall pick.

    Fires:
        MOONCAKE_DEVICE=auto explain --num-nodes 1
    Silent:
        MOONCAKE_DEVICE=auto-discovery explain --num-nodes 1
    """
    weight = Severity.WARNING if process.text("protocol") == "tcp" else None
    for name in dict.fromkeys(devices_of(masked(process.device_text))):
        kind = "a word that counts only where it stands alone" if name == AUTO_DISCOVERY else other_kind(name)
        if kind:
            fix = f"write names as `ibv_devices` prints them; left out, or {AUTO_DISCOVERY}, Mooncake picks."
            yield Problem(("device_name",), f"{shown(name)} is {kind}, not the name of an RDMA device.", fix, weight)


def _what_instead(name: str) -> str:
    if "/" in name:
        return "a path"
    if re.search(r"[;\s]", name):
        return "several names without a comma"
    return "a device and a port" if ":" in name else "a text with other characters"


@rule("MC045", Severity.ERROR, about="odd_endpoints")
def not_an_ip(process: Process) -> Iterator[Problem]:
    """An address looks like an IP and is none.

    Sees names whose last part is a number, such as 10.0.0.256 or 10.0.0.5.1: no host name ends so. And an IPv4 address
    with a point at its end, which the C library takes for a name.

    Why: it is looked up as a name, which no name server has.

    Fix: correct the numbers; each is 0 to 255, and there are four.

    Fires:
        MOONCAKE_MASTER=10.0.0.256:50051 explain --num-nodes 1
    Silent:
        MOONCAKE_MASTER=10.0.0.25:50051 explain --num-nodes 1
    """
    for name, endpoint in process.odd_endpoints:
        host = endpoint.host
        if endpoint.ip is None and host.rstrip(".").rpartition(".")[2].isdigit():
            message = f"{shown(host)} looks like an IPv4 address and is none: four numbers of 0 to 255."
            yield Problem((name,), message, "correct the address.")
        elif endpoint.ip is not None and host.endswith("."):
            message = f"{shown(host)} ends in a point, so it is looked up as a name, which no name server has."
            yield Problem((name,), message, f"write {shown(host.rstrip('.'))}.")


@rule("MC046", Severity.WARNING, about="odd_endpoints")
def unusual_ip_form(process: Process) -> Iterator[Problem]:
    """An IPv4 address is written in a form that only the C library reads.

    Sees 10.1 (10.0.0.1), 0x0a000005, 167772165, and octal parts such as 010.0.0.5, which is 8.0.0.5.

    Why: other tools read it differently or not at all, and a zero in front changes the number.

    Fix: write four decimal numbers without zeros in front.

    Fires:
        MOONCAKE_MASTER=010.0.0.5:50051 explain --num-nodes 1
    Silent:
        MOONCAKE_MASTER=10.0.0.5:50051 explain --num-nodes 1
    """
    for name, endpoint in process.odd_endpoints:
        host, ip = endpoint.host, endpoint.ip
        if ip is not None and ":" not in host and str(ip) != host.rstrip("."):
            yield Problem((name,), f"the C library reads {shown(host)} as {ip}.", f"write {ip} if that is meant.")


@rule("MC047", Severity.INFO, about="respelt")
def rewritten_value(process: Process) -> Iterator[Problem]:
    """A value is taken in another spelling than it was written in.

    Sees blanks around a value and a protocol in upper case.

    Why: Mooncake itself takes neither; other programs that read the same variable will see the text as it stands.

    Fix: write it as the message gives it.

    Fires:
        MOONCAKE_PROTOCOL=TCP explain --num-nodes 1
    Silent:
        MOONCAKE_PROTOCOL=tcp explain --num-nodes 1
    """
    for name, raw, value in process.respelt:
        # A size keeps its own spelling, less the blanks around it.
        written = value if isinstance(value, str) else raw.strip()
        if raw != written:
            yield Problem((name,), f'"{shown(raw)}" is read as {shown(written)}.', f"write {shown(written)}.")


@rule("MC048", Severity.INFO, about="respelt")
def long_decimal_size(process: Process) -> Iterator[Problem]:
    """A size is exact, but written with a long decimal fraction.

    Sees more than halves, quarters and eighths, such as 1.0625gb.

    Why: it is easy to misread, and the JSON Schema accepts eighths at the most.

    Fix: write it in a smaller unit.

    Fires:
        MOONCAKE_GLOBAL_SEGMENT_SIZE=1.0625gb explain --num-nodes 1
    Silent:
        MOONCAKE_GLOBAL_SEGMENT_SIZE=1.125gb explain --num-nodes 1
    """
    for name, raw, size in process.respelt:
        fraction = re.match(r"\s*[0-9]+\.([0-9]*?)0*[^0-9]*$", raw) if isinstance(size, int) and "." in raw else None
        if fraction and isinstance(size, int) and len(fraction[1]) > 3:
            better = format_size(size)
            yield Problem((name,), f"{shown(raw.strip())} is exactly {better}.", f"write {better}.")


@rule("MC049", Severity.WARNING, about="urls")
def master_scheme_not_in_wheels(process: Process) -> Iterator[Problem]:
    """The master is found through Redis or a Kubernetes lease, which no published wheel was built with.

    Why: setup fails at once with -600 and "Invalid HA backend entry", the same text as for a typo (measured).

    Fix: use etcd://, or a wheel built with STORE_USE_REDIS or STORE_USE_K8S_LEASE and ignore this.

    Fires:
        MOONCAKE_MASTER=redis://10.0.0.5:6379 explain --num-nodes 1
    Silent:
        MOONCAKE_MASTER=etcd://10.0.0.5:2379 explain --num-nodes 1
    """
    scheme = scheme_of(process.text("master_server_address") or "")
    if scheme in ("redis", "k8s"):
        flag = {"redis": "STORE_USE_REDIS", "k8s": "STORE_USE_K8S_LEASE"}[scheme]
        message = f"the published Mooncake wheels are built without {scheme}:// (setup answers -600)."
        fix = f"use etcd://host:port, or install a build with {flag}."
        yield Problem(("master_server_address",), message, fix)


@rule("MC050", Severity.ERROR, about="urls")
def redis_metadata(process: Process) -> Iterator[Problem]:
    """The metadata server is Redis, which no published wheel was built with.

    Why: such a wheel aborts the process on it (SIGABRT, measured); Python cannot catch that.

    Fix: use P2PHANDSHAKE, http:// or etcd://. With your own build (USE_REDIS), ignore this rule.

    Fires:
        MOONCAKE_TE_META_DATA_SERVER=redis://10.0.0.5:6379 explain --num-nodes 1
    Silent:
        MOONCAKE_TE_META_DATA_SERVER=P2PHANDSHAKE explain --num-nodes 1
    """
    if scheme_of(process.text("metadata_server") or "") == "redis":
        message = "the published Mooncake wheels are built without Redis and abort the process on it (SIGABRT)."
        fix = (
            "use P2PHANDSHAKE, http://host:port/metadata or etcd://host:port; with a build of your own, --ignore MC050."
        )
        yield Problem(("metadata_server",), message, fix)


@rule("MC051", Severity.WARNING, about="urls")
def metadata_path(process: Process) -> Iterator[Problem]:
    """The path of an HTTP metadata server is not /metadata.

    Why: the master's own metadata server answers at /metadata only. Elsewhere, also at /metadata/ with a slash at the
    end, every lookup is a 404 and setup ends in -1 (measured).

    Fix: write http://host:port/metadata, unless a server of your own answers there.

    Fires:
        MOONCAKE_TE_META_DATA_SERVER=http://10.0.0.5:8080 explain --num-nodes 1
    Silent:
        MOONCAKE_TE_META_DATA_SERVER=http://10.0.0.5:8080/metadata explain --num-nodes 1
    """
    address = process.text("metadata_server") or ""
    if scheme_of(address) in ("http", "https"):
        path = address.partition("://")[2].partition("/")[2]
        if path != "metadata":
            message = f"the path /{shown(path)} is not /metadata, where the master's own metadata server answers."
            yield Problem(("metadata_server",), message, f"write {shown(_with_metadata(address))}.")


@rule("MC052", Severity.WARNING)
def port_of_another_service(process: Process) -> Iterator[Problem]:
    """The port of the master or of the metadata server is the well-known port of another service.

    Sees 2379 (etcd), 6379 (Ray's head or Redis), 8265 (Ray's dashboard), 8080 (HTTP metadata), 9003 (the master's
    metrics) and 10001 (Ray client); for the metadata server also 50051 and the master's own host and port; 50051 behind
    etcd://.

    Why: something answers there, so a port check passes, and the RPC fails after 90 seconds without a reason; a lookup
    fails as well, and setup ends in -1.

    Fix: write the master's --rpc_port, 50051 by default, or its --http_metadata_server_port, 8080 by default.

    Fires:
        MOONCAKE_MASTER=10.0.0.5:6379 explain --num-nodes 1
    Silent:
        MOONCAKE_MASTER=10.0.0.5:50051 explain --num-nodes 1
    """
    scheme = scheme_of(process.text("master_server_address") or "") if process.urls else None
    direct = scheme is None
    for name, endpoint in process.endpoints:
        service = _SERVICES.get(endpoint.port)
        if scheme == "etcd" and endpoint.port == 50051 and name == "master_server_address":
            fix = f"write {_with_port(endpoint, 50051)} without etcd:// for a master; etcd itself listens on 2379."
            yield Problem((name,), "port 50051 is where a master listens by default, not etcd.", fix)
        if direct and service and name == "master_server_address":
            message = f"port {endpoint.port} is where {service} listens by default, not the master."
            yield Problem(
                ("master_server_address",),
                message,
                f"write the master's --rpc_port, such as {shown(_with_port(endpoint, 50051))}.",
            )
    if process.urls:
        yield from _metadata_port(process)


def _with_port(endpoint: Endpoint, port: int) -> str:
    """An endpoint to write instead; of a host that nobody can connect to only the place, since it is no way out."""
    host = "HOST" if endpoint.reach in (Reach.WILDCARD, Reach.SEVERAL) else endpoint.host
    return str(Endpoint(host, port))


_METADATA_PORTS = {"http": 8080, "https": 8080, "etcd": 2379}


def _metadata_port(process: Process) -> Iterator[Problem]:
    """The port of a metadata server at which another service listens, first of all the master itself."""
    scheme = scheme_of(process.text("metadata_server") or "") or ""
    own = _METADATA_PORTS.get(scheme)
    if own is None:
        return
    masters = [endpoint for name, endpoint in process.endpoints if name == "master_server_address"]
    direct = scheme_of(process.text("master_server_address") or "") is None
    for name, endpoint in process.endpoints:
        if name != "metadata_server" or endpoint.port in (own, None):
            continue
        is_master = endpoint.port == 50051 or (direct and endpoint in masters)
        service = "the master itself" if is_master else _SERVICES.get(endpoint.port)
        if service:
            message = f"port {endpoint.port} is where {service} listens, not a metadata server."
            path = "/metadata" if own == 8080 else ""
            url = f"{scheme}://{_with_port(endpoint, own)}{path}"
            yield Problem((name,), message, f"write the port of the metadata server, such as {shown(url)}.")


_SERVICES: dict[int | None, str] = {
    2379: "etcd",
    6379: "Ray's head (or Redis)",
    8265: "Ray's dashboard",
    8080: "an HTTP metadata server",
    9003: "the master's metrics page",
    10001: "the Ray client server",
}


@rule("MC053", Severity.WARNING, about="odd_sizes")
def tiny_chunk(process: Process) -> Iterator[Problem]:
    """chunk_bytes is smaller than 1 MiB.

    Why: each chunk is a transfer of its own. At 1 MiB a put takes twice as long; with 1 byte a put of 1 MiB ran 65
    seconds and failed with -704 (measured). Mostly a unit was forgotten.

    Fix: write "64mb", or leave it out; from 16 MiB up the size makes no difference.

    Fires:
        explain --num-nodes 1 --mooncake-store-init-kwargs '{"chunk_bytes": 64}'
    Silent:
        explain --num-nodes 1 --mooncake-store-init-kwargs '{"chunk_bytes": "1mb"}'
    """
    chunk = process.size("chunk_bytes")
    if chunk is not None and chunk < TINY_CHUNK:
        message = f"a chunk of {exact_size(chunk)} cuts objects into so many transfers that puts crawl."
        yield Problem(("chunk_bytes",), message, f'write "64mb", or leave it out{_unit_hint(chunk, "mb")}.')


@rule("MC058", Severity.ERROR, about="odd_endpoints")
def zone_of_a_url(process: Process) -> Iterator[Problem]:
    """The zone of an IPv6 address is written %25eth0, as only a URL has it.

    Why: outside a URL the C library takes 25eth0 for the interface's name, and finds none.

    Fix: write %eth0.

    Fires:
        MOONCAKE_MASTER=[fe80::5%25eth0]:50051 explain --num-nodes 1
    Silent:
        MOONCAKE_MASTER=[fe80::5%eth0]:50051 explain --num-nodes 1
    """
    for name, endpoint in process.odd_endpoints:
        if name != "metadata_server" and re.search("%25[A-Za-z]", endpoint.host):
            message = f"{shown(endpoint.host)} has a zone as in a URL; here %25 is not read as a percent sign."
            right = Endpoint(endpoint.host.replace("%25", "%", 1), endpoint.port)
            yield Problem((name,), message, f"write {shown(str(right))}.")


@rule("MC059", Severity.ERROR, about="odd_sizes")
def segment_beyond_address_space(process: Process) -> Iterator[Problem]:
    """The segment that this process contributes is larger than any process can map.

    Sees 128 TiB and more.

    Why: Mooncake allocates the segment at once, which fails on every machine; mostly a unit stands behind bytes.

    Fix: write what the node can spare.

    Fires:
        MOONCAKE_GLOBAL_SEGMENT_SIZE=8388608tb explain --num-nodes 1
    Silent:
        MOONCAKE_GLOBAL_SEGMENT_SIZE=8tb explain --num-nodes 1
    """
    size = process.contributed
    if size and ADDRESS_SPACE <= size <= LARGEST:
        message = f"{exact_size(size)} is more than a process can map, 128 TiB."
        yield Problem(("global_segment_size",), message, 'write what this node can spare, such as "8gb".')


@rule("MC054", Severity.ERROR, about="odd_endpoints")
def multicast_address(process: Process) -> Iterator[Problem]:
    """An address is a multicast or broadcast address.

    Sees 224.0.0.0/4, ff00::/8 and 255.255.255.255.

    Why: no host has such an address, so nobody can be connected to by it.

    Fix: write the address of one host.

    Fires:
        MOONCAKE_MASTER=239.1.1.1:50051 explain --num-nodes 1
    Silent:
        MOONCAKE_MASTER=10.0.0.5:50051 explain --num-nodes 1
    """
    for name, endpoint in process.odd_endpoints:
        if endpoint.reach is Reach.SEVERAL:
            message = f"{shown(endpoint.host)} stands for many hosts at once; a connection goes to one."
            yield Problem((name,), message, "write the address of one host on the data network.")


@rule("MC055", Severity.ERROR, protects=True, about="odd_names")
def text_of_nothing(process: Process) -> Iterator[Problem]:
    """A value is the text None, null, nil, undefined or ???, or has such a host.

    Sees also a mapping that has a field and cannot give its value: one of Hydra or OmegaConf where it is ??? or an
    interpolation leads nowhere.

    Why: a program wrote a value that it did not have: str(None), f"{None}:50051", a template without its variable. As a
    host name it is looked up, as a device it is looked for, and setup gives up after a minute or more.

    Fix: give the value, or leave it out.

    Fires:
        MOONCAKE_LOCAL_HOSTNAME=None explain --num-nodes 1
        MOONCAKE_PROTOCOL='???' explain --num-nodes 1
    Silent:
        MOONCAKE_LOCAL_HOSTNAME=node-7 explain --num-nodes 1
    """
    for name, text in process.odd_names:
        if text.lower() in NOTHING:
            message = f"{text} is what a program writes for a value that it does not have."
            yield Problem((name,), message, "give the value, or leave it out.")


@rule("MC056", Severity.WARNING, about="odd_names")
def interface_for_an_address(process: Process) -> Iterator[Problem]:
    """A host or device has the name of a network interface: eth0, ib0, bond0, ens3f0.

    Why: as a host it is looked up in vain. As a device it is looked for in vain too: an RDMA device has a name of its
    own, such as mlx5_0, beside that of its interface.

    Fix: write the interface's address (`ip -brief address`), or the device behind it (`rdma link`).

    Fires:
        MOONCAKE_LOCAL_HOSTNAME=eth0 explain --num-nodes 1
    Silent:
        MOONCAKE_LOCAL_HOSTNAME=eth0.example.net explain --num-nodes 1
    """
    for name, text in process.odd_names:
        if _is_interface(text):
            device = name == "device_name"
            message = (
                f"{shown(text)} is the name of a network interface, not of {'an RDMA device' if device else 'a host'}."
            )
            fix = "the device behind it, as `rdma link` shows it" if device else "its address (`ip -brief address`)"
            yield Problem((name,), message, f"write {fix}.")


def _is_interface(name: str) -> bool:
    """Whether the kernel or udev gives an interface such a name. ``ibp1s0`` is none: RDMA devices are called so too."""
    number = "(?:0|[1-9][0-9]{0,4})"  # node names have zeros in front, the kernel's have none
    bus = f"en(?:o|s|p{number}s){number}(?:f{number})?(?:np{number})?"
    return re.fullmatch(f"lo|(?:docker|eth|ib|bond){number}|{bus}", name) is not None


def _unit_hint(size: int, unit: str = "gb") -> str:
    return f'; if {size} {unit[0].upper()}iB were meant, "{size}{unit}"' if 0 < size < 1024 else ""


def _with_metadata(address: str) -> str:
    scheme, _, rest = address.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}/metadata"
