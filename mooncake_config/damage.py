"""Signs that a text was damaged on its way here: by a shell, a template, an env file or a hurried hand.

A value parser asks here only after its own grammar has refused the text, to tell what probably happened.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cache

from mooncake_config.display import shown, shown_part
from mooncake_config.findings import Malformed

TEXT_LIMIT = 4096
"""Longest text of a value, in characters. Longer is an accident, whatever it holds."""

_UNEXPANDED = (
    r"\$\{[^}]*\}?|\$\([^)]*\)?|\$[A-Za-z_][A-Za-z0-9_]*|\{\{[^{}]*\}\}|\{%[^{}]*%\}|`[^`]*`?|%[A-Za-z_][A-Za-z0-9_]*%"
)
_PLACEHOLDER = r"<[^<>]*>|&lt;[^&]*&gt;"
NOTHING = frozenset(("none", "null", "nil", "undefined", "???"))
"""Texts, in lower case, that programs write for a value that is not there; the last one is OmegaConf's."""

_QUOTES = "\"'“”‘’„«»`"


def whole(pattern: str) -> str:
    """A pattern for a text as a whole that means the same in Python and in ECMA-262, so also in a JSON Schema.

    Python's ``$`` alone would also match before a last line break.
    """
    return rf"^(?:{pattern})$(?!\n)"


@cache
def matcher(pattern: str) -> Callable[[str], re.Match[str] | None]:
    """The matching function of a pattern, compiled when it is first asked for: few starts need each of them."""
    return re.compile(pattern).match


def text_of(raw: object, example: str) -> str:
    """The raw value as text without surrounding blanks.

    Raises:
        Malformed: it is no text, or one of unreasonable length.
    """
    if not isinstance(raw, str):
        raise Malformed(
            "wrong-type",
            f"{shown(raw)} is {kind_of(raw)}, and this field takes text.",
            f'write one text in double quotes, such as "{example}".',
        )
    if len(raw) > TEXT_LIMIT:
        raise Malformed(
            "text-too-long",
            f"a text of {len(raw):,} characters ({shown(raw)}); no value is longer than {TEXT_LIMIT:,}.",
            f"write the value alone, such as {example}.",
        )
    return raw.strip()


def kind_of(raw: object) -> str:
    """The JSON type of a value, with its article."""
    if raw is None:
        return "null"
    return next((words for kind, words in _KINDS if isinstance(raw, kind)), f"a Python {type(raw).__name__}")


_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "a boolean"),
    ((int, float, Decimal), "a number"),
    (str, "text"),
    ((list, tuple), "a list"),
    (Mapping, "an object"),
)


def refuse_damage(text: str, example: str, parse: Callable[[str], object]) -> None:
    """Raises :class:`Malformed` when the text shows a known kind of damage; else does nothing.

    Args:
        parse: the parser that asks. What is left without the damage is offered only where it is taken.
    """
    for look in (_characters, _nothing, _unexpanded, _placeholder):
        look(text, example)
    for peel in (_quotes, _comment):
        peel(text, example, parse)


def _characters(text: str, example: str) -> None:
    odd = next((c for c in text if not c.isprintable()), None)
    if odd is None:
        return
    if "\udc80" <= odd <= "\udcff":
        what = f"the byte 0x{ord(odd) & 0xFF:02x}, which is not UTF-8"
    elif "\ud800" <= odd <= "\udfff":
        what = f"half a character (the surrogate U+{ord(odd):04X})"
    else:
        what = f"the invisible character {shown(odd)} (U+{ord(odd):04X})"
    raise Malformed(
        "control-character",
        f"{shown(text)} holds {what}.",
        f"write the value anew by hand, such as {example}; copying it brings the character along.",
    )


def _nothing(text: str, example: str) -> None:
    if text.lower() in NOTHING:
        raise Malformed(
            "text-of-nothing",
            f"{text} is what a program writes for a value that it does not have.",
            f"give the value, such as {example}, or leave it out.",
        )


def _unexpanded(text: str, example: str) -> None:
    found = re.search(_UNEXPANDED, text)
    if found is None:
        return
    part = found.group()
    if part.startswith("$("):
        cause = "Kubernetes expands $(NAME) only for variables defined above it in the same container, a shell runs it"
    elif part.startswith("`"):
        cause = "single quotes or a file keep a shell from running the command"
    elif part.startswith(("{{", "{%", "%")):
        cause = "the template was never rendered"
    else:
        cause = "single quotes, a JSON file or an env file keep a shell from expanding it"
    fix = f"put the value itself there, such as {example}, or use double quotes so that the shell expands it."
    if shown_part(part, text) == "***":
        fix = (
            "put the value itself there; where the sign belongs to the password, write it as %XX: %24 for $, %25 for %."
        )
    raise Malformed("unexpanded-variable", f"{shown(text)} still holds {shown_part(part, text)}: {cause}.", fix)


def _placeholder(text: str, example: str) -> None:
    found = re.search(_PLACEHOLDER, text)
    if found:
        raise Malformed(
            "placeholder",
            f"{shown(text)} still holds the placeholder {shown_part(found.group(), text)} of a guide.",
            f"replace it, angle brackets included, with your own value, such as {example}.",
        )


def _left(bare: str, text: str, example: str, parse: Callable[[str], object]) -> str:
    """What is left of a text, with a colon before it where it is a value, else an example."""
    try:
        parse(bare)
    except Malformed:
        return f", for example {example}"
    return f": {shown_part(bare, text)}" if bare else f", for example {example}"


def _quotes(text: str, example: str, parse: Callable[[str], object]) -> None:
    if text and (text[0] in _QUOTES or text[-1] in _QUOTES):
        bare = text.strip(_QUOTES)
        raise Malformed(
            "stray-quotes",
            f"{shown(text)} has quotes in it: an env file, a Dockerfile or one pair of quotes too many kept them.",
            f"write the value without them{_left(bare, text, example, parse)}.",
        )


def _comment(text: str, example: str, parse: Callable[[str], object]) -> None:
    value, mark, _ = text.partition("#")
    if mark and value != value.rstrip():
        bare = value.strip()
        raise Malformed(
            "kept-comment",
            f"{shown(text)} holds a comment as part of the value: env files of Docker and Kubernetes keep it.",
            f"move the comment to a line of its own and leave the value{_left(bare, text, example, parse)}.",
        )
