"""Job: what was asked on a launch line, ready to be resolved in any process on any node."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from mooncake_config.arguments import PastedCommand
from mooncake_config.display import PASTED_LIMIT, shown
from mooncake_config.findings import Fault
from mooncake_config.init_kwargs import InitKwargs
from mooncake_config.process import Backend, Process
from mooncake_config.provenance import Origin, Source
from mooncake_config.resolve import resolve_process
from mooncake_config.settings import BY_VARIABLE
from mooncake_config.sources import RUNTIME_ENV_FLAG, Environment, real_environment
from mooncake_config.topology import Role, Topology


@dataclass(frozen=True)
class Job:
    """A question about one process of a job, before any environment or node answers it. It pickles.

    Attributes:
        init_kwargs: the CLI's claims, unread but for those of a script of which only a run tells a part.
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
        found = tuple(filter(None, _drops(process, self.pasted)))
        return replace(process, faults=(*process.faults, *found)) if found else process


def _environment(pasted: PastedCommand) -> Environment:
    real = real_environment(None)
    taken = {*pasted.unset, *pasted.unknown}
    if pasted.cleared or taken:
        real = {name: text for name, text in real.items() if not pasted.cleared and name not in taken}
    return Environment({**real, **pasted.variables}, pasted.spots) if pasted.variables else Environment(real)


def _drops(process: Process, pasted: PastedCommand) -> Iterator[Fault | None]:
    """The variables of this shell and of the script that the command hands to nobody, or perhaps to nobody."""
    if process.backend is not Backend.MOONCAKE:
        return
    for name, text in pasted.kept.items():
        yield _unexported(process, name, text)
    if pasted.submits:
        yield _submitter_only_variables(process, pasted)
    elif pasted.through_sudo is not None:
        yield _variables_before(process, "ssh" if pasted.through_ssh else "sudo", pasted.through_sudo)
    if pasted.cleared or pasted.unset:
        yield _variables_before_env(pasted)


def _unexported(process: Process, name: str, text: str) -> Fault | None:
    """A variable that a script keeps for itself, where its field has no stronger claim."""
    spec = BY_VARIABLE.get(name)
    origin = process.ledger.origin(spec.name) if spec else None
    if spec is None or (origin and origin.source is Source.CLI):
        return None
    message = f"the script sets {name} to {shown(text)} and does not export it, so no program that it starts has it."
    fix = f"write export {name}=… there."
    return Fault("not-exported", (spec.name,), Origin(Source.ENV, name), message, fix)


def _variables_before(process: Process, program: str, handed: Collection[str]) -> Fault | None:
    """The fields that variables win which ``sudo`` or ``ssh`` drops, where rules of theirs do not say otherwise."""
    lost = {
        variable: spec.name
        for variable, spec in BY_VARIABLE.items()
        if variable not in handed and process.ledger.origin(spec.name) == Origin(Source.ENV, variable)
    }
    if not lost:
        return None
    if program == "ssh":
        message = f"ssh hands {' and '.join(lost)} to nobody: the other host has its own variables, if any."
        assigned = " ".join(f"{name}=VALUE" for name in lost)
        return _dropped(lost, message, f"set it in the command that ssh runs: ssh HOST {assigned} python3 train.py.")
    message = f"sudo hands {' and '.join(lost)} on with -E only, or where sudoers keeps such variables."
    return _dropped(lost, message, f"write sudo --preserve-env={','.join(lost)}, or set it behind sudo.")


def _variables_before_env(pasted: PastedCommand) -> Fault | None:
    """The variables of fields that this shell has and ``env`` takes away."""
    real = real_environment(None)
    lost = {
        variable: spec.name
        for variable, spec in BY_VARIABLE.items()
        if real.get(variable, "").strip() and variable not in pasted.variables
        if pasted.cleared or variable in pasted.unset
    }
    if not lost:
        return None
    option = "-i" if pasted.cleared else "-u"
    message = f"env {option} takes away {' and '.join(lost)}, which this shell has."
    return _dropped(lost, message, f"leave out the {option}, or set it behind env.")


def _dropped(lost: Mapping[str, str], message: str, fix: str) -> Fault:
    return Fault("dropped-variable", tuple(lost.values()), Origin(Source.ENV, next(iter(lost))), message, fix)


def _submitter_only_variables(process: Process, pasted: PastedCommand) -> Fault | None:
    """The fields that variables win which a ``ray job submit`` hands to no process like this one."""
    heard = {*pasted.spots, *(pasted.for_driver if process.role is Role.DRIVER else ())}
    unheard = {
        variable: (spec, raw)
        for variable, spec in BY_VARIABLE.items()
        if variable not in heard and (raw := _text_of(variable, process, pasted)) is not None
    }
    if not unheard:
        return None
    message = f"ray job submit hands {', '.join(unheard)} to no actor, unless each node had it before Ray started."
    everywhere = {name: shown(raw, PASTED_LIMIT) for name, (spec, raw) in unheard.items() if not spec.wiring.node_local}
    local = [name for name, (spec, _) in unheard.items() if spec.wiring.node_local]
    ways = []
    if everywhere:
        ways.append(f"put {json.dumps({'env_vars': everywhere})} into {RUNTIME_ENV_FLAG}")
    if local:
        ways.append(f"export {' and '.join(local)} on each node before Ray starts there")
    names = tuple(spec.name for spec, _ in unheard.values())
    origin = Origin(Source.ENV, next(iter(unheard)))
    return Fault("submitter-only-variable", names, origin, message, f"{'; '.join(ways)}.")


def _text_of(variable: str, process: Process, pasted: PastedCommand) -> object:
    """What a variable of a field holds where it wins, or would once the script runs that sets it; None elsewhere."""
    claim = process.winner(BY_VARIABLE[variable].name)
    if claim and claim.origin.source is Source.CLI:
        return None
    return pasted.unknown.get(variable) or (claim.raw if claim and claim.origin.source is Source.ENV else None)
