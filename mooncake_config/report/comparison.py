"""What differs between two answers, as a page for a person and as a document for a program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooncake_config.display import shown
from mooncake_config.findings import Severity
from mooncake_config.report.documents import Document
from mooncake_config.report.pages import COLOURS, plain_table, value_text
from mooncake_config.report.saved import Comparison, SavedField, SavedFinding
from mooncake_config.settings import FIELDS

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_SPECS = {spec.name: spec for spec in FIELDS}


def comparison_document(comparison: Comparison) -> Document:
    """The JSON answer of ``explain --diff``: only what differs, each with both sides."""
    here, there = comparison.findings()
    return {
        "version": 1,
        "equal": comparison.equal,
        "process": {name: {"here": one, "there": other} for name, one, other in comparison.circumstances()},
        "fields": {name: {"here": _side(one), "there": _side(other)} for name, one, other in comparison.fields()},
        "findings": {
            "here": [finding.model_dump() for finding in here],
            "there": [finding.model_dump() for finding in there],
        },
        "fingerprint": {"here": comparison.here.fingerprint, "there": comparison.there.fingerprint},
    }


def _side(field: SavedField | None) -> Document | None:
    return field.model_dump() if field else None


def print_comparison(console: Console, comparison: Comparison, saved_as: str) -> None:
    """The page of ``explain --diff``: what differs, this run on the left, the saved answer on the right."""
    from rich.text import Text

    there, inside = ("there", "there") if saved_as == "-" else (shown(saved_as), f"in {shown(saved_as)}")
    if comparison.equal:
        named = "the one on standard input" if saved_as == "-" else there
        console.print(Text(f"Nothing differs between this answer and {named}.", "bold green"))
        return
    table = plain_table("", "here", "")
    table.columns[0].no_wrap, table.columns[2].header = True, there
    for name, one, other in comparison.circumstances():
        table.add_row(Text(shown(name)), Text(_plain(one), "bold"), Text(_plain(other), "bold"))
    for name, here, saved in comparison.fields():
        style = "dim" if here and saved and here.value == saved.value and here.raw == saved.raw else "bold"
        table.add_row(Text(shown(name)), _cell(name, here, style), _cell(name, saved, style))
    if table.row_count:
        console.print(table)
    for side, findings in zip(("here", inside), comparison.findings(), strict=True):
        _print_findings(console, side, findings)
    console.print()
    console.print(_agreement(comparison))


def _plain(value: object) -> str:
    return "unknown" if value is None else shown(value) if isinstance(value, str) else str(value).lower()


def _cell(name: str, field: SavedField | None, style: str) -> Text:
    from rich.text import Text

    if field is None:
        return Text("(no such field)", "dim")
    spec = _SPECS.get(name)
    malformed = field.value is None and field.raw is not None
    value = shown(field.raw) if malformed or spec is None else value_text(spec, field.value)
    where = "nobody" if field.source is None else shown(field.origin or field.source)
    return Text.assemble((value, "red" if malformed else style), (f"\n{where}", "dim"))


def _print_findings(console: Console, side: str, findings: list[SavedFinding]) -> None:
    from rich.text import Text

    if findings:
        console.print(Text(f"\nFindings only {side}:", "bold"))
    for finding in findings:
        colour = COLOURS[Severity(finding.severity)] if finding.severity in set(Severity) else ""
        about = f" · {', '.join(map(shown, finding.fields))}" if finding.fields else ""
        head = (f"  {shown(finding.severity)} {shown(finding.code)}", colour)
        console.print(Text.assemble(head, f" {shown(finding.rule)}{about}"))


def _agreement(comparison: Comparison) -> Text:
    from rich.text import Text

    agreed = [spec.name for spec in FIELDS if spec.wiring.agreed]
    here, there = comparison.here.fingerprint, comparison.there.fingerprint
    if here is None or there is None:
        names = f"{', '.join(agreed[:-1])} and {agreed[-1]}"
        return Text(f"Whether both can be in one job is unknown: not both have {names}.", "bold yellow")
    if here == there:
        return Text("Both can be in one job: master, metadata server and protocol are the same.", "bold green")
    different = ", ".join(name for name, _, _ in comparison.fields() if name in agreed) or "the fingerprint"
    return Text(f"The two cannot be in one job, where all need the same: {different}.", "bold red")
