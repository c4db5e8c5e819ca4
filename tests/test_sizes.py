"""sizes: a strict grammar, exact arithmetic, and words for every other spelling."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import humanfriendly
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import is_taken_or_refused_well, refusal_of, refused, seconds_to_answer
from strategies import edited, field_texts, size_texts

from mooncake_config.sizes import (
    DIGITS_LIMIT,
    LARGEST,
    POSITIVE_PATTERN,
    SCHEMA_PATTERN,
    exact_size,
    format_size,
    human_size,
    parse_positive_size,
    parse_size,
)

SHIFTS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50}
SPELLINGS = [
    *((p + s, shift) for p, shift in SHIFTS.items() if p for s in ("", "b", "i", "ib", "ibyte", "ibytes")),
    *((s, 0) for s in ("", "b", "byte", "bytes")),
]


@pytest.mark.parametrize(("unit", "shift"), SPELLINGS, ids=lambda value: str(value) or "none")
def test_every_spelling_of_a_unit(unit: str, shift: int) -> None:
    """Units are powers of 1024 in every spelling and case, with and without blanks before them."""
    for spelt in {unit, unit.upper(), unit.capitalize(), unit.swapcase()}:
        for text in (f"3{spelt}", f"3 {spelt}", f" 3  {spelt}\n"):
            assert parse_size(text) == 3 << shift


@pytest.mark.parametrize(
    "text", ["2gb", "2g", "2GiB", "2 GB", "2Gi", "2147483648", "2.0gb", "0002gb", "2147483648.0", "2097152k"]
)
def test_one_size_in_many_spellings(text: str) -> None:
    """All of these are 2 GiB."""
    assert parse_size(text) == 2147483648


@pytest.mark.parametrize(
    ("raw", "size"),
    [
        (0, 0),
        (-0.0, 0),
        (2147483648, 2147483648),
        (2e9, 2000000000),
        (Decimal("2E+9"), 2000000000),
        (Decimal("1.000"), 1),
        (10**64 - 1, 10**64 - 1),
        ("1.5gb", 1610612736),
        ("0.125kb", 128),
        ("0.0009765625kb", 1),
        ("1.1259b", None),
    ],
)
def test_numbers_and_fractions_are_exact(raw: object, size: int | None) -> None:
    """Integral JSON numbers are bytes; a fraction of a unit counts where it is a whole number of bytes."""
    refusal = refusal_of(parse_size, raw)
    assert refusal.offence == "fraction-of-a-byte" if refusal else parse_size(raw) == size


@given(number=st.decimals(0, 10**6, places=6), unit=st.sampled_from(SPELLINGS))
def test_arithmetic_is_exact(number: Decimal, unit: tuple[str, int]) -> None:
    """A decimal fraction is exactly what it says, or refused; never rounded, as humanfriendly's product is."""
    exact = Fraction(number) * 2 ** unit[1]
    refusal = refusal_of(parse_size, f"{number:f}{unit[0]}")
    if exact.denominator == 1:
        assert parse_size(f"{number:f}{unit[0]}") == exact
    else:
        assert refusal
        assert refusal.offence == "fraction-of-a-byte"


@given(number=st.integers(0, 10**6), unit=st.sampled_from(SPELLINGS))
def test_humanfriendly_agrees_where_it_is_exact(number: int, unit: tuple[str, int]) -> None:
    """Within the grammar, whole numbers are what humanfriendly makes of them."""
    assert parse_size(f"{number}{unit[0]}") == humanfriendly.parse_size(f"{number}{unit[0]}", binary=True)


@given(
    size=st.one_of(
        st.integers(0, 10**60), st.builds(lambda n, shift: n << shift, st.integers(0, 4096), st.integers(0, 60))
    )
)
def test_printed_and_parsed_is_the_same(size: int) -> None:
    """A size that is printed is parsed to the same size, and an editor accepts it."""
    assert parse_size(format_size(size)) == size
    assert re.search(SCHEMA_PATTERN, format_size(size))


