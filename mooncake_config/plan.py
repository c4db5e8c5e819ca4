"""Plan: the memory that a job's nodes give to Mooncake Store, and how many rollouts fit into it. All sizes are bytes.

::

    buffers  = clients of the node × local_buffer_size
    segment  = global_segment_size on a node that trains, 0 on any other
    total    = buffers + segment
    capacity = trainer_nodes × global_segment_size
    rollouts that fit = floor(capacity × 0.9 ÷ (rollout_bytes × copies))
    copies   = replicas that are asked for, at most trainer_nodes: each is in a segment of its own

The clients of a node are its trainers, and on the head the rollout manager and the driver. What is unknown is None, and
so is what depends on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from math import ceil, floor

from mooncake_config.process import Backend, Process, memory_of
from mooncake_config.sizes import ADDRESS_SPACE, BUFFER_RANGE, DEFAULT_CHUNK, SEGMENT_FLOOR, format_size
from mooncake_config.topology import Topology

WATERMARK = Fraction(9, 10)
"""Share of the capacity above which a master evicts what is not pinned (``--eviction_high_watermark_ratio``, 0.90).

Pinned objects stay, and puts go on until an allocation fails: the tenth above it is then room for fragments.
"""

HEAD_CLIENTS = 2
"""Store clients of the head: the rollout manager and the driver. Neither contributes a segment."""

ROOM = Fraction(3, 4)
"""Share of a node's memory that proposed sizes may take; the rest is for the processes themselves."""

_GIB = 1 << 30
_STEPS = ((_GIB, _GIB >> 4), (16 * _GIB, _GIB >> 2))
"""Below the first size, proposed sizes are multiples of the second; above all of them, of 1 GiB."""


class NodeRole(str, Enum):
    """What runs on a node: the rollout manager and the driver, trainers, both, or nothing that opens a store."""

    HEAD = "head"
    HEAD_AND_TRAINER = "head and trainer"
    TRAINER = "trainer"
    ROLLOUT = "rollout"


@dataclass(frozen=True)
class Load:
    """What the Store shall hold. None: unknown.

    Args:
        rollout_bytes: bytes of one rollout, all its fields together.
        in_flight: rollouts that were put and are not removed yet, at the same time; unknown counts as one.
    """

    rollout_bytes: int | None = None
    in_flight: int | None = None

    @property
    def rollouts(self) -> int:
        """How many must fit at least."""
        return self.in_flight or 1


@dataclass(frozen=True)
class Sizes:
    """Bytes of ``global_segment_size`` and of ``local_buffer_size``."""

    segment: int
    buffer: int


@dataclass(frozen=True)
class NodeShare:
    """What each of ``count`` nodes of one role gives. None: unknown.

    Args:
        clients: Store clients on one such node; each has a buffer.
        segments: how many of them contribute a segment, 0 or 1.
        sizes: bytes of each segment and buffer.
    """

    role: NodeRole
    count: int | None
    clients: int | None
    segments: int | None
    sizes: Sizes | None

    @property
    def segment(self) -> int | None:
        """Bytes that one such node gives to the Store."""
        return None if self.segments is None or self.sizes is None else self.segments * self.sizes.segment

    @property
    def buffers(self) -> int | None:
        """Bytes of the buffers of all clients on one such node."""
        return None if self.clients is None or self.sizes is None else self.clients * self.sizes.buffer

    @property
    def total(self) -> int | None:
        """Bytes that one such node reserves for the Store."""
        if self.clients is None or self.segments is None or self.sizes is None:
            return None
        return self.least_total(self.sizes)

    @property
    def least_clients(self) -> int:
        """The clients, or the one that there is at least."""
        return 1 if self.clients is None else self.clients

    def least_total(self, sizes: Sizes) -> int:
        """The same with other sizes, as far as the clients are known."""
        return memory_of(self.least_clients, sizes.buffer, self.segments or 0, sizes.segment)


