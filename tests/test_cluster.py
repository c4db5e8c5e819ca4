"""The survey on a real Ray: four raylets on this machine, two of them odd, and addresses where no cluster is."""

from __future__ import annotations

import importlib.util
import json
import os
import pickle
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator
from machines import as_master, dead_port, replying, server, silently
from machines import http as http_reply

from mooncake_config.arguments import PastedCommand, read_pasted_command
from mooncake_config.cluster import Seat, Silence, alive_seats, counted, for_nodes, member_of, seat_names
from mooncake_config.job import Job
from mooncake_config.members import PACKAGE
from mooncake_config.process import Backend
from mooncake_config.schema import cluster_schema
from mooncake_config.topology import Role, Topology

pytestmark = pytest.mark.timeout(300)  # four raylets start at the same time, on a machine that has other tests to run
needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")
SMALL = {"protocol": "tcp", "local_buffer_size": "64mb", "global_segment_size": "64mb"}
JOB = Job(None, Backend.MOONCAKE, Role.TRAINER, 1, Topology())
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
MASTER = "127.0.0.1:1"


@dataclass(frozen=True)
class Raylets:
    """A cluster: its address, and the process of the raylet that can be stopped."""

    address: str
    last: int


@pytest.fixture(scope="module")
def raylets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Raylets]:
    """A head and three more nodes: one as good, one where our package breaks, one where it says another version."""
    pytest.importorskip("ray")
    os.environ.update(QUIET)
    from ray.cluster_utils import Cluster

    folder = tmp_path_factory.mktemp("nodes")
    good = {"MOONCAKE_MASTER": MASTER}
    args = {"num_cpus": 1, "num_gpus": 0, "object_store_memory": 80 << 20}
    cluster = Cluster(
        initialize_head=True, head_node_args={**args, "include_dashboard": False, "env_vars": {**good, **QUIET}}
    )
    try:
        odd: tuple[dict[str, str], ...] = ({}, _broken(folder / "broken"), _older(folder / "older"))
        nodes = [cluster.add_node(wait=False, **args, env_vars={**good, **QUIET, **environ}) for environ in odd]
        cluster.wait_for_nodes(60)
        yield Raylets(cluster.address, nodes[-1].all_processes["raylet"][0].process.pid)
    finally:
        cluster.shutdown()  # type: ignore[no-untyped-call]  # Ray has no types here


def _broken(folder: Path) -> dict[str, str]:
    """A path on which our package lies and cannot be imported."""
    (folder / "mooncake_config").mkdir(parents=True)
    (folder / "mooncake_config/__init__.py").write_text("raise ImportError('a half-copied package')\n")
    return {"PYTHONPATH": str(folder)}


def _older(folder: Path) -> dict[str, str]:
    """A path on which the metadata of an older version of our package lies."""
    about = folder / "mooncake_config-0.0.1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: mooncake-config\nVersion: 0.0.1\n")
    return {"PYTHONPATH": str(folder)}


