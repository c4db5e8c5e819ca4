"""What answers at an address: a name is resolved, a connection made, a harmless request sent, the reply told apart.

Every question has a limit, and none raises. A real master is silent on connect and closes on an HTTP request without a
byte; what sends a byte back is something else (measured with 0.3.13.post1).
"""

from __future__ import annotations

import base64
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeVar
from urllib.parse import unquote

from mooncake_config.addresses import Endpoint, ip_of, split_endpoint
from mooncake_config.display import masked, shown

ENDPOINT_SECONDS = 3.2
"""Longest time for one endpoint: its name, the connection and what it says."""
NAME_SECONDS = 2.0
CONNECT_SECONDS = 1.5
GREETING_SECONDS = 0.05
"""Time for a peer to hang up by itself, as a proxy with nothing behind it does; a master waits for a request."""
REPLY_SECONDS = 0.4
METADATA_SECONDS = 1.0

_REPLY_LIMIT = 1 << 16
_HEALTH = b"GET /health HTTP/1.0\r\n\r\n"
_KEY = "mooncake-config-probe"

T = TypeVar("T")


class Outcome(str, Enum):
    """What became of a question. The values are worded to follow the target in a sentence."""

    RESOLVES = "resolves"
    UNKNOWN_NAME = "does not resolve"
    NAME_TIMED_OUT = "was not resolved in time"
    REFUSED = "refuses connections"
    TIMED_OUT = "does not answer in time"
    UNREACHABLE = "cannot be reached"
    HANGS_UP = "accepts connections and hangs up at once"
    SILENT = "accepts connections and says nothing"
    MASTER = "accepts connections, and closes on HTTP as a master does"
    METRICS = "answers HTTP as the metrics page of a master"
    METADATA = "answers HTTP as a metadata server"
    ETCD = "answers as etcd"
    HTTP = "answers HTTP"
    NO_PAGE = "answers HTTP and does not know this path"
    DENIED = "answers HTTP and refuses access"
    HTTP2 = "answers HTTP/2 or gRPC"
    REDIS = "answers as Redis"
    TLS = "answers TLS"
    TLS_FAILED = "fails in the TLS handshake"
    OTHER = "answers in another protocol"


@dataclass(frozen=True)
class Answer:
    """What one endpoint, or one name, gave back.

    Args:
        field: the setting that names it.
        target: host:port, a URL without password, or a name.
        host: the host alone, without brackets.
        addresses: what the host resolved to.
        detail: the peer's or the system's own words, bounded and fit to be shown.
    """

    field: str
    target: str
    host: str
    port: int | None
    outcome: Outcome
    addresses: tuple[str, ...] = ()
    detail: str = ""
    seconds: float = 0.0

    def __str__(self) -> str:
        return f"{self.outcome.value} ({self.detail})" if self.detail else self.outcome.value


Said = tuple[Outcome, str]
"""What a peer did, and its own words."""


def ask_endpoint(name: str, endpoint: Endpoint) -> Answer:
    """Connects to host:port, asks for /health and tells by the reply what kind of server it is."""
    answer = Answer(name, str(endpoint), endpoint.host, endpoint.port, Outcome.TIMED_OUT)
    return _answered(answer, lambda peer: _converse(peer, _HEALTH, REPLY_SECONDS))


def ask_metadata(url: str) -> Answer:
    """Asks an HTTP metadata server for a key that nobody has set; its own 404 is the healthy reply."""
    scheme, _, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    userinfo, _, place = authority.rpartition("@")
    endpoint = split_endpoint(place)
    port = endpoint.port or (443 if scheme == "https" else 80)
    resource = f"{slash or '/'}{path}{'&' if '?' in path else '?'}key={_KEY}"
    head = f"GET {resource} HTTP/1.1\r\nHost: {place}\r\nConnection: close\r\n{_authorization(userinfo)}\r\n"
    answer = Answer("metadata_server", masked(url), endpoint.host, port, Outcome.TIMED_OUT)
    converse = _converse_secured if scheme == "https" else _converse_plainly
    found = _answered(answer, lambda peer: converse(peer, endpoint.host, head.encode()))
    refused = next((kind for mark, kind in _REFUSALS if mark.match(found.detail)), None)
    return replace(found, outcome=refused) if refused and found.outcome is Outcome.HTTP else found


