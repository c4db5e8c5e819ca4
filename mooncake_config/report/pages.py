"""Pages for a person, from a process, its findings, and rules: tables and blocks of text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from mooncake_config.display import shown
from mooncake_config.findings import Finding, Severity
from mooncake_config.process import Backend, Process, Value
from mooncake_config.provenance import Claim, Origin, Source
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
WIDE = 79
"""Columns from which a field, a size, its source and the widest spot stand side by side."""
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
    lines = re.sub(_EXAMPLE, r"\1mooncake-config ", _reflowed(rule.page)).splitlines()
    text = Text("\n".join(_continued(line, console.width) for line in lines))
    text.highlight_regex(_LABELS, "bold")
    console.print(text)


_EXAMPLE = r"(?m)^(    .*?)(?=\b(?:explain|check|plan) -)"
"""An example of a rule's page, up to its command."""

_LABELS = r"(?m)^(?:Why|Fix|Fires|Silent|Example):"
"""What begins a part of a rule's page."""


def _reflowed(page: str) -> str:
    """The page with each paragraph on one line, so that the terminal's width decides where lines end."""
    return re.sub(r"(?<=[^\n:])\n(?=[^\s])(?!(?:Fires|Silent|Example):)", " ", page)


def _continued(line: str, width: int) -> str:
    """An example on as many lines as a shell needs backslashes for; any other line as it is."""
    at = line.rfind(" --", 0, width - 2)
    if not line.startswith("    ") or len(line) <= width or at <= len(_CONTINUED):
        return line
    return f"{line[:at]} \\\n{_continued(_CONTINUED + line[at + 1 :], width)}"


_CONTINUED = " " * 8


def print_explanation(
    console: Console, process: Process, findings: Sequence[Finding], specs: Sequence[FieldSpec] = FIELDS
) -> None:
    """The page of ``explain``: who is asked about, each field with its origin, then the findings, worst first."""
    _print_settings(console, process, findings, specs)
    print_findings(console, findings)


def _print_settings(
    console: Console, process: Process, findings: Sequence[Finding], specs: Sequence[FieldSpec] = FIELDS
) -> None:
    from rich.text import Text

    console.print(_heading(process))
    console.print()
    if specs:
        cells = {spec.name: _value_cell(process, spec, findings) for spec in specs}
        table = (_wide_field_table if console.width >= WIDE else _narrow_field_table)(process, cells)
        console.print(with_whole_spots(table, console.width))
    if len(specs) < len(FIELDS):
        rest = f"the other {len(FIELDS) - len(specs)} fields" if specs else "any field"
        console.print(Text(f"Nobody set {rest}.", "dim"))
    for line in _footnotes(process):
        console.print(line)


def print_check(console: Console, result: CheckResult) -> None:
    """The page of ``check``: the settings, the machine, what answered, then the findings, worst first."""
    from rich.table import Table
    from rich.text import Text

    _print_settings(console, result.node.process, result.findings)
    console.print()
    facts = Table.grid(padding=(0, 2, 0, 0))
    for name, fact in host_lines(result.node.host):
        facts.add_row(Text(name), Text(fact))
    console.print(facts)
    console.print()
    table = plain_table("asked", "target, answer, time")
    for probe in result.probe_facts:
        answer = (f"\n{shown(probe['answer'], 200)}", "bold")
        after = (f", {probe['seconds']:.2f} s", "dim")
        table.add_row(Text(shown(probe["what"])), Text.assemble(shown(probe["target"], 200), answer, after))
    console.print(table)
    print_findings(console, result.findings)


def print_findings(console: Console, findings: Sequence[Finding]) -> None:
    """The findings, worst first, and their count."""
    console.print()
    print_bare_findings(console, findings)
    if findings:
        console.print()
    console.print(verdict(findings))


def print_bare_findings(console: Console, findings: Sequence[Finding]) -> None:
    """The findings, worst first, a blank line between two; nothing where there is none."""
    for number, finding in enumerate(findings):
        if number:
            console.print()
        console.print(finding_block(finding))


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


def _wide_field_table(process: Process, cells: Mapping[str, Text]) -> Table:
    from rich.text import Text

    table = plain_table("field", "value", "source", "set in")
    for name, cell in cells.items():
        winner = process.winner(name)
        spot = "" if winner is None or winner.origin.source is Source.DEFAULT else shown(winner.origin.spot)
        lost = [(f"\n{_overridden(claim)}", "dim") for claim in process.ledger.overridden(name)]
        source = Text(winner.origin.source.value if winner else "nobody")
        table.add_row(Text(name), cell, source, Text.assemble(spot, *lost))
    return table


