"""What a pasted script sets to something that only a run of it tells: it is left out of what is read, and told."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from mooncake_config.display import shown
from mooncake_config.findings import Fault, Malformed
from mooncake_config.init_kwargs import FLAG as INIT_KWARGS_FLAG
from mooncake_config.init_kwargs import InitKwargs, JsonObject, Reading, decode_json, read_init_kwargs
from mooncake_config.provenance import Origin, Source
from mooncake_config.settings import BY_VARIABLE
from mooncake_config.shell_words import NAME
from mooncake_config.topology import RANK_VARIABLES

_TOKEN = "72634019587"
"""What begins the numbers that stand for expressions: no setting holds it."""
_MOST = 1000
"""Expressions that are told apart: as many as there are numbers of three digits."""


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
        return self._with_each(text, lambda expression: expression)

    def _with_each(self, text: str, put: Callable[[str], str]) -> str:
        numbers = {f"{_TOKEN}{number:03}": expression for number, expression in enumerate(self._expressions)}
        return re.sub(f"{_TOKEN}[0-9]{{3}}", lambda token: put(numbers.get(token[0], token[0])), text)

    def decides_form(self, text: str) -> bool:
        """Whether only a run tells the whole: the name of a file, or all of the JSON."""
        if not self.decides(text):
            return False
        try:
            return text.startswith("@") or not isinstance(decode_json(self.tokened(text)), JsonObject)
        except Malformed:
            return False

    def restored_fault(self, fault: Fault) -> Fault:
        """A fault of a text with numbers, as one of the text itself, in which places are others."""
        message = re.sub(r" at column [0-9]+(?: of line [0-9]+)?", "", fault.message)
        return replace(fault, message=self._with_each(message, shown), fix=self._with_each(fault.fix, shown))

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
        read = [name for name in unknown if name in BY_VARIABLE or name in RANK_VARIABLES]
        fields = {name: (BY_VARIABLE[name].name,) if name in BY_VARIABLE else () for name in read}
        return tuple(
            self.fault(name, unknown[name], fields[name], Origin(Source.ENV, spots.get(name, name))) for name in read
        )

    def fault(self, what: str, text: str, fields: tuple[str, ...], origin: Origin) -> Fault:
        """The fault that tells what is not known, and how it could be."""
        expression = next(expression for expression in self._expressions if expression in text)
        gives = f"what {shown(expression)} gives when the script runs, so it is not checked here."
        message = f"{what} is {gives}" if text == expression else f"{what} is {shown(text)}, with {gives}"
        if expression.strip("${}") == what:
            message = f"what {what} holds is known when the script runs, so it is not checked here."
            return Fault(
                "known-at-run-time", fields, origin, message, "to have it checked, write there what it will be."
            )
        variable = re.fullmatch(rf"\$\{{?({NAME})\}}?", expression)
        fix = f"write in place of {shown(expression)} what it will give"
        if variable:
            fix = f"set {variable[1]} in the script, or write in its place what it will be"
        return Fault("known-at-run-time", fields, origin, message, f"to have it checked, {fix}.")
