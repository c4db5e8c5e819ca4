"""Members: the nodes of a Ray cluster, what each answered, and who reaches whom: all that a rule across nodes reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from mooncake_config.addresses import Endpoint
from mooncake_config.display import shown
from mooncake_config.findings import Finding
from mooncake_config.node import Node
from mooncake_config.process import Process
from mooncake_config.reach import Contact, Post
from mooncake_config.topology import Topology

PACKAGE = "mooncake-config"
MOONCAKE = "Mooncake"
_NAMED = 3
"""Nodes that a sentence names one by one."""

_Key = TypeVar("_Key", bound=Hashable)


@dataclass(frozen=True)
class Member:
    """One Ray node.

    Args:
        name: its name in every output: the address that Ray knows it by, and more where nodes share one.
        address: that address, or host name.
        is_head: whether it is the head of the cluster.
        software: name of a program to its version there; None where it is not installed.
        node: process, host and probes, as they are there; None where it could not be asked.
        findings: what was found on it alone.
        silence: why it was not asked, to follow its name.
        lacks: why our own package cannot be imported there, to follow "it".
        post: where it listens, None where that was not asked.
    """

    name: str
    address: str
    is_head: bool = False
    software: Mapping[str, str | None] = field(default_factory=dict)
    node: Node | None = None
    findings: tuple[Finding, ...] = ()
    silence: str = ""
    lacks: str = ""
    post: Post | None = None

    @property
    def own_endpoint(self) -> Endpoint | None:
        """What its client would advertise."""
        return self.node.process.own_endpoint if self.node else None


@dataclass(frozen=True)
class Missing:
    """Why there is no cluster to ask: a fact, and the way out."""

    message: str
    fix: str


@dataclass(frozen=True)
class Cluster:
    """The nodes of a Ray cluster, seen from the process that asked them.

    Args:
        driver: the configuration as it is in the process that asked: the driver's, or the submitting shell's.
        software: versions there.
        members: every alive node, in order of their names, the head first.
        given: the job's shape as far as a person gave it.
        submits: whether the launch line is a ``ray job submit``, so that the driver runs elsewhere.
        same: distributions that must be the same on every node, beside those that always must.
        contacts: connections between nodes.
        missing: why no node could be asked.
    """

    driver: Process
    software: Mapping[str, str | None] = field(default_factory=dict)
    members: tuple[Member, ...] = ()
    given: Topology = field(default_factory=Topology)
    submits: bool = False
    same: tuple[str, ...] = ()
    contacts: tuple[Contact, ...] = ()
    missing: Missing | None = None

    @property
    def asked(self) -> tuple[Member, ...]:
        """The members whose configuration is known."""
        return tuple(member for member in self.members if member.node)

    @property
    def pairs(self) -> int:
        """How many connections there are from each node that listens to every other."""
        posts = sum(member.post is not None for member in self.members)
        return posts * (posts - 1)

    def processes(self) -> list[tuple[Member, Process]]:
        """Each member whose configuration is known, and that configuration."""
        return [(member, member.node.process) for member in self.members if member.node]

    def names(self, members: Sequence[Member]) -> str:
        """Some of the members, in few words."""
        return few_names([member.name for member in members], len(self.members))


def few_names(names: Sequence[str], total: int) -> str:
    """Names of nodes in few words: ``10.0.0.5, 10.0.0.7 and 996 more``, ``all 8 nodes``."""
    if len(names) == total > 1:
        return f"all {total} nodes"
    named = [shown(name) for name in names[:_NAMED]]
    if len(names) > _NAMED:
        return f"{', '.join(named)} and {len(names) - _NAMED} more"
    return named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}" if named else "no node"


def grouped(members: Iterable[Member], key: Callable[[Member], _Key]) -> dict[_Key, list[Member]]:
    """Members by what they have in common, the largest group first."""
    groups: dict[_Key, list[Member]] = {}
    for member in members:
        groups.setdefault(key(member), []).append(member)
    return dict(sorted(groups.items(), key=lambda item: -len(item[1])))


def folded(members: Sequence[Member]) -> list[Finding]:
    """What was found on each node alone, once for each cause: rule, fields and place to edit.

    Severity and words are those of the worst, first node. Where the others' words differ, since they name an address or
    a size of that node, ``node`` says whose these are. What one node has several times, such as two unknown keys of one
    JSON, stays several: the first of each node is one cause, the second another.
    """
    causes: dict[Hashable, list[tuple[Member, Finding]]] = {}
    for member in members:
        times: Counter[Hashable] = Counter()
        for item in member.findings:
            cause = (item.code, item.fields, item.origin)
            causes.setdefault((cause, times[cause]), []).append((member, item))
            times[cause] += 1
    return [_one(found, len(members)) for found in causes.values()]


def _one(found: Sequence[tuple[Member, Finding]], total: int) -> Finding:
    names = tuple(member.name for member, _ in found)
    member, worst = min(found, key=lambda pair: pair[1].severity.rank)
    node = few_names(names, total)
    if any(item.message != worst.message for _, item in found):
        node += f", in the words of {shown(member.name)}"
    return replace(worst, node=node, nodes=names)
