"""Pieces of a transfer buffer on loan, from a pool without an end. The real pool is tested over a real master."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Any

import pytest

from mooncake_config.store.transfer_buffer import Borrower, NoPieces, TransferBuffer

MB = 1024 * 1024


@dataclass
class Lease:
    """What a pool lends."""

    size: int
    released: int = 0
    ptr: int = 4096
    buffer: memoryview = field(default_factory=lambda: memoryview(bytearray(1)))

    def release(self) -> None:
        """Counts."""
        self.released += 1


@dataclass
class Pool:
    """A pool without an end."""

    leases: list[Lease] = field(default_factory=list)

    def acquire(self, size: int, block: bool) -> Lease:
        """Never waits."""
        assert not block
        self.leases.append(Lease(size))
        return self.leases[-1]


@pytest.mark.parametrize(("size", "room"), [(16 * MB, 14 * MB), (1024 * MB, 1020 * MB), (1024, 896)])
def test_reserve(size: int, room: int) -> None:
    """An eighth of the buffer is kept for small messages, 4 MiB at most."""
    assert TransferBuffer(Pool(), size).room == room


def test_room() -> None:
    """No more than the room is lent, and what comes back can be lent again, once."""
    pool = Pool()
    buffer = TransferBuffer(pool, 16 * MB)
    first, second = buffer.lend(8 * MB, 0), buffer.lend(6 * MB, 0)
    assert (first.size, first.ptr, len(first.buffer)) == (8 * MB, 4096, 1)
    with pytest.raises(RuntimeError, match="no room for a piece of 1 bytes"):
        buffer.lend(1, 0)
    second.release()
    second.release()
    assert pool.leases[1].released == 1
    buffer.lend(6 * MB, 0)


def test_larger_than_the_room() -> None:
    """What can never fit is refused at once, however long one would wait."""
    started = time.monotonic()
    with pytest.raises(RuntimeError, match="no room"):
        TransferBuffer(Pool(), 16 * MB).lend(15 * MB, 60)
    assert time.monotonic() - started < 10


def test_waiting() -> None:
    """Who waits gets the piece when another one comes back, and gives up when his time is over."""
    buffer = TransferBuffer(Pool(), 16 * MB)
    first = buffer.lend(14 * MB, 0)
    got: list[Any] = []
    waiting = threading.Thread(target=lambda: got.append(Borrower(buffer, 60).acquire(14 * MB)))
    waiting.start()
    first.release()
    waiting.join(30)
    assert [piece.size for piece in got] == [14 * MB]
    with pytest.raises(RuntimeError, match="no room"):
        Borrower(buffer, 0.05).acquire(1)


def test_no_pieces() -> None:
    """A pool that lends nothing says so in the way that makes Mooncake read into the process's memory."""
    with pytest.raises(RuntimeError, match="5 bytes"):
        NoPieces().acquire(5)
