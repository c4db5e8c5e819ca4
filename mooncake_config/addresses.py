"""Addresses: the forms of master, metadata server and hostname that Mooncake's client can take.

Each form is one regular expression. A parser accepts exactly what its expression matches, and the JSON Schema holds
the same expression, so an editor and a start-up agree. Only when it fails is the text looked at for the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address

from mooncake_config.damage import refuse_damage, text_of
from mooncake_config.display import shown
from mooncake_config.findings import Malformed

P2P = "P2PHANDSHAKE"
MASTER_EXAMPLE = "10.0.0.5:50051"
HOSTNAME_EXAMPLE = "10.0.0.7"
METADATA_EXAMPLE = P2P

IPAddress = IPv4Address | IPv6Address


def _ipv6_pattern() -> str:
    """RFC 4291 text forms, with ``::`` in every place, and an IPv4 tail."""
    word = "[0-9A-Fa-f]{1,4}"
    octet = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
    tail = rf"(?:{word}:{word}|(?:{octet}\.){{3}}{octet})"
    forms = [rf"(?:{word}:){{6}}{tail}", rf"::(?:{word}:){{0,5}}{tail}"]
    forms += [rf"(?:{word}:){{{n - 1}}}{word}::(?:{word}:){{0,{5 - n}}}{tail}" for n in range(1, 6)]
    forms += [rf"(?:{word}:){{0,5}}{word}::{word}", rf"(?:(?:{word}:){{0,6}}{word})?::", rf"::{word}"]
    return "(?:" + "|".join(forms) + ")"


_PORT = r"(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_NAME = rf"(?={{size}}){_LABEL}(?:\.{_LABEL})*\.?".replace("(?={size})", "")
_IPV6 = _ipv6_pattern()
_ZONE = r"(?:%[A-Za-z0-9_.-]{1,32})?"
_HOST = rf"(?:{_NAME}|\[{_IPV6}{_ZONE}\])"
_ENDPOINT = rf"{_HOST}:{_PORT}"
_ETCD = rf"etcd://{_ENDPOINT}(?:;{_ENDPOINT})*"
_USERINFO = r"(?:[!-.0-?A-~]*@)?"

MASTER_PATTERN = rf"^(?:{_ENDPOINT}|{_ETCD}|redis://{_HOST}(?::{_PORT})?/?|k8s://[a-z0-9.-]+(?:/[a-z0-9.-]+)?)$"
HOSTNAME_PATTERN = rf"^(?:{_HOST}(?::{_PORT})?|{_IPV6}{_ZONE})$"
METADATA_PATTERN = (
    rf"^(?:{P2P}|https?://{_USERINFO}{_HOST}(?::{_PORT})?(?:/[!-~]*)?|{_ETCD}|redis://{_USERINFO}{_HOST}(?::{_PORT})?/?)$"
)

_MASTER = re.compile(MASTER_PATTERN)
_HOSTNAME = re.compile(HOSTNAME_PATTERN)
_METADATA = re.compile(METADATA_PATTERN)
_PARTS = re.compile(rf"(?P<host>\[[^\]]*\]|[^:\[\]]*)(?::(?P<port>[0-9]+))?")


@dataclass(frozen=True)
class Endpoint:
    """A host (a name or an IP, without brackets) and a port, None where the form has none."""

    host: str
    port: int | None

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
    if _MASTER.match(text):
        return text
    raise _why_not_master(text)


def parse_metadata(raw: object) -> str:
    """A metadata server: ``P2PHANDSHAKE``, ``http(s)://host[:port]/path``, ``etcd://h:p;…`` or ``redis://…``.

    Source: transfer_metadata_plugin.cpp; an unknown scheme aborts the process, a missing one is taken as etcd.

    Raises:
        Malformed: any other form.
    """
    text = text_of(raw, METADATA_EXAMPLE)
    if _METADATA.match(text):
        return text
    raise _why_not_metadata(text)


def parse_hostname(raw: object) -> str:
    """A name or an IP, with or without a port: ``10.0.0.7``, ``node-7:12345``, ``fd00::7``, ``[fd00::7]:12345``.

    Source: common.h of Mooncake's transfer engine (IPv6 since v0.3.12).

    Raises:
        Malformed: any other form.
    """
    text = text_of(raw, HOSTNAME_EXAMPLE)
    if _HOSTNAME.match(text):
        return text
    raise _why_not_hostname(text)


def split_endpoint(text: str) -> Endpoint:
    """Host and port of one endpoint that a parser above has accepted."""
    if text.count(":") > 1 and not text.startswith("["):
        return Endpoint(text, None)
    match = _PARTS.match(text)
    host, port = (match["host"], match["port"]) if match else (text, None)
    return Endpoint(host.strip("[]"), int(port) if port else None)


def endpoints_of(address: str) -> tuple[Endpoint, ...]:
    """The endpoints inside an accepted address. None for ``P2PHANDSHAKE`` and for a Kubernetes lease."""
    scheme, separator, rest = address.rpartition("://")
    if address == P2P or scheme == "k8s":
        return ()
    if separator:
        rest = rest.split("/", 1)[0].rpartition("@")[2]
    return tuple(split_endpoint(part) for part in rest.split(";"))


def scheme_of(address: str) -> str | None:
    """The scheme of an address, or None."""
    scheme, separator, _ = address.partition("://")
    return scheme if separator else None


def ip_of(host: str) -> IPAddress | None:
    """The IP that a host spells, also in the forms that the C library takes: ``127.1``, ``0x7f000001``, ``2130706433``.

    An IPv4 address inside IPv6 (``::ffff:127.0.0.1``) is that IPv4 address.
    """
    bare = host.strip("[]").partition("%")[0].rstrip(".")
    try:
        ip = ip_address(bare)
    except ValueError:
        return _inet_aton(bare)
    return (ip.ipv4_mapped or ip) if isinstance(ip, IPv6Address) else ip


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


def _c_integer(text: str) -> int:
    if not text.isascii() or not text[:1].isdigit() or "_" in text or len(text) > 16:
        raise ValueError(text)
    if text[:2].lower() == "0x":
        return int(text, 16)
    return int(text, 8 if text.startswith("0") and text != "0" else 10)


_LOOPBACK_NAMES = frozenset(
    "localhost localhost.localdomain localhost4 localhost6 localhost4.localdomain4 localhost6.localdomain6 "
    "ip6-localhost ip6-loopback loopback".split()
)


def is_loopback(host: str) -> bool:
    """Whether a host, by its text alone, reaches only the machine that uses it."""
    name = host.lower().rstrip(".")
    if name in _LOOPBACK_NAMES or name.endswith(".localhost"):
        return True
    ip = ip_of(host)
    return ip is not None and ip.is_loopback


def is_wildcard(host: str) -> bool:
    """Whether a host is the address to *listen* on everywhere, which nobody can connect to from elsewhere."""
    ip = ip_of(host)
    return ip is not None and ip.is_unspecified


def _address_error(offence: str, message: str, fix: str) -> Malformed:
    return Malformed(offence, message, fix)


def _refuse_blanks(text: str, example: str) -> None:
    """Blanks, commas and semicolons: mostly two addresses in one."""
    for separator, name in ((" ", "a blank"), (",", "a comma"), (";", "a semicolon")):
        if separator in text:
            first = next((part for part in re.split(r"[\s,;]+", text) if part), example)
            raise Malformed(
                "several-addresses",
                f"{shown(text)} holds {name}; one address has none, and only one is taken.",
                f"keep one, such as {shown(first)}.",
            )


def _why_not_master(text: str) -> Malformed:
    refuse_damage(text, MASTER_EXAMPLE)
    scheme, separator, rest = text.partition("://")
    if separator:
        return _why_not_ha_master(scheme, rest, text)
    _refuse_blanks(text, MASTER_EXAMPLE)
    return _why_not_endpoint(text, MASTER_EXAMPLE)


def _why_not_ha_master(scheme: str, rest: str, text: str) -> Malformed:
    if scheme.lower() in ("etcd", "redis", "k8s") and scheme != scheme.lower():
        fix = f"write {shown(scheme.lower() + '://' + rest)}."
        return Malformed("unknown-scheme", f"Mooncake knows the scheme {scheme.lower()} in lower case only.", fix)
    if scheme == "etcd":
        endpoint = next((e for e in rest.split(";") if not re.fullmatch(_ENDPOINT, e)), "")
        why = _why_not_endpoint(endpoint, "10.0.0.5:2379")
        fix = "separate endpoints by semicolons, each host:port, as in etcd://10.0.0.5:2379;10.0.0.6:2379."
        return Malformed(why.offence, f"in {shown(text)}: {why.message}", fix)
    if scheme == "redis":
        fix = "write one endpoint and nothing behind it: redis://10.0.0.5:6379; the password goes into MC_REDIS_PASSWORD."
        return Malformed("address-form", f"{shown(text)} is not a Redis endpoint that Mooncake takes.", fix)
    if scheme == "k8s":
        fix = "write k8s://LEASE or k8s://NAMESPACE/LEASE."
        return Malformed("address-form", f"{shown(text)} is not a Kubernetes lease that Mooncake takes.", fix)
    bare = re.split(r"[/?#]", rest, maxsplit=1)[0].rpartition("@")[2]
    return Malformed(
        "unknown-scheme",
        f"{shown(text)} has the scheme {shown(scheme)}; the master is spoken to without one.",
        f"write {shown(bare) if bare else MASTER_EXAMPLE} (host:port), or etcd://host:port for a master in HA mode.",
    )


def _why_not_endpoint(text: str, example: str) -> Malformed:
    """Why a text is not host:port."""
    if text.count(":") > 1 and "[" not in text and re.fullmatch(_IPV6 + r"|[0-9A-Fa-f:]+:[0-9]+", text):
        return Malformed(
            "address-form",
            f"{shown(text)} is IPv6 without brackets, so its port cannot be told from its last group.",
            f"put the address in brackets and the port behind: [{shown(text.rpartition(':')[0])}]:{text.rpartition(':')[2]}.",
        )
    if not text or text.startswith(":"):
        return Malformed("missing-host", f"{shown(text) or 'an endpoint'} has no host before the port.", f"write {example}.")
    if "/" in text:
        return Malformed("address-form", f"{shown(text)} holds a path; an address is host:port.", f"write {example}.")
    if "@" in text:
        return Malformed("address-form", f"{shown(text)} holds a user or password, which Mooncake does not take here.", f"write {example}.")
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        return Malformed("bad-port", f"{shown(text)} has no port, and Mooncake adds none.", f"write {shown(text)}:{example.rpartition(':')[2]}.")
    if not re.fullmatch(_PORT, port):
        return Malformed("bad-port", f"{shown(text)} ends in {shown(port) or 'nothing'}, which is no port (1 to 65535).", f"write {shown(host)}:{example.rpartition(':')[2]}.")
    return _why_not_host(host, example)


def _why_not_host(host: str, example: str) -> Malformed:
    if host == "*":
        why = "is a wildcard, which can be listened on but not connected to"
    elif "[" in host or "]" in host:
        why = "is not an IPv6 address in brackets"
    elif not host.isascii():
        why = "is not ASCII, and Mooncake looks names up as they stand"
    else:
        why = "is neither an IP nor a host name"
    return Malformed("address-form", f"{shown(host)} {why}.", f"write a name or an IP that every node reaches, as in {example}.")


def _why_not_metadata(text: str) -> Malformed:
    refuse_damage(text, METADATA_EXAMPLE)
    if text.upper() == P2P:
        return Malformed(
            "address-form",
            f"{shown(text)} must be written {P2P}: in any other case Mooncake takes it as an etcd address and retries until it is killed.",
            f"write {P2P}, or leave the field out: it is the default.",
        )
    if " " in text or "," in text:
        _refuse_blanks(text, METADATA_EXAMPLE)
    scheme, separator, rest = text.partition("://")
    if not separator:
        bare = text.partition("/")[0]
        return Malformed(
            "missing-scheme",
            f"{shown(text)} has no scheme, and Mooncake would take it as etcd and retry without end.",
            f"write http://{shown(bare)}/metadata for the master's own metadata server, etcd://{shown(bare)} for etcd, or {P2P}.",
        )
    if scheme in ("http", "https", "etcd", "redis"):
        endpoint = re.split(r"[/?#;]", rest.rpartition("@")[2], maxsplit=1)[0]
        why = _why_not_host_port(endpoint, "10.0.0.5:8080")
        fix = f"write {scheme}://10.0.0.5:8080/metadata." if scheme.startswith("http") else f"write {scheme}://10.0.0.5:2379."
        return Malformed(why.offence, f"in {shown(text)}: {why.message}", fix)
    known = scheme.lower() in ("http", "https", "etcd", "redis")
    return Malformed(
        "unknown-scheme",
        f"{shown(text)} has the scheme {shown(scheme)}; Mooncake aborts the process on it (SIGABRT).",
        f"write {shown(scheme.lower() + '://' + rest)}: schemes are lower case." if known else f"use {P2P}, http://, https:// or etcd://.",
    )


def _why_not_host_port(text: str, example: str) -> Malformed:
    """Why a text is not host or host:port."""
    if re.fullmatch(_HOST, text):
        return Malformed("address-form", f"what follows {shown(text)} is not part of an address.", f"write {example}.")
    if re.fullmatch(rf"{_HOST}:{_PORT}", text):
        return Malformed("address-form", f"what follows {shown(text)} is not part of an address.", f"write {example}.")
    if text and ":" not in text:
        return _why_not_host(text, example)
    return _why_not_endpoint(text, example)


def _why_not_hostname(text: str) -> Malformed:
    refuse_damage(text, HOSTNAME_EXAMPLE)
    scheme, separator, rest = text.partition("://")
    if separator:
        bare = re.split(r"[/?#]", rest, maxsplit=1)[0].rpartition("@")[2]
        return Malformed(
            "unknown-scheme",
            f"{shown(text)} has the scheme {shown(scheme)}; a hostname has none.",
            f"write {shown(bare) if bare else HOSTNAME_EXAMPLE}.",
        )
    _refuse_blanks(text, HOSTNAME_EXAMPLE)
    why = _why_not_host_port(text, f"{HOSTNAME_EXAMPLE}:12345")
    return Malformed(why.offence, why.message, f"write this node's address on the data network, such as {HOSTNAME_EXAMPLE}.")


def hosts_of(address: str) -> Iterator[str]:
    """The hosts inside an accepted address."""
    return (endpoint.host for endpoint in endpoints_of(address))
