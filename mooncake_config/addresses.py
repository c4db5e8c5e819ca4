"""Addresses: the forms of master, metadata server and hostname that Mooncake's client can take.

Each form is one regular expression. A parser accepts exactly what its expression matches, and the JSON Schema holds
the same expression, so an editor and a start-up agree. Only when it fails is the text looked at for the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from ipaddress import IPv4Address, IPv4Network, IPv6Address
from typing import NamedTuple

from mooncake_config.damage import refuse_damage, text_of, whole
from mooncake_config.display import masked, shown
from mooncake_config.findings import Malformed

P2P = "P2PHANDSHAKE"
MASTER_EXAMPLE = "10.0.0.5:50051"
HOSTNAME_EXAMPLE = "10.0.0.7"
METADATA_EXAMPLE = P2P

IPAddress = IPv4Address | IPv6Address


def _ipv6_pattern() -> str:
    """The text forms of RFC 4291: eight words, or fewer and one ``::``; an IPv4 tail stands for two words."""
    word, some_word = "[0-9A-Fa-f]{1,4}", "[0-9A-Fa-f]*"
    octet = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
    ipv4 = rf"(?:{octet}\.){{3}}{octet}"
    complete = [rf"(?:{word}:){{7}}{word}", rf"(?:{word}:){{6}}{ipv4}"]
    open_ended = ["::", rf"(?:{word}:){{1,7}}:", rf":(?::{word}){{1,7}}", rf"::(?:{word}:){{0,5}}{ipv4}"]
    # With words on both sides of the :: there are as many as colons; with an IPv4 tail one more.
    between = [
        rf"(?!(?:{some_word}:){{8}})(?:{word}:)+(?::{word})+",
        rf"(?!(?:{some_word}:){{7}})(?:{word}:)+(?::{word})*:{ipv4}",
    ]
    return "(?:" + "|".join(complete + open_ended + between) + ")"


_PORT = r"(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_NAME = rf"(?![A-Za-z0-9_.-]{{254}}){_LABEL}(?:\.{_LABEL})*\.?"
_ZONE = r"%[A-Za-z0-9_.-]{1,32}"
_BARE_IPV6 = _ipv6_pattern()
_IPV6 = rf"{_BARE_IPV6}(?:{_ZONE})?"
_HOST = rf"(?:{_NAME}|\[{_IPV6}\])"
_ENDPOINT = rf"{_HOST}:{_PORT}"
_AUTHORITY = rf"{_HOST}(?::{_PORT})?"
# RFC 3986, and '@' as curl takes it; less what shows that something was never expanded: $NAME, ${NAME}, %NAME%.
_USERINFO = r"(?:(?:[A-Za-z0-9._~!&'()*+,;=:@-]|\$(?![A-Za-z_{(])|%[0-9A-Fa-f]{2})*@)?"
_PATH = r"(?:/(?:[A-Za-z0-9._~!&()*+=:@/?-]|%[0-9A-Fa-f]{2})*)?"


def _master_pattern(host: str) -> str:
    endpoint, authority = rf"{host}:{_PORT}", rf"{host}(?::{_PORT})?"
    etcd = rf"(?:etcd://(?:{endpoint};)*)?{endpoint}"
    return whole(rf"{etcd}|redis://{authority}/?|k8s://[a-z0-9.-]+(?:/[a-z0-9.-]+)?")


def _metadata_pattern(host: str) -> str:
    endpoint, authority = rf"{host}:{_PORT}", rf"{_USERINFO}{host}(?::{_PORT})?"
    return whole(rf"{P2P}|etcd://(?:{endpoint};)*{endpoint}|https?://{authority}{_PATH}|redis://{authority}/?")


MASTER_PATTERN = _master_pattern(_HOST)
# Mooncake takes an IPv6 address with a zone and a port also without brackets.
HOSTNAME_PATTERN = whole(rf"{_AUTHORITY}|{_BARE_IPV6}(?:{_ZONE}(?::{_PORT})?)?")
METADATA_PATTERN = _metadata_pattern(_HOST)

# The same for texts without IPv6. Compiling that grammar costs more than all else here, so it waits until it is needed.
_PLAIN_MASTER = _master_pattern(_NAME)
_PLAIN_HOSTNAME = whole(rf"{_NAME}(?::{_PORT})?")
_PLAIN_METADATA = _metadata_pattern(_NAME)

_PARTS = re.compile(
    r"(?:\[(?P<inner>[^\]]*)\]|(?P<ipv6>[^%:]*:[^%:]*:[^%]*(?:%[^:]*)?)|(?P<name>[^:]*))(?::(?P<port>[0-9]+))?"
)


class Reach(Enum):
    """Who can be reached by a host, as far as its text alone tells."""

    ORDINARY = "a host, or a name that only a resolver knows"
    LOOPBACK = "the machine itself"
    WILDCARD = "nobody: a server listens on it"
    LINK_LOCAL = "one wire"
    BRIDGE = "containers of one machine: Docker's default bridge, which every machine has"
    SEVERAL = "several hosts at once: multicast and broadcast"


class Endpoint(NamedTuple):
    """A host (a name or an IP, without brackets) and a port, None where the form has none."""

    host: str
    port: int | None

    @property
    def is_plain(self) -> bool:
        """Whether it is an ordinary IPv4 address in its usual form, at which nothing is odd."""
        return _PLAIN.fullmatch(self.host) is not None

    @property
    def reach(self) -> Reach:
        """Who can be reached by it."""
        return Reach.ORDINARY if self.is_plain else _reach_of(self.host)

    @property
    def ip(self) -> IPAddress | None:
        """The IP that the host spells, None for a name."""
        return ip_of(self.host)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port is None else f"{host}:{self.port}"


def parse_master(raw: object) -> str:
    """A master address: ``host:port``, ``[v6]:port``, ``etcd://h:p;h:p``, ``redis://h[:p]``, ``k8s://[ns/]lease``.

    Source: client_service.cpp and ha_types.h of Mooncake; schemes are lower case there and the port is never added.

    Raises:
        Malformed: any other form.
    """
    text = text_of(raw, MASTER_EXAMPLE)
    if re.match(MASTER_PATTERN if "[" in text else _PLAIN_MASTER, text):
        return text
    raise _why_not_master(text)


def parse_metadata(raw: object) -> str:
    """A metadata server: ``P2PHANDSHAKE``, ``http(s)://host[:port]/path``, ``etcd://h:p;…`` or ``redis://…``.

    Source: transfer_metadata_plugin.cpp; an unknown scheme aborts the process, a missing one is taken as etcd.

    Raises:
        Malformed: any other form.
    """
    text = text_of(raw, METADATA_EXAMPLE)
    if text == P2P or re.match(METADATA_PATTERN if "[" in text else _PLAIN_METADATA, text):
        return text
    raise _why_not_metadata(text)


def parse_hostname(raw: object) -> str:
    """A name or an IP, with or without a port: ``10.0.0.7``, ``node-7:12345``, ``fd00::7``, ``[fd00::7]:12345``.

    Source: common.h of Mooncake's transfer engine (IPv6 since v0.3.12).

    Raises:
        Malformed: any other form.
    """
    text = text_of(raw, HOSTNAME_EXAMPLE)
    if re.match(HOSTNAME_PATTERN if "[" in text or text.count(":") > 1 else _PLAIN_HOSTNAME, text):
        return text
    raise _why_not_hostname(text)


def split_endpoint(text: str) -> Endpoint:
    """Host and port of one endpoint that a parser above has accepted."""
    host, colon, port = text.partition(":")
    if "[" not in host and (port.isdigit() or not colon):
        return Endpoint(host, int(port) if port else None)
    match = _PARTS.fullmatch(text)
    if match is None:
        return Endpoint(text, None)
    host = match["inner"] or match["ipv6"] or match["name"] or ""
    return Endpoint(host, int(match["port"]) if match["port"] else None)


def endpoints_of(address: str) -> tuple[Endpoint, ...]:
    """The endpoints inside an accepted address. None for ``P2PHANDSHAKE`` and for a Kubernetes lease."""
    if "://" not in address:
        return () if address == P2P else (split_endpoint(address),)
    scheme, _, rest = address.partition("://")
    if scheme == "k8s":
        return ()
    return tuple(split_endpoint(part) for part in rest.partition("/")[0].rpartition("@")[2].split(";"))


def hosts_of(address: str) -> Iterator[str]:
    """The hosts inside an accepted address."""
    return (endpoint.host for endpoint in endpoints_of(address))


def scheme_of(address: str) -> str | None:
    """The scheme of an address, or None."""
    scheme, separator, _ = address.partition("://")
    return scheme if separator else None


def ip_of(host: str) -> IPAddress | None:
    """The IP that a host spells, also in the forms that the C library takes: ``127.1``, ``0x7f000001``, ``2130706433``.

    An IPv4 address inside IPv6 (``::ffff:127.0.0.1``) is that IPv4 address.
    """
    bare = host.rstrip(".")
    try:
        if ":" in bare:
            ip = IPv6Address(bare.strip("[]").partition("%")[0])
            return ip.ipv4_mapped or ip
        return IPv4Address(bare) if bare[:1].isdigit() else None
    except ValueError:
        return _inet_aton(bare)


def _inet_aton(text: str) -> IPv4Address | None:
    """One to four numbers, decimal, octal or hexadecimal; the last fills what is left."""
    parts = text.split(".")
    try:
        numbers = [_c_integer(part) for part in parts]
    except ValueError:
        return None
    *heads, last = numbers
    if len(parts) > 4 or any(n > 255 for n in heads) or last >= 256 ** (4 - len(heads)):
        return None
    return IPv4Address(sum(n << 8 * (3 - i) for i, n in enumerate(heads)) + last)


_C_NUMBER = re.compile(r"(?P<hex>0[xX][0-9A-Fa-f]+)|(?P<octal>0[0-7]*)|(?P<decimal>[1-9][0-9]*)")


def _c_integer(text: str) -> int:
    """A number as C's ``strtoul`` reads it. Raises ``ValueError`` for another text, and for one of endless length."""
    match = _C_NUMBER.fullmatch(text)
    if match is None:
        raise ValueError(text)
    return int(text, 16 if match["hex"] else 8 if match["octal"] else 10)


