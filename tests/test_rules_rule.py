"""Rule: a function with a page."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import ModuleType

from mooncake_config.findings import Severity
from mooncake_config.rules.rule import Problem, Rule, reported_by_reading, rule, rules_in


@rule("MC998", Severity.WARNING, protects=True)
def odd_number(subject: int) -> Iterator[Problem]:
    """The number is odd.

    Why: pairs are made of it.
    """
    if subject % 2:
        yield Problem((), f"{subject} is odd.", "add one.")


@reported_by_reading("MC997")
def no_number() -> None:
    """It is no number."""


@reported_by_reading("MC996", Severity.INFO)
def long_number() -> None:
    """It is long."""


def test_function_becomes_rule() -> None:
    """A rule has its function's name with hyphens, its docstring as a page, and looks as the function does."""
    assert (odd_number.code, odd_number.name, odd_number.severity) == ("MC998", "odd-number", Severity.WARNING)
    assert odd_number.protects
    assert not odd_number.by_reading
    assert odd_number.page == "The number is odd.\n\nWhy: pairs are made of it."
    assert list(odd_number.see(3)) == [Problem((), "3 is odd.", "add one.")]
    assert list(odd_number.see(4)) == []


def test_summary_is_first_line() -> None:
    """The summary of a rule is the first line of its page."""
    assert odd_number.summary == "The number is odd."
    assert no_number.summary == no_number.page


def test_rule_of_reading_sees_nothing() -> None:
    """A rule that a parser fires sees nothing by itself, and what it refuses has no value to go on with."""
    assert list(no_number.see(object())) == []
    assert no_number.by_reading
    assert no_number.protects
    assert no_number.severity is Severity.ERROR


def test_remark_of_reading_protects_nothing() -> None:
    """A rule that a parser fires for less than an error can be ignored."""
    assert not long_number.protects


def test_rules_of_modules_are_in_order() -> None:
    """The rules of several modules come by code, and what is no rule is left out."""
    room, other = ModuleType("room"), ModuleType("other")
    vars(room).update(z=odd_number, y=long_number, x=Rule, w="text")
    vars(other).update(no_number=no_number)
    assert [item.code for item in rules_in(room, other)] == ["MC996", "MC997", "MC998"]


def test_rule_needs_no_page_to_be_made() -> None:
    """A function without a docstring makes a rule with an empty page; the suite refuses such pages."""

    def bare(subject: int) -> Iterator[Problem]:
        yield from ()

    assert inspect.getdoc(bare) is None
    assert rule("MC995", Severity.INFO)(bare).summary == ""
