"""Runs the console blocks of Markdown pages and puts their real output below them.

A block is fenced as ``console``; each ``$ command`` (lines that end in a backslash go on) is run by bash in an empty
directory with a bare environment and 80 columns, and what follows it is replaced by what it prints.

    python docs/console_blocks.py README.md docs/*.md
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

_BLOCK = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ (?:.*\\\n)*.*\n", re.MULTILINE)


def refreshed(page: str) -> str:
    """The page with the output of every console block as it is now."""
    return _BLOCK.sub(lambda block: "\n".join(_run(command) for command in _COMMAND.findall(block.group())), page)


def _run(command: str) -> str:
    environment = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "80"}
    with tempfile.TemporaryDirectory() as empty:
        done = subprocess.run(
            ["bash", "-c", command.removeprefix("$ ")],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
            cwd=empty,
            check=False,
        )
    return command + "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())


def main(names: list[str]) -> None:
    """Rewrites the named pages."""
    for page in map(Path, names):
        page.write_text(refreshed(page.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
