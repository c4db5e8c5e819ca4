"""A warm resolve_store_config(), ledger and rules included, beside bare pydantic-settings and Mooncake's own config."""

from __future__ import annotations

import os
import timeit
from collections.abc import Callable

from pydantic_settings import BaseSettings, SettingsConfigDict

from benchmarks.report import measure, print_figures
from mooncake_config import Topology, resolve_store_config

CALLS = 300
ROUNDS = 15
KWARGS = '{"protocol": "tcp", "global_segment_size": "2gb", "local_buffer_size": "2gb"}'
TOPOLOGY = Topology(num_nodes=2, local_rank=0, processes_per_node=8, node_ip="10.0.0.7")
BARE = "bare pydantic-settings"


class BareSettings(BaseSettings):
    """The same eight fields, with nothing of what this library adds: texts from variables, and defaults."""

    model_config = SettingsConfigDict(env_prefix="MOONCAKE_")

    master: str
    local_hostname: str = "10.0.0.7"
    te_meta_data_server: str = "P2PHANDSHAKE"
    protocol: str = "rdma"
    device: str = ""
    global_segment_size: str = "8gb"
    local_buffer_size: str = "32gb"
    chunk_bytes: int | None = None


def main() -> None:
    """Prints the table. Aim: 0.3 of bare pydantic-settings or less."""
    os.environ["MOONCAKE_MASTER"] = "10.0.0.5:50051"
    runs = {
        "resolve_store_config": _microseconds(lambda: resolve_store_config(KWARGS, topology=TOPOLOGY)),
        BARE: _microseconds(BareSettings),
        **_mooncake(),
    }
    for run in runs.values():
        run()
    print_figures("resolution, warm, one call", measure(runs, ROUNDS), "µs", BARE)


def _mooncake() -> dict[str, Callable[[], float]]:
    """Mooncake's own reader of the environment, which knows neither claims nor rules; nothing where it is missing."""
    try:
        from mooncake.mooncake_config import MooncakeConfig
    except ImportError:
        return {}
    return {"MooncakeConfig.load_from_env": _microseconds(MooncakeConfig.load_from_env)}


def _microseconds(call: Callable[[], object]) -> Callable[[], float]:
    return lambda: timeit.timeit(call, number=CALLS) / CALLS * 1e6
