"""How a native client is left: closed where its master answers, and left alone for the rest of the process otherwise.

``MooncakeDistributedStore.close`` talks to the master and lets no other thread of the process run meanwhile. Measured
with 0.3.13.post1: 1 to 2 s with a master that answers, up to 10 s where its process is gone, 62 to 81 s where it hangs,
and up to 30 s under a highly available one, the period of the client's watch.
"""

from __future__ import annotations

import ctypes
import logging
import os
from typing import Any

from mooncake_config.addresses import split_endpoint
from mooncake_config.dialogue import Outcome, ask_endpoint
from mooncake_config.display import shown
from mooncake_config.store.native_log import NativeLog

LOGGER = logging.getLogger("mooncake_config")

NO_ANSWERS = frozenset(
    {
        Outcome.REFUSED,
        Outcome.TIMED_OUT,
        Outcome.UNREACHABLE,
        Outcome.SILENT,
        Outcome.UNKNOWN_NAME,
        Outcome.NAME_TIMED_OUT,
    }
)
"""What a master that is gone or hangs does. A proxy in front of one hangs up or says something: that is an answer."""


def leave(native: Any, log: NativeLog, process: int, master: str) -> None:
    """Leaves the client that ``process`` has opened; a forked child leaves its parent's alone."""
    if os.getpid() != process:
        return
    if "://" not in master and _answers(master):
        native.close()
    else:
        _keep_for_good(native)
    log.end()


def _answers(master: str) -> bool:
    try:
        answer = ask_endpoint("master_server_address", split_endpoint(master))
    except RuntimeError:
        # The interpreter ends, and starts no thread any more that could look a name up.
        return True
    if answer.outcome in NO_ANSWERS:
        LOGGER.warning(
            "the store of %s is closed without its master, which %s: its memory is kept until this process ends",
            shown(master),
            answer,
        )
    return answer.outcome not in NO_ANSWERS


def _keep_for_good(native: Any) -> None:
    """One reference that is never given back: the client's end as garbage would stop every thread too."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(native))
