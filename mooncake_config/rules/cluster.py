"""MC4xx: the nodes of a cluster against each other, and against the process that asked them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence

from mooncake_config.addresses import ip_of, is_loopback
from mooncake_config.display import PASTED_LIMIT, shown
from mooncake_config.findings import Severity
from mooncake_config.members import MOONCAKE, PACKAGE, Cluster, Member, few_names, grouped
from mooncake_config.process import Process
from mooncake_config.provenance import Claim, Origin, Source
from mooncake_config.reach import CONNECT_SECONDS, Contact, Meeting
from mooncake_config.rules.rule import Problem, rule
from mooncake_config.settings import FIELDS
from mooncake_config.sources import FieldSpec

_VALUES_NAMED = 4
"""Different values that a sentence names one by one."""
_PAIRS_NAMED = 3
_ALIKE = "install one version of it on every node: the same image, or the same lock file."
_TRAINER_FLAG = Origin(Source.CLI, "--trainer-nodes")
_SAME_FLAG = Origin(Source.CLI, "--same")
_REJECTIONS = {
    Meeting.REFUSED: "is refused",
    Meeting.UNREACHABLE: "finds no route",
    Meeting.UNKNOWN_NAME: "fails at the name, which does not resolve there",
}


@rule("MC400", Severity.ERROR, protects=True)
def no_cluster(cluster: Cluster) -> Iterator[Problem]:
    """There is no Ray cluster that could be asked.

    Sees whether Ray is installed here, whether something answers at --address as the head of Ray does, and whether Ray
    lets this process in: its version of Ray and of Python must be the cluster's, and so must its token, where the
    cluster wants one.

    Why: no node was looked at, so nothing is known of any. Ray itself waits for minutes at a dead address.

    Fix: run the check on a node of the cluster, or give --address HOST:PORT, the port of `ray start --head` (6379).

    Fires:
        no cluster
    Silent:
        10.0.0.5
    """
    if cluster.missing:
        yield Problem((), cluster.missing.message, cluster.missing.fix)


@rule("MC401", Severity.ERROR)
def silent_node(cluster: Cluster) -> Iterator[Problem]:
    """A node of the cluster gave no answer.

    Sees an actor that is pinned to each alive node and needs no processor, so a busy node answers too. It has a limit.

    Why: Ray counts a node as alive for a while after it stopped, and a node on which no worker starts (a full disk or
    memory, a broken environment) trains nothing. Nor does one whose workers cannot be reached: Ray lends them ports
    from 10002 to 19999, among which those of Mooncake lie, so what filters the one filters the other (measured).

    Fix: look at the node: `ray status`, the logs below the session directory (/tmp/ray/session_latest/logs); open the
    ports, or move Ray's with --min-worker-port and --max-worker-port.

    Fires:
        10.0.0.5
        10.0.0.7  silent
    Silent:
        10.0.0.5
        10.0.0.7
    """
    silent = [member for member in cluster.members if member.silence]
    for words, members in grouped(silent, lambda member: member.silence).items():
        message = f"{cluster.names(members)} {words}, so nothing is known of {_them(members)}."
        fix = "see what Ray logs there (/tmp/ray/session_latest/logs), and open Ray's worker ports (10002 to 19999)."
        yield _about(members, cluster, (), message, fix)


@rule("MC402", Severity.ERROR)
def package_missing_on_node(cluster: Cluster) -> Iterator[Problem]:
    """mooncake-config cannot be imported on a node.

    Sees the import in the Python that runs Ray's workers there, which is the Python of the trainers.

    Why: trainers on that node import it too, and would end there. Nothing else can be asked of the node.

    Fix: install the same version on every node, into the environment in which `ray start` runs.

    Fires:
        10.0.0.5
        10.0.0.7  without-package
    Silent:
        10.0.0.5
        10.0.0.7
    """
    lacking = [member for member in cluster.members if member.lacks]
    for words, members in grouped(lacking, lambda member: member.lacks).items():
        message = f"{PACKAGE} cannot be imported by Ray's workers on {cluster.names(members)}: {words}."
        version = cluster.software.get(PACKAGE)
        exact = f"=={version}" if version else ""
        fix = f"run `pip install {PACKAGE}{exact}` there, in the environment of `ray start`, and start Ray anew."
        yield _about(members, cluster, (), message, fix)


@rule("MC403", Severity.ERROR)
def package_of_another_version(cluster: Cluster) -> Iterator[Problem]:
    """mooncake-config has another version on a node than here.

    Why: versions may resolve differently, and their answers cannot be compared; such a node is not asked further.

    Fix: install the same version everywhere.

    Fires:
        10.0.0.5
        10.0.0.7  mooncake-config=0.0.1
    Silent:
        10.0.0.5
        10.0.0.7
    """
    here = cluster.software.get(PACKAGE)
    others = [member for member in cluster.members if member.software.get(PACKAGE, here) != here and not member.lacks]
    if others:
        there = _values(cluster, grouped(others, lambda member: member.software[PACKAGE] or "an unknown version"))
        message = f"{PACKAGE} is {here or 'of an unknown version'} here and {there}; nothing else was asked there."
        yield _about(others, cluster, (), message, f"install {PACKAGE} {here or 'in one version'} on every node.")


@rule("MC404", Severity.WARNING)
def fewer_nodes_than_planned(cluster: Cluster) -> Iterator[Problem]:
    """Fewer nodes are alive than the job is said to have.

    Sees --num-nodes and --trainer-nodes against the alive nodes of Ray.

    Why: actors of the missing nodes wait for resources without end, or all run on the nodes that are there.

    Fix: join the missing nodes with `ray start --address`, or correct the number.

    Fires:
        job --num-nodes 3
        10.0.0.5
        10.0.0.7
    Silent:
        job --num-nodes 2
        10.0.0.5
        10.0.0.7
    """
    alive = len(cluster.members)
    for flag, number in (("--num-nodes", cluster.given.num_nodes), ("--trainer-nodes", cluster.given.trainer_nodes)):
        if number is not None and number > alive > 0:
            message = f"{flag} says {number}, and {alive} {'node is' if alive == 1 else 'nodes are'} alive in Ray."
            fix = f"join the missing with `ray start --address=HEAD:6379`, or write {flag} {alive}."
            yield Problem((), message, fix, origin=Origin(Source.CLI, flag))


@rule("MC410", Severity.ERROR)
def disagreement_between_nodes(cluster: Cluster) -> Iterator[Problem]:
    """Nodes do not agree on the master, the metadata server or the protocol.

    Sees the value that each node resolves in its own environment, and where it comes from there; a node without a value
    disagrees too. Sizes and devices may differ.

    Why: clients of two masters are two Stores: what one puts the other never finds, and no operation says why. With two
    protocols or metadata servers the transfers between them fail.

    Fix: write the setting once for all: in --mooncake-store-init-kwargs or in env_vars of --runtime-env-json. A
    variable that was exported before `ray start` holds for that node alone.

    Fires:
        10.0.0.5  MOONCAKE_MASTER=10.0.0.5:50051
        10.0.0.7  MOONCAKE_MASTER=10.0.0.6:50051
    Silent:
        10.0.0.5  MOONCAKE_MASTER=10.0.0.5:50051
        10.0.0.7  MOONCAKE_MASTER=10.0.0.5:50051
    """
    for spec in FIELDS:
        if not spec.wiring.agreed:
            continue
        groups = grouped(cluster.asked, lambda member: _text(member, spec.name))  # noqa: B023 - called at once
        if len(groups) > 1:
            (_, largest), *others = groups.items()
            apart = [member for _, members in others for member in members]
            message = f"the nodes do not agree on {spec.name}: {_claims(cluster, spec.name, groups)}."
            origin = _winner_origin(apart[0], spec.name) or _winner_origin(largest[0], spec.name)
            yield _about(apart, cluster, (spec.name,), message, _one_for_all(spec), origin=origin)


@rule("MC411", Severity.ERROR)
def variable_on_the_driver_only(cluster: Cluster) -> Iterator[Problem]:
    """A variable is set in the process that asks, and not on the nodes.

    Sees the variables that win a field here, against what wins on each node. For sizes it is a warning.

    Why: a node's workers get the environment in which `ray start` ran there. What is set on the driver, or in the shell
    that runs `ray job submit`, reaches nobody (measured).

    Fix: hand it over: `ray.init(runtime_env=resolution.to_runtime_env())`, or the same text as --runtime-env-json.

    Fires:
        job MOONCAKE_PROTOCOL=tcp
        10.0.0.5
        10.0.0.7
    Silent:
        job MOONCAKE_PROTOCOL=tcp
        10.0.0.5  MOONCAKE_PROTOCOL=tcp
        10.0.0.7  MOONCAKE_PROTOCOL=tcp
    """
    apart = {spec: _apart(cluster, spec) for spec in FIELDS if _from_variable(cluster.driver, spec)}
    unheard = {spec: members for spec, members in apart.items() if members}
    sharing = {spec.wiring.variable: shown(cluster.driver.values[spec.name], PASTED_LIMIT) for spec in unheard}
    for spec, members in unheard.items():
        here = f"{spec.wiring.variable} is {shown(_raw(cluster.driver, spec.name))} in this shell"
        where = "reaches no node" if len(members) == len(cluster.asked) else f"does not reach {cluster.names(members)}"
        message = f"{here} and {where}, where {_instead(spec.name, members)}."
        given = json.dumps({"env_vars": sharing})
        fix = f"hand it over: --runtime-env-json '{given}', or ray.init(runtime_env=resolution.to_runtime_env())."
        weight = None if spec.wiring.agreed else Severity.WARNING
        yield _about(members, cluster, (spec.name,), message, fix, weight)


def _from_variable(process: Process, spec: FieldSpec) -> bool:
    """Whether a variable of this process itself wins a field that is no node's own."""
    winner = process.winner(spec.name)
    return bool(
        winner
        and not spec.wiring.node_local
        and winner.origin.source is Source.ENV
        and winner.origin.spot == spec.wiring.variable
        and process.values[spec.name] is not None
    )