_LOOPBACK_NAMES = {
    *("localhost", "localhost.localdomain", "loopback", "ip6-localhost", "ip6-loopback"),
    *("localhost4", "localhost6", "localhost4.localdomain4", "localhost6.localdomain6"),
}


def is_loopback(host: str) -> bool:
    """Whether a host, by its text alone, reaches only the machine that uses it."""
    return Endpoint(host, None).reach is Reach.LOOPBACK


def is_wildcard(host: str) -> bool:
    """Whether a host is the address to *listen* on everywhere, which nobody can connect to from elsewhere."""
    return Endpoint(host, None).reach is Reach.WILDCARD


def _reach_of(host: str) -> Reach:
    ip = ip_of(host)
    if ip is None:
        name = host.lower().rstrip(".")
        return Reach.LOOPBACK if name in _LOOPBACK_NAMES or name.endswith(".localhost") else Reach.ORDINARY
    if ip.is_loopback or ip.is_unspecified:
        return Reach.LOOPBACK if ip.is_loopback else Reach.WILDCARD
    if ip.is_multicast or int(ip) == 0xFFFFFFFF:
        return Reach.SEVERAL
    if isinstance(ip, IPv4Address) and ip in _CONTAINER_BRIDGE:
        return Reach.BRIDGE
    return Reach.LINK_LOCAL if ip.is_link_local else Reach.ORDINARY