_REFUSALS = (
    (re.compile("HTTP 40[137]"), Outcome.DENIED),
    # What servers say by themselves where nothing is routed to: Mooncake's (cinatra), aiohttp, Go, Express, nginx.
    # The words of a program of one's own, for a key that nobody has set, are others.
    (re.compile("HTTP 404: (?:404:? (?:Not Found|page not found)|Cannot GET |.*<title>404)"), Outcome.NO_PAGE),
)
"""Replies to a lookup by which a page says that it is none for us."""


def ask_name(name: str, host: str) -> Answer:
    """Resolves a name."""
    began = time.monotonic()
    addresses, outcome, detail = _resolve(host)
    return Answer(name, host, host, None, outcome, addresses, detail, time.monotonic() - began)


def at_once(questions: Sequence[Callable[[], T]], limit: float) -> list[T | None]:
    """The results of several questions asked in parallel; None for one that does not end within the limit."""
    results: list[T | None] = [None] * len(questions)

    def ask(place: int) -> None:
        results[place] = questions[place]()

    # Daemons: a thread that waits for a name server must not hold up the end of the program.
    threads = [threading.Thread(target=ask, args=(place,), daemon=True) for place in range(len(questions))]
    ends = time.monotonic() + limit
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(ends - time.monotonic(), 0))
    return list(results)


def _authorization(userinfo: str) -> str:
    return f"Authorization: Basic {base64.b64encode(unquote(userinfo).encode()).decode()}\r\n" if userinfo else ""


def _answered(answer: Answer, converse: Callable[[socket.socket], Said]) -> Answer:
    """The answer filled in: resolve, connect, converse."""
    began = time.monotonic()
    addresses, outcome, detail = _resolve(answer.host)
    if outcome is Outcome.RESOLVES:
        outcome, detail = _reach(addresses, answer.port or 0, began + ENDPOINT_SECONDS, converse)
    seconds = time.monotonic() - began
    return replace(answer, outcome=outcome, addresses=addresses, detail=detail, seconds=seconds)


def _resolve(host: str) -> tuple[tuple[str, ...], Outcome, str]:
    """The addresses of a host, at most four. ``getaddrinfo`` knows no limit, so a thread waits for it.

    An address needs none, so that it can be asked while the interpreter ends, when threads cannot be started any more.
    """
    if ip_of(host) is not None:
        return _look_up(host)
    found = at_once([lambda: _look_up(host)], NAME_SECONDS)[0]
    return found or ((), Outcome.NAME_TIMED_OUT, f"no answer from the name server within {NAME_SECONDS:g} s")


def _look_up(host: str) -> tuple[tuple[str, ...], Outcome, str]:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        return (), Outcome.UNKNOWN_NAME, _words(error)
    return tuple(dict.fromkeys(str(item[4][0]) for item in found))[:4], Outcome.RESOLVES, ""


def _words(error: OSError | UnicodeError) -> str:
    return shown(getattr(error, "strerror", None) or str(error) or type(error).__name__)


def _reach(addresses: Sequence[str], port: int, ends: float, converse: Callable[[socket.socket], Said]) -> Said:
    """Converses with the first address that accepts; else the last refusal."""
    said: Said = Outcome.UNREACHABLE, "no address"
    share = CONNECT_SECONDS / max(len(addresses), 1)
    for address in addresses:
        limit = max(min(share, ends - time.monotonic()), 0.05)
        try:
            peer = socket.create_connection((address, port), limit)
        except OSError as error:
            said = _refusal(error)
        else:
            with peer:
                return converse(peer)
    return said


def _refusal(error: OSError) -> Said:
    if isinstance(error, ConnectionRefusedError):
        return Outcome.REFUSED, _words(error)
    if isinstance(error, TimeoutError):
        return Outcome.TIMED_OUT, "no answer to the connection"
    return Outcome.UNREACHABLE, _words(error)


