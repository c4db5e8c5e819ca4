"""Takes the pictures of the command line that stand in the README and in the documentation: real output, as SVG.

    python docs/screens.py

Each picture is the same on every machine: the commands ask about a node that is made up file by file, and what only a
clock or an installation path can tell is written over.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.text import Text

SCREENS = Path(__file__).parent / "screens"
WIDTH = 80

COMMANDS = {
    "explain": r"""MOONCAKE_MASTER_ADDR=10.0.0.5:50051 MOONCAKE_LOCAL_HOSTNAME=localhost \
  mooncake-config explain --num-nodes 2 --node-ip 10.0.0.7 -- \
  python3 train.py --object-store-backend mooncake \
  --mooncake-store-init-kwargs \
  '{"protocol": "rmda", "global_segment_size": "8 gigs"}'""",
    "check": r"""MOONCAKE_MASTER=127.0.0.1:20051 MOONCAKE_DEVICE=mlx5_2 \
  mooncake-config check --host-root node-7 --node-ip 10.0.0.7 \
  --num-nodes 1 --processes-per-node 8 --local-rank 0""",
    "plan": r"""MOONCAKE_MASTER=10.0.0.5:50051 mooncake-config plan --host-root node-7 \
  --num-nodes 3 --trainer-nodes 2 --processes-per-node 8 --node-ip 10.0.0.7 \
  --rollout-bytes 2gb --in-flight 4""",
}

_NODE_7 = {
    "etc/hostname": "node-7\n",
    "proc/meminfo": f"MemTotal: {512 << 20} kB\nMemAvailable: {498 << 20} kB\n",
    "proc/self/cgroup": "0::/\n",
    "proc/self/limits": "Limit  Soft Limit  Hard Limit  Units\nMax locked memory  8388608  8388608  bytes\n",
    "proc/net/fib_trie": "Local:\n  |-- 10.0.0.7\n    /32 host LOCAL\n  |-- 127.0.0.1\n    /32 host LOCAL\n",
    "sys/fs/cgroup/cgroup.controllers": "memory\n",
    "sys/fs/cgroup/memory.max": "max\n",
    "sys/class/net/eth0/address": "02:00:00:00:00:07\n",
    **{
        f"sys/class/infiniband/mlx5_{number}/ports/1/{name}": text
        for number in (0, 1)
        for name, text in {
            "state": "4: ACTIVE\n",
            "phys_state": "5: LinkUp\n",
            "link_layer": "InfiniBand\n",
            "rate": "400 Gb/sec (4X NDR)\n",
        }.items()
    },
}


@contextmanager
def _folder() -> Iterator[Path]:
    """A folder with the files of node-7, as if they had been copied from there."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in _NODE_7.items():
            path = Path(folder, "node-7", name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        yield Path(folder)


def _printed(command: str, folder: Path) -> str:
    """What a command prints in a terminal with colours."""
    environment = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": str(WIDTH),
        "FORCE_COLOR": "1",
        "TERM": "xterm-256color",
    }
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, env=environment, cwd=folder, check=False
    )
    return done.stdout + done.stderr


_IMPORT = re.compile(r"(?s)(import in a child process ).*?(\n *)(\x1b\[1mworks\x1b\[0m\S*) [0-9.]+ s")
"""The row of the import: a path of this machine, on as many lines as it needs, and the time that it took."""


def _neutral(printed: str) -> str:
    """What was printed, with a path and with times that are those of no machine."""
    timeless = re.sub(r"[0-9]+\.[0-9]{2} s\b", "0.00 s", printed)
    return _IMPORT.sub(r"\1/opt/venv/lib/python3.12/site-packages/mooncake\2\3 0.35 s", timeless)


_FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace"


def _picture(name: str, command: str, printed: str) -> str:
    """The SVG of a command and what it printed. It fetches no font: the reader's own is used."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.assemble(("$ ", "dim"), (command, "bold")), soft_wrap=True)
    console.print()
    console.print(Text.from_ansi(printed.rstrip()))
    svg = console.export_svg(title="mooncake-config", unique_id=name)
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    svg = svg.replace("Fira Code, monospace", _FONTS).replace("Fira Code", "monospace")
    return "".join(f"{line.rstrip()}\n" for line in svg.splitlines())


def screen(name: str) -> str:
    """One picture, taken now."""
    command = COMMANDS[name]
    with _folder() as folder:
        return _picture(name, command, _neutral(_printed(command, folder)))


def main() -> None:
    """Takes every picture."""
    SCREENS.mkdir(exist_ok=True)
    for name in COMMANDS:
        (SCREENS / f"{name}.svg").write_text(screen(name), "utf-8")


if __name__ == "__main__":
    main()
