"""The share of a client's transfer buffer (``local_buffer_size``) that objects pass through.

Mooncake's own pool lends all of it, and then as much again, and waits without end when that is gone; by then the small
messages of every operation find no room in it either: a get answers nothing, a put answers -600 (measured with
0.3.13.post1). So a part is kept for those, and nobody waits longer than they said.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Any

SMALLEST_PIECE = 64 * 1024
"""What the pool takes for a smaller piece."""

LARGEST_RESERVE = 4 * 1024 * 1024
"""Kept for small messages: an eighth of the buffer, at most this."""

PAUSE = 0.005
"""Seconds between two looks for room. A piece may be given back in the middle of anything, where no lock is safe."""


class Piece:
    """Some bytes of the buffer, on loan. Mooncake uses ``ptr``, ``size``, ``buffer`` and ``release``."""

    __slots__ = ("_buffer", "_lease", "ptr", "size")

    def __init__(self, buffer: TransferBuffer, lease: Any) -> None:
        self._buffer = buffer
        self._lease = lease
        self.ptr: int = lease.ptr
        self.size: int = lease.size

    @property
    def buffer(self) -> Any:
        """The bytes, as a memoryview."""
        return self._lease.buffer

    def release(self) -> None:
        """Gives the piece back. The second time it does nothing."""
        self._buffer.take_back(self._lease)


class TransferBuffer:
    """Lends pieces of a client's transfer buffer. ``pool`` is Mooncake's own over the whole of it, ``size`` bytes."""

    def __init__(self, pool: Any, size: int) -> None:
        self._pool = pool
        self.room = size - min(size // 8, LARGEST_RESERVE)
        self._lent: dict[int, int] = {}
        self._lending = threading.Lock()

    def lend(self, size: int, seconds: float) -> Piece:
        """A piece of ``size`` bytes.

        Raises:
            RuntimeError: there was no room for that long.
        """
        takes = max(size, SMALLEST_PIECE)
        deadline = time.monotonic() + seconds
        while True:
            with self._lending:
                if sum(list(self._lent.values())) + takes <= self.room:
                    lease = self._pool.acquire(size, block=False)
                    self._lent[id(lease)] = takes
                    return Piece(self, lease)
            if takes > self.room or time.monotonic() >= deadline:
                raise RuntimeError(f"no room for a piece of {size} bytes")
            time.sleep(PAUSE)

    def take_back(self, lease: Any) -> None:
        """Ends a loan. A lease that is back already is left alone."""
        if self._lent.pop(id(lease), None) is not None:
            lease.release()


@dataclass(frozen=True)
class Borrower:
    """Who asks for pieces, with the seconds that he waits for room: all that Mooncake needs of a pool."""

    buffer: TransferBuffer
    seconds: float

    def acquire(self, size: int) -> Piece:
        """A piece of ``size`` bytes. RuntimeError where there is none: a reader then takes memory of the process."""
        return self.buffer.lend(size, self.seconds)


class NoPieces:
    """A pool that lends nothing: Mooncake reads into memory of the process instead."""

    def acquire(self, size: int) -> Piece:
        """Never anything but RuntimeError."""
        raise RuntimeError(f"no piece of {size} bytes for this object")
