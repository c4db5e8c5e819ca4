"""MC3xx: rules over what answered, each with answers on which it fires and on which it is silent."""

from __future__ import annotations

import pytest
from machines import answer, mapped, node, problems, process

from mooncake_config.dialogue import Answer, Outcome
from mooncake_config.findings import Severity
from mooncake_config.host import Host
from mooncake_config.node import Node
from mooncake_config.rules import endpoints as endpoint_rules
from mooncake_config.rules.rule import rules_in

ERROR, WARNING, INFO = Severity.ERROR, Severity.WARNING, Severity.INFO
MASTER, METADATA, OWN = "master_server_address", "metadata_server", "local_hostname"
ETCD = {"MOONCAKE_MASTER": "etcd://10.0.0.5:2379;10.0.0.6:2379"}
HTTP_META = {"MOONCAKE_TE_META_DATA_SERVER": "http://10.0.0.5:8080/metadata"}
HTTPS_META = {"MOONCAKE_TE_META_DATA_SERVER": "https://10.0.0.5:8443/metadata"}
SLASH_META = {"MOONCAKE_TE_META_DATA_SERVER": "http://10.0.0.5:8080/metadata/"}
ETCD_META = {"MOONCAKE_TE_META_DATA_SERVER": "etcd://10.0.0.5:2379"}


def master(outcome: Outcome, target: str = "10.0.0.5:50051", *addresses: str, detail: str = "") -> Node:
    """A master that answered so."""
    return node(
        process({"MOONCAKE_MASTER": target}), answers=(answer(MASTER, target, outcome, *addresses, detail=detail),)
    )


def etcd(*outcomes: Outcome) -> Node:
    """Two HA endpoints that answered so."""
    targets = ("10.0.0.5:2379", "10.0.0.6:2379")
    found = tuple(answer(MASTER, target, outcome) for target, outcome in zip(targets, outcomes, strict=True))
    return node(process(ETCD), answers=found)


def metadata(outcome: Outcome, environ: dict[str, str] = HTTP_META) -> Node:
    """A metadata server that answered so."""
    return node(process(environ), answers=(answer(METADATA, environ["MOONCAKE_TE_META_DATA_SERVER"], outcome),))


def named(outcome: Outcome, *addresses: str, nodes: int | None = 2, host: Host | None = None) -> Node:
    """A local_hostname that is a name."""
    found = Answer(OWN, "node-a17", "node-a17", None, outcome, addresses, "words")
    return node(process(ip="node-a17", nodes=nodes), host, answers=(found,))


def job(environ: dict[str, str], *answers: Answer, nodes: int | None = 2, host: Host | None = None) -> Node:
    """A job with these settings and answers."""
    return node(process(environ, nodes=nodes), host, answers=answers)


HEAD = {"MOONCAKE_MASTER": "head:50051"}
HEAD_ON_LOOPBACK = answer(MASTER, "head:50051", Outcome.MASTER, "127.0.1.1")

