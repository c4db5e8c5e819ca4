"""Why a text is no address: the words, and the way out, which the parser takes."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from parsers import Parse, each_parser
from refusals import refusal_of, refused
from strategies import addresses, endpoints, field_texts, hosts, texts_with_password

from mooncake_config.address_parsers import parse_hostname, parse_master, parse_metadata

NAME_OR_IP = "write a name or an IP that every node reaches, as in 10.0.0.5:50051."
LIST = "separate endpoints by semicolons, each host:port, as in etcd://10.0.0.5:2379;10.0.0.6:2379."
LEASE = "write k8s://LEASE or k8s://NAMESPACE/LEASE, in lower-case letters, digits, '.' and '-'."
REDIS = (
    "write one endpoint and nothing behind it, for example redis://10.0.0.5:6379; "
    "a password goes into MC_REDIS_PASSWORD."
)
BEFORE = "write the host before it, for example 10.0.0.5:50051."
HA = "(host:port), or etcd://host:port for a master in HA mode."
BRACKETS = "put the address in brackets and the port behind:"


@pytest.mark.parametrize(
    ("text", "offence", "message", "fix"),
    [
        ("10.0.0.5", "bad-port", "10.0.0.5 has no port, and Mooncake adds none.", "write 10.0.0.5:50051."),
        ("[fd00::5]", "bad-port", "[fd00::5] has no port, and Mooncake adds none.", "write [fd00::5]:50051."),
        ("h:", "bad-port", "h: ends in nothing, which is no port (1 to 65535).", "write h:50051."),
        ("h:0", "bad-port", "h:0 ends in 0, which is no port (1 to 65535).", "write h:50051."),
        ("h:65536", "bad-port", "h:65536 ends in 65536, which is no port (1 to 65535).", "write h:50051."),
        ("h:050051", "bad-port", "h:050051 ends in 050051, which is no port (1 to 65535).", "write h:50051."),
        ("h:٥", "bad-port", "h:٥ ends in ٥, which is no port (1 to 65535).", "write h:50051."),
        (":50051", "missing-host", ":50051 has no host before the port.", BEFORE),
        ("", "missing-host", "an endpoint has no host before the port.", BEFORE),
        ("50051", "missing-host", "50051 is a port alone, without a host.", BEFORE),
        ("h:1/x", "address-form", "h:1/x holds a path; an address is host:port.", "write h:1."),
        ("u:p@h:1", "address-form", "u:***@h:1 holds a user or password; an address is host:port.",
         "write h:1."),
        ("h:1 i:2", "several-addresses", "h:1 i:2 holds a blank; one address has none, and only one is taken.",
         "keep one, such as h:1."),
        (",h:1", "several-addresses", ",h:1 holds a comma; one address has none, and only one is taken.",
         "keep one, such as h:1."),
        (";", "several-addresses", "; holds a semicolon; one address has none, and only one is taken.",
         "write one address, for example 10.0.0.5:50051."),
        ("*:1", "address-form", "* is a wildcard, which can be listened on but not connected to.", NAME_OR_IP),
        ("[fd00::5:1", "address-form", "[fd00::5:1 opens a bracket and does not close it.", NAME_OR_IP),
        ("[fd00::zz]:1", "address-form", "[fd00::zz] is not an IPv6 address in brackets.", NAME_OR_IP),
        ("a:b:c", "address-form", "a:b:c is neither host:port nor an IPv6 address.", NAME_OR_IP),
        ("-h:1", "address-form", "-h is neither an IP nor a host name.", NAME_OR_IP),
        ("a..b:1", "address-form", "a..b is neither an IP nor a host name.", NAME_OR_IP),
        ("hé:1", "address-form", "hé is not ASCII, and Mooncake looks names up as they stand.", NAME_OR_IP),
        ("a" * 64 + ":1", "address-form",
         f"{'a' * 64} is too long: a host name has 253 characters at most, and 63 between two points.", NAME_OR_IP),
        ("fd00::5:50051", "address-form",
         "fd00::5:50051 is IPv6 without brackets, so its port cannot be told from its last group.",
         f"{BRACKETS} [fd00::5]:50051."),
        ("::1", "address-form", "::1 is IPv6 without brackets, and no port can be told from it.",
         f"{BRACKETS} [::1]:50051."),
        ("fd00::5:0", "address-form", "fd00::5:0 is IPv6 without brackets, and no port can be told from it.",
         f"{BRACKETS} [fd00::5:0]:50051."),
        ("fd00::5:99999", "address-form", "fd00::5:99999 is IPv6 without brackets, and no port can be told from it.",
         f"{BRACKETS} [fd00::5]:50051."),
        ("http://h:1", "unknown-scheme", "http://h:1 has the scheme http; the master is spoken to without one.",
         f"write h:1 {HA}"),
        ("http://u:p/w@h:1/x", "unknown-scheme",
         "http://u:***@h:1/x has the scheme http; the master is spoken to without one.", f"write h:1 {HA}"),
        ("://", "unknown-scheme", ':// has the scheme ""; the master is spoken to without one.',
         "write host:port, for example 10.0.0.5:50051, or etcd://host:port for a master in HA mode."),
        ("ETCD://h:1", "unknown-scheme", "ETCD://h:1 has the scheme ETCD, which Mooncake knows in lower case only.",
         "write etcd://h:1."),
        ("etcd://", "missing-host", "in etcd://: an endpoint has no host before the port.", LIST),
        ("etcd://h:1;", "missing-host", "in etcd://h:1;: an endpoint has no host before the port.", LIST),
        ("etcd://h:1;i", "bad-port", "in etcd://h:1;i: i has no port, and Mooncake adds none.", LIST),
        ("etcd://h:1/x", "address-form", "in etcd://h:1/x: h:1/x holds a path; an address is host:port.", LIST),
        ("etcd://u:p;w@h:1", "address-form",
         "in etcd://u:***@h:1: u:***@h:1 holds a user or password; an address is host:port.", LIST),
        ("etcd://h:1,i:2", "several-addresses",
         "etcd://h:1,i:2 has blanks, commas or schemes between its endpoints; Mooncake splits at semicolons only.",
         "write etcd://h:1;i:2."),
        ("etcd://h:1;http://i:2", "several-addresses",
         "etcd://h:1;http://i:2 has blanks, commas or schemes between its endpoints; "
         "Mooncake splits at semicolons only.",
         "write etcd://h:1;i:2."),
        ("redis://h:1/0", "address-form", "redis://h:1/0 is not a Redis endpoint that Mooncake takes.", REDIS),
        ("redis://:p@h", "address-form", "redis://:***@h is not a Redis endpoint that Mooncake takes.", REDIS),
        ("redis://h;i", "address-form", "redis://h;i is not a Redis endpoint that Mooncake takes.", REDIS),
        ("k8s://Lease", "address-form", "k8s://Lease is not a Kubernetes lease that Mooncake takes.", LEASE),
        ("k8s://a/b/c", "address-form", "k8s://a/b/c is not a Kubernetes lease that Mooncake takes.", LEASE),
    ],
)  # fmt: skip
def test_refused_master(text: str, offence: str, message: str, fix: str) -> None:
    """A master of another form: what is wrong with it, and what to write instead."""
    assert refused(parse_master, text) == (offence, message, fix)


HTTP = "correct it; the form is that of http://10.0.0.5:8080/metadata."
AWAY = "take that away; the form is that of http://10.0.0.5:8080/metadata."
ESCAPES = "write it as %XX: %24 for $, %22 for a quote, %2F for a slash."
CHOICE = "use P2PHANDSHAKE, http://host:port/metadata or etcd://host:port."


@pytest.mark.parametrize(
    ("text", "offence", "message", "fix"),
    [
        ("p2phandshake", "address-form",
         "p2phandshake is taken for etcd, and retried without end: Mooncake knows P2PHANDSHAKE in this case only.",
         "write P2PHANDSHAKE, or leave the field out: it is the default."),
        ("10.0.0.5:8080/metadata", "missing-scheme",
         "10.0.0.5:8080/metadata has no scheme, and Mooncake would take it as etcd and retry without end.",
         "write http://10.0.0.5:8080/metadata for the master's own metadata server, etcd://10.0.0.5:8080 for etcd, or "
         "P2PHANDSHAKE."),
        ("/metadata", "missing-scheme",
         "/metadata has no scheme, and Mooncake would take it as etcd and retry without end.",
         "write P2PHANDSHAKE, or an address with its scheme, for example http://10.0.0.5:8080/metadata."),
        ("ftp://h", "unknown-scheme", "ftp://h has the scheme ftp; Mooncake aborts the process on it (SIGABRT).",
         CHOICE),
        ("://h", "unknown-scheme", '://h has the scheme ""; Mooncake aborts the process on it (SIGABRT).', CHOICE),
        ("Http://h/m", "unknown-scheme", "Http://h/m has the scheme Http; Mooncake aborts the process on it (SIGABRT).",
         "write http://h/m, since schemes are lower case."),
        ("http:///m", "missing-host", "in http:///m: an endpoint has no host before the port.", HTTP),
        ("http://:80/m", "missing-host", "in http://:80/m: :80 has no host before the port.", HTTP),
        ("http://h:0/m", "bad-port", "in http://h:0/m: h:0 ends in 0, which is no port (1 to 65535).", HTTP),
        ("http://fd00::5/m", "address-form",
         "in http://fd00::5/m: fd00::5 is IPv6 without brackets, and no port can be told from it.", HTTP),
        ("http://-h/m", "address-form", "in http://-h/m: -h is neither an IP nor a host name.", HTTP),
        ("http://h/m http://i/m", "several-addresses",
         "http://h/m http://i/m holds a blank; one address has none, and only one is taken.",
         "keep one, such as http://h/m."),
        ("http://h/a,b", "several-addresses",
         "http://h/a,b holds a comma; one address has none, and only one is taken.",
         "keep one, such as http://h/a."),
        ("http://h/m#x", "address-form",
         "http://h/m#x goes on with /m#x behind the host, which Mooncake cannot take.", AWAY),
        ("http://h?x", "address-form", "http://h?x goes on with ?x behind the host, which Mooncake cannot take.", AWAY),
        ("http://h/%zz", "address-form", "http://h/%zz goes on with /%zz behind the host, which Mooncake cannot take.",
         AWAY),
        ("redis://h/0", "address-form", "redis://h/0 goes on with /0 behind the host, which Mooncake cannot take.",
         "take that away; the form is that of redis://10.0.0.5:6379."),
        ("http://u:p/w@h/m", "address-form",
         "the user or password in http://u:***@h/m holds a character that means something else in a URL.", ESCAPES),
        ("http://{u}:p@h/m", "address-form",
         "the user or password in http://{u}:***@h/m holds a character that means something else in a URL.", ESCAPES),
        ("etcd://h", "bad-port", "in etcd://h: h has no port, and Mooncake adds none.", LIST),
    ],
)  # fmt: skip
def test_refused_metadata(text: str, offence: str, message: str, fix: str) -> None:
    """A metadata server on which Mooncake aborts, or hangs, or fails at every look-up."""
    assert refused(parse_metadata, text) == (offence, message, fix)


OWN = "write this node's address on the data network, such as 10.0.0.7."


@pytest.mark.parametrize(
    ("text", "offence", "message", "fix"),
    [
        ("http://h/x", "unknown-scheme", "http://h/x has the scheme http; a hostname has none.", "write h."),
        ("http://u:p/w@h", "unknown-scheme", "http://u:***@h has the scheme http; a hostname has none.", "write h."),
        ("http://", "unknown-scheme", "http:// has the scheme http; a hostname has none.",
         "write the address alone, for example 10.0.0.7."),
        ("10.0.0.7 fd00::7", "several-addresses",
         "10.0.0.7 fd00::7 holds a blank; one address has none, and only one is taken.", "keep one, such as 10.0.0.7."),
        ("h:0", "bad-port", "h:0 ends in 0, which is no port (1 to 65535).", OWN),
        (":12345", "missing-host", ":12345 has no host before the port.", OWN),
        ("fd00::zz", "address-form", "fd00::zz is neither host:port nor an IPv6 address.", OWN),
        ("fe80::1%", "address-form", "fe80::1% is neither host:port nor an IPv6 address.", OWN),
        ("u:p@h", "address-form", "u:***@h holds a user or password; an address is host:port.", OWN),
        ("h/x", "address-form", "h/x is neither an IP nor a host name.", OWN),
        ("*", "address-form", "* is a wildcard, which can be listened on but not connected to.", OWN),
    ],
)  # fmt: skip
def test_refused_hostname(text: str, offence: str, message: str, fix: str) -> None:
    """A hostname that would be advertised and lead nowhere."""
    assert refused(parse_hostname, text) == (offence, message, fix)


@pytest.mark.parametrize(
    ("parse", "text", "proposed"),
    [
        (parse_metadata, "http:/10.0.0.5:8080/metadata", "http://10.0.0.5:8080/metadata"),
        (parse_metadata, "http//10.0.0.5:8080/metadata", "http://10.0.0.5:8080/metadata"),
        (parse_metadata, "etcd:/10.0.0.1:2379", "etcd://10.0.0.1:2379"),
        (parse_metadata, "P2PHANSHAKE", "P2PHANDSHAKE"),
        (parse_metadata, "P2P_HANDSHAKE", "P2PHANDSHAKE"),
        (parse_metadata, "p2p handshake", "P2PHANDSHAKE"),
        (parse_metadata, "10.0.0.5", "etcd://10.0.0.5:2379"),
        (parse_metadata, "http://h: 80/metadata", "http://h:80/metadata"),
        (parse_metadata, "export X=http://h/metadata", "http://h/metadata"),
        (parse_master, "10.0.0.5: 50051", "10.0.0.5:50051"),
        (parse_master, "10.0.0.5,10.0.0.6:50051", "10.0.0.5:50051"),
        (parse_master, "export MOONCAKE_MASTER=10.0.0.5:50051", "10.0.0.5:50051"),
        (parse_master, "10.0.0.1:2379;10.0.0.2:2379", "etcd://10.0.0.1:2379;10.0.0.2:2379"),
        (parse_master, "10.0.0.1:2379,10.0.0.2:2379", "etcd://10.0.0.1:2379;10.0.0.2:2379"),
        (parse_master, "etcd:/10.0.0.1:2379", "etcd://10.0.0.1:2379"),
        (parse_master, "rediss://h:6379", "redis://h:6379"),
        (parse_master, "P2PHANDSHAKE", "10.0.0.5:50051"),
        (parse_master, "50051", "10.0.0.5:50051"),
        (parse_hostname, "http:/10.0.0.7", "10.0.0.7"),
        (parse_hostname, "MOONCAKE_LOCAL_HOSTNAME=10.0.0.7", "10.0.0.7"),
    ],
)
def test_what_was_meant_is_proposed(parse: Parse, text: str, proposed: str) -> None:
    """Where a slip can be undone, the fix has the value that was meant."""
    assert proposed in proposals(refused(parse, text)[2])


def proposals(fix: str) -> list[str]:
    """The values that a fix tells to write: what has a colon, and is no form in words."""
    words = [
        word.rstrip(".,;") for word in fix.split() if ":" in word.rstrip(".,;:") or word.startswith("P2PHANDSHAKE")
    ]
    words += re.findall(r"(?:^write|such as|for example) ([^\s:]*[0-9.]+[^\s:]*)\.(?:$| )", fix)
    return [word for word in words if "host:port" not in word and "LEASE" not in word]


SLIPS = st.sampled_from([
    "{}", "{}/", "{} ", " {}:", "x={}", "export X={}", "{},{}", "{};{}", "{} {}", "http:/{}", "http//{}", "etcd:/{}",
    "HTTP://{}", "ETCD://{}", "rediss://{}", "ftp://{}", "http://{}/a b", '"{}"', "{} # x", "{}:", "{}: 1", "{}/x",
    "u:p@{}", "http:///{}", "redis:{}", "{}?",
])  # fmt: skip


@each_parser
@given(
    text=st.one_of(
        st.builds(lambda slip, one: slip.replace("{}", one), SLIPS, st.one_of(hosts(), endpoints(), addresses())),
        field_texts(),
    )
)
def test_what_a_fix_proposes_is_taken(parse: Parse, pattern: str, text: str) -> None:
    """Whatever value a fix tells to write is taken by the parser that refused, examples included."""
    refusal = refusal_of(parse, text)
    fix = refusal.fix if refusal else ""
    if not re.search("P2PHANDSHAKE is a value of|%XX|…", fix):
        assert [word for word in proposals(fix) if refusal_of(parse, word)] == []


@pytest.mark.parametrize(
    ("text", "offence"),
    [
        ("$H:1", "unexpanded-variable"),
        ("http://h/$PATH", "unexpanded-variable"),
        ("http://u:${PW}@h/metadata", "unexpanded-variable"),
        ("http://h/{{ path }}", "unexpanded-variable"),
        ("http://h/%PATH%", "unexpanded-variable"),
        ("<head>:1", "placeholder"),
        ("http://h/<path>", "placeholder"),
        ('"10.0.0.5:1"', "stray-quotes"),
        ('http://h/metadata"', "stray-quotes"),
        ("10.0.0.5:1 # head", "kept-comment"),
        ("10.0.0.5\x00:1", "control-character"),
        ("http://h/meta\u200bdata", "control-character"),
    ],
)
@each_parser
def test_damage_is_named_in_every_address(parse: Parse, pattern: str, text: str, offence: str) -> None:
    """Damage is told by its own name in any place of any address."""
    assert not re.search(pattern, text)
    assert refused(parse, text)[0] == offence


@each_parser
@given(text=texts_with_password())
def test_no_refusal_shows_a_password(parse: Parse, pattern: str, text: str) -> None:
    """Nothing of a password stands in a refusal, neither in the text nor in a part of it."""
    refusal = refusal_of(parse, text)
    assert refusal is None or "Zq" not in str(refusal)
