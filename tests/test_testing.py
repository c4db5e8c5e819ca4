"""The pytest plugin, in suites of a trainer that really run."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[1]

CONFTEST = 'pytest_plugins = ["mooncake_config.testing"]'
SUITE = """
import json
import os
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from mooncake_config import Topology, open_object_store, resolve_store_config

def keys(master):
    with urllib.request.urlopen(f"http://127.0.0.1:{master.metrics_port}/get_all_keys", timeout=5) as answer:
        return answer.read().decode().split()

def test_resolves(mooncake_master, mooncake_init_kwargs):
    resolution = resolve_store_config(json.dumps(mooncake_init_kwargs), topology=Topology(num_nodes=1), environ={})
    assert resolution.setup_kwargs()["master_server_addr"] == mooncake_master.address
    assert mooncake_master.returncode is None
    Path(f"master-{os.environ.get('PYTEST_XDIST_WORKER', 'only')}").write_text(str(mooncake_master.pid))

def test_moves_a_rollout(mooncake_master, mooncake_store):
    resolution = resolve_store_config(
        {"master_server_address": mooncake_master.address, "protocol": "tcp", "local_hostname": "127.0.0.1",
         "local_buffer_size": "64mb"},
        role="rollout-manager", topology=Topology(num_nodes=1), environ={},
    )
    with open_object_store("mooncake", resolution) as manager:
        ref = manager.put({"tokens": [np.arange(3, dtype=np.int32), np.arange(2, dtype=np.int32)]})
        with mooncake_store.get(ref) as got:
            assert [row.tolist() for row in got["tokens"]] == [[0, 1, 2], [0, 1]]
        manager.remove(ref)

@pytest.mark.parametrize("turn", [1, 2])
def test_begins_empty(mooncake_master, mooncake_store, turn):
    assert keys(mooncake_master) == []
    mooncake_store.put({"left": [turn, turn]})
    assert keys(mooncake_master) != []
"""


def masters(folder: Path) -> dict[str, int]:
    """The masters that a suite had, by worker, and their processes."""
    return {path.name.removeprefix("master-"): int(path.read_text()) for path in folder.glob("master-*")}


def is_gone(pid: int) -> bool:
    """Whether a process has ended."""
    return not Path(f"/proc/{pid}/exe").exists()


@pytest.mark.mooncake
def test_suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """A suite has a real master and a store that each test finds empty; without a warning, and nothing is left."""
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)  # set where this suite itself runs in several workers
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(SUITE)
    pytester.runpytest_subprocess("-W", "error", timeout=90).assert_outcomes(passed=4)
    ((worker, pid),) = masters(pytester.path).items()
    assert (worker, is_gone(pid)) == ("only", True)


@pytest.mark.mooncake
def test_workers(pytester: pytest.Pytester) -> None:
    """Under pytest-xdist each worker has a master of its own, and all of them end with it."""
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(test_a=SUITE, test_b=SUITE)
    ran = pytester.runpytest_subprocess("-n", "2", "--dist", "loadfile", "-k", "resolves or empty", timeout=90)
    ran.assert_outcomes(passed=6)
    found = masters(pytester.path)
    assert sorted(found) == ["gw0", "gw1"]
    assert len(set(found.values())) == 2
    assert all(map(is_gone, found.values()))


@pytest.mark.mooncake
def test_other_sizes(pytester: pytest.Pytester) -> None:
    """A suite that overrides the init kwargs has a store of its sizes."""
    pytester.makeconftest(
        CONFTEST
        + """
import pytest

@pytest.fixture(scope="session")
def mooncake_init_kwargs(mooncake_init_kwargs):
    return {**mooncake_init_kwargs, "global_segment_size": "16mb"}
"""
    )
    pytester.makepyfile(
        """
import numpy as np, pytest
from mooncake_config.store.errors import StoreFullError

def test_full(mooncake_store):
    mooncake_store.remove(mooncake_store.put({"a": np.zeros(8 << 20, np.uint8)}))
    with pytest.raises(StoreFullError):
        mooncake_store.put({"a": np.zeros(32 << 20, np.uint8)})
