"""MC3xx: what answers at the configured endpoints, and what their names resolve to."""

from __future__ import annotations

from collections.abc import Iterator

from mooncake_config.addresses import endpoints_of, is_loopback, scheme_of, split_endpoint
from mooncake_config.dialogue import Answer, Outcome
from mooncake_config.display import shown
from mooncake_config.findings import Severity
from mooncake_config.node import Node
from mooncake_config.rules.rule import Problem, rule

_ENDPOINT_FIELDS = ("master_server_address", "metadata_server")
_NO_NAME = (Outcome.UNKNOWN_NAME, Outcome.NAME_TIMED_OUT)
_NO_CONNECTION = (Outcome.REFUSED, Outcome.TIMED_OUT, Outcome.UNREACHABLE, Outcome.HANGS_UP)
_SPEAKERS = {"master_server_address": "the master", "metadata_server": "the metadata server"}
_BACKENDS = {"etcd": "etcd", "redis": "Redis"}
_HEALTH_COMMANDS = {"etcd": "etcdctl --endpoints={} endpoint health", "redis": "redis-cli -u redis://{} ping"}


@rule("MC300", Severity.ERROR)
def unknown_name(node: Node) -> Iterator[Problem]:
    """A name does not resolve on this machine.

    Sees the names in master_server_address, metadata_server and local_hostname. Of a list of HA endpoints some may be
    unknown, a warning. For local_hostname it is an error in a job of several nodes.

    Why: Mooncake retries an unknown master for 90 seconds and ends in -1. A local_hostname is not even looked up:
    setup succeeds (measured), and no other node finds this one.

    Fix: correct the name, add it to DNS or /etc/hosts of every node, or write the IP.

    Example: MOONCAKE_MASTER=mooncake-master:50051 outside the cluster that has that name.
    """
    for name in _ENDPOINT_FIELDS:
        answers = node.probes.of(name)
        for answer in answers:
            if answer.outcome in _NO_NAME and not _is_known_there(node, answer):
                message = f"{shown(answer.host)}, where {_speaker(node, name)} should be, {answer}."
                fix = "correct the name, make it known on every node (DNS, /etc/hosts), or write the IP."
                yield Problem((name,), message, fix, _weight(answers))
    for answer in node.probes.of("local_hostname"):
        if answer.outcome in _NO_NAME and not _is_known_there(node, answer):
            certain = node.several_nodes and not node.host.is_copy
            message = f"{shown(answer.host)}, which this client advertises, {answer} on this machine."
            fix = "write this node's IP on the data network, or make the name known on every node."
            yield Problem(("local_hostname",), message, fix, None if certain else Severity.WARNING)


def _speaker(node: Node, name: str) -> str:
    """Who should answer at an address: the master, or what an address with a scheme points to."""
    return _BACKENDS.get(scheme_of(node.process.text(name) or "") or "", _SPEAKERS[name])


def _is_known_there(node: Node, answer: Answer) -> bool:
    """Whether the host that was copied away has the name in its own table."""
    return node.host.is_copy and bool(node.host.mapped(answer.host))


@rule("MC301", Severity.ERROR)
def name_resolves_to_loopback(node: Node) -> Iterator[Problem]:
    """A name resolves to a loopback address on this machine, in a job of several nodes.

    Sees what names in local_hostname, master_server_address and metadata_server resolve to; of a host that was copied
    away, what its own /etc/hosts says. For the latter two fields it is a warning, since the master's own node may see
    it so. With an unknown number of nodes it is a warning, with one node nothing.

    Why: Debian maps a host's own name to 127.0.1.1. Whoever resolves it on that host gets an address that no other node
    reaches.

    Fix: write the IP on the data network, or take the name out of the 127.0.1.1 line of /etc/hosts.

    Example: Ray reports the node as node-a17, and /etc/hosts of node-a17 says 127.0.1.1 node-a17.
    """
    if node.several_nodes is False:
        return
    for name in ("local_hostname", *_ENDPOINT_FIELDS):
        for host in _names_in(node, name):
            loopback = next((item for item in node.addresses_of(name, host) if is_loopback(item)), None)
            if loopback and not is_loopback(host):
                certain = node.several_nodes and name == "local_hostname"
                message = (
                    f"{shown(host)} resolves to {loopback} on this host, a loopback address that no other node reaches."
                )
                fix = "write the IP on the data network, or correct the line of the name in this host's /etc/hosts."
                yield Problem((name,), message, fix, None if certain else Severity.WARNING)


def _names_in(node: Node, name: str) -> Iterator[str]:
    address = node.process.text(name) or ""
    if name == "local_hostname":
        yield split_endpoint(address).host
    else:
        yield from (endpoint.host for endpoint in endpoints_of(address))


