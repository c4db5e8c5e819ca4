"""The embedded default, for real: a master on loopback, a resolution, a rollout through each object store."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from mooncake_config.report.pages import print_explanation
from mooncake_config.resolve import Resolution, resolve_store_config
from mooncake_config.sizes import human_size
from mooncake_config.store import ObjectStore, open_object_store
from mooncake_config.store.master import start_mooncake_master
from mooncake_config.store.ray import private_ray
from mooncake_config.topology import Topology

if TYPE_CHECKING:
    from rich.console import Console

SAMPLES = 256
"""Samples in the demo's rollout: 32 prompts, 8 answers each."""

Rollout = dict[str, Any]


def make_rollout(samples: int = SAMPLES, seed: int = 0) -> Rollout:
    """A rollout dictionary with the fields of Miles: ragged int32 tokens and masks, log probabilities, texts, numbers.

    Args:
        samples: answers in the rollout; each has 1,000 to 8,000 tokens.
        seed: equal seeds make equal rollouts.
    """
    import numpy as np

    draw = np.random.default_rng(seed)
    words = random.Random(seed)
    responses = draw.integers(800, 7_000, samples)
    totals = responses + draw.integers(200, 1_000, samples)
    return {
        "partition": list(range(samples)),
        "tokens": [draw.integers(0, 150_000, length, dtype=np.int32) for length in totals],
        "response_lengths": responses.tolist(),
        "total_lengths": totals.tolist(),
        "loss_masks": [np.ones(length, dtype=np.int32) for length in responses],
        "rollout_log_probs": [draw.normal(-1, 0.5, length).astype(np.float32) for length in responses],
        "rewards": draw.random(samples).tolist(),
        "raw_reward": draw.integers(0, 2, samples).astype(float).tolist(),
        "truncated": [0] * samples,
        "sample_indices": list(range(samples)),
        "prompt": [f"What is {words.randint(1, 99)} times {words.randint(1, 99)}?" for _ in range(samples)],
        "metadata": [{"source": "demo", "difficulty": {"level": words.randint(1, 5)}} for _ in range(samples)],
    }


def run_demo(console: Console) -> int:
    """Runs the main job once and prints it. Leaves no process and no file.

    Returns:
        0 when every store gave back what it got, else 1.
    """
    console.print("Starting mooncake_master on loopback …")
    with start_mooncake_master() as master:
        console.print(f"It answers at {master.address}.\n")
        resolution = resolve_store_config(
            {
                "protocol": "tcp",
                "master_server_address": master.address,
                "global_segment_size": "2gb",
                "local_buffer_size": "2gb",
                "chunk_bytes": 64 << 20,
            },
            topology=Topology(num_nodes=1, local_rank=0, processes_per_node=1, node_ip="127.0.0.1"),
            environ={},
        )
        print_explanation(console, resolution.process, resolution.findings)
        return _compare(console, resolution)


def _compare(console: Console, resolution: Resolution) -> int:
    rollout = make_rollout()
    size = sum(array.nbytes for name in ("tokens", "loss_masks", "rollout_log_probs") for array in rollout[name])
    console.print(f"\nA rollout of {SAMPLES} samples, {human_size(size)} of arrays, there and back:\n")
    console.print(f"{'store':<10}{'open':>10}{'put':>10}{'get':>10}{'remove':>10}   what came back")
    trips = [_round_trip("mooncake", lambda: open_object_store("mooncake", resolution, native_log="quiet"), rollout)]
    console.print(trips[0].line())
    if find_spec("ray"):
        with private_ray():
            trips.append(_round_trip("ray", lambda: open_object_store("ray"), rollout))
        console.print(trips[1].line())
    else:
        console.print("ray       is not installed; pip install 'mooncake-config[ray]' compares it here")
    console.print("\nThe master and all that was started are stopped.")
    return 0 if all(trip.same for trip in trips) else 1


@dataclass(frozen=True)
class _RoundTrip:
    """One store's way there and back: seconds of each step, and whether the same came back."""

    name: str
    seconds: tuple[float, ...]
    same: bool

    def line(self) -> str:
        """One row of the comparison."""
        figures = "".join(f"{seconds * 1e3:7.1f} ms" for seconds in self.seconds)
        return f"{self.name:<10}{figures}   {'the same dictionary' if self.same else 'SOMETHING ELSE'}"


def _round_trip(name: str, open_store: Callable[[], ObjectStore[Any]], rollout: Rollout) -> _RoundTrip:
    marks = [time.perf_counter()]
    with open_store() as store:
        marks.append(time.perf_counter())
        ref = store.put(rollout)
        marks.append(time.perf_counter())
        with store.get(ref) as received:
            marks.append(time.perf_counter())
            same = equal(rollout, received)
        before_removal = time.perf_counter()
        store.remove(ref)
        removal = time.perf_counter() - before_removal
    steps = (later - earlier for earlier, later in itertools.pairwise(marks))
    return _RoundTrip(name, (*steps, removal), same)


def equal(one: object, other: object) -> bool:
    """Whether two rollouts hold the same values, arrays by their contents and dtype."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal, one, other))
    import numpy as np

    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    return type(one) is type(other) and one == other