_CONTAINER_BRIDGE = IPv4Network("172.17.0.0/16")
# Most addresses of most jobs are told by one match, at every start; what this does not know is looked at closely.
_PLAIN = re.compile(
    r"(?!127|169|172)(?:1[0-9]{2}|2[01][0-9]|22[0-3]|[1-9][0-9]?)(?:\.(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])){3}"
)


# Why a text was refused. ``said`` is the text with its password masked, so that every part of it may be shown. What a
# fix tells to write is taken by the parser that refused, or it is called an example.


@dataclass(frozen=True)
class _Asked:
    """The field that refuses: the pattern of what it takes, and an example."""

    pattern: str
    example: str

    def takes(self, text: str) -> bool:
        return re.match(self.pattern, text) is not None

    def first(self, *texts: str) -> str | None:
        """The first text that the field takes."""
        return next(filter(self.takes, texts), None)

    def way(self, *texts: str) -> str:
        """What to write: the first text that is taken, else the example, as one."""
        found = self.first(*texts)
        return f"write {shown(found)}." if found else f"write the address alone, for example {self.example}."


_MASTER = _Asked(MASTER_PATTERN, MASTER_EXAMPLE)
_METADATA = _Asked(METADATA_PATTERN, METADATA_EXAMPLE)
_HOSTNAME = _Asked(HOSTNAME_PATTERN, HOSTNAME_EXAMPLE)
_ASSIGNMENT = r"(?:(?:export|set|env)\s+)?[A-Za-z_][A-Za-z0-9_]*=(?P<value>.*)"
_HALF_SCHEME = r"(?P<scheme>https?|etcd|redis|k8s)(?::?/+|:(?=[A-Za-z0-9.-]+:))(?P<rest>.*)"


