"""What can be said of two programs that were measured in pairs, on a machine that does other things too."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from statistics import median
from typing import NamedTuple

CONFIDENCE = 0.95


class Ratio(NamedTuple):
    """The median of the ratios of pairs, and an interval that holds the true median with 95 % confidence."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f}–{self.high:.2f})"

    def verdict(self, least: float) -> str:
        """Whether the true median is ``least`` or more: yes or no where the interval says so, else undecided."""
        if self.low >= least:
            return "yes"
        return "no" if self.high < least else "undecided"


def paired(peer: Sequence[float], own: Sequence[float]) -> Ratio:
    """Peer over own, pair by pair: above 1 ours is the faster one. Whatever slows a whole pair down cancels out."""
    ratios = sorted(other / mine for other, mine in zip(peer, own, strict=True))
    left = outside(len(ratios))
    return Ratio(median(ratios), ratios[left], ratios[-1 - left])


def outside(count: int) -> int:
    """How many of the sorted figures lie outside of the interval on either side.

    As many as leave the chance that the true median is beyond at 2.5 % on each side; none where even the whole range
    is no such interval (fewer than 6 figures). It holds for figures of any distribution.
    """
    chance, left = 0.0, 0
    while (chance := chance + comb(count, left) / 2**count) <= (1 - CONFIDENCE) / 2:
        left += 1
    return max(left - 1, 0)