@pytest.mark.parametrize(
    ("size", "text", "human"),
    [
        (0, "0", "0 bytes"),
        (1, "1", "1 byte"),
        (1023, "1023", "1023 bytes"),
        (1024, "1kb", "1 KiB"),
        (1536, "1536", "1.5 KiB"),
        (8589934592, "8gb", "8 GiB"),
        (8589934593, "8589934593", "8 GiB"),
        (1 << 50, "1024tb", "1 PiB"),
    ],
)
def test_printed(size: int, text: str, human: str) -> None:
    """The exact form is the shortest that parses back; the form for reading rounds."""
    assert format_size(size) == text
    assert human_size(size) == human


UNREADABLE = [
    ("2 bananas", "is not a size", "write a number and one of b, kb, mb, gb, tb (powers of 1024) and nothing else"),
    ("2mooncakes", "is not a size", "write a number and one of b, kb, mb, gb, tb (powers of 1024) and nothing else"),
    ("2GBB", "is not a size", "write a number and one of b, kb, mb, gb, tb (powers of 1024) and nothing else"),
    ("8gb junk", "is not a size", "write a number and one of b, kb, mb, gb, tb (powers of 1024) and nothing else"),
    ("1gbit", "counts bits", "sizes are in bytes"),
    ("16 bits", "counts bits", "sizes are in bytes"),
    ("1.5 Mibits", "counts bits", "sizes are in bytes"),
    ("8,589,934,592", "has separators between its digits", "write the digits alone"),
    ("8_589_934_592", "has separators between its digits", "write the digits alone"),
    ("8 589 934 592", "has separators between its digits", "write the digits alone"),
    ("8'589gb", "has separators between its digits", "write the digits alone"),
    ("1,5gb", "has a decimal comma", "write a point instead of the comma"),
    ("8e9", "is in exponent form", "write all digits, or a unit"),
    ("1.5E+3gb", "is in exponent form", "write all digits, or a unit"),
    ("0x80000000", "is hexadecimal", "write decimal digits"),
    ("+8gb", "has a sign", "leave the plus out"),
    ("infinite", "is no number", "write how many bytes it may take"),
    ("nan", "is no number", "write how many bytes it may take"),
    ("unlimited", "is no number", "write how many bytes it may take"),
    ("gb", "is a unit without a number", "put the number before it"),
    ("Bytes", "is a unit without a number", "put the number before it"),
    (".5gb", "lacks a digit beside its point", "write the digit, as in 0.5gb"),
    ("5.gb", "lacks a digit beside its point", "write the digit, as in 0.5gb"),
    ("2gb/s", "is a rate", "write bytes alone"),
    ("50%", "is a share", "write bytes; nothing here knows the whole"),
    ("80% of RAM", "is not a size", "write a number and one of b, kb, mb, gb, tb (powers of 1024) and nothing else"),
    ("١٢gb", "holds the digit ١ (U+0661), which is not ASCII", "write the digits 0 to 9"),
    ("８gb", "holds the digit ８ (U+FF18), which is not ASCII", "write the digits 0 to 9"),
    ("2²gb", "holds the digit ² (U+00B2), which is not ASCII", "write the digits 0 to 9"),
    ("8G\u0130B", "is not a size", "write a number and one of b, kb, mb, gb, tb (powers of 1024) and nothing else"),
    ("8\u212ab", "is not a size", "write a number and one of b, kb, mb, gb, tb (powers of 1024) and nothing else"),
    ("9" * 65, "is 65 characters long", "write the size alone"),
]


@pytest.mark.parametrize(("text", "why", "way"), UNREADABLE)
def test_unreadable(text: str, why: str, way: str) -> None:
    """What is no size says what it is by all appearance, and what to write."""
    assert refused(parse_size, text) == ("unreadable-size", f"{text} {why}.", f'{way}, for example "8gb".')


WITHOUT = 'write a size such as "8gb"; leave the field out for its default.'