@dataclass(frozen=True)
class Shortfall:
    """Why no sizes fit, and how far from it one would have to go.

    Args:
        least: the smallest sizes that would do.
        needed: bytes that the fullest node would reserve with them.
        room: bytes that it may.
        trainer_nodes: that many training nodes would do, other things equal; None: none would.
        in_flight: that many rollouts at once would fit; None: not one.
        replicas: that many replicas would fit; None: not one.
        segment: where the size of a rollout is unknown, bytes of the largest segment that there is room for.
    """

    least: Sizes
    needed: int
    room: int
    trainer_nodes: int | None = None
    in_flight: int | None = None
    replicas: int | None = None
    segment: int | None = None


@dataclass(frozen=True)
class Plan:
    """A job's nodes, what they give, and what fits.

    Args:
        process: a trainer of the job; its settings are those of all.
        memory: bytes of memory that each node has; None: unknown.
        proposal: sizes that fit: those that hold, where they do. None: too little is known.
    """

    process: Process
    load: Load
    memory: int | None
    nodes: tuple[NodeShare, ...]
    proposal: Sizes | Shortfall | None

    @property
    def capacity(self) -> int | None:
        """Bytes of all segments together."""
        if self.process.backend is not Backend.MOONCAKE:
            return None
        return capacity_of(self.process.topology.trainer_nodes, self.process.size("global_segment_size"))

    @property
    def rollouts_that_fit(self) -> int | None:
        """How many rollouts the Store holds at once with all their replicas, below the watermark."""
        size = self.load.rollout_bytes
        if self.capacity is None or size is None or self.copies < 1:
            return None
        return rollouts_in(self.capacity, size, self.copies)

    @property
    def copies(self) -> int:
        """Replicas that Mooncake makes of each object: as many as are asked for, and one in a segment."""
        return copies_of(self.process)

    @property
    def fits_as_it_is(self) -> bool:
        """Whether the sizes that hold are those that would be proposed."""
        return self.proposal is not None and self.proposal == _sizes_of(self.process)


def capacity_of(trainer_nodes: int | None, segment: int | None) -> int | None:
    """Bytes that the training nodes contribute together, one segment each."""
    return None if trainer_nodes is None or segment is None else trainer_nodes * segment


def copies_of(process: Process) -> int:
    """Replicas of each object; where more are asked for than nodes contribute a segment, Mooncake leaves them out."""
    trainers = process.topology.trainer_nodes
    return process.replica_num if trainers is None else min(process.replica_num, trainers)


def rollouts_in(capacity: int, rollout_bytes: int, replicas: int) -> int:
    """How many rollouts, each in so many replicas, a capacity of so many bytes holds below the watermark."""
    return floor(capacity * WATERMARK / (rollout_bytes * replicas))


def segment_for(rollouts: int, rollout_bytes: int, replicas: int, trainer_nodes: int) -> int:
    """The smallest segment, in bytes, with which so many rollouts fit: :func:`rollouts_in` the other way round."""
    return ceil(rollouts * rollout_bytes * replicas / WATERMARK / trainer_nodes)


def room_in(memory: int) -> int:
    """Bytes of a node's memory that proposed sizes may take together."""
    return floor(memory * ROOM)


def buffer_beside(room: int, clients: int, segment: int) -> int:
    """Bytes of buffer that each of so many clients can have beside a segment; below 0 where that is too much alone."""
    return (room - segment) // clients


def plan_nodes(process: Process, load: Load, memory: int | None) -> Plan:
    """What each node of the process's job gives to the Store, what fits, and sizes that would.

    Args:
        process: a trainer with local rank 0.
        memory: bytes of memory of each node; None: unknown.
    """
    if process.backend is not Backend.MOONCAKE:
        return Plan(process, load, memory, (), None)
    sizes = _sizes_of(process)
    nodes = tuple(NodeShare(*shape, sizes) for shape in _shapes(process.topology))
    return Plan(process, load, memory, nodes, _propose(process, load, memory, nodes))