def _apart(cluster: Cluster, spec: FieldSpec) -> list[Member]:
    """The members with another value; where some agree, those that have a variable of their own are MC410's."""
    wanted = cluster.driver.values[spec.name]
    apart = [(member, process) for member, process in cluster.processes() if process.values[spec.name] != wanted]
    every = len(apart) == len(cluster.asked)
    return [member for member, process in apart if every or not _from_variable(process, spec)]


@rule("MC412", Severity.INFO)
def variable_missing_on_the_driver(cluster: Cluster) -> Iterator[Problem]:
    """Every node has a variable that a driver started from here would lack.

    Sees fields on which the nodes agree by a variable, and on which the process that asks resolves something else.

    Why: the driver opens a client of its own. Started from this shell it would use another master, metadata server or
    protocol. A `ray job submit` starts it on a node, and nothing is said then.

    Fix: export the variable here as well, or start the job with `ray job submit`.

    Fires:
        10.0.0.5  MOONCAKE_MASTER=10.0.0.5:50051
        10.0.0.7  MOONCAKE_MASTER=10.0.0.5:50051
    Silent:
        job MOONCAKE_MASTER=10.0.0.5:50051
        10.0.0.5  MOONCAKE_MASTER=10.0.0.5:50051
        10.0.0.7  MOONCAKE_MASTER=10.0.0.5:50051
    """
    for spec in FIELDS:
        if cluster.submits or not spec.wiring.agreed or _from_variable(cluster.driver, spec):
            continue
        found = {process.values[spec.name] for _, process in cluster.processes() if _from_variable(process, spec)}
        if len(found) == 1 and found != {cluster.driver.values[spec.name]}:
            variable, value = spec.wiring.variable, found.pop()
            here = f"the nodes have {variable}={shown(value)}, and this shell has not"
            message = f"{here}: a driver started here would lack it."
            pasted = f"{variable}={shlex.quote(shown(value, PASTED_LIMIT))}"
            yield Problem((spec.name,), message, f"export {pasted} here too, or use `ray job submit`.")


