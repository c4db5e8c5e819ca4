"""A ``mooncake_master`` of one's own: for a job on one machine, a demo, a test."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import weakref
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING

from mooncake_config.display import escaped, shown
from mooncake_config.store.errors import MasterStartError, StoreImportError
from mooncake_config.store.native_log import open_log

if TYPE_CHECKING:
    from typing_extensions import Self

PROGRAM = "mooncake_master"

STOP_SECONDS = 5.0
"""How long a master may take to end by itself before it is killed."""

LOG_LINES = 20
LOG_LINE_CHARACTERS = 200
"""A master logs its counters in lines of 2,000 characters."""

ATTEMPTS = 3
"""Between the choice of a free port and the start of the master somebody else can take it."""

_OWN_FLAGS = ("rpc_address", "rpc_port", "port", "metrics_port", "metrics_host")


@dataclass(frozen=True)
class _Launch:
    """One way to start the program."""

    program: str
    address: str
    rpc_port: int
    metrics_port: int
    metrics_host: str | None
    flags: tuple[str, ...]

    def command(self) -> list[str]:
        host = [f"--metrics_host={self.metrics_host}"] if self.metrics_host else []
        return [
            self.program,
            f"--rpc_address={self.address}",
            f"--rpc_port={self.rpc_port}",
            f"--metrics_port={self.metrics_port}",
            *host,
            *self.flags,
        ]


class MooncakeMaster:
    """A running master, and the one that stops it. Made by ``start_mooncake_master``; a context manager.

    ``address`` is ``host:port``, the value for ``master_server_address``; ``metrics_port`` serves ``/health``,
    ``/metrics`` and ``/get_all_keys``; ``pid`` is the process.

    It is stopped at the latest when the interpreter ends. A process that is killed leaves its master behind: what Linux
    has against that (``PR_SET_PDEATHSIG``) strikes when the *thread* ends that started the master, and has to be set
    between fork and exec, where a process with threads can lock up.
    """

    def __init__(self, process: subprocess.Popen[bytes], launch: _Launch, log: IO[bytes]) -> None:
        self.rpc_port = launch.rpc_port
        self.metrics_port = launch.metrics_port
        self.address = _host_port(launch.address, launch.rpc_port)
        self._host = launch.address
        self._process = process
        self._log = log
        self._stop = weakref.finalize(self, _stop_process, process, log, os.getpid())

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """How the process ended; None while it runs."""
        return self._process.poll()

    def log_tail(self, lines: int = LOG_LINES) -> str:
        """The last lines of the master's log, each shortened. Empty after ``stop``, unless there is a log path."""
        if self._log.closed:
            return ""
        return _tail(self._log, lines)

    def stop(self) -> None:
        """Ends the master: by SIGTERM, and by SIGKILL if it takes longer than 5 s. The second time it does nothing."""
        self._stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<MooncakeMaster {self.address} pid {self.pid}>"


def start_mooncake_master(
    *,
    rpc_port: int = 0,
    metrics_port: int = 0,
    address: str = "127.0.0.1",
    log_path: str | os.PathLike[str] | None = None,
    timeout: float = 10.0,
    flags: Sequence[str] = (),
) -> MooncakeMaster:
    """Starts the installed wheel's master and waits until its ``/health`` says that it serves (0.2 s or so).

    Args:
        rpc_port: where clients connect; 0 picks a free one. (To the program itself 0 means 50051.)
        metrics_port: where HTTP is served; 0 picks a free one.
        address: the address to bind, and the one that clients are told: one of this host's own. With the default only
            this host reaches the master.
        log_path: a file that the log is appended to; None keeps it in an unnamed file that goes with the master.
        timeout: seconds to become ready in.
        flags: more flags of the program, such as ``"--default_kv_lease_ttl=5000"``.

    Raises:
        ValueError: a port outside of 0 to 65535, a wildcard address, a flag that is an argument here.
        StoreImportError: there is no ``mooncake_master``.
        MasterStartError: a port is taken (by whom is left alone), or the master ended or was not ready in time; its
            log's last lines are in the error.
    """
    _check_arguments(rpc_port, metrics_port, address, flags)
    program = find_program()
    deadline = time.monotonic() + timeout
    metrics_host: str | None = address
    for attempt in range(1, ATTEMPTS + 1):
        rpc, metrics = _free_ports(address, rpc_port, metrics_port)
        launch = _Launch(program, address, rpc, metrics, metrics_host, tuple(flags))
        try:
            return _launched(launch, log_path, deadline)
        except MasterStartError as error:
            if attempt == ATTEMPTS or error.returncode is None:
                raise
            if "unknown command line flag 'metrics_host'" in error.log:
                metrics_host = None  # 0.3.12 has no such flag, and serves HTTP on every address.
            elif not _may_be_a_race(error, rpc_port, metrics_port):
                raise
    raise AssertionError("unreachable")


