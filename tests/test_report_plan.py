"""The answer of plan: the document, the page, its bars, and the flag to paste."""

from __future__ import annotations

import io
import json
import shlex
from typing import Any

import pytest
from asking import MASTER, ask
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft7Validator
from rich.console import Console

from mooncake_config.findings import Severity
from mooncake_config.host import Host
from mooncake_config.plan import Load, Sizes
from mooncake_config.process import Backend
from mooncake_config.report.plan import flag_to_paste, pins_memory, plan_document, print_plan
from mooncake_config.schema import plan_schema
from mooncake_config.sizing import PlanResult, plan_process
from mooncake_config.topology import Topology

MIB, GIB = 1 << 20, 1 << 30
FLAG = "--mooncake-store-init-kwargs"
TWO_GIB = {"protocol": "tcp", "global_segment_size": "2gb", "local_buffer_size": "2gb"}
PLAN = Draft7Validator(plan_schema())


def planned(
    fields: dict[str, Any] | None = None,
    *,
    shape: Topology | None = None,
    load: Load | None = None,
    memory: int | None = 64 * GIB,
    backend: Backend = Backend.MOONCAKE,
    replicas: int = 1,
) -> PlanResult:
    """The plan of a job of two nodes, of which one trains with eight processes unless said otherwise."""
    topology = shape or Topology(2, 1, local_rank=0, processes_per_node=8, node_ip="10.0.0.7")
    process = ask(MASTER, fields or {}, topology=topology, replica_num=replicas, backend=backend)
    return plan_process(process, load or Load(), Host("/copy", memory_total=memory))


def page_of(result: PlanResult, width: int = 80, encoding: str = "utf-8", colours: str | None = None) -> str:
    """What plan prints on a terminal of that width and encoding, without the blanks at line ends."""
    written = io.BytesIO()
    file = io.TextIOWrapper(written, encoding=encoding, errors="backslashreplace", write_through=True)
    console = Console(
        file=file,
        width=width,
        highlight=False,
        markup=False,
        emoji=False,
        color_system=colours,  # type: ignore[arg-type]  # a name of rich
        force_terminal=colours is not None,
    )
    print_plan(console, result)
    return "".join(f"{line.rstrip()}\n" for line in written.getvalue().decode(encoding).splitlines())


def test_page_of_the_walkthrough() -> None:
    """The page shows each kind of node in numbers and as a bar, the sums, and the flag to paste."""
    assert page_of(planned(TWO_GIB, load=Load(256 * MIB, 2), memory=24 * GIB)) == (
        "mooncake object store: 2 nodes, 1 training node, 8 trainers on each\n"
        "tcp: memory below is reserved when a store opens, and taken as it is filled\n"
        "\n"
        "node    count buffers   segment total  of memory\n"
        "────────────────────────────────────────────────\n"
        "head    1     2 × 2 GiB none    4 GiB  17 %\n"
        "trainer 1     8 × 2 GiB 2 GiB   18 GiB 75 %\n"
        "\n"
        "head             ▒▒▒▒▒▒▒▒▒▒····················································|\n"
        "trainer          ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒█████················|\n"
        "▒ buffers  █ segment  · free  | 24 GiB, this host's memory for every node\n"
        "\n"
        "Store capacity   1 × 2 GiB = 2 GiB\n"
        "rollouts         2 GiB × 0.9 ÷ (256 MiB × 1 replica): 7 fit, 2 in flight\n"
        "\n"
        "These sizes fit:\n"
        "--mooncake-store-init-kwargs "
        '\'{"protocol": "tcp", "global_segment_size": "2gb", "local_buffer_size": "2gb"}\'\n'
        "\n"
        "No findings.\n"
    )


def test_page_without_unicode() -> None:
    """Where the terminal has ASCII only, bars and sums are drawn with it."""
    page = page_of(planned(TWO_GIB, load=Load(256 * MIB), memory=24 * GIB), encoding="ascii")
    assert page.isascii()
    assert "trainer          =========================================#####................|" in page
    assert "2 GiB x 0.9 / (256 MiB x 1 replica): 7 fit" in page
    assert "\\x" not in page
    assert "\\u" not in page


def test_bars_are_read_without_colours() -> None:
    """Colours add nothing that the glyphs do not say: without the escape sequences the pages are equal."""
    result = planned(memory=128 * GIB)
    coloured = page_of(result, colours="truecolor")
    plain = page_of(result)
    assert "\x1b[" in coloured
    assert [bar for bar in bars(plain) if bar] == [bar for bar in bars(without_escapes(coloured)) if bar]


def without_escapes(text: str) -> str:
    """The text as a terminal shows it, less its colours."""
    from rich.text import Text

    return Text.from_ansi(text).plain


def bars(page: str) -> list[str]:
    """The bars of a page."""
    return [line[17:] for line in page.splitlines() if line.endswith(("|", "█", "▒"))]


