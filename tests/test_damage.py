"""damage: what happened to a text on its way here, told by its traces."""

from __future__ import annotations

import re
from decimal import Decimal
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refusal_of, refused, seconds_to_answer
from strategies import ODD, field_texts, passwords

from mooncake_config.damage import TEXT_LIMIT, kind_of, refuse_damage, text_of, whole
from mooncake_config.display import shown
from mooncake_config.findings import Malformed


def look(text: object) -> None:
    """Looks at a text as the parser of an address does, which takes 10.0.0.5 and other texts without an x."""
    refuse_damage(str(text), "10.0.0.5", without_x)


def without_x(text: str) -> None:
    """Refuses a text with an x."""
    if "x" in text:
        raise Malformed("address-form", f"{text} has an x.", "leave it out.")


KEPT = "single quotes, a JSON file or an env file keep a shell from expanding it"
EXPANDED = "put the value itself there, such as 10.0.0.5, or use double quotes so that the shell expands it."
QUOTED = "has quotes in it: an env file, a Dockerfile or one pair of quotes too many kept them."
ANEW = "write the value anew by hand, such as 10.0.0.5; copying it brings the character along."
OWN = "replace it, angle brackets included, with your own value, such as 10.0.0.5."
OWN_LINE = "move the comment to a line of its own and leave the value"
COMMENT = "holds a comment as part of the value: env files of Docker and Kubernetes keep it."


@pytest.mark.parametrize(
    ("text", "offence", "message", "fix"),
    [
        ("$HEAD_IP:50051", "unexpanded-variable", f"still holds $HEAD_IP: {KEPT}.", EXPANDED),
        ("${HEAD_IP}:50051", "unexpanded-variable", f"still holds ${{HEAD_IP}}: {KEPT}.", EXPANDED),
        ("${HEAD_IP", "unexpanded-variable", f"still holds ${{HEAD_IP: {KEPT}.", EXPANDED),
        (
            "$(POD_IP)",
            "unexpanded-variable",
            "still holds $(POD_IP): Kubernetes expands $(NAME) only for variables defined above it in the same "
            "container, a shell runs it.",
            EXPANDED,
        ),
        (
            "`hostname -i`:50051",
            "unexpanded-variable",
            "still holds `hostname -i`: single quotes or a file keep a shell from running the command.",
            EXPANDED,
        ),
        ("{{ master }}", "unexpanded-variable", "still holds {{ master }}: the template was never rendered.", EXPANDED),
        ("{% if x %}", "unexpanded-variable", "still holds {% if x %}: the template was never rendered.", EXPANDED),
        ("%HEAD_IP%", "unexpanded-variable", "still holds %HEAD_IP%: the template was never rendered.", EXPANDED),
        ("<head-ip>:50051", "placeholder", "still holds the placeholder <head-ip> of a guide.", OWN),
        ("&lt;head-ip&gt;", "placeholder", "still holds the placeholder &lt;head-ip&gt; of a guide.", OWN),
        ('"10.0.0.5"', "stray-quotes", QUOTED, "write the value without them: 10.0.0.5."),
        ("10.0.0.5'", "stray-quotes", QUOTED, "write the value without them: 10.0.0.5."),
        ("“10.0.0.5”", "stray-quotes", QUOTED, "write the value without them: 10.0.0.5."),
        ("''", "stray-quotes", QUOTED, "write the value without them, for example 10.0.0.5."),
        ("'x'", "stray-quotes", QUOTED, "write the value without them, for example 10.0.0.5."),
        ("x # head", "kept-comment", COMMENT, f"{OWN_LINE}, for example 10.0.0.5."),
        ("10.0.0.5 # head", "kept-comment", COMMENT, f"{OWN_LINE}: 10.0.0.5."),
        (" # head", "kept-comment", COMMENT, f"{OWN_LINE}, for example 10.0.0.5."),
        ("10.0.0.5\x00x", "control-character", r"holds the invisible character \x00 (U+0000).", ANEW),
        ("10.0.0\u200b.5", "control-character", r"holds the invisible character \u200b (U+200B).", ANEW),
        ("10.0.0.5\u00a0x", "control-character", r"holds the invisible character \xa0 (U+00A0).", ANEW),
        ("10.0.0.5\nx", "control-character", r"holds the invisible character \n (U+000A).", ANEW),
        ("10.0.0.\udcff", "control-character", "holds the byte 0xff, which is not UTF-8.", ANEW),
        ("10.0.0.\ud83d", "control-character", "holds half a character (the surrogate U+D83D).", ANEW),
    ],
)
def test_traces(text: str, offence: str, message: str, fix: str) -> None:
    """Each trace has its offence, and words for what happened; the message begins with the text."""
    assert refused(look, text) == (offence, f"{shown(text)} {message}", fix)


