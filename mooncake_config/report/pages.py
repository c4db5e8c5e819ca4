"""Pages for a person, from a process, its findings, and rules: tables and blocks of text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mooncake_config.display import shown
from mooncake_config.findings import Finding, Severity
from mooncake_config.process import Backend, Process, Value
from mooncake_config.provenance import Claim, Source
from mooncake_config.report.documents import is_ok
from mooncake_config.rules import Rule
from mooncake_config.settings import FIELDS
from mooncake_config.sizes import human_size
from mooncake_config.sources import FieldSpec
from mooncake_config.topology import Role

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

    from mooncake_config.check import CheckResult
    from mooncake_config.host import Host

_WIDEST_SPOT = len("--mooncake-store-init-kwargs")
COLOURS = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.INFO: "bold blue"}
MARKS = {Severity.ERROR: "✗", Severity.WARNING: "!", Severity.INFO: "i"}


def print_rule_list(console: Console, rules: Sequence[Rule[object]]) -> None:
    """All rules: code, severity, name and summary."""
    from rich.text import Text

    table = plain_table("code", "severity", "rule")
    for rule in rules:
        about = Text.assemble((rule.name, "bold"), f"\n{rule.summary}")
        table.add_row(Text(rule.code), Text(rule.severity.value, COLOURS[rule.severity]), about)
    console.print(table)


def print_rule_page(console: Console, rule: Rule[object]) -> None:
    """The page of one rule."""
    from rich.text import Text

    head = Text.assemble((f"{rule.code} ", "bold"), (rule.name, "bold"), f" ({rule.severity.value})")
    if rule.protects:
        head.append(", cannot be ignored")
    console.print(head)
    console.print()
    console.print(Text(rule.page))


def print_explanation(console: Console, process: Process, findings: Sequence[Finding]) -> None:
    """The page of ``explain``: who is asked about, each field with its origin, then the findings, worst first."""
    _print_settings(console, process)
    print_findings(console, findings)


def _print_settings(console: Console, process: Process) -> None:
    console.print(_heading(process))
    console.print()
    console.print(_field_table(process))
    for line in _footnotes(process):
        console.print(line)


def print_check(console: Console, result: CheckResult) -> None:
    """The page of ``check``: the settings, the machine, what answered, then the findings, worst first."""
    from rich.text import Text

    _print_settings(console, result.node.process)
    console.print()
    for name, fact in host_lines(result.node.host):
        console.print(Text(f"{name:<14} {fact}"))
    console.print()
    table = plain_table("asked", "of", "answer", "after")
    for probe in result.probe_facts:
        table.add_row(
            *(Text(shown(probe[key], 200)) for key in ("what", "target", "answer")), f"{probe['seconds']:.2f} s"
        )
    console.print(table)
    print_findings(console, result.findings)


def print_findings(console: Console, findings: Sequence[Finding]) -> None:
    """The findings, worst first, and their count."""
    for finding in findings:
        console.print()
        console.print(finding_block(finding))
    console.print()
    console.print(verdict(findings))


def _heading(process: Process) -> Text:
    from rich.text import Text

    topology = process.topology
    who = process.role.value
    if topology.local_rank is not None:
        who += f", local rank {topology.local_rank}"
    where = f"node {shown(process.node.address)}"
    nodes = topology.num_nodes
    count = "unknown number of nodes" if nodes is None else "1 node" if nodes == 1 else f"{nodes} nodes"
    per_node = topology.processes_per_node
    shape = count if per_node is None else f"{count}, {per_node} process{'es' if per_node > 1 else ''} on each"
    return Text.assemble((f"{process.backend.value} object store", "bold"), f": {who}, on {where}\n{shape}")


def _field_table(process: Process) -> Table:
    from rich.text import Text

    table = plain_table("field", "value", "source", "set in")
    for spec in FIELDS:
        winner = process.winner(spec.name)
        refused = winner is not None and process.values[spec.name] is None and winner.raw is not None
        text = shown(winner.raw) if refused and winner else value_text(spec, process.values[spec.name])
        spot = "" if winner is None or winner.origin.source is Source.DEFAULT else shown(winner.origin.spot)
        where = Text.assemble(
            spot, *((f"\n{_overridden(lost)}", "dim") for lost in process.ledger.overridden(spec.name))
        )
        source = winner.origin.source.value if winner else "nobody"
        table.add_row(Text(spec.name), Text(text, "red" if refused or winner is None else "bold"), Text(source), where)
    return table


def plain_table(*headings: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=0, pad_edge=False)
    for heading in headings:
        whole = heading in ("field", "source", "code", "severity")
        table.add_column(
            heading, overflow="fold", no_wrap=whole, min_width=_WIDEST_SPOT if heading == "set in" else None
        )
    return table


def _overridden(lost: Claim) -> str:
    raw = shown(lost.raw, 40) if lost.raw not in (None, "") else "Mooncake's own"
    origin = "default" if lost.origin.source is Source.DEFAULT else lost.origin.spot
    return f"over {raw} ({shown(origin)})"


def value_text(spec: FieldSpec, value: Value) -> str:
    if isinstance(value, int):
        return f"{human_size(value)} ({value})" if value >= 1024 else f"{value} bytes"
    if value == "":
        return "(Mooncake picks)"
    if value is None:
        return "64 MiB (Mooncake's)" if spec.wiring.variable is None else "(not set)"
    return shown(value)


def _footnotes(process: Process) -> Iterator[RenderableType]:
    from rich.text import Text

    segment, buffer = process.size("global_segment_size"), process.size("local_buffer_size")
    if segment is None or buffer is None or process.backend is not Backend.MOONCAKE:
        return
    if not process.contributes_segment:
        yield Text(f"\nHands 0 bytes of segment to the Store: {_why_not_contributing(process)}.")
    processes, total = process.topology.processes_per_node, process.node_memory
    if total is not None:
        sum_text = f"{processes} × {human_size(buffer)} buffer + {human_size(segment)} segment = {human_size(total)}"
        yield Text(f"\nMemory on each training node: {sum_text}.")


def _why_not_contributing(process: Process) -> str:
    if process.role is Role.TRAINER:
        return f"of a node's trainers only local rank 0 contributes one, and this is rank {process.topology.local_rank}"
    return f"a {process.role.value} never contributes one"


def host_lines(host: Host) -> Iterator[tuple[str, str]]:
    """The facts of a machine that a person compares with the settings."""
    yield "host", shown(host.hostname or "name unknown")
    yield "memory", f"{amount(host.memory_total)}, {amount(host.memory_available)} available"
    yield "cgroup limit", amount(host.memory_limit)
    yield "memlock", amount(host.memlock)
    devices = host.rdma_devices
    names = "unknown" if devices is None else ", ".join(device.name for device in devices) or "none"
    yield "RDMA devices", shown(names, 200)
    addresses = [*(host.ipv4 or ()), *(host.ipv6 or ())]
    yield "addresses", shown(", ".join(addresses) or "unknown", 200)


def amount(limit: int | str | None) -> str:
    return "unknown" if limit is None else limit if isinstance(limit, str) else human_size(limit)


def finding_block(finding: Finding) -> Table:
    from rich.table import Table
    from rich.text import Text

    block = Table.grid(padding=(0, 1, 0, 0))
    block.add_column(no_wrap=True)
    block.add_column(overflow="fold")
    colour = COLOURS[finding.severity]
    about = f" · {', '.join(finding.fields)}" if finding.fields else ""
    head = Text.assemble((f"{finding.severity.value} {finding.code}", colour), f" {finding.rule}{about}")
    block.add_row(Text(MARKS[finding.severity], colour), head)
    block.add_row("", Text(finding.message))
    if finding.origin:
        block.add_row("", Text.assemble(("From ", "dim"), shown(finding.origin.spot, 200)))
    if finding.node:
        where = "Node " if len(finding.nodes) < 2 else "On "
        block.add_row("", Text.assemble((where, "dim"), shown(finding.node, 200)))
    block.add_row("", Text.assemble(("Fix: ", "green"), finding.fix))
    return block


def verdict(findings: Sequence[Finding]) -> Text:
    from rich.text import Text

    if not findings:
        return Text("No findings.", "bold green")
    counts = Counter(finding.severity for finding in findings)
    words = [f"{counts[s]} {s.value}{'s' if counts[s] > 1 else ''}" for s in Severity if counts[s]]
    end = "" if is_ok(findings) else " Mooncake is not started with this."
    colour = "bold green" if is_ok(findings) else "bold red"
    return Text(", ".join(words) + "." + end, colour)
