"""How a raw value is shown to a person: no secret, no control character, no wall of text.

Every value that came from outside passes through here on its way into a message, a table or a JSON answer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import islice

RAW_LIMIT = 200
"""Characters of a text in ``raw`` of the JSON answer, before it is shortened in the middle."""

MESSAGE_LIMIT = 80
"""Characters of a value inside a sentence."""

PASTED_LIMIT = 1000
"""Characters of a value that is shown to be pasted."""

_NAMED_SECRET = r"""(?isx)
    (?P<name>(?:pass(?:word|wd|phrase)?|pwd|secret|token|(?:api|access|auth|secret|private)[_-]?key)[\\"']*\s*[=:]\s*)
    (?:(?P<quote>\\"|["'])(?:(?!(?P=quote))(?:\\.|[^\\]))*   # quoted, the quotes perhaps escaped
    |[^\s"'&,;}]+)                                        # or bare, up to what ends a value in a URL or in JSON
"""


_AT = r"(?:[@＠﹫]|%(?:25)*40|&[#](?:64|[xX]40);|&commat;|\\+(?:u0040|x40))"
_COLON = r"(?:[:：﹕]|%(?:25)*3[aA]|&[#](?:58|[xX]3[aA]);|&colon;|\\+(?:u003[aA]|x3[aA]))"
_SLASHES = r"(?:[/／]|%(?:25)*2[fF]){2}"
_LAST_AT = rf"(?s:.*)(?P<at>{_AT})"
_SCHEME = rf"[\s\"'`(\[{{<]*[A-Za-z][A-Za-z0-9+.-]*{_COLON}{_SLASHES}"
# A port, a variable or placeholder for one, and IPv6 are no passwords.
_CUT_PASSWORD = rf"""(?x)({_COLON}{_SLASHES})(?!\[?[0-9A-Fa-f]{{0,4}}(?::[0-9A-Fa-f]{{0,4}}){{2}})
    ([^\s/@:"'%：]*{_COLON})
    (?!(?:[0-9]{{0,5}}|\$[{{(]?[A-Z_][A-Z0-9_]*[}})]?|<[^<>]*>|{{{{[^{{}}]*}}}})(?:[^\w%*.!$&+~^-]|$))(?s:.+)"""
_OPTION_SECRET = r"""(?ix)(?P<name>(?<![\w-])(?:-u|--(?:proxy-)?user)(?:=|\s*)["']?[^\s:"']*:
    |(?<![\w-])--?(?:pass(?:word|wd|phrase)?|[\w-]*token|secret)\s+
    |\b(?:bearer|basic)\s+)[^\s"')`]+"""
_HARMLESS = (
    r"(?:(?:http|etcd)://)?[A-Za-z0-9._-]*(?::[0-9]{1,5})?(?:/metadata)?"
    r"|(?!(?i:.*\b(?:bearer|basic)\b))[A-Za-z0-9.]+(?: [A-Za-z0-9.]+)*"
)
"""What has no room for a secret: names, endpoints with a port, plain words. Most values are such, at every start."""
_USUAL_URL = r"(?P<head>(?:https?|redis)://[A-Za-z0-9._-]*:)[A-Za-z0-9.*_~-]*(?P<tail>@[A-Za-z0-9.-]+(?::[0-9]{1,5})?(?:/metadata)?)"
"""A URL with a password in which no sign has two meanings, so that one match tells."""


def masked(text: str) -> str:
    """The text with every password replaced by ``***``.

    A password may itself hold ``@``, ``:``, ``/``, ``://`` or blanks, so everything from the first colon, that of a
    leading scheme apart, to the last ``@`` is hidden: where it is unclear what is secret, too much is hidden rather
    than too little. These signs count in every spelling: percent-encoded, as an entity, an escape, or full-width. What
    follows the first colon of a URL and is no port is a password that was cut before its ``@``. The values of names
    such as ``password`` and ``api_key``, and what ``curl -u`` and its like are given, are hidden too.
    """
    if re.fullmatch(_HARMLESS, text):
        return text
    usual = re.fullmatch(_USUAL_URL, text) if "@" in text else None
    if usual:
        return f"{usual['head']}***{usual['tail']}"
    hidden = _userinfo_masked(text)
    return re.sub(_NAMED_SECRET, _without_value, re.sub(_OPTION_SECRET, r"\g<name>***", hidden))


def masked_prose(text: str) -> str:
    """A line of a log with every password replaced by ``***``, word by word, so that what it says is left.

    Only for the log of a client whose addresses were read here: these hold no blanks, so no password does.
    """
    hidden = " ".join(map(_userinfo_masked, text.split(" ")))
    return re.sub(_NAMED_SECRET, _without_value, re.sub(_OPTION_SECRET, r"\g<name>***", hidden))


def _without_value(named: re.Match[str]) -> str:
    return f"{named['name']}{named['quote'] or ''}***"


def _userinfo_masked(text: str) -> str:
    found = re.match(_LAST_AT, text)
    if found is None:
        return _cut_masked(text)
    at = found.start("at")
    scheme = re.match(_SCHEME, text[:at])
    start = scheme.end() if scheme else 0
    colon = re.compile(_COLON).search(text, start, at)
    if not scheme and not colon:
        return text[:at] + _cut_masked(text[at:])
    kept = colon.end() if colon and not re.search(_AT_SIGN, text[start : colon.start()]) else start
    return f"{text[:kept]}***{_cut_masked(text[at:])}"


def _cut_masked(text: str) -> str:
    return re.sub(_CUT_PASSWORD, r"\1\2***", text)


_AT_SIGN = "[@＠﹫]"
"""An ``@`` in a user's name means that the secret began before it; an encoded one is a part of the name."""


def has_secret(text: str) -> bool:
    """Whether :func:`masked` would hide a part of the text."""
    return masked(text) != text


def escaped(text: str) -> str:
    """The text with control, format and unpaired surrogate characters written as escapes, such as ``\\x1b``."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def shortened(text: str, limit: int) -> str:
    """At most ``limit`` characters, 1 or more: a longer text loses its middle."""
    if len(text) <= limit:
        return text
    note = f"…({len(text):,} characters)…"
    room = limit - len(note)
    if room < 3:
        return text[: limit - 1] + "…"
    return text[: room - room // 3] + note + text[-(room // 3) :]


def shown(value: object, limit: int = MESSAGE_LIMIT) -> str:
    """A raw value inside a sentence: masked, then escaped, then shortened. Text stands without quotes."""
    return shortened(escaped(masked(value if isinstance(value, str) else _as_json(value))), limit)


def shown_word(word: str, limit: int = MESSAGE_LIMIT) -> str:
    """A word of the command line inside a sentence; a blank one, which an unset variable leaves, in quotes."""
    return shown(word, limit) if word.strip() else repr(shown(word, limit))


def shown_part(part: str, whole: str, limit: int = MESSAGE_LIMIT) -> str:
    """A part of a text inside a sentence: ``***`` where it may belong to a password, which it cannot tell by itself."""
    return shown(part, limit) if part in masked(whole) else "***"


def raw_in_json(value: object) -> object:
    """A raw value as the JSON answer holds it: its JSON type is kept, text is masked and shortened.

    A list or an object is wrong wherever it stands; it is given as the text that it was written as. So is a number
    that JSON has no form for, and one too long to be read back by everybody.
    """
    if isinstance(value, str):
        return shortened(masked(value).encode("utf-8", "backslashreplace").decode("utf-8"), RAW_LIMIT)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, float, Decimal)):
        number = _json_number(value)
        return shortened(_as_json(value), RAW_LIMIT) if number is None else number
    return raw_in_json(_as_json(value))


def _json_number(value: float | Decimal) -> int | float | None:
    """The number that a JSON reader makes of it, None where JSON readers differ: beyond 63 bits, NaN, infinity."""
    if isinstance(value, int):
        return value if abs(value) < 2**63 else None
    finite = value.is_finite() if isinstance(value, Decimal) else math.isfinite(value)
    if not finite or not math.isfinite(float(value)):
        return None
    # Beyond 2**63 no remainder is asked for: Decimal refuses where it has not enough digits for it.
    return float(value) if isinstance(value, float) or abs(value) >= 2**63 or value % 1 else int(value)


def number_text(value: int) -> str:
    """The decimal digits of a number; a number too long to be written out is described."""
    try:
        return str(value)
    except ValueError:
        return f"a number of about {int(value.bit_length() * 0.30103):,} digits"


def plain_text(value: object) -> str:
    """``str`` of any value; what cannot be written out, since it holds a number too long for that, is described."""
    try:
        return number_text(value) if isinstance(value, int) else str(value)
    except ValueError:
        return f"a Python {type(value).__name__} that is too long to be written out"


def _as_json(value: object, depth: int = 3) -> str:
    """JSON-like text of any value, for showing only: bounded in depth and length, and masked before it is cut."""
    try:
        return _spelt(value, depth)
    except Exception:  # noqa: BLE001 - what an object of another library raises is known to that library alone
        return f"a Python {type(value).__name__} that cannot be written out"


def _spelt(value: object, depth: int) -> str:
    if isinstance(value, str):
        return f'"{masked(value)[: 4 * RAW_LIMIT]}"'
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):
        return number_text(value)
    if isinstance(value, Mapping) and depth:
        parts = (f"{_as_json(plain_text(key))}: {_as_json(item, depth - 1)}" for key, item in islice(value.items(), 20))
        return "{" + ", ".join(parts) + "}"
    if isinstance(value, Sequence) and depth:
        return "[" + ", ".join(_as_json(item, depth - 1) for item in value[:20]) + "]"
    return "…" if isinstance(value, (Mapping, Sequence)) else plain_text(value)
