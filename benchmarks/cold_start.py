"""A cold `python -m mooncake_config explain` beside what importing pydantic-settings alone costs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

from benchmarks.report import measure, print_figures

ROUNDS = 15
PEER = "import pydantic_settings"
EXPLAIN = ["-m", "mooncake_config", "explain", "--num-nodes", "2", "--node-ip", "10.0.0.7"]


def main() -> None:
    """Prints two tables: wall seconds and processor seconds. Aim: 1.35 of the peer or less."""
    commands = {
        "explain (table)": EXPLAIN,
        "explain (json)": [*EXPLAIN, "--format", "json"],
        PEER: ["-c", PEER],
        "nothing": ["-c", "pass"],
    }
    for title, run in (("cold start, wall", _wall), ("cold start, processor", _processor)):
        runs = {name: run(words) for name, words in commands.items()}
        for warm_up in runs.values():
            warm_up()
        print_figures(title, measure(runs, ROUNDS), "ms", PEER)


def _start(words: Sequence[str]) -> None:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment = {**kept, "MOONCAKE_MASTER": "10.0.0.5:50051"}
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL, env=environment)


def _wall(words: Sequence[str]) -> Callable[[], float]:
    def run() -> float:
        began = time.perf_counter()
        _start(words)
        return (time.perf_counter() - began) * 1e3

    return run


def _processor(words: Sequence[str]) -> Callable[[], float]:
    def run() -> float:
        before = os.times()
        _start(words)
        after = os.times()
        return (after.children_user - before.children_user + after.children_system - before.children_system) * 1e3

    return run
