"""The hosts of namespaces: each has its own network, files and processes, and none outlives whoever made it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hosts import Host, two_hosts

CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 2)"
LISTEN = "import socket, sys; held = socket.create_server(('', 15000)); print(flush=True); sys.stdin.read()"
MAKER = """
import pathlib, time
from hosts import two_hosts

with two_hosts() as (head, worker):
    head.must("sh", "-c", "sleep 600 >/dev/null 2>&1 & true")
    left_behind = pathlib.Path(f"/proc/{head.holder}/task/{head.holder}/children").read_text()
    print(head.holder, worker.holder, left_behind, flush=True)
    time.sleep(600)
"""


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Host, Host]]:
    """Two hosts."""
    with two_hosts() as hosts:
        yield hosts


def connects(host: Host, address: str, port: int) -> bool:
    """Whether a connection from a host succeeds."""
    return host.run("python", "-c", CONNECT, address, str(port)).returncode == 0


def test_network(pair: tuple[Host, Host]) -> None:
    """The hosts reach each other by their addresses, and nothing of the machine that they are on."""
    head, worker = pair
    pipe = subprocess.PIPE
    with subprocess.Popen(worker.enter(sys.executable, "-c", LISTEN), stdin=pipe, stdout=pipe) as server:
        assert server.stdout
        server.stdout.readline()
        assert connects(head, worker.address, 15000)
        assert not connects(head, "127.0.0.1", 15000)
    with socket.create_server(("127.0.0.1", 0)) as of_the_machine:
        assert not connects(head, "127.0.0.1", of_the_machine.getsockname()[1])


@pytest.mark.parametrize("folder", ["/dev/shm", "/tmp/ray"])
def test_own_files(pair: tuple[Host, Host], folder: str) -> None:
    """What a host writes to shared memory, or where Ray has its sessions, no other host has, nor the machine."""
    head, worker = pair
    head.must("touch", f"{folder}/of-the-head")
    assert worker.run("ls", f"{folder}/of-the-head").returncode != 0
    assert not Path(folder, "of-the-head").exists()


def test_own_processes(pair: tuple[Host, Host]) -> None:
    """A host sees its own processes alone, and has its own name."""
    head, worker = pair
    assert [host.run("hostname").stdout.strip() for host in pair] == ["head", "worker"]
    assert all(len(host.run("sh", "-c", "ls -d /proc/[0-9]*").stdout.split()) < 5 for host in (head, worker))


@pytest.mark.usefixtures("pair")
def test_nothing_outlives_the_maker() -> None:
    """Where the process that made the hosts is killed, every process on them ends."""
    variables = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    with subprocess.Popen([sys.executable, "-c", MAKER], stdout=subprocess.PIPE, text=True, env=variables) as maker:
        assert maker.stdout
        processes = [Path("/proc", number) for number in maker.stdout.readline().split()]
        assert len(processes) == 3
        assert all(process.exists() for process in processes)
        maker.send_signal(signal.SIGKILL)
        deadline = time.monotonic() + 10
        while any(process.exists() for process in processes):
            assert time.monotonic() < deadline
            time.sleep(0.05)
