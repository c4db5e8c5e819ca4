"""Role and Topology: which process of which job."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import pytest

from mooncake_config.provenance import Origin, Source
from mooncake_config.topology import Role, Topology, complete_topology

COUNTS = ("num_nodes", "trainer_nodes", "processes_per_node")


def complete(given: Topology, alive: int | None = None, **variables: str) -> Topology:
    """A topology completed from variables and so many alive nodes, without a fault."""
    topology, faults = complete_topology(given, variables, lambda: alive)
    assert faults == ()
    return topology


@pytest.mark.parametrize(
    ("role", "rank", "contributes"),
    [
        (Role.TRAINER, 0, True),
        (Role.TRAINER, None, True),
        (Role.TRAINER, 1, False),
        (Role.ROLLOUT_MANAGER, 0, False),
        (Role.ROLLOUT_MANAGER, None, False),
        (Role.DRIVER, 0, False),
        (Role.DRIVER, None, False),
    ],
)
def test_contribution(role: Role, rank: int | None, contributes: bool) -> None:
    """Of a node's trainers the one of rank 0 or no rank contributes; nobody else does."""
    assert Topology(local_rank=rank).contributes_segment(role) is contributes


def test_roles_by_name() -> None:
    """A role is found by the word of the command line."""
    assert [Role(word) for word in ("trainer", "rollout-manager", "driver")] == list(Role)


@pytest.mark.parametrize("name", [*COUNTS, "local_rank"])
@pytest.mark.parametrize("value", [True, 1.0, "1"])
def test_wrong_types(name: str, value: Any) -> None:
    """A count that is no integer is a wrong use of the library; a boolean is none."""
    with pytest.raises(TypeError, match=name):
        Topology(**{name: value})


@pytest.mark.parametrize(("name", "value"), [*((name, 0) for name in COUNTS), ("num_nodes", -2), ("local_rank", -1)])
def test_counts_below_the_least(name: str, value: Any) -> None:
    """Counts are 1 or more, a rank is 0 or more."""
    with pytest.raises(ValueError, match=name):
        Topology(**{name: value})


def test_what_is_given_holds() -> None:
    """What is given is not asked of variables or of Ray."""
    given = Topology(num_nodes=4, trainer_nodes=2, local_rank=3, processes_per_node=8, node_ip="10.0.0.7")
    assert complete(given, alive=9, LOCAL_RANK="1", LOCAL_WORLD_SIZE="2") == given


def test_what_is_unknown_is_read() -> None:
    """Rank and processes come from the launcher's variables, nodes from Ray, trainers from the nodes."""
    read = complete(Topology(), alive=3, LOCAL_RANK="1", LOCAL_WORLD_SIZE=" 8 ")
    assert read == Topology(num_nodes=3, trainer_nodes=3, local_rank=1, processes_per_node=8)


@pytest.mark.parametrize("blank", ["", " ", "\t\n", "\u00a0"])
def test_blank_address_is_unknown(blank: str) -> None:
    """A blank node IP, as a shell variable that is not set gives it, is none at all."""
    assert Topology(node_ip=blank) == Topology()
    assert Topology(node_ip=f"{blank}10.0.0.7{blank}").node_ip == "10.0.0.7"


@pytest.mark.parametrize("value", [7, b"10.0.0.7", ["10.0.0.7"]])
def test_address_that_is_no_text(value: Any) -> None:
    """A node IP that is no text is a wrong use of the library."""
    with pytest.raises(TypeError, match="node_ip"):
        Topology(node_ip=value)


@pytest.mark.parametrize(
    ("nodes", "trainers", "several"),
    [(1, 1, False), (2, 1, True), (None, None, None), (None, 1, None), (None, 2, True), (1, 2, False)],
)
def test_several_nodes(nodes: int | None, trainers: int | None, several: bool | None) -> None:
    """Two nodes that train are two nodes of the job, whether or not anybody counted the others."""
    assert Topology(num_nodes=nodes, trainer_nodes=trainers).several_nodes is several


def test_rank_zero_is_a_rank() -> None:
    """Rank 0, given or read, is no absence of one."""
    assert complete(Topology(local_rank=0), LOCAL_RANK="5").local_rank == 0
    assert complete(Topology(), LOCAL_RANK="0").local_rank == 0


def test_nothing_is_known() -> None:
    """Without variables and Ray all stays unknown; blank variables are unset."""
    assert complete(Topology()) == Topology()
    assert complete(Topology(), LOCAL_RANK="", LOCAL_WORLD_SIZE="  ") == Topology()


@pytest.mark.parametrize(("name", "text"), [("LOCAL_RANK", "-1"), ("LOCAL_RANK", "x"), ("LOCAL_WORLD_SIZE", "0")])
def test_bad_variables(name: str, text: str) -> None:
    """A variable that holds no such number is a fault that names it, and leaves the number unknown."""
    topology, faults = complete_topology(Topology(), {name: text}, lambda: None)
    assert topology == Topology()
    (fault,) = faults
    assert fault.offence == "bad-rank-variable"
    assert fault.origin == Origin(Source.ENV, name)
    assert text in fault.message


def test_both_variables_bad() -> None:
    """Two bad variables are two faults."""
    _, faults = complete_topology(Topology(), {"LOCAL_RANK": "a", "LOCAL_WORLD_SIZE": "b"}, lambda: None)
    assert [fault.origin.spot for fault in faults] == ["LOCAL_RANK", "LOCAL_WORLD_SIZE"]


def test_given_rank_hides_a_bad_variable() -> None:
    """A variable that is not asked is not judged."""
    given = Topology(local_rank=1, processes_per_node=1)
    assert complete(given, LOCAL_RANK="x", LOCAL_WORLD_SIZE="y") == given


def test_topology_crosses_processes() -> None:
    """A topology pickles, and is replaced, as a value."""
    topology = Topology(num_nodes=2)
    assert pickle.loads(pickle.dumps(topology)) == topology
    assert replace(topology, local_rank=1).num_nodes == 2
