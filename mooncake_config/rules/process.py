"""MC1xx: one process, its values against each other, its role and the job's shape."""

from __future__ import annotations

from collections.abc import Iterator

from mooncake_config.addresses import Reach, ip_of
from mooncake_config.display import shown
from mooncake_config.findings import Fault, Severity
from mooncake_config.init_kwargs import FLAG as INIT_KWARGS_FLAG
from mooncake_config.process import Backend, Process
from mooncake_config.protocols import devices_of
from mooncake_config.provenance import Origin, Source
from mooncake_config.rules.rule import Problem, rule
from mooncake_config.sizes import DEFAULT_CHUNK, human_size
from mooncake_config.sources import KWARGS_SPOT, PASTED_SPOT, RUNTIME_ENV_FLAG
from mooncake_config.topology import Role
from mooncake_config.variables import kubernetes_master, meant_by

_REPLICA_FLAG = Origin(Source.CLI, "--mooncake-replica-num")
_TRAINER_FLAG = Origin(Source.CLI, "--trainer-nodes")


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
    if any(map(_may_hold_the_master, process.faults)):
        return
    variables = process.variables.variables
    hint = kubernetes_master(variables)
    stray = next((name for name, value in variables.items() if value.strip() and _is_master(name, value)), None)
    fix = "export MOONCAKE_MASTER=host:port before Ray starts, or give master_server_address in the init kwargs"
    if hint:
        fix += f"; Kubernetes announces a Service at {shown(hint)}"
    elif stray:
        fix += f"; {shown(stray)} is set, but that name is not read"
    message = "no master address is set, and there is no default for it."
    unread = next((fault.offence for fault in process.faults if fault.offence in _UNREAD), None)
    if unread:
        message = "no master address is set in what is read here, and there is no default for it."
        fix = f"{_UNREAD[unread]}, as its own finding says; if it sets none, {fix}"
    yield Problem(("master_server_address",), message, f"{fix}.")


_UNREAD = {
    "unopened-file": "let the file be read that is not opened",
    "broken-json": "mend the JSON",
    "not-an-object": "mend the JSON",
    "unreadable-file": "let the file be read",
    "unreadable-script": "mend the script",
}
"""What may hold the master and could not be read, and the way to it."""


def _may_hold_the_master(fault: Fault) -> bool:
    """Whether only a run of a script tells a text in which the master may stand: of a flag, or of its variables."""
    is_whole = not fault.fields and fault.origin.spot in (INIT_KWARGS_FLAG, RUNTIME_ENV_FLAG, PASTED_SPOT)
    return fault.offence == "known-at-run-time" and is_whole


def _is_master(name: str, value: str) -> bool:
    return meant_by(name, value) == "MOONCAKE_MASTER"


@rule("MC102", Severity.ERROR, about="odd_sizes")
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
    copy (measured); a put of open_object_store takes it back and raises, unless on_missing_replicas is "warn". The
    two-node walkthrough has one training node, so one segment.

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


@rule("MC105", Severity.WARNING, about="odd_sizes")
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
    return origin.source is Source.CLI or origin.spot.startswith(RUNTIME_ENV_FLAG)


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
    if process.text("protocol") == "cxl" and not process.engine_variable("MC_CXL_DEV_SIZE"):
        message = "cxl needs MC_CXL_DEV_SIZE; without it Mooncake aborts the process."
        yield Problem(("protocol",), message, "export MC_CXL_DEV_SIZE in bytes, or use tcp or rdma.")
