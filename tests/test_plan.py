"""plan: what the nodes of a job give, what fits into it, and sizes that would."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from math import floor
from pathlib import Path
from typing import Any

import pytest
from asking import MASTER, ask
from hypothesis import assume, given
from hypothesis import strategies as st

from mooncake_config.host import Host
from mooncake_config.plan import (
    HEAD_CLIENTS,
    Load,
    NodeRole,
    NodeShare,
    Plan,
    Shortfall,
    Sizes,
    capacity_of,
    plan_nodes,
    rollouts_in,
    rounded_down,
    rounded_up,
    segment_for,
    written_size,
)
from mooncake_config.process import Backend, Process, memory_of
from mooncake_config.sizes import parse_size
from mooncake_config.sizing import plan_process
from mooncake_config.topology import Topology

MIB, GIB, TIB = 1 << 20, 1 << 30, 1 << 40
HEAD, BOTH, TRAINER, ROLLOUT = NodeRole.HEAD, NodeRole.HEAD_AND_TRAINER, NodeRole.TRAINER, NodeRole.ROLLOUT


def job(
    nodes: int | None = 2, trainers: int | None = 1, each: int | None = 8, *, replicas: int = 1, **fields: Any
) -> Process:
    """A trainer of a job; init kwargs as given, all else by default."""
    topology = Topology(nodes, trainers, local_rank=0, processes_per_node=each, node_ip="10.0.0.7")
    return ask(MASTER, fields, topology=topology, replica_num=replicas)


WALKTHROUGH: dict[str, Any] = {
    "protocol": "tcp",
    "global_segment_size": "2gb",
    "local_buffer_size": "2gb",
    "chunk_bytes": 64 * MIB,
}
"""The sizes of the reference's two-node example."""


def table(plan: Plan) -> list[tuple[object, ...]]:
    """Role, count, and GiB of buffers, segment and total of each kind of node."""
    return [(node.role, node.count, *map(in_gib, (node.buffers, node.segment, node.total))) for node in plan.nodes]


def in_gib(size: int | None) -> float | None:
    """Bytes in GiB."""
    return None if size is None else size / GIB


@pytest.mark.parametrize(
    ("process", "expected", "capacity"),
    [
        (job(**WALKTHROUGH), [(HEAD, 1, 4, 0, 4), (TRAINER, 1, 16, 2, 18)], 2),
        (job(), [(HEAD, 1, 64, 0, 64), (TRAINER, 1, 256, 8, 264)], 8),
        (job(1, 1), [(BOTH, 1, 320, 8, 328)], 8),
        (job(4, 4), [(BOTH, 1, 320, 8, 328), (TRAINER, 3, 256, 8, 264)], 32),
        (job(8, 4), [(HEAD, 1, 64, 0, 64), (TRAINER, 4, 256, 8, 264), (ROLLOUT, 3, 0, 0, 0)], 32),
        (job(2, 2, None), [(BOTH, 1, None, 8, None), (TRAINER, 1, None, 8, None)], 16),
        (job(None, None), [(HEAD, 1, None, None, None), (TRAINER, None, 256, 8, 264)], None),
        (job(None, 4), [(HEAD, 1, None, None, None), (TRAINER, 4, 256, 8, 264)], 32),
        (job(2, 1, 8, local_buffer_size="8 gigs"), [(HEAD, 1, None, None, None), (TRAINER, 1, None, None, None)], 8),
    ],
    ids=[
        "walkthrough",
        "defaults",
        "one node",
        "all train",
        "rollout nodes",
        "P unknown",
        "N unknown",
        "T alone",
        "bad",
    ],
)
def test_nodes(process: Process, expected: list[tuple[Any, ...]], capacity: int | None) -> None:
    """The head has two clients, a training node its trainers and one segment, a rollout node none; unknown is None."""
    plan = plan_nodes(process, Load(), None)
    assert table(plan) == expected
    assert plan.capacity == (None if capacity is None else capacity * GIB)


