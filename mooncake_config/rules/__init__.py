"""The rules, and ``examine``, which turns what they see into findings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from mooncake_config.display import shown
from mooncake_config.findings import Finding, Severity
from mooncake_config.process import Backend, Process
from mooncake_config.provenance import Origin, Source
from mooncake_config.rules import addresses as address_rules
from mooncake_config.rules import launch as launch_rules
from mooncake_config.rules import process as process_rules
from mooncake_config.rules import reading as reading_rules
from mooncake_config.rules import values as value_rules
from mooncake_config.rules import variables as variable_rules
from mooncake_config.rules.launch import ignored_in_vain
from mooncake_config.rules.rule import Problem, Rule, by_part, rules_in

if TYPE_CHECKING:
    from mooncake_config.members import Cluster
    from mooncake_config.node import Node
    from mooncake_config.plan import Plan

    ALL_RULES: tuple[Rule[object], ...]
    """Every rule, by code."""

__all__ = [
    "ALL_RULES",
    "PROCESS_RULES",
    "Problem",
    "Rule",
    "cluster_rules",
    "examine",
    "examine_cluster",
    "examine_node",
    "examine_plan",
    "find_rule",
    "node_rules",
    "plan_rules",
    "refuse_unknown_rules",
]

_Subject = TypeVar("_Subject")

_OF_A_PROCESS = (reading_rules, value_rules, process_rules, address_rules, variable_rules, launch_rules)

PROCESS_RULES: tuple[Rule[Process], ...] = rules_in(*_OF_A_PROCESS)
"""The rules of one process, by code."""

_LOOKING = by_part(rule for rule in PROCESS_RULES if not rule.by_reading)


@cache
def node_rules() -> tuple[Rule[Node], ...]:
    """The rules of one process on one machine, by code. Loaded when asked for: ``explain`` needs none of them."""
    from mooncake_config.rules import endpoints, host, installed

    return rules_in(host, installed, endpoints)


@cache
def plan_rules() -> tuple[Rule[Plan], ...]:
    """The rules of a whole job's plan, by code. Loaded when asked for, like those of a machine."""
    from mooncake_config.rules import plan

    return rules_in(plan)


@cache
def cluster_rules() -> tuple[Rule[Cluster], ...]:
    """The rules across the nodes of a cluster, by code. Loaded when asked for."""
    from mooncake_config.rules import cluster

    return rules_in(cluster)


def __getattr__(name: str) -> object:
    if name == "ALL_RULES":
        return _all_rules()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@cache
def _all_rules() -> tuple[Rule[object], ...]:
    from mooncake_config.rules import cluster, endpoints, host, installed, plan

    return rules_in(*_OF_A_PROCESS, host, installed, endpoints, plan, cluster)


def _named(rules: Iterable[Rule[_Subject]]) -> dict[str, Rule[_Subject]]:
    return {name: rule for rule in rules for name in (rule.code, rule.name)}


_PROCESS_BY_NAME = _named(PROCESS_RULES)


@cache
def _by_name() -> Mapping[str, Rule[object]]:
    return _named(_all_rules())


def find_rule(name: str) -> Rule[object] | None:
    """The rule of a code (``MC101``) or a name (``loopback-in-multi-node``), in any case; None where there is none."""
    known = _by_name()
    return known.get(name) or known.get(name.upper()) or known.get(name.lower())


def refuse_unknown_rules(names: Iterable[str]) -> None:
    """Raises ``ValueError`` for a code or name that no rule has, ``TypeError`` for what is no list of text."""
    if isinstance(names, str):
        raise TypeError(f"ignore takes several codes or names: [{shown(names)!r}], not {shown(names)!r}")
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"ignore takes codes or names, not {shown(name)!r}")
        if find_rule(name) is None:
            raise ValueError(f"there is no rule {shown(name)!r}; `mooncake-config rule` lists them")


