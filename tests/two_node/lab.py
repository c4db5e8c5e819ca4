"""Two hosts on which a page is followed: its commands run as they stand, and are told with what they print."""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hosts import Host

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "two_node"
PLACEHOLDERS = {
    "<head-data-network-ip>": "10.77.0.1",
    "<worker-data-network-ip>": "10.77.0.2",
    "<path-to-this-folder>": str(EXAMPLE),
    "docs/examples/two_node/train.py": str(EXAMPLE / "train.py"),
}
"""What a reader writes instead of what the page has."""

_MASTER = "http://127.0.0.1:50052"
SECONDS = 120
"""The most that one script of the page may take."""

_PIECE = re.compile(
    r"^#{2,3} (?P<heading>[^\n]+)$"
    r"|^<!-- not run: make two-node, on (?P<place>[\w ]+) -->\n```bash\n(?P<script>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_PUTS = re.compile(r"^master_(?:put_end_requests|batch_put_end_items)_total (\d+)$", re.MULTILINE)
_CHATTER = re.compile(r"\[?\d{4}-\d\d-\d\d |.*\(\w+ pid=|Running entrypoint")
"""Lines that Ray adds to those of the program it runs."""


@dataclass(frozen=True)
class Piece:
    """A script of a page: below which heading it stands, where it is to be run, and what it says."""

    heading: str
    place: str
    script: str


def pieces(page: str) -> Iterator[Piece]:
    """The scripts of a page, in order, with the placeholders filled in."""
    heading = ""
    for match in _PIECE.finditer(page):
        heading = match["heading"] or heading
        if match["script"]:
            script = match["script"].rstrip()
            for placeholder, value in PLACEHOLDERS.items():
                script = script.replace(placeholder, value)
            yield Piece(heading, match["place"], script)


PIECES = tuple(pieces((EXAMPLE / "README.md").read_text("utf-8")))


def step(number: int) -> list[Piece]:
    """The scripts of a step of the page."""
    return [piece for piece in PIECES if piece.heading.startswith(f"{number}. ")]


def tell(text: str = "") -> None:
    """Says what goes on: seen with ``pytest -s``, as in ``make two-node``."""
    print(text, flush=True)


def headline(text: str) -> None:
    """Says what comes next."""
    tell(f"\n{text}\n{'─' * len(text)}")


@dataclass(frozen=True)
class Outcome:
    """What a job printed: with how many updates each rollout was made, the losses, and the digest of it all."""

    made_with: list[int]
    losses: list[float]
    digest: str


def outcome(printed: str) -> Outcome:
    """Reads the output of the example."""
    rollouts = re.findall(r"^rollout \d+: made with weights (\d+), loss ([\d.]+)$", printed, re.MULTILINE)
    (digest,) = re.findall(r"^digest ([0-9a-f]{64})$", printed, re.MULTILINE)
    return Outcome([int(made) for made, _ in rollouts], [float(loss) for _, loss in rollouts], digest)


@dataclass
class Shell:
    """A shell on a host: what one script exports the next one has."""

    host: Host
    folder: Path

    def run(self, script: str) -> str:
        """Runs a script that must succeed. Returns what it printed, without what Ray adds."""
        status, printed = self.attempt(script)
        assert status == 0, f"status {status} on {self.host.name}:\n{script}\n{printed}"
        return printed

    def attempt(self, script: str) -> tuple[int, str]:
        """Runs a script, and tells it and what it prints. Returns its status and what it printed."""
        tell(f"{self.host.name}$ " + script.replace("\n", "\n" + " " * (len(self.host.name) + 2)))
        began = time.monotonic()
        status, printed = self.ask(script)
        for line in printed.splitlines():
            tell(f"    {line}")
        seconds = time.monotonic() - began
        tell(f"    ({seconds:.1f} s{f', status {status}' if status else ''})\n" if status or seconds > 0.5 else "")
        return status, printed

    def ask(self, script: str) -> tuple[int, str]:
        """Runs a script without a word about it."""
        exports = shlex.quote(str(self.folder / "exports"))
        before = f"[ ! -e {exports} ] || . {exports}\ntrap 'export -p >{exports}' EXIT\nset -e\n"
        done = self.host.run("bash", "-c", before + script, folder=self.folder, seconds=SECONDS)
        lines = (line.rstrip() for line in done.stdout.splitlines())
        return done.returncode, "".join(f"{line}\n" for line in lines if not _CHATTER.match(line)).strip("\n")

    def fetch(self, url: str) -> str:
        """The body of an answer over HTTP, empty where nobody answers."""
        fetch = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=2).read().decode())"
        done = self.host.run("python", "-c", fetch, url)
        return done.stdout.strip() if done.returncode == 0 else ""


@dataclass
class Lab:
    """The head and the worker of the page. ``shell`` is what the worker's shell ran before Ray started there."""

    head: Shell
    worker: Shell
    shell: str = ""

    def follow(self, number: int) -> list[str]:
        """Follows a step of the page. Returns what each of its scripts printed."""
        headline(step(number)[0].heading)
        shells = {"the head": self.head, "the worker": self.worker}
        return [shells[piece.place].run(piece.script) for piece in step(number)]

    def worker_joins(self, shell: str = "") -> None:
        """Ray has been started on the worker from a shell in which this ran first. Where it was so, nothing is done."""
        if shell == self.shell:
            return
        before, (join,) = self._alive(), step(3)
        self.worker.run(f"(\n{shell}\n{join.script}\n)")
        self.shell = shell
        _until(lambda: len(self._alive()) == 2 and self._alive() != before)

    def start_master(self) -> None:
        """Starts the master as step 2 of the page does."""
        self.head.run(step(2)[0].script.partition("\n")[0])
        self.wait_for_master()

    def wait_for_master(self) -> None:
        """Until the master serves."""
        _until(lambda: '"service_ready":true' in self.head.fetch(f"{_MASTER}/health"))

    def wait_for_nodes(self) -> None:
        """Until Ray counts two nodes as alive."""
        _until(lambda: len(self._alive()) == 2)

    def keys(self) -> str:
        """The keys of what is in the Store."""
        return self.head.fetch(f"{_MASTER}/get_all_keys")

    def objects_stored(self) -> int:
        """How many puts the master has seen."""
        return sum(map(int, _PUTS.findall(self.head.fetch(f"{_MASTER}/metrics"))))

    def _alive(self) -> set[str]:
        answer = self.head.fetch("http://127.0.0.1:8265/api/v0/nodes")
        listed = json.loads(answer)["data"]["result"]["result"] if answer else []
        return {node["node_id"] for node in listed if node["state"] == "ALIVE"}


def _until(holds: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.2)
