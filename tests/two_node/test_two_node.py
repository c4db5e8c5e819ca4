"""The walkthrough on two hosts, and what ``check --cluster`` finds when one thing after another is broken there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib.metadata import files, version
from pathlib import Path

import page
import pytest
from hosts import put_over, two_hosts
from lab import Lab, Shell, headline, outcome, step, tell

pytestmark = [pytest.mark.mooncake, pytest.mark.ray, pytest.mark.timeout(300)]

SIZES = '"global_segment_size": "2gb", "local_buffer_size": "2gb"'
CHECK = "mooncake-config check --cluster --mooncake-store-init-kwargs \\\n  '{%s}'"
FINDINGS = CHECK.replace("--cluster", "--cluster -q")
MASTER = '"master_server_address": "10.77.0.1:50051"'
WITHOUT_PROTOCOL = "unset MOONCAKE_PROTOCOL"
USUAL = CHECK % f"{MASTER}, {SIZES}"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Two hosts, with Mooncake's master and a Ray cluster of both: steps 1 to 3 of the page."""
    with two_hosts() as hosts:
        head, worker = (Shell(host, tmp_path_factory.mktemp(host.name)) for host in hosts)
        lab = Lab(head, worker)
        headline("Two hosts, of network, mount, process, host name and IPC namespaces")
        for shell in (head, worker):
            shell.run("hostname; ip -brief -4 address show eth0")
        for number in (1, 2, 3):
            lab.follow(number)
        lab.wait_for_master()
        lab.wait_for_nodes()
        yield lab


# --- the walkthrough ---


def test_look_before_you_start(lab: Lab) -> None:
    """Before the job starts, the check of the cluster finds nothing, and has reached every node from every other."""
    (printed,) = lab.follow(4)
    assert "2 nodes, all alike" in printed
    assert "connections, every node to every other: 2 reached" in printed
    assert not re.search(r"^[✗!i] ", printed, re.MULTILINE)


@pytest.mark.parametrize(
    ("number", "made_with"), [(5, [0, 1, 2]), (6, [0, 0, 1, 2, 3, 4])], ids=["synchronous", "fully-asynchronous"]
)
def test_job(number: int, made_with: list[int], lab: Lab) -> None:
    """The submitted job learns; losses and weights are the same to the last bit through Mooncake and through Ray.

    With --fully-async each rollout but the first is made with weights that lag one update behind. Nothing stays in the
    Store.
    """
    stored = lab.objects_stored()
    told = lab.follow(number)
    assert all("rollouts on 10.77.0.1, training on 10.77.0.2\n" in printed for printed in told)
    mooncake, ray = map(outcome, told)
    assert mooncake == ray
    tell("The same losses and the same weights, to the last bit, through Mooncake and through Ray.\n")
    assert mooncake.made_with == made_with
    assert mooncake.losses[-1] < mooncake.losses[0] / 1.5
    assert lab.objects_stored() - stored >= 2 * len(made_with)
    assert lab.keys() == ""


# --- one thing after another is broken ---


@dataclass(frozen=True)
class Fault:
    """A way to break the cluster.

    Attributes:
        name: of the block of the page that shows what is found.
        title: what is wrong, in words.
        broken: breaks it, and mends it again.
        findings: how the heads of the findings begin that the check must have.
        command: the check.
    """

    name: str
    title: str
    broken: Callable[[Lab], AbstractContextManager[None]]
    findings: tuple[str, ...]
    command: str = USUAL


@contextmanager
def nothing(lab: Lab) -> Iterator[None]:
    """The cluster as it is."""
    lab.worker_joins()
    yield


def joined_anew(script: str) -> Callable[[Lab], AbstractContextManager[None]]:
    """The worker has joined from a shell in which this ran first."""

    @contextmanager
    def broken(lab: Lab) -> Iterator[None]:
        lab.worker_joins(script)
        yield

    return broken


@contextmanager
def filtered(lab: Lab) -> Iterator[None]:
    """A firewall on the worker drops what comes in for the ports of Mooncake's data."""
    lab.worker_joins()
    rules = "add table inet wall\nadd chain inet wall in { type filter hook input priority 0; }\n"
    lab.worker.run(f"nft '{rules}add rule inet wall in tcp dport 15000-17000 drop'")
    try:
        yield
    finally:
        lab.worker.run("nft delete table inet wall")


