"""Sizes: ``"2gb"`` to bytes and back.

Units are powers of 1024, as Mooncake's own parser has them, so ``2gb``, ``2g``, ``2GiB`` and ``2 GB`` are the same
2147483648 bytes. humanfriendly knows the units; a strict ASCII grammar stands in front of it, because on its own it
reads ``2 bananas`` as 2 bytes, and it supplies only the multiplier, because its product is a float.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING

import humanfriendly

from mooncake_config.damage import kind_of, refuse_damage, text_of, whole
from mooncake_config.display import number_text, shown
from mooncake_config.findings import Malformed

if TYPE_CHECKING:
    from fractions import Fraction

_PREFIXED = r"[KkMmGgTtPp](?:[iI]?[bB]?|[iI][bB][yY][tT][eE][sS]?)"
_UNIT = rf"(?:{_PREFIXED}|[bB](?:[yY][tT][eE][sS]?)?)"
_SIZE = re.compile(rf"(?P<number>[0-9]+(?:\.[0-9]+)?) *(?P<unit>{_UNIT})?")
_EIGHTHS = r"(?:5|[27]5|(?:12|37|62|87)5)0*"
_FORMS = rf"[0-9]+(?:\.0+)? *{_UNIT}?|[0-9]+\.{_EIGHTHS} *{_PREFIXED}"

DIGITS_LIMIT = 64
"""Longest size in characters; the number of atoms in the universe has 80 digits."""

LARGEST = 2**64 - 1
"""The largest number of bytes that Mooncake has room for, a C ``size_t``."""

SEGMENT_FLOOR = 16 << 20
"""Bytes. Mooncake's allocator refuses less than one slab (client_buffer_allocation.cpp; measured: -600)."""

ADDRESS_SPACE = 1 << 47
"""Bytes that one Linux process can map: 128 TiB on x86-64, with four levels of page tables."""

BUFFER_RANGE = (1 << 10, 1 << 40)
"""Bytes, both ends included (real_client.cpp; measured: 2 TiB gives -600)."""

DEFAULT_CHUNK = 64 << 20
"""Bytes of a structured-object chunk where chunk_bytes is unset (structured_object_store.py)."""

SCHEMA_PATTERN = whole(_FORMS)
"""What an editor accepts: whole numbers, and halves, quarters and eighths of a unit, which are whole bytes in each."""

POSITIVE_PATTERN = whole(rf"(?=[^1-9]*[1-9])(?:{_FORMS})")
"""The same less zero."""

EXAMPLE = "8gb"


def parse_size(raw: object) -> int:
    """Bytes of a size: an integer, an integral JSON number, or text such as ``8gb``, ``1.5 GiB``, ``4294967296``.

    Raises:
        Malformed: another type, another form, a negative size or a fraction of a byte.
    """
    if isinstance(raw, str):
        return _parse_text(text_of(raw, EXAMPLE))
    if isinstance(raw, bool) or not isinstance(raw, (int, float, Decimal)):
        raise Malformed(
            "wrong-type",
            f"{shown(raw)} is {kind_of(raw)}, and this field takes a size.",
            f'write "{EXAMPLE}" or a whole number of bytes.',
        )
    return _parse_number(raw)


def parse_positive_size(raw: object) -> int:
    """Like :func:`parse_size`, and zero is malformed too."""
    size = parse_size(raw)
    if size == 0:
        raise Malformed("zero-chunk", "0 is not a chunk size; it must be positive.", 'write "64mb", or leave it out.')
    return size


def _parse_number(raw: int | float | Decimal) -> int:
    if not _is_finite(raw):
        raise Malformed("unreadable-size", f"{shown(raw)} is not a size.", f'write a size such as "{EXAMPLE}".')
    if raw < 0:
        raise _negative(raw)
    if raw >= 10**DIGITS_LIMIT:
        message = f"{shown(raw, 40)} is more bytes than exist."
        raise Malformed("unreadable-size", message, f'write a size such as "{EXAMPLE}".')
    if raw != int(raw):
        raise _fraction_without_unit(str(raw))
    return int(raw)


def _is_finite(raw: int | float | Decimal) -> bool:
    # Not math.isfinite for all: it makes floats of them, and there are integers beyond every float.
    return raw.is_finite() if isinstance(raw, Decimal) else isinstance(raw, int) or math.isfinite(raw)


def _parse_text(text: str) -> int:
    match = _SIZE.fullmatch(text) if len(text) <= DIGITS_LIMIT else None
    if match is None:
        raise _why_unreadable(text)
    number, unit = match.groups("")
    multiplier = _multiplier(unit.lower())
    if number.isdigit():
        return int(number) * multiplier
    size = _fraction(number) * multiplier
    if size.denominator == 1:
        return int(size)
    if multiplier == 1:
        raise _fraction_without_unit(text)
    below = int(size)
    raise Malformed(
        "fraction-of-a-byte",
        f"{text} is {below} bytes and a fraction of one.",
        f"write whole bytes or a smaller unit: {format_size(below)} is the next below."
        if below
        else f'write a whole number of bytes, for example "{EXAMPLE}".',
    )


