"""The survey: one question to every alive node of a Ray cluster, all nodes at once, each with a limit.

An actor is pinned to each node and needs no processor, so that a busy cluster answers too. What travels to a node first
is a class that needs nothing but Python there: a node without this package, or with another version of it, can still
say so.
"""

from __future__ import annotations

import os
import pickle
import platform
import re
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from mooncake_config.addresses import ENDPOINT, is_loopback, split_endpoint
from mooncake_config.answering import Question, Reply, version_of
from mooncake_config.dialogue import Outcome, ask_endpoint, at_once
from mooncake_config.display import shown
from mooncake_config.findings import Finding
from mooncake_config.init_kwargs import read_init_kwargs
from mooncake_config.job import Job
from mooncake_config.members import MOONCAKE, PACKAGE, Cluster, Member, Missing
from mooncake_config.node import Node
from mooncake_config.process import Backend
from mooncake_config.ray_head import Door, knock
from mooncake_config.reach import Contact, Meeting, Post, calling_seconds, chosen_pairs, port_range
from mooncake_config.rules import examine_cluster, refuse_unknown_rules
from mooncake_config.topology import Role

AUTO = "auto"
ATTACH_SECONDS = 20.0
"""Time to attach to Ray, which itself would try for minutes."""
NODE_SECONDS = 30.0
"""Time for a node to start an actor and to answer. The check of a node takes 5 s at most."""
LISTEN_SECONDS = 10.0
ALL_PAIRS = 16
"""Nodes up to which every pair is tried."""
_HEAD = "node:__internal_head__"

Progress = Callable[[str, int, int], None]
"""Told what is done, how many nodes have answered, and of how many."""


@dataclass(frozen=True)
class Survey:
    """What a cluster showed: its members with their answers, and all findings, worst first."""

    cluster: Cluster
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class Seat:
    """An alive node as Ray lists it."""

    node_id: str
    address: str
    is_head: bool = False


class _NoCluster(Exception):
    """There is nobody to ask."""

    def __init__(self, message: str, fix: str) -> None:
        super().__init__(message, fix)
        self.missing = Missing(message, fix)


def _quietly(_what: str, _done: int, _total: int) -> None:
    pass


def survey(
    job: Job,
    ignore: Sequence[str] = (),
    *,
    address: str = AUTO,
    same: Sequence[str] = (),
    node_seconds: float = NODE_SECONDS,
    progress: Progress = _quietly,
) -> Survey:
    """Checks every alive node of a Ray cluster and compares them.

    A process that is attached to Ray already stays so, and its cluster is asked; another one attaches for the time of
    the survey. Never raises for what it finds out there: a cluster that cannot be asked is a finding too.

    Args:
        job: the question; it is resolved on each node, in that node's environment.
        ignore: codes or names of rules whose findings are dropped.
        address: ``auto``, or ``HOST:PORT`` of Ray's head.
        same: names of distributions that must be the same on every node.
        node_seconds: the limit of each node.
        progress: told of each answer.

    Raises:
        ValueError: ``ignore`` names a rule that does not exist.
    """
    refuse_unknown_rules(ignore)
    job = _read_once(job)
    try:
        with _attached(address) as ray:
            seats = alive_seats(ray.nodes())
            job = counted(job, seats)
            cluster = _empty_cluster(job, same)
            question = Question(for_nodes(job), tuple(ignore), tuple(same))
            with _surveyors(ray, seats) as actors:
                members = _ask(ray, actors, question, node_seconds, progress)
                contacts: list[Contact] = []
                if job.backend is Backend.MOONCAKE:
                    members, contacts = _reach(ray, actors, members, progress)
            cluster = replace(cluster, members=tuple(members.values()), contacts=tuple(contacts))
    except _NoCluster as refusal:
        cluster = replace(_empty_cluster(job, same), missing=refusal.missing)
    return Survey(cluster, examine_cluster(cluster, ignore))


def _read_once(job: Job) -> Job:
    """The job with its standard input read: nobody else can read it."""
    return replace(job, init_kwargs=read_init_kwargs("-")) if job.init_kwargs == "-" else job


def counted(job: Job, seats: Sequence[Seat]) -> Job:
    """The job with its number of nodes, where that was not given: the machines of the cluster."""
    machines = len({seat.address for seat in seats}) or None
    shape = replace(job.topology, num_nodes=job.topology.num_nodes or machines)
    return replace(job, topology=shape)


