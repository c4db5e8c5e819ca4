"""One host looked at as a whole: facts, answers, findings; how long it takes; a real master and a real setup."""

from __future__ import annotations

import importlib.util
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import sysconfig
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hosts import dead_network
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import SMALL, as_master, codes, dead_port, http, lay_out, process, replying, server

from mooncake_config.check import CheckResult, check_before_opening, check_dry_setup, check_process
from mooncake_config.findings import Severity
from mooncake_config.process import Backend, Process

needs_mooncake = pytest.mark.skipif(importlib.util.find_spec("mooncake") is None, reason="Mooncake is not installed")
LOOPBACK = {**SMALL, "MOONCAKE_PROTOCOL": "tcp"}


@dataclass(frozen=True)
class Master:
    """A real master on loopback."""

    port: int
    metrics: int
    metadata: int

    @property
    def environ(self) -> dict[str, str]:
        """The settings of a client that can use it."""
        url = f"http://127.0.0.1:{self.metadata}/metadata"
        return {**LOOPBACK, "MOONCAKE_MASTER": f"127.0.0.1:{self.port}", "MOONCAKE_TE_META_DATA_SERVER": url}


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Master]:
    """Starts a master with its metadata server on free ports, and ends it."""
    found = Master(dead_port(), dead_port(), dead_port())
    program = str(Path(sysconfig.get_path("scripts")) / "mooncake_master")
    options = [f"--rpc_port={found.port}", "--rpc_address=127.0.0.1", f"--metrics_port={found.metrics}"]
    options += ["--enable_http_metadata_server=true", f"--http_metadata_server_port={found.metadata}"]
    with (tmp_path_factory.mktemp("master") / "log").open("wb") as log:
        child = subprocess.Popen([program, *options], stdout=log, stderr=log)
        try:
            _wait_until_well(found, child)
            yield found
        finally:
            child.kill()
            child.wait()


def _wait_until_well(found: Master, child: subprocess.Popen[bytes]) -> None:
    ends = time.monotonic() + 30
    while time.monotonic() < ends and child.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{found.metrics}/health", timeout=1) as reply:
                if json.load(reply)["service_ready"]:
                    return
        except OSError:
            time.sleep(0.05)
    raise AssertionError("the master did not get ready")


def errors(result: CheckResult) -> list[str]:
    """Codes of the errors."""
    return [finding.code for finding in result.findings if finding.severity is Severity.ERROR]


def _timed_check(of: Process) -> tuple[CheckResult, float]:
    began = time.monotonic()
    return check_process(of), time.monotonic() - began


@needs_mooncake
@pytest.mark.mooncake
def test_healthy(master: Master) -> None:
    """With a real master all is well, and nothing waits for a limit."""
    of = process(master.environ, ip="127.0.0.1")
    result, seconds = _timed_check(of)
    assert [item for item in result.findings if item.severity is not Severity.INFO] == []
    assert not result.has_error
    assert seconds < 5, f"took {seconds:.2f} s"
    answers = {fact["what"]: str(fact["answer"]) for fact in result.probe_facts}
    assert "accepts connections" in answers["master_server_address"]
    assert "as a metadata server" in answers["metadata_server"]
    assert answers["import in a child process"] == "works"


@needs_mooncake
@pytest.mark.mooncake
@pytest.mark.parametrize(("field", "code"), [("metrics", "MC303"), ("metadata", "MC303")])
def test_wrong_port_of_a_master(master: Master, field: str, code: str) -> None:
    """A real master's other ports are told apart from its own."""
    environ = {**master.environ, "MOONCAKE_MASTER": f"127.0.0.1:{getattr(master, field)}"}
    assert errors(check_process(process(environ, ip="127.0.0.1"))) == [code]


@needs_mooncake
@pytest.mark.mooncake
def test_metrics_port_as_metadata_server(master: Master) -> None:
    """The metrics port answers 404 as well, and is no metadata server."""
    environ = {**master.environ, "MOONCAKE_TE_META_DATA_SERVER": f"http://127.0.0.1:{master.metrics}/metadata"}
    assert codes(check_before_opening(process(environ, ip="127.0.0.1")).findings)["MC311"] == "error"


@needs_mooncake
@pytest.mark.mooncake
@pytest.mark.parametrize("path", ["", "/", "/metadata/", "/meta", "/metadata/x"])
def test_path_that_a_real_metadata_server_does_not_know(master: Master, path: str) -> None:
    """The real metadata server answers at /metadata and nowhere else, where setup would end in -1."""
    url = f"http://127.0.0.1:{master.metadata}"
    result = check_before_opening(
        process({**master.environ, "MOONCAKE_TE_META_DATA_SERVER": url + path}, ip="127.0.0.1")
    )
    assert codes(result.findings)["MC311"] == "error"
    found = next(item for item in result.findings if item.code == "MC311")
    assert f"write {url}/metadata," in found.fix


