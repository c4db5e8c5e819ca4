"""display: no secret, no control character and no wall of text reaches a person."""

from __future__ import annotations

import json
import math
import time
from collections import UserDict
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import ODD, passwords, texts_with_password

from mooncake_config.display import (
    RAW_LIMIT,
    escaped,
    has_secret,
    masked,
    masked_prose,
    number_text,
    plain_text,
    raw_in_json,
    shortened,
    shown,
    shown_part,
)


@given(text=texts_with_password())
def test_no_password_is_left(text: str) -> None:
    """Nothing of a password is left, whatever stands in it and around it, in a text, a sentence, and a JSON answer."""
    assert "Zq" not in masked(text)
    assert "Zq" not in shown(text, 10_000)
    assert "Zq" not in json.dumps(raw_in_json([{"x": text}]))
    assert "Zq" not in json.dumps(raw_in_json(text))


@given(text=texts_with_password(), data=st.data())
def test_no_part_of_a_password_is_left(text: str, data: st.DataObject) -> None:
    """A part of a text, cut anywhere, shows no more of a password than the whole."""
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    assert "Zq" not in shown_part(text[start:end], text)


@given(text=texts_with_password())
def test_masked_once_is_masked_for_good(text: str) -> None:
    """Masking what is masked changes nothing, so nothing hidden is taken for a secret again."""
    assert masked(masked(text)) == masked(text)
    assert has_secret(text)
    assert not has_secret(masked(text))


@given(
    st.lists(st.sampled_from(["Ray", "node", "IP", "bearer", "Basic", "token", "password", "1.5", "x"])).map(" ".join)
)
def test_plain_words(text: str) -> None:
    """What is told at a glance to have no room for a secret shows the same where it is looked at closely."""
    assert masked(f"é {text}") == f"é {masked(text)}"


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("redis://user:pass@h:6379", "redis://user:***@h:6379"),
        ("redis://:pass@h:6379", "redis://:***@h:6379"),
        ("http://token:pass@h:80/metadata", "http://token:***@h:80/metadata"),
        ("http://token@h/metadata", "http://***@h/metadata"),
        ("http://u:p@ss:w/o://rd@h", "http://u:***@h"),
        ("http://token@h:80/a@b", "http://***@b"),
        ("user:pass@h", "user:***@h"),
        ("tok@h:80/x@y", "***@y"),
        ('"http://u:p@h"', '"http://u:***@h"'),
        ("password=geheim", "password=***"),
        ("MC_REDIS_PASSWORD: geheim, x", "MC_REDIS_PASSWORD: ***, x"),
        ('{"password": "a b, c", "x": 1}', '{"password": "***", "x": 1}'),
        (r"{\"api_key\": \"a b\", \"x\": \"y\"}", r"{\"api_key\": \"***\", \"x\": \"y\"}"),
        (r'{"secret": "a\"b", "x": 1}', '{"secret": "***", "x": 1}'),
        ("http://h/?access_key=1234&x=2", "http://h/?access_key=***&x=2"),
        ("http://u:geheim%40h:80/", "http://u:***%40h:80/"),
        ("http%3A%2F%2Fu%3Ageheim%40h", "http%3A%2F%2Fu%3A***%40h"),
        ("http%253a%252f%252fu%253ageheim%2540h", "http%253a%252f%252fu%253a***%2540h"),
        ("http://u:geheim＠h", "http://u:***＠h"),
        ("http：／／u：geheim＠h", "http：／／u：***＠h"),
        ("http://u:geheim&#64;h", "http://u:***&#64;h"),
        (r"http://u:geheim\u0040h", r"http://u:***\u0040h"),
        ("http://u:gehe", "http://u:***"),
        ("http://u:12geheim/metadata", "http://u:***"),
        ("http://u:***geheim", "http://u:***"),
        ("http%3A%2F%2Fu%3Ageheim", "http%3A%2F%2Fu%3A***"),
        ("me@h http://u:geheim", "me@h http://u:***"),
        ("$(curl -u u:geheim http://h)", "$(curl -u u:*** http://h)"),
        ("`curl --user=u:geheim h`", "`curl --user=u:*** h`"),
        ("get --password geheim h", "get --password *** h"),
        ("get --auth-token geheim h", "get --auth-token *** h"),
        ("Authorization: Bearer geheim", "Authorization: Bearer ***"),
    ],
)
def test_secret_is_hidden(text: str, hidden: str) -> None:
    """The password of a URL and the value of a name that says so."""
    assert masked(text) == hidden
    assert has_secret(text)


