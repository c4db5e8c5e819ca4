"""The interface: what a spec is, how a store is opened, and what is not imported before."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest
from rollouts import rollout

from mooncake_config.findings import Finding, Severity
from mooncake_config.resolve import resolve_store_config
from mooncake_config.store import CODECS, DTYPES, ROLLOUT_VALUE_SPEC, ValueSpec, open_object_store
from mooncake_config.store.mooncake import log_warnings
from mooncake_config.topology import Topology


def test_import_is_light() -> None:
    """Importing the store and making a spec imports neither ray nor mooncake nor numpy."""
    code = """
import sys
import mooncake_config.store.master
from mooncake_config.store import ValueSpec, open_object_store
ValueSpec("ndarray", "int64")
print(sorted({"ray", "mooncake", "numpy", "msgpack", "torch"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("codec", "dtype", "error", "message"),
    [
        ("typed_raged", None, ValueError, "did you mean 'typed_ragged'"),
        ("pickle", None, ValueError, "known: auto, bytes_ragged"),
        (None, None, TypeError, "codec must be a text"),
        ("typed_ragged", "int23", ValueError, "did you mean 'int32'"),
        ("typed_ragged", "bfloat16", ValueError, "unknown dtype"),
        ("typed_ragged", int, TypeError, "dtype must be a text"),
        ("utf8_ragged", "int32", ValueError, "takes no dtype; only ndarray and typed_ragged do"),
    ],
)
def test_wrong_spec(codec: str, dtype: str, error: type[Exception], message: str) -> None:
    """A spec that cannot be is refused when it is made, with the nearest name that can."""
    with pytest.raises(error, match=message):
        ValueSpec(codec, dtype)


def test_specs() -> None:
    """Every codec and every dtype makes a spec; a spec is a value: equal, hashable, frozen."""
    assert {ValueSpec(codec) for codec in CODECS} == {ValueSpec(codec) for codec in reversed(list(CODECS))}
    assert len({ValueSpec("ndarray", dtype) for dtype in DTYPES}) == len(DTYPES)
    with pytest.raises(AttributeError):
        ValueSpec("auto").codec = "ndarray"  # type: ignore[misc]  # wrong on purpose


def test_rollout_fields() -> None:
    """The ready-made spec has every field of the reference's rollout."""
    assert set(ROLLOUT_VALUE_SPEC) == set(rollout())


def test_wrong_use() -> None:
    """A resolution is needed by mooncake and not taken by ray; other backends do not exist."""
    resolution = resolve_store_config(
        {"master_server_address": "127.0.0.1:1", "protocol": "tcp", "local_hostname": "127.0.0.1"},
        topology=Topology(num_nodes=1),
        environ={},
    )
    with pytest.raises(TypeError, match="needs the resolution"):
        open_object_store("mooncake")
    with pytest.raises(TypeError, match=r"^not a dict, but what resolve_store_config\(\) makes of it"):
        open_object_store("mooncake", {"protocol": "tcp"})  # type: ignore[call-overload]  # wrong on purpose
    with pytest.raises(TypeError, match="takes no resolution"):
        open_object_store("ray", resolution)
    with pytest.raises(ValueError, match="unknown backend 'redis'"):
        open_object_store("redis")


@pytest.mark.mooncake
def test_warnings_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """Each remaining warning of the resolution is logged once, at WARNING, on the library's logger; infos are not."""
    resolution = resolve_store_config(
        {"master_server_address": "127.0.0.1:1", "protocol": "tcp", "local_hostname": "127.0.0.1", "device_name": ""},
        topology=Topology(num_nodes=1),
        replica_num=2,
        environ={"MOONCAKE_UNHEARD_OF": "1"},
    )
    warnings = [finding for finding in resolution.findings if finding.severity is Severity.WARNING]
    assert warnings
    assert len(resolution.findings) > len(warnings)
    with caplog.at_level(logging.INFO):
        log_warnings(resolution.findings)
    logged = [(record.name, record.levelname, record.getMessage()) for record in caplog.records]
    assert logged == [("mooncake_config", "WARNING", str(warning)) for warning in warnings]
    assert all(isinstance(warning, Finding) for warning in warnings)
