"""The page and the document of a survey, from clusters that are given: what folds, what stands out, what fits."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from clusters import GOOD, cluster_of
from jsonschema import Draft7Validator
from rich.console import Console
from test_report_pages import WIDE, columns_of

from mooncake_config.cluster import Survey
from mooncake_config.members import Cluster, Member
from mooncake_config.process import Backend
from mooncake_config.reach import Contact, Meeting
from mooncake_config.report.cluster import MOST_ROWS, cluster_document, cluster_fingerprint, print_survey
from mooncake_config.rules import examine_cluster
from mooncake_config.schema import cluster_schema

SCHEMA = Draft7Validator(cluster_schema())
SMALL = f"{GOOD} MOONCAKE_LOCAL_BUFFER_SIZE=64mb MOONCAKE_GLOBAL_SEGMENT_SIZE=64mb"


def surveyed(*lines: str, backend: Backend = Backend.MOONCAKE, among: Sequence[Contact] = ()) -> Survey:
    """A survey of the nodes in a table, the first of which is the head."""
    cluster = cluster_of(lines, backend)
    first, *others = cluster.members or (Member("", ""),)
    members = (replace(first, is_head=True), *others) if cluster.members else ()
    cluster = replace(cluster, members=members, contacts=(*cluster.contacts, *among))
    return Survey(cluster, examine_cluster(cluster))


def page(survey: Survey, width: int = 80, **console: Any) -> str:
    """What is printed, without the blanks at line ends."""
    out = Console(file=io.StringIO(), width=width, highlight=False, markup=False, emoji=False, **console)
    print_survey(out, survey)
    assert isinstance(out.file, io.StringIO)
    return "".join(f"{line.rstrip()}\n" for line in out.file.getvalue().splitlines())


def all_pairs(cluster: Cluster, meeting: Meeting = Meeting.REACHED) -> list[Contact]:
    """Every connection, ended alike."""
    names = [member.name for member in cluster.members]
    return [Contact(a, b, f"{b}:15000", meeting, 0.0004) for a in names for b in names if a != b]


def test_page_of_two_alike() -> None:
    """What is the same on all nodes stands once; nodes that are alike are one line; each pair has its time."""
    lines = (f"job {SMALL}", f"10.0.0.5 {SMALL}", f"10.0.0.7 {SMALL}")
    survey = surveyed(*lines, among=all_pairs(cluster_of(lines)))
    assert page(survey) == (
        "mooncake object store: trainer on 2 nodes of Ray\n"
        "\n"
        "same on all 2 nodes   value               set in\n"
        "──────────────────────────────────────────────────────────────────────\n"
        "master_server_address 10.0.0.5:50051      MOONCAKE_MASTER\n"
        "local_hostname        its Ray node IP     Ray node IP\n"
        "metadata_server       P2PHANDSHAKE\n"
        "protocol              tcp                 MOONCAKE_PROTOCOL\n"
        "device_name           (Mooncake picks)\n"
        "global_segment_size   64 MiB (67108864)   MOONCAKE_GLOBAL_SEGMENT_SIZE\n"
        "local_buffer_size     64 MiB (67108864)   MOONCAKE_LOCAL_BUFFER_SIZE\n"
        "chunk_bytes           64 MiB (Mooncake's)\n"
        "Python                3.11.9\n"
        "Ray                   2.60.0\n"
        "mooncake-config       0.1.0\n"
        "memory                unknown\n"
        "RDMA devices          unknown\n"
        "\n"
        "2 nodes, all alike: 10.0.0.5 (head) and 10.0.0.7\n"
        "\n"
        "connections, every node to every other: 2 reached, <1 ms\n"
        "\n"
        "  from, to 1     2\n"
        "──────────────────────\n"
        "1 10.0.0.5 ·     <1 ms\n"
        "2 10.0.0.7 <1 ms ·\n"
        "\n"
        "No findings.\n"
    )


def test_differences_are_columns_and_bold() -> None:
    """What differs is a column of the table of nodes, and bold where it is not as on most nodes."""
    lines = (f"10.0.0.5 {SMALL}", f"10.0.0.6 {SMALL}", f"10.0.0.7 {SMALL.replace('tcp', 'rdma')} Mooncake=0.3.12")
    text = page(surveyed(*lines), force_terminal=True, color_system="standard")
    (row,) = [line for line in text.splitlines() if line.startswith("10.0.0.7 ") and "rdma" in line]
    assert re.search("\x1b\\[1mrdma", row)
    (usual,) = [line for line in text.splitlines() if "10.0.0.5 (head) and 10.0.0.6" in line]
    assert "\x1b[1mtcp" not in usual
    assert "same on all 3 nodes" in text


def test_finding_names_its_nodes() -> None:
    """What all nodes found is told once, with the words for all of them; what one found, with its name."""
    text = page(surveyed("10.0.0.5", f"10.0.0.7 {SMALL}"))
    assert re.search(r"MC100 missing-master[^✗]*\n  Node 10\.0\.0\.5\n", text)
    assert re.search(r"MC100 missing-master[^✗]*\n  On all 2 nodes\n", page(surveyed("10.0.0.5", "10.0.0.7")))


def test_own_addresses_are_alike() -> None:
    """Nodes that advertise their own Ray address, by Ray or by a variable, are alike."""
    lines = [f"10.0.0.{number} {SMALL} MOONCAKE_LOCAL_HOSTNAME=10.0.0.{number}" for number in range(5, 9)]
    text = page(surveyed(*lines))
    assert "4 nodes, all alike: 10.0.0.5 (head), 10.0.0.6, 10.0.0.7 and 1 more" in text
    assert "its Ray node IP     MOONCAKE_LOCAL_HOSTNAME" in text


def test_one_node_is_like_nobody() -> None:
    """Of a single node nobody says that it is like the others."""
    assert "\n1 node: 10.0.0.5 (head)\n" in page(surveyed(f"10.0.0.5 {SMALL}"))


def test_node_without_an_answer_has_a_row() -> None:
    """A node that gave no answer, one without this package and one with another version are told apart."""
    lines = (f"10.0.0.5 {SMALL}", "10.0.0.6  silent", "10.0.0.7  without-package", "10.0.0.8 mooncake-config=0.0.1")
    text = page(surveyed(*lines))
    for row in ("10.0.0.5 (head) yes", "10.0.0.6        no", "10.0.0.7        no package", "10.0.0.8        other ver"):
        assert f"\n{row}" in text
    assert "on 10.0.0.5" in text


@pytest.mark.parametrize("width", [60, 120])
@pytest.mark.parametrize("text", WIDE.values(), ids=WIDE)
def test_page_fits_its_width(text: str, width: int) -> None:
    """No line takes more columns than the terminal has, whatever the nodes hold."""
    wide = f"MOONCAKE_MASTER={text!r} MOONCAKE_DEVICE={text!r} miles={text!r}"
    printed = page(surveyed(f"job {SMALL}", f"10.0.0.5 {wide}", f"10.0.0.7 {SMALL} MOONCAKE_PROTOCOL={text!r}"), width)
    assert max(map(columns_of, printed.splitlines())) <= width


def test_narrow_page() -> None:
    """Where the table has no room, the place where a value was set stands below it, and no name is folded."""
    lines = (f"job {SMALL}", f"10.0.0.5 {SMALL}", f"10.0.0.7 {SMALL}")
    assert page(surveyed(*lines), 60).splitlines()[2:8] == [
        "same on all 2 nodes   value, and where it was set",
        "──────────────────────────────────────────────────",
        "master_server_address 10.0.0.5:50051",
        "                      MOONCAKE_MASTER",
        "local_hostname        its Ray node IP",
        "                      Ray node IP",
    ]


def test_wide_differences_go_below_each_other() -> None:
    """Columns that do not fit beside each other are continued in a table below, with the nodes again."""
    other = (
        "MOONCAKE_MASTER=10.0.0.9:50051 MOONCAKE_PROTOCOL=rdma "
        "MOONCAKE_TE_META_DATA_SERVER=http://10.0.0.9:8080/metadata MOONCAKE_DEVICE=mlx5_0 "
        "MOONCAKE_LOCAL_BUFFER_SIZE=1gb MOONCAKE_GLOBAL_SEGMENT_SIZE=1gb"
    )
    text = page(surveyed(f"10.0.0.5 {SMALL}", f"10.0.0.7 {other}"))
    tables = [line for line in text.splitlines() if line.startswith("nodes ")]
    assert len(tables) > 1
    assert max(map(len, text.partition("\n✗")[0].splitlines())) <= 80
    headings = " ".join(tables).split()
    for name in ("master_server_address", "metadata_server", "protocol", "device_name", "local_buffer_size"):
        assert headings.count(name) == 1


def test_thousand_nodes_fit_a_screen() -> None:
    """The page of 1,000 nodes with two odd ones has no more lines than a screen, less the findings."""
    odd = (f"10.1.0.1 {SMALL.replace('tcp', 'rdma')}", "10.1.0.2  silent")
    lines = [f"10.0.{number >> 8}.{number & 255} {SMALL}" for number in range(998)]
    survey = surveyed(*lines, *odd)
    text = page(replace(survey, findings=()))
    assert len(text.splitlines()) < 30
    assert "10.0.0.0 (head), 10.0.0.1, 10.0.0.2 and 995 more" in text


def test_many_kinds_of_node_are_cut() -> None:
    """Where all nodes differ, the table stops and says how many are left."""
    lines = [f"10.0.0.{number} {SMALL} MOONCAKE_DEVICE=mlx5_{number}" for number in range(60)]
    text = page(surveyed(*lines))
    assert f"and {60 - MOST_ROWS} other kinds of node, {60 - MOST_ROWS} nodes (--format json has all)" in text


def test_picture_in_letters() -> None:
    """Up to five nodes the picture has words, with more it has letters and says what they mean."""
    few = [f"10.0.0.{number} {SMALL}" for number in range(1, 4)]
    among = all_pairs(cluster_of(few), Meeting.FILTERED)
    assert "no answer" in page(surveyed(*few, among=among)).partition("from, to")[2].partition("✗")[0]
    many = [f"10.0.0.{number} {SMALL}" for number in range(1, 17)]
    mixed = [
        replace(contact, meeting=Meeting.REFUSED) if contact.to == "10.0.0.9" else contact
        for contact in all_pairs(cluster_of(many))
    ]
    text = page(surveyed(*many, among=mixed))
    assert "connections, every node to every other: 225 reached, 15 refused, <1 ms" in text
    assert "\nR refused\n" in text
    assert max(map(len, text.partition("✗")[0].splitlines())) <= 80


def test_not_all_pairs_has_no_picture() -> None:
    """Where not every pair was tried there is no picture, and the line says what was."""
    lines = [f"10.0.0.{number} {SMALL}" for number in range(1, 5)]
    text = page(surveyed(*lines, among=all_pairs(cluster_of(lines))[:5]))
    assert "connections, 5 of 12, each with the head and a neighbour: 5 reached, <1 ms" in text
    assert "from, to" not in text
    assert "MC443" in text


def test_nobody_to_ask() -> None:
    """Without a cluster the page is the finding alone."""
    text = page(surveyed("no cluster"))
    assert text.startswith("\n✗ error MC400 no-cluster\n")


def test_over_ray_settings_of_mooncake_are_left_out() -> None:
    """Over Ray the nodes are compared by what is installed alone."""
    text = page(surveyed("10.0.0.5", "10.0.0.7", backend=Backend.RAY))
    assert text.startswith("ray object store: trainer on 2 nodes of Ray\n")
    assert "protocol" not in text


TABLES = (
    (f"10.0.0.5 {SMALL}", f"10.0.0.7 {SMALL}", "10.0.0.5 -> 10.0.0.7  no answer"),
    (f"job {SMALL}", "10.0.0.5", "10.0.0.6  silent", "10.0.0.7  without-package", "10.0.0.8 mooncake-config=0.0.1"),
    ("no cluster",),
)


@pytest.mark.parametrize("lines", TABLES, ids=["answered", "half", "none"])
@pytest.mark.parametrize("backend", list(Backend))
def test_document_is_as_its_schema_says(lines: tuple[str, ...], backend: Backend) -> None:
    """The JSON answer is valid by its schema, whatever was found, and no other keys are in it."""
    document = json.loads(json.dumps(cluster_document(surveyed(*lines, backend=backend))))
    assert [error.message for error in SCHEMA.iter_errors(document)] == []
    assert list(document)[:3] == ["version", "ok", "nodes"]


def test_document_holds_the_answer_of_each_node() -> None:
    """Each node's document is the answer of check there; one without an answer is null; findings list their nodes."""
    document = cluster_document(surveyed(f"10.0.0.5 {SMALL}", f"10.0.0.7 {GOOD}", "10.0.0.9  silent"))
    assert [*document["nodes"]] == ["10.0.0.5", "10.0.0.7", "10.0.0.9"]
    assert document["nodes"]["10.0.0.9"] is None
    assert document["nodes"]["10.0.0.5"]["fields"]["local_buffer_size"]["value"] == 64 << 20
    assert document["nodes"]["10.0.0.5"]["host"]["ipv4"] == ("10.0.0.5", "172.17.0.1", "127.0.0.1")
    assert document["software"]["10.0.0.7"]["Ray"] == "2.60.0"
    (silent,) = [item for item in document["findings"] if item["code"] == "MC401"]
    assert silent["nodes"] == ["10.0.0.9"]
    assert document["ok"] is False