"""
    )
    pytester.runpytest_subprocess(timeout=60).assert_outcomes(passed=1)


# --- what is installed ---


def needed(*requirements: str) -> set[str]:
    """The distributions that some requirements bring here, less this one itself, which is on the path."""
    names: set[str] = set()
    for requirement in map(Requirement, requirements):
        listed = [Requirement(line) for line in distribution(requirement.name).requires or ()]
        for extra in requirement.extras or {""}:
            names |= needed(*(str(item) for item in listed if _applies(item, extra)))
        if requirement.name != "mooncake-config":
            names.add(requirement.name)
    return names


def _applies(requirement: Requirement, extra: str) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


def bare_python(folder: Path, *requirements: str) -> tuple[list[str], dict[str, str]]:
    """A Python that has nothing installed but this package and what is required: its command, and its environment."""
    site, program = folder / "site", folder / "bin" / "python"
    site.mkdir()
    program.parent.mkdir()
    program.symlink_to(Path(sys.executable).resolve())
    for name in needed(*requirements):
        for top in {file.parts[0] for file in distribution(name).files or () if file.parts[0] != ".."}:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(distribution(name).locate_file(top))))
    path = os.pathsep.join(map(str, [ROOT, site]))
    return [str(program), "-S"], {"PYTHONPATH": path, "PATH": "/usr/bin:/bin", "HOME": str(folder)}


def run_bare(folder: Path, python: tuple[list[str], dict[str, str]], *words: str) -> str:
    """What a suite prints in such a Python."""
    command, environ = python
    suite = folder / "suite"
    suite.mkdir(exist_ok=True)
    (suite / "conftest.py").write_text(CONFTEST)
    (suite / "test_trainer.py").write_text(SUITE)
    done = subprocess.run(
        [*command, "-m", "pytest", "-p", "no:cacheprovider", *words],
        cwd=suite,
        env=environ,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.mooncake
def test_pytest_is_enough(tmp_path: Path) -> None:
    """The plugin needs pytest and one of the Mooncake extras, and nothing else."""
    python = bare_python(tmp_path, "pytest", "mooncake-config[mooncake-cpu]")
    assert "4 passed" in run_bare(tmp_path, python)
    assert all(map(is_gone, masters(tmp_path / "suite").values()))


def test_without_mooncake(tmp_path: Path) -> None:
    """Where Mooncake is not installed the tests fail with the extra's name, or are skipped by choice."""
    python = bare_python(tmp_path, "pytest", "numpy", "mooncake-config")
    failed = run_bare(tmp_path, python)
    assert "4 errors" in failed
    assert (
        "mooncake_master is not installed: pip install 'mooncake-config[mooncake-cpu]', or another of the Mooncake "
        "extras. Or have such tests skipped: set mooncake_missing to skip."
    ) in failed
    assert "Traceback" not in failed
    pages = failed.partition("short test summary info")[0]
    assert pages.count("is not installed") == 4  # once for each test
    skipped = run_bare(tmp_path, python, "-o", "mooncake_missing=skip", "-rs")
    assert "4 skipped" in skipped
    assert "mooncake_master is not installed" in skipped
    assert "mooncake_missing is 'fail' or 'skip', not 'maybe'" in run_bare(
        tmp_path, python, "-o", "mooncake_missing=maybe"
    )


@pytest.mark.mooncake
def test_store_without_mooncake(tmp_path: Path) -> None:
    """A store that is opened without Mooncake is an error that names the extra, also where NumPy is missing."""
    code = """
from mooncake_config import Topology, open_object_store, resolve_store_config
from mooncake_config.store.errors import StoreImportError
kwargs = {"master_server_address": "127.0.0.1:1", "protocol": "tcp", "local_hostname": "127.0.0.1"}
try:
    open_object_store("mooncake", resolve_store_config(kwargs, topology=Topology(num_nodes=1), environ={}))
except StoreImportError as error:
    print(error.module, error)
"""
    for number, (names, module) in enumerate(
        [(["numpy", "msgpack"], "mooncake"), (["numpy"], "msgpack"), ([], "msgpack")]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        command, environ = bare_python(folder, "mooncake-config", *names)
        done = subprocess.run(
            [*command, "-c", code], env=environ, capture_output=True, text=True, timeout=60, check=False
        )
        assert (done.stdout.split(" ")[0], done.stderr) == (module, "")
        assert "pip install 'mooncake-config[mooncake]'" in done.stdout
