"""One job: what its nodes give to the Store, this host standing for each of them, and every finding."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from mooncake_config.findings import Finding
from mooncake_config.host import ROOT, Host, read_host
from mooncake_config.job import Job
from mooncake_config.node import Node
from mooncake_config.plan import Load, NodeShare, Plan, plan_nodes
from mooncake_config.probe import Probes
from mooncake_config.process import Process
from mooncake_config.rules import examine_plan, refuse_unknown_rules
from mooncake_config.topology import Role


@dataclass(frozen=True)
class PlanResult:
    """A plan, and all findings about what it reads, worst first."""

    plan: Plan
    findings: tuple[Finding, ...]


def plan_job(job: Job, load: Load, ignore: Collection[str] = (), *, root: Path = ROOT) -> PlanResult:
    """Plans a whole job, whichever of its processes was asked about.

    Args:
        ignore: codes or names of rules whose findings are dropped.
        root: where the memory of this host is read, which stands for that of every node.

    Raises:
        ValueError: ``ignore`` names a rule that does not exist.
    """
    refuse_unknown_rules(ignore)
    # Of its trainers the one that contributes: the rules about a segment look at no other.
    process = replace(job, role=Role.TRAINER, topology=replace(job.topology, local_rank=0)).resolve()
    return plan_process(process, load, read_host(root), ignore)


def plan_process(process: Process, load: Load, host: Host, ignore: Collection[str] = ()) -> PlanResult:
    """The plan of the job that a trainer with local rank 0 belongs to, on nodes that have a host's memory.

    Raises:
        ValueError: ``ignore`` names a rule that does not exist.
    """
    plan = plan_nodes(process, load, node_memory(host))
    return PlanResult(plan, examine_plan(plan, _fullest(plan, _whole_memory(host)), ignore))


def node_memory(host: Host) -> int | None:
    """Bytes of memory that a host's processes can have: all of it, or what its control group may."""
    limit = host.memory_limit if isinstance(host.memory_limit, int) else None
    return min((size for size in (host.memory_total, limit) if size is not None), default=None)


def _whole_memory(host: Host) -> Host:
    """The host as if nothing ran on it: what other processes take of it today says nothing of the job's nodes."""
    return replace(host, memory_available=None, memory_limit_used=None)


def _fullest(plan: Plan, host: Host) -> tuple[str, Node] | None:
    """The node that reserves most, by its role, as the rules about a machine read it."""
    opening = [share for share in plan.nodes if share.segments is not None and share.clients != 0]
    known = [(share.role.value, _as_node(plan.process, share, host)) for share in opening]
    return max(known, key=lambda item: item[1].job_memory or 0, default=None)


def _as_node(process: Process, share: NodeShare, host: Host) -> Node:
    role = Role.TRAINER if share.segments else Role.ROLLOUT_MANAGER
    topology = replace(process.topology, processes_per_node=share.clients)
    return Node(replace(process, role=role, topology=topology), host, Probes())