@pytest.mark.parametrize(
    ("process", "rollout", "fit"),
    [
        (job(**WALKTHROUGH), 256 * MIB, 7),
        (job(**WALKTHROUGH), 2 * GIB, 0),
        (job(2, 2, replicas=2, **WALKTHROUGH), 256 * MIB, 7),
        (job(), GIB, 7),
        (job(4, 4), GIB, 28),
        (job(), None, None),
        (job(None, None), GIB, None),
        (job(2, 1, replicas=2, **WALKTHROUGH), 256 * MIB, 7),
        (job(replicas=0), GIB, None),
    ],
)
def test_rollouts_that_fit(process: Process, rollout: int | None, fit: int | None) -> None:
    """Rollouts fit below 90 % of the capacity, each with all its replicas; unknown where one of them is."""
    assert plan_nodes(process, Load(rollout), None).rollouts_that_fit == fit


def test_ray_takes_nothing() -> None:
    """With the backend Ray no node gives memory to Mooncake, and nothing is proposed."""
    plan = plan_nodes(ask(backend=Backend.RAY), Load(GIB), 64 * GIB)
    assert (plan.nodes, plan.capacity, plan.rollouts_that_fit, plan.proposal) == ((), None, None, None)


@pytest.mark.parametrize(
    ("process", "load", "memory", "expected"),
    [
        # What holds is kept as it is, also where it leaves less free than a proposal would.
        (job(**WALKTHROUGH), Load(256 * MIB, 7), 18 * GIB, Sizes(2 * GIB, 2 * GIB)),
        (job(), Load(), None, Sizes(8 * GIB, 32 * GIB)),
        # Too few rollouts fit: the segment grows, the buffer stays where there is room.
        (job(**WALKTHROUGH), Load(256 * MIB, 8), 64 * GIB, Sizes(2304 * MIB, 2 * GIB)),
        (job(**WALKTHROUGH), Load(GIB, 8), None, Sizes(9 * GIB, 2 * GIB)),
        # Too little memory: the buffer shrinks to what is of use.
        (job(), Load(), 128 * GIB, Sizes(8 * GIB, 11 * GIB)),
        (job(), Load(GIB, 2), 128 * GIB, Sizes(8 * GIB, GIB)),
        # And where the present segment leaves no room for buffers, it shrinks as well.
        (job(global_segment_size="100gb"), Load(GIB, 2), 128 * GIB, Sizes(2304 * MIB, GIB)),
        # A buffer that holds no chunk is enlarged.
        (job(local_buffer_size="16mb"), Load(), None, Sizes(8 * GIB, 128 * MIB)),
        # Nothing to go by.
        (job(global_segment_size=0), Load(), 128 * GIB, None),
        (job(None, None), Load(GIB), 128 * GIB, None),
        (job(chunk_bytes="1tb"), Load(GIB), 128 * GIB, None),
    ],
)
def test_proposal(process: Process, load: Load, memory: int | None, expected: Sizes | None) -> None:
    """Sizes are changed as little as possible, and a changed one leaves a quarter of the memory free."""
    plan = plan_nodes(process, load, memory)
    assert plan.proposal == expected
    assert plan.fits_as_it_is is (
        expected == Sizes(process.size("global_segment_size") or 0, process.size("local_buffer_size") or 0)
    )


def test_shortfall() -> None:
    """Where nothing fits it is told by how much, and which numbers would do, each alone."""
    plan = plan_nodes(job(4, 2, 8, replicas=2), Load(8 * GIB, 4), 32 * GIB)
    least = Sizes(36 * GIB, 128 * MIB)
    assert plan.proposal == Shortfall(least, 37 * GIB, 24 * GIB, trainer_nodes=4, in_flight=2, replicas=1)


def test_shortfall_of_buffers() -> None:
    """Where the buffers alone are too much, no number of rollouts, nodes or replicas would do."""
    plan = plan_nodes(job(2, 1, 8), Load(GIB, 1), GIB)
    assert isinstance(plan.proposal, Shortfall)
    assert (plan.proposal.trainer_nodes, plan.proposal.in_flight, plan.proposal.replicas) == (None, None, None)


@pytest.mark.parametrize(
    ("size", "up", "down", "text"),
    [
        (1, 64 * MIB, 0, "64mb"),
        (65 * MIB, 128 * MIB, 64 * MIB, "128mb"),
        (GIB - 1, GIB, 960 * MIB, "1gb"),
        (GIB + 1, 1280 * MIB, GIB, "1.25gb"),
        (16 * GIB, 16 * GIB, 16 * GIB, "16gb"),
        (16 * GIB + 1, 17 * GIB, 16 * GIB, "17gb"),
        (TIB, TIB, TIB, "1tb"),
    ],
)
def test_rounding(size: int, up: int, down: int, text: str) -> None:
    """Proposed sizes are sixteenths of a GiB, from 1 GiB quarters, from 16 GiB whole ones."""
    assert (rounded_up(size), rounded_down(size), written_size(up)) == (up, down, text)


