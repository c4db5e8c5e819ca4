"""Resolving: the claims of all sources, stacked, validated and examined, for one process of a job."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from types import NoneType
from typing import cast

from pydantic import ValidationError

from mooncake_config.display import shown
from mooncake_config.findings import ConfigError, Fault, Finding, Malformed, Severity
from mooncake_config.init_kwargs import InitKwargs, read_init_kwargs
from mooncake_config.process import RANK_VARIABLE, Backend, Process, Value, fingerprint, setup_kwargs
from mooncake_config.protocols import nearest
from mooncake_config.provenance import Claim, Ledger, Origin, Source, stack
from mooncake_config.ray_node import NodeAddress, attached_node_count, find_node_address
from mooncake_config.rules import examine
from mooncake_config.settings import FIELDS, StoreSettings
from mooncake_config.sources import Environment, LayerSource, World, real_environment
from mooncake_config.topology import Role, Topology, complete_topology
from mooncake_config.variables import related_variables


@dataclass(frozen=True)
class Difference:
    """A field that two processes of a job resolve to different values, each with its origin; None: nobody claims it.

    ``must_agree``: the job cannot work so. Other settings, sizes above all, may differ. ``str`` masks passwords.
    """

    field: str
    ours: Value
    theirs: Value
    our_origin: Origin | None
    their_origin: Origin | None
    must_agree: bool

    def __repr__(self) -> str:
        """The same as ``str``: a repr ends in logs."""
        return f"<Difference {self}>"

    def __str__(self) -> str:
        ours, theirs = shown(self.ours), shown(self.theirs)
        return f"{self.field}: {ours} here ({_spot(self.our_origin)}), {theirs} there ({_spot(self.their_origin)})"


def _spot(origin: Origin | None) -> str:
    return shown(origin.spot) if origin else "nobody"


@dataclass(frozen=True)
class Resolution:
    """A configuration without errors: the settings, where each came from, and what else was found."""

    settings: StoreSettings
    process: Process
    findings: tuple[Finding, ...]

    def __repr__(self) -> str:
        """Whose it is and what was found, on one short line, since a repr ends in logs. It holds no setting."""
        found = {1: "1 finding"}.get(len(self.findings), f"{len(self.findings)} findings")
        node = shown(self.process.values["local_hostname"])
        return f"<Resolution of {self.process.role.value} on {node}, fingerprint {self.fingerprint}, {found}>"

    @property
    def ledger(self) -> Ledger:
        """Every claim on every field, strongest first."""
        return self.process.ledger

    @property
    def replica_num(self) -> int:
        """Memory replicas of each object."""
        return self.process.replica_num

    @property
    def fingerprint(self) -> str | None:
        """Equal on all nodes that belong together: over master, metadata server and protocol."""
        return fingerprint(self.process)

    def origin(self, name: str) -> Origin:
        """Where the value of a field comes from.

        Raises:
            KeyError: there is no such field.
        """
        origin = self.ledger.origin(name)
        if origin is None:
            meant = nearest(str(name), (spec.name for spec in FIELDS))
            raise KeyError(f"there is no field {shown(name)!r}" + (f"; did you mean {meant}?" if meant else ""))
        return origin

    def differences(self, other: Resolution) -> tuple[Difference, ...]:
        """The fields that another process of the job resolves otherwise, those that must agree first.

        What belongs to one node (local_hostname, device_name) is meant to differ and is left out. Nothing in it means
        that the two belong together, and so does an equal ``fingerprint``, which is over what must agree alone.

        Raises:
            TypeError: the other is no resolution.
        """
        if not isinstance(other, Resolution):
            raise TypeError(f"a resolution is compared with a Resolution, not with {type(other).__name__}")
        apart = []
        for spec in FIELDS:
            ours, theirs = self.process.values[spec.name], other.process.values[spec.name]
            if ours != theirs and not spec.wiring.node_local:
                origins = self.ledger.origin(spec.name), other.ledger.origin(spec.name)
                apart.append(Difference(spec.name, ours, theirs, *origins, spec.wiring.agreed))
        return tuple(sorted(apart, key=lambda item: not item.must_agree))

    def setup_kwargs(self) -> dict[str, int | str]:
        """The seven keys of ``MooncakeDistributedStore.setup``: text, and integers of bytes. Passwords are in clear."""
        return setup_kwargs(self.process)

    def to_runtime_env(self) -> dict[str, dict[str, str]]:
        """A Ray runtime environment that gives the same settings to every actor: ``{"env_vars": {…}}``, text only.

        Master, metadata server and protocol, and sizes that somebody claimed; never what belongs to one node.
        """
        env_vars = {}
        for spec in FIELDS:
            variable, claimed = spec.wiring.variable, self.origin(spec.name).is_written
            if variable and not spec.wiring.node_local and (spec.wiring.agreed or claimed):
                env_vars[variable] = str(self.process.values[spec.name])
        return {"env_vars": env_vars}


def resolve_store_config(
    init_kwargs: InitKwargs = None,
    *,
    role: Role | str = Role.TRAINER,
    replica_num: int = 1,
    topology: Topology | None = None,
    environ: Mapping[str, str] | None = None,
    ignore: Collection[str] = (),
) -> Resolution:
    """Resolves the configuration of Mooncake Store for this process: init kwargs, variables, Ray node IP, defaults.

    Args:
        init_kwargs: JSON text, ``"@file"``, a mapping, or None.
        role: what this process does in the job.
        replica_num: memory replicas of each object.
        topology: the job's shape; what is None in it is detected.
        environ: the environment; None: ``os.environ``.
        ignore: codes or names of rules whose findings are dropped.

    Raises:
        ConfigError: with every finding, when there is an error among them.
        ValueError: an unknown role or rule.
        TypeError: an argument of another type, or a variable that is no text.
    """
    _refuse_other_types(topology, environ)
    process, settings = resolve_process(
        init_kwargs,
        backend=Backend.MOONCAKE,
        role=role,
        replica_num=replica_num,
        topology=topology or Topology(),
        environment=Environment(real_environment(environ)),
    )
    findings = examine(process, ignore)
    if settings is None or any(finding.severity is Severity.ERROR for finding in findings):
        raise ConfigError(findings)
    return Resolution(settings, process, findings)


def _refuse_other_types(topology: object, environ: object) -> None:
    if not isinstance(topology, (Topology, NoneType)):
        raise TypeError(f"topology must be a Topology, as in Topology(num_nodes=2), not {type(topology).__name__}")
    if environ is None:
        return
    if not isinstance(environ, Mapping):
        raise TypeError(f"environ must be a mapping or None, not {type(environ).__name__}")
    for name, text in environ.items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise TypeError(f"environ must hold text, and {shown(name)} is {type(text).__name__}")


def resolve_process(
    init_kwargs: InitKwargs,
    *,
    backend: Backend,
    role: Role | str,
    replica_num: int,
    topology: Topology,
    environment: Environment,
    faults: tuple[Fault, ...] = (),
) -> tuple[Process, StoreSettings | None]:
    """One process with every claim and fault, and its settings; None where a value is malformed or the master missing.

    Args:
        faults: what was already found while the launch line was read.

    Raises:
        ValueError: an unknown role.
        TypeError: init kwargs or replica_num of another type.
    """
    if isinstance(replica_num, bool) or not isinstance(replica_num, int):
        raise TypeError(f"replica_num must be an integer, not {shown(replica_num)!r}")
    reading = read_init_kwargs(init_kwargs)
    node = NodeAddress(topology.node_ip) if topology.node_ip else find_node_address()
    shape, rank_faults = complete_topology(topology, environment.variables, attached_node_count)
    related = Environment(related_variables(environment.variables), environment.spots)
    sources = _ordered_sources(World(StoreSettings, reading.claims, related, node))
    ledger = stack([source.claims for source in sources])
    settings, values, malformed = _validate(sources, ledger)
    process = Process(
        backend=backend,
        role=_role(role),
        topology=shape,
        replica_num=replica_num,
        ledger=ledger,
        values=values,
        faults=(*faults, *reading.faults, *_empty_claims(ledger), *malformed, *rank_faults),
        variables=related,
        node=node,
        rank_origin=RANK_VARIABLE if topology.local_rank is None else _RANK_FLAG,
    )
    return process, settings


_RANK_FLAG = Origin(Source.CLI, "--local-rank")


def _role(role: Role | str) -> Role:
    try:
        return Role(role)
    except ValueError:
        names = ", ".join(known.value for known in Role)
        raise ValueError(f"{shown(role)!r} is not a valid Role; the roles are {names}") from None


def _ordered_sources(world: World) -> tuple[LayerSource, ...]:
    """The sources in the order that the settings class gives them."""
    ordered = StoreSettings.settings_customise_sources(StoreSettings, world, world, world, world)
    return cast("tuple[LayerSource, ...]", ordered)


def _validate(
    sources: tuple[LayerSource, ...], ledger: Ledger
) -> tuple[StoreSettings | None, dict[str, Value], tuple[Fault, ...]]:
    try:
        settings = StoreSettings(_build_sources=(sources, {}))
    except ValidationError as refusal:
        faults = tuple(_faults_of(refusal, ledger))
        return None, dict(_good_values(ledger, {name for fault in faults for name in fault.fields})), faults
    return settings, vars(settings), ()


def _faults_of(refusal: ValidationError, ledger: Ledger) -> Iterator[Fault]:
    for error in refusal.errors(include_url=False, include_input=False):
        name = str(error["loc"][0])
        cause, origin = error.get("ctx", {}).get("error"), ledger.origin(name)
        if isinstance(cause, Malformed) and origin:
            yield Fault(cause.offence, (name,), origin, cause.message, cause.fix)


def _good_values(ledger: Ledger, malformed: set[str]) -> Iterator[tuple[str, Value]]:
    """Every field's value where another one is malformed, by the same parsers."""
    for spec in FIELDS:
        winner = None if spec.name in malformed else ledger.winner(spec.name)
        yield spec.name, spec.parse(winner.raw) if winner else None


def _empty_claims(ledger: Ledger) -> Iterator[Fault]:
    for name, claim in ledger.empty:
        written = "null" if claim.raw is None else "empty" if claim.raw == "" else "blank"
        message = f"{shown(claim.origin.spot)} leaves {name} {written}, which counts as unset."
        if claim.origin.source.value == "env":
            message = f"{shown(claim.origin.spot)} is {written} and counts as unset."
        in_force = ledger.winner(name)
        instead = f"; {_in_words(name, in_force)} is in force" if in_force else ""
        fix = f"give it a value, or take it out if that is meant{instead}."
        yield Fault("empty-claim", (name,), claim.origin, message, fix)


def _in_words(name: str, claim: Claim) -> str:
    """A value that holds, and from where; a default in the words of the table, since it may be no text."""
    if claim.origin.source is Source.DEFAULT:
        return f"the default ({next(spec.default_in_words for spec in FIELDS if spec.name == name)})"
    return f"{shown(claim.raw)} from {claim.origin}"
