"""Worlds to look at: host trees, nodes made of given facts, and servers on loopback that speak as they are told."""

from __future__ import annotations

import json
import os
import resource
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from mooncake_config.dialogue import Answer, Outcome
from mooncake_config.findings import Finding
from mooncake_config.host import Gid, Host, HostsEntry, Port, RdmaDevice
from mooncake_config.installation import Distribution, Installed, Trial
from mooncake_config.node import Node
from mooncake_config.probe import Probes
from mooncake_config.process import Backend, Process
from mooncake_config.resolve import resolve_process
from mooncake_config.rules import node_rules
from mooncake_config.rules.rule import Problem
from mooncake_config.sources import Environment
from mooncake_config.topology import Role, Topology

GIB = 1 << 30
SMALL = {"MOONCAKE_LOCAL_BUFFER_SIZE": "64mb", "MOONCAKE_GLOBAL_SEGMENT_SIZE": "64mb"}


def lay_out(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Files below a root, as a host has them; a name that ends in a slash is an empty directory."""
    for name, content in files.items():
        path = root / name
        if name.endswith("/"):
            path.mkdir(parents=True, exist_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def process(
    environ: Mapping[str, str] | None = None,
    kwargs: Mapping[str, object] | None = None,
    *,
    nodes: int | None = 1,
    processes: int | None = 1,
    rank: int | None = 0,
    ip: str = "10.0.0.7",
    role: Role = Role.TRAINER,
    backend: Backend = Backend.MOONCAKE,
) -> Process:
    """A process with a good master, of one node with one process unless said otherwise."""
    topology = Topology(num_nodes=nodes, local_rank=rank, processes_per_node=processes, node_ip=ip)
    variables = {"MOONCAKE_MASTER": "10.0.0.5:50051", **(environ or {})}
    given = json.dumps(kwargs) if kwargs else None
    return resolve_process(
        given, backend=backend, role=role, replica_num=1, topology=topology, environment=Environment(variables)
    )[0]


def node(
    of: Process | None = None,
    host: Host | None = None,
    *,
    answers: tuple[Answer, ...] = (),
    installed: Installed | None = None,
    setup: Trial | None = None,
) -> Node:
    """A process on a host of which nothing is known unless given."""
    return Node(of or process(), host or Host("/"), Probes(answers, installed, setup))


def problems(code: str, given: Node) -> list[Problem]:
    """What one rule sees in a node."""
    rule = next(rule for rule in node_rules() if rule.code == code)
    return list(rule.see(given))


def codes(findings: tuple[Finding, ...]) -> dict[str, str]:
    """Code to severity."""
    return {finding.code: finding.severity.value for finding in findings}


def device(
    name: str,
    state: str | None = "ACTIVE",
    layer: str = "InfiniBand",
    gids: tuple[Gid, ...] | None = (),
    behind: str = "",
) -> RdmaDevice:
    """An RDMA device with one port."""
    ports = (Port(1, state, "LinkUp", layer, "400 Gb/sec", gids),)
    return RdmaDevice(name, ports, (behind,) if behind else ())


def gid(address: str, index: int = 0) -> Gid:
    """A GID of RoCE v2."""
    return Gid(index, address, "RoCE v2", "eth1")


def host_with(*devices: RdmaDevice, **facts: Any) -> Host:
    """A host with these RDMA devices."""
    return Host("/", rdma_devices=devices, **facts)


def mapped(name: str, address: str, root: str = "/copy") -> Host:
    """A host whose table maps a name; by default one that was copied away."""
    return Host(root, hosts=(HostsEntry(address, (name,)),))


def answer(field: str, target: str, outcome: Outcome, *addresses: str, detail: str = "") -> Answer:
    """An answer about host:port or a name."""
    host, _, port = target.rpartition("://")[2].partition("/")[0].partition(":")
    return Answer(field, target, host, int(port) if port else None, outcome, addresses or (host,), detail)


def importing(*steps: Mapping[str, object], exit: int | None = 0, errors: tuple[str, ...] = ()) -> Installed:  # noqa: A002 - the field it fills
    """An installation of one good distribution whose import went so."""
    return installation(("mooncake-transfer-engine-non-cuda", "0.3.13.post1"), trial=Trial(steps, exit, errors))


def installation(*wheels: tuple[str, str], machine: str = "x86_64", trial: Trial | None = None) -> Installed:
    """An installation of these wheels."""
    return Installed(tuple(Distribution(*wheel) for wheel in wheels), machine, trial)


WORKS: tuple[Mapping[str, object], ...] = ({"location": "/site/mooncake"}, {"lacks": []})
"""The steps of an import that found everything."""


def failing(module: str, kind: str, text: str, lacking: str | None = None) -> tuple[Mapping[str, object], ...]:
    """The steps of an import that failed."""
    return {"location": "/site/mooncake"}, {"failed": module, "kind": kind, "text": text, "lacking": lacking}


Talk = Callable[[socket.socket], None]
"""What a server does with a peer. It returns to keep the connection open, and closes the peer to hang up."""


@contextmanager
def server(talk: Talk) -> Iterator[int]:
    """A server on loopback; gives its port."""
    listener = socket.create_server(("127.0.0.1", 0))
    peers: list[socket.socket] = []

    def accept() -> None:
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            peers.append(peer)
            threading.Thread(target=_talk_quietly, args=(talk, peer), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(5)
        for item in (listener, *peers):
            item.close()


def _talk_quietly(talk: Talk, peer: socket.socket) -> None:
    with suppress(OSError):
        talk(peer)


def as_master(peer: socket.socket) -> None:
    """Waits for a request and closes without a byte."""
    peer.recv(4096)
    peer.close()


def silently(peer: socket.socket) -> None:
    """Takes a request and says nothing."""
    peer.recv(4096)


def hanging_up(peer: socket.socket) -> None:
    """Closes at once."""
    peer.close()


def resetting(peer: socket.socket) -> None:
    """Resets the connection when a request comes, as a server that never reads it."""
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.recv(4096)
    peer.close()


def replying(reply: bytes) -> Talk:
    """Answers a request."""

    def talk(peer: socket.socket) -> None:
        peer.recv(4096)
        peer.sendall(reply)

    return talk


def greeting(words: bytes) -> Talk:
    """Speaks first."""
    return lambda peer: peer.sendall(words)


def http(status: str, body: str, server_name: str = "x") -> bytes:
    """An HTTP reply."""
    return f"HTTP/1.1 {status}\r\nServer: {server_name}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


def dead_port() -> int:
    """A port of loopback on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def many_files_open() -> Iterator[None]:
    """A process that has more than 1023 files open, as a trainer may have: the next one has a number above that."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4096), hard))
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        yield
    finally:
        for descriptor in opened:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
