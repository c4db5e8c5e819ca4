"""The types that users see: typing_tests/ passes their checkers, and each error expected in it is one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "typing_tests"
# Both checkers read the dependencies too, from nothing on a fresh machine.
pytestmark = pytest.mark.timeout(300)
PYRIGHT = ROOT / "tests" / "editor" / "node_modules" / ".bin" / "pyright"


def check(*command: str) -> subprocess.CompletedProcess[str]:
    """A checker's verdict on the examples."""
    paths = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": paths}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240, check=False)


def test_mypy() -> None:
    """Strict mypy, without our configuration and its pydantic plugin, finds the expected errors and no other."""
    options = ("--strict", "--config-file=", f"--cache-dir={ROOT / '.mypy_cache' / 'users'}")
    done = check(sys.executable, "-m", "mypy", *options, str(EXAMPLES))
    assert done.returncode == 0, done.stdout + done.stderr


def test_pyright() -> None:
    """pyright, which is behind Pylance in VS Code, finds the same, and says which expected error is none."""
    if not PYRIGHT.exists():
        pytest.skip("pyright is not installed; run: make setup")
    done = check(str(PYRIGHT), "--project", str(EXAMPLES), "--pythonpath", sys.executable)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 errors, 0 warnings" in done.stdout
