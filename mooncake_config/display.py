"""How a raw value is shown to a person: no secret, no control character, no wall of text.

Every value that came from outside passes through here on its way into a message, a table or a JSON answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

RAW_LIMIT = 200
"""Characters of a text in ``raw`` of the JSON answer, before it is shortened in the middle."""

MESSAGE_LIMIT = 80
"""Characters of a value inside a sentence."""

_NAMED_SECRET = re.compile(
    r"(?P<name>(?:pass(?:word|wd|phrase)?|pwd|secret|token|(?:api|access|auth)_?key)[\"']?\s*[=:]\s*[\"']?)"
    r"(?P<secret>[^\s\"'&,;}]+)",
    re.IGNORECASE,
)


def masked(text: str) -> str:
    """The text with every password replaced by ``***``.

    A password may itself hold ``@``, ``:``, ``/`` or ``://``, so everything from the first colon behind the scheme to
    the last ``@`` is hidden: where it is unclear what is secret, too much is hidden rather than too little.
    """
    hidden = _NAMED_SECRET.sub(r"\g<name>***", text) if "=" in text or ":" in text else text
    return _userinfo_masked(hidden) if "@" in hidden else hidden


def _userinfo_masked(text: str) -> str:
    at = text.rfind("@")
    scheme = text.find("://", 0, at)
    if scheme < 0:
        head, userinfo = "", text[:at]
    else:
        head, userinfo = text[: scheme + 3], text[scheme + 3 : at]
        if "@" in head:
            head = _userinfo_masked(head)
    user, colon, _ = userinfo.partition(":")
    if colon:
        return f"{head}{user}:***{text[at:]}"
    return f"{head}***{text[at:]}" if scheme >= 0 else text


def has_secret(text: str) -> bool:
    """Whether :func:`masked` would hide a part of the text."""
    return masked(text) != text


def escaped(text: str) -> str:
    """The text with control, format and unpaired surrogate characters written as escapes, such as ``\\x1b``."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def shortened(text: str, limit: int) -> str:
    """At most ``limit`` characters: a longer text loses its middle."""
    if len(text) <= limit:
        return text
    note = f"…({len(text):,} characters)…"
    room = max(limit - len(note), 2)
    return text[: room - room // 3] + note + text[-(room // 3) :]


def shown(value: object, limit: int = MESSAGE_LIMIT) -> str:
    """A raw value inside a sentence: masked, then escaped, then shortened. Text stands without quotes."""
    return shortened(escaped(masked(value if isinstance(value, str) else _as_json(value))), limit)


def raw_in_json(value: object) -> object:
    """A raw value as the JSON answer holds it: its JSON type is kept, text is masked and shortened.

    A list or an object is wrong wherever it stands; it is given as the text that it was written as.
    """
    if isinstance(value, str):
        return shortened(masked(value).encode("utf-8", "backslashreplace").decode("utf-8"), RAW_LIMIT)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return value if abs(value) < 2**63 else shortened(number_text(value), RAW_LIMIT)
    if isinstance(value, float):
        return value
    return raw_in_json(_as_json(value))


def number_text(value: int) -> str:
    """The decimal digits of a number; a number too long to be written out is described."""
    try:
        return str(value)
    except ValueError:
        return f"a number of about {int(value.bit_length() * 0.30103)} digits"


def _as_json(value: object, depth: int = 3) -> str:
    """JSON-like text of any value, for showing only: bounded in depth and length."""
    if isinstance(value, str):
        return f'"{value[: 4 * RAW_LIMIT]}"'
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):
        return number_text(value)
    if isinstance(value, Mapping) and depth:
        parts = (f'"{key}": {_as_json(item, depth - 1)}' for key, item in list(value.items())[:20])
        return "{" + ", ".join(parts) + "}"
    if isinstance(value, Sequence) and depth:
        return "[" + ", ".join(_as_json(item, depth - 1) for item in value[:20]) + "]"
    return "…" if isinstance(value, (Mapping, Sequence)) else str(value)
