"""MC1xx: the addresses of one process, and who in the job reaches them."""

from __future__ import annotations

from collections.abc import Iterator

from mooncake_config.addresses import P2P, Reach, is_loopback
from mooncake_config.display import shown
from mooncake_config.findings import Severity
from mooncake_config.process import Backend, Process
from mooncake_config.provenance import Source
from mooncake_config.rules.rule import Problem, rule


def _counted_nodes(process: Process) -> str:
    """``2 nodes``; where only those that train are known, ``at least 2 nodes``."""
    nodes, trainers = process.topology.num_nodes, process.topology.trainer_nodes
    return f"{nodes} nodes" if nodes else f"at least {trainers} nodes"


@rule("MC101", Severity.ERROR, about="odd_endpoints")
def loopback_in_multi_node(process: Process) -> Iterator[Problem]:
    """An address that only this machine can reach, in a job of several nodes.

    Sees all of 127.0.0.0/8, ::1, localhost and its kin, and the spellings 127.1, 0x7f000001, ::ffff:127.0.0.1, in
    local_hostname, master_server_address and metadata_server. With one node they are fine; with an unknown number of
    nodes this is a warning.

    Why: setup succeeds, and this node's own puts and gets work. From the other nodes a get gives nothing, a put -800;
    a master on loopback costs a worker 90 silent seconds and ends in -1 (all measured on two hosts).

    Fix: write the address on the data network; for local_hostname, unset it and start Ray with --node-ip-address.

    Fires:
        MOONCAKE_LOCAL_HOSTNAME=127.0.0.1 explain --num-nodes 2 --node-ip 10.0.0.7
    Silent:
        MOONCAKE_LOCAL_HOSTNAME=127.0.0.1 explain --num-nodes 1 --node-ip 10.0.0.7
    """
    several = process.topology.several_nodes
    if several is False:
        return
    count = f"this job has {_counted_nodes(process)}" if several else "the number of nodes is unknown"
    for name, endpoint in process.odd_endpoints:
        if endpoint.reach is Reach.LOOPBACK:
            certain = several and not (name == "local_hostname" and _is_guess(process))
            message = f"{shown(endpoint.host)} is a loopback address, which only this host reaches, and {count}."
            yield Problem((name,), message, _off_loopback(process, name), None if certain else Severity.WARNING)


def _off_loopback(process: Process, name: str) -> str:
    if name != "local_hostname":
        return "write the address that every node reaches it by."
    winner = process.winner(name)
    if winner and winner.origin.source is Source.RAY:
        return "start Ray with --node-ip-address=ADDRESS of the data network, or export MOONCAKE_LOCAL_HOSTNAME."
    node = process.node
    if node.guessed or is_loopback(node.address):
        return "set it to this node's address on the data network."
    return (
        f"set it to this node's address on the data network, or unset it to use the Ray node IP {shown(node.address)}."
    )


def _is_guess(process: Process) -> bool:
    winner = process.winner("local_hostname") if process.node.guessed else None
    return winner is not None and winner.origin.source is Source.RAY


@rule("MC112", Severity.WARNING)
def guessed_node_ip(process: Process) -> Iterator[Problem]:
    """local_hostname is a guess, since no Ray says what this node's IP is.

    Sees the address of the default route, or loopback, in a job of several or an unknown number of nodes: no raylet
    runs here, or several with different addresses.

    Why: the default route often leads through the management network, not the data network.

    Fix: run it where Ray runs, or pass --node-ip, or set MOONCAKE_LOCAL_HOSTNAME.

    Fires:
        explain --num-nodes 2
    Silent:
        explain --num-nodes 2 --node-ip 10.0.0.7
    """
    if _is_guess(process) and process.backend is Backend.MOONCAKE and process.topology.several_nodes is not False:
        rivals = shown(", ".join(process.node.rivals), 200)
        why = f"the raylets of this host differ ({rivals})" if rivals else "no Ray runs here to say the node IP"
        message = f"{shown(process.node.address)} is a guess from this host's routes: {why}."
        fix = "pass --node-ip (in Python: Topology(node_ip=…)), run it where Ray runs, or set MOONCAKE_LOCAL_HOSTNAME."
        if rivals:
            fix = "pass as --node-ip (Python: Topology(node_ip=…)) the one of this job, or set MOONCAKE_LOCAL_HOSTNAME."
        yield Problem(("local_hostname",), message, fix)