def test_bar_beyond_the_memory() -> None:
    """What a node has no memory for stands behind the mark, on the scale of the largest bar."""
    head, trainer = bars(page_of(planned(memory=132 * GIB)))
    assert len(trainer) == 80 - 17
    assert trainer.index("|") == head.index("|") == 31
    assert trainer.endswith("██")
    assert head.startswith("▒" * 15 + "·")


def test_bar_of_little() -> None:
    """A segment that is small beside the buffers is seen all the same."""
    (_, trainer) = bars(page_of(planned({"global_segment_size": "16mb"})))
    assert trainer.count("█") == 1


@pytest.mark.parametrize("width", [40, 60, 80, 120])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize("memory", [None, 24 * GIB, 2048 * GIB])
@pytest.mark.parametrize(
    "shape",
    [
        Topology(2, 1, local_rank=0, processes_per_node=8, node_ip="10.0.0.7"),
        Topology(1000, 998, local_rank=0, processes_per_node=128, node_ip="10.0.0.7"),
        Topology(local_rank=0, node_ip="10.0.0.7"),
    ],
    ids=["two", "thousand", "unknown"],
)
def test_page_fits_its_width(width: int, encoding: str, memory: int | None, shape: Topology) -> None:
    """No line but the flag is wider than the terminal, and the longest bar ends at its edge."""
    page = page_of(planned(shape=shape, load=Load(GIB, 1000), memory=memory), width, encoding)
    # Words of findings hold a ×, which grows to \\xd7 where it cannot be written.
    lines = [line for line in page.splitlines() if not line.startswith(FLAG) and "\\x" not in line]
    assert max(map(len, lines)) <= width
    if encoding == "utf-8" and (shape.processes_per_node or memory):
        assert max(map(len, bars(page)), default=width - 17) >= width - 19


def test_page_of_unknown_memory() -> None:
    """Where a node's memory is unknown the page says so, and bars stand for the sums alone."""
    page = page_of(planned(memory=None))
    assert "(how much memory a node has is unknown)" in page
    assert "|" not in "".join(bars(page))
    assert "These sizes fit, as far as is known:" in page


def test_page_of_an_unknown_job() -> None:
    """What is unknown is called so, with the option that tells it."""
    page = page_of(planned(shape=Topology(local_rank=0, node_ip="10.0.0.7")))
    assert "unknown number of nodes" in page
    assert "Store capacity   unknown: tell --num-nodes or --trainer-nodes" in page
    assert "rollouts         unknown: tell the size of one with --rollout-bytes" in page
    assert FLAG not in page


def test_page_of_sizes_that_fit() -> None:
    """Where the present sizes do not fit, those that would are printed, and the finding names them."""
    page = page_of(planned(TWO_GIB, load=Load(GIB, 4)))
    assert "\nSizes that fit:\n" in page
    assert "✗ error MC140 more-rollouts-than-fit" in page
    assert 'write global_segment_size "4.5gb".' in page
    assert page.endswith("\n1 error. The job does not run as planned.\n")


def test_page_over_ray() -> None:
    """With the backend Ray the page says that Mooncake takes no memory, and nothing else."""
    assert page_of(planned(backend=Backend.RAY)) == (
        "ray object store: Ray's own store holds the rollouts, and Mooncake takes no\nmemory\n\nNo findings.\n"
    )


@pytest.mark.parametrize(
    ("environ", "fields", "pinned", "words"),
    [
        ({}, {}, True, "rdma: all memory below is pinned when a store opens"),
        ({}, {"protocol": "efa"}, True, "efa: all memory below is pinned"),
        ({}, {"protocol": "tcp"}, False, "tcp: memory below is reserved when a store opens"),
        ({"MC_FORCE_TCP": "1"}, {}, False, "rdma: memory below is reserved"),
        ({}, {"protocol": "cxi"}, None, "cxi: whether memory below is pinned or only reserved is unknown"),
        ({}, {"protocol": "rmda"}, None, "unknown protocol: whether"),
    ],
)
def test_pinned_or_reserved(environ: dict[str, str], fields: dict[str, Any], pinned: bool | None, words: str) -> None:
    """RDMA pins all memory at once, TCP only reserves it; of other protocols it is not known."""
    topology = Topology(2, 1, local_rank=0, processes_per_node=8, node_ip="10.0.0.7")
    process = ask({**MASTER, **environ}, fields, topology=topology)
    assert pins_memory(process) is pinned
    assert words in page_of(plan_process(process, Load(), Host("/copy")))


