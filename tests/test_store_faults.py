"""What a caller sees when a highly available master fails over, and when the link to a segment's holder is cut."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

import pytest
from hosts import two_hosts
from test_store_master import health

from mooncake_config.store.master import MooncakeMaster, start_mooncake_master

pytestmark = pytest.mark.mooncake

HERE = Path(__file__).parent


# --- a highly available master ---


def free_ports(count: int) -> list[int]:
    """Ports of loopback that are free now."""
    with ExitStack() as held:
        return [held.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1] for _ in range(count)]


@contextmanager
def etcd(folder: Path) -> Iterator[str]:
    """An etcd of one's own on loopback; gives its ``host:port``."""
    program = shutil.which("etcd")
    if program is None:
        pytest.skip("etcd is not installed (Debian and Ubuntu: apt-get install etcd-server)")
    client, peer = (f"127.0.0.1:{port}" for port in free_ports(2))
    flags = {
        "data-dir": str(folder),
        "listen-client-urls": f"http://{client}",
        "advertise-client-urls": f"http://{client}",
        "listen-peer-urls": f"http://{peer}",
        "initial-advertise-peer-urls": f"http://{peer}",
        "initial-cluster": f"default=http://{peer}",
    }
    command = [program, *(word for name, value in flags.items() for word in (f"--{name}", value))]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield client
        finally:
            process.kill()


@contextmanager
def pair(endpoint: str) -> Iterator[MooncakeMaster]:
    """Two masters over one etcd; gives the one that leads."""
    flags = ["--enable_ha=true", f"--etcd_endpoints=http://{endpoint}"]
    with (
        start_mooncake_master(flags=flags, timeout=40) as one,
        start_mooncake_master(flags=flags, timeout=40) as other,
    ):
        deadline = time.monotonic() + 40
        while not (leaders := [master for master in (one, other) if health(master)["service_ready"]]):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        yield leaders[0]


FAILOVER = """
import json, sys, time
from rollouts import differences, rollout
from test_store_mooncake import resolved
from mooncake_config.store import open_object_store
from mooncake_config.store.errors import ObjectNotFoundError, StoreError

store = open_object_store("mooncake", resolved(sys.argv[1]), native_log="quiet")
before = store.put(rollout())
print("stored", flush=True)
sys.stdin.readline()
seen, longest, begin = [], 0, time.monotonic()
after = None
while after is None and time.monotonic() - begin < 60:
    started = time.monotonic()
    try:
        after = store.put(rollout())
    except StoreError as error:
        seen.append(type(error).__name__)
    longest = max(longest, time.monotonic() - started)
with store.get(after) as got:
    same = differences(rollout(), got) == {}
try:
    with store.get(before):
        lost = False
except ObjectNotFoundError:
    lost = True
store.remove(after)
started = time.monotonic()
store.close()
store.close()
closing = time.monotonic() - started
told = {"seen": seen, "longest": longest, "same": same, "lost": lost, "closing": closing}
print(json.dumps(told), flush=True)
sys.stdin.readline()
"""


def test_failover(tmp_path: Path) -> None:
    """A leader that is killed is MasterUnreachableError, at most 20 s for one put; within 60 s puts succeed again.

    The same store goes on with the standby, what was put before is not found, and close returns at once, where the
    native client's own close would hold every thread of the process for up to 30 s.
    """
    with (
        etcd(tmp_path) as endpoint,
        pair(endpoint) as leader,
        python([], FAILOVER, f"etcd://{endpoint}") as caller,
    ):
        assert line(caller.stdout) == "stored"
        os.kill(leader.pid, signal.SIGKILL)
        answer(caller)
        told = json.loads(line(caller.stdout))
        assert set(told["seen"]) <= {"MasterUnreachableError", "StoreFullError"}
        assert told["longest"] < 20
        assert (told["same"], told["lost"]) == (True, True)
        assert told["closing"] < 1


# --- attempts, and what they come to ---

ATTEMPTS = """
import sys, time
from rollouts import differences, rollout
from test_store_mooncake import resolved
from mooncake_config.store import open_object_store
from mooncake_config.store.errors import StoreError

def attempt(name, operation):
    started = time.monotonic()
    try:
        outcome = operation() or "fine"
    except StoreError as error:
        outcome = type(error).__name__
    print(name, outcome, round(time.monotonic() - started, 1), flush=True)

def read(ref):
    with store.get(ref) as got:
        assert differences(rollout(), got) == {}
"""


# --- a master that hangs ---

WAITER = (
    ATTEMPTS
    + """
with open_object_store("mooncake", resolved(sys.argv[1]), native_log="quiet") as store:
    ref = store.put(rollout())
    print("stored", flush=True)
    sys.stdin.readline()
    for name, operation in {"put": lambda: store.put(rollout()), "get": lambda: read(ref)}.items():
        attempt(name, operation)
    sys.stdin.readline()
    attempt("put", lambda: store.remove(store.put(rollout())))
    attempt("get", lambda: read(ref))
"""
)


