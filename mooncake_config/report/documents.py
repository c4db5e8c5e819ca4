"""The JSON documents, the env lines and the one-line findings: every answer that a program reads."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mooncake_config.display import has_secret, masked, raw_in_json, shown
from mooncake_config.findings import Finding, Severity
from mooncake_config.process import Backend, Process, fingerprint, setup_kwargs
from mooncake_config.provenance import Claim
from mooncake_config.rules import Rule
from mooncake_config.settings import FIELDS
from mooncake_config.sources import FieldSpec

if TYPE_CHECKING:
    from mooncake_config.check import CheckResult

Document = dict[str, Any]
"""A JSON answer, ready for ``json.dumps``."""


def is_ok(findings: Sequence[Finding]) -> bool:
    """Whether no error stands."""
    return not any(finding.severity is Severity.ERROR for finding in findings)


def explain_document(process: Process, findings: Sequence[Finding]) -> Document:
    """The JSON answer of ``explain``; its schema is ``schemas/explain.schema.json``."""
    topology = process.topology
    return {
        "version": 1,
        "ok": is_ok(findings),
        "backend": process.backend.value,
        "process": {
            "role": process.role.value,
            "local_rank": topology.local_rank,
            "contributes_segment": process.contributes_segment,
        },
        "topology": {
            "num_nodes": topology.num_nodes,
            "trainer_nodes": topology.trainer_nodes,
            "processes_per_node": topology.processes_per_node,
            "node_ip": raw_in_json(process.node.address),
        },
        "fields": {spec.name: _field_document(process, spec) for spec in FIELDS},
        "replica_num": process.replica_num,
        "memory_per_node": process.node_memory,
        "setup": _setup_document(process, findings),
        "findings": [finding_document(finding) for finding in findings],
        "fingerprint": fingerprint(process),
    }


def check_document(result: CheckResult) -> Document:
    """The JSON answer of ``check``: that of ``explain``, the facts of the host, and what was asked live."""
    document = explain_document(result.node.process, result.findings)
    return {**document, "host": result.host_facts, "probes": result.probe_facts}


def _field_document(process: Process, spec: FieldSpec) -> Document:
    winner = process.winner(spec.name)
    value = process.values[spec.name]
    if value is None and spec.wiring.default == "" and winner is None:
        value = ""
    return {
        "value": masked(value) if isinstance(value, str) else value,
        "raw": raw_in_json(winner.raw) if winner else None,
        "source": winner.origin.source.value if winner else None,
        "origin": winner.origin.spot if winner else None,
        "overridden": [_claim_document(claim) for claim in process.ledger.overridden(spec.name)],
    }


def _claim_document(claim: Claim) -> Document:
    return {"raw": raw_in_json(claim.raw), "source": claim.origin.source.value, "origin": claim.origin.spot}


def _setup_document(process: Process, findings: Sequence[Finding]) -> Document | None:
    if process.backend is not Backend.MOONCAKE or not is_ok(findings):
        return None
    return {key: masked(value) if isinstance(value, str) else value for key, value in setup_kwargs(process).items()}


def finding_document(finding: Finding) -> Document:
    """One finding as JSON."""
    return {
        "code": finding.code,
        "rule": finding.rule,
        "severity": finding.severity.value,
        "fields": list(finding.fields),
        "source": finding.source.value if finding.source else None,
        "origin": finding.origin.spot if finding.origin else None,
        "node": finding.node,
        "message": finding.message,
        "fix": finding.fix,
    }


def claimed_fields(process: Process) -> tuple[FieldSpec, ...]:
    """The fields whose value somebody wrote down: in the init kwargs or in a variable."""
    winners = ((spec, process.winner(spec.name)) for spec in FIELDS)
    return tuple(spec for spec, winner in winners if winner and winner.origin.is_written)


def bare_value(process: Process, name: str) -> str:
    """The value of one field as a script takes it: sizes in bytes, secrets masked, nothing where there is none."""
    value = process.values[name]
    return "" if value is None else masked(value) if isinstance(value, str) else str(value)


def env_lines(process: Process, specs: Sequence[FieldSpec] = FIELDS) -> Iterator[str]:
    """Lines for a shell: an export for each field that has a variable and a value; comments name the others."""
    for spec in specs:
        value, variable = process.values[spec.name], spec.wiring.variable
        if variable is None:
            if value is not None:
                yield f"# {spec.name} {value}: has no variable; give it as an init kwarg"
        elif value in (None, ""):
            continue
        elif isinstance(value, str) and has_secret(value):
            yield f"# {variable}: its value holds a password and is not printed"
        elif spec.wiring.node_local:
            yield f"# {variable}={shown(value)}: belongs to this node; export it on each node"
        else:
            yield f"export {variable}={shlex.quote(str(value))}"


def finding_lines(findings: Sequence[Finding]) -> Iterator[str]:
    """The findings, one line each."""
    return (str(finding) for finding in findings)


def rule_document(rule: Rule[object]) -> Document:
    """One rule as JSON."""
    return {"code": rule.code, "rule": rule.name, "severity": rule.severity.value, "page": rule.page}
