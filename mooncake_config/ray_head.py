"""The head of a Ray cluster, asked before anybody attaches: whether it is there, and whether it lets this process in.

A head that refuses a token is asked again by Ray every second and without end, and each time native code writes a line
to standard error. So a child process asks first, once, and what is written there is read here.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from enum import Enum

ASK_SECONDS = 10.0
"""Time for the child to import Ray and to ask."""

_DEAD = "nobody answers at "
_ASK = f"""
import sys
sys.path = [entry for entry in sys.path if entry]
import socket
from ray._private.services import canonicalize_bootstrap_address
address = canonicalize_bootstrap_address(sys.argv[1])
if address:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), 2).close()
    except TimeoutError:
        pass
    except OSError:
        sys.exit({_DEAD!r} + address)
    from ray._raylet import GcsClient
    GcsClient(address=address)
"""
"""The functions that ``ray.init`` itself uses; where a Ray has others the child fails, which says nothing. What lies in
the working directory is not imported."""

_REFUSED = re.compile(r"InvalidAuthToken|Token authentication is enabled but")


class Door(Enum):
    """How a head meets this process."""

    OPEN = "lets us in, or was not asked"
    DEAD = "is not there"
    LOCKED = "wants another token"


def knock(address: str) -> tuple[Door, str]:
    """How the head at an address meets this process, and ``HOST:PORT`` of a dead one. Never raises.

    Args:
        address: ``auto``, which is what Ray means by it, or ``HOST:PORT``.
    """
    own = dict(os.environ)
    said = _ask(address, own)
    if dead := re.search(rf"{_DEAD}(\S+)", said):
        return Door.DEAD, dead[1]
    if not _REFUSED.search(said):
        return Door.OPEN, ""
    if _looks_for_a_token(address, own) and not _REFUSED.search(_ask(address, {**own, "RAY_AUTH_MODE": "token"})):
        return Door.OPEN, ""
    return Door.LOCKED, ""


def _looks_for_a_token(address: str, environ: Mapping[str, str]) -> bool:
    """Whether Ray takes a token that lies ready, unasked: only for a cluster that it found by itself (Ray 2.60)."""
    return address == "auto" and not environ.get("RAY_ADDRESS") and "RAY_AUTH_MODE" not in environ


def _ask(address: str, environ: Mapping[str, str]) -> str:
    """What the child says on standard error, empty where it says nothing in time."""
    command: Sequence[str] = [sys.executable, "-c", _ASK, address]
    try:
        done = subprocess.run(
            command,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=ASK_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stderr.decode("utf-8", "replace")
