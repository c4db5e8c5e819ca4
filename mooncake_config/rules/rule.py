"""Rule and Problem: a check with a code and a page, and what it yields."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import ModuleType
from typing import Generic, NamedTuple, TypeVar

from mooncake_config.findings import Severity
from mooncake_config.provenance import Origin

Subject_contra = TypeVar("Subject_contra", contravariant=True)


class Problem(NamedTuple):
    """What a rule saw. ``examine`` adds the rule's code, the severity, and the origin of the first field.

    Args:
        severity: where this problem weighs otherwise than its rule says.
        origin: where the place to edit is not the origin of the first field.
        node: the nodes that it is about, in few words, where several were asked; ``nodes`` are all of them.
    """

    fields: tuple[str, ...]
    message: str
    fix: str
    severity: Severity | None = None
    origin: Origin | None = None
    node: str | None = None
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class Rule(Generic[Subject_contra]):
    """A check: code, name, severity, and the page that its docstring is.

    ``protects`` marks a rule whose offence leaves no value to go on with, or kills the process in native code; it
    cannot be ignored. ``about`` names the part of its subject that the rule looks at: where that is empty, the rule is
    not asked. ``by_reading`` marks a rule that looks at nothing: a parser fires it, or ``examine`` itself.
    """

    code: str
    name: str
    severity: Severity
    protects: bool
    page: str
    see: Callable[[Subject_contra], Iterable[Problem]]
    about: str | None = None
    by_reading: bool = False

    @property
    def summary(self) -> str:
        """The first sentence of the page."""
        return self.page.partition("\n")[0]


def rule(
    code: str, severity: Severity, *, protects: bool = False, about: str | None = None
) -> Callable[[Callable[[Subject_contra], Iterable[Problem]]], Rule[Subject_contra]]:
    """Makes a rule of a function: its name, with hyphens, is the rule's name, its docstring the page."""

    def of(see: Callable[[Subject_contra], Iterable[Problem]]) -> Rule[Subject_contra]:
        return Rule(code, _name(see), severity, protects, inspect.cleandoc(see.__doc__ or ""), see, about)

    return of


def reported_by_reading(code: str, severity: Severity = Severity.ERROR) -> Callable[[Callable[[], None]], Rule[object]]:
    """Makes a rule that is fired while reading: the function holds the page, the parser holds the check.

    What could not be read has no value, so such a rule cannot be ignored when it is an error.
    """

    def of(page: Callable[[], None]) -> Rule[object]:
        protects = severity is Severity.ERROR
        text = inspect.cleandoc(page.__doc__ or "")
        return Rule(code, _name(page), severity, protects, text, lambda _: (), by_reading=True)

    return of


def _name(function: Callable[..., object]) -> str:
    return function.__name__.replace("_", "-")


def rules_in(*modules: ModuleType) -> tuple[Rule[object], ...]:
    """The rules of modules, by code."""
    found = (item for module in modules for item in vars(module).values() if isinstance(item, Rule))
    return tuple(sorted(found, key=lambda rule: rule.code))


def by_part(rules: Iterable[Rule[Subject_contra]]) -> dict[str | None, list[Rule[Subject_contra]]]:
    """The rules by the part of their subject that they are about, so that each part is looked at once."""
    grouped: dict[str | None, list[Rule[Subject_contra]]] = {}
    for item in rules:
        grouped.setdefault(item.about, []).append(item)
    return grouped