@rule("MC420", Severity.ERROR)
def same_hostname_on_two_nodes(cluster: Cluster) -> Iterator[Problem]:
    """Two nodes advertise the same local_hostname.

    Sees host names and IPs alike, on nodes that Ray knows by different addresses. A node that advertises an address of
    another node is MC421, and loopback is MC101.

    Why: whoever wants the one's data connects to the other. Setup succeeds on both (measured).

    Fix: unset it, so that each uses its Ray node IP, or write each node's own address on the data network.

    Fires:
        10.0.0.5  MOONCAKE_LOCAL_HOSTNAME=172.17.0.1
        10.0.0.7  MOONCAKE_LOCAL_HOSTNAME=172.17.0.1
    Silent:
        10.0.0.5  MOONCAKE_LOCAL_HOSTNAME=10.0.0.5
        10.0.0.7  MOONCAKE_LOCAL_HOSTNAME=10.0.0.7
    """
    foreign = _foreigners(cluster)
    own = [member for member in cluster.asked if member.own_endpoint and member.name not in foreign]
    for host, members in grouped(own, lambda member: member.own_endpoint.host if member.own_endpoint else "").items():
        if len({member.address for member in members}) > 1 and not is_loopback(host):
            message = f"{few_names([member.name for member in members], 0)} advertise the same address, {shown(host)}."
            fix = "unset local_hostname, so that each node uses its Ray node IP, or write each node's own address."
            origin = _winner_origin(members[0], "local_hostname")
            yield _about(members, cluster, ("local_hostname",), message, fix, origin=origin)


