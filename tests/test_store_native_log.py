"""The native log aside: in processes of their own, since it is file descriptor 2 that moves."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mooncake_config.store.errors import StoreFullError
from mooncake_config.store.master import start_mooncake_master
from mooncake_config.store.native_log import Inherited

HERE = Path(__file__).parent
LINE = "E1129 19:00:24.973428 12678 transfer_metadata.cpp:1098] Local segment descriptor not found"


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a script that can import the tests."""
    path = os.pathsep.join(map(str, [HERE, HERE.parent]))
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
        env={**os.environ, "PYTHONPATH": path},
    )


SCRIPT = """
import logging, os, sys
logging.basicConfig(format="%(message)s")
from mooncake_config.store.native_log import set_aside
log = set_aside(sys.argv[1])
mark = log.mark()
os.write(2, (sys.argv[2] + "\\nI1129 19:00:24.973428 12678 a.cpp:1] fine\\n").encode())
logging.warning("from logging")
print("from python", file=sys.stderr)
print(log.complaints(mark), log.complaints(log.mark()))
log.end()
log.end()
os.write(2, b"from native code at the end\\n")
print("and from python", file=sys.stderr)
"""
ASIDE = "from logging\nfrom python\nfrom native code at the end\nand from python\n"
COMPLAINT = "('transfer_metadata.cpp:1098] Local segment descriptor not found',) ()\n"


def test_quiet() -> None:
    """Quiet keeps native lines away and can give back those that complain; Python's own are where they were."""
    done = run(SCRIPT, "quiet", LINE)
    assert (done.stdout, done.stderr) == (COMPLAINT, ASIDE)


def test_path(tmp_path: Path) -> None:
    """A path gets all native lines, behind what it held."""
    path = tmp_path / "native.log"
    path.write_text("before\n")
    done = run(SCRIPT, str(path), LINE)
    assert (done.stdout, done.stderr) == (COMPLAINT, ASIDE)
    assert path.read_text() == f"before\n{LINE}\nI1129 19:00:24.973428 12678 a.cpp:1] fine\n"


def test_inherit() -> None:
    """Inherited lines stay on standard error, and none can be given back."""
    done = run(SCRIPT, "inherit", LINE)
    assert done.stdout == "() ()\n"
    assert LINE in done.stderr
    assert Inherited().complaints(0) == ()


def test_secrets_are_masked() -> None:
    """A password in a native line does not reach an exception."""
    done = run(SCRIPT, "quiet", "E1129 19:00:24.973428 12678 a.cpp:1] no answer of redis://me:hunter2@10.0.0.1:6379")
    assert "hunter2" not in done.stdout
    assert "10.0.0.1:6379" in done.stdout


def test_unwritable(tmp_path: Path) -> None:
    """A path that cannot be written is an OSError, and standard error stays."""
    code = """
import sys
from mooncake_config.store.native_log import set_aside
try:
    set_aside(sys.argv[1])
except OSError as error:
    print(type(error).__name__)
print("still here", file=sys.stderr)
"""
    done = run(code, str(tmp_path / "no" / "such.log"))
    assert (done.stdout, done.stderr) == ("FileNotFoundError\n", "still here\n")


STORE = """
import sys
from test_store_mooncake import ints, resolved
from mooncake_config.store import open_object_store
from mooncake_config.store.errors import StoreFullError, StoreSetupError
try:
    open_object_store("mooncake", resolved(sys.argv[1], global_segment_size="1mb"), native_log="quiet")
except StoreSetupError as error:
    print(error.native_log)
with open_object_store("mooncake", resolved(sys.argv[1]), native_log="quiet") as store:
    try:
        store.put(ints(200))
    except StoreFullError as error:
        print(error)
"""


@pytest.mark.mooncake
def test_errors_carry_their_lines() -> None:
    """What native code said of a setup or a put that failed is in the exception, and nothing is on standard error."""
    with start_mooncake_master() as master:
        done = run(STORE, master.address)
    assert done.stderr == ""
    assert "at least 16777216" in done.stdout
    assert "  native log: client_service.cpp" in done.stdout
    assert "insufficient space" in done.stdout
    assert "native log: E1" not in str(StoreFullError("full", native_log=("a.cpp:1] x",)))
