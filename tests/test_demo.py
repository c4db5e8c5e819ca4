"""The demo: the main job, for real."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mooncake_config.demo import equal, make_rollout
from mooncake_config.store.ray import PRIVATE_PREFIX


def processes_with(mark: str) -> list[str]:
    """The processes whose environment holds a mark."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (entry / "environ").read_bytes():
                found.append((entry / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


@pytest.mark.mooncake
@pytest.mark.ray
def test_demo_runs_and_leaves_nothing(tmp_path: Path) -> None:
    """The demo moves a rollout through both stores, and leaves no process and no file, in the user's home neither."""
    mark = f"DEMO_UNDER_TEST={tmp_path}"
    variables = {**os.environ, "DEMO_UNDER_TEST": str(tmp_path), "TMPDIR": str(tmp_path), "HOME": str(tmp_path)}
    variables.pop("RAY_AUTH_MODE", None)
    command = [sys.executable, "-m", "mooncake_config", "demo"]
    done = subprocess.run(command, capture_output=True, text=True, env=variables, cwd=tmp_path, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("the same dictionary") == 2
    assert processes_with(mark) == []
    assert list(Path("/tmp").glob(f"{PRIVATE_PREFIX}*")) == []
    assert [path for path in tmp_path.iterdir() if not path.name.startswith(".coverage")] == []


def test_rollouts_are_repeatable() -> None:
    """Equal seeds make equal rollouts, other seeds others."""
    assert equal(make_rollout(4, seed=1), make_rollout(4, seed=1))
    assert not equal(make_rollout(4, seed=1), make_rollout(4, seed=2))


def test_equal_sees_types() -> None:
    """A list is not an array, 1 is not 1.0, and int32 is not int64."""
    rollout = make_rollout(1)
    tokens = rollout["tokens"][0]
    assert not equal([1], [1.0])
    assert not equal(tokens, tokens.tolist())
    assert not equal(tokens, tokens.astype("int64"))