def for_nodes(job: Job) -> Job:
    """The job as it reaches a node: of the variables on a launch line only those of a runtime environment do."""
    pasted = job.pasted
    nothing = replace(
        pasted, submits=False, for_driver=frozenset(), cleared=False, unset=frozenset(), through_sudo=None
    )
    handed = {name: text for name, text in pasted.variables.items() if name in pasted.spots}
    unknown = {name: text for name, text in pasted.unknown.items() if name in pasted.spots}
    faults = tuple(fault for fault in job.faults if fault.origin.spot not in pasted.unknown)
    return replace(job, pasted=replace(nothing, variables=handed, unknown=unknown, kept={}), faults=faults)


def _empty_cluster(job: Job, same: Sequence[str]) -> Cluster:
    local = replace(job, pasted=replace(job.pasted, submits=False), role=Role.DRIVER)
    given = job.topology
    return Cluster(
        local.resolve(), own_software(), given=given, submits=job.pasted.submits, same=tuple(dict.fromkeys(same))
    )


def own_software() -> dict[str, str | None]:
    """The versions of this process."""
    return {"Python": platform.python_version(), "Ray": version_of("ray"), PACKAGE: version_of(PACKAGE)}


@contextmanager
def _attached(address: str) -> Iterator[Any]:
    """Ray, attached to the cluster for as long as the block lasts; a process that was attached before stays so."""
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # Ray 2.60 announces the change of its default
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        message = f"Ray cannot be imported here, so there is no cluster to ask: {shown(str(error))}."
        raise _NoCluster(message, "run `pip install 'mooncake-config[ray]'` with this Python.") from None
    if ray.is_initialized():
        yield ray
        return
    _attach(ray, address)
    try:
        yield ray
    finally:
        ray.shutdown()


def _attach(ray: Any, address: str) -> None:
    spot, named = ("RAY_ADDRESS", os.environ.get("RAY_ADDRESS", "")) if address == AUTO else ("--address", address)
    if re.fullmatch(ENDPOINT, named):
        _refuse_dead_address(named, spot)
    _refuse_closed_door(address)
    # In a thread, since Ray tries a dead address for minutes and cannot be told to stop.
    said = at_once([partial(_init, ray, address)], ATTACH_SECONDS)[0]
    if said is None:
        message = f"Ray could not attach to the cluster ({shown(address)}) within {ATTACH_SECONDS:g} s."
        raise _NoCluster(message, "see `ray status`, and what Ray logs on the head (/tmp/ray/session_latest/logs).")
    if said:
        fix = "start Ray on this machine (`ray start --address=HEAD:6379`), or give --address."
        if "version mismatch" in said.lower():
            fix = "run this with the Python environment of the cluster's nodes: Ray and Python must be the same."
        raise _NoCluster(f"Ray cannot attach to a cluster ({shown(address)}): {said}", fix)


def _init(ray: Any, address: str) -> str:
    """Empty where it worked, else what Ray says."""
    try:
        ray.init(address=address, logging_level="ERROR", log_to_driver=False)
    except BaseException as error:  # noqa: BLE001 - whatever Ray raises is the answer, SystemExit included
        return shown(" ".join(str(error).split()) or type(error).__name__, 300)
    return ""


def _refuse_dead_address(address: str, spot: str) -> None:
    """Asks who listens there: the head of Ray speaks gRPC, which is HTTP/2. ``spot`` is where the address stands."""
    endpoint = split_endpoint(address)
    answer = ask_endpoint("address", endpoint)
    if answer.outcome is not Outcome.HTTP2:
        message = f"{shown(address)} ({spot}) {answer}, so the head of a Ray cluster is not there."
        raise _NoCluster(message, f"{_WAYS.get(answer.outcome, _PORT)} in {spot}, or on a node leave it out.")


_PORT = "write the port of `ray start --head` (6379 by default)"
_NAME = "write the head's IP, or a name that this machine resolves,"
_NETWORK = "open the way to that host and port (6379 by default), or write an address that this machine reaches"
_WAYS = {
    Outcome.UNKNOWN_NAME: _NAME,
    Outcome.NAME_TIMED_OUT: _NAME,
    Outcome.TIMED_OUT: _NETWORK,
    Outcome.UNREACHABLE: _NETWORK,
}
"""What to do where the fault is not the port."""


def _refuse_closed_door(address: str) -> None:
    """Asks the head in a child process whether it is there and lets this process in: Ray itself would ask for long."""
    door, where = knock(address)
    if door is Door.DEAD:
        message = f"Ray has noted a cluster at {shown(where)}, and nobody answers there."
        fix = "start Ray on this machine; a head that died leaves its address behind: `ray stop --force` clears it."
        raise _NoCluster(message, fix)
    if door is Door.LOCKED:
        message = f"the Ray cluster ({shown(address)}) wants a token, and this shell sends none, or another one."
        fix = "copy the head's ~/.ray/auth_token here, or export RAY_AUTH_TOKEN, and export RAY_AUTH_MODE=token."
        raise _NoCluster(message, fix)