@pytest.mark.parametrize("text", ["10.0.0.5:50051", "8gb", "a#b", "50%", "$", "5$", "a<b", "{}", "it's", ""])
def test_no_trace(text: str) -> None:
    """Texts without a known trace are left to the parser that asked."""
    assert refusal_of(look, text) is None


@given(
    password=passwords(), damage=st.sampled_from(["${X}", "$(Zq)", "`Zq`", "<Zq>", " #Zq", "%Zq%", "{{Zq}}", "\x00"])
)
def test_no_trace_shows_a_password(password: str, damage: str) -> None:
    """Where the damaged part belongs to a password it is not shown."""
    text = f"http://u:{password}{damage}Zq@10.0.0.5/{{{{x}}}}"
    assert "Zq" not in "".join(refused(look, text))


def test_sign_in_a_password() -> None:
    """Whoever has a $ in the password learns how to write it."""
    assert refused(look, "http://u:a$b@10.0.0.5/") == (
        "unexpanded-variable",
        f"http://u:***@10.0.0.5/ still holds ***: {KEPT}.",
        "put the value itself there; where the sign belongs to the password, write it as %XX: %24 for $, %25 for %.",
    )


@given(text=st.one_of(field_texts(), st.text(ODD)))
def test_what_cannot_be_printed_is_refused(text: str) -> None:
    """No text with an invisible character gets past."""
    try:
        look(text)
    except Malformed:
        return
    assert text.isprintable()


@given(text=st.one_of(st.text(), st.text(ODD)))
def test_text_loses_its_outer_blanks_only(text: str) -> None:
    """Blanks around a text are no part of the value."""
    assert text_of(text, "x") == text.strip()


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (None, "null"),
        (True, "a boolean"),
        (1, "a number"),
        (1.5, "a number"),
        (Decimal("1.5"), "a number"),
        ("x", "text"),
        ([], "a list"),
        ((), "a list"),
        ({}, "an object"),
        (MappingProxyType({}), "an object"),
        (b"x", "a Python bytes"),
    ],
)
def test_kinds_are_those_of_json(raw: object, kind: str) -> None:
    """A wrong value is named in the language of JSON, with its article."""
    assert kind_of(raw) == kind


@pytest.mark.parametrize("raw", [None, True, 5, Decimal("1E+3"), ["tcp"], {"a": 1}])
def test_only_text_is_text(raw: object) -> None:
    """Numbers are not turned into text, as Mooncake's binding does."""
    message = f"{shown(raw)} is {kind_of(raw)}, and this field takes text."
    assert refused(lambda value: text_of(value, "tcp"), raw) == (
        "wrong-type",
        message,
        'write one text in double quotes, such as "tcp".',
    )


def test_text_of_any_length_is_answered() -> None:
    """No value is longer than 4,096 characters; a longer text is not even looked at."""
    assert text_of("x" * TEXT_LIMIT, "tcp") == "x" * TEXT_LIMIT
    offence, message, fix = refused(lambda value: text_of(value, "tcp"), "x" * 10**6)
    assert offence == "text-too-long"
    assert message.startswith("a text of 1,000,000 characters (xxx")
    assert message.endswith("xxx); no value is longer than 4,096.")
    assert fix == "write the value alone, such as tcp."


@pytest.mark.parametrize(("text", "matches"), [("a", True), ("b", True), ("a\n", False), ("ab", False), ("\na", False)])
def test_whole_means_the_whole(text: str, matches: bool) -> None:
    """Alternatives are bound together, and a last line break is not passed over."""
    assert bool(re.search(whole("a|b"), text)) is matches


@pytest.mark.parametrize("unit", ["{{", "{%", "${", "$(", "`", "%a", "<", "&lt;", "#", " #", '"', "$a", "{{}", "&lt;&"])
def test_hostile_text_is_answered_at_once(unit: str) -> None:
    """4,096 hostile characters take no noticeable time."""
    assert seconds_to_answer(look, unit * (4096 // len(unit))) < 1