@rule("MC302", Severity.ERROR)
def master_unreachable(node: Node) -> Iterator[Problem]:
    """No connection to the master.

    Sees each endpoint of master_server_address: refused (the machine answers, nothing listens), no answer in time (a
    wrong address, a firewall, another network), hung up at once (a port forwarding with nothing behind it). Of a list
    of HA endpoints some may be dead, a warning.

    Why: Mooncake retries: 90 seconds and -1 when refused, about 12 seconds a try and 20 tries when nothing answers
    (measured).

    Fix: start mooncake_master there, listening on the data network, and open its port.

    Example: MOONCAKE_MASTER=127.0.0.1:50051 on a worker; the master runs on the head.
    """
    answers = node.probes.of("master_server_address")
    for answer in answers:
        if answer.outcome in _NO_CONNECTION:
            backend = _BACKENDS.get(scheme_of(node.process.text("master_server_address") or "") or "")
            message = f"{f'the HA backend {backend}' if backend else 'the master'} at {_target(answer)} {answer}."
            what = backend or f"mooncake_master (--rpc_port {answer.port})"
            listening = _LISTENING.get(backend or "", "with --rpc_address it listens on that address only")
            yield Problem(("master_server_address",), message, _connect_fix(what, listening, answer), _weight(answers))


_LISTENING = {
    "etcd": "it listens where --listen-client-urls says, by default on loopback only",
    "Redis": "it listens where bind in its configuration says, by default on loopback only",
}


def _connect_fix(what: str, listening: str, answer: Answer) -> str:
    if answer.outcome is Outcome.REFUSED:
        return f"start {what} there, or correct the address; {listening}."
    if answer.outcome is Outcome.HANGS_UP:
        return f"start {what} behind the port forwarding or Service that accepts this connection."
    return "correct the address, or open the way to it: firewall, security group, network policy, routes."


@rule("MC303", Severity.ERROR)
def not_a_master(node: Node) -> Iterator[Problem]:
    """Something else than a master answers at the master's address.

    Sees what a request for /health brings back. A real master closes on it without a byte; HTTP is its metrics page
    (--metrics_port, 9003 by default) or the metadata server, HTTP/2 is Ray's head or another gRPC server.

    Why: a port check passes, and the client's calls fail without end.

    Fix: write the master's --rpc_port, 50051 by default.

    Example: MOONCAKE_MASTER=10.0.0.5:9003.
    """
    address = node.process.text("master_server_address") or ""
    healthy = _HEALTHY.get(scheme_of(address), ())
    for answer in node.probes.of("master_server_address"):
        if answer.outcome in (Outcome.MASTER, *_SPEAKING) and answer.outcome not in healthy:
            message = f"{_target(answer)} {answer}, so it is not {_wanted(address)}."
            yield Problem(("master_server_address",), message, _other_fix(answer, address))


_SPEAKING = (
    Outcome.METRICS,
    Outcome.METADATA,
    Outcome.ETCD,
    Outcome.HTTP,
    Outcome.NO_PAGE,
    Outcome.DENIED,
    Outcome.HTTP2,
    Outcome.REDIS,
    Outcome.TLS,
    Outcome.OTHER,
)
_HEALTHY: dict[str | None, tuple[Outcome, ...]] = {
    None: (Outcome.MASTER, Outcome.SILENT),
    "etcd": (Outcome.ETCD, Outcome.HTTP, Outcome.HTTP2, Outcome.TLS, Outcome.SILENT),
    "redis": (Outcome.REDIS, Outcome.SILENT),
}
"""What may answer where an address of each scheme points."""


def _wanted(address: str) -> str:
    return {"etcd": "etcd", "redis": "Redis"}.get(scheme_of(address) or "", "the port that a master takes requests on")


def _other_fix(answer: Answer, address: str) -> str:
    if scheme_of(address):
        return f"write the address of {_wanted(address)}."
    if answer.outcome is Outcome.METRICS:
        return f"write the master's --rpc_port instead of its --metrics_port, such as {shown(answer.host)}:50051."
    if answer.outcome is Outcome.METADATA:
        return f"this is a metadata server; write the master's --rpc_port, such as {shown(answer.host)}:50051."
    if answer.outcome is Outcome.ETCD:
        return f"write etcd://{_target(answer)} for a master in HA mode, or the master's own host:port."
    perhaps = (
        "perhaps this is a metrics, metadata or dashboard port"
        if answer.outcome is Outcome.HTTP
        else "50051 by default"
    )
    return f"write the master's --rpc_port ({perhaps}), such as {shown(answer.host)}:50051."


@rule("MC304", Severity.INFO)
def silent_endpoint(node: Node) -> Iterator[Problem]:
    """The master's address accepts connections, and does not do what a master does.

    Sees a connection on which a request brings no reply within 0.4 s. A real master closes it, etcd and Redis answer.

    Why: a server that is stopped or overloaded looks so, and so does one of another kind.

    Fix: look at the master's own /health, on its metrics port; ask etcd or Redis with its own tool.

    Example: a master that was sent SIGSTOP.
    """
    for answer in node.probes.of("master_server_address"):
        if answer.outcome is Outcome.SILENT:
            scheme = scheme_of(node.process.text("master_server_address") or "") or ""
            well = f"{_BACKENDS[scheme]} answers it" if scheme in _BACKENDS else "a master that is well closes it"
            message = f"{_target(answer)} accepts connections and lets a request wait, where {well}."
            fix = "ask the master itself: curl http://HOST:METRICS_PORT/health."
            if scheme in _HEALTH_COMMANDS:
                fix = f"ask it: `{_HEALTH_COMMANDS[scheme].format(shown(answer.target))}`."
            yield Problem(("master_server_address",), message, fix)


