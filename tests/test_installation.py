"""The installed Mooncake: distributions on a path, and trials in child processes."""

from __future__ import annotations

import pickle
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from machines import lay_out, process
from test_store_trial import GOOD, client

from mooncake_config.installation import (
    Distribution,
    Installed,
    Trial,
    dry_setup,
    find_installed,
    run_trial,
    try_import,
)


def info(name: str, version: str) -> dict[str, str]:
    """The metadata of a distribution."""
    folder = f"{name.replace('-', '_')}-{version}.dist-info"
    return {f"{folder}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"}


def test_distributions(tmp_path: Path) -> None:
    """Every wheel that holds Mooncake is found, with its version; another package named mooncake is none of them."""
    files = {
        **info("mooncake-transfer-engine", "0.3.11"),
        **info("mooncake-transfer-engine-cuda13", "0.3.13.post1"),
        **info("mooncake", "0.0.1"),
    }
    found = find_installed([str(lay_out(tmp_path, files))])
    assert found.distributions == (
        Distribution("mooncake-transfer-engine", "0.3.11", str(tmp_path)),
        Distribution("mooncake-transfer-engine-cuda13", "0.3.13.post1", str(tmp_path)),
    )
    assert str(found.distributions[0]) == "mooncake-transfer-engine 0.3.11"
    assert found.trial is None


@pytest.mark.parametrize("odd", [None, 7, "a\0b", "\udcff", "x" * 5000, "", "/proc/self/mem", b"bytes"])
def test_odd_entries_of_a_path(tmp_path: Path, odd: Any) -> None:
    """An entry of the path that is no directory hides nothing that lies behind it."""
    root = str(lay_out(tmp_path, info("mooncake-transfer-engine", "0.3.13")))
    assert find_installed([odd, root, odd]).distributions == (Distribution("mooncake-transfer-engine", "0.3.13", root),)


def test_no_distribution(tmp_path: Path) -> None:
    """An empty path has none; a path that does not exist neither."""
    assert find_installed([str(tmp_path), str(tmp_path / "nowhere")]).distributions == ()


def test_own_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a path given, this interpreter's own is searched."""
    monkeypatch.syspath_prepend(str(lay_out(tmp_path, info("mooncake-transfer-engine-musa", "9.9"))))
    found = next(item for item in find_installed().distributions if item.name == "mooncake-transfer-engine-musa")
    assert (found.version, found.place) == ("9.9", str(tmp_path))


NO_METADATA = "mooncake_transfer_engine-0.3.11.dist-info/{}"


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("METADATA", b"\xff\xfe"),
        ("METADATA", b"\xff\xfeVersion: 0.3.11\n"),
        ("METADATA", b"Version: 0.3.11\nAuthor: \xe9\n"),
        ("METADATA", b""),
        ("METADATA", b"\0" * 64),
        ("METADATA", b"Name: mooncake-transfer-engine\nVersion:\n"),
        ("METADATA", b"Version:  \n"),
        ("METADATA/inside", b"a directory"),
        ("RECORD", b""),
        ("", b""),
    ],
)
def test_unreadable_metadata(tmp_path: Path, file: str, content: bytes) -> None:
    """A distribution whose metadata is missing or cannot be read is there, and its version is unknown."""
    (found,) = find_installed([str(lay_out(tmp_path, {NO_METADATA.format(file): content}))]).distributions
    assert found == Distribution("mooncake-transfer-engine", None, str(tmp_path))
    assert str(found) == "mooncake-transfer-engine (version unknown)"


@given(content=st.binary(max_size=80))
def test_any_metadata(content: bytes) -> None:
    """Whatever the metadata of a distribution holds, it is found, and no exception comes of it."""
    with tempfile.TemporaryDirectory() as root:
        lay_out(Path(root), {NO_METADATA.format("METADATA"): content})
        (found,) = find_installed([root]).distributions
    assert str(found).isprintable()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory on the path of child processes."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


def test_import(site: Path) -> None:
    """An import that works tells so, and pickles."""
    lay_out(site, GOOD)
    trial = try_import({})
    assert trial.told("lacks") == []
    assert (trial.told("location"), trial.exit, trial.errors) == (str(site / "mooncake"), 0, ())
    assert pickle.loads(pickle.dumps(Installed((), "x86_64", trial))).trial == trial
    assert trial.end == "ended with status 0"


HANGS = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open({path!r}, "w").write(str(child.pid))
time.sleep(600)
"""


def test_import_without_end(site: Path) -> None:
    """An import that hangs is ended after the limit, with all that it started."""
    lay_out(site, {**GOOD, "mooncake/store.py": HANGS.format(path=str(site / "pid"))})
    began = time.monotonic()
    trial = try_import({}, limit=2.0)
    assert time.monotonic() - began < 10
    assert (trial.exit, trial.end) == (None, "did not end within the limit")
    assert trial.told("imported") == "mooncake"
    assert not is_running(int((site / "pid").read_text()))


def is_running(pid: int) -> bool:
    """Whether a process is alive; one that is dead and not yet waited for is not."""
    for _ in range(200):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return False
        if state in "ZX":
            return False
        time.sleep(0.01)
    return True


@pytest.mark.parametrize(
    ("signal", "end"), [(6, "was killed by SIGABRT"), (11, "was killed by SIGSEGV"), (40, "was killed by signal 40")]
)
def test_import_killed(site: Path, signal: int, end: str) -> None:
    """A signal is told by its name."""
    lay_out(site, {**GOOD, "mooncake/store.py": f"import os\nos.kill(os.getpid(), {signal})"})
    assert try_import({}).end == end


def test_variables(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The child gets the configuration's variables for our own; its log is not diverted into files."""
    monkeypatch.setenv("MC_GID_INDEX", "1")
    monkeypatch.setenv("MC_LOG_DIR", "/elsewhere")
    shown = "raise ImportError(sorted(f'{k}={v}' for k, v in os.environ.items() if k[:3] == 'MC_'))"
    lay_out(site, {"mooncake/__init__.py": f"import os\n{shown}"})
    trial = try_import({"MC_FORCE_TCP": "1", "MC_LOG_LEVEL": "ERROR", "MC_LOG_DIR": "/there"})
    assert trial.told("text") == "['MC_FORCE_TCP=1', 'MC_LOG_LEVEL=INFO']"


