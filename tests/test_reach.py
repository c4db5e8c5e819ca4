"""Reach: real listeners and connections on loopback and in a network of its own, told apart by how they end."""

from __future__ import annotations

import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from machines import dead_port, greeting, server

from mooncake_config.reach import PORTS, Contact, Meeting, Post, call_all, chosen_pairs, listen, port_range

SPAN = (15000, 17000)


@contextmanager
def listening(host: str = "127.0.0.1", ports: tuple[int, int] = SPAN, word: str = "hello b") -> Iterator[Post]:
    """A listener of node b."""
    with closing(listen("b", host, ports, word)) as listener:
        yield listener.post


def call(post: Post, own_address: str = "127.0.0.1") -> Contact:
    """What node a finds when it calls one post."""
    (contact,) = call_all("a", [post], own_address)
    return contact


def test_reached() -> None:
    """A node's listener stands on a port of the range, and whoever connects is told that it is that node."""
    with listening() as post:
        contact = call(post)
        assert post.port is not None
        assert SPAN[0] <= post.port <= SPAN[1]
        assert (contact.source, contact.to, contact.target) == ("a", "b", f"127.0.0.1:{post.port}")
        assert contact.meeting is Meeting.REACHED
        assert contact.meeting.is_good
        assert 0 < contact.seconds < 2


def test_ipv6() -> None:
    """IPv6 works as IPv4 does, and its target has brackets."""
    with listening("::1") as post:
        contact = call(post, "::1")
        assert contact.meeting is Meeting.REACHED
        assert contact.target == f"[::1]:{post.port}"


def test_many_callers() -> None:
    """A listener answers all that call at the same time, and a caller calls more than fit at once."""
    with listening() as post:
        contacts = call_all("a", [replace(post, name=str(number)) for number in range(150)], "127.0.0.1")
        assert [contact.to for contact in contacts] == [str(number) for number in range(150)]
        assert {contact.meeting for contact in contacts} == {Meeting.REACHED}


def test_loopback_of_another_leads_back() -> None:
    """A loopback address on which nobody listens here is the wrong interface, since it never leaves the caller."""
    contact = call(Post("b", "127.0.0.1", dead_port(), "hello b"))
    assert contact.meeting is Meeting.WRONG_INTERFACE
    assert contact.detail == "127.0.0.1 leads back to the caller"


def test_another_host_answers() -> None:
    """Where somebody else answers at the address, that is not the node."""
    with server(greeting(b"SSH-2.0-x\n")) as port:
        contact = call(Post("b", "127.0.0.1", port, "hello b"))
    assert contact.meeting is Meeting.WRONG_INTERFACE
    with listening(word="hello c") as post:
        assert call(replace(post, word="hello b")).detail == "another host answers there"


def test_address_that_is_not_ours() -> None:
    """An address that cannot be bound is not the node's own; its listener stands on all addresses for a translation."""
    with listening("192.0.2.77") as post:
        assert not post.is_own
        assert post.port is not None
        assert call(replace(post, host="127.0.0.1")).meeting is Meeting.REACHED


def test_unknown_name() -> None:
    """A name that does not resolve on the node leaves it without a listener; on the caller it says so."""
    with listening("nowhere.invalid") as post:
        assert post.port is None
        assert post.refusal == "nowhere.invalid does not resolve here"
        assert (call(post).meeting, call(post).target) == (Meeting.CLOSED, "nowhere.invalid")
    assert call(Post("b", "nowhere.invalid", 15000, "x")).meeting is Meeting.UNKNOWN_NAME


def test_no_free_port() -> None:
    """Where every port of the range is taken, the post says so."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with listening(ports=(port, port)) as post:
            assert post.port is None
            assert post.refusal == f"no port from {port} to {port} is free"


def test_closed_listener_frees_its_port() -> None:
    """After its end nobody listens there, and the port can be taken."""
    listener = listen("b", "127.0.0.1", SPAN, "x")
    port = listener.post.port
    assert port is not None
    listener.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 1)
    with socket.create_server(("127.0.0.1", port)) as next_one:
        assert next_one.getsockname()[1] == port


@pytest.mark.parametrize(
    ("variables", "ports"),
    [
        ({}, PORTS),
        ({"MC_MIN_RPC_PORT": "20000", "MC_MAX_RPC_PORT": " 20010 "}, (20000, 20010)),
        ({"MC_MIN_RPC_PORT": "16000"}, (16000, 17000)),
        ({"MC_MIN_RPC_PORT": "18000"}, PORTS),
        ({"MC_MAX_RPC_PORT": "70000"}, PORTS),
        ({"MC_MIN_RPC_PORT": "-1", "MC_MAX_RPC_PORT": "many"}, PORTS),
    ],
)
def test_port_range(variables: Mapping[str, str], ports: tuple[int, int]) -> None:
    """The engine's variables set the range; one that makes no range counts as unset."""
    assert port_range(variables) == ports


FIREWALLED = """
import subprocess, sys, time
from contextlib import closing
from mooncake_config.reach import call_all, listen

def sh(words):
    subprocess.run(words, shell=True, check=True)

sh("ip link set lo up && ip addr add 10.88.0.1/24 dev lo && ip addr add 10.88.0.2/24 dev lo")
sh("ip route add unreachable 10.88.9.0/24")
with closing(listen("b", "10.88.0.2", (15000, 17000), "hello b")) as listener:
    post = listener.post
    def told(own="10.88.0.1"):
        (contact,) = call_all("a", [post], own)
        return contact
    for own in ("10.88.0.1", "10.88.0.7"):
        print(told(own).meeting.value, told(own).detail)
    for verdict in ("drop", "reject with tcp reset", "reject"):
        sh(f"nft 'add table inet w; add chain inet w i {{ type filter hook input priority 0; }}'")
        sh(f"nft 'add rule inet w i tcp dport 15000-17000 {verdict}'")
        began = time.monotonic()
        contact = told()
        print(contact.meeting.value, time.monotonic() - began < 4)
        sh("nft delete table inet w")
from dataclasses import replace
post = replace(post, host="10.88.9.9")
print(told().meeting.value)
"""


def test_refused_filtered_and_unreachable_are_told_apart() -> None:
    """A firewall that drops, one that resets, one that rejects, and a missing route, each in bounded time."""
    tried = subprocess.run(["unshare", "--net", "nft", "list", "tables"], capture_output=True, check=False)
    if tried.returncode != 0:
        pytest.skip("needs root and nftables for a network of its own")
    command = ["unshare", "--net", sys.executable, "-c", textwrap.dedent(FIREWALLED)]
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:-1] == [
        "reached ",
        "reached left by 10.88.0.1",
        "no answer True",
        "refused True",
        "refused True",
        "no route",
    ]
    assert time.monotonic() - began < 30


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 20))
def test_chosen_pairs(number: int, head: int, limit: int) -> None:
    """Up to a limit every pair is chosen; above, each calls the head and a neighbour, and the number stays linear."""
    names = [f"n{place}" for place in range(number)]
    chosen = dict(chosen_pairs(names, f"n{head}", limit))
    assert list(chosen) == names
    for name, others in chosen.items():
        assert name not in others
        assert len(set(others)) == len(others)
        assert set(others) <= set(names)
    if number <= limit:
        assert all(len(others) == number - 1 for others in chosen.values())
    else:
        assert sum(map(len, chosen.values())) <= 3 * number
        first = f"n{head}" if head < number else "n0"
        assert all(first in others for name, others in chosen.items() if name != first)
        assert len(chosen[first]) == number - 1
