"""The answer of ``plan``: the JSON document, and the page with a bar for each kind of node."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mooncake_config.display import masked
from mooncake_config.init_kwargs import FLAG as INIT_KWARGS_FLAG
from mooncake_config.plan import WATERMARK, NodeShare, Plan, Sizes, written_size
from mooncake_config.process import Backend, Process
from mooncake_config.protocols import VERBS
from mooncake_config.provenance import Source
from mooncake_config.report.documents import Document, finding_document, is_ok
from mooncake_config.report.pages import plain_table, print_bare_findings, verdict
from mooncake_config.settings import FIELDS
from mooncake_config.sizes import human_size

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from mooncake_config.sizing import PlanResult

_LABEL = len("head and trainer ")


def plan_document(result: PlanResult) -> Document:
    """The JSON answer of ``plan``; its schema is ``schemas/plan.schema.json``. Sizes are bytes, unknown is null."""
    plan, process = result.plan, result.plan.process
    return {
        "version": 1,
        "ok": is_ok(result.findings),
        "inputs": {
            "backend": process.backend.value,
            "num_nodes": process.topology.num_nodes,
            "trainer_nodes": process.topology.trainer_nodes,
            "processes_per_node": process.topology.processes_per_node,
            "replica_num": process.replica_num,
            "protocol": process.text("protocol"),
            "pinned": pins_memory(process),
            "global_segment_size": process.size("global_segment_size"),
            "local_buffer_size": process.size("local_buffer_size"),
            "rollout_bytes": plan.load.rollout_bytes,
            "in_flight": plan.load.in_flight,
            "eviction_watermark": float(WATERMARK),
        },
        "nodes": [_node_document(node, plan.memory) for node in plan.nodes],
        "capacity": plan.capacity,
        "rollouts_that_fit": plan.rollouts_that_fit,
        "proposal": _proposal_document(plan),
        "findings": [finding_document(finding) for finding in result.findings],
    }


def pins_memory(process: Process) -> bool | None:
    """Whether a store pins its memory when it is opened (RDMA) or only reserves it (TCP); None: unknown."""
    if process.uses_verbs:
        return True
    return False if process.text("protocol") in {"tcp", *VERBS} else None


def _node_document(node: NodeShare, memory: int | None) -> Document:
    return {
        "role": node.role.value,
        "count": node.count,
        "segment": node.segment,
        "buffers": node.buffers,
        "total": node.total,
        "memory": memory,
    }


def _proposal_document(plan: Plan) -> Document | None:
    sizes = plan.proposal
    if not isinstance(sizes, Sizes):
        return None
    return {"global_segment_size": sizes.segment, "local_buffer_size": sizes.buffer}


def flag_to_paste(process: Process, sizes: Sizes) -> str:
    """The init kwargs of the command line with these sizes in them, as one shell word; a password in it is ``***``."""
    winners = ((spec.name, process.winner(spec.name)) for spec in FIELDS)
    kwargs: dict[str, object] = {
        name: process.values[name] for name, winner in winners if winner and winner.origin.source is Source.CLI
    }
    kwargs |= {
        "global_segment_size": written_size(sizes.segment),
        "local_buffer_size": written_size(sizes.buffer),
    }
    shown = {
        name: masked(value) if isinstance(value, str) else value for name, value in kwargs.items() if value is not None
    }
    return f"{INIT_KWARGS_FLAG} {shlex.quote(json.dumps(shown))}"


@dataclass(frozen=True)
class _Glyphs:
    """What bars and sums are drawn with; each kind has a glyph of its own, so a bar is read without colours."""

    buffers: str
    segment: str
    free: str
    times: str
    by: str


_UNICODE = _Glyphs("▒", "█", "·", "×", "÷")
_ASCII = _Glyphs("=", "#", ".", "x", "/")


def print_plan(console: Console, result: PlanResult) -> None:
    """The page of ``plan``: each kind of node in numbers and as a bar, what fits, sizes to paste, then the findings."""
    plan = result.plan
    console.print(_heading(plan))
    if plan.process.backend is Backend.MOONCAKE:
        glyphs = _ASCII if console.options.ascii_only else _UNICODE
        console.print()
        console.print(_node_table(plan, glyphs))
        console.print()
        for line in (*_bars(plan, console.width, glyphs), _legend(plan, glyphs)):
            console.print(line)
        console.print()
        for name, words in _what_fits(plan, glyphs):
            console.print(_named(name, words))
        _print_proposal(console, plan)
    console.print()
    print_bare_findings(console, result.findings)
    if result.findings:
        console.print()
    console.print(verdict(result.findings, "The job does not run as planned."))


def _heading(plan: Plan) -> Text:
    from rich.text import Text

    process, topology = plan.process, plan.process.topology
    head = (f"{process.backend.value} object store", "bold")
    if process.backend is not Backend.MOONCAKE:
        return Text.assemble(head, ": Ray's own store holds the rollouts, and Mooncake takes no memory")
    nodes, trainers, each = topology.num_nodes, topology.trainer_nodes, topology.processes_per_node
    on_each = "" if each is None else " on each"
    shape = f"{_count(nodes, 'node')}, {_count(trainers, 'training node')}, {_count(each, 'trainer')}{on_each}"
    return Text.assemble(head, f": {shape}\n{_memory_words(process)}")


def _count(number: int | None, what: str) -> str:
    return f"unknown number of {what}s" if number is None else f"{number} {what}{'s' if number > 1 else ''}"


def _memory_words(process: Process) -> str:
    protocol = process.text("protocol") or "unknown protocol"
    said = {
        True: "all memory below is pinned when a store opens",
        False: "memory below is reserved when a store opens, and taken as it is filled",
        None: "whether memory below is pinned or only reserved is unknown",
    }
    return f"{protocol}: {said[pins_memory(process)]}"


def _node_table(plan: Plan, glyphs: _Glyphs) -> Table:
    table = plain_table("node", "count", "buffers", "segment", "total", "of memory")
    for node in plan.nodes:
        buffers = _size(node.buffers)
        if node.clients and node.sizes:
            buffers = f"{node.clients} {glyphs.times} {human_size(node.sizes.buffer)}"
        count = "unknown" if node.count is None else str(node.count)
        share = "unknown"
        if node.total is not None and plan.memory:
            share = _percent(node.total, plan.memory)
        table.add_row(node.role.value, count, buffers, _size(node.segment), _size(node.total), share)
    return table


def _percent(part: int, whole: int) -> str:
    """Rounded, but for what is nearly all: more than that reads as more, and less as less."""
    percent = round(100 * part / whole)
    percent = max(percent, 101) if part > whole else min(percent, 99) if part < whole else 100
    return f"{percent} %" if percent or not part else "<1 %"


def _size(size: int | None) -> str:
    return "unknown" if size is None else human_size(size) if size else "none"


def _bars(plan: Plan, columns: int, glyphs: _Glyphs) -> Iterator[Text]:
    """A bar for each kind of node, on one scale, with a mark where its memory ends."""
    from rich.text import Text

    width = columns - _LABEL - 1
    longest = max([plan.memory or 0, *(node.total or 0 for node in plan.nodes), 1])
    for node in plan.nodes:
        label = f"{node.role.value:<{_LABEL}}"
        if node.total is None:
            yield Text(f"{label}unknown")
        else:
            yield Text.assemble(label, _bar(node, plan.memory, width / longest, glyphs))


def _bar(node: NodeShare, memory: int | None, cells_per_byte: float, glyphs: _Glyphs) -> Text:
    from rich.text import Text

    total, end = _cells(node.total or 0, cells_per_byte), _cells(memory or 0, cells_per_byte)
    buffers = min(_cells(node.buffers or 0, cells_per_byte), total - bool(node.segment))
    cells = [(glyphs.buffers, "blue")] * buffers + [(glyphs.segment, "cyan")] * (total - buffers)
    if memory is None:
        return Text.assemble(*cells)
    free = [(glyphs.free, "dim")] * (end - total)
    beyond = [(glyph, "bold red") for glyph, _ in cells[end:]]
    return Text.assemble(*cells[:end], *free, ("|", "bold"), *beyond)


def _cells(size: int, cells_per_byte: float) -> int:
    """Cells of a bar, one at least for anything."""
    return max(round(size * cells_per_byte), 1) if size else 0


def _legend(plan: Plan, glyphs: _Glyphs) -> Text:
    from rich.text import Text

    kinds = f"{glyphs.buffers} buffers  {glyphs.segment} segment"
    if plan.memory is None:
        return Text(f"{kinds}  (how much memory a node has is unknown)", "dim")
    whole = f"| {human_size(plan.memory)}, this host's memory for every node"
    return Text(f"{kinds}  {glyphs.free} free  {whole}", "dim")


def _what_fits(plan: Plan, glyphs: _Glyphs) -> Iterator[tuple[str, str]]:
    """The capacity and the rollouts that it holds, as sums that can be checked."""
    segment, trainers = plan.process.size("global_segment_size"), plan.process.topology.trainer_nodes
    if plan.capacity is None or segment is None:
        yield "Store capacity", "unknown" + (": tell --num-nodes or --trainer-nodes" if trainers is None else "")
    else:
        yield "Store capacity", f"{trainers} {glyphs.times} {human_size(segment)} = {human_size(plan.capacity)}"
    load, fit = plan.load, plan.rollouts_that_fit
    if load.rollout_bytes is None:
        yield "rollouts", "unknown: tell the size of one with --rollout-bytes"
    elif fit is None or plan.capacity is None:
        yield "rollouts", "unknown"
    else:
        copies = plan.copies
        one = f"{human_size(load.rollout_bytes)} {glyphs.times} {copies} replica{'s' if copies > 1 else ''}"
        room = f"{human_size(plan.capacity)} {glyphs.times} {float(WATERMARK)}"
        yield "rollouts", f"{room} {glyphs.by} ({one}): {fit} fit{_wanted(load.in_flight)}"


def _wanted(in_flight: int | None) -> str:
    return "" if in_flight is None else f", {in_flight} in flight"


def _named(name: str, words: str) -> Table:
    from rich.table import Table
    from rich.text import Text

    line = Table.grid(padding=(0, 1, 0, 0))
    line.add_column(no_wrap=True, min_width=_LABEL - 1)
    line.add_column(overflow="fold")
    line.add_row(Text(name), Text(words))
    return line


def _print_proposal(console: Console, plan: Plan) -> None:
    """The flag on a line of its own, never wrapped: a terminal that wraps it lets it be copied whole."""
    from rich.text import Text

    sizes = plan.proposal
    if not isinstance(sizes, Sizes):
        return
    flag = flag_to_paste(plan.process, sizes)
    judged = plan.memory is not None and all(node.total is not None for node in plan.nodes)
    unjudged = "" if judged else ", as far as is known"
    console.print()
    console.print(Text(f"{'These sizes fit' if plan.fits_as_it_is else 'Sizes that fit'}{unjudged}:"))
    console.print(Text(flag, "green"), soft_wrap=True)
    if "***" in flag:
        console.print(Text("*** stands for a password: put it back.", "dim"))
