"""The outputs of the walkthrough that stand in a page: marked blocks, written by one run and compared in the others."""

from __future__ import annotations

import os
import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "check-a-cluster.md"
WRITE = os.environ.get("PAGE") == "write"
COMMAND = "make two-node PAGE=write"

_UNSTABLE = (
    (re.compile(r"(?:<1|\d+) ms(?: to \d+ ms)?"), "… ms"),
    (re.compile(r"(10\.77\.0\.\d):1[5-7]\d{3}\b"), r"\1:…"),
    (re.compile(r"^(memory +)[\d.]+ .iB", re.MULTILINE), r"\1… GiB"),
    (re.compile(r"^(Python|Ray|mooncake-config|Mooncake)( +)[\d.]+\w*", re.MULTILINE), r"\1\2…"),
    (re.compile(r"─+"), "─"),
    (re.compile(r"\s+"), " "),
)
"""What differs between machines and runs, and what a comparison takes for it: times, ports, memory, versions."""


def shown(name: str) -> str:
    """What stands in the block of that name."""
    return _block(name, PAGE.read_text("utf-8"))["body"]


def write(name: str, body: str) -> None:
    """Puts an output into the block of that name."""
    page = PAGE.read_text("utf-8")
    found = _block(name, page)
    PAGE.write_text(page[: found.start("body")] + body + page[found.end("body") :], "utf-8")


def comparable(output: str) -> str:
    """An output without what differs between machines and runs."""
    for pattern, stable in _UNSTABLE:
        output = pattern.sub(stable, output)
    return output.strip()


def _block(name: str, page: str) -> re.Match[str]:
    marked = rf"^<!-- not run: make two-node, {re.escape(name)} -->\n```console\n(?P<body>.*?)^```$"
    found = re.search(marked, page, re.MULTILINE | re.DOTALL)
    assert found, f"{PAGE.name} has no block named {name}"
    return found