FIRES: list[tuple[str, Node, Severity, str, str]] = [
    (
        "MC300",
        master(Outcome.UNKNOWN_NAME, "head:50051"),
        ERROR,
        "head, where the master should be, does not resolve",
        "DNS",
    ),
    ("MC300", master(Outcome.NAME_TIMED_OUT, "head:50051"), ERROR, "was not resolved in time", "IP"),
    ("MC300", etcd(Outcome.UNKNOWN_NAME, Outcome.ETCD), WARNING, "10.0.0.5, where etcd should be,", "DNS"),
    ("MC300", master(Outcome.UNKNOWN_NAME, "redis://head:6379"), ERROR, "where Redis should be", "DNS"),
    ("MC300", metadata(Outcome.UNKNOWN_NAME, ETCD_META), ERROR, "where etcd should be", "DNS"),
    ("MC300", metadata(Outcome.UNKNOWN_NAME), ERROR, "where the metadata server should be", "DNS"),
    (
        "MC300",
        named(Outcome.UNKNOWN_NAME),
        ERROR,
        "node-a17, which this client advertises, does not resolve (words)",
        "IP",
    ),
    ("MC300", named(Outcome.UNKNOWN_NAME, nodes=1), WARNING, "node-a17", "IP"),
    ("MC300", named(Outcome.UNKNOWN_NAME, host=Host("/copy")), WARNING, "node-a17", "IP"),
    ("MC301", named(Outcome.RESOLVES, "127.0.1.1"), ERROR, "node-a17 resolves to 127.0.1.1 on this host", "/etc/hosts"),
    ("MC301", named(Outcome.RESOLVES, "10.0.0.7", "::1"), ERROR, "::1", "/etc/hosts"),
    ("MC301", named(Outcome.RESOLVES, "127.0.1.1", nodes=None), WARNING, "127.0.1.1", "/etc/hosts"),
    ("MC301", named(Outcome.UNKNOWN_NAME, host=mapped("node-a17", "127.0.1.1")), ERROR, "127.0.1.1", "/etc/hosts"),
    ("MC301", job(HEAD, HEAD_ON_LOOPBACK), WARNING, "head resolves to 127.0.1.1", "/etc/hosts"),
    (
        "MC302",
        master(Outcome.REFUSED, detail="x"),
        ERROR,
        "the master at 10.0.0.5:50051 refuses connections (x)",
        "--rpc_port 50051",
    ),
    (
        "MC302",
        master(Outcome.REFUSED, "head:50051", "10.0.0.5"),
        ERROR,
        "head:50051 (10.0.0.5) refuses",
        "mooncake_master",
    ),
    ("MC302", master(Outcome.TIMED_OUT), ERROR, "does not answer in time", "firewall"),
    ("MC302", master(Outcome.UNREACHABLE), ERROR, "cannot be reached", "routes"),
    ("MC302", master(Outcome.HANGS_UP), ERROR, "hangs up at once", "port forwarding"),
    ("MC302", etcd(Outcome.ETCD, Outcome.REFUSED), WARNING, "the HA backend etcd at 10.0.0.6:2379", "start etcd there"),
    ("MC302", etcd(Outcome.ETCD, Outcome.REFUSED), WARNING, "refuses", "--listen-client-urls"),
    ("MC302", etcd(Outcome.ETCD, Outcome.HANGS_UP), WARNING, "hangs up", "start etcd behind"),
    ("MC302", master(Outcome.REFUSED, "redis://10.0.0.5:6379"), ERROR, "the HA backend Redis", "start Redis there"),
    ("MC303", master(Outcome.METRICS), ERROR, "metrics page", "--rpc_port instead of its --metrics_port"),
    ("MC303", master(Outcome.METADATA), ERROR, "metadata server", "this is a metadata server"),
    ("MC303", master(Outcome.ETCD), ERROR, "answers as etcd", "etcd://10.0.0.5:50051"),
    ("MC303", master(Outcome.HTTP), ERROR, "answers HTTP", "perhaps this is a metrics, metadata or dashboard port"),
    ("MC303", master(Outcome.HTTP2), ERROR, "gRPC", "--rpc_port (50051 by default)"),
    ("MC303", master(Outcome.REDIS), ERROR, "Redis", "--rpc_port"),
    ("MC303", master(Outcome.OTHER), ERROR, "another protocol", "--rpc_port"),
    ("MC303", etcd(Outcome.ETCD, Outcome.MASTER), ERROR, "so it is not etcd", "address of etcd"),
    ("MC303", master(Outcome.HTTP, "redis://10.0.0.5:6379"), ERROR, "not Redis", "address of Redis"),
    ("MC304", master(Outcome.SILENT), INFO, "lets a request wait, where a master that is well closes it", "/health"),
    ("MC304", etcd(Outcome.ETCD, Outcome.SILENT), INFO, "where etcd answers it", "etcdctl --endpoints=10.0.0.6:2379"),
    ("MC304", master(Outcome.SILENT, "redis://10.0.0.5:6379"), INFO, "where Redis answers it", "redis-cli"),
    (
        "MC310",
        metadata(Outcome.REFUSED),
        ERROR,
        "http://10.0.0.5:8080/metadata refuses",
        "--enable_http_metadata_server=true,",
    ),
    (
        "MC310",
        node(
            process({"MOONCAKE_TE_META_DATA_SERVER": "http://10.0.0.5:9/metadata"}),
            answers=(answer(METADATA, "http://10.0.0.5:9/metadata", Outcome.TIMED_OUT),),
        ),
        ERROR,
        "does not answer",
        "--http_metadata_server_port=9",
    ),
    ("MC310", metadata(Outcome.HANGS_UP, ETCD_META), ERROR, "hangs up", "start etcd"),
    ("MC310", metadata(Outcome.TLS_FAILED, HTTPS_META), ERROR, "TLS handshake", "certificate"),
    ("MC310", metadata(Outcome.REFUSED, HTTPS_META), ERROR, "refuses", "start the server there"),
    (
        "MC311",
        metadata(Outcome.HTTP),
        WARNING,
        "answers HTTP, and not as a metadata server",
        "--http_metadata_server_port",
    ),
    ("MC311", metadata(Outcome.NO_PAGE), ERROR, "does not know this path", "http_metadata_server_port"),
    ("MC311", metadata(Outcome.NO_PAGE, SLASH_META), ERROR, "does not know", "write http://10.0.0.5:8080/metadata, or"),
    ("MC311", metadata(Outcome.DENIED), WARNING, "refuses access, so no lookup succeeds", "USER:PASSWORD@"),
    ("MC311", metadata(Outcome.METRICS), ERROR, "metrics page", "8080"),
    ("MC311", metadata(Outcome.MASTER), ERROR, "as a master's RPC port does", "P2PHANDSHAKE"),
    ("MC311", metadata(Outcome.SILENT), ERROR, "says nothing", "P2PHANDSHAKE"),
    ("MC311", metadata(Outcome.REDIS, ETCD_META), ERROR, "Redis", "P2PHANDSHAKE"),
]

