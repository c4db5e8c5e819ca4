"""Job: what was asked on a launch line, ready to be resolved in any process on any node."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace

from mooncake_config.arguments import RUNTIME_ENV_FLAG, PastedCommand
from mooncake_config.display import shown
from mooncake_config.findings import Fault
from mooncake_config.init_kwargs import InitKwargs
from mooncake_config.process import Backend, Process
from mooncake_config.provenance import Origin, Source
from mooncake_config.resolve import resolve_process
from mooncake_config.settings import FIELDS
from mooncake_config.sources import Environment, real_environment
from mooncake_config.topology import Role, Topology


@dataclass(frozen=True)
class Job:
    """A question about one process of a job, before any environment or node answers it. It pickles.

    Attributes:
        init_kwargs: the CLI's claims, unread.
        topology: the job's shape as far as it is given.
        pasted: what a training command sets.
        faults: what was already found while the launch line was read.
    """

    init_kwargs: InitKwargs
    backend: Backend
    role: Role
    replica_num: int
    topology: Topology
    pasted: PastedCommand = field(default_factory=PastedCommand)
    faults: tuple[Fault, ...] = ()

    def resolve(self) -> Process:
        """The process as it would be here: with this process's environment below the variables of the command."""
        process, _ = resolve_process(
            self.init_kwargs,
            backend=self.backend,
            role=self.role,
            replica_num=self.replica_num,
            topology=self.topology,
            environment=_environment(self.pasted),
            faults=self.faults,
        )
        unheard = _submitter_only_variables(process, self.pasted) if self.pasted.submits else None
        return replace(process, faults=(*process.faults, unheard)) if unheard else process


def _environment(pasted: PastedCommand) -> Environment:
    real = real_environment(None)
    return Environment({**real, **pasted.variables}, pasted.spots) if pasted.variables else Environment(real)


def _submitter_only_variables(process: Process, pasted: PastedCommand) -> Fault | None:
    """The fields that variables win which a ``ray job submit`` hands to no process like this one."""
    heard = {*pasted.spots, *(pasted.for_driver if process.role is Role.DRIVER else ())}
    won = [(spec, spec.wiring.variable, process.winner(spec.name)) for spec in FIELDS if spec.wiring.variable]
    unheard = {
        variable: (spec, claim.raw)
        for spec, variable, claim in won
        if claim and claim.origin.source is Source.ENV and variable not in heard
    }
    if not unheard or process.backend is not Backend.MOONCAKE:
        return None
    message = f"ray job submit hands {', '.join(unheard)} to no actor, unless each node had it before Ray started."
    everywhere = {name: shown(raw) for name, (spec, raw) in unheard.items() if not spec.wiring.node_local}
    local = [name for name, (spec, _) in unheard.items() if spec.wiring.node_local]
    ways = []
    if everywhere:
        ways.append(f"put {json.dumps({'env_vars': everywhere})} into {RUNTIME_ENV_FLAG}")
    if local:
        ways.append(f"export {' and '.join(local)} on each node before Ray starts there")
    names = tuple(spec.name for spec, _ in unheard.values())
    origin = Origin(Source.ENV, next(iter(unheard)))
    return Fault("submitter-only-variable", names, origin, message, f"{'; '.join(ways)}.")
