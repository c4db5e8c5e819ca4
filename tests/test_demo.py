"""The demo: the main job, for real."""

from __future__ import annotations

import ctypes.util
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from mooncake_config.demo import equal, make_rollout
from mooncake_config.store.ray import PRIVATE_PREFIX

ROOT = Path(__file__).resolve().parents[1]


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


def test_demo_without_mooncake() -> None:
    """After a plain install the demo says in two lines what to install, and ends with 1."""
    hidden = (
        "import sys; sys.modules['mooncake'] = None; from mooncake_config.cli import main; sys.exit(main(['demo']))"
    )
    python = Path(sys.executable).resolve()  # beside which no mooncake_master lies
    site = sysconfig.get_paths()["purelib"]
    variables = {"PYTHONPATH": os.pathsep.join([str(ROOT), site]), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([python, "-c", hidden], capture_output=True, text=True, env=variables, check=False, cwd="/")
    assert (done.returncode, done.stderr.splitlines()) == (
        1,
        [
            "mooncake-config demo: error: mooncake_master is not installed: "
            "pip install 'mooncake-config[mooncake-cpu]', or another of the Mooncake extras.",
            "help: mooncake-config demo --help",
        ],
    )


@pytest.mark.mooncake
def test_demo_without_a_library() -> None:
    """Where the master cannot be loaded for want of a library the library is named, without a traceback."""
    alone = ["unshare", "--mount", "sh", "-c", 'mount --bind /dev/null "$0" && exec "$@"']
    found = ctypes.util.find_library("ibverbs")
    library = next(iter(Path("/usr/lib").glob(f"*/{found}")), None) if found else None
    if library is None or subprocess.run([*alone, library, "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs libibverbs, and root for a mount namespace of its own")
    command = [*alone, str(library), sys.executable, "-m", "mooncake_config", "demo"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    first, *_, last = done.stderr.splitlines()
    assert first.startswith("mooncake-config demo: error: mooncake_master ended with status 127")
    assert "libibverbs.so.1" in done.stderr
    assert "Traceback" not in done.stderr
    assert last == "help: mooncake-config demo --help"


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
