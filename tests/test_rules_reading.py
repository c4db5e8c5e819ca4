"""MC00x to MC02x: pages of what could not be read; the parsers fire them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from asking import MASTER, ONE_NODE, ask, found

import mooncake_config
from mooncake_config.findings import Severity
from mooncake_config.rules import PROCESS_RULES, reading
from mooncake_config.rules.launch import ignored_in_vain
from mooncake_config.rules.rule import rules_in

PACKAGE = Path(mooncake_config.__file__).parent


def texts_of_the_parsers() -> Iterator[str]:
    """Every text that stands in the code of the package outside of its rules."""
    for path in PACKAGE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def test_each_page_has_a_parser() -> None:
    """Each rule that no look at a process fires is named by a parser, but for the one that ``examine`` fires itself."""
    named = {*texts_of_the_parsers(), ignored_in_vain.name}
    assert [rule.name for rule in PROCESS_RULES if rule.by_reading and rule.name not in named] == []


def test_room_holds_such_rules_alone() -> None:
    """The rules of this room are fired while reading, and none of them looks at a process."""
    rules = rules_in(reading)
    assert len(rules) > 20
    assert all(rule.by_reading for rule in rules)


@pytest.mark.parametrize("text", ["abc", "-1", "1.5", "0x1", "+1", "٣", "9" * 10, "1 2", "$RANK"])
@pytest.mark.parametrize("name", ["LOCAL_RANK", "LOCAL_WORLD_SIZE"])
def test_bad_rank_variable(name: str, text: str) -> None:
    """A rank or size of no whole number is an error that names the variable."""
    topology = replace(ONE_NODE, local_rank=None, processes_per_node=None)
    (finding,) = found(ask({**MASTER, name: text}, topology=topology), "MC029")
    assert finding.severity is Severity.ERROR
    assert finding.origin is not None
    assert finding.origin.spot == name
    assert name in finding.message
