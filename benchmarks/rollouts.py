"""The rollouts that are put and got here, by their size."""

from __future__ import annotations

from typing import Any

from mooncake_config.demo import make_rollout

BYTES_PER_SAMPLE = 50_000
"""What a sample of ``make_rollout`` takes, on average."""

RAGGED = ("tokens", "loss_masks", "rollout_log_probs")
"""The fields with a row of numbers for each sample: nearly all of a rollout's bytes."""


def rollout_of(megabytes: int, seed: int = 0) -> dict[str, Any]:
    """A rollout of about so many MB, with the fields of Miles; equal seeds make equal rollouts."""
    return make_rollout(max(8, megabytes * 1_000_000 // BYTES_PER_SAMPLE), seed)


def with_lists(rollout: dict[str, Any]) -> dict[str, Any]:
    """The same rollout with lists of Python's numbers in the place of arrays."""
    return {name: [row.tolist() for row in value] if name in RAGGED else value for name, value in rollout.items()}


def array_bytes(rollout: dict[str, Any]) -> int:
    """Bytes of the arrays of a rollout."""
    return sum(row.nbytes for name in RAGGED for row in rollout[name])