@pytest.mark.parametrize(
    "text",
    [
        *("10.0.0.5:50051", "http://h:8080/metadata", "me@example.com", "etcd://a:1;b:2", "@", ""),
        *("http://fd00::5/m", "http://[fd00::5]:80/m", "http://h:$PORT/m", "http://h:<port>/m", "http://h:{{ p }}/m"),
        *("http://h:/m", "http://h:65536/m", "http://h:1,i:2", "etcd://h:1;http://i:2", "http://h:1?x#y"),
    ],
)
def test_text_without_secret_stays(text: str) -> None:
    """What holds no password is left as it is."""
    assert masked(text) == text
    assert not has_secret(text)


@given(text=st.one_of(st.text(), st.text(ODD)))
def test_escaped_is_printable(text: str) -> None:
    """Escaped text can be printed anywhere: no control, format or surrogate character, on one line."""
    assert escaped(text).isprintable()
    assert escaped(escaped(text)) == escaped(text)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("\x1b[31mred", r"\x1b[31mred"),
        ("a\nb", r"a\nb"),
        ("\u202e", r"\u202e"),
        ("\udcff", r"\udcff"),
        ("é 中", "é 中"),
    ],
)
def test_escapes(text: str, printed: str) -> None:
    """Escapes are those of Python and C; letters of any script stay."""
    assert escaped(text) == printed


@given(text=st.text(), limit=st.integers(1, 60))
def test_shortened_keeps_the_limit(text: str, limit: int) -> None:
    """Never longer than the limit; a text within it is left alone; else its beginning stays."""
    short = shortened(text, limit)
    assert len(short) <= limit
    assert short == text if len(text) <= limit else text.startswith(short.partition("…")[0])


def test_shortened_in_the_middle() -> None:
    """Beginning and end stay, and between them stands how long the text is."""
    assert shortened("a" * 500 + "z" * 500, 40) == "a" * 14 + "…(1,000 characters)…" + "z" * 6
    assert shortened("abcdef", 4) == "abc…"


@given(value=st.recursive(st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.decimals(), st.text()),
                          lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner))))  # fmt: skip
def test_any_value_can_be_shown(value: object) -> None:
    """A value of any kind has a sentence form, printable and short, and a form in strict JSON of no great length."""
    assert shown(value).isprintable()
    assert len(shown(value)) <= 80
    raw = raw_in_json(value)
    json.dumps(raw, allow_nan=False).encode("utf-8")
    assert not isinstance(raw, str) or len(raw) <= RAW_LIMIT


@given(value=st.one_of(st.none(), st.booleans(), st.integers(-(2**63) + 1, 2**63 - 1), st.text(max_size=50)))
def test_raw_keeps_its_type(value: object) -> None:
    """What JSON can hold, and every reader reads alike, stands in the answer as it is."""
    raw = raw_in_json(value)
    assert type(raw) is type(value)
    assert isinstance(raw, str) or raw == value