@rule("MC421", Severity.ERROR)
def address_of_another_node(cluster: Cluster) -> Iterator[Problem]:
    """A node advertises an address that it does not own and another node of the cluster does.

    Sees local_hostname against the addresses that each node has. An address that no node has is MC220.

    Why: setup succeeds (measured), and every transfer to this node goes to the other one.

    Fix: take it out of the JSON or the runtime environment, which reach every node; the Ray node IP is right on each.

    Fires:
        10.0.0.5  MOONCAKE_LOCAL_HOSTNAME=10.0.0.5
        10.0.0.7  MOONCAKE_LOCAL_HOSTNAME=10.0.0.5
    Silent:
        10.0.0.5  MOONCAKE_LOCAL_HOSTNAME=10.0.0.5
        10.0.0.7  MOONCAKE_LOCAL_HOSTNAME=10.0.0.7
    """
    owners = _foreigners(cluster)
    foreign = [member for member in cluster.asked if member.name in owners]
    by_place = grouped(foreign, lambda member: (_host(member), _winner_origin(member, "local_hostname")))
    for (host, origin), members in by_place.items():
        verb = "advertises" if len(members) == 1 else "advertise"
        owner = shown(owners[members[0].name].name)
        whose = "the address of another node" if owner == host else f"an address of node {owner}"
        message = f"{cluster.names(members)} {verb} {shown(host)}, {whose}."
        fix = "take it out of what reaches every node; unset, each node uses its own Ray node IP."
        yield _about(members, cluster, ("local_hostname",), message, fix, origin=origin)


def _host(member: Member) -> str:
    return member.own_endpoint.host if member.own_endpoint else ""


def _foreigners(cluster: Cluster) -> dict[str, Member]:
    """Names of members that advertise an address which they have not and another member has, and that member."""
    having = {address: member for member in cluster.asked for address in _addresses(member)}
    owners = {}
    for member in cluster.asked:
        ip = ip_of(_host(member))
        owner = having.get(str(ip)) if ip and member.node and member.node.is_own(str(ip)) is False else None
        if owner and owner.address != member.address:
            owners[member.name] = owner
    return owners


def _addresses(member: Member) -> tuple[str, ...]:
    return (*(member.node.host.ipv4 or ()), *(member.node.host.ipv6 or ())) if member.node else ()