def alive_seats(listed: Sequence[Mapping[str, Any]]) -> list[Seat]:
    """The alive nodes of ``ray.nodes()``, the head first, then by address."""
    seats = [
        Seat(str(item["NodeID"]), str(item["NodeManagerAddress"]), _HEAD in item.get("Resources", {}))
        for item in listed
        if item.get("Alive")
    ]
    return sorted(seats, key=lambda seat: (not seat.is_head, _natural(seat.address), seat.node_id))


def _natural(address: str) -> list[tuple[int, str]]:
    """10.0.0.9 before 10.0.0.10."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in address.split(".")]


def seat_names(seats: Sequence[Seat]) -> list[str]:
    """A name for each: its address, with the head of its node ID where several raylets share the address."""
    sharing = Counter(seat.address for seat in seats)
    return [seat.address if sharing[seat.address] == 1 else f"{seat.address}#{seat.node_id[:8]}" for seat in seats]


@contextmanager
def _surveyors(ray: Any, seats: Sequence[Seat]) -> Iterator[dict[str, tuple[Seat, Any]]]:
    """An actor on each node, by the node's name; all of them are ended afterwards."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    kind = ray.remote(_surveyor_class())
    with ExitStack() as ends:
        actors = {}
        for seat, name in zip(seats, seat_names(seats), strict=True):
            pinned = NodeAffinitySchedulingStrategy(seat.node_id, soft=False)
            actor = kind.options(num_cpus=0, max_restarts=0, scheduling_strategy=pinned).remote()
            ends.callback(ray.kill, actor)
            actors[name] = (seat, actor)
        yield actors


def _surveyor_class() -> type:
    """The class of the actors. It is defined in here so that Ray sends its code, not the name of this module."""

    class Surveyor:
        def ask(self, question: bytes, version: str | None) -> dict[str, object]:
            """Versions first; an answer only where this package has the version of the asking process."""
            import platform
            from importlib import metadata

            import ray

            said: dict[str, object] = {"Python": platform.python_version(), "Ray": ray.__version__}
            try:
                from mooncake_config import answering
            except Exception as error:  # noqa: BLE001 - whatever keeps the package from being imported
                return {**said, "lacks": f"{type(error).__name__}: {error}"}
            try:
                said["package"] = metadata.version("mooncake-config")
            except metadata.PackageNotFoundError:
                said["package"] = None
            return {**said, "reply": answering.reply(question)} if said["package"] == version else said

        def listen(self, name: str, host: str, ports: tuple[int, int], word: str) -> bytes:
            """Opens a listener on the data address that this node resolved; it stands until the actor ends."""
            import pickle

            from mooncake_config import reach

            self.listener = reach.listen(name, host, ports, word)
            return pickle.dumps(self.listener.post)

        def call(self, source: str, posts: bytes, own_address: str) -> bytes:
            """Connects to the listeners of other nodes."""
            import pickle

            from mooncake_config import reach

            return pickle.dumps(reach.call_all(source, pickle.loads(posts), own_address))

    return Surveyor


@dataclass(frozen=True)
class Silence:
    """Why nothing came back, to follow a node's name."""

    words: str


def _ask(
    ray: Any, actors: Mapping[str, tuple[Seat, Any]], question: Question, seconds: float, progress: Progress
) -> dict[str, Member]:
    sent, version = ray.put(pickle.dumps(question)), version_of(PACKAGE)
    refs = {actor.ask.remote(sent, version): name for name, (_, actor) in actors.items()}
    said = _collect(ray, refs, seconds, partial(progress, "asking"))
    return {name: member_of(name, seat, said[name]) for name, (seat, _) in actors.items()}


def _collect(ray: Any, refs: Mapping[Any, str], seconds: float, told: Callable[[int, int], None]) -> dict[str, object]:
    """What each node gave back, by its name; a :class:`Silence` where that was nothing within the limit.

    As long as answers come, nobody is given up for half of the limit more: raylets that share a busy machine are slow.
    """
    waiting, ends = dict(refs), time.monotonic() + seconds
    found: dict[str, object] = {}
    told(0, len(refs))
    while waiting and (left := ends - time.monotonic()) > 0:
        ready, _ = ray.wait(list(waiting), num_returns=len(waiting), timeout=min(left, 0.2))
        for ref in ready:
            found[waiting.pop(ref)] = _given(ray, ref)
            ends = max(ends, time.monotonic() + seconds / 2)
        told(len(found), len(refs))
    return {**{name: Silence(f"did not answer within {seconds:g} s") for name in waiting.values()}, **found}


