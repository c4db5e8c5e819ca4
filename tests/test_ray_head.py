"""The head of a Ray cluster, asked before anybody attaches: a real one that demands a token, and one that is gone."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from machines import dead_port

from mooncake_config.ray_head import Door, knock

pytestmark = [
    pytest.mark.ray,
    pytest.mark.timeout(300),
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed"),
]
TOKEN = "ab" * 32
OTHER = "cd" * 32
ADDRESS = "127.0.0.1:26379"
ALONE = ["unshare", "--pid", "--net", "--fork", "--mount-proc", "--kill-child"]
CHECK = ["check", "--cluster", "--object-store-backend", "ray", "-q"]

# A head that wants TOKEN, and shells that ask it: each is (variables, token in the file of its home, words).
HEAD = """
import json, os, subprocess, sys, time
from pathlib import Path

folder, token, address, shells = Path(sys.argv[1]), *json.loads(sys.argv[2])
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
for name in [name for name in os.environ if name.startswith("RAY_")]:
    del os.environ[name]
os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0", HOME=str(folder / "head"))
start = [
    sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--port", address.rpartition(":")[2],
    "--num-cpus=1", "--include-dashboard=false", "--object-store-memory=80000000", "--temp-dir", str(folder / "ray"),
]
head = {**os.environ, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token}
subprocess.run(start, env=head, stdout=sys.stderr, check=True, timeout=60)
said = {}
for name, (variables, lying, words) in shells.items():
    home = folder / name
    (home / ".ray").mkdir(parents=True)
    if lying:
        (home / ".ray/auth_token").write_text(lying)
    shell = {**os.environ, "HOME": str(home), "RAY_TMPDIR": str(folder / "ray"), **variables}
    began = time.monotonic()
    done = subprocess.run([sys.executable, *words], env=shell, capture_output=True, text=True, timeout=60, cwd="/")
    said[name] = [done.returncode, done.stdout, done.stderr, time.monotonic() - began]
print(json.dumps(said))
"""
KNOCK = ["-c", "import sys; from mooncake_config.ray_head import knock; print(knock(sys.argv[1])[0].name)"]
MODE = {"RAY_AUTH_MODE": "token"}
KNOCKS: dict[str, tuple[dict[str, str], str, str, Door]] = {
    "nothing": ({}, "", ADDRESS, Door.LOCKED),
    "mode-without-token": (MODE, "", ADDRESS, Door.LOCKED),
    "token-without-mode": ({"RAY_AUTH_TOKEN": TOKEN}, "", ADDRESS, Door.LOCKED),
    "file-without-mode": ({}, TOKEN, ADDRESS, Door.LOCKED),
    "wrong-file": (MODE, OTHER, ADDRESS, Door.LOCKED),
    "mode-and-file": (MODE, TOKEN, ADDRESS, Door.OPEN),
    "mode-and-variable": ({**MODE, "RAY_AUTH_TOKEN": TOKEN}, "", ADDRESS, Door.OPEN),
    "auto-nothing": ({}, "", "auto", Door.LOCKED),
    "auto-file": ({}, TOKEN, "auto", Door.OPEN),
    "auto-wrong-file": ({}, OTHER, "auto", Door.LOCKED),
    "auto-disabled": ({"RAY_AUTH_MODE": "disabled"}, TOKEN, "auto", Door.LOCKED),
}


@pytest.fixture(scope="module")
def said() -> Iterator[dict[str, Any]]:
    """What each shell got: status, both outputs, seconds. All of it runs and ends in namespaces of its own."""
    if shutil.which("unshare") is None or subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs root for a process namespace of its own")
    shells: dict[str, tuple[dict[str, str], str, list[str]]] = {
        name: (variables, lying, [*KNOCK, address]) for name, (variables, lying, address, _) in KNOCKS.items()
    }
    check = ["-m", "mooncake_config", *CHECK]
    shells["check-refused"] = ({}, "", [*check, "--address", ADDRESS])
    shells["check-answered"] = (MODE, TOKEN, [*check, "--address", ADDRESS])
    folder = Path(tempfile.mkdtemp(prefix="locked-", dir="/tmp"))  # short: Ray's sockets lie in it
    command = [*ALONE, sys.executable, "-c", HEAD, str(folder), json.dumps([TOKEN, ADDRESS, shells])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
        assert done.returncode == 0, done.stderr
        yield json.loads(done.stdout)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("name", KNOCKS)
def test_a_head_that_demands_a_token(said: dict[str, Any], name: str) -> None:
    """Who may attach, as ray.init has it: a file alone does for a cluster that Ray found by itself, and no other."""
    assert said[name][:3] == [0, f"{KNOCKS[name][3].name}\n", ""]


def test_the_way_in_is_told(said: dict[str, Any]) -> None:
    """The survey says within seconds what the cluster wants, without a native line, and not to stop a live cluster."""
    status, out, err, seconds = said["check-refused"]
    assert (status, err) == (1, "")
    assert " ".join(out.split()) == (
        f"✗ error MC400 no-cluster the Ray cluster ({ADDRESS}) wants a token, and this shell sends none, or "
        "another one. Fix: copy the head's ~/.ray/auth_token here, or export RAY_AUTH_TOKEN, and export "
        "RAY_AUTH_MODE=token."
    )
    assert seconds < 15


def test_the_way_in_leads_in(said: dict[str, Any]) -> None:
    """With the token where the fix says, the cluster answers."""
    status, out, err, _ = said["check-answered"]
    assert (status, out) == (0, ""), err


def test_a_head_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The address that nobody listens at is told, without an attempt to attach."""
    port = dead_port()
    monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{port}")
    door, address = knock("auto")
    assert (door, address.rpartition(":")[2]) == (Door.DEAD, str(port))  # Ray asks this host's own address for loopback


def test_what_lies_in_the_working_directory_is_not_run(tmp_path: Path) -> None:
    """The child imports the installed Ray, and nothing that stands where the command is run."""
    (tmp_path / "ray.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    (tmp_path / "socket.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    code = textwrap.dedent("""
        import sys
        sys.path = [entry for entry in sys.path if entry]
        from mooncake_config.ray_head import knock
        print(knock(sys.argv[1])[0].name)
    """)
    command = [sys.executable, "-c", code, f"127.0.0.1:{dead_port()}"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, env=os.environ, check=False, timeout=60
    )
    assert (done.stdout, done.stderr) == ("DEAD\n", "")
    assert not (tmp_path / "ran").exists()