def test_fingerprint_of_a_cluster() -> None:
    """The cluster has its nodes' fingerprint where all have the same, else none."""
    alike = cluster_of((f"10.0.0.5 {GOOD}", f"10.0.0.7 {SMALL}"))
    (one, *_) = cluster_document(surveyed(f"10.0.0.5 {GOOD}"))["nodes"].values()
    assert cluster_fingerprint(alike) == one["fingerprint"]
    for odd in ("10.0.0.9  silent", "10.0.0.9", f"10.0.0.9 {GOOD.replace('tcp', 'rdma')}"):
        assert cluster_fingerprint(cluster_of((f"10.0.0.5 {GOOD}", odd))) is None


def test_nothing_foreign_reaches_the_terminal() -> None:
    """Control characters in what nodes say are shown as escapes, and passwords not at all."""
    url = "MOONCAKE_TE_META_DATA_SERVER=http://user:geheim@10.0.0.5:8080/metadata"
    cluster = cluster_of((f"10.0.0.5 {GOOD} {url}", f"10.0.0.7 {GOOD} Mooncake=1\x1b[2J"))
    survey = Survey(cluster, examine_cluster(cluster))
    assert "\x1b" not in page(survey)
    assert "geheim" not in page(survey) + json.dumps(cluster_document(survey))


BAR = """
import sys, time
from mooncake_config.report.cluster import progress_bar
with progress_bar() as tell:
    for done in range(3):
        tell("asking", done, 2)
        time.sleep(0.15)
print("answer")
"""


def test_a_bar_is_drawn_on_a_terminal_only() -> None:
    """The bar goes to standard error where that is a terminal, is gone afterwards, and never goes elsewhere."""
    ours, theirs = os.openpty()
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        environ = {**os.environ, "TERM": "xterm"}
        done = subprocess.run(
            [sys.executable, "-c", BAR], stdout=subprocess.PIPE, stderr=theirs, check=True, env=environ
        )
        os.close(theirs)
        drawn = terminal.read(1 << 16).decode("utf-8", "replace")
    assert done.stdout == b"answer\n"
    assert "asking the nodes" in drawn
    for colours in ({}, {"FORCE_COLOR": "1"}):
        quiet = subprocess.run(
            [sys.executable, "-c", BAR], capture_output=True, check=True, env={**os.environ, **colours}
        )
        assert quiet.stderr == b""
