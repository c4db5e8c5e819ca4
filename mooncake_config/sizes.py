"""Sizes: ``"2gb"`` to bytes and back.

Units are powers of 1024, as Mooncake's own parser has them, so ``2gb``, ``2g``, ``2GiB`` and ``2 GB`` are the same
2147483648 bytes. humanfriendly knows the units; a strict ASCII grammar stands in front of it, because on its own it
reads ``2 bananas`` as 2 bytes, and it supplies only the multiplier, because its product is a float.
"""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

import humanfriendly

from mooncake_config.damage import kind_of, refuse_damage, text_of
from mooncake_config.display import number_text, shown
from mooncake_config.findings import Malformed

_NAMES = ("", "b", "byte", "bytes", *(p + s for p in "kmgtp" for s in ("", "b", "i", "ib", "ibyte", "ibytes")))
_MULTIPLIERS = {name: humanfriendly.parse_size(f"1{name}", binary=True) for name in _NAMES}
_LETTERS = "".join(f"[{c.upper()}{c}]" for c in "kmgtp").replace("][", "")
_UNIT = rf"(?:{_LETTERS}(?:[iI]?[bB]?|[iI][bB][yY][tT][eE][sS]?)|[bB](?:[yY][tT][eE][sS]?)?)"
_SIZE = re.compile(rf"(?P<number>[0-9]+(?:\.[0-9]+)?) *(?P<unit>{_UNIT})?")

DIGITS_LIMIT = 64
"""Longest size in characters; the number of atoms in the universe has 80 digits."""

_EIGHTHS = r"(?:0+|(?:5|[27]5|[1368][27]5)0*)"

SCHEMA_PATTERN = (
    rf"^(?=.{{1,{DIGITS_LIMIT}}}$)(?:[0-9]+(?:\.0+)? *(?:{_UNIT})?|[0-9]+\.{_EIGHTHS} *{_LETTERS}(?:[iI]?[bB]?|[iI][bB][yY][tT][eE][sS]?))$"
)
"""What an editor accepts: whole numbers, and halves, quarters and eighths of a unit, which are whole bytes in each."""

NONZERO = r"^(?=.*[1-9])"
"""A lookahead to put before :data:`SCHEMA_PATTERN` where zero is refused."""

EXAMPLE = "8gb"


def parse_size(raw: object) -> int:
    """Bytes of a size: an integer, an integral JSON number, or text such as ``8gb``, ``1.5 GiB``, ``4294967296``.

    Raises:
        Malformed: another type, another form, a negative size or a fraction of a byte.
    """
    if isinstance(raw, bool) or not isinstance(raw, (int, float, Decimal, str)):
        raise Malformed(
            "wrong-type",
            f"{shown(raw)} is {kind_of(raw)}, and this field takes a size.",
            f'write "{EXAMPLE}" or a whole number of bytes.',
        )
    return _parse_text(text_of(raw, EXAMPLE)) if isinstance(raw, str) else _parse_number(raw)


def parse_positive_size(raw: object) -> int:
    """Like :func:`parse_size`, and zero is malformed too."""
    size = parse_size(raw)
    if size == 0:
        raise Malformed("zero-chunk", "0 is not a chunk size; it must be positive.", 'write "64mb", or leave it out.')
    return size


def _parse_number(raw: int | float | Decimal) -> int:
    if raw != raw or raw in (float("inf"), float("-inf")):
        raise Malformed("unreadable-size", f"{raw} is not a size.", f'write "{EXAMPLE}".')
    if raw < 0:
        raise _negative(raw)
    if raw >= 10**DIGITS_LIMIT:
        raise Malformed("unreadable-size", f"{shown(raw, 40)} is more bytes than exist.", f'write "{EXAMPLE}".')
    if raw != int(raw):
        raise Malformed(
            "fraction-of-a-byte",
            f"{shown(raw)} is a fraction of a byte: a bare number counts bytes.",
            f'add the unit, as in "{raw}gb", or write a whole number of bytes.',
        )
    return int(raw)