def _refuse_wrapping(said: str, asked: _Asked) -> None:
    """An assignment instead of its value, and a scheme that lacks a sign, or has one too many."""
    assignment = re.fullmatch(_ASSIGNMENT, said)
    if assignment:
        message = f"{shown(said)} is a whole assignment, and the value is what stands behind its equals sign."
        raise Malformed("address-form", message, asked.way(assignment["value"].strip("\"'")))
    half = None if "://" in said else re.fullmatch(_HALF_SCHEME, said)
    if half and not said.partition(":")[2].isdigit():
        meant = f"{half['scheme']}://{half['rest'].lstrip('/')}"
        message = f"{shown(said)} has no :// behind its scheme, so it is none."
        bare = half["rest"].partition("/")[0]
        raise Malformed("address-form", message, asked.way(meant, bare, f"{meant.rstrip('/')}/metadata"))


def _why_not_master(text: str) -> Malformed:
    refuse_damage(text, MASTER_EXAMPLE, parse_master)
    said = masked(text)
    if _is_p2p(said):
        message = f"{shown(said)} is a way to do without a metadata server; the master is an address."
        fix = f"write host:port of the master, for example {MASTER_EXAMPLE}; {P2P} is a value of metadata_server."
        return Malformed("address-form", message, fix)
    _refuse_wrapping(said, _MASTER)
    scheme, separator, rest = said.partition("://")
    if separator:
        return _why_not_ha_master(said, scheme, rest)
    _refuse_several(said, _MASTER)
    return _why_not_endpoint(said, MASTER_EXAMPLE)


def _is_p2p(said: str) -> bool:
    """Whether a text is P2PHANDSHAKE with a slip, or short for it."""
    letters = re.sub(r"[\s_-]", "", said.lower())
    if letters in ("p2p", P2P.lower()):
        return True
    if not letters.isalnum() or not 8 < len(letters) < 20:
        return False
    from difflib import SequenceMatcher  # only a mistake needs it

    return SequenceMatcher(None, letters, P2P.lower()).ratio() > 0.8


def _refuse_several(said: str, asked: _Asked) -> None:
    """Blanks, commas and semicolons: mostly two addresses in one."""
    for separator, name in ((" ", "a blank"), (",", "a comma"), (";", "a semicolon")):
        if separator in said:
            message = f"{shown(said)} holds {name}; one address has none, and only one is taken."
            raise Malformed("several-addresses", message, _way_out_of_several(said, asked))