def _check_arguments(rpc_port: int, metrics_port: int, address: str, flags: Sequence[str]) -> None:
    for name, port in (("rpc_port", rpc_port), ("metrics_port", metrics_port)):
        if not 0 <= port <= 65535:
            raise ValueError(f"{name} is 0 to 65535, not {port}")
    if rpc_port and rpc_port == metrics_port:
        raise ValueError(f"rpc_port and metrics_port are both {rpc_port}; each needs its own")
    if not address or _is_wildcard(address):
        raise ValueError(f"address {address!r} is none that a client can connect to: give one of this host's addresses")
    if isinstance(flags, str):
        raise TypeError("flags is a sequence of texts, one for each flag")
    for flag in flags:
        name = flag.lstrip("-").partition("=")[0]
        if name in _OWN_FLAGS:
            raise ValueError(f"the flag --{name} is an argument of start_mooncake_master")


def _is_wildcard(address: str) -> bool:
    try:
        return ip_address(address).is_unspecified
    except ValueError:
        return False


def _may_be_a_race(error: MasterStartError, rpc_port: int, metrics_port: int) -> bool:
    """Whether somebody took a port that we chose; the program gives no reason for its RPC port, and ends with 1."""
    return error.returncode == 1 and not (rpc_port and metrics_port) and "ERROR: " not in error.log


def find_program() -> str:
    """The master of the installed wheel: in the package, beside this interpreter, or on PATH.

    Raises:
        StoreImportError: it is in none of these places.
    """
    for candidate in _candidates():
        if os.access(candidate, os.X_OK) and candidate.is_file():
            return str(candidate)
    raise StoreImportError(
        f"{PROGRAM} is not installed: pip install 'mooncake-config[mooncake-cpu]', or another of the Mooncake extras.",
        module="mooncake",
        extra="mooncake-cpu",
    )


def _candidates() -> Iterator[Path]:
    spec = find_spec("mooncake")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        yield Path(folder) / PROGRAM
    yield Path(sys.executable).parent / PROGRAM
    on_path = shutil.which(PROGRAM)
    if on_path:
        yield Path(on_path)


def _free_ports(address: str, *asked: int) -> list[int]:
    """The asked ports, checked, and free ones for 0. All are held at once, so that no two are the same."""
    with ExitStack() as held:
        return [_held_port(held, address, port) for port in asked]


def _held_port(held: ExitStack, address: str, port: int) -> int:
    try:
        family = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0][0]
        sock = held.enter_context(socket.socket(family, socket.SOCK_STREAM))
        # As servers do: connections of the past that are still in TIME_WAIT do not take a port.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((address, port))
    except OSError as error:
        raise MasterStartError(_port_message(address, port, error)) from error
    return int(sock.getsockname()[1])


