"""Which process of which job: roles, and the shape of the job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from mooncake_config.display import shown
from mooncake_config.findings import Fault
from mooncake_config.provenance import Origin, Source

COUNT_LIMIT = 999_999_999
"""The largest number of nodes, processes or rollouts that a command line may name."""


class Role(str, Enum):
    """What a process does in the job. Only trainers contribute memory to the Store."""

    TRAINER = "trainer"
    ROLLOUT_MANAGER = "rollout-manager"
    DRIVER = "driver"


RANK_VARIABLES = ("LOCAL_RANK", "LOCAL_WORLD_SIZE")
"""Where a launcher tells a process its number on its node, and how many there are."""

_LEAST = {"num_nodes": 1, "trainer_nodes": 1, "local_rank": 0, "processes_per_node": 1}


@dataclass(frozen=True)
class Topology:
    """The shape of a job, as far as it is known. None: unknown.

    Args:
        num_nodes: nodes in the job, 1 or more.
        trainer_nodes: nodes that run training actors, each contributing one segment.
        local_rank: rank of this process on its node, 0 or more.
        processes_per_node: Store clients on one node, 1 or more.
        node_ip: the Ray node IP of this node; blank is unknown.

    Raises:
        ValueError: a count below 1 or a rank below 0.
        TypeError: a count or rank that is no integer, an address that is no text.
    """

    num_nodes: int | None = None
    trainer_nodes: int | None = None
    local_rank: int | None = None
    processes_per_node: int | None = None
    node_ip: str | None = None

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value is None or (type(value) is int and value >= least):
                continue
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name} must be an integer, not {value!r}")
            if value < least:
                raise ValueError(f"{name} must be {least} or more, not {value}")
        if self.node_ip is not None:
            if not isinstance(self.node_ip, str):
                raise TypeError(f"node_ip must be text, not {type(self.node_ip).__name__}")
            # A shell variable that is not set gives blank text: no address, and none that would be claimed.
            object.__setattr__(self, "node_ip", self.node_ip.strip() or None)

    @property
    def several_nodes(self) -> bool | None:
        """Whether the job has more than one node; None: unknown. Nodes that train are nodes of the job too."""
        if self.num_nodes is not None:
            return self.num_nodes > 1
        return True if (self.trainer_nodes or 1) > 1 else None

    def contributes_segment(self, role: Role) -> bool:
        """Whether a process of this role contributes a segment: the one trainer of a node whose rank is 0 or unset."""
        return not self.local_rank and role is Role.TRAINER


def complete_topology(
    given: Topology, environ: Mapping[str, str], count_nodes: Callable[[], int | None]
) -> tuple[Topology, tuple[Fault, ...]]:
    """The given topology with what is unknown read from ``LOCAL_RANK``, ``LOCAL_WORLD_SIZE`` and Ray's node count.

    Returns:
        The topology, and a fault for each of the two variables that holds no such number.
    """
    faults: list[Fault] = []
    rank, size = given.local_rank, given.processes_per_node
    if rank is None:
        rank = _whole_number(environ, RANK_VARIABLES[0], 0, faults)
    if size is None:
        size = _whole_number(environ, RANK_VARIABLES[1], 1, faults)
    nodes = given.num_nodes or count_nodes()
    return Topology(nodes, given.trainer_nodes or nodes, rank, size, given.node_ip), tuple(faults)


def _whole_number(environ: Mapping[str, str], name: str, least: int, faults: list[Fault]) -> int | None:
    text = environ.get(name, "").strip()
    if not text:
        return None
    if text.isascii() and text.isdigit() and len(text) < 10 and int(text) >= least:
        return int(text)
    faults.append(
        Fault(
            "bad-rank-variable",
            (),
            Origin(Source.ENV, name),
            f"{name} is {shown(text)}, which is not a whole number of {least} or more.",
            f"let the launcher set {name} to this process's number on its node, or unset it.",
        )
    )
    return None