def _way_out_of_several(said: str, asked: _Asked) -> str:
    tight = re.sub(r"\s*([:/])\s*", r"\1", said)
    if asked.takes(tight):
        return f"write it without blanks: {shown(tight)}."
    parts = [part for part in re.split(r"[ ,;]+", said) if part]
    cluster = f"etcd://{';'.join(parts)}"
    if asked.takes(cluster) and len(parts) > 1 and (";" in said or all(part.endswith(":2379") for part in parts)):
        return f"write {shown(cluster)} if these are the endpoints of etcd; else keep one."
    port = next((part.rpartition(":")[2] for part in parts if re.fullmatch(_ENDPOINT, part)), "")
    first = next((one for part in parts if (one := asked.first(part, f"{part}:{port}"))), None)
    return f"keep one, such as {shown(first)}." if first else f"write one address, for example {asked.example}."


def _why_not_ha_master(said: str, scheme: str, rest: str) -> Malformed:
    lower = scheme.lower()
    if lower in ("etcd", "redis", "k8s") and scheme != lower:
        message = f"{shown(said)} has the scheme {shown(scheme)}, which Mooncake knows in lower case only."
        way = _MASTER.first(f"{lower}://{rest}")
        fix = f"write {shown(way)}." if way else f"write {lower} in lower case, for example etcd://10.0.0.5:2379."
        return Malformed("unknown-scheme", message, fix)
    if scheme == "etcd":
        return _why_not_etcd(said, rest)
    if scheme == "redis":
        fix = (
            "write one endpoint and nothing behind it, for example redis://10.0.0.5:6379; "
            "a password goes into MC_REDIS_PASSWORD."
        )
        return Malformed("address-form", f"{shown(said)} is not a Redis endpoint that Mooncake takes.", fix)
    if scheme == "k8s":
        fix = "write k8s://LEASE or k8s://NAMESPACE/LEASE, in lower-case letters, digits, '.' and '-'."
        return Malformed("address-form", f"{shown(said)} is not a Kubernetes lease that Mooncake takes.", fix)
    bare = _host_port_of(rest)
    if lower in ("rediss", "etcds", "kubernetes"):
        known = {"rediss": "redis", "etcds": "etcd", "kubernetes": "k8s"}[lower]
        message = f"{shown(said)} has the scheme {shown(scheme)}, which Mooncake does not know."
        example = {"redis": "redis://10.0.0.5:6379", "etcd": "etcd://10.0.0.5:2379", "k8s": "k8s://mooncake-master"}[
            known
        ]
        return Malformed(
            "unknown-scheme", message, _Asked(MASTER_PATTERN, example).way(f"{known}://{rest}", f"{known}://{bare}")
        )
    found = _MASTER.first(bare)
    way = f"write {shown(found)} (host:port)" if found else f"write host:port, for example {MASTER_EXAMPLE}"
    return Malformed(
        "unknown-scheme",
        f"{shown(said)} has the scheme {_scheme_shown(scheme)}; the master is spoken to without one.",
        f"{way}, or etcd://host:port for a master in HA mode.",
    )


def _host_port_of(rest: str) -> str:
    """What stands between a scheme and a path, less user and password."""
    return re.split(r"[/?#]", rest, maxsplit=1)[0].rpartition("@")[2]


def _scheme_shown(scheme: str) -> str:
    return shown(scheme) or '""'