@pytest.mark.parametrize(
    ("raw", "offence", "message", "fix"),
    [
        ("-1gb", "negative-size", "-1gb is negative; no size is.", WITHOUT),
        ("− 1", "negative-size", "− 1 is negative; no size is.", WITHOUT),
        (-1, "negative-size", "-1 is negative; no size is.", WITHOUT),
        (-0.5, "negative-size", "-0.5 is negative; no size is.", WITHOUT),
        (
            "0.3gb",
            "fraction-of-a-byte",
            "0.3gb is 322122547 bytes and a fraction of one.",
            "write whole bytes or a smaller unit: 322122547 is the next below.",
        ),
        (
            "1.5",
            "fraction-of-a-byte",
            "1.5 counts bytes, and a byte has no fractions.",
            'add the unit, as in "1.5gb", or write a whole number of bytes.',
        ),
        (
            1.3,
            "fraction-of-a-byte",
            "1.3 counts bytes, and a byte has no fractions.",
            'add the unit, as in "1.5gb", or write a whole number of bytes.',
        ),
        (
            Decimal("1E-9"),
            "fraction-of-a-byte",
            "1E-9 counts bytes, and a byte has no fractions.",
            'add the unit, as in "1.5gb", or write a whole number of bytes.',
        ),
        (math.nan, "unreadable-size", "nan is not a size.", 'write a size such as "8gb".'),
        (-math.inf, "unreadable-size", "-inf is not a size.", 'write a size such as "8gb".'),
        (Decimal("sNaN"), "unreadable-size", "sNaN is not a size.", 'write a size such as "8gb".'),
        (Decimal("1E+999999"), "unreadable-size", "1E+999999 is more bytes than exist.", 'write a size such as "8gb".'),
        (
            10**64,
            "unreadable-size",
            "1000000000000000…(65 characters)…0000000 is more bytes than exist.",
            'write a size such as "8gb".',
        ),
        (
            True,
            "wrong-type",
            "true is a boolean, and this field takes a size.",
            'write "8gb" or a whole number of bytes.',
        ),
        ([1], "wrong-type", "[1] is a list, and this field takes a size.", 'write "8gb" or a whole number of bytes.'),
        (
            "8gb # per node",
            "kept-comment",
            "8gb # per node holds a comment as part of the value: env files of Docker and Kubernetes keep it.",
            "move the comment to a line of its own and leave the value: 8gb.",
        ),
        (
            '"8gb"',
            "stray-quotes",
            '"8gb" has quotes in it: an env file, a Dockerfile or one pair of quotes too many kept them.',
            "write the value without them: 8gb.",
        ),
        (
            "8\u200bgb",
            "control-character",
            r"8\u200bgb holds the invisible character \u200b (U+200B).",
            "write the value anew by hand, such as 8gb; copying it brings the character along.",
        ),
    ],
)
def test_refused(raw: object, offence: str, message: str, fix: str) -> None:
    """Negative sizes, fractions of a byte, values of other types, damaged texts."""
    assert refused(parse_size, raw) == (offence, message, fix)


@pytest.mark.parametrize("raw", [0, "0", "0gb", "0.0 kb"])
def test_zero_is_a_size_and_no_chunk(raw: object) -> None:
    """Zero is a size, but not where it must be positive."""
    assert parse_size(raw) == 0
    assert refused(parse_positive_size, raw) == (
        "zero-chunk",
        "0 is not a chunk size; it must be positive.",
        'write "64mb", or leave it out.',
    )
    assert not re.search(POSITIVE_PATTERN, str(raw))


@pytest.mark.parametrize("fraction", ["125", "25", "375", "5", "625", "75", "875", "500", "0"])
def test_an_editor_accepts_eighths(fraction: str) -> None:
    """Halves, quarters and eighths of every unit are whole bytes, and no other three digits are."""
    assert re.search(SCHEMA_PATTERN, f"1.{fraction}kb")
    assert parse_size(f"1.{fraction}kb") * 8 % 1024 == 0


@given(text=edited(size_texts()))
def test_what_an_editor_accepts_is_a_size(text: str) -> None:
    """The pattern is within the grammar, and leaves out only long fractions; the positive one leaves out zero too."""
    accepted = len(text) <= DIGITS_LIMIT and re.search(SCHEMA_PATTERN, text) is not None
    refusal = refusal_of(parse_size, text)
    assert not (accepted and refusal)
    if refusal is None and text == text.strip():
        size = parse_size(text)
        assert accepted or re.fullmatch(r"[0-9]+\.[0-9]{4,}.*", text)
        assert (accepted and size > 0) == (accepted and re.search(POSITIVE_PATTERN, text) is not None)