def _sizes_of(process: Process) -> Sizes | None:
    segment, buffer = process.size("global_segment_size"), process.size("local_buffer_size")
    return None if segment is None or buffer is None else Sizes(segment, buffer)


def _shapes(topology: Topology) -> Iterator[tuple[NodeRole, int | None, int | None, int | None]]:
    """Role, count, clients and segments of the job's nodes. The head trains only where every node does."""
    nodes, trainers, each = topology.num_nodes, topology.trainer_nodes, topology.processes_per_node
    if nodes is None or trainers is None:
        yield NodeRole.HEAD, 1, None, None  # whether it trains too is unknown
        yield NodeRole.TRAINER, trainers, each, 1
        return
    head_trains = trainers >= nodes
    if head_trains:
        yield NodeRole.HEAD_AND_TRAINER, 1, None if each is None else each + HEAD_CLIENTS, 1
    else:
        yield NodeRole.HEAD, 1, HEAD_CLIENTS, 0
    others = trainers - head_trains
    if others:
        yield NodeRole.TRAINER, others, each, 1
    if nodes - 1 > others:
        yield NodeRole.ROLLOUT, nodes - 1 - others, 0, 0


def _propose(
    process: Process, load: Load, memory: int | None, nodes: tuple[NodeShare, ...]
) -> Sizes | Shortfall | None:
    """Sizes that fit, changed as little as possible."""
    current, trainers, replicas = _sizes_of(process), process.topology.trainer_nodes, copies_of(process)
    if current is None or trainers is None or replicas < 1:
        return None
    search = _Search(current, _needed_segment(current, load, replicas, trainers), _chunk(process), load, memory, nodes)
    if search.segment < SEGMENT_FLOOR or search.least.buffer > BUFFER_RANGE[1]:
        return None
    return search.found() or _shortfall(search, process)


def _needed_segment(current: Sizes, load: Load, replicas: int, trainers: int) -> int:
    """Bytes that a segment must have; the present ones where the size of a rollout is unknown."""
    if load.rollout_bytes is None:
        return current.segment
    return max(SEGMENT_FLOOR, segment_for(load.rollouts, load.rollout_bytes, replicas, trainers))


def _chunk(process: Process) -> int:
    return process.size("chunk_bytes") or DEFAULT_CHUNK