def _why_not_etcd(said: str, rest: str) -> Malformed:
    endpoint = next((part for part in rest.split(";") if not re.fullmatch(_ENDPOINT, part)), "")
    fix = "separate endpoints by semicolons, each host:port, as in etcd://10.0.0.5:2379;10.0.0.6:2379."
    if re.search("[, ]|://", endpoint):
        listed = ";".join(part.rpartition("://")[2] for part in re.split("[;, ]+", rest) if part)
        message = (
            f"{shown(said)} has blanks, commas or schemes between its endpoints; Mooncake splits at semicolons only."
        )
        way = _MASTER.first(f"etcd://{listed}")
        return Malformed("several-addresses", message, f"write {shown(way)}." if way else fix)
    why = _why_not_endpoint(endpoint, "10.0.0.5:2379")
    return Malformed(why.offence, f"in {shown(said)}: {why.message}", fix)


def _why_not_endpoint(said: str, example: str) -> Malformed:
    """Why a text is not host:port."""
    host, colon, port = said.rpartition(":")
    usual = example.rpartition(":")[2]
    if re.fullmatch(_IPV6, said) or re.fullmatch(_IPV6, host):
        return _why_not_bare_ipv6(said, usual)
    if not host and (colon or not said):
        message = f"{shown(said) or 'an endpoint'} has no host before the port."
        return Malformed("missing-host", message, f"write the host before it, for example {example}.")
    if re.fullmatch(_PORT, said):
        message = f"{shown(said)} is a port alone, without a host."
        return Malformed("missing-host", message, f"write the host before it, for example {example}.")
    for mark, what in (("/", "a path"), ("@", "a user or password")):
        if mark in said:
            message = f"{shown(said)} holds {what}; an address is host:port."
            return Malformed("address-form", message, _Asked(MASTER_PATTERN, example).way(_host_port_of(said)))
    name = host if said.count(":") == 1 or host.endswith("]") else said
    if not re.fullmatch(_HOST, name):
        return _why_not_host(name, example)
    if name == said:
        return Malformed(
            "bad-port", f"{shown(said)} has no port, and Mooncake adds none.", f"write {shown(said)}:{usual}."
        )
    message = f"{shown(said)} ends in {shown(port) or 'nothing'}, which is no port (1 to 65535)."
    return Malformed("bad-port", message, f"write {shown(host)}:{usual}.")


def _why_not_bare_ipv6(said: str, usual_port: str) -> Malformed:
    """IPv6 without brackets: whether its last group is meant as a port cannot be told, or there is none."""
    host, _, port = said.rpartition(":")
    if re.fullmatch(_IPV6, host) and re.fullmatch(_PORT, port):
        why, form = "so its port cannot be told from its last group", f"[{host}]:{port}"
    else:
        address = said if re.fullmatch(_IPV6, said) else host
        why, form = "and no port can be told from it", f"[{address}]:{usual_port}"
    message = f"{shown(said)} is IPv6 without brackets, {why}."
    return Malformed("address-form", message, f"put the address in brackets and the port behind: {form}.")


def _why_not_host(host: str, example: str) -> Malformed:
    if host == "*":
        why = "is a wildcard, which can be listened on but not connected to"
    elif "[" in host and "]" not in host:
        why = "opens a bracket and does not close it"
    elif "[" in host or "]" in host:
        why = "is not an IPv6 address in brackets"
    elif ":" in host:
        why = "is neither host:port nor an IPv6 address"
    elif not host.isascii():
        why = "is not ASCII, and Mooncake looks names up as they stand"
    elif len(host) > 253 or max(map(len, host.split("."))) > 63:
        why = "is too long: a host name has 253 characters at most, and 63 between two points"
    else:
        why = "is neither an IP nor a host name"
    fix = f"write a name or an IP that every node reaches, as in {example}."
    return Malformed("address-form", f"{shown(host)} {why}.", fix)


def _why_not_host_port(said: str, example: str) -> Malformed:
    """Why a text is not host or host:port."""
    return _why_not_endpoint(said, example) if not said or ":" in said else _why_not_host(said, example)


