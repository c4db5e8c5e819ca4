"""Addresses: the forms of master, metadata server and hostname that Mooncake's client can take.

Each form is one regular expression. A parser (``address_parsers``) accepts exactly what its expression matches, and the
JSON Schema holds the same expression, so an editor and a start-up agree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from ipaddress import IPv4Address, IPv4Network, IPv6Address
from typing import NamedTuple

from mooncake_config.damage import whole

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


PORT = r"(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_NAME = rf"(?![A-Za-z0-9_.-]{{254}}){_LABEL}(?:\.{_LABEL})*\.?"
_ZONE = r"%[A-Za-z0-9_.-]{1,32}"
_BARE_IPV6 = _ipv6_pattern()
IPV6 = rf"{_BARE_IPV6}(?:{_ZONE})?"
HOST = rf"(?:{_NAME}|\[{IPV6}\])"
ENDPOINT = rf"{HOST}:{PORT}"
AUTHORITY = rf"{HOST}(?::{PORT})?"
# RFC 3986, and '@' as curl takes it; less what shows that something was never expanded: $NAME, ${NAME}, %NAME%.
USERINFO = r"(?:(?:[A-Za-z0-9._~!&'()*+,;=:@-]|\$(?![A-Za-z_{(])|%[0-9A-Fa-f]{2})*@)?"
_PATH = r"(?:/(?:[A-Za-z0-9._~!&()*+=:@/?-]|%[0-9A-Fa-f]{2})*)?"


def _master_pattern(host: str) -> str:
    endpoint, authority = rf"{host}:{PORT}", rf"{host}(?::{PORT})?"
    etcd = rf"(?:etcd://(?:{endpoint};)*)?{endpoint}"
    return whole(rf"{etcd}|redis://{authority}/?|k8s://[a-z0-9.-]+(?:/[a-z0-9.-]+)?")


def _metadata_pattern(host: str) -> str:
    endpoint, authority = rf"{host}:{PORT}", rf"{USERINFO}{host}(?::{PORT})?"
    return whole(rf"{P2P}|etcd://(?:{endpoint};)*{endpoint}|https?://{authority}{_PATH}|redis://{authority}/?")


MASTER_PATTERN = _master_pattern(HOST)
# Mooncake takes an IPv6 address with a zone and a port also without brackets.
HOSTNAME_PATTERN = whole(rf"{AUTHORITY}|{_BARE_IPV6}(?:{_ZONE}(?::{PORT})?)?")
METADATA_PATTERN = _metadata_pattern(HOST)

# The same for texts without IPv6. Compiling that grammar costs more than all else here, so it waits until it is needed.
PLAIN_MASTER = _master_pattern(_NAME)
PLAIN_HOSTNAME = whole(rf"{_NAME}(?::{PORT})?")
PLAIN_METADATA = _metadata_pattern(_NAME)

_PARTS = r"(?:\[(?P<inner>[^\]]*)\]|(?P<ipv6>[^%:]*:[^%:]*:[^%]*(?:%[^:]*)?)|(?P<name>[^:]*))(?::(?P<port>[0-9]+))?"


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


def split_endpoint(text: str) -> Endpoint:
    """Host and port of one endpoint that a parser has accepted."""
    host, colon, port = text.partition(":")
    if "[" not in host and (port.isdigit() or not colon):
        return Endpoint(host, int(port) if port else None)
    match = re.fullmatch(_PARTS, text)
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


_C_NUMBER = r"(?P<hex>0[xX][0-9A-Fa-f]+)|(?P<octal>0[0-7]*)|(?P<decimal>[1-9][0-9]*)"


def _c_integer(text: str) -> int:
    """A number as C's ``strtoul`` reads it. Raises ``ValueError`` for another text, and for one of endless length."""
    match = re.fullmatch(_C_NUMBER, text)
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
