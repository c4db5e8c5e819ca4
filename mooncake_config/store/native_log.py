"""The native client's own log: lines of glog, which it writes to standard error, whoever else writes there.

glog knows no callback and Mooncake never gives it a file, so all that can be moved is file descriptor 2, which belongs
to the whole process. Python's own standard error is pointed at the old place first, and stays where it was. A file
takes the lines and not a pipe: native calls hold the interpreter's lock while they log, and nobody could empty a pipe.
"""

from __future__ import annotations

import fcntl
import io
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import IO, Protocol

from mooncake_config.display import RAW_LIMIT, shown

STDERR = 2
LINES = 5
"""Lines that an error carries at most, the last ones."""

WINDOW = 64 * 1024
"""Bytes at the end of the log that are looked through for an error."""

ROTATE = 16 * 1024 * 1024
"""Bytes after which a log without a path begins anew."""

_BAD_LINE = re.compile(r"[EWF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ (?P<words>\S+:\d+\] .*)")


def open_log(path: str | os.PathLike[str] | None) -> IO[bytes]:
    """A file to write and to read back, appended to; without a path one that has no name, and goes when it is closed.

    Raises:
        OSError: it cannot be written.
    """
    return tempfile.TemporaryFile() if path is None else Path(path).open("a+b")


class NativeLog(Protocol):
    """Where the lines go."""

    def mark(self) -> int:
        """The end of the log now."""

    def complaints(self, mark: int) -> tuple[str, ...]:
        """The last errors and warnings since a mark, without their times."""

    def end(self) -> None:
        """Native code writes to standard error again."""


class Inherited:
    """Standard error, as native code does by itself. Nothing can be read back from there."""

    def mark(self) -> int:
        return 0

    def complaints(self, mark: int) -> tuple[str, ...]:
        return ()

    def end(self) -> None:
        return


class SetAside:
    """A file in the place of file descriptor 2. Without a path it has no name, and goes with the store."""

    def __init__(self, path: Path | None) -> None:
        self._named = path is not None
        self._log = open_log(path)
        fcntl.fcntl(self._log, fcntl.F_SETFL, fcntl.fcntl(self._log, fcntl.F_GETFL) | os.O_APPEND)
        self._before = os.dup(STDERR)
        self._ended = False
        _point_python_at(STDERR, self._before)
        os.dup2(self._log.fileno(), STDERR)

    def mark(self) -> int:
        size = os.fstat(self._log.fileno()).st_size
        if size > ROTATE and not self._named:
            os.ftruncate(self._log.fileno(), 0)
            return 0
        return size

    def complaints(self, mark: int) -> tuple[str, ...]:
        if self._ended:
            return ()
        size = os.fstat(self._log.fileno()).st_size
        start = max(mark, size - WINDOW)
        text = os.pread(self._log.fileno(), max(0, size - start), start).decode("utf-8", "replace")
        return tuple(shown(found["words"], RAW_LIMIT) for found in _BAD_LINE.finditer(text))[-LINES:]

    def end(self) -> None:
        """Puts file descriptor 2 back, unless somebody moved it since: that one puts it back."""
        if self._ended:
            return
        self._ended = True
        if os.path.sameopenfile(self._log.fileno(), STDERR):
            os.dup2(self._before, STDERR)
        _point_python_at(self._before, STDERR)
        os.close(self._before)
        self._log.close()


def set_aside(native_log: str | os.PathLike[str]) -> NativeLog:
    """What the argument ``native_log`` of ``open_object_store`` asks for.

    Raises:
        OSError: the file cannot be written.
    """
    if native_log == "inherit":
        return Inherited()
    return SetAside(None if native_log == "quiet" else Path(native_log))


def _point_python_at(old: int, new: int) -> None:
    """Moves Python's standard error in place, so that handlers of ``logging`` that hold it move with it."""
    buffer = getattr(sys.__stderr__, "buffer", None)
    raw = getattr(buffer, "raw", buffer)  # Unbuffered, as PYTHONUNBUFFERED makes it, there is no buffer in between.
    if sys.__stderr__ is not None and isinstance(raw, io.FileIO) and not raw.closed and raw.fileno() == old:
        sys.__stderr__.flush()
        raw.__init__(new, "wb", closefd=False)  # type: ignore[misc]  # the one way to move a FileIO that others hold