def _converse(peer: socket.socket, request: bytes, limit: float) -> Said:
    """What a connected peer is, by what it does with a request."""
    if _hangs_up(peer):
        return Outcome.HANGS_UP, "closed before anything was asked"
    return _kind(_reply(peer, request, limit))


def _converse_plainly(peer: socket.socket, _host: str, request: bytes) -> Said:
    return _converse(peer, request, METADATA_SECONDS)


def _converse_secured(peer: socket.socket, host: str, request: bytes) -> Said:
    """Over TLS, and with the certificate verified, since the request may hold a password."""
    peer.settimeout(METADATA_SECONDS)
    try:
        with ssl.create_default_context().wrap_socket(peer, server_hostname=host) as secured:
            return _kind(_reply(secured, request, METADATA_SECONDS))
    except OSError as error:
        return Outcome.TLS_FAILED, _words(error)


def _hangs_up(peer: socket.socket) -> bool:
    # Not select(), which refuses descriptors above 1023: a trainer may have thousands of files open.
    peer.settimeout(GREETING_SECONDS)
    try:
        return not peer.recv(1, socket.MSG_PEEK)
    except TimeoutError:
        return False
    except OSError:
        return True


def _reply(peer: socket.socket, request: bytes, limit: float) -> bytes | None:
    """What is sent back until it is enough to tell; empty where nothing came, None where the peer just closed."""
    ends, reply = time.monotonic() + limit, b""
    try:
        peer.settimeout(limit)
        peer.sendall(request)
        while not _complete(reply):
            peer.settimeout(max(ends - time.monotonic(), 0.001))
            piece = peer.recv(4096)
            if not piece:
                return reply or None
            reply += piece
    except TimeoutError:
        return reply
    except OSError:  # a reset is a way of closing
        return reply or None
    return reply


def _complete(reply: bytes) -> bool:
    """Whether enough came: the first bytes of another protocol, or an HTTP head and its body."""
    if not reply.startswith(b"HTTP/"):
        return len(reply) >= 9
    head, separator, body = reply.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)\r\ncontent-length: *([0-9]{1,9})", head)
    return len(reply) >= _REPLY_LIMIT or bool(separator and length and len(body) >= int(length[1]))


_MARKS = (
    (re.compile(rb"-ERR|-NOAUTH|-DENIED|\+PONG"), Outcome.REDIS),
    (re.compile(rb"\x15\x03"), Outcome.TLS),
    # A SETTINGS or GOAWAY frame on stream 0 (RFC 9113, section 4.1): what a gRPC server says to anybody.
    (re.compile(rb"[\s\S]{3}[\x04\x07][\s\S]\x00{4}"), Outcome.HTTP2),
)


def _kind(reply: bytes | None) -> Said:
    """What kind of server replies so."""
    if reply is None:
        return Outcome.MASTER, ""
    if not reply:
        return Outcome.SILENT, "no reply to an HTTP request"
    if reply.startswith(b"HTTP/"):
        return _http_kind(reply)
    kind = next((kind for mark, kind in _MARKS if mark.match(reply)), Outcome.OTHER)
    return kind, "" if kind is Outcome.HTTP2 else _excerpt(reply)


def _http_kind(reply: bytes) -> Said:
    """Mooncake's own pages and etcd, told apart from other servers by what they reply."""
    head, _, body = reply.partition(b"\r\n\r\n")
    status = head.split(b" ", 2)[1:2]
    detail = f"HTTP {_excerpt(status[0] if status else b'?')}"
    if b'"ha_state"' in body:
        return Outcome.METRICS, f"{detail}: {_excerpt(body)}"
    if b'"health"' in body or b"etcdserver" in body:
        return Outcome.ETCD, detail
    healthy = b"server: cinatra" in head.lower() and body == b"OK"
    if healthy or b"metadata not found" in body:
        return Outcome.METADATA, detail
    return Outcome.HTTP, f"{detail}: {_excerpt(body)}" if body else detail


def _excerpt(reply: bytes) -> str:
    return shown(reply[:200].decode("utf-8", "replace").strip())