def test_document() -> None:
    """The document has the contract's keys, sizes in bytes, and null for what is unknown."""
    document = plan_document(planned(TWO_GIB, load=Load(256 * MIB, 2)))
    assert document == {
        "version": 1,
        "ok": True,
        "inputs": {
            "backend": "mooncake",
            "num_nodes": 2,
            "trainer_nodes": 1,
            "processes_per_node": 8,
            "replica_num": 1,
            "protocol": "tcp",
            "pinned": False,
            "global_segment_size": 2 * GIB,
            "local_buffer_size": 2 * GIB,
            "rollout_bytes": 256 * MIB,
            "in_flight": 2,
            "eviction_watermark": 0.9,
        },
        "nodes": [
            {
                "role": "head",
                "count": 1,
                "segment": 0,
                "buffers": 4 * GIB,
                "total": 4 * GIB,
                "memory": 64 * GIB,
            },
            {
                "role": "trainer",
                "count": 1,
                "segment": 2 * GIB,
                "buffers": 16 * GIB,
                "total": 18 * GIB,
                "memory": 64 * GIB,
            },
        ],
        "capacity": 2 * GIB,
        "rollouts_that_fit": 7,
        "proposal": {"global_segment_size": 2 * GIB, "local_buffer_size": 2 * GIB},
        "findings": [],
    }


SIZES = st.sampled_from([None, 0, 1, 16 * MIB, 2 * GIB, 32 * GIB, "8 gigs", -1, 1 << 63])
COUNTS = st.none() | st.integers(1, 1000)


SHAPES = st.builds(Topology, COUNTS, COUNTS, st.just(0), COUNTS, st.just("10.0.0.7"))
LOADS = st.builds(Load, st.none() | st.integers(1, 1 << 60), COUNTS)
RESULTS = st.builds(
    planned,
    st.fixed_dictionaries({"global_segment_size": SIZES, "local_buffer_size": SIZES}),
    shape=SHAPES,
    load=LOADS,
    memory=st.none() | st.integers(1, 1 << 50),
    backend=st.sampled_from(Backend),
    replicas=st.integers(0, 4),
)


@given(RESULTS)
def test_document_is_what_its_schema_says(result: PlanResult) -> None:
    """Every document is valid against its schema, whatever is given, malformed or unknown; ok means no error."""
    document = json.loads(json.dumps(plan_document(result), allow_nan=False))
    assert [error.message for error in PLAN.iter_errors(document)] == []
    assert document["ok"] is not any(finding.severity is Severity.ERROR for finding in result.findings)
    assert page_of(result).replace("\n", "").isprintable()


def test_flag_keeps_the_command_line() -> None:
    """The flag has all that the command line says, with the two sizes in it, as one word of a shell."""
    process = ask(MASTER, {"protocol": "tcp", "chunk_bytes": "64mb", "device_name": "a'b", "global_segment_size": 1})
    flag, value = shlex.split(flag_to_paste(process, Sizes(2304 * MIB, 128 * MIB)))
    assert flag == FLAG
    assert json.loads(value) == {
        "protocol": "tcp",
        "device_name": "a'b",
        "global_segment_size": "2.25gb",
        "local_buffer_size": "128mb",
        "chunk_bytes": 64 * MIB,
    }


def test_flag_shows_no_password() -> None:
    """A password of the command line stands in the flag as ***, and the page says so."""
    result = planned({"metadata_server": "http://admin:s3cret@10.0.0.5:8080/metadata", **TWO_GIB})
    page = page_of(result)
    assert "s3cret" not in page
    assert "http://admin:***@10.0.0.5:8080/metadata" in page
    assert page.endswith("*** stands for a password: put it back.\n\nNo findings.\n")


def test_password_of_a_variable_is_not_in_the_flag() -> None:
    """What a variable says stays there, and nothing is to be put back."""
    environ = {**MASTER, "MOONCAKE_TE_META_DATA_SERVER": "http://admin:s3cret@10.0.0.5:8080/metadata"}
    page = page_of(plan_process(ask(environ), Load(), Host("/copy")))
    assert "***" not in page
    assert "metadata_server" not in page.partition("No findings")[0]


@pytest.mark.parametrize(
    ("memory", "share"),
    [
        (16 * GIB, "100 %"),
        (16 * GIB - 1, "101 %"),
        (16 * GIB + 1, "99 %"),
        (1 << 60, "<1 %"),
        (1 << 30, "1600 %"),
    ],
)
def test_share_of_memory(memory: int, share: str) -> None:
    """What is more than the memory reads as more than 100 %, by however little, and what is less as less."""
    fields = {"global_segment_size": "8gb", "local_buffer_size": "8gb"}
    process = ask(MASTER, fields, topology=Topology(2, 1, local_rank=0, processes_per_node=1, node_ip="10.0.0.7"))
    page = page_of(plan_process(process, Load(), Host("/copy", memory_total=memory)))
    (row,) = (line for line in page.splitlines() if line.startswith("trainer 1 "))
    assert row.split("16 GiB")[-1].strip() == share
