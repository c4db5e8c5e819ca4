"""What a survey of a cluster found: the JSON document, and the page with one table of all nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from mooncake_config.check import CheckResult
from mooncake_config.display import shown
from mooncake_config.findings import Finding
from mooncake_config.members import Cluster, Member, few_names, grouped
from mooncake_config.process import Backend, fingerprint
from mooncake_config.provenance import Source
from mooncake_config.reach import Contact, Meeting
from mooncake_config.report.documents import Document, check_document, finding_document, is_ok
from mooncake_config.report.pages import WIDE, held_text, host_lines, plain_table, print_findings, with_whole_spots
from mooncake_config.settings import FIELDS
from mooncake_config.sources import FieldSpec

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from mooncake_config.cluster import Survey

MOST_ROWS = 16
"""Kinds of node that a table shows, so that it fits a screen."""
_WIDEST_CELL = 34
_HOST_LINES = ("memory", "RDMA devices")
_LETTERS = {
    Meeting.REFUSED: "R",
    Meeting.FILTERED: "F",
    Meeting.UNREACHABLE: "U",
    Meeting.WRONG_INTERFACE: "W",
    Meeting.UNKNOWN_NAME: "N",
    Meeting.CLOSED: "-",
    Meeting.NOT_TRIED: "?",
}
_WORDED_UP_TO = 5
"""Nodes up to which a picture of who reaches whom has room for words."""


def cluster_document(survey: Survey) -> Document:
    """The JSON answer of ``check --cluster``; its schema is ``schemas/check-cluster.schema.json``."""
    cluster = survey.cluster
    return {
        "version": 1,
        "ok": is_ok(survey.findings),
        "nodes": {member.name: _member_document(member) for member in cluster.members},
        "software": {member.name: dict(member.software) for member in cluster.members},
        "reach": [_contact_document(contact) for contact in cluster.contacts],
        "findings": [_finding_document(finding) for finding in survey.findings],
        "fingerprint": cluster_fingerprint(cluster),
    }


def _member_document(member: Member) -> Document | None:
    return check_document(CheckResult(member.node, member.findings)) if member.node else None


def _contact_document(contact: Contact) -> Document:
    return {
        "from": contact.source,
        "to": contact.to,
        "target": contact.target,
        "answer": contact.meeting.value,
        "detail": contact.detail,
        "seconds": round(contact.seconds, 6),
    }


def _finding_document(finding: Finding) -> Document:
    return {**finding_document(finding), "nodes": list(finding.nodes)}


def cluster_fingerprint(cluster: Cluster) -> str | None:
    """The fingerprint that all nodes have; null where they differ, where one has none, and where one gave no answer."""
    found = {fingerprint(member.node.process) if member.node else None for member in cluster.members}
    return found.pop() if len(found) == 1 else None


@contextmanager
def progress_bar() -> Iterator[Callable[[str, int, int], None]]:
    """What a survey tells of its progress, as a bar on standard error; nothing is shown where that is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(stderr=True)
    # FORCE_COLOR makes a terminal of a pipe for colours, not for a bar; one that is only disabled ends in a newline in
    # older releases of rich.
    console.quiet = not console.file.isatty()
    columns = (TextColumn("{task.description} the nodes"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("asking", total=None)

        def tell(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total)

        yield tell


def print_survey(console: Console, survey: Survey) -> None:
    """The page of ``check --cluster``: what all nodes share, the table of nodes, who reaches whom, the findings."""
    cluster = survey.cluster
    if cluster.members:
        for block in _blocks(cluster, console.width):
            console.print(block)
    print_findings(console, survey.findings)


def _blocks(cluster: Cluster, width: int) -> Iterator[Table | str]:
    backend = cluster.driver.backend
    yield f"{backend.value} object store: {_who(cluster)} on {_count(len(cluster.members))} of Ray"
    known = [aspect for aspect in _aspects(cluster) if any(aspect.of(member) for member in cluster.asked)]
    values = {aspect.name: {aspect.of(member) for member in cluster.asked} for aspect in known}
    yield ""
    shared = [aspect for aspect in known if len(values[aspect.name]) == 1]
    yield with_whole_spots((_shared if width >= WIDE else _shared_narrow)(cluster, shared), width)
    yield ""
    yield from _differing(cluster, [aspect for aspect in known if len(values[aspect.name]) > 1], width)
    if backend is Backend.MOONCAKE and cluster.contacts:
        yield ""
        yield from _reach(cluster)


def _who(cluster: Cluster) -> str:
    asked = cluster.asked
    return asked[0].node.process.role.value if asked and asked[0].node else "nothing known"


def _count(number: int) -> str:
    return "1 node" if number == 1 else f"{number} nodes"


@dataclass(frozen=True)
class _Aspect:
    """One thing that may differ between nodes: its name, and its text on a node with where that is set."""

    name: str
    of: Callable[[Member], tuple[str, str]]


def _aspects(cluster: Cluster) -> Iterator[_Aspect]:
    for spec in FIELDS if cluster.driver.backend is Backend.MOONCAKE else ():
        yield _Aspect(spec.name, partial(_field_cell, spec))
    for name in dict.fromkeys(name for member in cluster.members for name in member.software):
        yield _Aspect(name, partial(_software_cell, name))
    for name in _HOST_LINES:
        yield _Aspect(name, partial(_host_cell, name))


def _field_cell(spec: FieldSpec, member: Member) -> tuple[str, str]:
    if member.node is None:
        return "?", ""
    process = member.node.process
    winner = process.winner(spec.name)
    spot = "" if winner is None or winner.origin.source is Source.DEFAULT else shown(winner.origin.spot)
    if spec.wiring.from_ray and process.own_endpoint:
        return _hostname_text(member, process.own_endpoint.host), spot
    return held_text(process, spec), spot


def _hostname_text(member: Member, host: str) -> str:
    """The address that a node advertises; in words where it is its Ray address, so that such nodes are alike."""
    return "its Ray node IP" if member.node and host == member.node.process.node.address else shown(host)


def _software_cell(name: str, member: Member) -> tuple[str, str]:
    return (shown(member.software[name] or "not installed") if name in member.software else "?"), ""


def _host_cell(name: str, member: Member) -> tuple[str, str]:
    if member.node is None:
        return "?", ""
    text = dict(host_lines(member.node.host))[name]
    return text.partition(",")[0] if name == "memory" else text, ""


def _shared(cluster: Cluster, aspects: Sequence[_Aspect]) -> Table:
    """What is the same on every node that answered, in the form of ``explain``."""
    from rich.text import Text

    table = plain_table(_sharing(cluster), "value", "set in")
    for aspect in aspects:
        value, spot = aspect.of(cluster.asked[0])
        table.add_row(Text(aspect.name), Text(value, "bold"), Text(spot))
    return table


def _shared_narrow(cluster: Cluster, aspects: Sequence[_Aspect]) -> Table:
    """The same, where the place has no room beside the value: it stands below."""
    from rich.text import Text

    table = plain_table(_sharing(cluster), "value, and where it was set")
    for aspect in aspects:
        value, spot = aspect.of(cluster.asked[0])
        table.add_row(Text(aspect.name), Text.assemble((value, "bold"), (f"\n{spot}" if spot else "", "dim")))
    return table


def _sharing(cluster: Cluster) -> str:
    where = cluster.names(cluster.asked)
    return f"on {where}" if len(cluster.asked) < 2 else f"same on {where}"


def _differing(cluster: Cluster, aspects: Sequence[_Aspect], width: int) -> Iterator[Table | str]:
    """The nodes, alike ones in one row, with what differs between them; in several parts where that is too wide."""
    if any(member.node is None for member in cluster.members):
        aspects = [_Aspect("answer", _answer_cell), *aspects]
    rows = grouped(cluster.members, lambda member: tuple(aspect.of(member) for aspect in aspects))
    shown_rows = list(rows.items())[:MOST_ROWS]
    names = [_row_name(members) for _, members in shown_rows]
    if not aspects:
        alike = ", all alike" if len(cluster.members) > 1 else ""
        yield f"{_count(len(cluster.members))}{alike}: {names[0]}"
        return
    room = width - max(map(len, ("nodes", *names)))
    for start, end in _parts(aspects, [cells for cells, _ in shown_rows], room):
        yield _part(aspects, shown_rows, names, (start, end))
    left = list(rows.values())[MOST_ROWS:]
    if left:
        yield f"and {len(left)} other kinds of node, {_count(sum(map(len, left)))} (--format json has all)"


def _answer_cell(member: Member) -> tuple[str, str]:
    if member.node:
        return "yes", ""
    return ("no", "") if member.silence else ("no package", "") if member.lacks else ("other version", "")


def _row_name(members: Sequence[Member]) -> str:
    names = [f"{member.name} (head)" if member.is_head else member.name for member in members]
    return few_names(names, 0)


_Cells = tuple[tuple[str, str], ...]


def _parts(aspects: Sequence[_Aspect], rows: Sequence[_Cells], room: int) -> Iterator[tuple[int, int]]:
    """Ranges of columns that fit beside the nodes, one column at least."""
    start, used = 0, 0
    for place, aspect in enumerate(aspects):
        texts = (aspect.name, *(text for row in rows for text in row[place]))
        needed = 1 + min(max(map(len, texts)), _WIDEST_CELL)
        if place > start and used + needed > room:
            yield start, place
            start, used = place, 0
        used += needed
    yield start, len(aspects)


def _part(
    aspects: Sequence[_Aspect],
    rows: Sequence[tuple[_Cells, Sequence[Member]]],
    names: Sequence[str],
    part: tuple[int, int],
) -> Table:
    """One table of nodes; what is not as on the largest group of nodes is bold."""
    from rich.text import Text

    start, end = part
    usual = [_usual(rows, place) for place in range(len(aspects))]
    table = plain_table("nodes", *(aspect.name for aspect in aspects[start:end]))
    for name, (cells, _) in zip(names, rows, strict=True):
        row = [
            Text.assemble((value, "bold" if cells[place] != usual[place] else ""), (f"\n{spot}" if spot else "", "dim"))
            for place, (value, spot) in enumerate(cells)
        ]
        table.add_row(Text(name), *row[start:end])
    return table


def _usual(rows: Sequence[tuple[_Cells, Sequence[Member]]], place: int) -> tuple[str, str] | None:
    """What most nodes have; None where no value is more usual than another."""
    counts: Counter[tuple[str, str]] = Counter()
    for cells, members in rows:
        counts[cells[place]] += len(members)
    (first, most), *others = counts.most_common(2)
    return None if others and others[0][1] == most else first


def _reach(cluster: Cluster) -> Iterator[Table | str]:
    """Who reaches whom: a picture of all pairs, or, of more nodes than have room, what came of the pairs tried."""
    tried, pairs = len(cluster.contacts), cluster.pairs
    times = [contact.seconds for contact in cluster.contacts if contact.meeting.is_good]
    counts = Counter(contact.meeting for contact in cluster.contacts)
    parts = [f"{counts[kind]} {kind.value}" for kind in Meeting if counts[kind]]
    span = ", " + " to ".join(dict.fromkeys(map(_milliseconds, (min(times), max(times))))) if times else ""
    which = "every node to every other" if tried == pairs else f"{tried} of {pairs}, each with the head and a neighbour"
    yield f"connections, {which}: {', '.join(parts)}{span}"
    if tried == pairs:
        yield ""
        yield _picture(cluster)
        if len(cluster.members) > _WORDED_UP_TO and len(counts) > 1:
            yield ", ".join(f"{letter} {kind.value}" for kind, letter in _LETTERS.items() if counts[kind])


def _picture(cluster: Cluster) -> Table:
    from rich.text import Text

    met = {(contact.source, contact.to): contact for contact in cluster.contacts}
    names = [member.name for member in cluster.members if member.post]
    table = plain_table("", "from, to", *map(str, range(1, len(names) + 1)))
    for number, source in enumerate(names, 1):
        cells = [_contact_cell(met, source, to, len(names)) for to in names]
        styled = [Text(text, "" if good else "bold red") for text, good in cells]
        table.add_row(Text(str(number)), Text(shown(source)), *styled)
    return table


def _contact_cell(met: Mapping[tuple[str, str], Contact], source: str, to: str, total: int) -> tuple[str, bool]:
    contact = met.get((source, to))
    if contact is None:
        return ("·", True) if source == to else ("?", False)
    if contact.meeting.is_good:
        words = _milliseconds(contact.seconds)
        return (words if total <= _WORDED_UP_TO else words.removesuffix(" ms")), True
    return (contact.meeting.value if total <= _WORDED_UP_TO else _LETTERS[contact.meeting]), False


def _milliseconds(seconds: float) -> str:
    """Whole milliseconds, since what is below is noise."""
    whole = round(seconds * 1e3)
    return "<1 ms" if whole < 1 else f"{whole} ms"
