"""MC12x: variables of the environment that are no values here: near misses, other tools' names, the engine's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from mooncake_config.addresses import ip_of
from mooncake_config.display import shown
from mooncake_config.findings import Malformed, Severity
from mooncake_config.process import Process
from mooncake_config.provenance import Source
from mooncake_config.rules.rule import Problem, rule
from mooncake_config.settings import FIELDS
from mooncake_config.variables import (
    ELSEWHERE,
    FOREIGN,
    FOREIGN_SWITCHES,
    READ,
    is_bare,
    is_known_elsewhere,
    is_service_link,
    meant_by,
)

_BY_VARIABLE = {spec.wiring.variable: spec for spec in FIELDS if spec.wiring.variable}


@rule("MC120", Severity.WARNING, about="unread_variables")
def unread_variable(process: Process) -> Iterator[Problem]:
    """A variable looks like one of the seven, and is not read.

    Sees misspellings (MOONCAKE_DEVCE, MOONCKE_MASTER, MOONCAKEMASTER), other words for the same thing from guides and
    other tools (MOONCAKE_MASTER_ADDR, MOONCAKE_METADATA_SERVER, MC_MASTER), another case (mooncake_master), and bare
    names (LOCAL_HOSTNAME, PROTOCOL) where the right variable is unset. An info where its value is in force anyway, or
    where a bare name may well be meant for another program.

    Why: the value that was exported is not in force, and nothing else says so.

    Fix: export it under the name that is read.

    Fires:
        MOONCAKE_MASTER_ADDR=10.0.0.5:50051 explain --num-nodes 1
    Silent:
        MOONCAKE_MASTER=10.0.0.5:50051 explain --num-nodes 1
    """
    variables = process.variables.variables
    for name, value in process.unread_variables:
        meant = meant_by(name, value)
        if meant is None or (is_bare(name) and variables.get(meant, "").strip()):
            continue
        spec = _BY_VARIABLE[meant]
        case = " (names are case-sensitive)" if name.upper() == meant else ""
        message = f"{shown(name)} is set, and nothing reads it{case}; the variable is {meant}."
        pasted = name in process.variables.spots
        fix = f"rename it to {meant} in env_vars." if pasted else f"export {meant} instead, or unset {shown(name)}."
        weight = _weight(process, name, value.strip(), spec.name)
        yield Problem((spec.name,), message, fix, weight, process.variables.origin(name))


def _weight(process: Process, name: str, value: str, about: str) -> Severity | None:
    """Info where the unread value changes nothing, or where another program may well be its reader."""
    in_force = process.winner(about)
    raw = in_force.raw if in_force else None
    if value and isinstance(raw, str) and (raw == value or raw.startswith(f"{value}:") or raw.endswith(f":{value}")):
        return Severity.INFO
    claimed = in_force is not None and in_force.origin.is_written
    return Severity.INFO if is_bare(name) and (claimed or not _fits(about, value)) else None


def _fits(about: str, value: str) -> bool:
    try:
        next(spec for spec in FIELDS if spec.name == about).parse(value)
    except Malformed:
        return False
    return True


@rule("MC121", Severity.WARNING, about="unread_variables")
def variable_of_another_tool(process: Process) -> Iterator[Problem]:
    """A variable configures another tool and is not read here.

    Sees MOONCAKE_CONFIG_PATH (vLLM, SGLang, Mooncake's own config class), MOONCAKE_STORE_INIT_KWARGS (launch scripts;
    an info where the init kwargs are given), MOONCAKE_IB_GID_INDEX, and, as info, switches of SGLang.

    Why: whoever set it believes that its content is in force.

    Fix: give the same settings as init kwargs, --mooncake-store-init-kwargs @FILE, or as MOONCAKE_… variables.

    Fires:
        MOONCAKE_CONFIG_PATH=/etc/mooncake.json explain --num-nodes 1
    Silent:
        MOONCAKE_LOG=mooncake.log explain --num-nodes 1
    """
    for name, _ in process.unread_variables:
        about = FOREIGN.get(name) or FOREIGN_SWITCHES.get(name)
        if about is None:
            continue
        handed_on = name == "MOONCAKE_STORE_INIT_KWARGS" and _has_init_kwargs(process)
        weight = Severity.INFO if handed_on or name in FOREIGN_SWITCHES else None
        message = f"{name} is set and is not read here: {about}."
        yield Problem((), message, _fix_for(name), weight, process.variables.origin(name))


def _has_init_kwargs(process: Process) -> bool:
    return any(claim.origin.source is Source.CLI for claims in process.ledger.claims.values() for claim in claims)


def _fix_for(name: str) -> str:
    if name.endswith("GID_INDEX"):
        return f"export MC_GID_INDEX if the engine shall use it, and unset {name}."
    if name in FOREIGN_SWITCHES:
        return "nothing, if that tool shall read it; the Store of this job does not."
    if name == "MOONCAKE_STORE_INIT_KWARGS":
        return 'pass it on: --mooncake-store-init-kwargs "$MOONCAKE_STORE_INIT_KWARGS".'
    return "give the settings as init kwargs (--mooncake-store-init-kwargs @FILE) or in the documented variables."


@rule("MC122", Severity.INFO, about="unread_variables")
def unknown_variable(process: Process) -> Iterator[Problem]:
    """A variable begins with MOONCAKE_ and is known neither here nor as one of Mooncake's own.

    Why: perhaps a misspelling too far from any name to be recognised.

    Fix: compare it with the table of variables; unset it if nothing needs it.

    Fires:
        MOONCAKE_FLUX_CAPACITOR=1 explain --num-nodes 1
    Silent:
        MOONCAKE_HOST_ID=node-7 explain --num-nodes 1
    """
    for name, value in process.unread_variables:
        if name.startswith("MOONCAKE_") and not _is_explained(name, value):
            message = f"{shown(name)} is set, and neither this library nor Mooncake is known to read it."
            fix = f"the variables that are read are {', '.join(sorted(READ))}."
            yield Problem((), message, fix, origin=process.variables.origin(name))


def _is_explained(name: str, value: str) -> bool:
    if name in READ or name in FOREIGN or name in ELSEWHERE or is_known_elsewhere(name):
        return True
    return is_service_link(name, value) or meant_by(name, value) is not None


_Contradiction = tuple[tuple[str, ...], str] | None
"""The fields that a variable overrides, and how; None where it does not."""

_OFF = frozenset(("", "0", "false", "off", "no"))


@rule("MC123", Severity.WARNING, about="unread_variables")
def engine_variable_overrides(process: Process) -> Iterator[Problem]:
    """A variable of Mooncake's engine overrides a field, or contradicts it.

    Sees MC_FORCE_TCP with a protocol other than tcp, MC_FORCE_HCA, MC_FORCE_MNNVL and MC_INTRA_NVLINK with tcp (of
    each the presence counts, so 0 turns it on), MC_MS_AUTO_DISC=1 (the engine then picks transports itself),
    MC_MS_FILTERS without it (not read), MC_USE_TENT (which ignores device_name), MC_TCP_BIND_ADDRESS and
    MC_RDMA_BIND_ADDRESS against local_hostname, MC_USE_IPV6 against an IPv4 address, MC_STORE_USE_HUGEPAGE=0.

    Why: the engine reads these after everything that was resolved here, without a word.

    Fix: unset the variable, or change the field.

    Fires:
        MC_FORCE_TCP=1 MOONCAKE_PROTOCOL=rdma explain --num-nodes 1
    Silent:
        MC_FORCE_TCP=1 MOONCAKE_PROTOCOL=tcp explain --num-nodes 1
    """
    for name, value in process.unread_variables:
        found = _contradiction(process, name, value)
        if found:
            about, message = found
            fix = f"unset {name}, or change the field to agree with it."
            yield Problem(about, f"{name}={shown(value)} {message}.", fix, origin=process.variables.origin(name))


def _contradiction(process: Process, name: str, value: str) -> _Contradiction:
    look = _LOOKS.get(name)
    return look(process, value.strip()) if look else None


def _own_ip(process: Process) -> str | None:
    own = process.own_endpoint
    return str(own.ip) if own and own.ip else None


def _even_off(value: str) -> str:
    return " (its presence counts, whatever it holds)" if value.lower() in _OFF else ""


def _force_tcp(process: Process, value: str) -> _Contradiction:
    protocol = process.text("protocol")
    if protocol in (None, "tcp"):
        return None
    return ("protocol",), f"makes the engine use TCP, whatever the protocol ({protocol}) says{_even_off(value)}"


def _other_transport(process: Process, value: str) -> _Contradiction:
    if process.text("protocol") != "tcp":
        return None
    return ("protocol",), f"makes the engine use another transport than the protocol tcp{_even_off(value)}"


def _auto_discovery(process: Process, value: str) -> _Contradiction:
    if value != "1":
        return None
    fields = ("protocol", "device_name")
    return fields, "lets the engine pick transport and devices itself; the fields are not asked"


def _filters(process: Process, value: str) -> _Contradiction:
    if not value or process.engine_variable("MC_MS_AUTO_DISC") == "1":
        return None
    return ("device_name",), "is not read unless MC_MS_AUTO_DISC is 1; device_name chooses the devices"


def _tent(process: Process, value: str) -> _Contradiction:
    if value.lower() in _OFF or not process.text("device_name"):
        return None
    return ("device_name",), "selects an engine that ignores device_name"


def _hugepage(process: Process, value: str) -> _Contradiction:
    if value.lower() not in _OFF:
        return None
    return ("global_segment_size",), "turns huge pages on: the engine looks at its presence, not its value"


def _ipv6(process: Process, value: str) -> _Contradiction:
    own = _own_ip(process)
    if own is None or ":" in own:
        return None
    how = (
        "selects IPv6"
        if value.lower() not in _OFF
        else "selects IPv6 in a part of the engine, which looks at its presence"
    )
    return ("local_hostname",), f"{how}, and this client advertises {own}"


def _bind_address(process: Process, value: str) -> _Contradiction:
    bound, own = ip_of(value) if value else None, _own_ip(process)
    if bound is None or own is None or str(bound) == own or bound.is_unspecified:
        return None
    return ("local_hostname",), f"binds another address than the one advertised, {own}"


_LOOKS: Mapping[str, Callable[[Process, str], _Contradiction]] = {
    "MC_FORCE_TCP": _force_tcp,
    "MC_FORCE_HCA": _other_transport,
    "MC_FORCE_MNNVL": _other_transport,
    "MC_INTRA_NVLINK": _other_transport,
    "MC_MS_AUTO_DISC": _auto_discovery,
    "MC_MS_FILTERS": _filters,
    "MC_USE_TENT": _tent,
    "MC_STORE_USE_HUGEPAGE": _hugepage,
    "MC_USE_IPV6": _ipv6,
    "MC_TCP_BIND_ADDRESS": _bind_address,
    "MC_RDMA_BIND_ADDRESS": _bind_address,
}


@rule("MC124", Severity.INFO, about="unread_variables")
def engine_variable(process: Process) -> Iterator[Problem]:
    """Variables of Mooncake's engine are set that apply whatever is resolved here.

    Sees those that choose transports, addresses or memory.

    Why: they explain differences between nodes that no field shows.

    Fix: nothing, if they are meant; they must be equal on all nodes, those of a node's own address or device apart.

    Fires:
        MC_GID_INDEX=3 explain --num-nodes 1
    Silent:
        MC_LOG_LEVEL=INFO explain --num-nodes 1
    """
    told = [item for item in process.unread_variables if item[0] in _TELLING and _contradiction(process, *item) is None]
    if told:
        listed = ", ".join(f"{name}={shown(value, 40)}" for name, value in told)
        message = f"the engine reads these itself, whatever is resolved here: {listed}."
        own = ", ".join(name for name, _ in told if name in _OF_ONE_NODE)
        equal = (
            f"; keep {'the others' if own else 'them'} equal on all nodes"
            if own.count(",") + 1 < len(told) or not own
            else ""
        )
        apart = f"; {own} may differ, each node having its own" if own else ""
        fix = f"nothing, if they are meant{equal}{apart}."
        yield Problem((), message, fix, origin=process.variables.origin(told[0][0]))


_OF_ONE_NODE = frozenset(
    (
        "MC_TCP_BIND_ADDRESS",
        "MC_RDMA_BIND_ADDRESS",
        "MC_GID_INDEX",
        "MC_IB_PORT",
        "MC_CUSTOM_TOPO_JSON",
        "MC_MS_FILTERS",
    )
)
"""Engine variables whose right value is another on each node, as addresses and devices are."""

_TELLING = frozenset(
    (
        *("MC_FORCE_TCP", "MC_FORCE_HCA", "MC_FORCE_MNNVL", "MC_INTRA_NVLINK", "MC_USE_TENT", "MC_USE_TEV1"),
        *("MC_MS_AUTO_DISC", "MC_MS_FILTERS", "MC_TE_FILTERS", "MC_CUSTOM_TOPO_JSON", "MC_CXL_DEV_SIZE"),
        *("MC_STORE_MEMCPY", "MC_STORE_USE_HUGEPAGE", "MC_STORE_HUGEPAGE_SIZE", "MC_MMAP_ARENA_POOL_SIZE"),
        *("MC_STORE_CLIENT_MIN_PORT", "MC_STORE_CLIENT_MAX_PORT", "MC_MIN_RPC_PORT", "MC_MAX_RPC_PORT"),
        *(
            "MC_TCP_BIND_ADDRESS",
            "MC_RDMA_BIND_ADDRESS",
            "MC_USE_IPV6",
            "MC_HANDSHAKE_PORT",
            "MC_LEGACY_RPC_PORT_BINDING",
        ),
        *("MC_STORE_CLUSTER_ID", "MC_METADATA_CLUSTER_ID", "MC_RPC_PROTOCOL"),
        *("MC_GID_INDEX", "MC_IB_PORT", "MC_MTU", "MC_MAX_MR_SIZE"),
    )
)
"""Engine variables that change where or how data moves. None of them holds a secret."""


@rule("MC126", Severity.WARNING, about="unread_variables")
def setting_without_variable(process: Process) -> Iterator[Problem]:
    """A variable names a setting that no variable gives.

    Sees MOONCAKE_CHUNK_BYTES, MOONCAKE_REPLICA_NUM and their like.

    Why: chunk_bytes comes from the init kwargs alone, replicas and the backend from flags; the variable is not read.

    Fix: give it where the message says.

    Fires:
        MOONCAKE_CHUNK_BYTES=64mb explain --num-nodes 1
    Silent:
        explain --num-nodes 1 --mooncake-store-init-kwargs '{"chunk_bytes": "64mb"}'
    """
    for name, _ in process.unread_variables:
        if name in ELSEWHERE:
            about = tuple(spec.name for spec in FIELDS if ELSEWHERE[name].startswith(spec.name))
            message = f"{name} is set, and no variable gives that setting."
            fix = f"give it as {ELSEWHERE[name]}, and unset {name}."
            yield Problem(about, message, fix, origin=process.variables.origin(name))


_PORT_NAMES = ("MC_STORE_CLIENT_MIN_PORT", "MC_STORE_CLIENT_MAX_PORT")
_PORT_DEFAULTS = (12300, 14300)
_PORT_BANDS = (range(1024, 32768), range(61000, 65536))


@rule("MC127", Severity.WARNING, about="unread_variables")
def engine_port_range(process: Process) -> Iterator[Problem]:
    """The range of ports that Mooncake binds a client's segment in is not usable as it is set.

    Sees MC_STORE_CLIENT_MIN_PORT and MC_STORE_CLIENT_MAX_PORT that are no ports of 1024 to 32767 or 61000 to 65535, a
    maximum below the minimum, and fewer ports than processes of the node.

    Why: Mooncake falls back to 12300 to 14300 without an error, past the firewall that was opened; with too few ports
    some clients of the node find none and give up after 20 tries.

    Fix: set both, the minimum not above the maximum, with a port for each process at least.

    Fires:
        MC_STORE_CLIENT_MIN_PORT=14000 MC_STORE_CLIENT_MAX_PORT=13000 explain --num-nodes 1
    Silent:
        MC_STORE_CLIENT_MIN_PORT=13000 MC_STORE_CLIENT_MAX_PORT=14000 explain --num-nodes 1
    """
    variables = process.variables.variables
    given = {name: variables[name].strip() for name in _PORT_NAMES if variables.get(name, "").strip()}
    if not given:
        return
    origin = process.variables.origin(next(iter(given)))
    spelt = " and ".join(f"{name}={shown(text)}" for name, text in given.items())
    ports = [
        _client_port(given.get(name, str(default))) for name, default in zip(_PORT_NAMES, _PORT_DEFAULTS, strict=True)
    ]
    lowest, highest = ports
    processes = process.topology.processes_per_node or 1
    if lowest is None or highest is None:
        message = f"{spelt}: not a port of 1024 to 32767 or 61000 to 65535, so Mooncake takes its default instead."
    elif lowest > highest:
        message = f"{spelt}: the range {lowest} to {highest} is empty."
    elif highest - lowest + 1 < processes:
        message = f"{spelt}: {highest - lowest + 1} ports for {processes} processes of this node."
    else:
        return
    yield Problem((), message, "set both, the minimum not above the maximum, or unset both.", origin=origin)


def _client_port(text: str) -> int | None:
    port = int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0
    return port if any(port in band for band in _PORT_BANDS) else None
