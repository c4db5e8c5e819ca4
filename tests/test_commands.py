"""The commands: a help that fits and teaches by examples that run."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mooncake_config.cli import main

COMMANDS = ("explain", "check", "plan", "schema", "rule", "demo", "completion")


def help_of(*words: str, columns: int = 80, **variables: str) -> str:
    """What a help prints in a terminal of so many columns."""
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as out:
        for name, value in {"COLUMNS": str(columns), **variables}.items():
            patch.setenv(name, value)
        with pytest.raises(SystemExit, match=r"^0$"):
            main([*words, "--help"])
    return out.getvalue()


def examples_of(command: str) -> list[str]:
    """The commands that a help gives as examples."""
    return re.findall(r"^    \$ (.*(?:\n {8}.*)*)$", help_of(command), re.MULTILINE)


@pytest.mark.parametrize("columns", [60, 80, 120, 300])
def test_help_fits_its_width(columns: int) -> None:
    """No line is wider than the terminal, nor than can be read with ease; examples are made for 80 columns."""
    for command in ((), *((name,) for name in COMMANDS)):
        text, _, examples = help_of(*command, columns=columns).partition("examples:")
        assert max(map(len, text.splitlines())) <= min(columns, 100)
        assert max(map(len, examples.splitlines())) <= 80


def test_help_is_coloured_on_demand() -> None:
    """The help has colours where they are asked for, is plain in a pipe, and says the same in both."""
    coloured, plain = help_of("check", FORCE_COLOR="1"), help_of("check")
    assert "\x1b[36m--host-root\x1b[0m" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_examples(command: str) -> None:
    """Each help ends with examples of its own command."""
    assert examples_of(command)
    assert all(f"mooncake-config {command}" in example for example in examples_of(command))


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "demo"])
def test_examples_work(command: str, tmp_path: Path) -> None:
    """Every example of a help runs in a shell as it stands. Those of demo and of a cluster run in their own tests."""
    for example in (one for one in examples_of(command) if "--cluster" not in one):
        environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(tmp_path),
            "MOONCAKE_MASTER": "127.0.0.1:1",
        }
        done = subprocess.run(
            ["bash", "-c", example], capture_output=True, text=True, cwd=tmp_path, env=environment, check=False
        )
        # Nobody listens at that master and no two nodes share it, which is what a check and an explain are for.
        assert done.returncode in ((0, 1) if command in ("explain", "check", "plan") else (0,)), done.stderr
        assert "error: " not in done.stderr


def test_every_command_is_listed() -> None:
    """The help of the program lists every command, each with a line of its own."""
    listed = help_of().partition("commands:\n")[2].partition("\n\n")[0]
    assert tuple(re.findall(r"^  ([a-z]+) ", listed, re.MULTILINE)) == COMMANDS