SILENT: list[tuple[str, Node]] = [
    *[(rule.code, node()) for rule in rules_in(endpoint_rules)],
    *[(rule.code, master(Outcome.MASTER)) for rule in rules_in(endpoint_rules)],
    *[(rule.code, metadata(Outcome.METADATA)) for rule in rules_in(endpoint_rules)],
    *[(rule.code, etcd(Outcome.ETCD, Outcome.HTTP)) for rule in rules_in(endpoint_rules)],
    *[(rule.code, named(Outcome.RESOLVES, "10.0.0.7")) for rule in rules_in(endpoint_rules)],
    ("MC300", named(Outcome.UNKNOWN_NAME, host=mapped("node-a17", "10.0.0.7"))),
    ("MC300", job(HEAD, answer(MASTER, "head:50051", Outcome.UNKNOWN_NAME), host=mapped("head", "10.0.0.5"))),
    ("MC300", master(Outcome.REFUSED)),
    ("MC301", named(Outcome.RESOLVES, "127.0.1.1", nodes=1)),
    ("MC301", job({"MOONCAKE_LOCAL_HOSTNAME": "localhost"})),
    ("MC301", job({"MOONCAKE_LOCAL_HOSTNAME": "a b"})),
    ("MC302", master(Outcome.HTTP)),
    ("MC303", master(Outcome.REFUSED)),
    ("MC303", master(Outcome.REDIS, "redis://10.0.0.5:6379")),
    ("MC304", etcd(Outcome.ETCD, Outcome.ETCD)),
    ("MC310", metadata(Outcome.HTTP)),
    ("MC311", metadata(Outcome.REFUSED)),
    ("MC311", metadata(Outcome.ETCD, ETCD_META)),
    ("MC311", metadata(Outcome.TLS_FAILED, HTTPS_META)),
]


