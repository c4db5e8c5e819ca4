"""What a pasted script sets to something that only a run of it tells: it is left out of what is read, and told."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from mooncake_config.display import shown
from mooncake_config.findings import Fault, Malformed
from mooncake_config.init_kwargs import FLAG as INIT_KWARGS_FLAG
from mooncake_config.init_kwargs import InitKwargs, Reading, decode_json, read_init_kwargs
from mooncake_config.provenance import Origin, Source
from mooncake_config.settings import FIELDS

_FIELDS_OF = {spec.wiring.variable: (spec.name,) for spec in FIELDS if spec.wiring.variable}
_RANKS = ("LOCAL_RANK", "LOCAL_WORLD_SIZE")


class RunTime:
    """The expressions in a pasted command that only a run of its script tells, such as ``$(hostname -i)``."""

    def __init__(self, expressions: Collection[str]) -> None:
        self._expressions = sorted(expressions, key=len, reverse=True)

    def decides(self, text: object) -> bool:
        """Whether a text holds such an expression."""
        return isinstance(text, str) and any(expression in text for expression in self._expressions)

    def decides_form(self, text: str) -> bool:
        """Whether a text holds such an expression and is JSON only with what it gives."""
        if not self.decides(text) or _is_json(text):
            return False
        for expression in self._expressions:
            text = text.replace(expression, "1")
        return text.startswith("@") or _is_json(text)

    def init_kwargs(self, text: str) -> InitKwargs:
        """The init kwargs that a text holds, less what a run decides; the text itself where that is nothing."""
        origin = Origin(Source.CLI, INIT_KWARGS_FLAG)
        if not self.decides(text):
            return text
        if self.decides_form(text):
            return Reading({}, (self.fault(INIT_KWARGS_FLAG, text, (), origin),))
        reading = read_init_kwargs(text)
        unknown = {name: str(claim.raw) for name, claim in reading.claims.items() if self.decides(claim.raw)}
        known = {name: claim for name, claim in reading.claims.items() if name not in unknown}
        faults = (self.fault(name, text, (name,), origin) for name, text in unknown.items())
        return Reading(known, (*reading.faults, *faults))

    def parted(self, texts: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
        """The texts that are known, and those that a run decides, each by its name."""
        unknown = {name: text for name, text in texts.items() if self.decides(text)}
        return {name: text for name, text in texts.items() if name not in unknown}, unknown

    def faults_of_flags(self, unknown: Mapping[str, str]) -> tuple[Fault, ...]:
        """A fault for each of such flags."""
        return tuple(self.fault(flag, text, (), Origin(Source.CLI, flag)) for flag, text in unknown.items())

    def faults_of_variables(self, unknown: Mapping[str, str], spots: Mapping[str, str]) -> tuple[Fault, ...]:
        """A fault for each of such variables that would be read as a value."""
        read = ((name, text) for name, text in unknown.items() if name in _FIELDS_OF or name in _RANKS)
        return tuple(
            self.fault(name, text, _FIELDS_OF.get(name, ()), Origin(Source.ENV, spots.get(name, name)))
            for name, text in read
        )

    def fault(self, what: str, text: str, fields: tuple[str, ...], origin: Origin) -> Fault:
        """The fault that tells what is not known, and how it could be."""
        expression = next(expression for expression in self._expressions if expression in text)
        gives = f"what {shown(expression)} gives when the script runs, so it is not checked here."
        message = f"{what} is {gives}" if text == expression else f"{what} is {shown(text)}, with {gives}"
        variable = re.fullmatch(r"\$\{?([A-Za-z_]\w*)\}?", expression, re.ASCII)
        fix = f"write what {shown(expression)} will give in its place"
        if variable:
            fix = f"set {variable[1]} in this shell to what it will be there"
        return Fault("known-at-run-time", fields, origin, message, f"to have it checked, {fix}.")


def _is_json(text: str) -> bool:
    try:
        decode_json(text)
    except Malformed:
        return False
    return True