@needs_mooncake
@pytest.mark.mooncake
def test_dry_setup(master: Master) -> None:
    """A real setup succeeds in a child, and is among the facts."""
    result = check_dry_setup(check_process(process(master.environ, ip="127.0.0.1")))
    assert result.probe_facts[-1]["answer"] == "code 0"
    assert not result.has_error


@needs_mooncake
@pytest.mark.mooncake
def test_dry_setup_over_tcp(master: Master, tmp_path: Path) -> None:
    """A real setup that silently falls back from RDMA to TCP is told, where the facts of the host could not."""
    if Path("/sys/class/infiniband").exists():
        pytest.skip("this machine has RDMA devices")
    environ = {**master.environ, "MOONCAKE_PROTOCOL": "rdma"}
    result = check_dry_setup(check_process(process(environ, ip="127.0.0.1"), root=tmp_path))
    assert codes(result.findings)["MC262"] == "warning"


@needs_mooncake
@pytest.mark.mooncake
def test_dry_setup_refused(master: Master, tmp_path: Path) -> None:
    """A real refusal comes with the native log's own words: a device that does not exist, on a host that is unknown."""
    environ = {**master.environ, "MOONCAKE_PROTOCOL": "rdma", "MOONCAKE_DEVICE": "mlx5_9"}
    result = check_dry_setup(check_process(process(environ, ip="127.0.0.1"), root=tmp_path))
    (found,) = [item for item in result.findings if item.code == "MC261"]
    assert "code -1" in found.message
    assert "No available RNIC" in found.message


@needs_mooncake
@pytest.mark.mooncake
def test_dry_setup_crash(master: Master) -> None:
    """A real abort in native code is a finding, with its last words; here nothing dies."""
    environ = {**master.environ, "MOONCAKE_TE_META_DATA_SERVER": f"redis://127.0.0.1:{master.metadata}"}
    ignored = ("redis-metadata", "not-a-metadata-server")
    result = check_dry_setup(check_process(process(environ, ip="127.0.0.1"), ignored), ignored)
    (found,) = [item for item in result.findings if item.severity is Severity.ERROR]
    assert found.code == "MC260"
    assert "SIGABRT" in found.message
    assert "redis" in found.message


def test_no_dry_setup_beside_an_error() -> None:
    """Where an error stands no setup is tried: it would crash or hang."""
    result = check_before_opening(process({**LOOPBACK, "MOONCAKE_MASTER": f"127.0.0.1:{dead_port()}"}, ip="127.0.0.1"))
    assert result.has_error
    asked = check_dry_setup(result)
    assert asked.findings == result.findings
    assert asked.probe_facts[-1]["answer"] == "not tried: an error stands"


def test_errors_of_process_and_machine_together() -> None:
    """A faulty protocol does not hide a dead master: all findings come in one run, worst first."""
    environ = {**LOOPBACK, "MOONCAKE_PROTOCOL": "rmda", "MOONCAKE_MASTER": f"127.0.0.1:{dead_port()}"}
    result = check_before_opening(process(environ, ip="127.0.0.1"))
    assert errors(result) == ["MC027", "MC302"]
    ranks = [finding.severity.rank for finding in result.findings]
    assert ranks == sorted(ranks)


def test_origin_of_a_node_finding() -> None:
    """A finding about a field names the place to edit."""
    result = check_before_opening(process({**LOOPBACK, "MOONCAKE_MASTER": f"127.0.0.1:{dead_port()}"}, ip="127.0.0.1"))
    found = next(item for item in result.findings if item.code == "MC302")
    assert str(found.origin) == "MOONCAKE_MASTER"


def test_ignore() -> None:
    """A finding about the machine can be ignored, by code or name; an unknown rule is refused."""
    of = process({**LOOPBACK, "MOONCAKE_MASTER": f"127.0.0.1:{dead_port()}"}, ip="127.0.0.1")
    for name in ("MC302", "master-unreachable"):
        assert not check_before_opening(of, (name,)).has_error
    for check in (check_process, check_before_opening):
        with pytest.raises(ValueError, match="no rule"):
            check(of, ("MC999",))


def test_backend_ray() -> None:
    """With the backend Ray nothing is asked of endpoints, and no rule about the machine speaks."""
    of = process({"MOONCAKE_MASTER": f"127.0.0.1:{dead_port()}"}, backend=Backend.RAY, processes=64)
    result = check_process(of)
    assert result.probe_facts == []
    assert not [code for code in codes(result.findings) if code >= "MC2"]
    assert [fact["answer"] for fact in check_dry_setup(result).probe_facts] == ["not tried: the backend is ray"]


