"""Hosts on one machine: namespaces of their own for network, mounts, processes, host name and IPC.

Nothing of the machine's own network is touched. Everything on a host ends with its holder, the first process there,
and the holder ends when the pipe to it closes: also where the process that made the hosts is killed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

NAMESPACES = ("--mount", "--uts", "--ipc", "--net", "--pid")
SYSTEM = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
HOLDER = "env --ignore-signal=CHLD cat"
"""Reaps what daemons leave behind, since it ignores the end of a child, and ends when its standard input does."""

OWN_FOLDERS = (Path("/dev/shm"), Path("/tmp/ray"))
"""Shared memory, and where Ray puts its sessions: what the processes of one host share, and no other host has."""

SET_UP_SECONDS = 20


@dataclass(frozen=True)
class Host:
    """A host: its name, its address on the cable, and the process that holds its namespaces."""

    name: str
    address: str
    holder: int

    def enter(self, *command: str, folder: Path | None = None) -> list[str]:
        """The command that runs another one on this host, in a folder (None: the current one)."""
        return ["nsenter", f"--target={self.holder}", *NAMESPACES, f"--wd={folder or Path.cwd()}", "--", *command]

    def environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        """What a shell on this host has: the programs beside this interpreter, and these variables."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{SYSTEM}"
        usual = {"PATH": path, "HOME": os.environ.get("HOME", "/"), "LANG": "C.UTF-8"}
        # A local Ray leaves a token in the home of its user, and the next head would ask everybody for it.
        return {**usual, "RAY_AUTH_MODE": "disabled", **variables}

    def run(
        self,
        *command: str,
        variables: Mapping[str, str] | None = None,
        folder: Path | None = None,
        seconds: float = 60,
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command to its end; both of its outputs are in ``stdout``."""
        return subprocess.run(
            self.enter(*command, folder=folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=seconds,
            env=self.environment(variables or {}),
        )

    def must(self, *command: str) -> None:
        """Runs a command that cannot fail."""
        done = self.run(*command)
        assert done.returncode == 0, (self.name, command, done.stdout)


@contextmanager
def two_hosts() -> Iterator[tuple[Host, Host]]:
    """A host called head, 10.77.0.1, and one called worker, 10.77.0.2, with a cable between their interfaces eth0."""
    _skip_where_impossible()
    with ExitStack() as held:
        head, worker = (
            Host(name, f"10.77.0.{number}", held.enter_context(_holder()))
            for number, name in enumerate(("head", "worker"), 1)
        )
        cable = f"ip link add eth0 type veth peer name eth0 netns {worker.holder}"
        subprocess.run(["nsenter", f"--target={head.holder}", "--net", "--", *cable.split()], check=True)
        for host in (head, worker):
            _furnish(host, (head, worker))
        yield head, worker


@contextmanager
def dead_network() -> Iterator[list[str]]:
    """A host whose only neighbour, also its name server, does not exist; gives the command to enter it."""
    _skip_where_impossible()
    with _holder() as holder:
        host = Host("dead", "10.99.0.1", holder)
        ends = ("link add eth0 type veth peer name eth1", f"addr add {host.address}/24 dev eth0")
        for words in (*ends, "link set lo up", "link set eth0 up", "link set eth1 up"):
            host.must("ip", *words.split())
        put_over(host, Path("/etc/resolv.conf"), "nameserver 10.99.0.9\n")
        yield host.enter()


def _skip_where_impossible() -> None:
    missing = [program for program in ("ip", "nsenter", "unshare") if shutil.which(program, path=SYSTEM) is None]
    if missing:
        pytest.skip(f"hosts need {', '.join(missing)} (Debian and Ubuntu: apt-get install iproute2 util-linux)")
    tried = subprocess.run(["unshare", *NAMESPACES, "--fork", "true"], check=False, capture_output=True, text=True)
    if tried.returncode != 0:
        pytest.skip(f"only root can make hosts of namespaces: {tried.stderr.strip()}")


@contextmanager
def _holder() -> Iterator[int]:
    """A process in new namespaces that lives as long as the pipe to it; gives its number."""
    command = ["unshare", *NAMESPACES, "--fork", "--mount-proc", "--kill-child", "sh", "-c", f"echo; exec {HOLDER}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as unshare:
        try:
            assert unshare.stdout
            assert unshare.stdout.readline() == b"\n"
            yield int(Path(f"/proc/{unshare.pid}/task/{unshare.pid}/children").read_text("ascii"))
        finally:
            assert unshare.stdin
            unshare.stdin.close()
            unshare.wait(SET_UP_SECONDS)


def _furnish(host: Host, neighbours: Sequence[Host]) -> None:
    """The interface up, directories that only the processes of one host share, its name, and a table of hosts."""
    for words in ("link set lo up", f"addr add {host.address}/24 dev eth0", "link set eth0 up"):
        host.must("ip", *words.split())
    host.must("hostname", host.name)
    for folder in OWN_FOLDERS:
        folder.mkdir(exist_ok=True)
        host.must("mount", "-t", "tmpfs", "tmpfs", str(folder))
    table = "".join(f"{each.address} {each.name}\n" for each in neighbours)
    for name, content in (("hosts", f"127.0.0.1 localhost\n{table}"), ("resolv.conf", "")):
        put_over(host, Path("/etc") / name, content)
    # The ports of a master lie where those of outgoing connections do, and one of these may be first.
    host.must("sh", "-c", "echo 50051,50052 >/proc/sys/net/ipv4/ip_local_reserved_ports")


def put_over(host: Host, path: Path, content: str) -> None:
    """Puts a file over another one, on this host only; ``umount`` on the host takes it away."""
    script = 'f=$(mktemp -p /dev/shm) && printf "%s" "$1" >"$f" && chmod 644 "$f" && mount --bind "$f" "$2"'
    host.must("sh", "-c", script, "", content, str(path))