@rule("MC422", Severity.INFO)
def training_nodes_unknown(cluster: Cluster) -> Iterator[Problem]:
    """Several replicas are asked for, and it is unknown on how many nodes trainers will run.

    Sees a --mooncake-replica-num above 1 without --trainer-nodes. With it, fewer training nodes than replicas are
    MC104.

    Why: only nodes that train contribute a segment, and each replica needs one of its own. Mooncake silently makes
    fewer copies (measured). Where Ray will put trainers cannot be seen before they run.

    Fix: tell the number with --trainer-nodes.

    Fires:
        job --mooncake-replica-num 2
        10.0.0.5
        10.0.0.7
    Silent:
        job --mooncake-replica-num 2 --trainer-nodes 2
        10.0.0.5
        10.0.0.7
    """
    replicas = cluster.driver.replica_num
    if replicas > 1 and cluster.given.trainer_nodes is None and cluster.asked:
        alive = len(cluster.members)
        message = (
            f"{shown(replicas)} replicas need as many training nodes, and on how many of the {alive} nodes trainers "
            "will run cannot be seen from here."
        )
        yield Problem((), message, "tell it with --trainer-nodes.", origin=_TRAINER_FLAG)


@rule("MC430", Severity.ERROR)
def different_mooncake(cluster: Cluster) -> Iterator[Problem]:
    """Nodes have different versions of Mooncake.

    Sees the installed distributions of the package mooncake; which build it is (CUDA 12, CUDA 13, none) may differ.

    Why: a master takes clients of its own version only, and the others end with -600 or -1 and no reason. What one
    version packs, another may not unpack.

    Fix: install one version on every node, the master's included.

    Fires:
        10.0.0.5  Mooncake=0.3.13.post1
        10.0.0.7  Mooncake=0.3.12.post1
    Silent:
        10.0.0.5  Mooncake=0.3.13.post1
        10.0.0.7  Mooncake=0.3.13.post1
    """
    yield from _different(cluster, MOONCAKE, _ALIKE)


@rule("MC431", Severity.ERROR)
def different_ray(cluster: Cluster) -> Iterator[Problem]:
    """Nodes have different versions of Ray.

    Why: Ray refuses such a node when it joins, unless it is told not to look (RAY_IGNORE_VERSION_MISMATCH); then its
    processes misunderstand each other at some later time.

    Fix: install one version on every node.

    Fires:
        10.0.0.5  Ray=2.60.0
        10.0.0.7  Ray=2.59.0
    Silent:
        10.0.0.5  Ray=2.60.0
        10.0.0.7  Ray=2.60.0
    """
    yield from _different(cluster, "Ray", _ALIKE)


@rule("MC432", Severity.ERROR)
def different_python(cluster: Cluster) -> Iterator[Problem]:
    """Nodes have different versions of Python.

    Sees 3.11 against 3.12; where only the last number differs this is a warning.

    Why: what one pickles another may not read, functions above all, and Ray pickles everything. Wheels differ too.

    Fix: use one image or one environment on every node.

    Fires:
        10.0.0.5  Python=3.11.9
        10.0.0.7  Python=3.12.3
    Silent:
        10.0.0.5  Python=3.11.9
        10.0.0.7  Python=3.11.9
    """
    found = {(member.software.get("Python") or "").rpartition(".")[0] for member in cluster.members} - {""}
    weight = Severity.WARNING if len(found) == 1 else None
    yield from _different(
        cluster, "Python", "use the same Python on every node: one image, or one environment.", weight
    )


@rule("MC433", Severity.ERROR)
def different_distribution(cluster: Cluster) -> Iterator[Problem]:
    """Nodes have different versions of a distribution that was named with --same, or some lack it.

    Sees the version, and the commit where it was installed from one (direct_url.json, or the checkout of an editable
    install). A node without it differs too.

    Why: the reference asks for the same revision of Miles on every node. Actors of two revisions disagree on arguments
    and on what a message holds.

    Fix: install one revision everywhere.

    Fires:
        job --same miles
        10.0.0.5  miles=0.2.0@31f1ca96
        10.0.0.7  miles=0.2.0@7c01b2e4
    Silent:
        job --same miles
        10.0.0.5  miles=0.2.0@31f1ca96
        10.0.0.7  miles=0.2.0@31f1ca96
    """
    for name in cluster.same:
        yield from _different(cluster, name, f"install one revision of {shown(name)} on every node.", None, "missing")
        if cluster.asked and all(member.software.get(name) is None for member in cluster.asked):
            message = f"{shown(name)} is installed on no node, so there is nothing to compare."
            yield Problem((), message, "write the name as `pip list` shows it.", Severity.WARNING, _SAME_FLAG)


