"""MC1xx: one process, its values against each other, its role and the job's shape."""

from __future__ import annotations

from collections.abc import Iterator

from mooncake_config.addresses import P2P, Reach, ip_of, is_loopback
from mooncake_config.display import shown
from mooncake_config.findings import Severity
from mooncake_config.process import Backend, Process
from mooncake_config.protocols import devices_of
from mooncake_config.provenance import Origin, Source
from mooncake_config.rules.rule import Problem, reported_by_reading, rule
from mooncake_config.sizes import DEFAULT_CHUNK, human_size
from mooncake_config.sources import KWARGS_SPOT
from mooncake_config.topology import Role
from mooncake_config.variables import kubernetes_master, meant_by

_REPLICA_FLAG = Origin(Source.CLI, "--mooncake-replica-num")
_TRAINER_FLAG = Origin(Source.CLI, "--trainer-nodes")


def _counted_nodes(process: Process) -> str:
    """``2 nodes``; where only those that train are known, ``at least 2 nodes``."""
    nodes, trainers = process.topology.num_nodes, process.topology.trainer_nodes
    return f"{nodes} nodes" if nodes else f"at least {trainers} nodes"


@rule("MC100", Severity.ERROR, protects=True)
def missing_master(process: Process) -> Iterator[Problem]:
    """Nobody says where the master is.

    Why: an empty master address kills the process with SIGSEGV (measured), with no message at all.

    Fix: export MOONCAKE_MASTER=host:port on every node before Ray starts, or put master_server_address into the init
    kwargs. Variables such as MOONCAKE_MASTER_ADDR are used in guides' shell snippets and are read by nobody.

    Fires:
        explain --num-nodes 1
    Silent:
        MOONCAKE_MASTER=10.0.0.5:50051 explain --num-nodes 1
    """
    if process.winner("master_server_address") or process.backend is not Backend.MOONCAKE:
        return
    variables = process.variables.variables
    hint = kubernetes_master(variables)
    stray = next((name for name, value in variables.items() if value.strip() and _is_master(name, value)), None)
    fix = "export MOONCAKE_MASTER=host:port before Ray starts, or give master_server_address in the init kwargs"
    if hint:
        fix += f"; Kubernetes announces a Service at {shown(hint)}"
    elif stray:
        fix += f"; {shown(stray)} is set, but that name is not read"
    yield Problem(("master_server_address",), "no master address is set, and there is no default for it.", f"{fix}.")


def _is_master(name: str, value: str) -> bool:
    return meant_by(name, value) == "MOONCAKE_MASTER"


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


@rule("MC102", Severity.ERROR)
def chunk_above_buffer(process: Process) -> Iterator[Problem]:
    """A chunk of a put does not fit into the local buffer.

    Sees chunk_bytes above local_buffer_size, and a buffer below Mooncake's own chunk of 64 MiB where chunk_bytes is
    unset (a warning: small objects still pass).

    Why: a put larger than the buffer fails with "requested buffer size exceeds pool capacity" (measured), in the middle
    of the first iteration.

    Fix: enlarge local_buffer_size or lower chunk_bytes; from 16 MiB up the chunk size does not change the speed.

    Fires:
        MOONCAKE_LOCAL_BUFFER_SIZE=64mb explain --num-nodes 1 --mooncake-store-init-kwargs '{"chunk_bytes": "128mb"}'
    Silent:
        MOONCAKE_LOCAL_BUFFER_SIZE=64mb explain --num-nodes 1 --mooncake-store-init-kwargs '{"chunk_bytes": "64mb"}'
    """
    chunk, buffer = process.size("chunk_bytes"), process.size("local_buffer_size")
    if not buffer:
        return
    if chunk is not None and chunk > buffer:
        message = f"a chunk of {human_size(chunk)} does not fit into local_buffer_size, {human_size(buffer)}."
        yield Problem(("chunk_bytes", "local_buffer_size"), message, "lower chunk_bytes or enlarge local_buffer_size.")
    if 1024 <= buffer < DEFAULT_CHUNK and process.ledger.origin("chunk_bytes") == Origin(Source.DEFAULT, "default"):
        message = f"Mooncake's chunk of 64 MiB does not fit into a buffer of {human_size(buffer)}: larger puts fail."
        fix = 'enlarge local_buffer_size to "64mb" or more, or set chunk_bytes below it.'
        yield Problem(("local_buffer_size",), message, fix, Severity.WARNING)