def _narrow_field_table(process: Process, cells: Mapping[str, Text]) -> Table:
    from rich.text import Text

    table = plain_table("field", "value, and where it was set")
    for name, cell in cells.items():
        winner = process.winner(name)
        spot = "nobody" if winner is None else shown(winner.origin.spot)
        lost = [(f"\n{_overridden(claim)}", "dim") for claim in process.ledger.overridden(name)]
        table.add_row(Text(name), Text.assemble(cell, f"\n{spot}", *lost))
    return table


def _value_cell(process: Process, spec: FieldSpec, findings: Sequence[Finding]) -> Text:
    """A value in the colour of the worst that was found about it."""
    from rich.text import Text

    about = [finding.severity for finding in findings if spec.name in finding.fields]
    return Text(held_text(process, spec), COLOURS[about[0]] if about else "bold")


def plain_table(*headings: str) -> Table:
    """A table with a line below its headings and no other; long texts fold."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=0, pad_edge=False)
    for heading in headings:
        whole = heading in ("field", "source", "code", "severity", "asked")
        table.add_column(heading, overflow="fold", no_wrap=whole)
    return table


def with_whole_spots(table: Table, width: int) -> Table:
    """The table with room for the widest spot in its last column, ``set in``, where so many columns have that.

    The columns that fold get what is left. A least width alone would not do: rich cuts what stands beyond the terminal.
    """
    from rich.cells import cell_len

    *others, spots = table.columns
    if spots.header != "set in" or width < WIDE:
        return table
    rigid = sum(max(map(cell_len, map(str, (one.header, *one.cells)))) for one in others if one.no_wrap)
    folding = [one for one in others if not one.no_wrap]
    spots.min_width = _WIDEST_SPOT
    for column in folding:
        column.max_width = (width - rigid - len(others) - _WIDEST_SPOT) // len(folding)
    return table


def _overridden(lost: Claim) -> str:
    raw = shown(lost.raw, 40) if lost.raw not in (None, "") else "Mooncake's own"
    origin = "default" if lost.origin.source is Source.DEFAULT else lost.origin.spot
    return f"over {raw} ({shown(origin)})"


def held_text(process: Process, spec: FieldSpec) -> str:
    """The value of a field that a process holds, in words; as it was written, where it is malformed."""
    winner, value = process.winner(spec.name), process.values[spec.name]
    if winner is not None and winner.raw is not None and value is None:
        return shown(winner.raw)
    return value_text(spec, value)


def value_text(spec: FieldSpec, value: Value) -> str:
    """A value of a field in words: a size in a unit and in bytes, and what it means that there is none."""
    if isinstance(value, int):
        return f"{human_size(value)} ({value})" if value >= 1024 else f"{value} bytes"
    if value == "":
        return "(Mooncake picks)"
    if value is None:
        return "64 MiB (Mooncake's)" if spec.wiring.variable is None else "(not set)"
    return shown(value)


def _footnotes(process: Process) -> Iterator[RenderableType]:
    from rich.text import Text

    if process.open_fields:
        yield Text(
            f"\nOnly a run of the script tells {', '.join(process.open_fields)}; above is what holds without it."
        )
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
    """A number of bytes in a unit; a word that stands for one, such as ``unlimited``, as it is. None is unknown."""
    return "unknown" if limit is None else limit if isinstance(limit, str) else human_size(limit)


def finding_block(finding: Finding) -> Table:
    """One finding: mark, severity and code, then the fact, the place, the nodes and the way out."""
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
        block.add_row("", Text.assemble(("From ", "dim"), _place(finding.origin)))
    if finding.node:
        where = "Node " if len(finding.nodes) < 2 else "On "
        block.add_row("", Text.assemble((where, "dim"), shown(finding.node, 200)))
    block.add_row("", Text.assemble(("Fix: ", "green"), finding.fix))
    return block


def _place(origin: Origin) -> str:
    return "the built-in default" if origin.source is Source.DEFAULT else shown(origin.spot, 200)


def verdict(findings: Sequence[Finding], refusal: str = "Mooncake is not started with this.") -> Text:
    """How many findings there are, and what follows from an error among them."""
    from rich.text import Text

    if not findings:
        return Text("No findings.", "bold green")
    counts = Counter(finding.severity for finding in findings)
    words = [f"{counts[s]} {s.value}{'s' if counts[s] > 1 else ''}" for s in Severity if counts[s]]
    end = "" if is_ok(findings) else f" {refusal}"
    colour = "bold green" if is_ok(findings) else "bold red"
    return Text(", ".join(words) + "." + end, colour)