@rule("MC440", Severity.ERROR)
def refused_between_nodes(cluster: Cluster) -> Iterator[Problem]:
    """A node refuses, or has no route for, connections from another one to its data address.

    Sees a listener that this check opened there, on a port that Mooncake would use, so somebody did listen.

    Why: transfers between the two fail with -800.

    Fix: let the nodes connect to each other on ports 15000 to 17000 (MC_MIN_RPC_PORT to MC_MAX_RPC_PORT): a firewall
    that rejects answers so, and so does another machine that has the address on the caller's network.

    Fires:
        10.0.0.5
        10.0.0.7
        10.0.0.5 -> 10.0.0.7  refused
    Silent:
        10.0.0.5
        10.0.0.7
        10.0.0.5 -> 10.0.0.7  reached
    """
    for kind, words in _REJECTIONS.items():
        found = [contact for contact in cluster.contacts if contact.meeting is kind]
        message = f"{_pairs(found)} {words}, although a listener of this check stood there."
        fix = "let nodes connect to each other on ports 15000 to 17000 (MC_MIN_RPC_PORT to MC_MAX_RPC_PORT)."
        yield from _about_contacts(found, cluster, message, fix)


@rule("MC441", Severity.ERROR)
def filtered_between_nodes(cluster: Cluster) -> Iterator[Problem]:
    """A connection between two nodes gets no answer at all.

    Sees a connection to the listener of this check that is neither taken nor refused within 2 s.

    Why: a firewall drops it, or its packets have no way back. A get then blocks for 30 s and gives nothing (measured),
    a put ends in -800.

    Fix: open TCP ports 15000 to 17000 (MC_MIN_RPC_PORT to MC_MAX_RPC_PORT) between all nodes, in both directions:
    security group, network policy, firewall.

    Fires:
        10.0.0.5
        10.0.0.7
        10.0.0.5 -> 10.0.0.7  no answer
    Silent:
        10.0.0.5
        10.0.0.7
        10.0.0.5 -> 10.0.0.7  reached
    """
    found = [contact for contact in cluster.contacts if contact.meeting is Meeting.FILTERED]
    message = f"{_pairs(found)} gets no answer within {CONNECT_SECONDS:g} s: something on the way drops it."
    fix = "open TCP ports 15000 to 17000 (MC_MIN_RPC_PORT to MC_MAX_RPC_PORT) between all nodes: firewall, policy."
    yield from _about_contacts(found, cluster, message, fix)


@rule("MC442", Severity.ERROR)
def wrong_interface(cluster: Cluster) -> Iterator[Problem]:
    """A connection to a node's data address ends elsewhere, or leaves by another address than the caller's.

    Sees loopback, which leads back to the caller; an address that its node does not have; another host that answers
    there. Where the connection stands but leaves by another address of the caller, this is a warning.

    Why: data goes to another machine, or over another network than the one that was configured, such as the slow one
    for administration.

    Fix: write the address on the data network, for Ray's --node-ip-address too; correct the routes.

    Fires:
        10.0.0.5
        10.0.0.7
        10.0.0.5 -> 10.0.0.7  wrong interface
    Silent:
        10.0.0.5
        10.0.0.7
        10.0.0.5 -> 10.0.0.7  reached
    """
    wrong = [contact for contact in cluster.contacts if contact.meeting is Meeting.WRONG_INTERFACE]
    fix = "write each node's own address on the data network, or unset local_hostname to use the Ray node IP."
    message = f"{_pairs(wrong)} does not end there: {wrong[0].detail}." if wrong else ""
    yield from _about_contacts(wrong, cluster, message, fix)
    detoured = [contact for contact in cluster.contacts if contact.meeting is Meeting.REACHED and contact.detail]
    if detoured:
        message = (
            f"{_pairs(detoured)} stands, and {detoured[0].detail} instead of the address that its node advertises."
        )
        fix = "correct the routes, or advertise the address that leads to the others."
        yield from _about_contacts(detoured, cluster, message, fix, Severity.WARNING)


