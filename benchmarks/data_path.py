"""A rollout's way through the store, beside Mooncake's own client and Ray: one process puts it, another gets it.

``python -m benchmarks.data_path PAGE`` writes what it measured into that page, between the two comments that say so.
"""

from __future__ import annotations

import multiprocessing
import random
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import StringIO
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.pairing import Ratio, paired
from benchmarks.rollouts import array_bytes, rollout_of, with_lists
from mooncake_config.resolve import Resolution, resolve_store_config
from mooncake_config.store import ROLLOUT_VALUE_SPEC, open_object_store
from mooncake_config.store.batching import MESSAGE
from mooncake_config.store.master import start_mooncake_master
from mooncake_config.store.ray import private_ray
from mooncake_config.topology import Topology

ROUNDS = {16: 60, 64: 40, 256: 64}
"""Rounds for each size in MB: as many as a few minutes hold, since puts of the same value differ by a tenth."""

LIST_ROUNDS = 48
WARM_UPS = 2
CYCLES = 1000
REACH = 0.97
"""The part of the raw client's speed that ours has to have at least."""

OURS, SPECIFIED, RAW, RAY = "mooncake_config", "mooncake_config, value_spec", "MooncakeBundleTransfer", "Ray"
UNKNOWN = "mooncake_config, other names"
"""Fields of which the store does not know what they usually hold: without a spec, and without the default one."""

STEPS = ("put", "get")
MARKS = re.compile(r"(<!-- measured -->\n(?:<!-- .* -->\n)?```text\n).*?(```\n<!-- end -->)", re.DOTALL)


class Cost(NamedTuple):
    """What a step took: seconds of the clock, and of the processors as far as the calling process used them.

    ``sent`` is what of the clock went by while the native client sent large pieces.
    """

    wall: float
    cpu: float
    sent: float

    def since(self, began: Cost) -> Cost:
        """What was taken since then."""
        return Cost(*(now - then for now, then in zip(self, began, strict=True)))


Costs = Mapping[str, Sequence[tuple[Cost, Cost]]]
"""What each peer's put and get cost, round by round."""


def main() -> None:
    """Prints what each peer takes for each size, whether ours is fast enough, and the memory over 1,000 cycles."""
    for part in measured():
        print(part)


def measured() -> Iterator[str]:
    """The tables, one by one as they are done."""
    answers = Table("", "put", "put, sending alike", "get", box=box.SIMPLE_HEAD)
    answers.title, answers.title_justify = "is the true median of raw / ours 0.97 or more?", "left"
    with start_mooncake_master() as master, private_ray(object_store_memory=2 << 30):
        for megabytes, rounds in ROUNDS.items():
            costs = _costs(master.address, megabytes, rounds, (OURS, SPECIFIED, RAW, RAY), rollout_of)
            yield _shown(
                _table(f"a rollout of {_size(megabytes) / 1e6:.0f} MB of arrays", costs, RAW, _size(megabytes))
            )
            for name in (OURS, SPECIFIED):
                put, get = (_wall_ratio(costs, RAW, name, step) for step in range(2))
                ratios = (put, _ratio_of_the_rest(costs, RAW, name), get)
                answers.add_row(
                    name.replace(OURS, f"{megabytes} MB"), *(f"{ratio.verdict(REACH)}: {ratio}" for ratio in ratios)
                )
        small = min(ROUNDS)
        costs = _costs(master.address, small, LIST_ROUNDS, (OURS, SPECIFIED, UNKNOWN, RAW), _lists)
        title = (
            f"the rollout of {_size(small) / 1e6:.0f} MB as lists of Python's numbers, beside fields without any spec"
        )
        yield _shown(_table(title, costs, UNKNOWN, _size(small)))
        yield _shown(answers)
        yield _shown(_memory(_resolution(master.address, "trainer")))


def write(page: Path) -> None:
    """Measures, and puts the tables into a page."""
    tables = "\n".join(part for part in measured())
    text, count = MARKS.subn(lambda match: f"{match[1]}{tables}{match[2]}", page.read_text("utf-8"))
    if count != 1:
        raise SystemExit(f"{page}: {count} places between <!-- measured --> and <!-- end --> in it")
    page.write_text(text, "utf-8")