@pytest.mark.parametrize("parse", [parse_size, parse_positive_size])
@given(
    raw=st.one_of(edited(size_texts()), field_texts(), st.text(), st.integers(), st.floats(), st.decimals(), st.none())
)
def test_any_value_is_taken_or_refused(parse: Callable[[object], int], raw: object) -> None:
    """Whatever arrives: bytes, 0 or more, or a refusal that can be printed and has a way out."""
    assert is_taken_or_refused_well(parse, raw)
    assert refusal_of(parse, raw) or parse(raw) >= 0


@pytest.mark.parametrize(
    "text", ["9" * 4096, "1,111" * 800, "1_" * 2048, "0" * 4095 + "%", "1." * 2048, " " * 4095 + "x", "1e" * 2048]
)
def test_hostile_text_is_answered_at_once(text: str) -> None:
    """4,096 hostile characters take no noticeable time, nor does a number of 100,000 digits."""
    for raw in (text, text[:DIGITS_LIMIT], 10**100_000, Decimal("1E+999999999"), Decimal("1E-999999999")):
        assert seconds_to_answer(parse_size, raw) < 1


@pytest.mark.parametrize("parse", [parse_size, parse_positive_size])
@given(
    text=st.one_of(
        size_texts(), edited(size_texts()), size_texts().map('"{}"'.format), size_texts().map("{} # x".format)
    )
)
def test_what_a_fix_proposes_is_taken(parse: Callable[[object], int], text: str) -> None:
    """Whatever size a fix tells to write is taken by the parser that refused."""
    refusal = refusal_of(parse, text)
    proposed = re.search(r'"([^"]+)"|: ([0-9][^ …]*)(?: is the next below)?\.$', refusal.fix) if refusal else None
    if proposed:
        assert refusal_of(parse, proposed[1] or proposed[2]) is None


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (1, "1 byte"),
        (1023, "1023 bytes"),
        (1 << 24, "16 MiB (16777216 bytes)"),
        ((1 << 24) - 1, "16777215 bytes"),
        ((1 << 40) + 1, "1099511627777 bytes"),
        (1536, "1.5 KiB (1536 bytes)"),
        (1537, "1537 bytes"),
        (10**60, f"{10**60} bytes"),
    ],
)
def test_no_rounding_beside_a_bound(size: int, text: str) -> None:
    """Where a size is told to miss a bound it is not rounded to that bound."""
    assert exact_size(size) == text


@given(size=st.integers(0, 2**64))
def test_unit_that_is_told_is_exact(size: int) -> None:
    """The form with a unit is the same number of bytes."""
    unit, bracket, digits = exact_size(size).rstrip(")").partition(" (")
    assert parse_size(unit) == size
    assert not bracket or digits.startswith(f"{size} byte")


LONG = "1" * 5000


@pytest.mark.parametrize("parse", [parse_size, parse_positive_size])
@pytest.mark.parametrize(
    "raw",
    [LONG, f"-{LONG}", f"1.{LONG}", f"{LONG}gb", f"0.{LONG}gb", *(Decimal(f"{sign}{number}") for sign in ("", "-")
     for number in (LONG, f"1.{LONG}", f"0.{LONG}", f"{LONG}.5", f"NaN{LONG}")), 10**5000, -(10**5000), [10**5000]],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_thousands_of_digits_are_refused(parse: Callable[[object], int], raw: object) -> None:
    """A number of more digits than Python reads or writes is refused like any other that is no size."""
    assert refusal_of(parse, raw)
    assert is_taken_or_refused_well(parse, raw)


def test_largest_is_what_a_size_t_holds() -> None:
    """Mooncake counts bytes in 64 bits."""
    assert LARGEST == 0xFFFF_FFFF_FFFF_FFFF
