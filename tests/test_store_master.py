"""A master of one's own: the real program."""

from __future__ import annotations

import json
import os
import pickle
import signal
import socket
import stat
import subprocess
import sys
import textwrap
import time
import urllib.request
from pathlib import Path

import pytest

from mooncake_config.store.errors import MasterStartError, StoreImportError
from mooncake_config.store.master import MooncakeMaster, find_program, start_mooncake_master

pytestmark = pytest.mark.mooncake

ROOT = Path(__file__).parents[1]


def health(master: MooncakeMaster) -> dict[str, object]:
    """What the master says of itself."""
    with urllib.request.urlopen(f"http://127.0.0.1:{master.metrics_port}/health", timeout=5) as answer:
        document: dict[str, object] = json.load(answer)
    return document


def runs(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def test_serves_until_it_is_left() -> None:
    """It serves when it is returned, on ports of its own on loopback, and is gone after the with."""
    with start_mooncake_master() as master:
        assert health(master)["service_ready"] is True
        assert master.address == f"127.0.0.1:{master.rpc_port}"
        assert master.rpc_port != master.metrics_port
        assert runs(master.pid)
        assert str(master.pid) in repr(master)
    assert not runs(master.pid)
    assert master.returncode == 0
    master.stop()


def test_only_on_its_address() -> None:
    """HTTP is served on the given address only, not on all of them as the program does by itself."""
    with start_mooncake_master(address="127.0.0.2") as master:
        assert master.address.startswith("127.0.0.2:")
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", master.metrics_port), 5).close()


def test_ipv6() -> None:
    """An IPv6 address stands in brackets before the port."""
    with start_mooncake_master(address="::1") as master:
        assert master.address == f"[::1]:{master.rpc_port}"


def test_asked_ports() -> None:
    """Ports that are asked for are taken, also right after they were in use."""
    with start_mooncake_master() as master:
        ports = master.rpc_port, master.metrics_port
    with start_mooncake_master(rpc_port=ports[0], metrics_port=ports[1]) as master:
        assert (master.rpc_port, master.metrics_port) == ports


@pytest.mark.parametrize("which", ["rpc_port", "metrics_port"])
def test_taken_port(which: str) -> None:
    """A port that is taken is an error that names it, and whoever has it is left alone."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(MasterStartError, match=rf"port {port} of 127\.0\.0\.1 is taken"):
            start_mooncake_master(**{which: port})
        socket.create_connection(("127.0.0.1", port), 5).close()


def test_foreign_address() -> None:
    """An address of another host is an error that says so."""
    with pytest.raises(MasterStartError, match=r"192\.0\.2\.1 is no address of this host"):
        start_mooncake_master(address="192.0.2.1")


def test_bad_flag() -> None:
    """A program that ends at once is an error with its status and the end of its log, also when pickled."""
    with pytest.raises(MasterStartError, match="unknown command line flag 'nonsense'") as caught:
        start_mooncake_master(flags=["--nonsense=1"])
    error = pickle.loads(pickle.dumps(caught.value))
    assert error.returncode == 1
    assert "nonsense" in error.log


def test_flags() -> None:
    """Further flags reach the program."""
    with start_mooncake_master(flags=["--default_kv_lease_ttl=1234"]) as master:
        assert "default_kv_lease_ttl=1234" in _whole_log(master)


def _whole_log(master: MooncakeMaster) -> str:
    command = Path(f"/proc/{master.pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return command + master.log_tail(1000)


def test_too_slow(tmp_path: Path) -> None:
    """A program that does not become ready in time is an error, and is not left running."""
    program = _program(tmp_path, f"echo $$ > {tmp_path}/pid; exec sleep 60")
    started = time.monotonic()
    done = _start_in_child(tmp_path, "timeout=0.5")
    assert time.monotonic() - started < 30
    assert "mooncake_master was not ready in time" in done, program
    assert not runs(int((tmp_path / "pid").read_text()))


def test_deaf_program(tmp_path: Path) -> None:
    """A program that does not end when it is asked to is killed."""
    _program(tmp_path, f"trap '' TERM; echo $$ > {tmp_path}/pid; while :; do sleep 1; done")
    assert "was not ready in time" in _start_in_child(tmp_path, "timeout=0.5")
    assert not runs(int((tmp_path / "pid").read_text()))


def test_missing_library(tmp_path: Path) -> None:
    """A missing libibverbs is named with Debian's package."""
    text = "mooncake_master: error while loading shared libraries: libibverbs.so.1: cannot open shared object file"
    _program(tmp_path, f"echo '{text}: No such file or directory' >&2; exit 127")
    assert "needs libibverbs.so.1, which this host does not have (Debian and Ubuntu: apt-get install libibverbs1)" in (
        _start_in_child(tmp_path, "")
    )


def test_old_program(tmp_path: Path) -> None:
    """A release without the flag for the address of HTTP is started without it."""
    real = find_program()
    script = (
        'for flag; do case "$flag" in --metrics_host=*) '
        "echo \"ERROR: unknown command line flag 'metrics_host'\"; exit 1;; esac; done; "
        f'exec {real} "$@"'
    )
    _program(tmp_path, script)
    assert _start_in_child(tmp_path, "") == "ready"


def test_no_program(tmp_path: Path) -> None:
    """Where there is no program, the error names the extra to install."""
    (tmp_path / "mooncake").mkdir()
    (tmp_path / "mooncake" / "__init__.py").touch()
    assert "mooncake_master is not installed: pip install 'mooncake-config[mooncake-cpu]'" in (
        _start_in_child(tmp_path, "", path="/nonexistent")
    )
    assert issubclass(StoreImportError, Exception)


def _program(folder: Path, script: str) -> Path:
    """A package ``mooncake`` whose master is a shell script."""
    package = folder / "mooncake"
    package.mkdir()
    (package / "__init__.py").touch()
    program = package / "mooncake_master"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program


def _start_in_child(folder: Path, arguments: str, path: str = "") -> str:
    """What comes of starting a master in a process that finds the package in ``folder`` first."""
    code = textwrap.dedent(
        f"""
        import sys
        sys.path.insert(0, {str(folder)!r})
        if {path!r}:
            sys.executable = {path!r} + "/python"
        from mooncake_config.store.master import start_mooncake_master
        try:
            with start_mooncake_master({arguments}):
                print("ready")
        except Exception as error:
            print(error)
        """
    )
    environ = {**os.environ, "PATH": path or os.environ["PATH"]}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True, cwd=ROOT, env=environ
    )
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"rpc_port": -1}, ValueError, "rpc_port is 0 to 65535"),
        ({"metrics_port": 65536}, ValueError, "metrics_port is 0 to 65535"),
        ({"rpc_port": 5, "metrics_port": 5}, ValueError, "both 5"),
        ({"address": "0.0.0.0"}, ValueError, "none that a client can connect to"),
        ({"address": "::"}, ValueError, "none that a client can connect to"),
        ({"address": ""}, ValueError, "none that a client can connect to"),
        ({"flags": ["--rpc_port=1"]}, ValueError, "the flag --rpc_port is an argument"),
        ({"flags": ["-metrics_host", "x"]}, ValueError, "the flag --metrics_host is an argument"),
        ({"flags": "--v=1"}, TypeError, "a sequence of texts"),
    ],
)
def test_wrong_use(arguments: dict[str, object], error: type[Exception], message: str) -> None:
    """Arguments that cannot be are refused before anything is started."""
    with pytest.raises(error, match=message):
        start_mooncake_master(**arguments)  # type: ignore[arg-type]  # wrong on purpose