def _resolution(address: str, role: str) -> Resolution:
    """As in the reference: the rollout manager puts and has no segment, the trainer gets from its own."""
    return resolve_store_config(
        {
            "master_server_address": address,
            "protocol": "tcp",
            "local_hostname": "127.0.0.1",
            "global_segment_size": "1gb",
            "local_buffer_size": "1gb",
        },
        role=role,
        topology=Topology(num_nodes=1),
        environ={},
    )


def _lists(megabytes: int) -> dict[str, Any]:
    return with_lists(rollout_of(megabytes))


def _size(megabytes: int) -> int:
    return array_bytes(rollout_of(megabytes))


class _Side:
    """The stores as one process sees them."""

    def __init__(self, resolution: Resolution) -> None:
        import ray
        from mooncake.structured_object_store import MooncakeBundleTransfer

        self._store = open_object_store("mooncake", resolution, native_log="quiet")
        engine, native = self._store._engine, self._store._native
        self._sending = self._store._native = _Sending(native)
        self._config, self._schema = engine.config, engine.schema
        self._export, self._import = engine.export_ref, engine.import_ref
        self._raw = MooncakeBundleTransfer(self._sending, buffer_pool=engine.pool(native))
        self._ray = ray

    def put(self, name: str, value: dict[str, Any]) -> tuple[Cost, Any]:
        """What it cost, and the ref."""
        given = {f"{field}_": rows for field, rows in value.items()} if name == UNKNOWN else value
        puts = {SPECIFIED: self._put_specified, RAW: self._put_raw, RAY: self._put_ray}
        put: Callable[[dict[str, Any]], Any] = puts.get(name) or self._store.put
        began = self._now()
        ref = put(given)
        return self._now().since(began), ref

    def _now(self) -> Cost:
        return Cost(time.perf_counter(), time.process_time(), self._sending.seconds)

    def _put_specified(self, value: dict[str, Any]) -> Any:
        return self._store.put(value, ROLLOUT_VALUE_SPEC)

    def _put_raw(self, value: dict[str, Any]) -> Any:
        config = self._config()
        config.with_hard_pin = True
        schemas = {
            name: self._schema(
                spec.codec,
                metadata={"section": "non_tensor_batch", **({"dtype": spec.dtype} if spec.dtype else {})},
            )
            for name, spec in ROLLOUT_VALUE_SPEC.items()
        }
        return self._export(self._raw.put(value, type="dict", config=config, field_schemas=schemas))

    def _put_ray(self, value: dict[str, Any]) -> Any:
        return [self._ray.put(value)]

    def get(self, name: str, ref: Any) -> Cost:
        """What it cost. Every row is there at its end; what was got is let go afterwards."""
        began = self._now()
        if name == RAY:
            self._ray.get(ref[0])
            return self._now().since(began)
        if name == RAW:
            got = self._raw.get(self._import(ref), type="dict")
            cost = self._now().since(began)
            self._raw.release_result(got)
            return cost
        with self._store.get(ref):
            return self._now().since(began)

    def remove(self, name: str, ref: Any) -> None:
        """Frees the space."""
        if name != RAY:
            self._store.remove(ref)

    def close(self) -> None:
        """Leaves the store."""
        self._store.close()


class _Sending:
    """The native client, with the seconds in which it sent pieces that ours never gathers."""

    def __init__(self, native: Any) -> None:
        self._native = native
        self.seconds = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._native, name)

    def batch_put_from(self, keys: Sequence[str], ptrs: Sequence[int], sizes: Sequence[int], config: Any = None) -> Any:
        """Sends pieces of memory."""
        began = time.perf_counter()
        try:
            return self._native.batch_put_from(keys, ptrs, sizes, config=config)
        finally:
            self.seconds += time.perf_counter() - began if sum(sizes) > MESSAGE else 0


def _costs(
    address: str, megabytes: int, rounds: int, names: Sequence[str], make: Callable[[int], dict[str, Any]]
) -> Costs:
    """What put and get of each peer cost, in an order that is drawn anew for each round, after two that warm up.

    Drawn, and not in turn: what runs after Ray finds other caches than what runs after Mooncake.
    """
    import ray

    costs: dict[str, list[tuple[Cost, Cost]]] = {name: [] for name in names}
    producer: Any = ray.remote(num_cpus=0)(_Producer).remote(address, megabytes, make)
    side = _Side(_resolution(address, "trainer"))
    draw = random.Random(megabytes)
    try:
        for _ in range(WARM_UPS + rounds):
            for name in draw.sample(names, len(names)):
                put, ref = ray.get(producer.put.remote(name))
                costs[name].append((Cost(*put), side.get(name, ref)))
                side.remove(name, ref)
                del ref
    finally:
        side.close()
        ray.get(producer.close.remote())
        ray.kill(producer)
    return {name: pairs[WARM_UPS:] for name, pairs in costs.items()}


