"""A soak: producers and consumers over one master, with faults, for minutes: ``python -m benchmarks.soak SECONDS``.

Producers put rollouts, no two of them alike; consumers get, compare and remove them. Meanwhile consumers are killed at
random, the master is restarted, and the store is filled. Every ref that a put returned has to end in a rollout that
came back whole, or in an error: a restarted master has forgotten all, so that one is expected.
"""

from __future__ import annotations

import json
import multiprocessing
import random
import sys
import time
import urllib.request
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any

from benchmarks.rollouts import rollout_of
from mooncake_config.demo import equal
from mooncake_config.findings import ConfigError
from mooncake_config.resolve import Resolution, resolve_store_config
from mooncake_config.store import open_object_store
from mooncake_config.store.errors import StoreError
from mooncake_config.store.master import MooncakeMaster, start_mooncake_master
from mooncake_config.store.mooncake import MooncakeObjectStore
from mooncake_config.topology import Topology

SECONDS = 300.0
PRODUCERS, CONSUMERS = 2, 2
KILL_EVERY, RESTART_EVERY, FILL_EVERY = 6.0, 25.0, 10.0
"""Seconds between two faults of a kind."""

WAITING = 6
"""Rollouts that may wait for a consumer; producers pause meanwhile."""

LAST_MINUTE = 60.0
"""Seconds that all may take to end."""

SPAWN = multiprocessing.get_context("spawn")
Job = tuple[int, Any]
"""The number of a rollout, and its ref."""


def main(words: list[str]) -> int:
    """Runs the soak and prints what happened. 1 where something was lost, left or unreleased, else 0."""
    seconds = float(words[0]) if words else SECONDS
    with start_mooncake_master() as master:
        soak = Soak(master)
        with open_object_store("mooncake", resolution(master.address, "trainer"), native_log="quiet"):
            soak.run(seconds)
            soak.finish()
            leaked = _keys(soak.master)
        soak.master.stop()
    return _verdict(soak.counts, leaked)


def resolution(address: str, role: str) -> Resolution:
    """A process of the soak, on loopback."""
    return resolve_store_config(
        {
            "master_server_address": address,
            "protocol": "tcp",
            "local_hostname": "127.0.0.1",
            "global_segment_size": "96mb",
            "local_buffer_size": "64mb",
        },
        role=role,
        topology=Topology(num_nodes=1),
        environ={},
    )


def rollout(number: int) -> dict[str, Any]:
    """The rollout of that number, of 1 to 4 MB."""
    return rollout_of(1 + number % 4, seed=number)


# --- what the processes do: a request, an answer ---


def produce(address: str, parent: Connection) -> None:
    """Puts a rollout, or fills the store, for each request; answers with a job and the errors met."""
    with _opened(address) as store:
        while (request := parent.recv()) is not None:
            errors: list[str] = []
            if request == "fill":
                parent.send((None, 0, _fill(store)))
                continue
            try:
                ref = store.put(rollout(request))
            except StoreError as error:
                errors.append(f"put {type(error).__name__}")
                parent.send((None, 0, errors))
            else:
                parent.send(((request, ref), ref.nbytes, errors))


def _opened(address: str) -> MooncakeObjectStore:
    """A store, opened at the latest when a master that is just being restarted is back."""
    deadline = time.monotonic() + LAST_MINUTE
    while True:
        try:
            return open_object_store("mooncake", resolution(address, "rollout-manager"), native_log="quiet")
        except ConfigError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(0.1)


def _fill(store: MooncakeObjectStore) -> list[str]:
    """Puts until the store refuses, and takes all of it back; the errors met."""
    kept: list[Any] = []
    errors: list[str] = []
    filling = rollout_of(8)
    while not errors and len(kept) < 100:
        try:
            kept.append(store.put(filling))
        except StoreError as error:
            errors.append(f"put {type(error).__name__}")
    for ref in kept:
        try:
            store.remove(ref)
        except StoreError as error:
            errors.append(f"remove {type(error).__name__}")
    return errors


def consume(address: str, parent: Connection) -> None:
    """Gets, compares and removes the rollout of each request; answers whether it was that one, and the errors met."""
    with _opened(address) as store:
        while (request := parent.recv()) is not None:
            number, ref = request
            same, errors = None, []
            try:
                with store.get(ref) as got:
                    same = equal(rollout(number), got)
            except StoreError as error:
                errors.append(f"get {type(error).__name__}")
            try:
                store.remove(ref)
            except StoreError as error:
                errors.append(f"remove {type(error).__name__}")
            parent.send((same, store.unreleased, errors))


# --- the parent ---


@dataclass(eq=False)
class Worker:
    """A process, the connection to it, and what it is busy with."""

    process: Any
    connection: Connection
    busy: Any = None