def test_log_path(tmp_path: Path) -> None:
    """A log that has a path is appended to, and can be read there after the master is gone."""
    path = tmp_path / "master.log"
    path.write_text("before\n")
    with start_mooncake_master(log_path=path) as master:
        assert "Master" in master.log_tail()
        assert all(len(line) <= 200 for line in master.log_tail().splitlines())
    assert path.read_text().startswith("before\n")
    assert len(path.read_text()) > 500
    assert master.log_tail() == ""


def test_no_file_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a log path no file appears, not even for a time."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import os, tempfile; from mooncake_config.store.master import start_mooncake_master\n"
            "with start_mooncake_master(): print(os.listdir(tempfile.gettempdir()))\n"
            "print(os.listdir(tempfile.gettempdir()))",
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd=ROOT,
    )
    assert done.stdout.splitlines() == ["[]", "[]"]


@pytest.mark.parametrize(
    "end", ["", "raise RuntimeError('x')", "import os; os.kill(os.getpid(), 2)", "del master; import gc; gc.collect()"]
)
def test_ends_with_the_interpreter(end: str) -> None:
    """A master that nobody stopped is stopped when the interpreter ends, by an exception too."""
    code = (
        "from mooncake_config.store.master import start_mooncake_master\n"
        f"master = start_mooncake_master()\nprint(master.pid, flush=True)\n{end}"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False, cwd=ROOT
    )
    assert not runs(int(done.stdout))


def test_forked_child() -> None:
    """A forked child that ends leaves its parent's master running."""
    code = textwrap.dedent(
        """
        import os, sys
        from mooncake_config.store.master import start_mooncake_master
        with start_mooncake_master() as master:
            child = os.fork()
            if not child:
                sys.exit(0)
            os.waitpid(child, 0)
            print(master.returncode)
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True, cwd=ROOT
    )
    assert done.stdout.strip() == "None"


def test_died_by_itself() -> None:
    """A master that was killed from outside shows how it ended, and can still be stopped."""
    with start_mooncake_master() as master:
        os.kill(master.pid, signal.SIGKILL)
        deadline = time.monotonic() + 10
        while master.returncode is None and time.monotonic() < deadline:
            time.sleep(0.01)
        assert master.returncode == -signal.SIGKILL


def test_program_that_cannot_be_run(tmp_path: Path) -> None:
    """A program that is none is an error that says so."""
    _program(tmp_path, "")
    (tmp_path / "mooncake" / "mooncake_master").write_bytes(b"\x7fELF nonsense")
    assert "mooncake_master cannot be run (Exec format error)" in _start_in_child(tmp_path, "")


def test_silent_end(tmp_path: Path) -> None:
    """A program that ends without a word is an error with its status."""
    _program(tmp_path, "exit 3")
    assert (
        _start_in_child(tmp_path, "") == "mooncake_master ended with status 3 before it was ready. It logged nothing."
    )


def test_lost_race(tmp_path: Path) -> None:
    """A program that ends with 1 may have lost its free port to somebody else, so it is tried again, three times."""
    _program(tmp_path, f"echo start >> {tmp_path}/starts; exit 1")
    assert "ended with status 1" in _start_in_child(tmp_path, "")
    assert (tmp_path / "starts").read_text().splitlines() == ["start"] * 3
    assert "ended with status 1" in _start_in_child(tmp_path, "rpc_port=45671, metrics_port=45672")
    assert len((tmp_path / "starts").read_text().splitlines()) == 4
