"""One host: the process that was resolved, the machine below it, what answers, and every finding of it all."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from mooncake_config.findings import Finding, Severity
from mooncake_config.host import ROOT, read_host
from mooncake_config.installation import SETUP_SECONDS, dry_setup
from mooncake_config.node import Node
from mooncake_config.probe import Probes, probe, probe_endpoints
from mooncake_config.process import Backend, Process
from mooncake_config.rules import examine_node, refuse_unknown_rules


@dataclass(frozen=True)
class CheckResult:
    """What one host showed: the node, and all findings, worst first."""

    node: Node
    findings: tuple[Finding, ...]

    @property
    def has_error(self) -> bool:
        """Whether an error stands."""
        return any(finding.severity is Severity.ERROR for finding in self.findings)

    @property
    def host_facts(self) -> dict[str, object]:
        """``host`` of the JSON answer: the facts of the machine; unknown is null."""
        return self.node.host.facts()

    @property
    def probe_facts(self) -> list[dict[str, object]]:
        """``probes`` of the JSON answer: what was asked, of whom, the answer, and the seconds it took."""
        return self.node.probes.facts()


def check_process(process: Process, ignore: Collection[str] = (), *, root: Path = ROOT) -> CheckResult:
    """Looks at this host and at the endpoints, within 5 s, also when an error of the process stands already.

    Args:
        process: the resolved process.
        ignore: codes or names of rules whose findings are dropped.
        root: where the facts of the host are read; the live questions are asked from this machine all the same.

    Raises:
        ValueError: ``ignore`` names a rule that does not exist.
    """
    refuse_unknown_rules(ignore)
    host = read_host(root)
    probes = probe(process) if process.backend is Backend.MOONCAKE else Probes()
    return _examined(Node(process, host, probes), ignore)


def check_before_opening(process: Process, ignore: Collection[str] = (), *, root: Path = ROOT) -> CheckResult:
    """The part of :func:`check_process` that a store asks before native code. It starts no child process.

    Raises:
        ValueError: ``ignore`` names a rule that does not exist.
    """
    refuse_unknown_rules(ignore)
    return _examined(Node(process, read_host(root), probe_endpoints(process)), ignore)


def check_dry_setup(
    result: CheckResult, ignore: Collection[str] = (), *, seconds: float = SETUP_SECONDS
) -> CheckResult:
    """The result with a real setup tried in a child process, where no error stands; with one it would crash or hang.

    Args:
        seconds: how long the child may take.

    Raises:
        ValueError: ``ignore`` names a rule that does not exist.
    """
    node, probes = result.node, result.node.probes
    if node.process.backend is not Backend.MOONCAKE:
        probes = replace(probes, no_setup="the backend is ray")
    elif result.has_error:
        probes = replace(probes, no_setup="an error stands")
    elif node.process.text("master_server_address") is None:
        probes = replace(probes, no_setup="only a run of the script tells the master")
    else:
        probes = replace(probes, setup=dry_setup(node.process, seconds))
    return _examined(replace(node, probes=probes), ignore)


def _examined(node: Node, ignore: Collection[str]) -> CheckResult:
    return CheckResult(node, examine_node(node, ignore))
