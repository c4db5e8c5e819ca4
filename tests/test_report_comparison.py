"""What differs between two answers, as a page and as a document."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from asking import MASTER, TWO_NODES, ask
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from mooncake_config.process import Process
from mooncake_config.report.comparison import comparison_document, print_comparison
from mooncake_config.report.documents import explain_document
from mooncake_config.report.saved import Answer, Comparison
from mooncake_config.rules import examine
from mooncake_config.topology import Topology

NODE_8 = Topology(num_nodes=2, local_rank=0, processes_per_node=8, node_ip="10.0.0.8")


def compared(here: Process, there: Process) -> Comparison:
    """Two processes by their answers."""
    return Comparison(
        *(Answer.model_validate_json(json.dumps(explain_document(one, examine(one)))) for one in (here, there))
    )


def page_of(comparison: Comparison, saved_as: str = "node-7.json", width: int = 80) -> str:
    """The page, without the blanks at line ends."""
    console = Console(file=io.StringIO(), width=width, highlight=False, markup=False, emoji=False)
    print_comparison(console, comparison, saved_as)
    assert isinstance(console.file, io.StringIO)
    return "".join(f"{line.rstrip()}\n" for line in console.file.getvalue().splitlines())


def test_page_of_two_nodes() -> None:
    """Both sides stand beside each other, each with its origin; then findings of one side, then whether they agree."""
    here = ask(
        MASTER | {"MOONCAKE_PROTOCOL": "tcp", "MOONCAKE_LOCAL_HOSTNAME": "localhost"},
        {"global_segment_size": "lots"},
        topology=NODE_8,
    )
    assert page_of(compared(here, ask(topology=TWO_NODES))) == (
        "                    here                    node-7.json\n"
        "──────────────────────────────────────────────────────────────\n"
        "node_ip             10.0.0.8                10.0.0.7\n"
        "local_hostname      localhost               10.0.0.7\n"
        "                    MOONCAKE_LOCAL_HOSTNAME Ray node IP\n"
        "protocol            tcp                     rdma\n"
        "                    MOONCAKE_PROTOCOL       default\n"
        "global_segment_size lots                    8 GiB (8589934592)\n"
        "                    init kwargs             default\n"
        "\n"
        "Findings only here:\n"
        "  error MC011 unreadable-size · global_segment_size\n"
        "  error MC101 loopback-in-multi-node · local_hostname\n"
        "\n"
        "The two cannot be in one job, where all need the same: protocol.\n"
    )


@pytest.mark.parametrize(
    ("there", "verdict"),
    [
        (ask(topology=NODE_8), "Both can be in one job: master, metadata server and protocol are the same."),
        (ask({"MOONCAKE_MASTER": "10.0.0.6:1"}), "The two cannot be in one job, where all need the same: master_ser"),
        (ask({}), "Whether both can be in one job is unknown: not both have master_server_address,"),
    ],
)
def test_verdict(there: Process, verdict: str) -> None:
    """The page ends with whether the two can be processes of one job."""
    assert f"\n\n{verdict}" in page_of(compared(ask(topology=TWO_NODES), there))


def test_findings_of_the_other() -> None:
    """A finding that only the saved answer has is told as such, under the name of its file."""
    there = ask(MASTER | {"MOONCAKE_LOCAL_HOSTNAME": "localhost"}, topology=TWO_NODES)
    page = page_of(compared(ask(topology=TWO_NODES), there), "-")
    assert "\nFindings only there:\n  error MC101 loopback-in-multi-node · local_hostname\n" in page


def test_page_of_equals() -> None:
    """Without a difference the page is one sentence."""
    process = ask(topology=TWO_NODES)
    assert page_of(compared(process, process)) == "Nothing differs between this answer and node-7.json.\n"


def test_document() -> None:
    """The document has what differs and nothing else, each with both sides."""
    here = ask(MASTER | {"MOONCAKE_PROTOCOL": "tcp"}, topology=NODE_8)
    document = comparison_document(compared(here, ask(topology=TWO_NODES)))
    assert document["equal"] is False
    assert document["process"] == {"node_ip": {"here": "10.0.0.8", "there": "10.0.0.7"}}
    assert document["fields"]["protocol"] == {
        "here": {"value": "tcp", "raw": "tcp", "source": "env", "origin": "MOONCAKE_PROTOCOL"},
        "there": {"value": "rdma", "raw": "rdma", "source": "default", "origin": "default"},
    }
    assert list(document["fields"]) == ["local_hostname", "protocol"]
    assert document["findings"] == {"here": [], "there": []}
    assert document["fingerprint"]["here"] != document["fingerprint"]["there"]
    json.dumps(document, allow_nan=False)


@given(st.text(), st.text(min_size=1), st.integers() | st.text() | st.none())
def test_nothing_foreign_reaches_the_terminal(text: str, name: str, value: int | str | None) -> None:
    """Whatever a saved answer and its file name hold, the page has no control character but line ends."""
    process = ask(topology=TWO_NODES)
    document = explain_document(process, ())
    document["fields"]["protocol"] |= {"value": value, "raw": text, "origin": text, "source": text}
    document["process"]["role"] = text
    document["findings"] = [{"code": text, "rule": text, "severity": text, "fields": [text], "origin": None}]
    saved = Answer.model_validate(document)
    page = page_of(Comparison(compared(process, process).here, saved), name)
    assert page.replace("\n", "").isprintable()


def test_field_of_another_version() -> None:
    """A field that only one of the two versions knows is shown as such."""
    process = ask(topology=TWO_NODES)
    document = explain_document(process, ())
    document["fields"]["compression"] = document["fields"].pop("chunk_bytes")
    page = page_of(Comparison(compared(process, process).here, Answer.model_validate(document)))
    assert "chunk_bytes 64 MiB (Mooncake's) (no such field)" in page
    assert "compression (no such field)" in page


@pytest.mark.parametrize("width", [60, 120])
@pytest.mark.parametrize(
    "text", ["格子" * 40, "🌙" * 80, "x" * 300, "a b " * 60], ids=["CJK", "emoji", "one word", "words"]
)
def test_page_fits_its_width(text: str, width: int) -> None:
    """No line takes more columns than the terminal has, whatever stands on a side; field names stay whole."""
    here = ask({"MOONCAKE_MASTER": text, "MOONCAKE_DEVICE": text}, {"metadata_server": text}, topology=TWO_NODES)
    page = page_of(compared(here, ask(topology=NODE_8)), f"{text[:20]}.json", width)
    assert max(map(cell_len, page.splitlines())) <= width
    assert "\nmaster_server_address " in page


OUTSIDE = "http://somebody:geheim@10.0.0.5:1/\x1b[31m\u202e"
"""What a file may hold that this library did not write."""

FOREIGN: dict[str, Callable[[dict[str, Any]], object]] = {
    "backend": lambda answer: answer.update(backend=OUTSIDE),
    "role": lambda answer: answer["process"].update(role=OUTSIDE),
    "name in process": lambda answer: answer["process"].update({OUTSIDE: True}),
    "node_ip": lambda answer: answer["topology"].update(node_ip=OUTSIDE),
    "name in topology": lambda answer: answer["topology"].update({OUTSIDE: 1}),
    "field": lambda answer: answer["fields"].update({OUTSIDE: answer["fields"]["protocol"]}),
    "value": lambda answer: answer["fields"]["protocol"].update(value=OUTSIDE),
    "raw": lambda answer: answer["fields"]["protocol"].update(value=None, raw=OUTSIDE),
    "raw object": lambda answer: answer["fields"]["protocol"].update(value=None, raw={OUTSIDE: [OUTSIDE]}),
    "raw NaN": lambda answer: answer["fields"]["protocol"].update(value=None, raw=float("nan")),
    "source": lambda answer: answer["fields"]["protocol"].update(source=OUTSIDE, origin=None),
    "origin": lambda answer: answer["fields"]["protocol"].update(origin=OUTSIDE),
    "fingerprint": lambda answer: answer.update(fingerprint=OUTSIDE),
    "finding": lambda answer: answer["findings"].append(
        {"code": OUTSIDE, "rule": OUTSIDE, "severity": OUTSIDE, "fields": [OUTSIDE], "origin": OUTSIDE}
    ),
    "long size": lambda answer: answer["fields"]["global_segment_size"].update(value=10**4200),
    "long count": lambda answer: answer["topology"].update(num_nodes=10**4200),
    "long replicas": lambda answer: answer.update(replica_num=10**4200),
}


@pytest.mark.parametrize("place", FOREIGN)
def test_an_answer_that_somebody_else_wrote(place: str) -> None:
    """Whatever a saved answer holds, the page and the document hold no password, and nothing that moves a terminal."""
    answer = explain_document(ask(topology=TWO_NODES), examine(ask(topology=TWO_NODES)))
    here = Answer.model_validate_json(json.dumps(answer))
    FOREIGN[place](answer)
    comparison = Comparison(here, Answer.model_validate_json(json.dumps(answer)))
    document = json.dumps(comparison_document(comparison), allow_nan=False)
    page = page_of(comparison)
    assert "geheim" not in document + page
    assert document.isprintable()
    assert page.replace("\n", "").isprintable()
    assert len(page) < 3000


@pytest.mark.parametrize(("saved_as", "name"), [("-", "the one on standard input"), ("node-7.json", "node-7.json")])
def test_page_of_no_difference(saved_as: str, name: str) -> None:
    """Where nothing differs one line says so, and from what."""
    same = compared(ask(topology=TWO_NODES), ask(topology=TWO_NODES))
    assert page_of(same, saved_as) == f"Nothing differs between this answer and {name}.\n"