def _port_message(address: str, port: int, error: OSError) -> str:
    reason = error.strerror or str(error)
    if error.errno == errno.EADDRINUSE:
        return f"port {port} of {address} is taken by a process that was left alone: stop it, or let 0 pick a free one."
    if error.errno == errno.EACCES:
        return f"port {port} of {address} is not for this user ({reason}): take one from 1024 up, or 0 for a free one."
    return f"{shown(address)} is no address of this host ({reason}): give the one of its data network."


def _launched(launch: _Launch, log_path: str | os.PathLike[str] | None, deadline: float) -> MooncakeMaster:
    log = open_log(log_path)
    try:
        # In a session of its own, Ctrl-C reaches this process alone, which can then close its stores first.
        process = subprocess.Popen(
            launch.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    except OSError as error:
        log.close()
        raise MasterStartError(f"{launch.program} cannot be run ({error.strerror or error}).") from error
    master = MooncakeMaster(process, launch, log)
    try:
        _wait_until_ready(master, launch, deadline)
    except BaseException:
        master.stop()
        raise
    return master


def _wait_until_ready(master: MooncakeMaster, launch: _Launch, deadline: float) -> None:
    url = f"http://{_host_port(launch.metrics_host or '127.0.0.1', launch.metrics_port)}/health"
    pause = 0.02
    while True:
        code = master.returncode
        if code is not None:
            raise _ended(code, master.log_tail())
        left = deadline - time.monotonic()
        if left <= 0:
            raise MasterStartError(
                _with_log(f"{PROGRAM} was not ready in time.", master.log_tail()), log=master.log_tail()
            )
        if _is_ready(url, launch, min(left, 1.0)):
            return
        time.sleep(pause)


def _listens(launch: _Launch, seconds: float) -> bool:
    try:
        socket.create_connection((launch.address, launch.rpc_port), seconds).close()
    except OSError:
        return False
    return True


def total_capacity(address: str, metrics_port: int) -> int | None:
    """Bytes of all segments of a master, as its ``/metrics`` tells; None where it does not answer in a second."""
    url = f"http://{address.rpartition(':')[0]}:{metrics_port}/metrics"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=1.0) as answer:
            found = _CAPACITY.search(answer.read().decode("utf-8", "replace"))
    except (OSError, ValueError):
        return None
    return int(float(found[1])) if found else None


_CAPACITY = re.compile(r"^master_total_capacity_bytes (\S+)", re.MULTILINE)


def _is_ready(url: str, launch: _Launch, seconds: float) -> bool:
    """Whether the master serves; the standby of a highly available pair is as ready as it gets, and opens no port."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=seconds) as answer:
            health = json.load(answer)
    except (OSError, ValueError):
        return False
    return health.get("ha_state") == "standby" or (bool(health.get("service_ready")) and _listens(launch, seconds))


def _ended(code: int, log: str) -> MasterStartError:
    library = re.search(r"(lib\S+?\.so\S*): cannot open shared object", log)
    if library:
        package = " (Debian and Ubuntu: apt-get install libibverbs1)" if "ibverbs" in library[1] else ""
        message = f"{PROGRAM} needs {library[1]}, which this host does not have{package}."
    else:
        message = _with_log(f"{PROGRAM} ended with status {code} before it was ready.", log)
    return MasterStartError(message, returncode=code, log=log)


def _with_log(message: str, log: str) -> str:
    return f"{message} The end of its log:\n{log}" if log else f"{message} It logged nothing."


def _tail(log: IO[bytes], lines: int) -> str:
    size = os.fstat(log.fileno()).st_size
    start = max(0, size - 64 * 1024)
    text = os.pread(log.fileno(), size - start, start).decode("utf-8", "replace")
    return "\n".join(escaped(line)[:LOG_LINE_CHARACTERS] for line in text.splitlines()[-lines:])


def _stop_process(process: subprocess.Popen[bytes], log: IO[bytes], owner: int) -> None:
    """Ends the process and closes the log, in the process that started it: a forked child has its parent's handle."""
    if os.getpid() == owner and process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    log.close()


def _host_port(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