def examine(process: Process, ignore: Collection[str] = ()) -> tuple[Finding, ...]:
    """All findings on one process, worst first, less the ignored ones.

    Args:
        ignore: codes or names of rules. Malformed values and rules that protect the process stay, and an info says so.

    Raises:
        ValueError: ``ignore`` names a rule that does not exist.
    """
    refuse_unknown_rules(ignore)
    return settle(_process_findings(process), process, ignore)


def examine_node(node: Node, ignore: Collection[str] = ()) -> tuple[Finding, ...]:
    """All findings on one process and on the machine that it runs on, worst first, less the ignored ones.

    With the backend Ray no rule about the machine is asked: nothing of Mooncake is opened there.

    Raises:
        ValueError: ``ignore`` names a rule that does not exist.
    """
    refuse_unknown_rules(ignore)
    process = node.process
    asked = node_rules() if process.backend is Backend.MOONCAKE else ()
    on_the_machine = seen(asked, node, process)
    return settle([*_less_certain_away(_process_findings(process), on_the_machine), *on_the_machine], process, ignore)


_PLANNED = frozenset({"global_segment_size", "local_buffer_size", "chunk_bytes", "protocol"})
"""The fields that a plan reads."""


def examine_plan(plan: Plan, fullest: tuple[str, Node] | None, ignore: Collection[str] = ()) -> tuple[Finding, ...]:
    """All findings on what a plan reads, worst first, less the ignored ones: sizes, the job's shape, memory.

    Args:
        fullest: the node that reserves most, and its name; None: nothing is known of any.

    Raises:
        ValueError: ``ignore`` names a rule that does not exist.
    """
    from mooncake_config.rules.host import memory_above_cgroup_limit, memory_above_host, no_host_facts
    from mooncake_config.rules.plan import way_to_fit

    refuse_unknown_rules(ignore)
    process = plan.process
    findings = [item for item in _process_findings(process) if not item.fields or _PLANNED & {*item.fields}]
    findings += seen(plan_rules(), plan, process)
    if fullest:
        name, node = fullest
        about_memory = seen((memory_above_host, memory_above_cgroup_limit), node, process)
        fix = way_to_fit(plan)  # for the whole job, where the rule sees one node
        findings += [replace(item, node=name, fix=fix or item.fix) for item in about_memory]
        findings += seen((no_host_facts,), node, process)
    return settle(findings, process, ignore)


def examine_cluster(cluster: Cluster, ignore: Collection[str] = ()) -> tuple[Finding, ...]:
    """All findings on a cluster, worst first: across its nodes, and what nodes found on themselves, once for a cause.

    With the backend Ray no rule about Mooncake is asked across nodes; a node that does not answer is an error all the
    same.

    Args:
        ignore: codes or names of rules across nodes; those of one node were dropped there.

    Raises:
        ValueError: ``ignore`` names a rule that does not exist.
    """
    from mooncake_config.members import folded
    from mooncake_config.rules.cluster import OVER_ANY_STORE

    refuse_unknown_rules(ignore)
    asked = cluster_rules() if cluster.driver.backend is Backend.MOONCAKE else OVER_ANY_STORE
    across = _not_ignored(seen(asked, cluster, cluster.driver), ignore)
    return _worst_first(_explained_away([*folded(cluster.members), *across]))


def _explained_away(findings: list[Finding]) -> list[Finding]:
    """Without what follows from another finding: a wrong address is told once, by the rule that knows most of it."""
    told = {item.code: {*item.nodes} for item in findings if item.severity is Severity.ERROR}
    whose = told.get("MC421", set())
    wrong = whose.union(*(told.get(code, ()) for code in ("MC101", "MC220", "MC301")))
    known_better = {"MC220": whose, "MC442": wrong}
    return [item for item in findings if not {*item.nodes} <= known_better.get(item.code, set()) or not item.nodes]


def _less_certain_away(findings: list[Finding], on_the_machine: list[Finding]) -> list[Finding]:
    """Without what is told by a name alone where the machine was asked, and says what that device is."""
    looked_up = any(item.rule in ("interface-as-device", "missing-rdma-device") for item in on_the_machine)
    by_name = ("interface-for-an-address", ("device_name",))
    return [item for item in findings if not looked_up or (item.rule, item.fields) != by_name]