@pytest.mark.parametrize(
    ("value", "raw"),
    [
        (Decimal("2E+9"), 2000000000),
        (Decimal("1.5"), 1.5),
        (Decimal("1E+28"), 1e28),
        (Decimal("1E+999"), "1E+999"),
        (Decimal("sNaN"), "sNaN"),
        (math.nan, "nan"),
        (-math.inf, "-inf"),
        (2**63, "9223372036854775808"),
        ([1, None, "a"], '[1, null, "a"]'),
        ({"a": [[[["deep"]]]]}, '{"a": [[…]]}'),
        ("\udcff", r"\udcff"),
    ],
)
def test_raw_of_odd_values(value: object, raw: object) -> None:
    """Fractions of JSON are numbers; what JSON has no form for, and lists and objects, are text."""
    assert raw_in_json(value) == raw
    assert type(raw_in_json(value)) is type(raw)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (None, "null"),
        (True, "true"),
        (1.5, "1.5"),
        ("text", "text"),
        ({"a": (1, 2)}, '{"a": [1, 2]}'),
        ([1] * 30, f"[{'1, ' * 19}1]"),
    ],
)
def test_shown(value: object, sentence: str) -> None:
    """Values stand in a sentence as JSON, text without quotes, of long lists the beginning."""
    assert shown(value, 200) == sentence


class Unwritten(UserDict[str, object]):
    """A mapping that raises where it is read, as OmegaConf's does at an interpolation that leads nowhere."""

    def __getitem__(self, key: str) -> object:
        raise LookupError(key)


@pytest.mark.parametrize("value", [Unwritten(a=1), {"a": Unwritten(a=1)}, [Unwritten(a=1)], [[[[Unwritten(a=1)]]]]])
def test_value_that_cannot_be_read(value: object) -> None:
    """A value that raises when it is looked at is named by its type."""
    written = shown(value, 200)
    assert written.strip('[]{} :a"') in ("Python Unwritten that cannot be written out", "…")
    assert raw_in_json(value) == written


def test_password_in_a_long_list() -> None:
    """Masking comes before shortening: a password that is longer than what is shown leaves no beginning."""
    assert "ppp" not in shown(["redis://u:" + "p" * 5000 + "@h"])


ENDLESS = 10**5000


@pytest.mark.parametrize(
    "value",
    [ENDLESS, -ENDLESS, [ENDLESS], {ENDLESS: 1}, {"a": {ENDLESS: ENDLESS}}, (ENDLESS,), {(ENDLESS,): 1},
     frozenset([ENDLESS]), Decimal(ENDLESS), Decimal("1." + "1" * 5000), Decimal("sNaN" + "1" * 5000)],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_number_of_thousands_of_digits(value: object) -> None:
    """A number that Python refuses to write out can be shown wherever it stands: a value, a key, an item."""
    assert shown(value).isprintable()
    assert plain_text(value)
    json.dumps(raw_in_json(value))


def test_number_text_of_any_size() -> None:
    """Numbers are written out where Python does it, else described."""
    assert number_text(-7) == "-7"
    assert number_text(-(10**6000)) == raw_in_json(10**6000) == "a number of about 6,000 digits"


@pytest.mark.parametrize(
    "text",
    [
        "password" * 500,
        "token=" * 700,
        "http://" * 580,
        "%25" * 1360,
        "bearer " * 580,
        "-u" * 2048,
        "x" * 4090 + "://a:b",
        "-u " * 1360,
        "--a-token" * 450,
        "http://" + "a" * 4089,
        "://" + "1:" * 2046,
        "\\" * 4096,
        "%2540" * 800,
        'secret="' + "\\" * 4000,
        "@" * 4096,
        "a:" * 2000 + "@",
        "://" * 1365 + "@",
    ],
)
def test_hostile_text_is_answered_at_once(text: str) -> None:
    """4,096 hostile characters take no noticeable time."""
    start = time.process_time()
    shown(text)
    assert time.process_time() - start < 1


@given(password=passwords().filter(lambda text: " " not in text), scheme=st.sampled_from(["", "http://", "etcd://"]))
def test_prose_keeps_its_reason(password: str, scheme: str) -> None:
    """In a line of a log the password of an address is hidden, and the words around it stay."""
    line = f"setup: GET {scheme}me:{password}@h:8080/metadata failed: refused by 10.0.0.5:8080 @ eth0: again"
    hidden = masked_prose(line)
    assert "Zq" not in hidden
    assert hidden.startswith(f"setup: GET {scheme}me:***@h:8080/metadata")
    assert hidden.endswith("failed: refused by 10.0.0.5:8080 @ eth0: again")