PAGE = (Path(__file__).resolve().parents[1] / "docs" / "how-to" / "sizing.md").read_text("utf-8")
SUMS = re.findall(r"`([^`\n]+) = ([0-9.]+(?: GiB)?)`", PAGE)
"""The sums of the page that explains the formulas, and what each is said to be."""


@pytest.mark.parametrize(("terms", "result"), SUMS)
def test_sums_of_the_page(terms: str, result: str) -> None:
    """Each sum on the page comes out as it is said to, to the last digit that is written."""
    spelt = re.sub("([0-9.]+)", r"Fraction('\1')", terms)
    for sign, operator in {"×": "*", "÷": "/", " GiB": f"*{GIB}", " MiB": f"*{MIB}"}.items():
        spelt = spelt.replace(sign, operator)
    number, _, unit = result.partition(" ")
    digits = len(number.partition(".")[2])
    value = eval(spelt, {"Fraction": Fraction, "floor": floor}) / (GIB if unit else 1)
    assert round(value, digits) == Fraction(number)


def test_page_has_its_worked_examples() -> None:
    """The page works out the two-node example and the defaults: 18 and 4, 264, 328 and 64 GiB, and 7 rollouts."""
    assert len(SUMS) == 10
    assert {"18 GiB", "4 GiB", "264 GiB", "328 GiB", "64 GiB", "7"} <= {result for _, result in SUMS}


COUNTS = st.integers(1, 64)
BYTES = st.integers(1, 2**50)


@given(COUNTS, BYTES, COUNTS, COUNTS)
def test_segment_for_is_exact(rollouts: int, size: int, replicas: int, nodes: int) -> None:
    """So many rollouts fit into the segment that is asked for them, and not into one that is a byte smaller."""
    segment = segment_for(rollouts, size, replicas, nodes)
    assert rollouts_in(nodes * segment, size, replicas) >= rollouts
    assert rollouts_in(nodes * (segment - 1), size, replicas) < rollouts


@given(COUNTS, BYTES, BYTES, COUNTS, BYTES)
def test_more_capacity_never_fits_less(nodes: int, segment: int, size: int, replicas: int, more: int) -> None:
    """Another node or a larger segment never fits fewer rollouts; another replica or a larger rollout never more."""
    fit = rollouts_in(capacity_of(nodes, segment) or 0, size, replicas)
    assert rollouts_in(capacity_of(nodes + 1, segment) or 0, size, replicas) >= fit
    assert rollouts_in(capacity_of(nodes, segment + more) or 0, size, replicas) >= fit
    assert rollouts_in(capacity_of(nodes, segment) or 0, size, replicas + 1) <= fit
    assert rollouts_in(capacity_of(nodes, segment) or 0, size + more, replicas) <= fit


@given(BYTES, BYTES)
def test_rounding_keeps_order(size: int, other: int) -> None:
    """A rounded size lies on its side, stays where it is, keeps the order, and is written exactly."""
    for up in (rounded_up(size), rounded_up(other)):
        assert rounded_up(up) == rounded_down(up) == up == parse_size(written_size(up))
    assert rounded_down(size) <= size <= rounded_up(size)
    assert (size <= other) <= (rounded_up(size) <= rounded_up(other))
    assert (size <= other) <= (rounded_down(size) <= rounded_down(other))
    assert (size <= rounded_down(other)) <= (rounded_up(size) <= rounded_down(other))


SIZES = st.one_of(st.integers(0, 96).map(lambda n: n * GIB), st.integers(0, 96 * GIB), st.integers(0, GIB))


@st.composite
def jobs(draw: st.DrawFn) -> Process:
    """Jobs of any shape and sizes, whose other settings are good and whose replicas have a segment each."""
    nodes = draw(st.integers(1, 6))
    trainers = draw(st.integers(1, nodes))
    fields: dict[str, Any] = {"global_segment_size": draw(SIZES), "local_buffer_size": draw(SIZES)}
    if draw(st.booleans()):
        fields["chunk_bytes"] = draw(st.integers(MIB, 2 * GIB))
    fields["protocol"] = draw(st.sampled_from(["tcp", "rdma", "cxi"]))
    each = draw(st.none() | st.integers(1, 16))
    return job(nodes, trainers, each, replicas=draw(st.integers(1, trainers)), **fields)