def check_cluster(*words: str, environ: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """The command, in a process of its own. Its folder is none of this repository's: Ray puts it on the nodes' path."""
    command = [sys.executable, "-m", "mooncake_config", "check", "--cluster", *words]
    return subprocess.run(
        command,
        cwd="/",
        capture_output=True,
        text=True,
        env={**os.environ, **QUIET, **(environ or {})},
        stdin=subprocess.DEVNULL,
        check=False,
        timeout=110,
    )


def answer(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The JSON that stands on standard output."""
    document: dict[str, Any] = json.loads(done.stdout)
    return document


@pytest.fixture(scope="module")
def surveyed(raylets: Raylets) -> subprocess.CompletedProcess[str]:
    """One survey of the four nodes, as a program asks for it."""
    words = ("--address", raylets.address, "--format", "json", "--same", "numpy")
    return check_cluster(*words, "--mooncake-store-init-kwargs", json.dumps(SMALL))


@needs_ray
@pytest.mark.ray
def test_answer_is_one_document(surveyed: subprocess.CompletedProcess[str]) -> None:
    """Standard output is one document, valid by its schema; no bar is drawn where standard error is no terminal."""
    document = answer(surveyed)
    assert [error.message for error in Draft7Validator(cluster_schema()).iter_errors(document)] == []
    assert surveyed.returncode == 1
    assert "the nodes" not in surveyed.stderr


@needs_ray
@pytest.mark.ray
def test_each_node_resolves_in_its_own_environment(surveyed: subprocess.CompletedProcess[str]) -> None:
    """A variable that this process has not wins on the nodes that have it; the JSON reaches all."""
    answered = [node for node in answer(surveyed)["nodes"].values() if node]
    assert len(answered) == 2
    for node in answered:
        assert node["fields"]["master_server_address"]["origin"] == "MOONCAKE_MASTER"
        assert node["fields"]["protocol"]["origin"] == "--mooncake-store-init-kwargs"
        assert node["fields"]["local_hostname"]["origin"] == "Ray node IP"
        assert node["topology"]["num_nodes"] == 1
        assert node["host"]["memory_total"] > 0
        assert node["probes"]
        assert "MC302" in [finding["code"] for finding in node["findings"]]


@needs_ray
@pytest.mark.ray
def test_a_cause_is_told_once(surveyed: subprocess.CompletedProcess[str]) -> None:
    """The dead master that both nodes found is one finding with both names."""
    document = answer(surveyed)
    (finding,) = [finding for finding in document["findings"] if finding["code"] == "MC302"]
    assert finding["nodes"] == [name for name, node in document["nodes"].items() if node]


@needs_ray
@pytest.mark.ray
def test_node_where_the_package_breaks(surveyed: subprocess.CompletedProcess[str]) -> None:
    """A node on which our package cannot be imported says so by itself, and the fix is a command."""
    (finding,) = [finding for finding in answer(surveyed)["findings"] if finding["code"] == "MC402"]
    assert "ImportError: a half-copied package" in finding["message"]
    assert "pip install mooncake-config==0.1.0" in finding["fix"].replace(_own_version(), "0.1.0")
    assert len(finding["nodes"]) == 1


def _own_version() -> str:
    from importlib.metadata import version

    return version(PACKAGE)


@needs_ray
@pytest.mark.ray
def test_node_with_another_version(surveyed: subprocess.CompletedProcess[str]) -> None:
    """A node with another version of our package is named with both versions, and not asked further."""
    document = answer(surveyed)
    (finding,) = [finding for finding in document["findings"] if finding["code"] == "MC403"]
    (name,) = finding["nodes"]
    assert f"mooncake-config is {_own_version()} here and 0.0.1 on {name}" in finding["message"]
    assert document["nodes"][name] is None
    assert document["software"][name][PACKAGE] == "0.0.1"


@needs_ray
@pytest.mark.ray
def test_nodes_reach_each_other(surveyed: subprocess.CompletedProcess[str]) -> None:
    """The two nodes that answered connected to each other's listener, on a port that Mooncake would use."""
    contacts = answer(surveyed)["reach"]
    assert [contact["answer"] for contact in contacts] == ["reached", "reached"]
    for contact in contacts:
        assert 15000 <= int(contact["target"].rpartition(":")[2]) <= 17000
        assert contact["from"] != contact["to"]


@needs_ray
@pytest.mark.ray
def test_same_distribution(surveyed: subprocess.CompletedProcess[str]) -> None:
    """A distribution named with --same is looked up on each node."""
    document = answer(surveyed)
    for name, node in document["nodes"].items():
        assert ("numpy" in document["software"][name]) is (node is not None)


@needs_ray
@pytest.mark.ray
def test_raylets_of_one_address_have_names_of_their_own(surveyed: subprocess.CompletedProcess[str]) -> None:
    """Nodes that share an address are told apart by their node ID."""
    names = [*answer(surveyed)["nodes"]]
    assert len(set(names)) == 4
    assert len({name.partition("#")[0] for name in names}) == 1


ATTACHED = """
import json, sys, time, ray
from mooncake_config.cluster import survey
from mooncake_config.job import Job
from mooncake_config.process import Backend
from mooncake_config.topology import Role, Topology

ray.init(address=sys.argv[1], logging_level="ERROR", log_to_driver=False)
job = Job(json.dumps({"protocol": "tcp"}), Backend.RAY, Role.TRAINER, 1, Topology())
told = []
began = time.monotonic()
found = survey(job, node_seconds=float(sys.argv[2]), progress=lambda *words: told.append(words))
print(json.dumps({
    "silence": [member.silence for member in found.cluster.members],
    "attached": ray.is_initialized(),
    "told": told,
    "seconds": time.monotonic() - began,
}))
"""


def attached_survey(raylets: Raylets, seconds: float) -> dict[str, Any]:
    """A survey from a process that is attached to Ray already."""
    command = [sys.executable, "-c", ATTACHED, raylets.address, str(seconds)]
    environ = {**os.environ, **QUIET}
    done = subprocess.run(command, capture_output=True, text=True, env=environ, check=False, timeout=110, cwd="/")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@needs_ray
@pytest.mark.ray
def test_stopped_node_is_a_finding_and_not_a_hang(raylets: Raylets) -> None:
    """A raylet that was stopped gives no answer within the limit, while Ray still lists it as alive."""
    os.kill(raylets.last, signal.SIGSTOP)
    try:
        found = attached_survey(raylets, 12)
    finally:
        os.kill(raylets.last, signal.SIGCONT)
    assert "did not answer within 12 s" in found["silence"]
    assert len(found["silence"]) == 4
    assert found["seconds"] < 60


@needs_ray
@pytest.mark.ray
def test_attached_process_stays_attached(raylets: Raylets) -> None:
    """A process that is attached to Ray already asks its own cluster, stays attached, and is told of each answer."""
    found = attached_survey(raylets, 60)
    assert found["attached"] is True
    assert found["told"][0] == ["asking", 0, 4]
    assert found["told"][-1] == ["asking", 4, 4]


@needs_ray
@pytest.mark.ray
@pytest.mark.parametrize(
    ("talk", "says"),
    [
        (None, "refuses connections"),
        (as_master, "closes on HTTP as a master does"),
        (replying(http_reply("200 OK", "hello")), "answers HTTP"),
        (silently, "accepts connections and says nothing"),
    ],
    ids=["dead", "master", "http", "silent"],
)
def test_address_where_no_head_is(talk: Any, says: str) -> None:
    """What is no head of Ray is told apart in seconds, where Ray itself would try for minutes; the answer is whole."""
    began = time.monotonic()
    if talk is None:
        done = check_cluster("--address", f"127.0.0.1:{dead_port()}", "--format", "json")
    else:
        with server(talk) as port:
            done = check_cluster("--address", f"127.0.0.1:{port}", "--format", "json")
    assert done.returncode == 1
    document = answer(done)
    (finding,) = [finding for finding in document["findings"] if finding["code"] == "MC400"]
    assert says in finding["message"]
    assert "in --address, or on a node leave it out." in finding["fix"]
    assert document["nodes"] == {}
    assert time.monotonic() - began < 20


@needs_ray
@pytest.mark.ray
def test_head_whose_name_is_unknown() -> None:
    """Where the name of the head does not resolve, the way out is a name or an IP, and not a port."""
    done = check_cluster("--address", "head.invalid:6379", "--format", "json")
    (finding,) = json.loads(done.stdout)["findings"]
    assert "does not resolve" in finding["message"]
    assert finding["fix"] == (
        "write the head's IP, or a name that this machine resolves, in --address, or on a node leave it out."
    )


@needs_ray
@pytest.mark.ray
def test_dead_address_in_the_environment() -> None:
    """The address in RAY_ADDRESS, which auto means where it is set, is asked first too, and is the place to edit."""
    began = time.monotonic()
    done = check_cluster("-q", environ={"RAY_ADDRESS": f"127.0.0.1:{dead_port()}"})
    assert done.returncode == 1
    said = " ".join(done.stdout.split())
    assert "(RAY_ADDRESS) refuses connections" in said
    assert "in RAY_ADDRESS, or on a node leave it out." in said
    assert time.monotonic() - began < 20


@needs_ray
@pytest.mark.ray
@pytest.mark.parametrize(
    ("left_behind", "says"),
    [(None, "Could not find any running Ray"), ("127.0.0.1:1", "and nobody answers there.")],
    ids=["none", "dead"],
)
def test_no_cluster_on_this_host(tmp_path: Path, left_behind: str | None, says: str) -> None:
    """Where no Ray runs auto says so; where a head died and left its address behind, that one is named."""
    alone = ["unshare", "--pid", "--net", "--fork", "--mount-proc", "--kill-child"]
    if shutil.which("unshare") is None or subprocess.run([*alone, "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs root for a process namespace of its own")
    if left_behind:
        (tmp_path / "ray").mkdir()
        (tmp_path / "ray/ray_current_cluster").write_text(left_behind)
    command = [*alone, sys.executable, "-m", "mooncake_config", "check", "--cluster", "-q"]
    environ = {**os.environ, **QUIET, "RAY_TMPDIR": str(tmp_path)}
    environ.pop("RAY_ADDRESS", None)
    done = subprocess.run(command, capture_output=True, text=True, env=environ, check=False, timeout=60)
    assert done.returncode == 1
    assert "MC400" in done.stdout
    assert says in " ".join(done.stdout.split())


def test_without_ray() -> None:
    """Where Ray is not installed the finding names the extra that brings it."""
    code = textwrap.dedent("""
        import sys
        sys.modules["ray"] = None
        from mooncake_config.cli import main
        sys.exit(main(["check", "--cluster", "-q"]))
    """)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    said = " ".join(done.stdout.split())
    assert "MC400" in said
    assert "Fix: run `pip install 'mooncake-config[ray]'` with this Python." in said


# What needs no Ray


def listed(address: str, number: int, **more: Any) -> dict[str, Any]:
    """A node as ray.nodes() lists it."""
    return {"NodeID": f"{number:056x}", "NodeManagerAddress": address, "Alive": True, "Resources": {}, **more}


def test_seats() -> None:
    """Dead nodes are left out, the head comes first, the others by the number in their address."""
    head = listed("10.0.0.77", 1, Resources={"node:__internal_head__": 1.0})
    nodes = [listed("10.0.0.10", 2), listed("10.0.0.9", 3), head, listed("10.0.0.1", 4, Alive=False)]
    seats = alive_seats(nodes)
    assert [seat.address for seat in seats] == ["10.0.0.77", "10.0.0.9", "10.0.0.10"]
    assert [seat.is_head for seat in seats] == [True, False, False]


def test_names() -> None:
    """A node is named by its address, and by its ID as well where several share that."""
    seats = [Seat("ab" * 28, "10.0.0.5"), Seat("cd" * 28, "10.0.0.7"), Seat("ef" * 28, "10.0.0.7")]
    assert seat_names(seats) == ["10.0.0.5", "10.0.0.7#cdcdcdcd", "10.0.0.7#efefefef"]


def test_nodes_are_counted_by_machine() -> None:
    """Without --num-nodes the job has as many nodes as there are machines; a number that was given stays."""
    seats = [Seat("a", "10.0.0.5"), Seat("b", "10.0.0.5"), Seat("c", "10.0.0.7")]
    assert counted(JOB, seats).topology.num_nodes == 2
    assert counted(replace(JOB, topology=Topology(num_nodes=8)), seats).topology.num_nodes == 8
    assert counted(JOB, []).topology.num_nodes is None


def test_what_reaches_a_node_of_a_launch_line() -> None:
    """Of a launch line's variables only those of the runtime environment reach a node."""
    pasted = PastedCommand(
        variables={"MOONCAKE_MASTER": "a:1", "MOONCAKE_PROTOCOL": "tcp"},
        spots={"MOONCAKE_PROTOCOL": "--runtime-env-json MOONCAKE_PROTOCOL"},
        submits=True,
        for_driver=frozenset({"MOONCAKE_MASTER"}),
    )
    there = for_nodes(replace(JOB, pasted=pasted)).pasted
    assert there.variables == {"MOONCAKE_PROTOCOL": "tcp"}
    assert not there.submits
    assert not there.for_driver
    assert pickle.loads(pickle.dumps(there)) == there


def test_what_a_run_of_a_script_decides_on_a_node() -> None:
    """Of what only a run of the launch line tells, a node is asked about that of the runtime environment alone."""
    script = """export MOONCAKE_MASTER=$HEAD:1
    ray job submit --runtime-env-json '{"env_vars": {"MOONCAKE_PROTOCOL": "'$PROTOCOL'"}}' -- python3 train.py"""
    pasted = read_pasted_command(["bash", "-c", script], {})
    assert set(pasted.unknown) == {"MOONCAKE_MASTER", "MOONCAKE_PROTOCOL"}
    there = for_nodes(replace(JOB, pasted=pasted, faults=pasted.faults))
    assert there.pasted.unknown == {"MOONCAKE_PROTOCOL": "$PROTOCOL"}
    assert [fault.origin.spot for fault in there.faults] == ["--runtime-env-json MOONCAKE_PROTOCOL"]


SEAT = Seat("ab", "10.0.0.5")


@pytest.mark.parametrize(
    ("said", "silence"),
    [
        (Silence("did not answer within 30 s"), "did not answer within 30 s"),
        (b"?", "gave an answer of another kind"),
        (
            {"Python": "3.11.9", "Ray": "2.60.0", "package": "0.1.0", "reply": b"no pickle"},
            "gave an answer that cannot be read",
        ),
    ],
    ids=["silent", "odd", "unreadable"],
)
def test_answers_that_are_none(said: object, silence: str) -> None:
    """Whatever comes back instead of an answer becomes words about the node, and never an exception."""
    member = member_of("10.0.0.5", SEAT, said)
    assert member.node is None
    assert member.silence.startswith(silence)


def test_port_of_nobody() -> None:
    """The dead address of these tests is dead."""
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", int(MASTER.partition(":")[2])), 1)