@rule("MC443", Severity.INFO)
def pairs_not_proved(cluster: Cluster) -> Iterator[Problem]:
    """Not every pair of nodes was tried.

    Sees more than 16 nodes: there each calls the head and one neighbour, and the head calls each. A node that gives no
    answer when it shall call the others is a warning.

    Why: a rack that cannot reach another rack may stay unseen.

    Fix: none is needed; run the check from a smaller cluster of nodes of both racks where one is in doubt.

    Fires:
        10.0.0.5
        10.0.0.7
        10.0.0.9
        10.0.0.5 -> 10.0.0.7  reached
    Silent:
        10.0.0.5
        10.0.0.7
        10.0.0.5 -> 10.0.0.7  reached
        10.0.0.7 -> 10.0.0.5  reached
    """
    tried, pairs = len(cluster.contacts), cluster.pairs
    if 0 < tried < pairs:
        message = (
            f"{tried} of {pairs} connections between nodes were tried: each with the head and one neighbour; "
            "the others are not proved."
        )
        yield Problem((), message, "where two racks are in doubt, check a cluster of 16 nodes from both.")
    idle = {contact.source for contact in cluster.contacts if contact.meeting is Meeting.NOT_TRIED}
    members = [member for member in cluster.members if member.name in idle]
    if members:
        message = (
            f"{cluster.names(members)} gave no answer when asked to call the others, so whom "
            f"{'it reaches' if len(members) == 1 else 'they reach'} is unknown."
        )
        fix = "run the check again; see what Ray logs there (/tmp/ray/session_latest/logs)."
        yield _about(members, cluster, (), message, fix, Severity.WARNING)


@rule("MC444", Severity.WARNING)
def no_listener(cluster: Cluster) -> Iterator[Problem]:
    """On a node no listener could be opened on the data address.

    Sees up to 200 ports of the range that Mooncake uses.

    Why: Mooncake has to open two there for each process; where all are taken, setup ends in -1.

    Fix: end what takes the ports, or widen the range with MC_MIN_RPC_PORT and MC_MAX_RPC_PORT.

    Fires:
        10.0.0.5
        10.0.0.7  no-listener
    Silent:
        10.0.0.5
        10.0.0.7
    """
    closed = [member for member in cluster.members if member.post and member.post.port is None]
    for words, members in grouped(closed, lambda member: member.post.refusal if member.post else "").items():
        message = f"no listener could be opened on the data address of {cluster.names(members)}: {words}."
        fix = "free ports of 15000 to 17000, or widen the range: MC_MIN_RPC_PORT, MC_MAX_RPC_PORT."
        yield _about(members, cluster, ("local_hostname",), message, fix)


def _them(members: Sequence[Member]) -> str:
    return "it" if len(members) == 1 else "them"


def _about(
    members: Sequence[Member],
    cluster: Cluster,
    fields: tuple[str, ...],
    message: str,
    fix: str,
    severity: Severity | None = None,
    origin: Origin | None = None,
) -> Problem:
    names = tuple(member.name for member in members)
    return Problem(fields, message, fix, severity, origin, few_names(names, len(cluster.members)), names)


def _text(member: Member, name: str) -> str | None:
    return member.node.process.text(name) if member.node else None


def _raw(process: Process, name: str) -> object:
    winner = process.winner(name)
    return winner.raw if winner else None


def _winner(member: Member, name: str) -> Claim | None:
    return member.node.process.winner(name) if member.node else None


def _winner_origin(member: Member, name: str) -> Origin | None:
    winner = _winner(member, name)
    return winner.origin if winner else None


