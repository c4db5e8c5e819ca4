"""What is said of two programs that were measured in pairs."""

from __future__ import annotations

import random

import pytest

from benchmarks.pairing import Ratio, outside, paired


@pytest.mark.parametrize(("count", "left"), [(1, 0), (5, 0), (6, 0), (9, 1), (10, 1), (12, 2), (20, 5), (100, 39)])
def test_interval(count: int, left: int) -> None:
    """So many of the sorted figures lie outside on either side: the usual table of the sign test."""
    assert outside(count) == left


def test_interval_covers() -> None:
    """The true median lies inside about as often as is said, whatever the distribution."""
    draw = random.Random(1)
    inside = 0
    for _ in range(2000):
        found = paired([draw.lognormvariate(0, 1) for _ in range(24)], [1.0] * 24)
        inside += found.low <= 1 <= found.high
    assert 0.94 <= inside / 2000 <= 0.99


def test_what_hits_a_pair_cancels_out() -> None:
    """A machine that is three times as slow for a while changes no ratio."""
    slow = [1.0, 3.0, 1.0, 3.0, 3.0, 1.0]
    assert paired([2 * factor for factor in slow], slow) == Ratio(2, 2, 2)


@pytest.mark.parametrize(
    ("ratio", "verdict"),
    [(Ratio(1, 0.97, 1.1), "yes"), (Ratio(0.98, 0.9, 1), "undecided"), (Ratio(0.9, 0.8, 0.96), "no")],
)
def test_verdict(ratio: Ratio, verdict: str) -> None:
    """A claim is decided by the interval, not by the median."""
    assert ratio.verdict(0.97) == verdict
    assert str(ratio).startswith(f"{ratio.median:.2f} (")