@rule("MC103", Severity.ERROR)
def replicas_below_one(process: Process) -> Iterator[Problem]:
    """Fewer than one replica is asked for.

    Why: with no replica there is no copy at all; Mooncake answers -600 at the first put.

    Fix: write --mooncake-replica-num 1 or more.

    Fires:
        explain --num-nodes 1 --mooncake-replica-num 0
    Silent:
        explain --num-nodes 1 --mooncake-replica-num 1
    """
    if process.replica_num < 1:
        message = f"{shown(process.replica_num)} replicas are asked for; an object needs one at least."
        yield Problem((), message, "write --mooncake-replica-num 1, or leave it out.", origin=_REPLICA_FLAG)


@rule("MC104", Severity.WARNING)
def more_replicas_than_segments(process: Process) -> Iterator[Problem]:
    """More replicas are asked for than nodes contribute a segment.

    Sees --mooncake-replica-num above --trainer-nodes (or --num-nodes); with an unknown number of nodes an info.

    Why: each replica needs a segment of its own. Mooncake makes fewer and says nothing: put returns 0 and there is one
    copy (measured). The two-node walkthrough has one training node, so one segment.

    Fix: lower the number, or let more nodes train.

    Fires:
        explain --num-nodes 2 --trainer-nodes 1 --mooncake-replica-num 2
    Silent:
        explain --num-nodes 2 --trainer-nodes 2 --mooncake-replica-num 2
    """
    replicas, nodes = process.replica_num, process.topology.trainer_nodes
    if replicas < 2 or process.backend is not Backend.MOONCAKE:
        return
    if nodes is None:
        message = (
            f"whether {shown(replicas)} replicas find as many segments is unknown: the number of training nodes is."
        )
        fix = "tell it with --trainer-nodes."
        yield Problem((), message, fix, Severity.INFO, _REPLICA_FLAG)
    elif replicas > nodes:
        segments = f"{nodes} node{'s contribute' if nodes > 1 else ' contributes'} a segment"
        message = f"{shown(replicas)} replicas are asked for and {segments}: Mooncake silently makes {nodes}."
        yield Problem(
            (), message, f"write --mooncake-replica-num {nodes}, or train on more nodes.", origin=_REPLICA_FLAG
        )


@rule("MC105", Severity.WARNING)
def nothing_contributed(process: Process) -> Iterator[Problem]:
    """The process that should contribute a segment contributes 0 bytes.

    Why: the Store consists of what trainers contribute. Without any segment every put fails with -200 (measured).

    Fix: give it a size, unless other clients hold the Store's memory.

    Fires:
        MOONCAKE_GLOBAL_SEGMENT_SIZE=0 explain --num-nodes 1
    Silent:
        MOONCAKE_GLOBAL_SEGMENT_SIZE=0 explain --num-nodes 1 --role driver
    """
    if process.contributed == 0:
        message = "this process should contribute a segment and contributes 0 bytes; without any, puts fail (-200)."
        yield Problem(("global_segment_size",), message, 'write a size such as "8gb".')


@rule("MC106", Severity.ERROR)
def fixed_port_in_many_processes(process: Process) -> Iterator[Problem]:
    """local_hostname has a port, and several processes of the node would use it.

    Why: host:port is the name of a segment. The second client of the same name fails or takes the first one's place;
    without a port Mooncake picks a free one in each process.

    Fix: take the port away.

    Fires:
        MOONCAKE_LOCAL_HOSTNAME=10.0.0.7:12345 explain --num-nodes 1 --processes-per-node 8
    Silent:
        MOONCAKE_LOCAL_HOSTNAME=10.0.0.7:12345 explain --num-nodes 1 --processes-per-node 1
    """
    endpoint, processes = process.own_endpoint, process.topology.processes_per_node
    if endpoint and endpoint.port is not None and processes and processes > 1:
        message = f"the port {endpoint.port} is fixed, and {processes} processes of this node would share it."
        yield Problem(
            ("local_hostname",), message, f"write {shown(endpoint.host)}: Mooncake picks a port in each process."
        )


def _is_job_wide(origin: Origin) -> bool:
    """Whether what is written there reaches every node: the JSON, and a runtime environment."""
    return origin.source is Source.CLI or origin.spot.startswith("--runtime-env-json")