LOADS = st.builds(Load, st.none() | st.integers(1, 8 * GIB), st.none() | st.integers(1, 20))
MEMORIES = st.none() | st.integers(MIB, 2 * TIB) | st.integers(1, 64).map(lambda n: n * GIB)


@given(jobs(), LOADS, MEMORIES)
def test_nodes_add_up(process: Process, load: Load, memory: int | None) -> None:
    """The nodes are the job's, their segments are the capacity, and a training node has what explain says of it."""
    plan = plan_nodes(process, load, memory)
    assert sum(node.count or 0 for node in plan.nodes) == process.topology.num_nodes
    assert sum((node.count or 0) * (node.segment or 0) for node in plan.nodes) == plan.capacity
    for node in plan.nodes:
        assert node.total == (None if node.buffers is None or node.segment is None else node.buffers + node.segment)
        if node.role is TRAINER:
            assert node.total == process.node_memory


def again(process: Process, sizes: Sizes, **changed: Any) -> Process:
    """The same job with these sizes, as they are pasted."""
    fields = {"protocol": process.text("protocol"), "chunk_bytes": process.size("chunk_bytes")}
    fields |= {
        "global_segment_size": written_size(sizes.segment),
        "local_buffer_size": written_size(sizes.buffer),
    }
    shape = replace(process.topology, **changed.pop("topology", {}))
    return ask(
        MASTER,
        {name: value for name, value in fields.items() if value is not None},
        topology=shape,
        replica_num=changed.get("replicas", process.replica_num),
    )


@given(jobs(), LOADS, MEMORIES)
def test_proposal_planned_again(process: Process, load: Load, memory: int | None) -> None:
    """What is proposed, pasted and planned again, is kept as it is, and nothing is found."""
    proposal = plan_nodes(process, load, memory).proposal
    assume(isinstance(proposal, Sizes))
    assert isinstance(proposal, Sizes)
    result = plan_process(again(process, proposal), load, Host("/copy", hostname="copy", memory_total=memory))
    assert result.plan.proposal == proposal
    assert result.findings == ()


@given(jobs(), st.builds(Load, st.integers(4 * GIB, 200 * GIB), st.integers(4, 20)), st.integers(1, 16))
def test_way_out_of_a_shortfall(process: Process, load: Load, gib: int) -> None:
    """Each number that a shortfall names does it alone; where it names none, no segment fits beside the buffers."""
    plan = plan_nodes(process, load, gib * GIB)
    short = plan.proposal
    assume(isinstance(short, Shortfall))
    assert isinstance(short, Shortfall)
    topology = process.topology
    tried = []
    if short.in_flight:
        tried.append((process, replace(load, in_flight=short.in_flight)))
    if short.replicas:
        tried.append((again(process, short.least, replicas=short.replicas), load))
    if short.trainer_nodes:
        nodes = max(short.trainer_nodes, topology.num_nodes or 0)
        shape = {"num_nodes": nodes, "trainer_nodes": short.trainer_nodes}
        tried.append((again(process, short.least, topology=shape), load))
    else:
        smallest = memory_of((topology.processes_per_node or 1) + HEAD_CLIENTS, short.least.buffer, 1, rounded_up(1))
        assert smallest > short.room
    for changed, lighter in tried:
        assert isinstance(plan_nodes(changed, lighter, gib * GIB).proposal, Sizes)
    assert short.needed > short.room


@given(jobs(), LOADS, MEMORIES, st.integers(1, 64 * GIB))
def test_more_memory_never_takes_a_proposal_away(process: Process, load: Load, memory: int | None, more: int) -> None:
    """Where sizes fit a node, they fit one with more memory."""
    found = plan_nodes(process, load, memory).proposal
    assume(isinstance(found, Sizes) and memory)
    assert isinstance(plan_nodes(process, load, (memory or 0) + more).proposal, Sizes)


def test_unknown_share() -> None:
    """Of a node whose clients or sizes are unknown nothing is added up."""
    share = NodeShare(TRAINER, 1, None, 1, Sizes(GIB, GIB))
    assert (share.segment, share.buffers, share.total) == (GIB, None, None)
    assert replace(share, clients=8, sizes=None).total is None
