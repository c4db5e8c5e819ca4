"""Pages of text: what stands in them, that they fit, and that nothing foreign reaches the terminal."""

from __future__ import annotations

import io
import unicodedata
from collections.abc import Sequence

import pytest
from asking import TWO_NODES, ask
from hypothesis import given
from hypothesis import strategies as st
from machines import device, host_with, node
from rich.console import Console

from mooncake_config.check import CheckResult
from mooncake_config.dialogue import Answer, Outcome
from mooncake_config.findings import Finding, Severity
from mooncake_config.process import Process
from mooncake_config.provenance import Origin, Source
from mooncake_config.report.documents import claimed_fields
from mooncake_config.report.pages import print_check, print_explanation, print_findings, print_rule_page
from mooncake_config.rules import examine, examine_node, find_rule
from mooncake_config.settings import FIELDS
from mooncake_config.sources import FieldSpec
from mooncake_config.topology import Role


def page_of(process: Process, width: int = 80, specs: Sequence[FieldSpec] = FIELDS) -> str:
    """What explain prints, without the blanks at line ends."""
    console = Console(file=io.StringIO(), width=width, highlight=False, markup=False, emoji=False)
    print_explanation(console, process, examine(process), specs)
    assert isinstance(console.file, io.StringIO)
    return "".join(f"{line.rstrip()}\n" for line in console.file.getvalue().splitlines())


def test_page_of_a_good_job() -> None:
    """The page shows each field in human and exact form, its source and spot, and what it overrode."""
    assert page_of(ask(None, {"global_segment_size": "2gb", "chunk_bytes": "64mb"}, topology=TWO_NODES)) == (
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


COLUMNS = ("field", "value", "source", "set in")


@given(
    st.integers(79, 140),
    st.sampled_from(["P2PHANDSHAKE", "http://10.0.0.5:8080/metadata", f"http://{'node-' * 9}7:8080/metadata"]),
    st.sampled_from(["P2PHANDSHAKE", "http://10.0.0.6:8080/metadata", "http://rack-rack-rack-3:8080/metadata"]),
)
def test_nothing_is_cut(width: int, value: str, lost: str) -> None:
    """However long a value, and what it overrode, every sign of both stands on the page."""
    process = ask({"MOONCAKE_TE_META_DATA_SERVER": lost}, {"metadata_server": value}, topology=TWO_NODES)
    head, *lines = page_of(process, width).splitlines()[3:]
    starts = [head.index(name) for name in COLUMNS]
    rows = lines[1 : lines.index("")]
    ends = [*starts[1:], width]
    whole = ["".join(row[start:end].strip() for row in rows) for start, end in zip(starts, ends, strict=True)]
    assert value in whole[1]
    assert f"over{lost}(MOONCAKE_TE_META_DATA_SERVER)" in whole[3].replace(" ", "")


@pytest.mark.parametrize(
    ("role", "reason"),
    [
        (Role.ROLLOUT_MANAGER, "a rollout-manager never contributes one"),
        (Role.DRIVER, "a driver never contributes one"),
    ],
)
def test_page_says_why_nothing_is_contributed(role: Role, reason: str) -> None:
    """A process that contributes no segment is told why, beside the configured size."""
    page = page_of(ask(topology=TWO_NODES, role=role))
    assert f"Hands 0 bytes of segment to the Store: {reason}." in page
    assert "8 GiB (8589934592)" in page


@given(st.text(), st.text())
def test_nothing_foreign_reaches_the_terminal(text: str, key: str) -> None:
    """Whatever stands in values and keys, the page holds no control character but line ends."""
    page = page_of(
        ask(None, {"metadata_server": text, "local_hostname": text, "device_name": text, key: text}, topology=TWO_NODES)
    )
    assert page.replace("\n", "").isprintable()


WIDE = {
    "CJK": "格子" * 40,
    "emoji": "🌙🍰" * 40,
    "emoji of several": "👩‍🚀" * 40,
    "combining": "é̂" * 40,
    "right to left": "שלום" * 40,
    "one word": "x" * 300,
    "words": "a b " * 60,
}


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("text", WIDE.values(), ids=WIDE)
def test_page_fits_its_width(text: str, width: int) -> None:
    """No line takes more columns than the terminal has, whatever stands in values, spots and findings."""
    kwargs = {"metadata_server": f"http://{text}", "device_name": text, text: text}
    page = page_of(ask({"MOONCAKE_LOCAL_HOSTNAME": text}, kwargs, topology=TWO_NODES), width)
    assert max(map(columns_of, page.splitlines())) <= width


@pytest.mark.parametrize("width", [60, 120])
@pytest.mark.parametrize("text", WIDE.values(), ids=WIDE)
def test_page_of_check_fits_its_width(text: str, width: int) -> None:
    """The same of a machine whose name, devices and answers are wide."""
    job = ask({"MOONCAKE_MASTER": f"{text}:50051", "MOONCAKE_DEVICE": text}, topology=TWO_NODES)
    machine = host_with(device(text), hostname=text, ipv4=("10.0.0.7",), ipv6=())
    asked = Answer("master_server_address", f"{text}:50051", text, 50051, Outcome.REFUSED, (), "")
    there = node(job, machine, answers=(asked,))
    console = Console(file=io.StringIO(), width=width, highlight=False, markup=False, emoji=False)
    print_check(console, CheckResult(there, examine_node(there)))
    assert isinstance(console.file, io.StringIO)
    assert max(columns_of(line.rstrip()) for line in console.file.getvalue().splitlines()) <= width


@given(st.text(), st.sampled_from([60, 80, 120]))
def test_any_value_fits(text: str, width: int) -> None:
    """The same of any text at all."""
    page = page_of(ask(None, {"device_name": text * 9, "protocol": text}, topology=TWO_NODES), width)
    assert max(map(columns_of, page.splitlines())) <= width


def columns_of(line: str) -> int:
    """Columns of a terminal that a line takes: two for a wide character, none for one that joins the one before it."""
    widths = {"W": 2, "F": 2}
    return sum(
        0 if unicodedata.category(sign) in ("Mn", "Me", "Cf") else widths.get(unicodedata.east_asian_width(sign), 1)
        for sign in line
    )


@pytest.mark.parametrize("width", [60, 77])
def test_narrow_page(width: int) -> None:
    """Where the table has no room, the place where a value was set stands below it."""
    page = page_of(ask({"MOONCAKE_MASTER": "10.0.0.5:50051", "MOONCAKE_PROTOCOL": "tcp"}, topology=TWO_NODES), width)
    assert page.partition("\n\n")[2].startswith(
        "field                 value, and where it was set\n"
        "─────────────────────────────────────────────────\n"
        "master_server_address 10.0.0.5:50051\n"
        "                      MOONCAKE_MASTER\n"
        "local_hostname        10.0.0.7\n"
        "                      Ray node IP\n"
        "metadata_server       P2PHANDSHAKE\n"
        "                      default\n"
        "protocol              tcp\n"
        "                      MOONCAKE_PROTOCOL\n"
        "                      over rdma (default)\n"
    )


def test_wide_page_is_no_wider_than_needed() -> None:
    """More columns than the table needs leave it as it is."""
    process = ask(topology=TWO_NODES)
    assert page_of(process, 120) == page_of(process, 200)


@pytest.mark.parametrize(
    ("variables", "name", "colour"),
    [
        ({"MOONCAKE_LOCAL_HOSTNAME": "localhost"}, "localhost", "1;31"),
        ({"MOONCAKE_PROTOCOL": "rmda"}, "rmda", "1;31"),
        ({}, "(not set)", "1;31"),
        ({"MOONCAKE_PROTOCOL": "tcp", "MOONCAKE_DEVICE": "mlx5_0"}, "mlx5_0", "1;33"),
        ({"MOONCAKE_PROTOCOL": "tcp"}, "tcp", "1"),
    ],
)
def test_value_has_the_colour_of_its_worst_finding(variables: dict[str, str], name: str, colour: str) -> None:
    """The table shows by its colours which values the findings are about."""
    process = ask(variables, topology=TWO_NODES)
    console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system="standard", highlight=False)
    print_explanation(console, process, examine(process))
    assert isinstance(console.file, io.StringIO)
    assert f"\x1b[{colour}m{name}" in console.file.getvalue()


