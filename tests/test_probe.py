"""Which questions are asked of a configuration, and what the answers look like."""

from __future__ import annotations

import pickle
import time

import pytest
from machines import SMALL, answer, as_master, dead_port, http, importing, process, replying, server, silently

from mooncake_config.dialogue import Outcome
from mooncake_config.installation import Trial
from mooncake_config.probe import Probes, import_words, probe, probe_endpoints, setup_words
from mooncake_config.process import Process

META = "MOONCAKE_TE_META_DATA_SERVER"


def asked(of: Process) -> list[tuple[str, str]]:
    """Which fields and targets were asked about."""
    return [(item.field, item.target) for item in probe_endpoints(of).answers]


def test_master_alone() -> None:
    """P2PHANDSHAKE has no server, and an IP needs no name server: the master is the one question."""
    port = dead_port()
    assert asked(process({"MOONCAKE_MASTER": f"127.0.0.1:{port}"})) == [("master_server_address", f"127.0.0.1:{port}")]


def test_every_endpoint_of_a_list() -> None:
    """Each endpoint of an HA list is asked, once."""
    first, second = dead_port(), dead_port()
    address = f"etcd://127.0.0.1:{first};localhost:{second};127.0.0.1:{first}"
    assert [target for _, target in asked(process({"MOONCAKE_MASTER": address}))] == [
        f"127.0.0.1:{first}",
        f"localhost:{second}",
    ]


def test_long_list() -> None:
    """A list of hundreds of endpoints is asked in part."""
    port = dead_port()
    address = "etcd://" + ";".join(f"127.0.{high}.{low}:{port}" for high in range(2) for low in range(1, 100))
    assert len(asked(process({"MOONCAKE_MASTER": address}))) == 32


def test_redis_port() -> None:
    """A Redis endpoint has a default port."""
    assert asked(process({"MOONCAKE_MASTER": "redis://127.255.255.254"})) == [
        ("master_server_address", "127.255.255.254:6379")
    ]


@pytest.mark.parametrize("master", ["k8s://default/lease", "0.0.0.0:50051", "[::]:50051", ":50051", "", "$HEAD:50051"])
def test_nothing_to_ask(master: str) -> None:
    """A lease, a wildcard and what is malformed are not connected to."""
    assert asked(process({"MOONCAKE_MASTER": master})) == []


@pytest.mark.parametrize(
    ("metadata", "target"),
    [
        ("http://127.0.0.1:{port}/metadata", "http://127.0.0.1:{port}/metadata"),
        ("http://me:secret@127.0.0.1:{port}/metadata", "http://me:***@127.0.0.1:{port}/metadata"),
        ("etcd://127.0.0.1:{port}", "127.0.0.1:{port}"),
    ],
)
def test_metadata(metadata: str, target: str) -> None:
    """A metadata server is asked by its URL, whose password nobody sees, or as an endpoint."""
    port = dead_port()
    of = process({"MOONCAKE_MASTER": "", META: metadata.format(port=port)})
    assert asked(of) == [("metadata_server", target.format(port=port))]


def test_wildcard_metadata() -> None:
    """A wildcard is not connected to."""
    assert asked(process({"MOONCAKE_MASTER": "", META: "http://0.0.0.0:8080/metadata"})) == []


def test_own_name() -> None:
    """A local_hostname that is a name is looked up, its port left out."""
    of = process({"MOONCAKE_MASTER": "", "MOONCAKE_LOCAL_HOSTNAME": "localhost:12345"})
    assert asked(of) == [("local_hostname", "localhost")]


def test_malformed_neighbour() -> None:
    """A malformed field does not keep the others from being asked."""
    port = dead_port()
    of = process(
        {"MOONCAKE_MASTER": f"127.0.0.1:{port}", "MOONCAKE_PROTOCOL": "rmda", "MOONCAKE_LOCAL_HOSTNAME": "a b"}
    )
    assert asked(of) == [("master_server_address", f"127.0.0.1:{port}")]


def test_endpoints_start_no_child() -> None:
    """Asking the endpoints alone tells which distributions are installed, and imports nothing."""
    probes = probe_endpoints(process({"MOONCAKE_MASTER": ""}))
    assert probes.installed is not None
    assert probes.installed.trial is None


def test_all_at_once() -> None:
    """A silent master, a silent metadata server and the import are asked at the same time."""
    with server(silently) as master, server(silently) as metadata:
        began = time.monotonic()
        probes = probe(
            process({"MOONCAKE_MASTER": f"127.0.0.1:{master}", META: f"http://127.0.0.1:{metadata}/metadata"})
        )
        seconds = time.monotonic() - began
    assert [item.outcome for item in probes.answers] == [Outcome.SILENT, Outcome.SILENT]
    assert probes.installed is not None
    assert probes.installed.trial is not None
    assert seconds < 2 + max(probes.installed.trial.seconds, *(item.seconds for item in probes.answers))


def test_facts() -> None:
    """Each answer is a fact for the JSON answer: what, of whom, the answer, seconds."""
    with server(as_master) as master, server(replying(http("404 Not Found", "metadata not found"))) as metadata:
        of = process({**SMALL, "MOONCAKE_MASTER": f"127.0.0.1:{master}", META: f"http://127.0.0.1:{metadata}/metadata"})
        probes = probe(of)
    facts = probes.facts()
    assert all(set(fact) == {"what", "target", "answer", "seconds"} for fact in facts)
    assert [fact["what"] for fact in facts] == [
        "master_server_address",
        "metadata_server",
        "installed distributions",
        "import in a child process",
    ]
    assert "accepts connections" in str(facts[0]["answer"])
    assert pickle.loads(pickle.dumps(probes)) == probes


def test_answers_of_a_field() -> None:
    """Answers are found by the field that they are about."""
    probes = Probes(
        (answer("metadata_server", "h:1", Outcome.HTTP), answer("master_server_address", "h:2", Outcome.HTTP))
    )
    assert [item.target for item in probes.of("metadata_server")] == ["h:1"]
    assert Probes().facts() == []


@pytest.mark.parametrize(
    ("trial", "words"),
    [
        (Trial(({"absent": True},), 0), "not installed"),
        (Trial(({"failed": "mooncake", "kind": "ImportError", "text": "x"},), 0), "mooncake: ImportError: x"),
        (Trial((), -11), "it was killed by SIGSEGV"),
        (Trial((), None), "it did not end within the limit"),
        (Trial(({"lacks": ["a"]},), 0), "lacks names"),
        (Trial(({"lacks": []},), 0), "works"),
    ],
)
def test_import_in_words(trial: Trial, words: str) -> None:
    """How an import went is told in a few words."""
    assert import_words(trial) == words


@pytest.mark.parametrize(
    ("trial", "words"),
    [
        (Trial(({"code": 0},), 0), "code 0"),
        (Trial(({"raised": "MemoryError: x"},), 0), "MemoryError: x"),
        (Trial((), -6), "it was killed by SIGABRT"),
        (Trial((), None), "it did not end within the limit"),
    ],
)
def test_setup_in_words(trial: Trial, words: str) -> None:
    """How a dry setup went is told in a few words, and is a fact."""
    assert setup_words(trial) == words
    assert Probes(installed=importing(), setup=trial).facts()[-1]["answer"] == words