@contextmanager
def master_stopped(lab: Lab) -> Iterator[None]:
    """The master has been ended."""
    lab.worker_joins()
    lab.head.run("kill $(pidof mooncake_master)")
    try:
        yield
    finally:
        lab.start_master()


@contextmanager
def other_version(lab: Lab) -> Iterator[None]:
    """On the worker Mooncake says that it is an older version."""
    lab.worker_joins()
    name = "mooncake-transfer-engine-non-cuda"
    metadata = next(file for file in files(name) or () if file.name == "METADATA")
    path = Path(str(metadata.locate())).resolve()
    older = metadata.read_text().replace(f"\nVersion: {version(name)}\n", "\nVersion: 0.3.12.post1\n")
    put_over(lab.worker.host, path, older)
    try:
        yield
    finally:
        lab.worker.host.must("umount", str(path))


FAULTS = (
    Fault("healthy", "Nothing is broken", nothing, ()),
    Fault(
        "wrong-address-for-all",
        "The JSON of the job, which reaches every node, holds the address of one",
        nothing,
        ("✗ error MC421",),
        CHECK % f'"local_hostname": "10.77.0.1", {MASTER},\n    {SIZES}',
    ),
    Fault(
        "master-on-loopback",
        "The master's address is 127.0.0.1, which is right on the head alone",
        nothing,
        ("✗ error MC101", "✗ error MC302"),
        FINDINGS % f'"master_server_address": "127.0.0.1:50051", {SIZES}',
    ),
    Fault(
        "submitting-shell",
        "The master's address is exported in the shell that submits the job, and nowhere else",
        nothing,
        ("✗ error MC411",),
        f"MOONCAKE_MASTER=10.77.0.1:50051 {FINDINGS % SIZES}",
    ),
    Fault(
        "data-port-filtered",
        "A firewall on the worker drops what comes for Mooncake's data",
        filtered,
        ("✗ error MC441",),
    ),
    Fault(
        "master-stopped",
        "The master has ended",
        master_stopped,
        ("✗ error MC302",),
        FINDINGS % f"{MASTER}, {SIZES}",
    ),
    Fault("other-version", "The worker has an older Mooncake", other_version, ("✗ error MC430",)),
    Fault(
        "loopback-on-worker",
        "Ray was started on the worker by a shell with a loopback address for Mooncake",
        joined_anew("export MOONCAKE_LOCAL_HOSTNAME=127.0.0.1"),
        ("✗ error MC101",),
    ),
    Fault(
        "variable-missing",
        "Ray was started on the worker by a shell without MOONCAKE_PROTOCOL",
        joined_anew(WITHOUT_PROTOCOL),
        ("✗ error MC410",),
    ),
)
"""In an order in which the worker joins anew as few times as possible."""


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_fault(fault: Fault, lab: Lab) -> None:
    """The check finds the fault, ends with status 1 (0 where nothing is broken), and prints what the page shows."""
    headline(fault.title)
    with fault.broken(lab):
        status, printed = lab.head.attempt(fault.command)
    assert status == (1 if fault.findings else 0)
    for finding in fault.findings:
        assert finding in printed
    block = f"$ {fault.command}\n{printed}\n"
    if page.WRITE and page.comparable(block) != page.comparable(page.shown(fault.name)):
        page.write(fault.name, block)
    assert page.comparable(block) == page.comparable(page.shown(fault.name)), f"run: {page.COMMAND}"


def test_start_of_another_store(lab: Lab) -> None:
    """A trainer that resolves another Store than the driver ends before it opens one, and tells both origins."""
    headline("The job is started all the same")
    lab.worker_joins(WITHOUT_PROTOCOL)
    script = step(5)[0].script.replace("${MOONCAKE_STORE_INIT_KWARGS}", "${WITHOUT}")
    status, printed = lab.head.attempt(f"export WITHOUT='{{{MASTER}, {SIZES}}}'\n{script}")
    assert status == 1
    assert "another Store than the driver. protocol: rdma here (default), tcp there (MOONCAKE_PROTOCOL)" in printed
