"""A pytest plugin for the tests of a trainer: a real Mooncake master, and a store over it.

A suite takes it by one line in the ``conftest.py`` at its root, or by ``-p mooncake_config.testing``::

    pytest_plugins = ["mooncake_config.testing"]

It is no ``pytest11`` entry point: that would be imported by every pytest of an environment that has this package.

Nothing but pytest and one of the Mooncake extras is needed. Where Mooncake is not installed the tests that ask for it
fail, since a suite that skips its object store looks as good as one that tests it; ``mooncake_missing = "skip"`` in the
configuration of pytest (or ``-o mooncake_missing=skip``) is for the laptops where that is right.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from mooncake_config.resolve import resolve_store_config
from mooncake_config.store import open_object_store
from mooncake_config.store.errors import StoreImportError
from mooncake_config.store.master import MooncakeMaster, start_mooncake_master
from mooncake_config.topology import Role, Topology

if TYPE_CHECKING:
    from mooncake_config.store.mooncake import MooncakeObjectStore

MISSING = "mooncake_missing"
"""The setting of pytest that says what a test does without Mooncake."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Makes the setting known to pytest."""
    parser.addini(MISSING, 'what tests do where Mooncake is not installed: "fail" or "skip"', default="fail")


@pytest.fixture(scope="session")
def mooncake_master(pytestconfig: pytest.Config) -> Iterator[MooncakeMaster]:
    """A ``mooncake_master`` on loopback, for the whole session, on ports that nobody else uses.

    ``mooncake_master.address`` is the value for ``master_server_address``. Each worker of pytest-xdist has its own. It
    is stopped at the end of the session; only a pytest that is killed leaves it behind.
    """
    with _or_missing(pytestconfig):
        master = start_mooncake_master()
    with master:
        yield master


@pytest.fixture(scope="session")
def mooncake_init_kwargs(mooncake_master: MooncakeMaster) -> dict[str, Any]:
    """Init kwargs with which a process of this host reaches the master: TCP on loopback, 64 MiB of segment and buffer.

    They are what ``--mooncake-store-init-kwargs`` takes (``json.dumps`` of them), and ``resolve_store_config``. A suite
    that needs other sizes overrides this fixture, with scope ``"session"``.
    """
    return {
        "master_server_address": mooncake_master.address,
        "local_hostname": "127.0.0.1",
        "protocol": "tcp",
        "global_segment_size": "64mb",
        "local_buffer_size": "64mb",
    }


@pytest.fixture(scope="session")
def mooncake_session_store(
    pytestconfig: pytest.Config, mooncake_init_kwargs: dict[str, Any]
) -> Iterator[MooncakeObjectStore]:
    """The store behind ``mooncake_store``, open for the whole session: to open and to close one takes seconds.

    What the native client logs goes to standard error, so that pytest shows it with the test that failed.
    """
    one_node = Topology(num_nodes=1)
    resolution = resolve_store_config(mooncake_init_kwargs, role=Role.TRAINER, topology=one_node, environ={})
    with _or_missing(pytestconfig):
        store = open_object_store("mooncake", resolution, namespace="pytest")
    with store:
        yield store


@pytest.fixture
def mooncake_store(mooncake_session_store: MooncakeObjectStore) -> Iterator[MooncakeObjectStore]:
    """An open store with a segment of its own, as a trainer has it, and empty: what a test leaves in it is purged."""
    yield mooncake_session_store
    mooncake_session_store.purge()


@contextmanager
def _or_missing(config: pytest.Config) -> Iterator[None]:
    try:
        yield
    except StoreImportError as error:
        raise _ending(str(config.getini(MISSING)), str(error)) from None  # pytest would print the cause as well


def _ending(choice: str, reason: str) -> BaseException:
    """How a test ends without Mooncake."""
    if choice == "skip":
        return pytest.skip.Exception(reason)
    if choice != "fail":
        return pytest.UsageError(f"{MISSING} is 'fail' or 'skip', not {choice!r}")
    return pytest.fail.Exception(f"{reason} Or have such tests skipped: set {MISSING} to skip.", pytrace=False)
