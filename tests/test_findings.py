"""findings: the words of a finding, and the exceptions that carry it."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from mooncake_config.findings import ConfigError, Finding, Malformed, MooncakeConfigError, Severity
from mooncake_config.provenance import Origin, Source

LOOPBACK = Finding(
    code="MC101",
    rule="loopback-in-multi-node",
    severity=Severity.ERROR,
    fields=("local_hostname",),
    origin=Origin(Source.ENV, "MOONCAKE_LOCAL_HOSTNAME"),
    message="127.0.0.1 is a loopback address, and this job has 2 nodes.",
    fix="unset it to use the Ray node IP 10.0.0.7.",
)
UNREAD = Finding(
    "MC120", "unread-variable", Severity.WARNING, (), None, "nothing reads it.", "unset it.", node="10.0.0.7"
)


def test_one_line() -> None:
    """A fact, a place and a way out, on one line."""
    assert str(LOOPBACK) == (
        "MC101 error local_hostname: 127.0.0.1 is a loopback address, and this job has 2 nodes. "
        "From MOONCAKE_LOCAL_HOSTNAME. Fix: unset it to use the Ray node IP 10.0.0.7."
    )


def test_one_line_without_field_and_origin() -> None:
    """What is not known is not mentioned; a node is."""
    assert str(UNREAD) == "MC120 warning: nothing reads it. On node 10.0.0.7. Fix: unset it."


def test_several_fields() -> None:
    """A finding about several fields names all of them."""
    finding = Finding(
        "MC102", "chunk-above-buffer", Severity.ERROR, ("chunk_bytes", "local_buffer_size"), None, "m.", "f."
    )
    assert str(finding).startswith("MC102 error chunk_bytes, local_buffer_size: m.")


def test_line_shows_no_control_character() -> None:
    """A path or a node with an escape sequence in its name reaches no terminal as one."""
    spot = Origin(Source.CLI, "store\x1b[2J\n.json")
    line = str(Finding("MC001", "broken-json", Severity.ERROR, (), spot, "m.", "f.", node="\x1b[31m"))
    assert line.isprintable()
    assert r"From store\x1b[2J\n.json. On node \x1b[31m." in line


def test_source_is_that_of_the_origin() -> None:
    """The kind of place to edit; None where there is no place."""
    assert LOOPBACK.source is Source.ENV
    assert UNREAD.source is None


def test_worst_first() -> None:
    """An error is worse than a warning, and that worse than an info; names are those of the JSON answer."""
    assert sorted([Severity.INFO, Severity.ERROR, Severity.WARNING], key=lambda s: s.rank) == [
        "error",
        "warning",
        "info",
    ]


@pytest.mark.parametrize(
    ("findings", "head"),
    [
        ((LOOPBACK, UNREAD), "1 error in the Mooncake Store configuration:"),
        ((LOOPBACK, LOOPBACK), "2 errors in the Mooncake Store configuration:"),
        ((), "0 errors in the Mooncake Store configuration:"),
    ],
)
def test_config_error_counts_and_lists(findings: tuple[Finding, ...], head: str) -> None:
    """The exception's text counts the errors and has one line for each finding."""
    assert str(ConfigError(findings)).splitlines() == [head, *(f"  {finding}" for finding in findings)]


def test_one_root() -> None:
    """Whoever catches the library's root catches a refused configuration."""
    with pytest.raises(MooncakeConfigError):
        raise ConfigError([LOOPBACK])


def test_config_error_pickles() -> None:
    """It crosses Ray whole."""
    again = pickle.loads(pickle.dumps(ConfigError(iter([LOOPBACK, UNREAD]))))
    assert again.findings == (LOOPBACK, UNREAD)
    assert str(again) == str(ConfigError([LOOPBACK, UNREAD]))


def test_malformed_is_a_value_error() -> None:
    """pydantic makes a validation error of it; its text has the fact and the way out, and it pickles."""
    refusal = Malformed("bad-port", "host has no port.", "write host:50051.")
    assert isinstance(refusal, ValueError)
    again = pickle.loads(pickle.dumps(refusal))
    assert (again.offence, str(again)) == ("bad-port", "host has no port. Fix: write host:50051.")


def test_finding_on_several_nodes() -> None:
    """Of a finding on several nodes the line has the few words that name them."""
    several = replace(UNREAD, node="all 2 nodes", nodes=("10.0.0.5", "10.0.0.7"))
    assert str(several) == "MC120 warning: nothing reads it. On all 2 nodes. Fix: unset it."