@dataclass(frozen=True)
class _Search:
    """What proposed sizes must hold, and those that do."""

    current: Sizes
    segment: int
    chunk: int
    load: Load
    memory: int | None
    nodes: tuple[NodeShare, ...]

    @property
    def room(self) -> int:
        """Bytes that a node may give: none that no process can map, where its memory is unknown."""
        return ADDRESS_SPACE - 1 if self.memory is None else min(room_in(self.memory), ADDRESS_SPACE - 1)

    @property
    def least(self) -> Sizes:
        """The smallest that would do: while one chunk of a put travels the next is filled. A smaller buffer is kept."""
        buffer = rounded_up(2 * self.chunk)
        kept = self._takes_a_chunk(self.current.buffer)
        return Sizes(rounded_up(self.segment), min(buffer, self.current.buffer) if kept else buffer)

    def needed(self, sizes: Sizes) -> int:
        """Bytes that the fullest node reserves, as far as the clients are known."""
        return max(node.least_total(sizes) for node in self.nodes)

    def found(self) -> Sizes | None:
        """The present sizes, or the first that fit: with the present segment, or with a sufficient one."""
        bound = ADDRESS_SPACE - 1 if self.memory is None else self.memory
        if self._is_sound(self.current.segment, self.current.buffer) and self.needed(self.current) <= bound:
            return self.current
        tried = (self._fitted(segment) for segment in (self.current.segment, self.least.segment))
        return next((sizes for sizes in tried if sizes), None)

    def _is_sound(self, segment: int, buffer: int) -> bool:
        """Whether the sizes hold the load and a chunk, and Mooncake takes them, whatever the memory."""
        return self.segment <= segment < ADDRESS_SPACE and self._takes_a_chunk(buffer)

    def _takes_a_chunk(self, buffer: int) -> bool:
        return max(self.chunk, BUFFER_RANGE[0]) <= buffer <= BUFFER_RANGE[1]

    def _fitted(self, segment: int) -> Sizes | None:
        """The segment with the present buffer, or with a smaller one, such that each node has room for it."""
        if not self._is_sound(segment, self.least.buffer):
            return None
        most = self._largest_buffer(segment)
        if self._is_sound(segment, self.current.buffer) and self.current.buffer <= most:
            return Sizes(segment, self.current.buffer)
        buffer = rounded_down(min(most, self._useful_buffer(), BUFFER_RANGE[1]))
        return Sizes(segment, buffer) if buffer >= self.least.buffer else None

    def _largest_buffer(self, segment: int) -> int:
        """Bytes that each client of the fullest node can have beside such a segment."""
        return min(
            buffer_beside(self.room, node.least_clients, (node.segments or 0) * segment)
            for node in self.nodes
            if node.clients != 0
        )

    def largest_segment(self, *, beside_head_clients: int = 0) -> int:
        """Bytes of segment that each training node has room for beside the smallest buffers; 0 where it has none.

        Args:
            beside_head_clients: clients of the head that come to a training node which has none of them yet.
        """
        if any(node.least_total(Sizes(0, self.least.buffer)) > self.room for node in self.nodes):
            return 0
        training = [node for node in self.nodes if node.segments]
        clients = max(node.least_clients for node in training)
        if all(node.role is NodeRole.TRAINER for node in training):
            clients += beside_head_clients
        return max(rounded_down(self.room - clients * self.least.buffer), 0)

    def _useful_buffer(self) -> int:
        """Bytes beyond which a buffer is no use: one whole rollout, where its size is known."""
        wanted = self.load.rollout_bytes
        return max(self.least.buffer, self.current.buffer if wanted is None else rounded_up(wanted))


def _shortfall(search: _Search, process: Process) -> Shortfall:
    """By how much it fails, and which number, changed alone, would do."""
    least, size, rollouts = search.least, search.load.rollout_bytes, search.load.rollouts
    trainers, replicas = process.topology.trainer_nodes or 1, copies_of(process)
    told = Shortfall(least, search.needed(least), search.room)
    segment = search.largest_segment()
    if segment < SEGMENT_FLOOR:
        return told
    if size is None:
        return replace(told, segment=segment)
    fitting = rollouts_in(trainers * segment, size, replicas)
    copies = rollouts_in(trainers * segment, size, 1) // rollouts
    nodes = _trainers_for(search, rollouts * size * process.replica_num, process.topology.num_nodes)
    return replace(told, trainer_nodes=nodes, in_flight=fitting or None, replicas=copies or None)


def _trainers_for(search: _Search, demand: int, num_nodes: int | None) -> int | None:
    """Training nodes whose segments hold so many bytes. From ``num_nodes`` on the head is one of them."""
    nodes = ceil(demand / WATERMARK / search.largest_segment())
    if num_nodes is None or nodes < num_nodes:
        return nodes
    segment = search.largest_segment(beside_head_clients=HEAD_CLIENTS)
    return ceil(demand / WATERMARK / segment) if segment >= SEGMENT_FLOOR else None


def _step(size: int) -> int:
    return next((step for bound, step in _STEPS if size < bound), _GIB)


def rounded_up(size: int) -> int:
    """The next size that reads well: sixteenths of a GiB, from 1 GiB quarters, from 16 GiB whole ones."""
    return -(-size // _step(size)) * _step(size)


def rounded_down(size: int) -> int:
    """The last such size that is not larger."""
    return size // _step(size) * _step(size)


def written_size(size: int) -> str:
    """A size as it is pasted, exact: ``192mb``, ``2.25gb``, ``40gb``."""
    quarters, rest = divmod(size, _GIB >> 2)
    return f"{quarters / 4:g}gb" if 4 <= quarters < 64 and not rest else format_size(size)