@rule("MC107", Severity.ERROR)
def job_wide_hostname(process: Process) -> Iterator[Problem]:
    """local_hostname stands in the JSON of a job with several nodes, or in its runtime environment.

    Sees an IP of another node (an error), this node's own IP or a name (a warning), and anything in a Python mapping,
    which a program may build on each node (a warning at most).

    Why: the same text reaches every node, a runtime environment even over what a node exported. So all of them
    advertise one address, and each transfer goes to that node.

    Fix: take it out of the JSON; the Ray node IP or MOONCAKE_LOCAL_HOSTNAME is right on each node.

    Fires:
        explain --num-nodes 2 --node-ip 10.0.0.7 --mooncake-store-init-kwargs '{"local_hostname": "10.0.0.1"}'
    Silent:
        MOONCAKE_LOCAL_HOSTNAME=10.0.0.7 explain --num-nodes 2 --node-ip 10.0.0.7
    """
    winner, endpoint = process.winner("local_hostname"), process.own_endpoint
    if not winner or not endpoint or not _is_job_wide(winner.origin) or process.topology.several_nodes is False:
        return
    if endpoint.reach in (Reach.LOOPBACK, Reach.WILDCARD):
        return
    own, given = ip_of(process.node.address), endpoint.ip
    mapping = winner.origin.spot == KWARGS_SPOT
    foreign = given is not None and own is not None and given != own
    if mapping and not foreign:
        return
    several = process.topology.several_nodes
    nodes = process.topology.num_nodes
    count = f"all {nodes} nodes" if nodes else "every node of the job"
    message = f"{shown(endpoint.host)} in {winner.origin} reaches {count}"
    message += f", and this node is {shown(process.node.address)}." if foreign else ", and each must have its own."
    certain = foreign and several and not mapping and not process.node.guessed
    fix = "take it out there; the Ray node IP, or MOONCAKE_LOCAL_HOSTNAME exported on each node, is right on each."
    yield Problem(("local_hostname",), message, fix, None if certain else Severity.WARNING)


@rule("MC108", Severity.WARNING, about="device_text")
def job_wide_device(process: Process) -> Iterator[Problem]:
    """device_name stands in the JSON of a job with several nodes, or in its runtime environment.

    Why: device names differ by node, and both reach every node; a device that does not exist there costs 22
    seconds and ends in -1 (measured).

    Fix: export MOONCAKE_DEVICE on each node before Ray starts there.

    Fires:
        explain --num-nodes 2 --mooncake-store-init-kwargs '{"device_name": "mlx5_0"}'
    Silent:
        MOONCAKE_DEVICE=mlx5_0 explain --num-nodes 2
    """
    winner = process.winner("device_name")
    if winner and _is_job_wide(winner.origin) and winner.origin.spot != KWARGS_SPOT:
        names = devices_of(process.text("device_name") or "")
        if names and process.topology.several_nodes is not False and process.text("protocol") != "tcp":
            listed = shown(", ".join(names))
            message = f"{listed} in {winner.origin} reaches every node, and device names differ by node."
            yield Problem(("device_name",), message, "export MOONCAKE_DEVICE on each node before starting Ray there.")


@rule("MC109", Severity.WARNING, about="device_text")
def device_without_rdma(process: Process) -> Iterator[Problem]:
    """A device is named, and the protocol is tcp.

    Why: Mooncake ignores the device (measured). Perhaps rdma was meant, and the transfers are slow without a word.

    Fix: write protocol rdma, or take the device away.

    Fires:
        MOONCAKE_PROTOCOL=tcp MOONCAKE_DEVICE=mlx5_0 explain --num-nodes 1
    Silent:
        MOONCAKE_PROTOCOL=rdma MOONCAKE_DEVICE=mlx5_0 explain --num-nodes 1
    """
    names = devices_of(process.device_text)
    if names and process.text("protocol") == "tcp":
        message = f"the protocol is tcp, which ignores the RDMA device {shown(', '.join(names))}."
        yield Problem(("device_name",), message, "set the protocol to rdma if RDMA is meant, or unset the device.")