def _process_findings(process: Process) -> list[Finding]:
    return [*_read_findings(process), *_seen_by_part(_LOOKING, process, process)]


def seen(rules: Iterable[Rule[_Subject]], subject: _Subject, process: Process) -> list[Finding]:
    """What the rules see in a subject, as findings; origins come from the process's ledger."""
    return _seen_by_part(by_part(rules), subject, process)


def _seen_by_part(
    rules: Mapping[str | None, Sequence[Rule[_Subject]]], subject: _Subject, process: Process
) -> list[Finding]:
    asked = [rule for part, about_it in rules.items() if part is None or getattr(subject, part) for rule in about_it]
    return [_finding(rule, problem, process) for rule in asked for problem in rule.see(subject)]


def settle(findings: list[Finding], process: Process, ignore: Collection[str]) -> tuple[Finding, ...]:
    """The findings that stand, worst first: ignored ones dropped, errors softened where the backend is Ray."""
    if not findings:
        return ()
    kept = _not_ignored(_not_open(findings, process), ignore)
    if process.backend is Backend.RAY:
        kept = [_softened(item) for item in kept if not _is_about_rays_own_address(item)]
    return _worst_first(kept)


def _not_open(findings: list[Finding], process: Process) -> list[Finding]:
    """Without what is seen in a value that stands in for one that only a run of a script tells."""
    left_open = {*process.open_fields}
    read = {rule.name for rule in PROCESS_RULES if rule.by_reading} if left_open else set()
    return [item for item in findings if item.rule in read or not left_open & {*item.fields}]


def _is_about_rays_own_address(item: Finding) -> bool:
    """Whether a well-formed node IP that nobody wrote is found unfit for the Mooncake that is not used."""
    return item.code.startswith("MC1") and item.origin is not None and item.origin.source is Source.RAY


def _not_ignored(findings: list[Finding], ignore: Collection[str]) -> list[Finding]:
    """Without the ignored ones; what cannot be ignored stays, and an info says why."""
    ignored = {rule.code: rule for name in ignore if (rule := find_rule(name))}
    kept = [item for item in findings if item.code not in ignored or ignored[item.code].protects]
    return kept + [_in_vain(ignored[code]) for code in sorted({item.code for item in kept} & ignored.keys())]


def _worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda item: (item.severity.rank, item.code)))


def _read_findings(process: Process) -> Iterator[Finding]:
    for fault in process.faults:
        rule = _PROCESS_BY_NAME[fault.offence]
        message = _with_node_ip(fault.message, fault.origin, process)
        yield Finding(rule.code, rule.name, rule.severity, fault.fields, fault.origin, message, fault.fix)


def _finding(rule: Rule[_Subject], problem: Problem, process: Process) -> Finding:
    origin = problem.origin or _first_origin(problem.fields, process)
    severity = problem.severity or rule.severity
    message = _with_node_ip(problem.message, origin, process)
    told = problem.fields, origin, message, problem.fix, problem.node, problem.nodes
    return Finding(rule.code, rule.name, severity, *told)


def _with_node_ip(message: str, origin: Origin | None, process: Process) -> str:
    """The message, and where the Ray node IP was given, which its origin does not say."""
    if process.topology.node_ip is None or origin is None or origin.source is not Source.RAY:
        return message
    return f"{message.removesuffix('.')}; the Ray node IP was given as --node-ip (Python: Topology(node_ip=…))."


def _first_origin(fields: tuple[str, ...], process: Process) -> Origin | None:
    return process.ledger.origin(fields[0]) if fields else None


def _in_vain(rule: Rule[object]) -> Finding:
    vain, why = ignored_in_vain, "there is no value to go on with, or native code would crash"
    message = f"{rule.code} ({rule.name}) cannot be ignored: {why}."
    return Finding(vain.code, vain.name, vain.severity, (), None, message, "correct what the finding names.")


def _softened(finding: Finding) -> Finding:
    if finding.severity is not Severity.ERROR:
        return finding
    return replace(finding, severity=Severity.WARNING)
