"""MC14x: a whole job, its rollouts against the Store's capacity, and the sizes that would hold them."""

from __future__ import annotations

from collections.abc import Iterator

from mooncake_config.findings import Severity
from mooncake_config.plan import Plan, Shortfall, written_size
from mooncake_config.rules.rule import Problem, rule
from mooncake_config.sizes import human_size
from mooncake_config.topology import COUNT_LIMIT

_SIZES = ("global_segment_size", "local_buffer_size")


@rule("MC140", Severity.ERROR)
def more_rollouts_than_fit(plan: Plan) -> Iterator[Problem]:
    """The Store holds fewer rollouts than are in flight.

    Sees --in-flight (one, where it is not given) rollouts of --rollout-bytes, each in --mooncake-replica-num copies,
    against 90 % of what the training nodes contribute together.

    Why: rollout data is pinned until it is removed, so a full Store evicts none of it: the next put answers -200
    (measured), and the job ends in the middle of an iteration, or waits for good.

    Fix: enlarge global_segment_size, train on more nodes, or keep fewer rollouts or replicas. `plan` prints the flags.

    Fires:
        plan --num-nodes 2 --trainer-nodes 1 --processes-per-node 8 --rollout-bytes 1gb --in-flight 8
    Silent:
        plan --num-nodes 2 --trainer-nodes 1 --processes-per-node 8 --rollout-bytes 1gb --in-flight 7
    """
    fit, load, replicas = plan.rollouts_that_fit, plan.load, plan.copies
    if fit is None or fit >= load.rollouts:
        return
    copies = f", each in {replicas} copies," if replicas > 1 else ""
    count = f"{load.rollouts} rollouts" if load.rollouts > 1 else "one rollout"
    message = (
        f"{count} of {human_size(load.rollout_bytes or 0)}{copies} shall be in the Store at once, and "
        f"{fit or 'none'} fit{'s' if fit == 1 else ''} below 90 % of its {human_size(plan.capacity or 0)}."
    )
    yield Problem(("global_segment_size",), message, way_to_fit(plan) or "train on more nodes.")


def way_to_fit(plan: Plan) -> str | None:
    """What to write where sizes would fit; None where too little is known to propose some."""
    sizes, process = plan.proposal, plan.process
    if isinstance(sizes, Shortfall):
        return "no sizes fit these nodes: take a way out that MC141 (no-sizes-fit) names."
    if sizes is None:
        return None
    changed = [
        f'{name} "{written_size(size)}"'
        for name, size in zip(_SIZES, (sizes.segment, sizes.buffer), strict=True)
        if size != process.size(name)
    ]
    return f"write {' and '.join(changed)}." if changed else None


@rule("MC141", Severity.WARNING)
def no_sizes_fit(plan: Plan) -> Iterator[Problem]:
    """No segment and buffer hold what is in flight and leave a quarter of a node's memory free.

    Sees the smallest segment that holds it, and buffers of two chunks, on the node with the most Store clients.

    Why: whatever is written for the two sizes, either the Store fills up or the node does.

    Fix: one of the numbers in the message, or nodes with more memory.

    Fires:
        plan --num-nodes 1 --processes-per-node 8 --rollout-bytes 1pb
    Silent:
        plan --num-nodes 1 --processes-per-node 8 --rollout-bytes 1mb
    """
    short = plan.proposal
    if not isinstance(short, Shortfall):
        return
    share = " of what a process can map" if plan.memory is None else ", three quarters of a node's memory"
    message = (
        f"no sizes fit: a segment of {human_size(short.least.segment)} and buffers of {human_size(short.least.buffer)} "
        f"take {human_size(short.needed)} on the fullest node, {human_size(short.needed - short.room)} more than "
        f"{human_size(short.room)}{share}."
    )
    yield Problem(_SIZES, message, f"{_ways_out(plan, short)}.")


def _ways_out(plan: Plan, short: Shortfall) -> str:
    """The numbers that, changed alone, make it fit."""
    load, replicas = plan.load, plan.copies
    ways = []
    if short.segment:
        ways.append(f'write global_segment_size "{written_size(short.segment)}"')
    if short.trainer_nodes and short.trainer_nodes <= COUNT_LIMIT:
        ways.append(f"train on {short.trainer_nodes} nodes")
    if short.in_flight:
        ways.append(f"keep {short.in_flight} of {load.rollouts} rollouts in flight")
    if short.replicas and replicas > 1:
        ways.append(f"write --mooncake-replica-num {short.replicas}")
    if not ways:
        ways = ["run fewer Store clients on a node", "lower chunk_bytes"]
    return ", or ".join([*ways, "take nodes with more memory"])
