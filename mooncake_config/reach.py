"""Who reaches whom: a listener on a node's data address, and a connection to another's, told apart by how it ends.

A client of Mooncake over TCP listens on two ports between ``MC_MIN_RPC_PORT`` and ``MC_MAX_RPC_PORT``, 15000 to 17000
by default, one for requests and one for data (measured with 0.3.13.post1), so that is where a listener stands here.
"""

from __future__ import annotations

import errno
import random
import socket
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial

from mooncake_config.addresses import Endpoint, is_loopback
from mooncake_config.dialogue import at_once
from mooncake_config.display import shown

CONNECT_SECONDS = 2.0
"""Time for a connection and a line on it. What a firewall drops is silent for ever."""
AT_ONCE = 64
"""Connections of one node at the same time."""
PORTS = (15000, 17000)
_ATTEMPTS = 200
_LINE_LIMIT = 512


class Meeting(str, Enum):
    """How a connection between two nodes ended. The values are worded for a person."""

    REACHED = "reached"
    REFUSED = "refused"
    FILTERED = "no answer"
    UNREACHABLE = "no route"
    WRONG_INTERFACE = "wrong interface"
    UNKNOWN_NAME = "unknown name"
    CLOSED = "no listener"
    NOT_TRIED = "not tried"

    @property
    def is_good(self) -> bool:
        """Whether data would arrive."""
        return self is Meeting.REACHED


@dataclass(frozen=True)
class Post:
    """Where a node listens: the address that it advertises, and what stands there.

    Args:
        name: the node.
        host: the host of its local_hostname.
        port: the port of the listener; None where none could be opened.
        word: what the listener says, so that nobody else is taken for it.
        is_own: whether the address could be bound, so that it is one of the node's own.
        refusal: why there is no listener.
    """

    name: str
    host: str
    port: int | None
    word: str = ""
    is_own: bool = True
    refusal: str = ""

    def __str__(self) -> str:
        return str(Endpoint(self.host, self.port))


@dataclass(frozen=True)
class Contact:
    """One connection, from a node to another.

    Args:
        target: host:port that was connected to.
        detail: the system's own words, or what was seen.
        seconds: how long the connection took to stand, or to fail.
    """

    source: str
    to: str
    target: str
    meeting: Meeting
    seconds: float = 0.0
    detail: str = ""


def port_range(variables: Mapping[str, str]) -> tuple[int, int]:
    """First and last port that a client with this environment listens on; a range that is none counts as unset."""
    texts = [variables.get(name, "").strip() for name in ("MC_MIN_RPC_PORT", "MC_MAX_RPC_PORT")]
    low, high = (
        int(text) if text.isascii() and text.isdigit() and len(text) < 6 else usual
        for text, usual in zip(texts, PORTS, strict=True)
    )
    return (low, high) if 0 < low <= high < 65536 else PORTS


class Listener:
    """A socket on an address, which tells every caller its word and hangs up, until it is closed."""

    def __init__(self, post: Post, server: socket.socket | None) -> None:
        self.post = post
        self._server = server
        if server is not None:
            threading.Thread(target=self._serve, args=(server,), daemon=True).start()

    def _serve(self, server: socket.socket) -> None:
        while True:
            try:
                caller, _ = server.accept()
            except OSError:
                return
            with caller, suppress(OSError):
                caller.settimeout(CONNECT_SECONDS)
                caller.sendall(self.post.word.encode() + b"\n")

    def close(self) -> None:
        """Frees the port."""
        if self._server is not None:
            with suppress(OSError):
                self._server.shutdown(socket.SHUT_RDWR)
            self._server.close()


def listen(name: str, host: str, ports: tuple[int, int], word: str) -> Listener:
    """Opens a listener on a host's address in a range of ports. Never raises: the post says why there is none.

    An address that is not this host's cannot be bound. Then the listener stands on all of its addresses, since an
    address that is translated on the way is not the host's own either.
    """
    post = Post(name, host, None, word)
    found = at_once([partial(_address_of, host)], CONNECT_SECONDS)[0]
    if found is None:
        return Listener(replace(post, refusal=f"{shown(host)} does not resolve here"), None)
    family, address = found
    try:
        server = _bound(family, address, ports)
    except OSError as error:
        if error.errno != errno.EADDRNOTAVAIL:
            return Listener(replace(post, refusal=shown(error.strerror or str(error))), None)
        return _listen_everywhere(replace(post, is_own=False), family, ports)
    return Listener(replace(post, port=server.getsockname()[1]), server)