@rule("MC110", Severity.WARNING)
def every_process_contributes(process: Process) -> Iterator[Problem]:
    """Several trainers run on a node, and this one has no local rank.

    Why: a trainer without a rank counts as the first of its node, so every one of them would contribute a segment, and
    the node gives several times the memory that was planned.

    Fix: launch with torchrun or set LOCAL_RANK; at a terminal, pass --local-rank.

    Fires:
        explain --num-nodes 1 --processes-per-node 8
    Silent:
        explain --num-nodes 1 --processes-per-node 8 --local-rank 0
    """
    processes = process.topology.processes_per_node
    unranked = process.topology.local_rank is None and process.role is Role.TRAINER
    if unranked and processes and processes > 1 and process.backend is Backend.MOONCAKE:
        message = (
            f"{processes} processes run on this node and this one has no local rank: each would contribute a segment."
        )
        fix = "let the launcher set LOCAL_RANK, or pass --local-rank (in Python: Topology(local_rank=…))."
        yield Problem(("global_segment_size",), message, fix, origin=process.rank_origin)


@rule("MC111", Severity.WARNING)
def rank_outside_the_node(process: Process) -> Iterator[Problem]:
    """The local rank is not below the number of processes on the node.

    Why: one of the two numbers is wrong; if it is the rank (a global rank, perhaps), no process of the node may be 0,
    and nobody contributes.

    Fix: give the rank on the node, counted from 0.

    Fires:
        explain --num-nodes 1 --processes-per-node 8 --local-rank 8
    Silent:
        explain --num-nodes 1 --processes-per-node 8 --local-rank 7
    """
    rank, processes = process.topology.local_rank, process.topology.processes_per_node
    if rank is not None and processes is not None and rank >= processes and process.backend is Backend.MOONCAKE:
        message = f"the local rank is {rank}, and this node has {processes} process{'es' if processes > 1 else ''}."
        fix = f"give the rank on the node, 0 to {processes - 1}; a global rank is not meant."
        yield Problem((), message, fix, origin=process.rank_origin)


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
    address, bound = process.text("metadata_server"), process.variables.variables.get("MC_TCP_BIND_ADDRESS", "")
    own = process.own_endpoint
    if address in (None, P2P) or bound.strip() or own is None or process.topology.several_nodes is False:
        return
    message = "with a metadata server the engine advertises the host's first address for its calls, not local_hostname."
    fix = f"export MC_TCP_BIND_ADDRESS={shown(own.host)} here, and on each node its own address, or use {P2P}."
    yield Problem(("metadata_server", "local_hostname"), message, fix)


@rule("MC117", Severity.WARNING)
def more_trainer_nodes_than_nodes(process: Process) -> Iterator[Problem]:
    """More nodes are said to train than the job has.

    Why: replicas and memory are judged by these two numbers; one of them is wrong.

    Fix: correct --trainer-nodes or --num-nodes (in Python: Topology).

    Fires:
        explain --num-nodes 2 --trainer-nodes 4
    Silent:
        explain --num-nodes 4 --trainer-nodes 2
    """
    nodes, trainers = process.topology.num_nodes, process.topology.trainer_nodes
    if nodes is not None and trainers is not None and trainers > nodes:
        message = f"{trainers} nodes are said to train, and the job has {nodes}."
        yield Problem((), message, "correct --trainer-nodes or --num-nodes.", origin=_TRAINER_FLAG)


@rule("MC125", Severity.ERROR, protects=True)
def cxl_without_size(process: Process) -> Iterator[Problem]:
    """The protocol is cxl, and MC_CXL_DEV_SIZE is not set.

    Why: Mooncake aborts the process (LOG(FATAL) in client_service.cpp).

    Fix: export MC_CXL_DEV_SIZE, or use another protocol.

    Fires:
        MOONCAKE_PROTOCOL=cxl explain --num-nodes 1
    Silent:
        MOONCAKE_PROTOCOL=cxl MC_CXL_DEV_SIZE=1073741824 explain --num-nodes 1
    """
    if process.text("protocol") == "cxl" and not process.variables.variables.get("MC_CXL_DEV_SIZE", "").strip():
        message = "cxl needs MC_CXL_DEV_SIZE; without it Mooncake aborts the process."
        yield Problem(("protocol",), message, "export MC_CXL_DEV_SIZE in bytes, or use tcp or rdma.")


@rule("MC130", Severity.INFO)
def ignored_in_vain(_: Process) -> Iterator[Problem]:
    """A finding was to be ignored, and cannot be.

    Sees --ignore of a malformed value, of the required master, or of a rule that protects the process from a crash in
    native code.

    Why: there is no value to go on with, or the process would die.

    Fix: correct what the finding names.

    Fires:
        explain --num-nodes 1 --ignore missing-master
    Silent:
        MOONCAKE_MASTER=10.0.0.5:50051 explain --num-nodes 1 --ignore missing-master
    """
    return iter(())  # settle yields it, which alone knows what was to be ignored


