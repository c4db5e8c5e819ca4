"""A rollout's way through the store, beside Mooncake's own client and Ray: one process puts it, another gets it."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from mooncake_config.demo import make_rollout
from mooncake_config.resolve import Resolution, resolve_store_config
from mooncake_config.store import ROLLOUT_VALUE_SPEC, open_object_store
from mooncake_config.store.master import start_mooncake_master
from mooncake_config.store.ray import private_ray
from mooncake_config.topology import Topology

MEGABYTES = (16, 64, 256)
ROUNDS = 12
WARM_UPS = 2
CYCLES = 1000
BYTES_PER_SAMPLE = 50_000
"""What a sample of ``make_rollout`` takes, on average."""

OURS, SPECIFIED, RAW, RAY = "mooncake_config", "mooncake_config, value_spec", "MooncakeBundleTransfer", "Ray"


def main() -> None:
    """Prints seconds, bytes per second and ratios to the raw client for each size, and the memory over 1,000 cycles."""
    with start_mooncake_master() as master, private_ray(object_store_memory=2 << 30):
        for megabytes in MEGABYTES:
            _print(megabytes, _measured(master.address, megabytes))
        _print_memory(_resolution(master.address, "trainer"))


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


def _rollout(megabytes: int) -> dict[str, Any]:
    return make_rollout(max(8, megabytes * 1_000_000 // BYTES_PER_SAMPLE))


class _Side:
    """The three stores as one process sees them."""

    def __init__(self, resolution: Resolution) -> None:
        import ray
        from mooncake.structured_object_store import MooncakeBundleTransfer

        self._store = open_object_store("mooncake", resolution, native_log="quiet")
        engine, native = self._store._engine, self._store._native
        self._config, self._schema = engine.config, engine.schema
        self._export, self._import = engine.export_ref, engine.import_ref
        self._raw = MooncakeBundleTransfer(native, buffer_pool=engine.pool(native))
        self._ray = ray

    def put(self, name: str, value: dict[str, Any]) -> tuple[float, Any]:
        """Seconds, and the ref."""
        put = {OURS: self._put, SPECIFIED: self._put_specified, RAW: self._put_raw, RAY: self._put_ray}[name]
        began = time.perf_counter()
        ref = put(value)
        return time.perf_counter() - began, ref

    def _put(self, value: dict[str, Any]) -> Any:
        return self._store.put(value)

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

    def get(self, name: str, ref: Any) -> float:
        """Seconds. Every row is there at their end; what was got is let go afterwards."""
        began = time.perf_counter()
        if name == RAY:
            self._ray.get(ref[0])
            return time.perf_counter() - began
        if name == RAW:
            got = self._raw.get(self._import(ref), type="dict")
            seconds = time.perf_counter() - began
            self._raw.release_result(got)
            return seconds
        with self._store.get(ref):
            return time.perf_counter() - began

    def remove(self, name: str, ref: Any) -> None:
        """Frees the space."""
        if name != RAY:
            self._store.remove(ref)

    def close(self) -> None:
        """Leaves the store."""
        self._store.close()


def _measured(address: str, megabytes: int) -> Mapping[str, list[tuple[float, float]]]:
    """Seconds of put and get of each peer, in turn, after two rounds that warm up."""
    import ray

    times: dict[str, list[tuple[float, float]]] = {name: [] for name in (OURS, SPECIFIED, RAW, RAY)}
    producer: Any = ray.remote(num_cpus=0)(_Producer).remote(address, megabytes)
    side = _Side(_resolution(address, "trainer"))
    try:
        for turn in range(WARM_UPS + ROUNDS):
            # Each begins as often as any other: who comes after Ray finds other caches than who comes after Mooncake.
            for name in [*times][turn % len(times) :] + [*times][: turn % len(times)]:
                seconds, ref = ray.get(producer.put.remote(name))
                times[name].append((seconds, side.get(name, ref)))
                side.remove(name, ref)
                del ref
    finally:
        side.close()
        ray.get(producer.close.remote())
        ray.kill(producer)
    return {name: pairs[WARM_UPS:] for name, pairs in times.items()}


class _Producer:
    """The other process, an actor of Ray: it makes the rollout once and puts it again and again."""

    def __init__(self, address: str, megabytes: int) -> None:
        self._value = _rollout(megabytes)
        self._side = _Side(_resolution(address, "rollout-manager"))

    def put(self, name: str) -> tuple[float, Any]:
        """Seconds, and the ref."""
        return self._side.put(name, self._value)

    def close(self) -> None:
        """Leaves the store."""
        self._side.close()


def _print(megabytes: int, times: Mapping[str, list[tuple[float, float]]]) -> None:
    rollout = _rollout(megabytes)
    size = sum(array.nbytes for name in ("tokens", "loss_masks", "rollout_log_probs") for array in rollout[name])
    table = Table(
        "what", box=box.SIMPLE_HEAD, title=f"a rollout of {size / 1e6:.0f} MB of arrays", title_justify="left"
    )
    for step in ("put", "get"):
        for column in (f"{step}, ms", "GB/s", "raw / this"):
            table.add_column(column, justify="right")
    for name, pairs in times.items():
        table.add_row(name, *(cell for step in (0, 1) for cell in _cells(pairs, times[RAW], step, size)))
    Console(highlight=False, width=110).print(table)


def _cells(
    pairs: list[tuple[float, float]], peer: list[tuple[float, float]], step: int, size: int
) -> tuple[str, str, str]:
    seconds = median(pair[step] for pair in pairs)
    ratio = median(other[step] / pair[step] for pair, other in zip(pairs, peer, strict=True))
    return f"{seconds * 1e3:.1f}", f"{size / seconds / 1e9:.2f}", f"{ratio:.2f}"


# --- memory ---


def _print_memory(resolution: Resolution) -> None:
    """The memory of a process of its own, before and after 1,000 times put, get and remove of 1 MB."""
    here, there = multiprocessing.get_context("spawn").Pipe()
    child = multiprocessing.get_context("spawn").Process(target=_cycle, args=(resolution, there))
    child.start()
    table = Table(
        "cycles of put, get, remove",
        "RSS, MB",
        box=box.SIMPLE_HEAD,
        title="memory of 1 MB there and back",
        title_justify="left",
    )
    for _ in range(3):
        cycles, resident = here.recv()
        table.add_row(str(cycles), f"{resident / 1e6:.1f}")
    child.join()
    Console(highlight=False, width=110).print(table)


def _cycle(resolution: Resolution, tell: Connection) -> None:
    with open_object_store("mooncake", resolution, native_log="quiet", namespace="memory") as store:
        value = make_rollout(20)
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
