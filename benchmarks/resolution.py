"""A warm resolve_store_config(), ledger and rules included, beside bare pydantic-settings and Mooncake's own config."""

from __future__ import annotations

import json
import os
import timeit
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AliasChoices, Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from benchmarks.report import measure, print_figures
from mooncake_config import Topology, resolve_store_config

CALLS = 300
ROUNDS = 15
KWARGS = '{"protocol": "tcp", "global_segment_size": "2gb", "local_buffer_size": "2gb"}'
TOPOLOGY = Topology(num_nodes=2, local_rank=0, processes_per_node=8, node_ip="10.0.0.7")
BARE = "bare pydantic-settings"


def _read_from(variable: str, name: str) -> Any:
    return Field(validation_alias=AliasChoices(name, variable))


class BareSettings(BaseSettings):
    """The same eight fields from the same JSON and variables, with nothing of what this library adds to them."""

    model_config = SettingsConfigDict(populate_by_name=True)

    master_server_address: str = _read_from("MOONCAKE_MASTER", "master_server_address")
    local_hostname: Annotated[str, _read_from("MOONCAKE_LOCAL_HOSTNAME", "local_hostname")] = "10.0.0.7"
    metadata_server: Annotated[str, _read_from("MOONCAKE_TE_META_DATA_SERVER", "metadata_server")] = "P2PHANDSHAKE"
    protocol: Annotated[str, _read_from("MOONCAKE_PROTOCOL", "protocol")] = "rdma"
    device_name: Annotated[str, _read_from("MOONCAKE_DEVICE", "device_name")] = ""
    global_segment_size: Annotated[str, _read_from("MOONCAKE_GLOBAL_SEGMENT_SIZE", "global_segment_size")] = "8gb"
    local_buffer_size: Annotated[str, _read_from("MOONCAKE_LOCAL_BUFFER_SIZE", "local_buffer_size")] = "32gb"
    chunk_bytes: int | None = None


def main() -> None:
    """Prints the table. Aim: 0.3 of bare pydantic-settings or less."""
    os.environ["MOONCAKE_MASTER"] = "10.0.0.5:50051"
    runs = {
        "resolve_store_config": _microseconds(lambda: resolve_store_config(KWARGS, topology=TOPOLOGY)),
        BARE: _microseconds(lambda: BareSettings(**json.loads(KWARGS))),
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