@reported_by_reading("MC131", Severity.INFO)
def assumed_backend() -> None:
    """A pasted command does not say --object-store-backend, and is read as mooncake.

    Why: without the flag the job uses Ray's object store, and every Mooncake setting in it does nothing.

    Fix: add --object-store-backend mooncake.

    Fires:
        explain --num-nodes 1 -- python3 train.py
    Silent:
        explain --num-nodes 1 -- python3 train.py --object-store-backend mooncake
    """


@reported_by_reading("MC132", Severity.WARNING)
def submitter_only_variable() -> None:
    """A variable stands in the shell that submits a Ray job, which hands it to nobody.

    Sees a pasted `ray job submit` where a field is won by a variable of the shell, by NAME=value before the command,
    or by NAME=value in its entrypoint, which reaches the driver alone. A command with a --runtime-env file is let
    alone: the file may hold them.

    Why: actors get the variables of the shell that ran `ray start` on their node, and those of the runtime environment
    (measured on two hosts). What only the submitting shell has, no process of the job sees.

    Fix: put it into env_vars of --runtime-env-json; what belongs to one node is exported there before Ray starts.

    Fires:
        MOONCAKE_MASTER=10.0.0.5:50051 explain --num-nodes 2 -- ray job submit -- python3 train.py
    Silent:
        MOONCAKE_MASTER=10.0.0.5:50051 explain --num-nodes 2 -- python3 train.py
    """


@reported_by_reading("MC136", Severity.WARNING)
def dropped_variable() -> None:
    """A program in a pasted command starts the next one without a variable that this shell has.

    Sees `env -i`, `env -u NAME`, and `sudo` without -E or --preserve-env. What env takes away does not count here;
    what sudo takes away does, since sudoers may keep it. Variables that are set behind them count.

    Why: the shell has the variable, so everything looks right, and the trainer gets a default or no value at all.

    Fix: set it behind env or sudo, or let it through.

    Fires:
        MOONCAKE_MASTER=10.0.0.5:50051 explain --num-nodes 1 -- env -i python3 train.py
        MOONCAKE_MASTER=10.0.0.5:50051 explain --num-nodes 1 -- sudo python3 train.py
    Silent:
        MOONCAKE_MASTER=10.0.0.5:50051 explain --num-nodes 1 -- sudo -E python3 train.py
    """


@reported_by_reading("MC133", Severity.INFO)
def abbreviated_flag() -> None:
    """A flag of ours is abbreviated in a pasted command.

    Why: argparse takes a beginning that only one flag has, so it works, until a flag with the same beginning is added.

    Fix: write the flag in full.

    Fires:
        explain --num-nodes 1 -- python3 train.py --mooncake-store-init '{"protocol": "tcp"}'
    Silent:
        explain --num-nodes 1 -- python3 train.py --mooncake-store-init-kwargs '{"protocol": "tcp"}'
    """


@reported_by_reading("MC134", Severity.WARNING)
def misspelt_flag() -> None:
    """A word of a pasted command is nearly a flag of ours.

    Sees underscores for hyphens, capitals, a dash that a chat made of two hyphens, and letters that are wrong or too
    many.

    Why: the trainer's parser refuses it or passes it by, and what was written behind it holds nowhere.

    Fix: write the flag that the message names.

    Fires:
        explain --num-nodes 1 -- python3 train.py --mooncake_store_init_kwargs '{"protocol": "tcp"}'
    Silent:
        explain --num-nodes 1 -- python3 train.py --mooncake-master-port 50051
    """


@reported_by_reading("MC135", Severity.WARNING)
def unreadable_script() -> None:
    """The script of a `bash -c` in a pasted command has a quotation that is not closed.

    Why: no shell runs it as it stands, and no flag or variable in it can be told.

    Fix: close the quotation, or paste the command that stands in the script.

    Fires:
        explain --num-nodes 1 -- bash -c "python3 train.py --mooncake-store-init-kwargs '{"
    Silent:
        explain --num-nodes 1 -- bash -c "python3 train.py --mooncake-store-init-kwargs '{}'"
    """