def test_page_without_what_nobody_set() -> None:
    """With a part of the fields the page says how many were left out."""
    process = ask(None, {"protocol": "tcp"}, topology=TWO_NODES)
    assert (
        "master_server_address 10.0.0.5:50051 env    MOONCAKE_MASTER\n"
        "protocol              tcp            cli    init kwargs\n"
        "                                            over rdma (default)\n"
        "Nobody set the other 6 fields.\n"
    ) in page_of(process, specs=claimed_fields(process))
    assert "\n\nNobody set any field.\n\n" in page_of(ask({}, topology=TWO_NODES), specs=())


def test_rule_page_is_set_anew() -> None:
    """The paragraphs of a rule's page end where the terminal ends, and its examples are commands."""
    rule = find_rule("MC101")
    assert rule
    console = Console(file=io.StringIO(), width=200, highlight=False)
    print_rule_page(console, rule)
    assert isinstance(console.file, io.StringIO)
    page = console.file.getvalue()
    assert "::ffff:127.0.0.1, in local_hostname, master_server_address and metadata_server." in page
    assert page.endswith(
        "\n\nFires:\n    MOONCAKE_LOCAL_HOSTNAME=127.0.0.1 mooncake-config explain --num-nodes 2 --node-ip 10.0.0.7\n"
        "Silent:\n    MOONCAKE_LOCAL_HOSTNAME=127.0.0.1 mooncake-config explain --num-nodes 1 --node-ip 10.0.0.7\n"
    )


def test_example_of_a_rule_goes_on() -> None:
    """An example that is wider than the terminal goes on in the next line, as a shell takes it."""
    rule = find_rule("MC101")
    assert rule
    console = Console(file=io.StringIO(), width=70, highlight=False)
    print_rule_page(console, rule)
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().endswith(
        "Silent:\n    MOONCAKE_LOCAL_HOSTNAME=127.0.0.1 mooncake-config explain \\\n"
        "        --num-nodes 1 --node-ip 10.0.0.7\n"
    )


def test_place_of_a_default(capsys: pytest.CaptureFixture[str]) -> None:
    """A finding about a default says so in words, since there is no place to edit."""
    finding = Finding("MC213", "no-rdma-device", Severity.WARNING, (), Origin(Source.DEFAULT, "default"), "a.", "b.")
    print_findings(Console(), [finding])
    assert "From the built-in default\n" in "".join(
        f"{line.rstrip()}\n" for line in capsys.readouterr().out.splitlines()
    )
