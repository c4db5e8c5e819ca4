"""Closing a store whose master is gone or hangs, with real processes."""

from __future__ import annotations

import json
import os
import signal

import pytest
from test_store_faults import answer, line, python
from test_store_mooncake import segments

from mooncake_config.store.master import start_mooncake_master

pytestmark = pytest.mark.mooncake

LEAVER = """
import json, logging, sys, threading, time
from rollouts import differences, rollout
from test_store_mooncake import resolved
from mooncake_config.store import open_object_store

told, gaps = [], []
handler = logging.Handler()
handler.emit = lambda record: told.append(record.getMessage())
logging.getLogger("mooncake_config").addHandler(handler)

def watch():
    last = time.monotonic()
    while True:
        time.sleep(0.01)
        now = time.monotonic()
        gaps.append(now - last)
        last = now

store = open_object_store("mooncake", resolved(sys.argv[1]), native_log="quiet")
store.put(rollout())
threading.Thread(target=watch, daemon=True).start()
print("stored", flush=True)
sys.stdin.readline()
gaps.clear()
told.clear()
started = time.monotonic()
store.close()
store.close()
closing = time.monotonic() - started
print(json.dumps({"closing": closing, "longest gap": max(gaps, default=0), "told": told}), flush=True)
sys.stdin.readline()
with open_object_store("mooncake", resolved(sys.argv[1]), native_log="quiet") as again:
    ref = again.put(rollout())
    with again.get(ref) as got:
        print(differences(rollout(), got) == {}, flush=True)
    again.remove(ref)
print("closed", flush=True)
"""


@pytest.mark.parametrize(
    ("fault", "seen"),
    [(signal.SIGKILL, "refuses connections"), (signal.SIGSTOP, "accepts connections and says nothing")],
    ids=["killed", "hangs"],
)
def test_close_without_a_master(fault: signal.Signals, seen: str) -> None:
    """Without a master that answers close takes less than 5 s, stops no thread, and one warning says what it means.

    The native client's own close would stop every thread for 10 or 80 s. When the master is back, the same process can
    open a store again.
    """
    master = start_mooncake_master()
    with master, python([], LEAVER, master.address) as leaver:
        assert line(leaver.stdout) == "stored"
        os.kill(master.pid, fault)
        # A signal is on its way when kill returns: a master that still answers is closed as one that lives.
        os.waitid(os.P_PID, master.pid, os.WEXITED | os.WSTOPPED | os.WNOWAIT)
        answer(leaver)
        told = json.loads(line(leaver.stdout))
        assert told["closing"] < 5
        assert told["longest gap"] < 2
        assert [f"is closed without its master, which {seen}" in text for text in told["told"]] == [True]
        if fault is signal.SIGKILL:
            master.stop()
            master = start_mooncake_master(rpc_port=master.rpc_port)
        else:
            os.kill(master.pid, signal.SIGCONT)
        try:
            answer(leaver)
            assert line(leaver.stdout) == "True"
            assert line(leaver.stdout) == "closed"
            leaver.kill()  # what it kept for good would take some seconds more
        finally:
            master.stop()


def test_close_with_a_master() -> None:
    """With a master that answers the client is closed, so that its segment is gone at once, and nothing is said."""
    with start_mooncake_master() as master, python([], LEAVER, master.address) as leaver:
        assert line(leaver.stdout) == "stored"
        answer(leaver)
        told = json.loads(line(leaver.stdout))
        assert told["closing"] < 10
        assert told["told"] == []
        assert segments(master) == []
        answer(leaver)
        assert line(leaver.stdout) == "True"