LOG = r"""
import sys
sys.stderr.write('''WARNING: Logging before InitGoogleLogging() is written to STDERR
I1129 17:34:13.733182 21316 client_metric.cpp:102] Client metrics enabled
W1129 17:34:13.739064 21316 topology.cpp:201] No RDMA devices found
E1129 17:34:14.907040 21350 rdma_transport.cpp:1139] No available RNIC at http://me:secret@h/x \x1b[31m
E1129 17:34:15.907040 21350 rdma_transport.cpp:1139] No available RNIC at http://me:secret@h/x \x1b[31m
F1129 17:34:15.907040 21350 plugin.cpp:592] Unable to find plugin
terminate called after throwing an instance of 'std::bad_alloc'
  what():  std::bad_alloc
MemoryError: not here
nothing of note
''')
"""


def test_native_log(site: Path) -> None:
    """Of the native log the error lines are kept: each once, without secrets and escapes; warnings apart."""
    lay_out(site, {**GOOD, "mooncake/store.py": LOG})
    trial = try_import({})
    assert trial.warnings == ("No RDMA devices found (topology.cpp:201)",)
    first, *others = trial.errors
    assert first.startswith("No available RNIC at http:")
    assert first.endswith(r"***@h/x \x1b[31m (rdma_transport.cpp:1139)")
    assert others == [
        "Unable to find plugin (plugin.cpp:592)",
        "terminate called after throwing an instance of 'std::bad_alloc'",
        "what():  std::bad_alloc",
        "MemoryError: not here",
    ]


REASONS = """
import sys
sys.stderr.write('''E1129 17:34:14.907040 2 http.cpp:10] setup: GET http://me:secret@h:8080/metadata failed: refused
E1129 17:34:14.907040 21350 topology.cpp:20] topology: mlx5_0 @ numa 1: no GID; password=secret
E1129 17:34:14.907040 21350 etcd.cpp:30] etcd: user me:secret@h:2379, rc: -1000
''')
"""


def test_reasons_outlive_the_mask(site: Path) -> None:
    """A password in a line of the log takes no word beside its own with it."""
    lay_out(site, {**GOOD, "mooncake/store.py": REASONS})
    assert try_import({}).errors == (
        "setup: GET http://me:***@h:8080/metadata failed: refused (http.cpp:10)",
        "topology: mlx5_0 @ numa 1: no GID; password=*** (topology.cpp:20)",
        "etcd: user me:***@h:2379, rc: -1000 (etcd.cpp:30)",
    )


FLOOD = "import sys\nfor _ in range(50000): sys.stderr.write('Error: noise ' * 10 + str(_) + chr(10))\n"


def test_flood(site: Path) -> None:
    """A flood of noise is cut, and the steps are still heard."""
    lay_out(site, {**GOOD, "mooncake/store.py": FLOOD})
    trial = try_import({})
    assert trial.told("lacks")
    assert len(trial.errors) == 6


def test_no_child() -> None:
    """Where no process can be started, as with a variable that is too long, the trial says so."""
    trial = run_trial(["import"], {"MC_TOO_LONG": "x" * (1 << 20)}, "", 1.0)
    assert (trial.exit, trial.steps) == (127, ())
    assert "cannot start" in trial.errors[0]


def test_dry_setup(site: Path) -> None:
    """A dry setup hands over the seven keys, by standard input, and tells the code."""
    body = "print(sorted(kwargs)); open(os.environ['MC_TEST_OUT'], 'w').write(' '.join(sorted(kwargs))); return -600"
    lay_out(site, client(body))
    trial = dry_setup(process({"MC_TEST_OUT": str(site / "out")}))
    assert trial.told("code") == -600
    assert (site / "out").read_text().split() == [
        "global_segment_size",
        "local_buffer_size",
        "local_hostname",
        "master_server_addr",
        "metadata_server",
        "protocol",
        "rdma_devices",
    ]


def test_dry_setup_without_end(site: Path) -> None:
    """A setup that hangs ends with the limit."""
    lay_out(site, client("import time; time.sleep(600)"))
    trial = dry_setup(process(), limit=1.0)
    assert (trial.exit, trial.told("code")) == (None, None)


def test_dry_setup_retries(site: Path) -> None:
    """Mooncake's twenty tries are cut to two, unless the configuration says how many."""
    lay_out(site, client("return int(os.environ['MC_STORE_CLIENT_SETUP_RETRIES'])"))
    assert dry_setup(process()).told("code") == 2
    assert dry_setup(process({"MC_STORE_CLIENT_SETUP_RETRIES": "7"})).told("code") == 7


def test_steps_that_are_none() -> None:
    """A trial without steps has told nothing."""
    assert Trial((), 0).told("code") is None