def _given(ray: Any, ref: Any) -> object:
    try:
        return ray.get(ref, timeout=5)
    except Exception as error:  # noqa: BLE001 - whatever happened to the actor is that node's answer
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return Silence(f"failed: {shown(lines[-1] if lines else type(error).__name__, 200)}")


def member_of(name: str, seat: Seat, said: object) -> Member:
    """What a node's answer says, also where it is none, or comes from another version of this package."""
    member = Member(name, seat.address, seat.is_head)
    if not isinstance(said, Mapping):
        return replace(member, silence=said.words if isinstance(said, Silence) else "gave an answer of another kind")
    software: dict[str, str | None] = {"Python": str(said.get("Python")), "Ray": str(said.get("Ray"))}
    if "lacks" in said:
        return replace(member, software=software, lacks=shown(said["lacks"], 200))
    software[PACKAGE] = said["package"]
    if "reply" not in said:
        return replace(member, software=software)
    try:
        answer: Reply = pickle.loads(said["reply"])
    except Exception as error:  # noqa: BLE001 - the same version with other code in it
        return replace(member, software=software, silence=f"gave an answer that cannot be read: {shown(str(error))}")
    software = {**software, **_mooncake(answer.node), **answer.same}
    return replace(member, software=software, node=answer.node, findings=answer.findings)


def _mooncake(node: Node) -> dict[str, str | None]:
    installed = node.probes.installed
    if installed is None:
        return {}
    versions = sorted({item.version or "unknown" for item in installed.distributions})
    return {MOONCAKE: " and ".join(versions) or None}


def _reach(
    ray: Any, actors: Mapping[str, tuple[Seat, Any]], members: dict[str, Member], progress: Progress
) -> tuple[dict[str, Member], list[Contact]]:
    """Opens a listener on each node, then lets each call the others."""
    wanted = {name: endpoint.host for name, member in members.items() if (endpoint := member.own_endpoint)}
    if len(wanted) < 2:
        return members, []
    word = secrets.token_hex(8)
    opened = {
        actors[name][1].listen.remote(name, host, _ports(members[name]), f"mooncake-config {word} {name}"): name
        for name, host in wanted.items()
    }
    listening = _collect(ray, opened, LISTEN_SECONDS, partial(progress, "listening"))
    posts = {name: _post(name, wanted[name], said) for name, said in listening.items()}
    head = next((name for name, member in members.items() if member.is_head), None)
    plan = dict(chosen_pairs(list(wanted), head, ALL_PAIRS))
    calls = {
        actors[name][1].call.remote(
            name, pickle.dumps([posts[other] for other in others]), _address(members[name])
        ): name
        for name, others in plan.items()
    }
    seconds = LISTEN_SECONDS + max(calling_seconds(len(others)) for others in plan.values())
    found = _collect(ray, calls, seconds, partial(progress, "connecting"))
    contacts = [item for name, others in plan.items() for item in _contacts(found[name], name, others, posts)]
    return {name: replace(member, post=posts.get(name)) for name, member in members.items()}, contacts


def _ports(member: Member) -> tuple[int, int]:
    return port_range(member.node.process.variables.variables if member.node else {})


def _post(name: str, host: str, said: object) -> Post:
    if isinstance(said, bytes):
        post: Post = pickle.loads(said)
        return post
    return Post(name, host, None, refusal=said.words if isinstance(said, Silence) else "no answer")


def _contacts(said: object, source: str, others: Sequence[str], posts: Mapping[str, Post]) -> list[Contact]:
    """What a node found when it called the others; where it gave no answer to that, none was tried."""
    if isinstance(said, bytes):
        contacts: list[Contact] = pickle.loads(said)
        return contacts
    why = said.words if isinstance(said, Silence) else ""
    return [Contact(source, to, str(posts[to]), Meeting.NOT_TRIED, detail=why) for to in others]


def _address(member: Member) -> str:
    """The IP that a node's data should leave by, empty where it is not known to be its own, or is loopback."""
    endpoint, node = member.own_endpoint, member.node
    if endpoint is None or node is None:
        return ""
    known = node.addresses_of("local_hostname", endpoint.host)
    return next((item for item in known if node.is_own(item) and not is_loopback(item)), "")
