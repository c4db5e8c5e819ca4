"""The errors of a store."""

from __future__ import annotations

import pickle

import pytest

from mooncake_config.findings import MooncakeConfigError
from mooncake_config.store.errors import (
    BufferTooSmallError,
    MasterStartError,
    MasterUnreachableError,
    ObjectNotFoundError,
    StoreClosedError,
    StoreError,
    StoreFullError,
    StoreImportError,
    StoreSetupError,
    TransferError,
)

ERRORS = [
    StoreError("a", code=-500),
    StoreImportError("a", module="mooncake", extra="mooncake-cpu"),
    StoreSetupError("a", code=-600, name="INVALID_PARAMS", elapsed=4.3),
    StoreClosedError("a"),
    StoreFullError("a", code=-200, needed=10, replicas=2),
    ObjectNotFoundError("a", code=-704, key="bundle/x"),
    MasterUnreachableError("a", code=-900, master="10.0.0.5:50051"),
    TransferError("a", code=-800, key="bundle/x", peer="127.0.0.1:16060"),
    BufferTooSmallError("a", local_buffer_size=1, chunk_bytes=2, unreleased=3),
    MasterStartError("a", returncode=1, log="E"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_pickles(error: StoreError) -> None:
    """An error pickles with its message and all attributes, since it crosses Ray."""
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert vars(copy) == vars(error)
    assert str(copy) == "a"


def test_tree() -> None:
    """Whoever catches the library's root, or StoreError, catches them all; and every subclass is in this list."""
    assert all(isinstance(error, MooncakeConfigError) for error in ERRORS)
    assert {type(error) for error in ERRORS} == {StoreError, *StoreError.__subclasses__()}


def test_can_be_raised_and_noted() -> None:
    """They are ordinary exceptions: hashable, with a traceback, and keep their text under further arguments."""
    with pytest.raises(StoreFullError, match="no room") as caught:
        raise StoreFullError("no room", needed=7)
    assert hash(caught.value)
    assert caught.value.code is None