def test_copied_host(tmp_path: Path) -> None:
    """Facts of a host that was copied away come from below its root; endpoints are asked from here."""
    root = lay_out(tmp_path, {"proc/meminfo": "MemTotal: 1024 kB\n", "etc/hosts": "127.0.1.1 node-a17\n"})
    with server(as_master) as port:
        of = process({**LOOPBACK, "MOONCAKE_MASTER": f"127.0.0.1:{port}"}, ip="node-a17", nodes=2)
        result = check_process(of, root=root)
    found = codes(result.findings)
    assert (found["MC200"], found["MC301"]) == ("error", "error")
    assert "MC300" not in found
    assert result.host_facts["memory_total"] == 1 << 20
    assert result.host_facts["memlock"] is None


def test_pickles_and_becomes_json() -> None:
    """A result crosses Ray, and its facts are JSON."""
    result = check_process(process({**LOOPBACK, "MOONCAKE_MASTER": f"127.0.0.1:{dead_port()}"}, ip="127.0.0.1"))
    assert pickle.loads(pickle.dumps(result)).findings == result.findings
    assert json.loads(json.dumps([result.host_facts, result.probe_facts]))


def test_no_secret(capfd: pytest.CaptureFixture[str]) -> None:
    """The password of a metadata URL stands in no fact and no finding, whatever answers."""
    with server(replying(http("500 Oops", "me:hunter2@x"))) as port:
        url = f"http://me:hunter2@127.0.0.1:{port}/metadata"
        result = check_process(
            process({**LOOPBACK, "MOONCAKE_TE_META_DATA_SERVER": url, "MOONCAKE_MASTER": ""}, ip="127.0.0.1")
        )
    text = json.dumps([result.host_facts, result.probe_facts]) + "\n".join(map(str, result.findings))
    assert "hunter2" not in text + "".join(capfd.readouterr())
    assert "MC311" in codes(result.findings)


DEAD = """
import sys, time
from machines import process
from mooncake_config.check import check_process
environ = dict(word.split("=", 1) for word in sys.argv[1:])
began = time.monotonic()
result = check_process(process(environ, nodes=2, ip="worker.example"))
print(round(time.monotonic() - began, 2))
print(*sorted(finding.code for finding in result.findings if finding.severity.value == "error"))
"""


@pytest.mark.parametrize(
    ("environ", "found"),
    [
        (
            ("MOONCAKE_MASTER=10.99.0.8:50051", "MOONCAKE_TE_META_DATA_SERVER=http://10.99.0.7:8080/metadata"),
            "MC300 MC302 MC310",
        ),
        (
            ("MOONCAKE_MASTER=head.example:50051", "MOONCAKE_TE_META_DATA_SERVER=http://meta.example/metadata"),
            "MC300 MC300 MC300",
        ),
    ],
)
def test_everything_dead(tmp_path: Path, environ: tuple[str, ...], found: str) -> None:
    """With silent endpoints, no name server and an import that hangs, the check ends in under five seconds."""
    site = lay_out(tmp_path, {"mooncake/__init__.py": "", "mooncake/store.py": "import time; time.sleep(600)"})
    words = [*environ, *(f"{name}={value}" for name, value in LOOPBACK.items())]
    child = {**os.environ, "PYTHONPATH": os.pathsep.join((str(site), str(Path(__file__).parent)))}
    with dead_network() as enter:
        command = [*enter, sys.executable, "-c", DEAD, *words]
        run = subprocess.run(command, capture_output=True, text=True, env=child, timeout=60, check=True)
    seconds, listed = run.stdout.splitlines()
    assert float(seconds) < 5
    assert re.sub(r"MC20\d ?", "", listed).strip() == found


TREE = st.dictionaries(
    st.sampled_from(["proc/meminfo", "proc/self/limits", "proc/net/fib_trie", "sys/fs/cgroup/memory.max", "etc/hosts"]),
    st.binary(max_size=100),
)


@settings(max_examples=25)
@given(files=TREE, protocol=st.sampled_from(["tcp", "rdma", "efa", "x"]), device=st.sampled_from(["", "mlx5_0", "a/b"]))
def test_garbage_host(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes], protocol: str, device: str
) -> None:
    """Whatever a host's files hold, the rules end in findings with words that are fit to be shown."""
    root = lay_out(tmp_path_factory.mktemp("host"), dict(files))
    of = process(
        {"MOONCAKE_MASTER": "", "MOONCAKE_PROTOCOL": protocol, "MOONCAKE_DEVICE": device}, backend=Backend.MOONCAKE
    )
    try:
        result = check_before_opening(of, root=root)
    finally:
        shutil.rmtree(root)
    assert all(item.message.isprintable() and item.fix for item in result.findings)