@dataclass
class Soak:
    """Starts and ends processes, hands jobs around, and counts."""

    master: MooncakeMaster
    counts: Counter[str] = field(default_factory=Counter)
    waiting: deque[Job] = field(default_factory=deque)
    number: int = 0

    def __post_init__(self) -> None:
        self.producers = [self._started(produce) for _ in range(PRODUCERS)]
        self.consumers = [self._started(consume) for _ in range(CONSUMERS)]

    def _started(self, work: Callable[[str, Connection], None]) -> Worker:
        here, there = SPAWN.Pipe()
        process = SPAWN.Process(target=work, args=(self.master.address, there), daemon=True)
        process.start()
        there.close()
        return Worker(process, here)

    def run(self, seconds: float) -> None:
        """Keeps everybody busy, with faults in between."""
        end = time.monotonic() + seconds
        faults = {self.kill: KILL_EVERY, self.restart: RESTART_EVERY, self.fill: FILL_EVERY}
        due = {fault: time.monotonic() + every for fault, every in faults.items()}
        while time.monotonic() < end:
            for worker in self.producers:
                if worker.busy is None and len(self.waiting) < WAITING:
                    self.number += 1
                    self._ask(worker, self.number)
            self._hand_out()
            self._listen()
            for fault in [fault for fault in due if time.monotonic() >= due[fault]]:
                fault()
                due[fault] = time.monotonic() + faults[fault]

    def finish(self) -> None:
        """Has every rollout that is left consumed, and everybody end by himself."""
        deadline = time.monotonic() + LAST_MINUTE
        while time.monotonic() < deadline and (self.waiting or any(w.busy for w in self._workers())):
            self._hand_out()
            self._listen()
        self.counts["lost"] += len(self.waiting) + sum(worker.busy is not None for worker in self._workers())
        for worker in self._workers():
            worker.connection.send(None)
        for worker in self._workers():
            worker.process.join(max(1.0, deadline - time.monotonic()))
            self.counts["ended badly"] += worker.process.exitcode != 0
            worker.process.kill()

    def kill(self) -> None:
        """A consumer, in the middle of what it does; another one takes its place and its rollout."""
        place = random.randrange(CONSUMERS)
        worker = self.consumers[place]
        worker.process.kill()
        worker.process.join()
        self.counts["fault: consumer killed"] += 1
        self._put_in_place_of(worker)

    def restart(self) -> None:
        """The master, on the same ports."""
        self.counts["fault: master restarted"] += 1
        rpc_port, metrics_port = self.master.rpc_port, self.master.metrics_port
        self.master.stop()
        self.master = start_mooncake_master(rpc_port=rpc_port, metrics_port=metrics_port, timeout=30)

    def fill(self) -> None:
        """The store, by a producer that has nothing else to do."""
        worker = next((worker for worker in self.producers if worker.busy is None), None)
        if worker is not None:
            self.counts["fault: store filled"] += 1
            self._ask(worker, "fill")

    def _workers(self) -> list[Worker]:
        return [*self.producers, *self.consumers]

    def _ask(self, worker: Worker, request: Any) -> None:
        worker.busy = request
        worker.connection.send(request)

    def _hand_out(self) -> None:
        for worker in self.consumers:
            if worker.busy is None and self.waiting:
                self._ask(worker, self.waiting.popleft())

    def _listen(self) -> None:
        ready = set(wait([worker.connection for worker in self._workers()], timeout=0.1))
        for worker in self._workers():
            if worker.connection in ready:
                try:
                    answer = worker.connection.recv()
                except (EOFError, OSError):
                    self._replace(worker)
                else:
                    self._hear(worker, answer)

    def _replace(self, worker: Worker) -> None:
        """A process that ended by itself is told, and another one takes its place and its rollout."""
        worker.process.join(10)
        self.counts["ended badly"] += 1
        self.counts[f"ended badly: exit code {worker.process.exitcode}"] += 1
        self._put_in_place_of(worker)

    def _put_in_place_of(self, worker: Worker) -> None:
        if worker in self.producers:
            self.producers[self.producers.index(worker)] = self._started(produce)
            return
        if worker.busy is not None:
            self.waiting.append(worker.busy)
        self.consumers[self.consumers.index(worker)] = self._started(consume)

    def _hear(self, worker: Worker, answer: tuple[Any, int, list[str]]) -> None:
        result, figure, errors = answer
        worker.busy = None
        self.counts.update(f"error: {error}" for error in errors)
        if worker in self.producers:
            if result is not None:
                self.waiting.append(result)
                self.counts.update({"operation: put": 1, "bytes": figure})
            return
        self.counts["unreleased"] += figure
        self.counts["lost"] += result is False or (result is None and not errors)
        if result:
            self.counts.update({"operation: get and remove": 1})


def _keys(master: MooncakeMaster) -> list[str]:
    with urllib.request.urlopen(f"http://127.0.0.1:{master.metrics_port}/get_all_keys", timeout=5) as answer:
        return str(answer.read().decode()).split()


def _verdict(counts: Counter[str], leaked: list[str]) -> int:
    musts = {
        "lost without an error": counts.pop("lost", 0),
        "leaked keys": len(leaked),
        "unreleased results": counts.pop("unreleased", 0),
        "processes that ended badly": counts.pop("ended badly", 0),
    }
    print(json.dumps({**dict(sorted(counts.items())), "must be 0": musts, "examples": leaked[:5]}, indent=2))
    return int(any(musts.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
