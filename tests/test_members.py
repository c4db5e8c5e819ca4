"""Members: nodes grouped by what they have in common, named in few words, and what they found told once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooncake_config.findings import Finding, Severity
from mooncake_config.members import Member, few_names, folded, grouped
from mooncake_config.provenance import Origin, Source

FIX = "write another."


def finding(message: str, severity: Severity = Severity.ERROR, spot: str = "MOONCAKE_MASTER") -> Finding:
    """A finding on the master."""
    return Finding("MC101", "x", severity, ("master_server_address",), Origin(Source.ENV, spot), message, FIX)


@given(st.lists(st.integers(0, 5), max_size=30))
def test_groups_hold_every_member_once(keys: list[int]) -> None:
    """Grouping loses and doubles no member, and the largest group comes first."""
    members = [Member(str(place), str(key)) for place, key in enumerate(keys)]
    groups = grouped(members, lambda one: one.address)
    assert sorted(one.name for some in groups.values() for one in some) == sorted(one.name for one in members)
    sizes = [len(some) for some in groups.values()]
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize(
    ("names", "total", "words"),
    [
        (["a"], 1, "a"),
        (["a", "b"], 3, "a and b"),
        (["a", "b", "c"], 4, "a, b and c"),
        (["a", "b", "c", "d", "e"], 9, "a, b, c and 2 more"),
        (["a", "b"], 2, "all 2 nodes"),
        ([], 2, "no node"),
    ],
)
def test_few_names(names: list[str], total: int, words: str) -> None:
    """Names of nodes in few words."""
    assert few_names(names, total) == words


def test_folded_by_cause() -> None:
    """The same rule, fields and place on several nodes is one finding; another place is another."""
    members = [
        Member("a", "a", findings=(finding("same."),)),
        Member("b", "b", findings=(finding("same."),)),
        Member("c", "c", findings=(finding("same.", spot="--mooncake-store-init-kwargs"),)),
    ]
    assert [(item.node, item.nodes) for item in folded(members)] == [("a and b", ("a", "b")), ("c", ("c",))]


def test_folded_in_the_words_of_the_worst() -> None:
    """Of findings of one cause that differ, the worst speaks, and it is said whose words these are."""
    members = [
        Member("a", "a", findings=(finding("mild.", Severity.WARNING),)),
        Member("b", "b", findings=(finding("bad."),)),
    ]
    (one,) = folded(members)
    assert (one.severity, one.message, one.node) == (Severity.ERROR, "bad.", "all 2 nodes, in the words of b")


def test_several_of_one_kind_on_a_node_stay_several() -> None:
    """Two unknown keys of one JSON, which reaches every node, are two findings, each on all nodes."""
    both = (finding("key a is unknown."), finding("key b is unknown."))
    members = [Member("a", "a", findings=both), Member("b", "b", findings=both)]
    assert [(item.message, item.nodes) for item in folded(members)] == [
        ("key a is unknown.", ("a", "b")),
        ("key b is unknown.", ("a", "b")),
    ]


@given(st.lists(st.sampled_from(["x.", "y."]), max_size=8))
def test_folding_names_every_node(messages: list[str]) -> None:
    """No node on which something was found is lost."""
    members = [Member(str(place), "", findings=(finding(text),)) for place, text in enumerate(messages)]
    assert [name for item in folded(members) for name in item.nodes] == [member.name for member in members]
