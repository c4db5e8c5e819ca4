"""Pages of text: what stands in them, and that nothing foreign reaches the terminal."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from mooncake_config.findings import Finding, Severity
from mooncake_config.process import Backend, Process
from mooncake_config.report.documents import env_lines, explain_document, finding_document
from mooncake_config.report.pages import print_explanation
from mooncake_config.resolve import resolve_process
from mooncake_config.rules import examine
from mooncake_config.sources import Environment
from mooncake_config.topology import Role, Topology

TWO_NODES = Topology(num_nodes=2, local_rank=0, processes_per_node=8, node_ip="10.0.0.7")
MASTER = {"MOONCAKE_MASTER": "10.0.0.5:50051"}


def process_with(kwargs: Any = None, variables: dict[str, str] | None = None, role: Role = Role.TRAINER) -> Process:
    """A process of a two-node job."""
    process, _ = resolve_process(
        kwargs,
        backend=Backend.MOONCAKE,
        role=role,
        replica_num=1,
        topology=TWO_NODES,
        environment=Environment(MASTER if variables is None else variables),
    )
    return process


def page_of(process: Process, width: int = 80) -> str:
    """What explain prints, without the blanks at line ends."""
    console = Console(file=io.StringIO(), width=width, highlight=False, markup=False, emoji=False)
    print_explanation(console, process, examine(process))
    assert isinstance(console.file, io.StringIO)
    return "".join(f"{line.rstrip()}\n" for line in console.file.getvalue().splitlines())


def test_page_of_a_good_job() -> None:
    """The page shows each field in human and exact form, its source and spot, and what it overrode."""
    assert page_of(process_with({"global_segment_size": "2gb", "chunk_bytes": "64mb"})) == (
        "mooncake object store: trainer, local rank 0, on node 10.0.0.7\n"
        "2 nodes, 8 processes on each\n"
        "\n"
        "field                 value                source  set in\n"
        "────────────────────────────────────────────────────────────────────────────────\n"
        "master_server_address 10.0.0.5:50051       env     MOONCAKE_MASTER\n"
        "local_hostname        10.0.0.7             ray     Ray node IP\n"
        "metadata_server       P2PHANDSHAKE         default\n"
        "protocol              rdma                 default\n"
        "device_name           (Mooncake picks)     default\n"
        "global_segment_size   2 GiB (2147483648)   cli     init kwargs\n"
        "                                                   over 8gb (default)\n"
        "local_buffer_size     32 GiB (34359738368) default\n"
        "chunk_bytes           64 MiB (67108864)    cli     init kwargs\n"
        "                                                   over Mooncake's own (default)\n"
        "\n"
        "Memory on each training node: 8 × 32 GiB buffer + 2 GiB segment = 258 GiB.\n"
        "\n"
        "No findings.\n"
    )


@pytest.mark.parametrize(
    ("role", "reason"),
    [
        (Role.ROLLOUT_MANAGER, "a rollout-manager never contributes one"),
        (Role.DRIVER, "a driver never contributes one"),
    ],
)
def test_page_says_why_nothing_is_contributed(role: Role, reason: str) -> None:
    """A process that contributes no segment is told why, beside the configured size."""
    page = page_of(process_with(role=role))
    assert f"Hands 0 bytes of segment to the Store: {reason}." in page
    assert "8 GiB (8589934592)" in page


@given(st.text(), st.text())
def test_nothing_foreign_reaches_the_terminal(text: str, key: str) -> None:
    """Whatever stands in values and keys, the page holds no control character but line ends."""
    page = page_of(process_with({"metadata_server": text, "local_hostname": text, "device_name": text, key: text}))
    assert page.replace("\n", "").isprintable()


@pytest.mark.parametrize("width", [60, 80, 120])
def test_page_fits_its_width(width: int) -> None:
    """No line is wider than the terminal, however long or wide the values are."""
    page = page_of(process_with({"metadata_server": "http://" + "x" * 300, "device_name": "格" * 60}), width)
    assert max(len(line) for line in page.splitlines()) <= width


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.lists(st.text())))
def test_document_is_json(kwargs: dict[str, Any]) -> None:
    """The answer of explain is strict JSON whatever the init kwargs hold, without unpaired surrogates."""
    process = process_with(kwargs)
    text = json.dumps(explain_document(process, examine(process)), allow_nan=False)
    json.loads(text)
    json.dumps(json.loads(text), ensure_ascii=False).encode("utf-8")


def test_document_of_a_finding() -> None:
    """A finding without origin has null for source, origin and node."""
    finding = Finding("MC103", "replicas-below-one", Severity.ERROR, (), None, "a fact.", "a way out.")
    assert finding_document(finding) == {
        "code": "MC103",
        "rule": "replicas-below-one",
        "severity": "error",
        "fields": [],
        "source": None,
        "origin": None,
        "node": None,
        "message": "a fact.",
        "fix": "a way out.",
    }


def test_non_contributor_keeps_its_size_in_fields() -> None:
    """A process that contributes nothing has the resolved size in fields and 0 in setup."""
    document = explain_document(process_with(role=Role.DRIVER), ())
    assert document["fields"]["global_segment_size"]["value"] == 8 << 30
    assert document["setup"]["global_segment_size"] == 0


def test_env_lines_are_quoted() -> None:
    """Values are quoted for a shell."""
    lines = list(
        env_lines(process_with(variables=MASTER | {"MOONCAKE_TE_META_DATA_SERVER": "http://h:1/metadata?a&b"}))
    )
    assert "export MOONCAKE_TE_META_DATA_SERVER='http://h:1/metadata?a&b'" in lines