@rule("MC113", Severity.WARNING, about="odd_endpoints")
def mixed_address_families(process: Process) -> Iterator[Problem]:
    """local_hostname is IPv6 and the master or the metadata server IPv4, or the other way round.

    Why: a node that is known by one family is not always reached by the other, and MC_USE_IPV6 decides for the engine.

    Fix: use one family throughout.

    Fires:
        MOONCAKE_MASTER=10.0.0.5:50051 explain --num-nodes 2 --node-ip fd00::5
    Silent:
        MOONCAKE_MASTER=[fd00::1]:50051 explain --num-nodes 2 --node-ip fd00::5
    """
    own = process.own_endpoint.ip if process.own_endpoint else None
    for name, endpoint in process.endpoints:
        other = endpoint.ip
        if own is not None and other is not None and own.version != other.version:
            message = f"this client advertises {own} (IPv{own.version}) and {name} is {other} (IPv{other.version})."
            yield Problem(("local_hostname", name), message, "use addresses of one family.")


@rule("MC114", Severity.WARNING, about="odd_endpoints")
def link_local_address(process: Process) -> Iterator[Problem]:
    """An address is link-local: 169.254.0.0/16 or fe80::/10.

    Why: such addresses are valid on one wire only, IPv6 ones only together with an interface, which differs by node.

    Fix: write the address on the data network.

    Fires:
        MOONCAKE_LOCAL_HOSTNAME=169.254.3.4 explain --num-nodes 2
    Silent:
        MOONCAKE_LOCAL_HOSTNAME=10.0.0.7 explain --num-nodes 2
    """
    if process.topology.several_nodes is False:
        return
    for name, endpoint in process.odd_endpoints:
        if endpoint.reach is Reach.LINK_LOCAL:
            message = f"{shown(endpoint.host)} is link-local: other networks, and other interfaces, do not reach it."
            yield Problem((name,), message, "write a routable address on the data network.")


@rule("MC115", Severity.WARNING, about="odd_endpoints")
def container_bridge_address(process: Process) -> Iterator[Problem]:
    """An address is one of Docker's default bridge, 172.17.0.0/16.

    Why: every host has the same bridge, so other nodes reach a container of their own, or nobody.

    Fix: run the container with --network=host, or write the host's address.

    Fires:
        MOONCAKE_LOCAL_HOSTNAME=172.17.0.3 explain --num-nodes 2
    Silent:
        MOONCAKE_LOCAL_HOSTNAME=172.18.0.3 explain --num-nodes 2
    """
    if process.topology.several_nodes is False:
        return
    for name, endpoint in process.odd_endpoints:
        if endpoint.reach is Reach.BRIDGE:
            message = f"{shown(endpoint.host)} lies in Docker's default bridge network, which other hosts cannot reach."
            fix = "run the container with --network=host, or write the host's own address."
            yield Problem((name,), message, fix)


@rule("MC116", Severity.INFO, about="urls")
def hostname_not_advertised(process: Process) -> Iterator[Problem]:
    """With a metadata server the engine advertises another address than local_hostname for its own calls.

    Sees a metadata_server other than P2PHANDSHAKE in a job of several nodes, where MC_TCP_BIND_ADDRESS is not set.

    Why: outside of P2PHANDSHAKE the Transfer Engine takes the first address of the host that is not loopback
    (transfer_engine_impl.cpp), which may lie in the management network.

    Fix: export MC_TCP_BIND_ADDRESS on each node with the address that local_hostname has there.

    Fires:
        MOONCAKE_TE_META_DATA_SERVER=http://10.0.0.5:8080/metadata explain --num-nodes 2
    Silent:
        explain --num-nodes 2
    """
    address, bound = process.text("metadata_server"), process.engine_variable("MC_TCP_BIND_ADDRESS")
    own = process.own_endpoint
    if address in (None, P2P) or bound or own is None or process.topology.several_nodes is False:
        return
    message = "with a metadata server the engine advertises the host's first address for its calls, not local_hostname."
    fix = f"export MC_TCP_BIND_ADDRESS={shown(own.host)} here, and on each node its own address, or use {P2P}."
    yield Problem(("metadata_server", "local_hostname"), message, fix)
