"""provenance: the first claim wins, and no claim is lost."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooncake_config.provenance import Claim, Ledger, Origin, Source, stack

FIELDS = st.sampled_from(["protocol", "device_name", "chunk_bytes"])
CLAIMS = st.builds(
    Claim,
    st.one_of(st.none(), st.sampled_from(["", " ", "\t\n"]), st.text(max_size=3), st.integers(), st.booleans()),
    st.builds(Origin, st.sampled_from(Source), st.sampled_from(["MOONCAKE_PROTOCOL", "default", "store.json"])),
)
LAYERS = st.lists(st.dictionaries(FIELDS, CLAIMS), max_size=5)


def counts(claim: Claim) -> bool:
    """Whether a claim takes part: it is not empty, or a default, which may be the empty text."""
    return not claim.is_empty or claim.origin.source is Source.DEFAULT


@given(layers=LAYERS, name=FIELDS)
def test_first_claim_wins(layers: list[dict[str, Claim]], name: str) -> None:
    """The winner is the claim of the first layer that says anything; its origin is the field's origin."""
    ledger = stack(layers)
    first = next((layer[name] for layer in layers if name in layer and counts(layer[name])), None)
    assert ledger.winner(name) == first
    assert ledger.origin(name) == (first.origin if first else None)


@given(layers=LAYERS)
def test_no_claim_is_lost(layers: list[dict[str, Claim]]) -> None:
    """Every claim is the winner, overridden, or among the empty ones; each in the order of the layers."""
    ledger = stack(layers)
    for name in {name for layer in layers for name in layer}:
        made = [layer[name] for layer in layers if name in layer]
        winner = ledger.winner(name)
        assert [*([winner] if winner else []), *ledger.overridden(name)] == [claim for claim in made if counts(claim)]
        assert [claim for field, claim in ledger.empty if field == name] == [
            claim for claim in made if not counts(claim)
        ]


@pytest.mark.parametrize(
    ("raw", "is_empty"),
    [(None, True), ("", True), (" \t", True), (0, False), (False, False), ("0", False), ([], False)],
)
def test_presence_decides_not_truth(raw: object, is_empty: bool) -> None:
    """Null and blank text are no claim; zero, false and an empty list are."""
    assert Claim(raw, Origin(Source.CLI, "init kwargs")).is_empty is is_empty


@pytest.mark.parametrize("source", Source)
def test_what_is_written(source: Source) -> None:
    """What the command line or a variable says was written by a person; Ray's address and defaults were not."""
    assert Origin(source, "somewhere").is_written is (source in {Source.CLI, Source.ENV})


def test_empty_default_is_a_claim() -> None:
    """The default of device_name is the empty text, and it holds; an empty variable above it does not."""
    variable = Claim("", Origin(Source.ENV, "MOONCAKE_DEVICE"))
    default = Claim("", Origin(Source.DEFAULT, "default"))
    ledger = stack([{"device_name": variable}, {"device_name": default}])
    assert ledger.winner("device_name") is default
    assert ledger.empty == (("device_name", variable),)


def test_nobody_claims() -> None:
    """A field without a claim has no winner, no origin, and nothing overridden."""
    assert (Ledger().winner("protocol"), Ledger().origin("protocol"), Ledger().overridden("protocol")) == (
        None,
        None,
        (),
    )


def test_origin_reads_as_its_spot() -> None:
    """An origin is worded for the person who must edit it."""
    assert str(Origin(Source.ENV, "MOONCAKE_MASTER")) == "MOONCAKE_MASTER"


@given(layers=LAYERS)
def test_ledger_pickles(layers: list[dict[str, Claim]]) -> None:
    """A ledger crosses process borders."""
    assert pickle.loads(pickle.dumps(stack(layers))) == stack(layers)
