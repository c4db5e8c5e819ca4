"""One table for every benchmark: what was measured, and its ratio to the peer measured in the same run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median

from rich import box
from rich.console import Console
from rich.table import Table


def measure(runs: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Figures of each run, taken in turn (A B C A B C …), so that a drifting machine hits all alike."""
    figures: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            figures[name].append(run())
    return figures


def print_figures(title: str, figures: Mapping[str, Sequence[float]], unit: str, peer: str) -> None:
    """Median, smallest and largest figure of each run, and the median of its round-by-round ratios to the peer."""
    table = Table("what", "median", "min", "max", f"of {peer}", title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for name, values in figures.items():
        ratio = median(value / other for value, other in zip(values, figures[peer], strict=True))
        table.add_row(
            name, *(f"{value:.1f} {unit}" for value in (median(values), min(values), max(values))), f"{ratio:.2f}"
        )
    Console(highlight=False).print(table)