@cache
def _multiplier(unit: str) -> int:
    """Bytes of one unit that the grammar knows."""
    return int(humanfriendly.parse_size(f"1{unit}", binary=True))


def _fraction(number: str) -> Fraction:
    from fractions import Fraction  # few sizes have one, and every start would pay for the import

    return Fraction(number)


def _fraction_without_unit(number: str) -> Malformed:
    with_unit = f"{number}gb"
    # Longer ones are no size with a unit either, and Python refuses to read digits by the thousand.
    readable = len(with_unit) <= DIGITS_LIMIT and _SIZE.fullmatch(with_unit)
    whole_bytes = readable and (_fraction(number) * _multiplier("gb")).denominator == 1
    return Malformed(
        "fraction-of-a-byte",
        f"{shown(number)} counts bytes, and a byte has no fractions.",
        f'add the unit, as in "{with_unit if whole_bytes else "1.5gb"}", or write a whole number of bytes.',
    )


def _negative(raw: object) -> Malformed:
    return Malformed(
        "negative-size",
        f"{shown(raw)} is negative; no size is.",
        f'write a size such as "{EXAMPLE}"; leave the field out for its default.',
    )


_TELLS: tuple[tuple[str, str, str], ...] = (
    (r"[0-9.]+ *[kmgtp]?i?bits?", "counts bits", "sizes are in bytes"),
    (r"[0-9]+(,[0-9]{3})+( *[a-z]*)", "has separators between its digits", "write the digits alone"),
    (r"[0-9]+,[0-9]+ *[a-z]*", "has a decimal comma", "write a point instead of the comma"),
    (r"[0-9]+([_' ][0-9]+)+ *[a-z]*", "has separators between its digits", "write the digits alone"),
    (r"[0-9.]+e[-+]?[0-9]+.*", "is in exponent form", "write all digits, or a unit"),
    (r"0x[0-9a-f]+", "is hexadecimal", "write decimal digits"),
    (r"\+.*", "has a sign", "leave the plus out"),
    (r"inf(init[ey])?|nan|none|max|unlimited|auto", "is no number", "write how many bytes it may take"),
    (r"[kmgtp]?i?b(ytes?)?|[kmgtp]", "is a unit without a number", "put the number before it"),
    (r"\.[0-9]+.*|[0-9]+\. *[a-z]*", "lacks a digit beside its point", "write the digit, as in 0.5gb"),
    (r"[0-9].*/ *s(ec)?", "is a rate", "write bytes alone"),
    (r".*[0-9].*%", "is a share", "write bytes; nothing here knows the whole"),
)
"""What a text of another form has by all appearance, why it is refused, and what to write."""


def _why_unreadable(text: str) -> Malformed:
    if re.match(r"[-−–] *[0-9.]", text):
        return _negative(text)
    refuse_damage(text, EXAMPLE, parse_positive_size)  # what it takes, every size field takes
    odd = next((c for c in text if c.isdigit() and not c.isascii()), None)
    if odd is not None:
        why, way = f"holds the digit {odd} (U+{ord(odd):04X}), which is not ASCII", "write the digits 0 to 9"
    elif len(text) > DIGITS_LIMIT:
        why, way = f"is {len(text):,} characters long", "write the size alone"
    else:
        why, way = next(
            ((why, way) for tell, why, way in _TELLS if re.fullmatch(tell, text, re.IGNORECASE)),
            ("is not a size", "write a number and one of b, kb, mb, gb, tb (powers of 1024) and nothing else"),
        )
    return Malformed("unreadable-size", f"{shown(text)} {why}.", f'{way}, for example "{EXAMPLE}".')


def format_size(size: int) -> str:
    """The shortest text that parses to the same number of bytes: ``2gb``, or plain digits."""
    for unit in ("tb", "gb", "mb", "kb"):
        if size and size % _multiplier(unit) == 0:
            return f"{size // _multiplier(unit)}{unit}"
    return number_text(size)


def exact_size(size: int) -> str:
    """The bytes, behind a unit where that does not round: ``8 GiB (8589934592 bytes)``, ``16777215 bytes``."""
    digits = f"{number_text(size)} byte{'' if size == 1 else 's'}"
    human = human_size(size)
    try:
        return f"{human} ({digits})" if size >= 1024 and parse_size(human) == size else digits
    except Malformed:
        return digits


def human_size(size: int) -> str:
    """A size for reading: ``8 GiB``, ``8.59 GiB`` where rounded, ``0 bytes``."""
    return humanfriendly.format_size(size, binary=True)
