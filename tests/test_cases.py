"""The acceptance cases made from public reports, run against the command where they are at hand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CASES = Path(__file__).resolve().parents[2] / "shared" / "cases"


@pytest.mark.skipif(not CASES.is_dir(), reason="no cases at ../shared/cases")
@pytest.mark.timeout(600)
def test_handed_cases_hold() -> None:
    """Every handed acceptance case holds."""
    command = [
        str(CASES / "run_cases.py"),
        str(CASES / "handed.jsonl"),
        "--command",
        f"{sys.executable} -m mooncake_config",
    ]
    run = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
