"""The forms of addresses: their parts, and where they lead."""

from __future__ import annotations

import socket
from ipaddress import IPv4Address
from urllib.parse import urlsplit

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from refusals import refusal_of
from strategies import endpoints, hosts

from mooncake_config.address_parsers import parse_hostname
from mooncake_config.addresses import (
    MASTER_PATTERN,
    METADATA_PATTERN,
    Endpoint,
    endpoints_of,
    hosts_of,
    ip_of,
    is_loopback,
    is_wildcard,
    scheme_of,
    split_endpoint,
)


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [
        ("10.0.0.7", Endpoint("10.0.0.7", None)),
        ("node-7:12345", Endpoint("node-7", 12345)),
        ("fd00::7", Endpoint("fd00::7", None)),
        ("[fd00::7]", Endpoint("fd00::7", None)),
        ("[fd00::7]:12345", Endpoint("fd00::7", 12345)),
        ("fe80::1%eth0", Endpoint("fe80::1%eth0", None)),
        ("fe80::1%eth0:12345", Endpoint("fe80::1%eth0", 12345)),
        ("[fe80::1%eth0]:12345", Endpoint("fe80::1%eth0", 12345)),
        ("?]", Endpoint("?]", None)),
        ("a:b", Endpoint("a:b", None)),
    ],
)
def test_split_endpoint(text: str, endpoint: Endpoint) -> None:
    """Host and port of every form of a hostname; what is no endpoint is a host."""
    assert split_endpoint(text) == endpoint


@given(text=st.one_of(hosts(), endpoints()))
def test_split_and_joined_is_the_same_place(text: str) -> None:
    """An endpoint that is split and written again is the same endpoint."""
    assume(refusal_of(parse_hostname, text) is None)
    endpoint = split_endpoint(text)
    assert parse_hostname(str(endpoint))
    assert split_endpoint(str(endpoint)) == endpoint
    assert endpoint.port is None or text.endswith(f":{endpoint.port}")


@pytest.mark.parametrize(
    ("address", "hosts_in_it", "scheme"),
    [
        ("P2PHANDSHAKE", [], None),
        ("k8s://ns/lease", [], "k8s"),
        ("10.0.0.5:50051", ["10.0.0.5"], None),
        ("etcd://10.0.0.1:2379;[fd00::2]:2379", ["10.0.0.1", "fd00::2"], "etcd"),
        ("http://u:p@10.0.0.5:8080/metadata", ["10.0.0.5"], "http"),
        ("http://127.0.0.1:8080/metadata?x=http://10.0.0.5", ["127.0.0.1"], "http"),
        ("redis://:p@h", ["h"], "redis"),
        ("", [""], None),
    ],
)
def test_hosts_of(address: str, hosts_in_it: list[str], scheme: str | None) -> None:
    """The hosts that an address leads to, and no other that stands in it."""
    assert list(hosts_of(address)) == hosts_in_it
    assert scheme_of(address) == scheme


@given(text=st.one_of(st.from_regex(METADATA_PATTERN), st.from_regex(MASTER_PATTERN)))
def test_hosts_are_those_of_urllib(text: str) -> None:
    """Of every URL that is taken, host and port are what Python's own URL parser finds."""
    scheme = scheme_of(text)
    found = endpoints_of(text)
    if scheme in ("http", "https", "redis"):
        parts = urlsplit(text)
        assert [(e.host.lower(), e.port) for e in found] == [((parts.hostname or "").lower(), parts.port)]
    elif scheme != "k8s" and text != "P2PHANDSHAKE":
        assert all(endpoint.host and endpoint.port for endpoint in found)


@pytest.mark.parametrize(
    ("host", "ip"),
    [
        ("127.1", "127.0.0.1"),
        ("0x7f000001", "127.0.0.1"),
        ("0X7F.1", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("017700000001", "127.0.0.1"),
        ("0000000000000000000000177.0.0.1", "127.0.0.1"),
        ("10.0.513", "10.0.2.1"),
        ("0", "0.0.0.0"),
        ("10.0.0.5.", "10.0.0.5"),
        ("::ffff:127.0.0.1", "127.0.0.1"),
        ("[::1]", "::1"),
        ("fe80::1%eth0", "fe80::1"),
        ("node-7", None),
        ("08.0.0.1", None),
        ("0o7", None),
        ("0x", None),
        ("1_0", None),
        ("256.1.1.1", None),
        ("1.2.3.4.5", None),
        ("4294967296", None),
        ("١.1.1.1", None),
        ("9" * 5000, None),
        ("", None),
    ],
)
def test_ip_of(host: str, ip: str | None) -> None:
    """The IP that a host spells in any form of the C library; an IPv4 address inside IPv6 is that address."""
    found = ip_of(host)
    assert (str(found) if found else None) == ip


NUMBERS = st.one_of(
    st.integers(0, 300), st.integers(0, 2**33), st.sampled_from([0, 127, 255, 256, 2**16 - 1, 2**24, 2**32 - 1])
)
SPELT = st.builds(lambda n, form: form.format(n), NUMBERS, st.sampled_from(["{}", "0x{:x}", "0X{:X}", "0{:o}", "00{}"]))


@given(parts=st.lists(SPELT, min_size=1, max_size=5))
def test_numbers_are_those_of_the_c_library(parts: list[str]) -> None:
    """What inet_aton reads is read alike, and whether it is loopback; what it does not read is no IP."""
    text = ".".join(parts)
    try:
        expected = IPv4Address(socket.inet_aton(text))
    except OSError:
        expected = None
    assert ip_of(text) == expected
    assert is_loopback(text) == (expected is not None and expected.is_loopback)


@pytest.mark.parametrize(
    "host",
    ["localhost", "LocalHost", "localhost.", "localhost.localdomain", "localhost6", "localhost4.localdomain4",
     "a.localhost", "ip6-localhost", "ip6-loopback", "loopback", "127.0.0.1", "127.255.255.254",
     "127.0.1.1", "127.1", "0x7f000001",
     "::1", "0:0:0:0:0:0:0:1", "[::1]", "::1%lo", "::ffff:127.0.0.1", "::FFFF:7f00:1"],
)  # fmt: skip
def test_loopback(host: str) -> None:
    """All of 127/8, ::1, localhost and its kin, in every spelling."""
    assert is_loopback(host)
    assert not is_wildcard(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "[::]", "0", "0x0", "0.0", "::ffff:0.0.0.0", "0:0:0:0:0:0:0:0"])
def test_wildcard(host: str) -> None:
    """The addresses that mean every address of a host."""
    assert is_wildcard(host)
    assert not is_loopback(host)


@pytest.mark.parametrize(
    "host", ["10.0.0.5", "localhost.example.com", "128.0.0.1", "fd00::1", "::2", "notlocalhost", "", "127"]
)
def test_neither_loopback_nor_wildcard(host: str) -> None:
    """Addresses that may be reached from elsewhere, as far as their text tells."""
    assert not is_loopback(host)
    assert not is_wildcard(host)
