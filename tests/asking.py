"""Asking about one process of a job: what its rules find, with a world that is passed in whole."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from mooncake_config.findings import Finding, Severity
from mooncake_config.init_kwargs import read_init_kwargs
from mooncake_config.process import Backend, Process
from mooncake_config.resolve import resolve_process
from mooncake_config.rules import examine
from mooncake_config.sources import Environment
from mooncake_config.topology import Role, Topology

MASTER = {"MOONCAKE_MASTER": "10.0.0.5:50051"}
"""An environment in which nothing is missing."""

ONE_NODE = Topology(num_nodes=1, local_rank=0, processes_per_node=1, node_ip="10.0.0.7")
TWO_NODES = Topology(num_nodes=2, local_rank=0, processes_per_node=8, node_ip="10.0.0.7")


def ask(
    environ: Mapping[str, str] | None = None,
    init_kwargs: str | Mapping[str, object] | None = None,
    *,
    topology: Topology = ONE_NODE,
    role: Role = Role.TRAINER,
    replica_num: int = 1,
    backend: Backend = Backend.MOONCAKE,
    spots: Mapping[str, str] | None = None,
) -> Process:
    """A process whose environment is :data:`MASTER` unless given."""
    return resolve_process(
        init_kwargs,
        backend=backend,
        role=role,
        replica_num=replica_num,
        topology=topology,
        environment=Environment(MASTER if environ is None else environ, spots or {}),
    )[0]


def as_text(**fields: object) -> str:
    """Init kwargs as they stand on a command line."""
    return json.dumps(fields)


def found(process: Process, code: str, ignore: Sequence[str] = ()) -> list[Finding]:
    """What one rule finds."""
    return [finding for finding in examine(process, ignore) if finding.code == code]


def severities(process: Process, code: str) -> list[Severity]:
    """How much what one rule finds weighs."""
    return [finding.severity for finding in found(process, code)]


def fault_of(text: str | Mapping[str, object] | None) -> tuple[str, str, str]:
    """Offence, message and fix of the one fault of these init kwargs."""
    (fault,) = read_init_kwargs(text).faults
    return fault.offence, fault.message, fault.fix
