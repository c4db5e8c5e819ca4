"""What a pasted script sets to something that only a run of it tells: it is left out of what is read, and told."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace

from mooncake_config.display import shown
from mooncake_config.findings import Fault, Malformed
from mooncake_config.init_kwargs import FLAG as INIT_KWARGS_FLAG
from mooncake_config.init_kwargs import InitKwargs, JsonObject, Reading, decode_json, read_init_kwargs
from mooncake_config.provenance import Origin, Source
from mooncake_config.settings import FIELDS

FIELD_OF = {spec.wiring.variable: (spec.name,) for spec in FIELDS if spec.wiring.variable}
"""The field that each of the seven variables claims, as a fault names it."""
_TOKEN = "72634019587"
"""What begins the numbers that stand for expressions: no setting holds it."""
_MOST = 1000
_RANKS = ("LOCAL_RANK", "LOCAL_WORLD_SIZE")


class RunTime:
    """The expressions in a pasted command that only a run of its script tells, such as ``$(hostname -i)``."""

    def __init__(self, expressions: Collection[str]) -> None:
        self._expressions = sorted(expressions, key=lambda text: (-len(text), text))[:_MOST]

    def decides(self, text: object) -> bool:
        """Whether a text holds such an expression."""
        return isinstance(text, str) and any(expression in text for expression in self._expressions)

    def tokened(self, text: str) -> str:
        """The text with a number of its own in place of each expression, so that JSON is JSON without a run."""
        for number, expression in enumerate(self._expressions):
            text = text.replace(expression, f"{_TOKEN}{number:03}")
        return text

    def restored(self, text: str) -> str:
        """A text with the expressions where their numbers stand."""
        return re.sub(f"{_TOKEN}([0-9]{{3}})", lambda token: self._expressions[int(token[1])], text)

    def decides_form(self, text: str) -> bool:
        """Whether only a run tells the whole: the name of a file, or all of the JSON."""
        if not self.decides(text):
            return False
        try:
            return text.startswith("@") or not isinstance(decode_json(self.tokened(text)), JsonObject)
        except Malformed:
            return False

    def restored_fault(self, fault: Fault) -> Fault:
        """A fault of a text with numbers, as one of the text itself."""
        return replace(fault, message=self.restored(fault.message), fix=self.restored(fault.fix))

    def init_kwargs(self, text: str) -> InitKwargs:
        """The init kwargs that a text holds, less what a run decides; the text itself where that is nothing."""
        origin = Origin(Source.CLI, INIT_KWARGS_FLAG)
        if not self.decides(text):
            return text
        if self.decides_form(text):
            return Reading({}, (self.fault(INIT_KWARGS_FLAG, text, (), origin),))
        reading = read_init_kwargs(self.tokened(text))
        known = {name: claim for name, claim in reading.claims.items() if _TOKEN not in str(claim.raw)}
        unknown = {name: self.restored(str(claim.raw)) for name, claim in reading.claims.items() if name not in known}
        faults = (self.fault(name, raw, (name,), origin) for name, raw in unknown.items())
        return Reading(known, (*map(self.restored_fault, reading.faults), *faults))

    def parted(self, texts: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
        """The texts that are known, and those that a run decides, each by its name."""
        unknown = {name: text for name, text in texts.items() if self.decides(text)}
        return {name: text for name, text in texts.items() if name not in unknown}, unknown

    def faults_of_flags(self, unknown: Mapping[str, str]) -> tuple[Fault, ...]:
        """A fault for each of such flags."""
        return tuple(self.fault(flag, text, (), Origin(Source.CLI, flag)) for flag, text in unknown.items())

    def faults_of_variables(self, unknown: Mapping[str, str], spots: Mapping[str, str]) -> tuple[Fault, ...]:
        """A fault for each of such variables that would be read as a value."""
        read = ((name, text) for name, text in unknown.items() if name in FIELD_OF or name in _RANKS)
        return tuple(
            self.fault(name, text, FIELD_OF.get(name, ()), Origin(Source.ENV, spots.get(name, name)))
            for name, text in read
        )

    def fault(self, what: str, text: str, fields: tuple[str, ...], origin: Origin) -> Fault:
        """The fault that tells what is not known, and how it could be."""
        expression = next(expression for expression in self._expressions if expression in text)
        gives = f"what {shown(expression)} gives when the script runs, so it is not checked here."
        message = f"{what} is {gives}" if text == expression else f"{what} is {shown(text)}, with {gives}"
        if expression.strip("${}") == what:
            message = f"{what} is set to more than one value, and which of them holds is known when the script runs."
            fix = "to have it checked, paste the script with the line alone that will hold."
            return Fault("known-at-run-time", fields, origin, message, fix)
        variable = re.fullmatch(r"\$\{?([A-Za-z_]\w*)\}?", expression, re.ASCII)
        fix = f"write in place of {shown(expression)} what it will give"
        if variable:
            fix = f"set {variable[1]} in the script, or write in its place what it will be"
        return Fault("known-at-run-time", fields, origin, message, f"to have it checked, {fix}.")
