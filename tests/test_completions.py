"""Completion in the real shells: what a TAB makes of a line, and that the scripts are those of the parser."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import shutil
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mooncake_config.cli import COMPLETIONS, main
from mooncake_config.commands import SHELLS

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 30
START = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "source {script}"),
    "zsh": (["zsh", "-f", "-i"], 'autoload -Uz compinit; compinit -D -u; eval "$(<{script})"'),
    "fish": (["fish", "--no-config", "-i"], "source {script}"),
}
"""How each shell is started without anybody's settings, and how it takes a script."""

LINES = [
    ("mooncake-config expl", "mooncake-config explain"),
    ("mooncake-config explain --only", "mooncake-config explain --only-changed"),
    ("mooncake-config explain --role roll", "mooncake-config explain --role rollout-manager"),
    ("mooncake-config explain --field glob", "mooncake-config explain --field global_segment_size"),
    (
        "mooncake-config check --strict --ignore loopback-in-m",
        "mooncake-config check --strict --ignore loopback-in-multi-node",
    ),
    ("mooncake-config rule MC10", "mooncake-config rule MC10"),
    ("mooncake-config rule unread-v", "mooncake-config rule unread-variable"),
    ("mooncake-config rule --format j", "mooncake-config rule --format json"),
    ("mooncake-config completion fi", "mooncake-config completion fish"),
    ("mooncake-config explain --diff node-7", "mooncake-config explain --diff node-7.json"),
    ("mooncake-config check --host-root copied", "mooncake-config check --host-root copied-host"),
]
"""What is typed before a TAB, and what stands there behind it."""


class Shell:
    """An interactive shell at the other end of a terminal of its own."""

    def __init__(self, name: str, folder: Path) -> None:
        words, self.take = START[name]
        self.folder = folder
        self.end, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
        environment = {
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "HOME": str(folder),
            "TERM": "xterm",
            "LC_ALL": "C.UTF-8",
        }
        self.process = subprocess.Popen(
            ["setsid", "--ctty", *words], stdin=terminal, stdout=terminal, stderr=terminal, cwd=folder, env=environment
        )
        os.close(terminal)

    def printed(self, typed: str) -> str:
        """What `printf` makes of a line that was typed."""
        answer = self.folder / "answer"
        answer.unlink(missing_ok=True)
        # Ctrl-A and Ctrl-E go to the two ends of the line in all three shells.
        os.write(self.end, f"{typed}\x01printf '%s ' \x05 END > answer\r".encode())
        last = time.monotonic() + SECONDS
        shown = b""
        while not (answer.exists() and answer.read_text().endswith(" END ")):
            assert time.monotonic() < last, shown
            if select.select([self.end], [], [], 0.02)[0]:
                shown += os.read(self.end, 65536)
        return answer.read_text().removesuffix(" END ")

    def stop(self) -> None:
        """Hangs up."""
        self.process.kill()
        self.process.wait(SECONDS)
        os.close(self.end)


@contextmanager
def started(name: str, folder: Path) -> Iterator[Shell]:
    """A shell that has taken the completion script, in a folder with a file and a directory to be named."""
    (folder / "node-7.json").touch()
    (folder / "copied-host").mkdir()
    shell = Shell(name, folder)
    try:
        os.write(shell.end, f"{shell.take.format(script=COMPLETIONS / f'mooncake-config.{name}')}\r".encode())
        yield shell
    finally:
        shell.stop()


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.skipif(not shutil.which(name), reason=f"no {name} here")) for name in SHELLS],
)
def test_tab(name: str, tmp_path: Path) -> None:
    """In each shell a TAB completes commands, options, choices, codes and names of rules, files and directories."""
    with started(name, tmp_path) as shell:
        seen = [(typed, shell.printed(f"{typed}\t").rstrip("/")) for typed, _ in LINES]
    assert seen == LINES


@pytest.mark.parametrize("name", SHELLS)
def test_scripts_are_current(name: str, tmp_path: Path) -> None:
    """The scripts are what the generator makes of the parser."""
    pytest.importorskip("shtab")
    code = f"import completion_scripts; print(completion_scripts.completion_script({name!r}), end='')"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT / "docs", capture_output=True, text=True, check=True)
    written = (COMPLETIONS / f"mooncake-config.{name}").read_text("utf-8")
    assert done.stdout == written, "run: python docs/completion_scripts.py"


@pytest.mark.parametrize("name", SHELLS)
def test_command_prints_the_script(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`completion SHELL` prints the script of that shell."""
    assert main(["completion", name]) == 0
    assert capsys.readouterr().out == (COMPLETIONS / f"mooncake-config.{name}").read_text("utf-8")
