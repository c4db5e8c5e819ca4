"""An answer of ``explain`` or ``check`` that was saved as JSON, and how it differs from another."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ValidationError

from mooncake_config.display import masked, raw_in_json, shown, shown_word
from mooncake_config.init_kwargs import BYTES_LIMIT, STDIN_SECONDS, read_descriptor


def _text(text: str) -> str:
    return masked(text).encode("utf-8", "backslashreplace").decode("utf-8")


def _fact(value: int | str | None) -> object:
    return _text(value) if isinstance(value, str) else raw_in_json(value)


# Anybody may have written a saved answer, so what is read is made as harmless as what this library writes.
_Text = Annotated[str, AfterValidator(_text)]
_Fact = Annotated[bool | int | str | None, AfterValidator(_fact)]


class SavedField(BaseModel):
    """What a saved answer says of one field."""

    value: _Fact
    raw: Annotated[Any, AfterValidator(raw_in_json)]
    source: _Text | None
    origin: _Text | None


class SavedFinding(BaseModel):
    """What a saved answer says of one finding, as far as two answers are compared."""

    code: _Text
    rule: _Text
    severity: _Text
    fields: list[_Text]
    origin: _Text | None

    @property
    def identity(self) -> tuple[object, ...]:
        """What makes two findings the same one: rule, place and fields. Messages may hold another node's addresses."""
        return (self.code, self.origin, *self.fields)


class Answer(BaseModel):
    """The parts of the JSON answer that two processes, nodes or runs are compared by."""

    version: Literal[1]
    backend: _Text
    process: dict[_Text, _Fact]
    topology: dict[_Text, _Fact]
    fields: dict[_Text, SavedField]
    replica_num: _Fact
    findings: list[SavedFinding]
    fingerprint: _Text | None

    @property
    def circumstances(self) -> dict[str, bool | int | str | None]:
        """All that is no field and no finding, by name."""
        return {"backend": self.backend, **self.process, **self.topology, "replica_num": self.replica_num}


class Unreadable(Exception):
    """A saved answer that cannot be read. The text says why and is fit to be shown."""


def read_answer(path: str, *, seconds: float = STDIN_SECONDS) -> Answer:
    """The answer that a file, a pipe or (``-``) standard input holds.

    Args:
        seconds: how long it may take to end.

    Raises:
        Unreadable: there is none, it does not end in time, or it is no answer of ``explain`` or ``check``.
    """
    name = "standard input" if path == "-" else shown_word(path)
    try:
        data = _read(path, seconds)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise Unreadable(f"{name} cannot be read: {shown(reason)}") from None
    if data is None:
        raise Unreadable(f"{name} did not end within {seconds:g} s")
    try:
        return Answer.model_validate_json(data[: BYTES_LIMIT + 1])
    except ValidationError as refusal:
        other = _other_answer(data)
        if other:
            raise Unreadable(f"{name} holds {other}") from None
        first = refusal.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        reason = shown(f"{place}: {first['msg']}" if place else first["msg"], 200)
        raise Unreadable(
            f"{name} does not hold what `explain --format json` or `check --format json` prints ({reason})"
        ) from None


class _OtherAnswer(BaseModel):
    """What tells the answers of other commands apart."""

    nodes: dict[str, Any] | list[Any] | None = None
    equal: bool | None = None


def _other_answer(data: bytes) -> str | None:
    """In words what another command of ours answered, and what is wanted instead; None where it is none of these."""
    try:
        found = _OtherAnswer.model_validate_json(data)
    except ValidationError:
        return None
    if isinstance(found.nodes, dict):
        return 'an answer of `check --cluster`; take that of one node, a value of its "nodes"'
    if found.nodes is not None:
        return "an answer of `plan`; take one of `explain --format json`"
    return None if found.equal is None else "an answer of `explain --diff`; take one of `explain --format json`"


def _read(path: str, seconds: float) -> bytes | None:
    if path == "-":
        if sys.stdin is None:
            raise ValueError("this process has none")
        return read_descriptor(sys.stdin.fileno(), seconds)
    # Opening a named pipe would wait for its writer without end.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        return read_descriptor(descriptor, seconds)
    finally:
        os.close(descriptor)


@dataclass(frozen=True)
class Comparison:
    """Two answers, and what they differ in.

    Attributes:
        here: the answer of this run.
        there: the saved one.
    """

    here: Answer
    there: Answer

    def circumstances(self) -> Iterator[tuple[str, object, object]]:
        """Name and both values of what differs in process, topology, backend and replicas."""
        here, there = self.here.circumstances, self.there.circumstances
        for name in dict.fromkeys((*here, *there)):
            if here.get(name) != there.get(name):
                yield name, here.get(name), there.get(name)

    def fields(self) -> Iterator[tuple[str, SavedField | None, SavedField | None]]:
        """Name and both sides of the fields that differ in their value or in where it was set."""
        for name in dict.fromkeys((*self.here.fields, *self.there.fields)):
            here, there = self.here.fields.get(name), self.there.fields.get(name)
            if here != there:
                yield name, here, there

    def findings(self) -> tuple[list[SavedFinding], list[SavedFinding]]:
        """The findings that only this answer has, and those that only the saved one has."""
        here, there = ({one.identity for one in side.findings} for side in (self.here, self.there))
        return (
            [one for one in self.here.findings if one.identity not in there],
            [one for one in self.there.findings if one.identity not in here],
        )

    @property
    def equal(self) -> bool:
        """Whether nothing differs."""
        return not (any(self.circumstances()) or any(self.fields()) or any(self.findings()))