class _Producer:
    """The other process, an actor of Ray: it makes the rollout once and puts it again and again."""

    def __init__(self, address: str, megabytes: int, make: Callable[[int], dict[str, Any]]) -> None:
        self._value = make(megabytes)
        self._side = _Side(_resolution(address, "rollout-manager"))

    def put(self, name: str) -> tuple[Cost, Any]:
        """What it cost, and the ref."""
        return self._side.put(name, self._value)

    def close(self) -> None:
        """Leaves the store."""
        self._side.close()


def _table(title: str, costs: Costs, peer: str, size: int) -> Table:
    against = {RAW: "raw", UNKNOWN: "no spec"}[peer]
    table = Table("", "what", box=box.SIMPLE_HEAD, title=title, title_justify="left")
    for column in ("ms", "GB/s", f"{against} / this (95 %)", "CPU, ms", f"{against} / this (95 %)"):
        table.add_column(column, justify="right")
    for step, label in enumerate(STEPS):
        for name, pairs in costs.items():
            table.add_row(label, name, *_cells([pair[step] for pair in pairs], [p[step] for p in costs[peer]], size))
        table.add_section()
    return table


def _cells(own: Sequence[Cost], peer: Sequence[Cost], size: int) -> list[str]:
    wall, cpu = median(cost.wall for cost in own), median(cost.cpu for cost in own)
    same = own == peer
    ratios = [paired([cost[kind] for cost in peer], [cost[kind] for cost in own]) for kind in range(2)]
    told = ["1" if same else str(ratio) for ratio in ratios]
    return [f"{wall * 1e3:.1f}", f"{size / wall / 1e9:.2f}", told[0], f"{cpu * 1e3:.1f}", told[1]]


def _wall_ratio(costs: Costs, peer: str, own: str, step: int) -> Ratio:
    return paired([pair[step].wall for pair in costs[peer]], [pair[step].wall for pair in costs[own]])


def _ratio_of_the_rest(costs: Costs, peer: str, own: str) -> Ratio:
    """The ratio of two puts, each with the same time for sending the large pieces: the median of both.

    That is one call of the native client with the same pieces, most of a large put, and nearly all that differs from
    put to put; what is left is what the two do differently.
    """
    sending = median(put.sent for name in (peer, own) for put, _ in costs[name])
    rests = ([put.wall - put.sent + sending for put, _ in costs[name]] for name in (peer, own))
    return paired(*rests)


def _shown(table: Table) -> str:
    console = Console(file=StringIO(), highlight=False, width=118)
    console.print(table)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]  # the StringIO above
    return "\n".join(line.rstrip() for line in lines).strip("\n") + "\n"


# --- memory ---


def _memory(resolution: Resolution) -> Table:
    """The memory of a process of its own, before and after 1,000 times put, get and remove of 1 MB."""
    here, there = multiprocessing.get_context("spawn").Pipe()
    child = multiprocessing.get_context("spawn").Process(target=_cycle, args=(resolution, there))
    child.start()
    there.close()
    table = Table("cycles of put, get, remove", "RSS, MB", "more than at 100, MB", box=box.SIMPLE_HEAD)
    table.title, table.title_justify = "memory of 1 MB there and back", "left"
    first = 0
    for _ in range(3):
        cycles, resident = here.recv()
        first = first or resident
        table.add_row(str(cycles), f"{resident / 1e6:.1f}", f"{(resident - first) / 1e6:.1f}")
    child.join()
    return table


def _cycle(resolution: Resolution, tell: Connection) -> None:
    with open_object_store("mooncake", resolution, native_log="quiet", namespace="memory") as store:
        value = rollout_of(1)
        for cycle in range(CYCLES + 1):
            if cycle in {100, CYCLES // 2, CYCLES}:
                tell.send((cycle, _resident()))
            ref = store.put(value)
            with store.get(ref):
                pass
            store.remove(ref)


def _resident() -> int:
    """Bytes of memory that this process has, those of mapped buffers too where they were touched."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


if __name__ == "__main__":
    write(Path(sys.argv[1])) if sys.argv[1:] else main()