def _claims(cluster: Cluster, name: str, groups: dict[str | None, list[Member]]) -> str:
    """Each value, who has it, and from where."""
    parts = [
        f"{_value_words(members[0], name, value)} on {cluster.names(members)} ({_place(members[0], name)})"
        for value, members in list(groups.items())[:_VALUES_NAMED]
    ]
    more = len(groups) - _VALUES_NAMED
    return "; ".join(parts) + (f"; and {more} more" if more > 0 else "")


def _instead(name: str, members: Sequence[Member]) -> str:
    """What holds on these nodes instead, in few words: that of the largest group."""
    groups = grouped(members, lambda member: member.node.process.values[name] if member.node else None)
    value, some = next(iter(groups.items()))
    origin = _winner_origin(some[0], name)
    if origin is None:
        return "nobody sets it"
    words = _value_words(some[0], name, value)
    return f"the default {words} holds" if origin.source is Source.DEFAULT else f"{words} from {origin.spot} holds"


def _value_words(member: Member, name: str, value: object) -> str:
    if value is not None:
        return shown(value)
    winner = _winner(member, name)
    return f"the unreadable {shown(winner.raw)}" if winner else "no value"


def _place(member: Member, name: str) -> str:
    origin = _winner_origin(member, name)
    return "nobody sets it" if origin is None else "the default" if origin.source is Source.DEFAULT else origin.spot


def _one_for_all(spec: FieldSpec) -> str:
    return (
        f"write {spec.name} once for all nodes, in --mooncake-store-init-kwargs, or as {spec.wiring.variable} "
        "in env_vars of --runtime-env-json."
    )


def _values(cluster: Cluster, groups: dict[str, list[Member]]) -> str:
    named = [f"{shown(value)} on {cluster.names(members)}" for value, members in groups.items()]
    more = len(named) - _VALUES_NAMED
    return ", ".join(named[:_VALUES_NAMED]) + (f" and {more} more" if more > 0 else "")


def _different(
    cluster: Cluster, name: str, fix: str, severity: Severity | None = None, without: str | None = None
) -> Iterator[Problem]:
    """One problem where members have different versions. ``without``: what a lack of it is called, if it counts."""
    having = [member for member in cluster.members if name in member.software]
    known = [member for member in having if without or member.software[name]]
    groups = grouped(known, lambda member: member.software[name] or without or "")
    if len(groups) > 1:
        apart = [member for members in list(groups.values())[1:] for member in members]
        message = f"the nodes have different versions of {shown(name)}: {_values(cluster, groups)}."
        yield _about(apart, cluster, (), message, fix, severity)


def _pairs(contacts: Sequence[Contact]) -> str:
    """Some connections in few words, by what they have in common."""
    sources, targets = {item.source for item in contacts}, {item.to for item in contacts}
    named = [f"{shown(item.source)} to {shown(item.to)} ({shown(item.target)})" for item in contacts[:_PAIRS_NAMED]]
    more = len(contacts) - _PAIRS_NAMED
    if more <= 0:
        return f"the connection from {', from '.join(named)}"
    if len(targets) == 1:
        return f"every connection to {shown(contacts[0].to)} ({shown(contacts[0].target)}) from {len(sources)} nodes"
    if len(sources) == 1:
        return f"every connection from {shown(contacts[0].source)} to {len(targets)} nodes"
    return f"the connection from {', from '.join(named)}, and {more} more,"


def _about_contacts(
    contacts: Sequence[Contact], cluster: Cluster, message: str, fix: str, severity: Severity | None = None
) -> Iterator[Problem]:
    if contacts:
        names = {contact.to for contact in contacts}
        members = [member for member in cluster.members if member.name in names]
        origin = _winner_origin(members[0], "local_hostname")
        yield _about(members, cluster, ("local_hostname",), message, fix, severity, origin)


OVER_ANY_STORE = (
    no_cluster,
    silent_node,
    package_missing_on_node,
    package_of_another_version,
    fewer_nodes_than_planned,
    different_ray,
    different_python,
    different_distribution,
)
"""The rules that are not about Mooncake."""
