"""The rules, and ``examine``, which turns what they see into findings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TypeVar

from mooncake_config.findings import Finding, Severity
from mooncake_config.process import Backend, Process
from mooncake_config.provenance import Origin
from mooncake_config.rules import process as process_rules
from mooncake_config.rules import values as value_rules
from mooncake_config.rules import variables as variable_rules
from mooncake_config.rules.process import ignored_in_vain
from mooncake_config.rules.rule import Problem, Rule, rules_in

__all__ = ["ALL_RULES", "PROCESS_RULES", "Problem", "Rule", "examine", "find_rule", "refuse_unknown_rules"]

_Subject = TypeVar("_Subject")

PROCESS_RULES: tuple[Rule[Process], ...] = rules_in(value_rules, process_rules, variable_rules)
"""The rules of one process, by code."""

ALL_RULES: tuple[Rule[object], ...] = rules_in(value_rules, process_rules, variable_rules)
"""Every rule, by code."""

_BY_NAME = {name: rule for rule in ALL_RULES for name in (rule.code, rule.name)}
_LOOKING = tuple(rule for rule in PROCESS_RULES if not rule.by_reading)


def find_rule(name: str) -> Rule[object] | None:
    """The rule of a code (``MC101``) or a name (``loopback-in-multi-node``), in any case; None where there is none."""
    return _BY_NAME.get(name) or _BY_NAME.get(name.upper()) or _BY_NAME.get(name.lower())


def refuse_unknown_rules(names: Iterable[str]) -> None:
    """Raises ``ValueError`` for a code or name that no rule has."""
    for name in names:
        if find_rule(name) is None:
            raise ValueError(f"there is no rule {name!r}; `mooncake-config rule` lists them")


def examine(process: Process, ignore: Collection[str] = ()) -> tuple[Finding, ...]:
    """All findings on one process, worst first, less the ignored ones.

    Args:
        ignore: codes or names of rules. Malformed values and rules that protect the process stay, and an info says so.

    Raises:
        ValueError: ``ignore`` names a rule that does not exist.
    """
    refuse_unknown_rules(ignore)
    findings = [*_read_findings(process), *seen(_LOOKING, process, process)]
    return settle(findings, process, ignore)


def seen(rules: Iterable[Rule[_Subject]], subject: _Subject, process: Process) -> Iterator[Finding]:
    """What the rules see in a subject, as findings; origins come from the process's ledger."""
    for rule in rules:
        for problem in rule.see(subject):
            yield _finding(rule, problem, process)


def settle(findings: Iterable[Finding], process: Process, ignore: Collection[str]) -> tuple[Finding, ...]:
    """The findings that stand, worst first: ignored ones dropped, errors softened where the backend is Ray."""
    ignored = {rule.code for name in ignore if (rule := find_rule(name))}
    kept = [item for item in findings if item.code not in ignored or _BY_NAME[item.code].protects]
    kept += [_in_vain(code) for code in sorted({item.code for item in kept} & ignored)]
    if process.backend is Backend.RAY:
        kept = [_softened(item) for item in kept]
    return tuple(sorted(kept, key=lambda item: (item.severity.rank, item.code)))


def _read_findings(process: Process) -> Iterator[Finding]:
    for fault in process.faults:
        rule = _BY_NAME[fault.offence]
        yield Finding(rule.code, rule.name, rule.severity, fault.fields, fault.origin, fault.message, fault.fix)


def _finding(rule: Rule[_Subject], problem: Problem, process: Process) -> Finding:
    origin = problem.origin or _first_origin(problem.fields, process)
    severity = problem.severity or rule.severity
    return Finding(rule.code, rule.name, severity, problem.fields, origin, problem.message, problem.fix)


def _first_origin(fields: tuple[str, ...], process: Process) -> Origin | None:
    return process.ledger.origin(fields[0]) if fields else None


def _in_vain(code: str) -> Finding:
    vain, rule = ignored_in_vain, _BY_NAME[code]
    message = f"{rule.code} ({rule.name}) cannot be ignored: there is no value to go on with, or native code would crash."
    return Finding(vain.code, vain.name, vain.severity, (), None, message, "correct what the finding names.")


def _softened(finding: Finding) -> Finding:
    if finding.severity is not Severity.ERROR:
        return finding
    return Finding(
        finding.code, finding.rule, Severity.WARNING, finding.fields, finding.origin, finding.message, finding.fix, finding.node
    )
