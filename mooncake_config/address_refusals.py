"""Why a text is no address: the reason, and what to write instead. Loaded when a parser refuses one."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from mooncake_config.addresses import (
    AUTHORITY,
    ENDPOINT,
    HOST,
    HOSTNAME_EXAMPLE,
    HOSTNAME_PATTERN,
    IPV6,
    MASTER_EXAMPLE,
    MASTER_PATTERN,
    METADATA_EXAMPLE,
    METADATA_PATTERN,
    P2P,
    PORT,
    USERINFO,
)
from mooncake_config.damage import refuse_damage
from mooncake_config.display import masked, shown
from mooncake_config.findings import Malformed

Parse = Callable[[object], str]


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


def why_not_master(text: str, parse: Parse) -> Malformed:
    """Why the parser of the master refuses a text."""
    refuse_damage(text, MASTER_EXAMPLE, parse)
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
    port = next((part.rpartition(":")[2] for part in parts if re.fullmatch(ENDPOINT, part)), "")
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
    endpoint = next((part for part in rest.split(";") if not re.fullmatch(ENDPOINT, part)), "")
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
    if re.fullmatch(IPV6, said) or re.fullmatch(IPV6, host):
        return _why_not_bare_ipv6(said, usual)
    if not host and (colon or not said):
        message = f"{shown(said) or 'an endpoint'} has no host before the port."
        return Malformed("missing-host", message, f"write the host before it, for example {example}.")
    if re.fullmatch(PORT, said):
        message = f"{shown(said)} is a port alone, without a host."
        return Malformed("missing-host", message, f"write the host before it, for example {example}.")
    for mark, what in (("/", "a path"), ("@", "a user or password")):
        if mark in said:
            message = f"{shown(said)} holds {what}; an address is host:port."
            return Malformed("address-form", message, _Asked(MASTER_PATTERN, example).way(_host_port_of(said)))
    name = host if said.count(":") == 1 or host.endswith("]") else said
    if not re.fullmatch(HOST, name):
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
    if re.fullmatch(IPV6, host) and re.fullmatch(PORT, port):
        why, form = "so its port cannot be told from its last group", f"[{host}]:{port}"
    else:
        address = said if re.fullmatch(IPV6, said) else host
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


def why_not_metadata(text: str, parse: Parse) -> Malformed:
    """Why the parser of the metadata server refuses a text."""
    refuse_damage(text, METADATA_EXAMPLE, parse)
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
    by_port = re.fullmatch(ENDPOINT, bare) is not None
    http, etcd = (bare, bare) if by_port else (f"{bare}:8080", f"{bare}:2379")
    fix = f"write {P2P}, or an address with its scheme, for example http://10.0.0.5:8080/metadata."
    if re.fullmatch(HOST, bare) or by_port:
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
    if not re.fullmatch(AUTHORITY, endpoint):
        why = _why_not_host_port(endpoint, "10.0.0.5:8080")
        return Malformed(why.offence, f"in {shown(said)}: {why.message}", f"correct it; the form is that of {example}.")
    if re.match(METADATA_PATTERN, said) or not re.fullmatch(USERINFO, userinfo + at):
        message = f"the user or password in {shown(said)} holds a character that means something else in a URL."
        return Malformed("address-form", message, "write it as %XX: %24 for $, %22 for a quote, %2F for a slash.")
    behind = rest[len(userinfo + at + endpoint) :]
    message = f"{shown(said)} goes on with {shown(behind)} behind the host, which Mooncake cannot take."
    return Malformed("address-form", message, f"take that away; the form is that of {example}.")


def why_not_hostname(text: str, parse: Parse) -> Malformed:
    """Why the parser of the hostname refuses a text."""
    refuse_damage(text, HOSTNAME_EXAMPLE, parse)
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