@rule("MC310", Severity.ERROR)
def metadata_unreachable(node: Node) -> Iterator[Problem]:
    """No connection to the metadata server.

    Sees http://, https:// and etcd:// endpoints: refused, no answer in time, hung up at once.

    Why: setup retries until it gives up, with "Failed to initialize transfer engine" in the native log only.

    Fix: start the master with --enable_http_metadata_server=true (port 8080, or --http_metadata_server_port), or use
    P2PHANDSHAKE, which needs no server.

    Example: http://10.0.0.5:8080/metadata, and the master was started without its metadata server.
    """
    answers = node.probes.of("metadata_server")
    for answer in answers:
        if answer.outcome in (*_NO_CONNECTION, Outcome.TLS_FAILED):
            message = f"the metadata server at {_target(answer)} {answer}."
            yield Problem(("metadata_server",), message, _metadata_fix(node, answer), _weight(answers))


def _metadata_fix(node: Node, answer: Answer) -> str:
    scheme = scheme_of(node.process.text("metadata_server") or "")
    if scheme == "http":
        flags = "--enable_http_metadata_server=true"
        flags += "" if answer.port == 8080 else f" --http_metadata_server_port={answer.port}"
        return f"start the master with {flags}, correct the address, or use P2PHANDSHAKE, which needs no server."
    if scheme == "https" and answer.outcome is Outcome.TLS_FAILED:
        return "make its certificate valid for this host, write http:// if it is plain HTTP, or use P2PHANDSHAKE."
    if scheme == "https":
        plain = "write http:// with the port of the master's own metadata server (8080), which speaks no TLS"
        return f"start the server there, correct the address, {plain}, or use P2PHANDSHAKE."
    return "start etcd there, correct the address, or use P2PHANDSHAKE, which needs no server."


@rule("MC311", Severity.WARNING)
def not_a_metadata_server(node: Node) -> Iterator[Problem]:
    """Something answers at the metadata server's address, and not as a metadata server.

    Sees the reply to a request for a key that nobody has set: Mooncake's own server says 404, "metadata not found".
    No reply at all, a reply that is not HTTP, the master's own RPC port, and the 404 of a server that does not know the
    path (its metrics port, /metadata/ with a slash at the end, no path) are errors: setup ends in -1.

    Why: every lookup fails, and setup with it.

    Fix: write http://host:port/metadata with the port of --http_metadata_server_port, 8080 by default.

    Example: http://10.0.0.5:9003/metadata, which is the metrics port of the master.
    """
    scheme = scheme_of(node.process.text("metadata_server") or "")
    for answer in node.probes.of("metadata_server"):
        healthy = (Outcome.METADATA,) if scheme in ("http", "https") else _HEALTHY.get(scheme, ())
        if answer.outcome in (*_SPEAKING, Outcome.MASTER, Outcome.SILENT) and answer.outcome not in healthy:
            weight = None if answer.outcome in (Outcome.HTTP, Outcome.ETCD, Outcome.DENIED) else Severity.ERROR
            yield Problem(
                ("metadata_server",), f"{_target(answer)} {_no_metadata(answer)}.", _lookup_fix(answer), weight
            )


def _no_metadata(answer: Answer) -> str:
    """What a server does instead of what a metadata server does."""
    if answer.outcome is Outcome.MASTER:
        return "closes on HTTP, as a master's RPC port does, and not as a metadata server"
    if answer.outcome is Outcome.DENIED:
        return f"{answer}, so no lookup succeeds"
    return f"{answer}, and not as a metadata server"


def _lookup_fix(answer: Answer) -> str:
    if answer.outcome is Outcome.DENIED:
        return "write a user that it accepts into the URL, http://USER:PASSWORD@host:port/metadata, or P2PHANDSHAKE."
    scheme, _, rest = answer.target.partition("://")
    authority, _, path = rest.partition("/")
    if answer.outcome is Outcome.NO_PAGE and path.partition("?")[0] != "metadata":
        return f"write {shown(f'{scheme}://{authority}/metadata', 200)}, or P2PHANDSHAKE."
    return "write http://host:port/metadata with the master's --http_metadata_server_port (8080), or P2PHANDSHAKE."


def _target(answer: Answer) -> str:
    """host:port or URL, and the address behind a name."""
    behind = ", ".join(answer.addresses)
    return shown(answer.target) if behind in ("", answer.host) else f"{shown(answer.target)} ({behind})"


def _weight(answers: tuple[Answer, ...]) -> Severity | None:
    """A warning as long as another endpoint of a list can be connected to."""
    dead = (*_NO_NAME, *_NO_CONNECTION, Outcome.TLS_FAILED)
    alive = any(answer.outcome not in dead for answer in answers)
    return Severity.WARNING if alive else None
