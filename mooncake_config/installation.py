"""The installed Mooncake: its distributions, and what happens when a child process imports it or sets a client up."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import IO

from mooncake_config.display import escaped, masked_prose, shortened, shown
from mooncake_config.process import Process, setup_kwargs

IMPORT_SECONDS = 3.5
SETUP_SECONDS = 20.0
"""Time for a dry setup where the caller does not say."""
_LOG_LIMIT = 1 << 18

DISTRIBUTIONS = (
    "mooncake-transfer-engine",
    "mooncake-transfer-engine-cuda13",
    "mooncake-transfer-engine-non-cuda",
    "mooncake-transfer-engine-efa",
    "mooncake-transfer-engine-efa-cuda13",
    "mooncake-transfer-engine-efa-non-cuda",
    "mooncake-transfer-engine-musa",
    "mooncake-transfer-engine-npu",
)
"""The wheels that hold the package mooncake; all of them unpack into the same directory."""


@dataclass(frozen=True)
class Distribution:
    """An installed distribution of Mooncake.

    Args:
        version: None where its metadata is missing or unreadable.
        place: the directory that it is installed into.
    """

    name: str
    version: str | None
    place: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.version or '(version unknown)'}"


@dataclass(frozen=True)
class Trial:
    """How a child process went: the steps that it told, its end, and lines of the native log.

    Args:
        exit: its status, negative for a signal, None where the limit passed.
        errors: what the log says at level E or F, each once, the first ones.
        warnings: the same for level W.
    """

    steps: tuple[Mapping[str, object], ...]
    exit: int | None
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0

    def step(self, key: str) -> Mapping[str, object] | None:
        """The step that tells this key."""
        return next((step for step in self.steps if key in step), None)

    def told(self, key: str) -> object:
        """What was told under this key, None where nothing was."""
        return (self.step(key) or {}).get(key)

    @property
    def end(self) -> str:
        """How the child ended, to follow "it": a signal by its name, a status, or the limit."""
        if self.exit is None:
            return "did not end within the limit"
        if self.exit >= 0:
            return f"ended with status {self.exit}"
        names = {number.value: number.name for number in signal.Signals}
        return f"was killed by {names.get(-self.exit, f'signal {-self.exit}')}"


@dataclass(frozen=True)
class Installed:
    """The Mooncake of this interpreter. ``trial``: its import in a child, None where that was not tried."""

    distributions: tuple[Distribution, ...]
    machine: str
    trial: Trial | None = None


def find_installed(path: Sequence[str] | None = None) -> Installed:
    """The distributions of Mooncake on a search path, None: that of this interpreter. Nothing is imported."""
    places = sys.path if path is None else list(path)
    found = (_distribution(name, places) for name in DISTRIBUTIONS)
    return Installed(tuple(item for item in found if item), platform.machine())


def _distribution(name: str, path: Iterable[str]) -> Distribution | None:
    """The first on the path. Entries that the import system passes over, such as None, are passed over here too."""
    for place in path:
        with contextlib.suppress(OSError, ValueError, TypeError):
            for item in metadata.distributions(name=name, path=[place]):
                return Distribution(name, _version(item), escaped(str(item.locate_file(""))))
    return None


def _version(item: metadata.Distribution) -> str | None:
    try:
        version: object = item.version
    except Exception:  # noqa: BLE001 - whatever lies in a foreign directory leaves the version unknown
        return None
    return escaped(version) if isinstance(version, str) and version.strip() else None


def try_import(variables: Mapping[str, str], limit: float = IMPORT_SECONDS) -> Trial:
    """An import of Mooncake in a child process, with these MOONCAKE and MC_ variables instead of our own."""
    return run_trial(["import"], _environment(variables), "", limit)


def dry_setup(process: Process, limit: float = SETUP_SECONDS) -> Trial:
    """A real setup of a client with these settings in a child process, which closes it again.

    For the time of the trial a contributor's segment is part of the Store, so objects of a job that runs may be placed
    in it. Only for a process without errors: others crash native code.
    """
    environment = {"MC_STORE_CLIENT_SETUP_RETRIES": "2", **_environment(process.variables.variables)}
    return run_trial(["setup", f"{int(limit) + 2}"], environment, json.dumps(setup_kwargs(process)), limit)


def _environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Ours, with what the configuration sets. The native log stays on standard error, at a level that tells reasons."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MOONCAKE", "MC_"))}
    quiet = ("MC_LOG_DIR", "GLOG_log_dir", "GLOG_minloglevel", "GLOG_logtostdout")
    return {name: value for name, value in {**kept, **variables}.items() if name not in quiet} | {
        "MC_LOG_LEVEL": "INFO"
    }


def run_trial(arguments: Sequence[str], environment: Mapping[str, str], given: str, limit: float) -> Trial:
    """Runs ``mooncake_config.store.trial`` with this interpreter and waits for its end, within the limit."""
    began = time.monotonic()
    command = [sys.executable, "-m", "mooncake_config.store.trial", *arguments]
    try:
        return _account(command, environment, given, limit)
    except OSError as error:  # no process can be started here, or no file kept
        return Trial((), 127, (shown(f"cannot start {command[0]}: {error}", 200),), seconds=time.monotonic() - began)


def _account(command: Sequence[str], environment: Mapping[str, str], given: str, limit: float) -> Trial:
    began = time.monotonic()
    with tempfile.TemporaryFile() as told, tempfile.TemporaryFile() as log:
        status = _run(command, environment, given, limit, (told, log))
        text = _kept(log)
        return Trial(
            steps=tuple(_steps(_kept(told))),
            exit=status,
            errors=_few(_error_lines(text)),
            warnings=_few(_warning_lines(text)),
            seconds=time.monotonic() - began,
        )


def _run(
    command: Sequence[str], environment: Mapping[str, str], given: str, limit: float, files: tuple[IO[bytes], IO[bytes]]
) -> int | None:
    """The exit status, None where the limit passed. The child and all it started are gone afterwards."""
    told, log = files
    child = subprocess.Popen(
        command, env=dict(environment), stdin=subprocess.PIPE, stdout=told, stderr=log, start_new_session=True
    )
    try:
        child.communicate(given.encode(), timeout=limit)
    except subprocess.TimeoutExpired:
        return None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    return child.returncode


def _kept(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(_LOG_LIMIT).decode("utf-8", "replace")


def _steps(text: str) -> Iterator[Mapping[str, object]]:
    for line in text.splitlines():
        with contextlib.suppress(ValueError):
            step = json.loads(line)
            if isinstance(step, dict):
                yield step


_GLOG = re.compile(r"(?P<level>[IWEF])\d{4} [\d:.]+ +\d+ (?P<place>[\w./-]+:\d+)\] (?P<words>.*)")
_DYING = re.compile(r"terminate called|\s*what\(\):|\w*(Error|Exception)\b.*: ")
"""How a process that dies says why: of C++ and of Python."""


def _error_lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        match = _GLOG.match(line)
        if match and match["level"] in "EF":
            yield _worded(match)
        elif not match and _DYING.match(line):
            yield _logged(line.strip())


def _warning_lines(text: str) -> Iterator[str]:
    matches = (_GLOG.match(line) for line in text.splitlines())
    return (_worded(match) for match in matches if match and match["level"] == "W")


def _worded(match: re.Match[str]) -> str:
    return _logged(f"{match['words']} ({match['place']})")


def _logged(line: str) -> str:
    """A line of the log, fit to be shown."""
    return shortened(escaped(masked_prose(line)), 200)


def _few(lines: Iterable[str]) -> tuple[str, ...]:
    """Each once, the first six: what follows an error is mostly its echo."""
    return tuple(dict.fromkeys(lines))[:6]
