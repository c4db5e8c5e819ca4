"""MC14x: rules over the plan of a whole job, each with a case that fires and one that is silent."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from asking import MASTER, ask

from mooncake_config.cli import main
from mooncake_config.findings import Finding
from mooncake_config.host import Host, read_host
from mooncake_config.plan import Load
from mooncake_config.rules import plan_rules
from mooncake_config.rules.rule import Rule
from mooncake_config.sizing import plan_process
from mooncake_config.topology import Topology

GIB = 1 << 30


def said(load: Load, memory: int | None = None, *, trainers: int = 1, replicas: int = 1) -> dict[str, Finding]:
    """What is found about a job of four nodes with small buffers, by code."""
    topology = Topology(4, trainers, local_rank=0, processes_per_node=8, node_ip="10.0.0.7")
    fields = {"local_buffer_size": "128mb", "global_segment_size": "8gb"}
    process = ask(MASTER, fields, topology=topology, replica_num=replicas)
    result = plan_process(process, load, Host("/copy", hostname="copy", memory_total=memory))
    return {finding.code: finding for finding in result.findings}


@pytest.mark.parametrize("rule", plan_rules(), ids=lambda rule: rule.code)
@pytest.mark.parametrize(("heading", "fires"), [("Fires:", True), ("Silent:", False)])
def test_page_examples(rule: Rule[object], heading: str, fires: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """Each example on a page fires its rule, or leaves it silent, as the page says."""
    line = rule.page.partition(f"\n{heading}\n    ")[2].partition("\n")[0]
    main([*shlex.split(line), "--format", "json"])
    found = json.loads(capsys.readouterr().out)["findings"]
    assert (rule.code in [finding["code"] for finding in found]) is fires


@pytest.mark.parametrize(
    ("load", "replicas", "message", "fix"),
    [
        (
            Load(GIB, 8),
            1,
            "8 rollouts of 1 GiB shall be in the Store at once, and 7 fit below 90 % of its 8 GiB.",
            'write global_segment_size "9gb".',
        ),
        (
            Load(8 * GIB),
            1,
            "one rollout of 8 GiB shall be in the Store at once, and none fit below 90 % of its 8 GiB.",
            'write global_segment_size "9gb".',
        ),
        (
            Load(6 * GIB, 2),
            2,
            "2 rollouts of 6 GiB, each in 2 copies, shall be in the Store at once, and 1 fits below 90 % of its "
            "16 GiB.",
            'write global_segment_size "13.5gb".',
        ),
    ],
)
def test_more_rollouts_than_fit(load: Load, replicas: int, message: str, fix: str) -> None:
    """It is told how many shall be there and how many fit, and the segment that would do."""
    finding = said(load, trainers=replicas, replicas=replicas)["MC140"]
    assert (finding.message, finding.fix) == (message, fix)


def test_no_sizes_fit() -> None:
    """By how much it fails, and the numbers that would do; the other rule refers to them."""
    found = said(Load(8 * GIB, 4), 32 * GIB, trainers=2, replicas=2)
    assert found["MC141"].message == (
        "no sizes fit: a segment of 36 GiB and buffers of 128 MiB take 37 GiB on the fullest node, 13 GiB more than "
        "24 GiB, three quarters of a node's memory."
    )
    assert found["MC141"].fix == (
        "train on 4 nodes, or keep 2 of 4 rollouts in flight, or write --mooncake-replica-num 1, or take nodes with "
        "more memory."
    )
    assert found["MC140"].fix == "no sizes fit these nodes: take a way out that MC141 (no-sizes-fit) names."


def test_one_way_out_for_rollouts_and_memory() -> None:
    """Where rollouts and memory are both a matter, both findings give the sizes that settle both."""
    topology = Topology(2, 1, local_rank=0, processes_per_node=8, node_ip="10.0.0.7")
    process = ask(MASTER, {}, topology=topology)
    result = plan_process(process, Load(3 * GIB, 4), Host("/copy", memory_total=64 * GIB))
    assert {finding.code: finding.fix for finding in result.findings} == {
        "MC140": 'write global_segment_size "13.5gb" and local_buffer_size "3gb".',
        "MC200": 'write global_segment_size "13.5gb" and local_buffer_size "3gb".',
    }


def test_no_room_for_buffers() -> None:
    """Where the buffers alone are too much, the way out is fewer clients or smaller chunks."""
    finding = said(Load(GIB), GIB)["MC141"]
    assert finding.fix == "run fewer Store clients on a node, or lower chunk_bytes, or take nodes with more memory."


def test_beyond_any_memory() -> None:
    """A segment that no process can map is refused also where a node's memory is unknown."""
    finding = said(Load(1 << 50))["MC141"]
    assert finding.message.endswith("more than 128 TiB of what a process can map.")


@pytest.mark.parametrize(("directory", "told"), [("worker/proc", ["MC240"]), ("worker", [])])
def test_directory_of_no_host(directory: str, told: list[str], tmp_path: Path) -> None:
    """A directory below which no fact of a host stands is told to whoever plans for that host; half a host is not."""
    (tmp_path / "worker/proc").mkdir(parents=True)
    (tmp_path / "worker/proc/meminfo").write_text("MemTotal: 134217728 kB\n")
    process = ask(MASTER, {"local_buffer_size": "1gb"}, topology=Topology(2, 1, local_rank=0, processes_per_node=1))
    findings = plan_process(process, Load(), read_host(tmp_path / directory)).findings
    assert [finding.code for finding in findings if finding.code == "MC240"] == told


def test_unknown_is_no_finding() -> None:
    """Without the size of a rollout nothing is said of how many fit."""
    assert said(Load(None, 100)) == {}


def test_present_segment_alone_too_large() -> None:
    """Where only the present segment is too large, the way out is the largest that there is room for."""
    found = said(Load(), 8 * GIB)
    assert found["MC141"].fix == 'write global_segment_size "5gb", or take nodes with more memory.'


def test_no_more_copies_than_segments() -> None:
    """Replicas that Mooncake leaves out take no room: on one training node a rollout fits though two are asked for."""
    assert "MC140" not in said(Load(7 * GIB), replicas=2)
    message = said(Load(8 * GIB), trainers=2, replicas=3)["MC140"].message
    assert message.startswith("one rollout of 8 GiB, each in 2 copies, shall be in the Store")


@pytest.mark.parametrize(("size", "named"), [(GIB, True), (1 << 70, False)])
def test_advice_is_accepted(size: int, named: bool) -> None:
    """A number of nodes that the command line would refuse is no way out."""
    fix = said(Load(size, 100), 8 * GIB)["MC141"].fix
    assert ("train on " in fix) is named


def test_nothing_fits_into_nothing() -> None:
    """Without any segment not one rollout fits, and that is an error as it is with too small a one."""
    topology = Topology(1, 1, local_rank=0, processes_per_node=2, node_ip="10.0.0.7")
    process = ask(MASTER, {"global_segment_size": 0, "local_buffer_size": "1gb"}, topology=topology)
    found = {finding.code: finding for finding in plan_process(process, Load(GIB), Host("/copy")).findings}
    assert found["MC140"].message.endswith("none fit below 90 % of its 0 bytes.")
    assert found["MC140"].fix == 'write global_segment_size "1.25gb".'
