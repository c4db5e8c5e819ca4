"""The parsers of addresses take what their forms match, and nothing else, at once."""

from __future__ import annotations

import re
from ipaddress import IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st
from parsers import Parse, each_parser
from refusals import is_taken_or_refused_well, refusal_of, seconds_to_answer
from strategies import addresses, edited, endpoints, field_texts, ipv6_texts

from mooncake_config.address_parsers import parse_hostname, parse_master, parse_metadata
from mooncake_config.addresses import (
    HOSTNAME_PATTERN,
    MASTER_PATTERN,
    ip_of,
)


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (parse_master, "10.0.0.5:50051"),
        (parse_master, "head.example.com:50051"),
        (parse_master, "head_1.:65535"),
        (parse_master, "[2001:db8::102]:50051"),
        (parse_master, "[fe80::1%eth0]:1"),
        (parse_master, "etcd://10.0.0.1:2379"),
        (parse_master, "etcd://10.0.0.1:2379;10.0.0.2:2379;[fd00::3]:2379"),
        (parse_master, "redis://10.0.0.1"),
        (parse_master, "redis://10.0.0.1:6379"),
        (parse_master, "redis://[fd00::1]:6379/"),
        (parse_master, "k8s://mooncake-master"),
        (parse_master, "k8s://namespace/mooncake-master"),
        (parse_metadata, "P2PHANDSHAKE"),
        (parse_metadata, "http://10.0.0.5:8080/metadata"),
        (parse_metadata, "https://head/metadata"),
        (parse_metadata, "http://user:pa%2Fss@[fd00::5]:8080/metadata"),
        (parse_metadata, "http://user:a$1!@b@10.0.0.5"),
        (parse_metadata, "http://10.0.0.5:8080/a/b%20c?d=(e)&f=1"),
        (parse_metadata, "etcd://10.0.0.5:2379;10.0.0.6:2379"),
        (parse_metadata, "redis://:secret@10.0.0.5:6379/"),
        (parse_hostname, "10.0.0.7"),
        (parse_hostname, "10.0.0.7:12345"),
        (parse_hostname, "node-7"),
        (parse_hostname, "::1"),
        (parse_hostname, "[::1]"),
        (parse_hostname, "[::1]:12345"),
        (parse_hostname, "fe80::1%eth0"),
        (parse_hostname, "fe80::1%eth0:12345"),
        (parse_hostname, "a" * 63 + "." + "b" * 63),
    ],
)
def test_forms_that_mooncake_takes(parse: Parse, text: str) -> None:
    """Each form of the client's sources is taken as it stands, blanks around it apart."""
    assert parse(text) == parse(f" {text}\n") == text


@each_parser
@given(text=st.one_of(edited(addresses()), edited(endpoints()), field_texts()))
def test_parser_takes_what_its_pattern_matches(parse: Parse, pattern: str, text: str) -> None:
    """A parser takes exactly what the pattern matches that an editor has, blanks around it apart."""
    assert (refusal_of(parse, text) is None) == bool(re.search(pattern, text.strip()))


@each_parser
@given(raw=st.one_of(edited(addresses()), edited(endpoints()), field_texts(), st.text(), st.integers(), st.none()))
def test_any_value_is_taken_or_refused(parse: Parse, pattern: str, raw: object) -> None:
    """Whatever arrives: a value, or a refusal that can be printed and has a way out."""
    assert is_taken_or_refused_well(parse, raw)


def is_ipv6(text: str) -> bool:
    """Whether Python's ipaddress takes a text without a zone as IPv6."""
    try:
        return isinstance(ip_address(text), IPv6Address)
    except ValueError:
        return False


@given(text=st.one_of(ipv6_texts(), edited(ipv6_texts())).map(lambda text: text.replace("%", "")))
def test_ipv6_is_what_ipaddress_says(text: str) -> None:
    """Between brackets stands what Python's ipaddress takes as IPv6, in every form of RFC 4291."""
    assert bool(re.search(MASTER_PATTERN, f"[{text}]:1")) == is_ipv6(text)
    if text.count(":") > 1 and "[" not in text:
        assert bool(re.search(HOSTNAME_PATTERN, text)) == is_ipv6(text)


@pytest.mark.parametrize("count", range(10))
@pytest.mark.parametrize("gap", range(-1, 10))
@pytest.mark.parametrize("tail", ["", "1.2.3.4"])
def test_ipv6_of_every_shape(count: int, gap: int, tail: str) -> None:
    """Any number of words, a :: in any place, with and without an IPv4 tail: as ipaddress says."""
    words = [*["a"] * count, *([tail] if tail else [])]
    text = ":".join(words) if gap < 0 else ":".join(words[:gap]) + "::" + ":".join(words[gap:])
    assert bool(re.search(MASTER_PATTERN, f"[{text}]:1")) == is_ipv6(text)


@given(port=st.integers(-1, 70000))
def test_ports(port: int) -> None:
    """A port is a number of 1 to 65535 without zeros in front."""
    assert (refusal_of(parse_master, f"h:{port}") is None) == (1 <= port <= 65535)
    assert refusal_of(parse_master, f"h:0{port}") is not None


@pytest.mark.parametrize(
    "text",
    ["a-" * 2048, "a." * 2048, "1:" * 2048, "[" * 4096, ":" * 4096, "a:1;" * 1024, "f" * 4096, "1." * 2048, "@" * 4096,
     "http://" + "a@" * 2044, "http://" + "$" * 4089, "etcd://" + "a:1;" * 1022, "http://h/" + "%4" * 2043,
     "http://" + "a:" * 2044, "k8s://" + "a/" * 2044, "0x" + "f" * 4094, "::" + ":1" * 2047, "://" * 1365],
)  # fmt: skip
@each_parser
def test_hostile_text_is_answered_at_once(parse: Parse, pattern: str, text: str) -> None:
    """4,096 hostile characters take no noticeable time, with whatever they end."""
    for end in ("", "!", "@", "]"):
        assert seconds_to_answer(parse, text[: 4096 - len(end)] + end) < 1
    assert seconds_to_answer(lambda raw: ip_of(str(raw)), text) < 1
