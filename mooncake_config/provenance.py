"""Where a value came from, and which claims it beat."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from mooncake_config.display import shown


class Source(str, Enum):
    """A kind of place that can make a claim."""

    CLI = "cli"
    ENV = "env"
    RAY = "ray"
    DEFAULT = "default"


@dataclass(frozen=True)
class Origin:
    """One exact spot in a source, worded for the person who must edit it: ``MOONCAKE_MASTER``, not a class name."""

    source: Source
    spot: str

    @property
    def is_written(self) -> bool:
        """Whether a person wrote the value down: in the init kwargs, or in a variable."""
        return self.source in (Source.CLI, Source.ENV)

    def __str__(self) -> str:
        return self.spot


class Claim(NamedTuple):
    """A raw value, as it was written, and its origin."""

    raw: object
    origin: Origin

    @property
    def is_empty(self) -> bool:
        """Whether this is no claim at all: null or blank text. Zero is a claim."""
        raw = self.raw
        return raw is None or (isinstance(raw, str) and not raw.strip())

    def __repr__(self) -> str:
        """The raw value as it is shown to people, since a repr ends in logs: without a password, and not endless."""
        return f"Claim(raw={shown(self.raw)!r}, origin={self.origin!r})"


class Ledger(NamedTuple):
    """Every claim on every field, strongest first, and the empty ones that count as none."""

    claims: Mapping[str, tuple[Claim, ...]] = {}
    empty: tuple[tuple[str, Claim], ...] = ()

    def winner(self, name: str) -> Claim | None:
        """The claim that holds for a field, or None where nobody made one."""
        claims = self.claims.get(name)
        return claims[0] if claims else None

    def overridden(self, name: str) -> tuple[Claim, ...]:
        """The claims that lost, strongest first."""
        return self.claims.get(name, ())[1:]

    def origin(self, name: str) -> Origin | None:
        """The origin of the claim that holds."""
        winner = self.winner(name)
        return winner.origin if winner else None


def stack(layers: Iterable[Mapping[str, Claim]]) -> Ledger:
    """The ledger of several layers of claims, given strongest first. No claim is lost."""
    claims: dict[str, tuple[Claim, ...]] = {}
    empty: list[tuple[str, Claim]] = []
    default = Source.DEFAULT
    for layer in layers:
        for name, claim in layer.items():
            if claim.origin.source is not default and claim.is_empty:
                empty.append((name, claim))
            elif name in claims:
                claims[name] += (claim,)
            else:
                claims[name] = (claim,)
    return Ledger(claims, tuple(empty))
