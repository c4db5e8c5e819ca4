"""Clusters from small tables of nodes: a line for each node, one for who asks, one for each connection."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from mooncake_config.host import Host
from mooncake_config.installation import Distribution, Installed
from mooncake_config.members import PACKAGE, Cluster, Member, Missing
from mooncake_config.node import Node
from mooncake_config.probe import Probes
from mooncake_config.process import Backend, Process
from mooncake_config.reach import Contact, Meeting, Post
from mooncake_config.resolve import resolve_process
from mooncake_config.rules import examine_node
from mooncake_config.sources import Environment
from mooncake_config.topology import Role, Topology

HERE = {"Python": "3.11.9", "Ray": "2.60.0", PACKAGE: "0.1.0"}
GOOD = "MOONCAKE_MASTER=10.0.0.5:50051 MOONCAKE_PROTOCOL=tcp"


def asked(variables: dict[str, str], address: str, *, nodes: int, backend: Backend, replicas: int = 1) -> Process:
    """A trainer with exactly these variables."""
    return resolve_process(
        None,
        backend=backend,
        role=Role.TRAINER,
        replica_num=replicas,
        topology=Topology(num_nodes=nodes, node_ip=address),
        environment=Environment(variables),
    )[0]


def member(line: str, nodes: int = 2, backend: Backend = Backend.MOONCAKE) -> Member:
    """A node as a line has it: its address, ``VARIABLE=value``, ``distribution=version``, what became of it."""
    address, *words = shlex.split(line)
    pairs = dict(word.split("=", 1) for word in words if "=" in word)
    variables = {name: text for name, text in pairs.items() if name.isupper()}
    software = {**HERE, **{name: text or None for name, text in pairs.items() if not name.isupper()}}
    plain = Member(address, address, software=software)
    if "silent" in words:
        return replace(plain, software={}, silence="did not answer within 30 s")
    if "without-package" in words:
        return replace(plain, lacks="ModuleNotFoundError: No module named 'mooncake_config'")
    if software[PACKAGE] != HERE[PACKAGE]:
        return plain
    process = asked(variables, address, nodes=nodes, backend=backend)
    installed = Installed((Distribution("mooncake-transfer-engine", "0.3.13.post1"),), "x86_64")
    node = Node(process, Host("/", ipv4=(address, "172.17.0.1", "127.0.0.1"), ipv6=("::1",)), Probes((), installed))
    host = process.own_endpoint.host if process.own_endpoint else address
    post = Post(address, host, None, refusal="no port is free") if "no-listener" in words else None
    return replace(plain, node=node, findings=examine_node(node), post=post or Post(address, host, 15000))


def cluster_of(lines: Sequence[str], backend: Backend = Backend.MOONCAKE) -> Cluster:
    """The cluster that a table of nodes describes. ``job`` begins the line of the process that asks."""
    job = next((shlex.split(line)[1:] for line in lines if line.startswith("job")), [])
    flags = dict(pairwise(job))
    tables = [line for line in lines if not line.startswith(("job", "no cluster")) and "->" not in line]
    members = tuple(member(line, len(tables), backend) for line in tables)
    variables = dict(word.split("=", 1) for word in job if word.partition("=")[0].isupper())
    replicas = int(flags.get("--mooncake-replica-num", "1"))
    return Cluster(
        asked(variables, "10.0.0.5", nodes=len(members) or 1, backend=backend, replicas=replicas),
        HERE,
        members,
        Topology(num_nodes=_count(flags, "--num-nodes"), trainer_nodes=_count(flags, "--trainer-nodes")),
        same=(flags["--same"],) if "--same" in flags else (),
        contacts=tuple(contact(line) for line in lines if "->" in line),
        missing=Missing("nobody is there.", "start Ray.") if "no cluster" in lines else None,
    )


def _count(flags: Mapping[str, str], flag: str) -> int | None:
    return int(flags[flag]) if flag in flags else None


def contact(line: str) -> Contact:
    """``10.0.0.5 -> 10.0.0.7  refused``."""
    pair, _, words = line.partition("  ")
    source, _, to = pair.partition(" -> ")
    detail = "another host answers there" if words == "wrong interface" else ""
    return Contact(source, to, f"{to}:15000", Meeting(words), 0.0004, detail)