def _listen_everywhere(post: Post, family: int, ports: tuple[int, int]) -> Listener:
    try:
        server = _bound(family, "::" if family == socket.AF_INET6 else "0.0.0.0", ports)
    except OSError as error:
        return Listener(replace(post, refusal=shown(error.strerror or str(error))), None)
    return Listener(replace(post, port=server.getsockname()[1]), server)


def _address_of(host: str) -> tuple[int, str] | None:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return None
    return int(found[0][0]), str(found[0][4][0])


def _bound(family: int, address: str, ports: tuple[int, int]) -> socket.socket:
    """A server on a free port of the range. Raises ``OSError`` where none is free, or the address is not ours."""
    low, high = ports
    tried = random.sample(range(low, high + 1), min(_ATTEMPTS, high - low + 1))
    for port in tried:
        try:
            return socket.create_server((address, port), family=family, backlog=128)
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
    raise OSError(errno.EADDRINUSE, f"no port from {low} to {high} is free")


def call_all(source: str, posts: Sequence[Post], own_address: str) -> list[Contact]:
    """Connects to each post, up to 64 at a time. Never raises, and takes no longer than :func:`calling_seconds`.

    Args:
        source: the node that calls.
        own_address: the address that its data should leave by.
    """
    contacts: list[Contact] = []
    for start in range(0, len(posts), AT_ONCE):
        some = posts[start : start + AT_ONCE]
        found = at_once([partial(_call, source, post, own_address) for post in some], CONNECT_SECONDS + 0.5)
        late = (Contact(source, post.name, str(post), Meeting.FILTERED, CONNECT_SECONDS) for post in some)
        contacts += [contact or other for contact, other in zip(found, late, strict=True)]
    return contacts


def calling_seconds(number: int) -> float:
    """The longest time that a node needs to call so many others."""
    return -(-number // AT_ONCE) * (CONNECT_SECONDS + 0.5)


def _call(source: str, post: Post, own_address: str) -> Contact:
    contact = Contact(source, post.name, str(post), Meeting.CLOSED, 0.0, post.refusal)
    if post.port is None:
        return contact
    began = time.monotonic()
    try:
        with socket.create_connection((post.host, post.port), CONNECT_SECONDS) as peer:
            seconds = time.monotonic() - began
            peer.settimeout(CONNECT_SECONDS)
            said, left_by = _line(peer), str(peer.getsockname()[0])
    except OSError as error:
        meeting = _kind(error)
        detail = shown(error.strerror or str(error))
        return _located(replace(contact, meeting=meeting, seconds=time.monotonic() - began, detail=detail), post)
    contact = replace(contact, meeting=Meeting.REACHED, seconds=seconds, detail="")
    if said != post.word:
        return replace(contact, meeting=Meeting.WRONG_INTERFACE, detail="another host answers there")
    if left_by != own_address and not is_loopback(left_by) and own_address:
        return replace(contact, detail=f"left by {left_by}")
    return contact


def _located(contact: Contact, post: Post) -> Contact:
    """A failure towards an address that is not the other node's own, or loopback, lies in the address."""
    if is_loopback(post.host):
        return replace(contact, meeting=Meeting.WRONG_INTERFACE, detail=f"{shown(post.host)} leads back to the caller")
    if not post.is_own:
        return replace(contact, meeting=Meeting.WRONG_INTERFACE, detail=f"{shown(post.host)} is not on that node")
    return contact


def _kind(error: OSError) -> Meeting:
    if isinstance(error, ConnectionRefusedError):
        return Meeting.REFUSED
    if isinstance(error, TimeoutError):
        return Meeting.FILTERED
    return Meeting.UNKNOWN_NAME if isinstance(error, socket.gaierror) else Meeting.UNREACHABLE


def _line(peer: socket.socket) -> str:
    said = b""
    while b"\n" not in said and len(said) < _LINE_LIMIT:
        piece = peer.recv(_LINE_LIMIT)
        if not piece:
            break
        said += piece
    return said.decode("utf-8", "replace").removesuffix("\n")


def chosen_pairs(names: Sequence[str], head: str | None, all_up_to: int) -> Iterable[tuple[str, tuple[str, ...]]]:
    """Whom each node calls: all others, or, of more nodes than that, the head and one neighbour; the head calls all."""
    if len(names) <= all_up_to:
        yield from ((name, tuple(other for other in names if other != name)) for name in names)
        return
    first = head if head and head in names else names[0]
    for place, name in enumerate(names):
        neighbour = names[(place + 1) % len(names)]
        some = names if name == first else (first, neighbour)
        yield name, tuple(dict.fromkeys(other for other in some if other != name))
