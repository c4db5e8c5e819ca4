"""Documents for programs: strict JSON, lines for a shell, bare values."""

from __future__ import annotations

import json
from typing import Any

import pytest
from asking import MASTER, TWO_NODES, ask
from hypothesis import given
from hypothesis import strategies as st

from mooncake_config.findings import Finding, Severity
from mooncake_config.report.documents import (
    bare_value,
    claimed_fields,
    env_lines,
    explain_document,
    finding_document,
)
from mooncake_config.rules import examine
from mooncake_config.topology import Role


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.lists(st.text())))
def test_document_is_json(kwargs: dict[str, Any]) -> None:
    """The answer of explain is strict JSON whatever the init kwargs hold, without unpaired surrogates."""
    process = ask(None, kwargs, topology=TWO_NODES)
    text = json.dumps(explain_document(process, examine(process)), allow_nan=False)
    spelled = json.dumps(json.loads(text), ensure_ascii=False)
    assert spelled.encode("utf-8").decode("utf-8") == spelled


def test_document_of_a_finding() -> None:
    """A finding without origin has null for source, origin and node."""
    finding = Finding("MC103", "replicas-below-one", Severity.ERROR, (), None, "a fact.", "a way out.")
    assert finding_document(finding) == {
        "code": "MC103",
        "rule": "replicas-below-one",
        "severity": "error",
        "fields": [],
        "source": None,
        "origin": None,
        "node": None,
        "message": "a fact.",
        "fix": "a way out.",
    }


def test_non_contributor_keeps_its_size_in_fields() -> None:
    """A process that contributes nothing has the resolved size in fields and 0 in setup."""
    document = explain_document(ask(topology=TWO_NODES, role=Role.DRIVER), ())
    assert document["fields"]["global_segment_size"]["value"] == 8 << 30
    assert document["setup"]["global_segment_size"] == 0


def test_env_lines_are_quoted() -> None:
    """Values are quoted for a shell."""
    lines = list(env_lines(ask(MASTER | {"MOONCAKE_TE_META_DATA_SERVER": "http://h:1/metadata?a&b"})))
    assert "export MOONCAKE_TE_META_DATA_SERVER='http://h:1/metadata?a&b'" in lines


def test_claimed_fields() -> None:
    """A field is claimed by whoever wrote it down, also if it is the default that was written; Ray writes nothing."""
    process = ask(MASTER | {"MOONCAKE_DEVICE": "", "MOONCAKE_PROTOCOL": "rdma"}, {"chunk_bytes": 4096})
    assert [spec.name for spec in claimed_fields(process)] == ["master_server_address", "protocol", "chunk_bytes"]


@pytest.mark.parametrize(
    ("name", "kwargs", "value"),
    [
        ("global_segment_size", {"global_segment_size": "2gb"}, "2147483648"),
        ("protocol", {"protocol": "TCP"}, "tcp"),
        ("metadata_server", {"metadata_server": "http://u:geheim@h:1/metadata"}, "http://u:***@h:1/metadata"),
        ("chunk_bytes", {}, ""),
        ("device_name", {}, ""),
        ("protocol", {"protocol": "rmda"}, ""),
    ],
)
def test_bare_value(name: str, kwargs: dict[str, object], value: str) -> None:
    """A bare value is what a script takes: bytes, no password, nothing where nothing is set or it is malformed."""
    assert bare_value(ask(None, kwargs), name) == value