def _parse_text(text: str) -> int:
    match = _SIZE.fullmatch(text) if len(text) <= DIGITS_LIMIT else None
    if match is None:
        raise _why_unreadable(text)
    multiplier = _MULTIPLIERS[(match["unit"] or "").lower()]
    if "." not in match["number"]:
        return int(match["number"]) * multiplier
    size = Fraction(match["number"]) * multiplier
    if size.denominator != 1:
        below = int(size)
        raise Malformed(
            "fraction-of-a-byte",
            f"{text} is {below} bytes and a fraction of one.",
            f"write whole bytes or a smaller unit: {format_size(below)} is the next below.",
        )
    return int(size)


def _negative(raw: object) -> Malformed:
    return Malformed(
        "negative-size",
        f"{shown(raw)} is negative; no size is.",
        f'write a size of 0 or more, such as "{EXAMPLE}"; leave the field out for its default.',
    )


_TELLS: tuple[tuple[re.Pattern[str], str, str], ...] = (
    (re.compile(r"(?i)[0-9.]+ *[kmgtp]?i?bits?"), "counts bits", "sizes are in bytes"),
    (re.compile(r"[0-9]+(,[0-9]{3})+( *[A-Za-z]*)"), "has separators between its digits", "write the digits alone"),
    (re.compile(r"[0-9]+,[0-9]+ *[A-Za-z]*"), "has a decimal comma", "write a point instead of the comma"),
    (re.compile(r"[0-9]+([_' ][0-9]+)+ *[A-Za-z]*"), "has separators between its digits", "write the digits alone"),
    (re.compile(r"(?i)[0-9.]+e[-+]?[0-9]+.*"), "is in exponent form", "write all digits, or a unit"),
    (re.compile(r"(?i)0x[0-9a-f]+"), "is hexadecimal", "write decimal digits"),
    (re.compile(r"\+.*"), "has a sign", "leave the plus out"),
    (re.compile(r"(?i)inf(init[ey])?|nan|max|unlimited|auto"), "is no number", "write how many bytes it may take"),
    (re.compile(r"(?i)[kmgtp]i?b?"), "is a unit without a number", "put the number before it"),
    (re.compile(r"\.[0-9]+.*|[0-9]+\.( *[A-Za-z]*)?"), "lacks a digit beside its point", "write the digit, as in 0.5gb"),
    (re.compile(r".*[0-9].*%"), "is a share", "write bytes; nothing here knows the whole"),
)


def _why_unreadable(text: str) -> Malformed:
    if re.match(r"[-−–] *[0-9.]", text):
        return _negative(text)
    refuse_damage(text, EXAMPLE)
    odd = next((c for c in text if c.isdigit() and not c.isascii()), None)
    if odd is not None:
        why, way = f"holds the digit {odd} (U+{ord(odd):04X}), which is not ASCII", "write the digits 0 to 9"
    elif len(text) > DIGITS_LIMIT:
        why, way = f"is {len(text):,} characters long", "write the size alone"
    else:
        why, way = next(
            ((why, way) for tell, why, way in _TELLS if tell.fullmatch(text)),
            ("is not a size", "write a number and one of b, kb, mb, gb, tb (powers of 1024) and nothing else"),
        )
    return Malformed("unreadable-size", f"{shown(text)} {why}.", f'{way}, for example "{EXAMPLE}".')


def format_size(size: int) -> str:
    """The shortest text that parses to the same number of bytes: ``2gb``, or plain digits."""
    for unit in ("tb", "gb", "mb", "kb"):
        if size and size % _MULTIPLIERS[unit] == 0:
            return f"{size // _MULTIPLIERS[unit]}{unit}"
    return number_text(size)


def human_size(size: int) -> str:
    """A size for reading: ``8 GiB``, ``8.59 GiB`` where rounded, ``0 bytes``."""
    return humanfriendly.format_size(size, binary=True)
