"""protocols: transfer protocols and lists of RDMA devices."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import is_taken_or_refused_well, refused, seconds_to_answer
from strategies import device_texts, edited, field_texts

from mooncake_config.display import shown
from mooncake_config.protocols import (
    DEVICE_PATTERN,
    PROTOCOL_PATTERN,
    PROTOCOLS,
    devices_of,
    is_device_name,
    nearest,
    parse_device_name,
    parse_protocol,
)

KNOWN = "tcp, rdma, efa, cxi, ub, ubshmem, ascend, sunrise_link, cxl, nvlink_intra, rpc_only"


@pytest.mark.parametrize("name", PROTOCOLS)
def test_known_protocols(name: str) -> None:
    """Every protocol that the Store's client has a transport for, in any case and with blanks around."""
    assert parse_protocol(name) == parse_protocol(f" {name.upper()}\n") == name
    assert re.search(PROTOCOL_PATTERN, name)


def test_list_is_that_of_the_client() -> None:
    """The eleven names of client_service.cpp."""
    assert ", ".join(PROTOCOLS) == KNOWN


@pytest.mark.parametrize(
    ("raw", "offence", "message", "fix"),
    [
        (
            "rmda",
            "unknown-protocol",
            "rmda is not a protocol of Mooncake Store, whose client would retry for 22 s and end in -1.",
            f"did you mean rdma? Known are {KNOWN}.",
        ),
        (
            "quic",
            "unknown-protocol",
            "quic is not a protocol of Mooncake Store, whose client would retry for 22 s and end in -1.",
            f"write one of {KNOWN}.",
        ),
        (
            "sunrise_lin\u212a",
            "unknown-protocol",
            "sunrise_lin\u212a is not a protocol of Mooncake Store, whose client would retry for 22 s and end in -1.",
            f"did you mean sunrise_link? Known are {KNOWN}.",
        ),
        (
            "<tcp-or-rdma>",
            "placeholder",
            "<tcp-or-rdma> still holds the placeholder <tcp-or-rdma> of a guide.",
            "replace it, angle brackets included, with your own value, such as rdma.",
        ),
        (
            '"rdma"',
            "stray-quotes",
            '"rdma" has quotes in it: an env file, a Dockerfile or one pair of quotes too many kept them.',
            "write the value without them: rdma.",
        ),
        (
            True,
            "wrong-type",
            "true is a boolean, and this field takes text.",
            'write one text in double quotes, such as "rdma".',
        ),
    ],
)
def test_refused_protocol(raw: object, offence: str, message: str, fix: str) -> None:
    """What is no protocol, with the nearest one named."""
    assert refused(parse_protocol, raw) == (offence, message, fix)


@pytest.mark.parametrize(
    ("word", "known"),
    [
        ("rmda", "rdma"),
        ("RDMA ", "rdma"),
        ("TPC", "tcp"),
        ("nvlink", "nvlink_intra"),
        ("zzz", None),
        ("ucx", None),
        ("ucc", None),
        ("dma", "rdma"),
        ("tpc", "tcp"),
        ("", None),
        ("x" * 10**6, None),
    ],
)
def test_nearest(word: str, known: str | None) -> None:
    """The known word that was probably meant, case and punctuation apart."""
    assert nearest(word, PROTOCOLS) == known


@pytest.mark.parametrize("text", ["mlx5_0", "mlx5_0,mlx5_1", "rocep1s0f0 , mlx5-1.x", "auto-discovery"])
def test_device_names(text: str) -> None:
    """Names and lists of them; the text stays as it is, since Mooncake trims it itself."""
    assert parse_device_name(f" {text} ") == text
    assert re.search(DEVICE_PATTERN, text)


@pytest.mark.parametrize(
    ("raw", "offence", "message"),
    [
        ('["mlx5_0"]', "device-form", "is a list or a map in JSON, which Mooncake takes as one odd device name."),
        ("{0: mlx5_0}", "device-form", "is a list or a map in JSON, which Mooncake takes as one odd device name."),
        (
            "$DEVICE",
            "unexpanded-variable",
            "still holds $DEVICE: single quotes, a JSON file or an env file keep a shell from expanding it.",
        ),
        ("mlx5_0\u200b", "control-character", r"holds the invisible character \u200b (U+200B)."),
        (["mlx5_0"], "wrong-type", "is a list, and this field takes text."),
    ],
)
def test_refused_devices(raw: object, offence: str, message: str) -> None:
    """A damaged list of devices, and one in JSON; the message begins with the value."""
    assert refused(parse_device_name, raw)[:2] == (offence, f"{shown(raw)} {message}")


@pytest.mark.parametrize(
    ("text", "names"),
    [("", ()), (" , ", ()), ("auto-discovery", ()), ("mlx5_0, mlx5_1,", ("mlx5_0", "mlx5_1"))],
)
def test_devices_of(text: str, names: tuple[str, ...]) -> None:
    """The names in a list, as Mooncake trims them; none where it picks."""
    assert devices_of(text) == names


@given(text=edited(device_texts()))
def test_pattern_is_a_list_of_device_names(text: str) -> None:
    """What an editor accepts is what a start-up takes without a word: names, and commas between them."""
    fits = re.search(DEVICE_PATTERN, text) is not None
    assert fits == (text == text.strip() and all(is_device_name(name.strip(" ")) for name in text.split(",")))
    if fits:
        assert parse_device_name(text) == text


@pytest.mark.parametrize("parse", [parse_protocol, parse_device_name])
@given(raw=st.one_of(field_texts(), st.text(), st.integers(), st.none()))
def test_any_value_is_taken_or_refused(parse: Callable[[object], str], raw: object) -> None:
    """Whatever arrives: a value, or a refusal that can be printed and has a way out."""
    assert is_taken_or_refused_well(parse, raw)


@pytest.mark.parametrize("text", ["a," * 2048, "a" * 4096, " ," * 2048, "a " * 2048 + "!", "{{" * 2048])
def test_hostile_text_is_answered_at_once(text: str) -> None:
    """4,096 hostile characters take no noticeable time."""
    for ask in (parse_protocol, parse_device_name, lambda raw: re.search(DEVICE_PATTERN, str(raw))):
        assert seconds_to_answer(ask, text) < 1
