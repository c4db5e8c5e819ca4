"""From start to a clear error: this library beside the raw client, for the ten worst misconfigurations.

Both run in a process of their own, with the same settings and a real master on loopback where one is needed. The raw
client is stopped after ``LIMIT`` seconds.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.table import Table

from mooncake_config.store.master import start_mooncake_master

LIMIT = 100.0
"""Seconds after which the raw client is ended: beyond the 90 that it needs to give up on a master."""

RAW = """
import json, sys
from mooncake.store import MooncakeDistributedStore
print(MooncakeDistributedStore().setup(json.loads(sys.argv[1])))
"""

GOOD = {
    "local_hostname": "127.0.0.1",
    "metadata_server": "P2PHANDSHAKE",
    "global_segment_size": 64 << 20,
    "local_buffer_size": 64 << 20,
    "protocol": "tcp",
}
OURS = {"rdma_devices": "device_name", "master_server_addr": "master_server_address"}


@dataclass(frozen=True)
class Mistake:
    """One misconfiguration: what is wrong in Mooncake's own words, and the command of ours that names it."""

    name: str
    wrong: Mapping[str, object]
    command: str = "explain"


MISTAKES = (
    Mistake("master is empty", {"master_server_addr": ""}),
    Mistake("master does not answer", {"master_server_addr": "127.0.0.1:1"}, "check"),
    Mistake("master name is unknown", {"master_server_addr": "master.invalid:50051"}, "check"),
    Mistake("master has no port", {"master_server_addr": "127.0.0.1"}),
    Mistake("metadata scheme is unknown", {"metadata_server": "bogus://127.0.0.1:1"}),
    Mistake("metadata is p2phandshake", {"metadata_server": "p2phandshake"}),
    Mistake("protocol is misspelt", {"protocol": "rmda"}),
    Mistake("RDMA device does not exist", {"protocol": "rdma", "rdma_devices": "mlx5_99"}, "check"),
    Mistake("RDMA without any device", {"protocol": "rdma"}, "check"),
    Mistake("segment of 1 MiB", {"global_segment_size": 1 << 20}),
)


def main() -> None:
    """Prints the table."""
    table = Table("mistake", "raw client", "after", "this library", "after", "ratio", box=box.SIMPLE_HEAD)
    with start_mooncake_master() as master:
        for mistake in MISTAKES:
            settings = {**GOOD, "master_server_addr": master.address, **mistake.wrong}
            raw, raw_seconds = _raw(settings)
            said, seconds = _ours(mistake.command, settings)
            figures = (f"{raw_seconds:.1f} s", said, f"{seconds:.1f} s", f"{raw_seconds / seconds:.1f}")
            table.add_row(mistake.name, raw, *figures)
    Console(highlight=False).print(table)


def _raw(settings: Mapping[str, object]) -> tuple[str, float]:
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", RAW, json.dumps(settings)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        out, _ = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return "no end", time.perf_counter() - began
    seconds = time.perf_counter() - began
    if process.returncode < 0:
        return signal.Signals(-process.returncode).name, seconds
    return f"setup returns {out.strip()}", seconds


def _ours(command: str, settings: Mapping[str, object]) -> tuple[str, float]:
    kwargs = {OURS.get(name, name): value for name, value in settings.items()}
    words = [command, "--num-nodes", "1", "--node-ip", "127.0.0.1", "--processes-per-node", "1", "--format", "json"]
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "mooncake_config", *words, "--mooncake-store-init-kwargs", json.dumps(kwargs)],
        capture_output=True,
        text=True,
        env=dict(os.environ),
        check=False,
    )
    seconds = time.perf_counter() - began
    worst = json.loads(done.stdout)["findings"][0]
    return f"{worst['code']} {worst['severity']} {worst['rule']}", seconds