def test_master_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A master that hangs is MasterUnreachableError after twice MC_RPC_TIMEOUT_MS; when it goes on, so does the store.

    Without that variable of Mooncake's own it takes 60 s (measured).
    """
    monkeypatch.setenv("MC_RPC_TIMEOUT_MS", "3000")
    with start_mooncake_master() as master, python([], WAITER, master.address) as caller:
        assert line(caller.stdout) == "stored"
        os.kill(master.pid, signal.SIGSTOP)
        answer(caller)
        for expected in ("put", "get"):
            name, what, seconds = outcome(line(caller.stdout))
            assert (name, what) == (expected, "MasterUnreachableError")
            assert seconds < 25
        os.kill(master.pid, signal.SIGCONT)
        answer(caller)
        assert [outcome(line(caller.stdout))[:2] for _ in range(2)] == [("put", "fine"), ("get", "fine")]


# --- a link that is cut ---

HOLDER = """
import sys, time
from test_store_mooncake import resolved
from mooncake_config.store import open_object_store

with open_object_store("mooncake", resolved(sys.argv[1], local_hostname=sys.argv[2]), ignore=sys.argv[3:]):
    print("ready", flush=True)
    sys.stdin.readline()
"""
CALLER = (
    ATTEMPTS
    + """
resolution = resolved(sys.argv[1], local_hostname=sys.argv[2], role="rollout-manager")
with open_object_store("mooncake", resolution, native_log="quiet") as store:
    ref = store.put(rollout())
    print("stored", flush=True)
    sys.stdin.readline()
    operations = {"get": lambda: read(ref), "put": lambda: store.put(rollout()) and None}
    for name in sys.argv[3:]:
        attempt(name, operations[name])
    sys.stdin.readline()
    deadline = time.monotonic() + 60
    while True:
        try:
            ref = store.put(rollout())
            break
        except StoreError:
            if time.monotonic() > deadline:
                raise
    attempt("get", lambda: read(ref))
    attempt("remove", lambda: store.remove(ref))
"""
)


@contextmanager
def python(enter: list[str], script: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A script in a namespace, that can import the tests."""
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [HERE, HERE.parent]))}
    command = [*enter, sys.executable, "-c", script, *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, env=variables
    ) as child:
        try:
            yield child
        finally:
            # The end of its standard input ends it well, and a master that it started with it.
            with suppress(subprocess.TimeoutExpired):
                child.communicate(timeout=20)
            child.kill()


MASTER = """
import sys
from mooncake_config.store.master import start_mooncake_master
with start_mooncake_master(address=sys.argv[1]) as master:
    print(master.address, flush=True)
    sys.stdin.readline()
"""


def line(stream: IO[str] | None) -> str:
    """The next line that a script prints."""
    assert stream
    return stream.readline().strip()


def answer(child: subprocess.Popen[str]) -> None:
    """Lets a script go on."""
    assert child.stdin
    child.stdin.write("\n")
    child.stdin.flush()


def outcome(text: str) -> tuple[str, str, float]:
    """Name, outcome and seconds of an attempt."""
    name, what, seconds = text.split()
    return name, what, float(seconds)


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("operations", "first", "then"),
    [
        (("get", "put"), {"TransferError", "ObjectNotFoundError"}, {"StoreFullError", "TransferError"}),
        (("put", "get"), {"TransferError"}, {"ObjectNotFoundError", "TransferError"}),
    ],
    ids=["get first", "put first"],
)
def test_link_cut(operations: tuple[str, str], first: set[str], then: set[str]) -> None:
    """With the link to the segment's holder cut, a get or a put fails in 45 s; by then the holder is given up.

    The native client waits 30 s for bytes that do not come. The next operation fails at once, a put after its retries
    of 3 s; when the link is back the same store puts, gets and removes again.
    """
    with two_hosts() as (near, far), python(near.enter(), MASTER, near.address) as master:
        address = line(master.stdout)
        # The caller puts as soon as it is there, so the segment comes first.
        with python(far.enter(), HOLDER, address, far.address) as holder:
            assert line(holder.stdout) == "ready"
            with python(near.enter(), CALLER, address, near.address, *operations) as caller:
                assert line(caller.stdout) == "stored"
                near.must("ip", "link", "set", "eth0", "down")
                answer(caller)
                for name, errors, longest in zip(operations, (first, then), (45, 15), strict=True):
                    attempted, what, seconds = outcome(line(caller.stdout))
                    assert (attempted, what in errors) == (name, True)
                    assert seconds < longest
                near.must("ip", "link", "set", "eth0", "up")
                answer(caller)
                assert [outcome(line(caller.stdout))[:2] for _ in range(2)] == [("get", "fine"), ("remove", "fine")]