@pytest.mark.parametrize(("code", "given", "severity", "says", "way"), FIRES)
def test_fires(code: str, given: Node, severity: Severity, says: str, way: str) -> None:
    """The rule sees one problem, of that weight; message and fix say so."""
    (found,) = problems(code, given)
    own = next(rule.severity for rule in rules_in(endpoint_rules) if rule.code == code)
    assert (found.severity or own) is severity
    assert says in found.message
    assert way in found.fix
    assert found.message.endswith(".")
    assert found.fix.endswith(".")


@pytest.mark.parametrize(("code", "given"), SILENT)
def test_silent(code: str, given: Node) -> None:
    """The rule sees nothing."""
    assert problems(code, given) == []


def test_every_rule_fires() -> None:
    """No rule of this module goes without an example that fires."""
    assert {code for code, *_ in FIRES} == {rule.code for rule in rules_in(endpoint_rules)}


@pytest.mark.parametrize("rule", rules_in(endpoint_rules), ids=lambda rule: rule.code)
def test_pages(rule: object) -> None:
    """A page says why it matters, what to do, and gives an example."""
    page = getattr(rule, "page", "")
    assert all(f"{part}:" in page for part in ("Why", "Fix", "Example"))


BACKENDS = {"etcd": "etcd://10.0.0.5:2379", "Redis": "redis://10.0.0.5:6379"}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("outcome", Outcome)
def test_backend_is_not_spoken_of_as_a_master(outcome: Outcome, backend: str) -> None:
    """Whatever an HA backend does, its words are its own: no flag and no page of a master is named."""
    given = master(outcome, BACKENDS[backend])
    for found in (problem for rule in rules_in(endpoint_rules) for problem in problems(rule.code, given)):
        words = found.message + found.fix
        assert backend in words
        assert not [word for word in ("--rpc_", "the master", "METRICS_PORT", "mooncake_master") if word in words]


@pytest.mark.parametrize("outcome", [Outcome.REFUSED, Outcome.TIMED_OUT, Outcome.UNREACHABLE, Outcome.HANGS_UP])
def test_certificate_only_where_one_was_seen(outcome: Outcome) -> None:
    """A server that was not even reached has no certificate to be made valid."""
    (found,) = problems("MC310", metadata(outcome, HTTPS_META))
    assert "certificate" not in found.fix


def test_every_dead_endpoint_of_a_list() -> None:
    """Where all HA endpoints are dead each is an error of its own."""
    found = problems("MC302", etcd(Outcome.REFUSED, Outcome.TIMED_OUT))
    assert [problem.severity for problem in found] == [None, None]


@pytest.mark.parametrize("outcome", Outcome)
def test_one_finding_for_each_outcome(outcome: Outcome) -> None:
    """Whatever a master does, at most one rule speaks of it."""
    given = master(outcome, "head:50051", "10.0.0.5")
    assert sum(len(problems(rule.code, given)) for rule in rules_in(endpoint_rules)) <= 1


@pytest.mark.parametrize("environ", [HTTP_META, HTTPS_META, ETCD_META])
@pytest.mark.parametrize("outcome", [item for item in Outcome if item is not Outcome.RESOLVES])
def test_metadata_outcomes(outcome: Outcome, environ: dict[str, str]) -> None:
    """Whatever a metadata server does, at most one rule speaks of it, and nobody is silent unless it is well."""
    said = sum(len(problems(rule.code, metadata(outcome, environ))) for rule in rules_in(endpoint_rules))
    assert said <= 1
    if outcome in (Outcome.REFUSED, Outcome.TIMED_OUT, Outcome.UNREACHABLE, Outcome.HANGS_UP, Outcome.REDIS):
        assert said == 1
