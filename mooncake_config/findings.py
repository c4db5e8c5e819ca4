"""What an examination found, and the exceptions that carry it.

The exception tree::

    MooncakeConfigError                 everything that this library raises about the outside world
    ├── ConfigError                     the configuration is refused; holds every finding at once
    └── StoreError                      (mooncake_config.store) an operation on an open store failed

Wrong use of the library itself (an unknown role, a rule that does not exist) is a ``TypeError`` or ``ValueError``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from mooncake_config.display import RAW_LIMIT, shown
from mooncake_config.provenance import Origin, Source


class Severity(str, Enum):
    """How much a finding matters. An error refuses the configuration."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """0 for the worst."""
        return _RANKS[self]


_RANKS = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}


@dataclass(frozen=True)
class Finding:
    """What one rule saw: a fact, the place to edit, the way out.

    Where several nodes were asked, ``nodes`` are all that it is about, and ``node`` names them in few words.
    """

    code: str
    rule: str
    severity: Severity
    fields: tuple[str, ...]
    origin: Origin | None
    message: str
    fix: str
    node: str | None = None
    nodes: tuple[str, ...] = ()

    @property
    def source(self) -> Source | None:
        """The kind of place to edit."""
        return self.origin.source if self.origin else None

    def __str__(self) -> str:
        about = f" {', '.join(self.fields)}" if self.fields else ""
        place = f" From {shown(self.origin.spot, RAW_LIMIT)}." if self.origin else ""
        node = "node " if len(self.nodes) < 2 else ""
        where = f" On {node}{shown(self.node, RAW_LIMIT)}." if self.node else ""
        return f"{self.code} {self.severity.value}{about}: {self.message}{place}{where} Fix: {self.fix}"


@dataclass(frozen=True)
class Fault:
    """Something that could not be read, found while reading: the rule named ``offence`` reports it."""

    offence: str
    fields: tuple[str, ...]
    origin: Origin
    message: str
    fix: str


class Malformed(ValueError):
    """A raw value of which no setting can be made. ``offence`` is the name of the rule that reports it."""

    def __init__(self, offence: str, message: str, fix: str) -> None:
        super().__init__(offence, message, fix)
        self.offence = offence
        self.message = message
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.message} Fix: {self.fix}"


class MooncakeConfigError(Exception):
    """The root of this library's exceptions."""


class ConfigError(MooncakeConfigError):
    """The configuration is refused. ``findings`` holds all that was found in one run, worst first."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(findings)
        super().__init__(self.findings)

    def __str__(self) -> str:
        errors = sum(finding.severity is Severity.ERROR for finding in self.findings)
        head = f"{errors} error{'s' if errors != 1 else ''} in the Mooncake Store configuration:"
        return "\n".join([head, *(f"  {finding}" for finding in self.findings)])