def _why_not_metadata(text: str) -> Malformed:
    refuse_damage(text, METADATA_EXAMPLE, parse_metadata)
    said = masked(text)
    if said.upper() == P2P:
        message = f"{shown(said)} is taken for etcd, and retried without end: Mooncake knows {P2P} in this case only."
        return Malformed("address-form", message, f"write {P2P}, or leave the field out: it is the default.")
    if _is_p2p(said):
        message = f"{shown(said)} is taken for etcd, and retried without end: Mooncake knows {P2P} alone."
        return Malformed("address-form", message, f"write {P2P}, or leave the field out: it is the default.")
    _refuse_wrapping(said, _METADATA)
    scheme, separator, rest = said.partition("://")
    if not separator:
        return _why_no_scheme(said)
    if scheme == "etcd":
        return _why_not_etcd(said, rest)
    if scheme in ("http", "https", "redis"):
        return _why_not_url(said, scheme, rest)
    fix = f"use {P2P}, http://host:port/metadata or etcd://host:port."
    way = _METADATA.first(f"{scheme.lower()}://{rest}")
    if way:
        fix = f"write {shown(way)}, since schemes are lower case."
    message = f"{shown(said)} has the scheme {_scheme_shown(scheme)}; Mooncake aborts the process on it (SIGABRT)."
    return Malformed("unknown-scheme", message, fix)


def _why_no_scheme(said: str) -> Malformed:
    _refuse_several(said, _METADATA)
    bare = _host_port_of(said)
    by_port = re.fullmatch(_ENDPOINT, bare) is not None
    http, etcd = (bare, bare) if by_port else (f"{bare}:8080", f"{bare}:2379")
    fix = f"write {P2P}, or an address with its scheme, for example http://10.0.0.5:8080/metadata."
    if re.fullmatch(_HOST, bare) or by_port:
        usual = "" if by_port else " (their usual ports)"
        fix = (
            f"write http://{http}/metadata for the master's own metadata server, "
            f"etcd://{etcd} for etcd{usual}, or {P2P}."
        )
    message = f"{shown(said)} has no scheme, and Mooncake would take it as etcd and retry without end."
    return Malformed("missing-scheme", message, fix)


def _why_not_url(said: str, scheme: str, rest: str) -> Malformed:
    """Why an HTTP or Redis URL cannot be taken."""
    example = f"{scheme}://10.0.0.5:6379" if scheme == "redis" else f"{scheme}://10.0.0.5:8080/metadata"
    _refuse_several(said, _METADATA)
    userinfo, at, endpoint = re.split(r"[/?#]", rest, maxsplit=1)[0].rpartition("@")
    if not re.fullmatch(_AUTHORITY, endpoint):
        why = _why_not_host_port(endpoint, "10.0.0.5:8080")
        return Malformed(why.offence, f"in {shown(said)}: {why.message}", f"correct it; the form is that of {example}.")
    if re.match(METADATA_PATTERN, said) or not re.fullmatch(_USERINFO, userinfo + at):
        message = f"the user or password in {shown(said)} holds a character that means something else in a URL."
        return Malformed("address-form", message, "write it as %XX: %24 for $, %22 for a quote, %2F for a slash.")
    behind = rest[len(userinfo + at + endpoint) :]
    message = f"{shown(said)} goes on with {shown(behind)} behind the host, which Mooncake cannot take."
    return Malformed("address-form", message, f"take that away; the form is that of {example}.")


def _why_not_hostname(text: str) -> Malformed:
    refuse_damage(text, HOSTNAME_EXAMPLE, parse_hostname)
    said = masked(text)
    _refuse_wrapping(said, _HOSTNAME)
    scheme, separator, rest = said.partition("://")
    if separator:
        message = f"{shown(said)} has the scheme {_scheme_shown(scheme)}; a hostname has none."
        return Malformed("unknown-scheme", message, _HOSTNAME.way(_host_port_of(rest)))
    _refuse_several(said, _HOSTNAME)
    why = _why_not_host_port(said, f"{HOSTNAME_EXAMPLE}:12345")
    fix = f"write this node's address on the data network, such as {HOSTNAME_EXAMPLE}."
    return Malformed(why.offence, why.message, fix)
