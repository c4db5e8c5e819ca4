"""From the reference's table to a working client: each field by its variable and by JSON, with a real master."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import Any

import pytest

from mooncake_config import Resolution, Topology, open_object_store, resolve_store_config, start_mooncake_master
from mooncake_config.settings import FIELDS
from mooncake_config.store.master import MooncakeMaster

pytestmark = pytest.mark.mooncake

ONE_NODE = Topology(num_nodes=1, local_rank=0, processes_per_node=1, node_ip="127.0.0.1")
SMALL = {"protocol": "tcp", "global_segment_size": "64mb", "local_buffer_size": "64mb"}
ROLLOUT = {"tokens": [[1, 2, 3], [4]], "rewards": [0.5, 1.0], "prompt": ["a", "b"], "metadata": [{"k": 1}, {}]}

# What somebody writes for each field, and what setup gets for it.
WRITTEN = {
    "local_hostname": ("127.0.0.2", "127.0.0.2"),
    "metadata_server": ("P2PHANDSHAKE", "P2PHANDSHAKE"),
    "protocol": ("TCP", "tcp"),
    "device_name": ("mlx5_0", "mlx5_0"),
    "global_segment_size": ("48mb", 48 << 20),
    "local_buffer_size": ("80 MiB", 80 << 20),
    "chunk_bytes": ("1mb", 1 << 20),
}


@pytest.fixture(scope="module")
def master() -> Iterator[MooncakeMaster]:
    """A real master on loopback."""
    with start_mooncake_master(flags=["--enable_http_metadata_server=false"]) as running:
        yield running


def resolve(kwargs: dict[str, Any], variables: dict[str, str]) -> Resolution:
    """A resolution of one trainer on one node."""
    return resolve_store_config(json.dumps(kwargs), topology=ONE_NODE, environ=variables)


def moves_a_rollout(resolution: Resolution) -> bool:
    """Whether a client that is set up so gets back what it put."""
    with open_object_store("mooncake", resolution) as store:
        ref = store.put(ROLLOUT)
        with store.get(ref) as received:
            same = dict(received) == ROLLOUT
        store.remove(ref)
    return same


def setup_name(field: str) -> str | None:
    """Mooncake's own name of a field."""
    return next(spec.wiring.engine for spec in FIELDS if spec.name == field)


@pytest.mark.parametrize("field", WRITTEN)
def test_field_from_json(field: str, master: MooncakeMaster) -> None:
    """What the JSON says of a field reaches setup, and the client works."""
    text, expected = WRITTEN[field]
    resolution = resolve({**SMALL, "master_server_address": master.address, field: text}, {})
    name = setup_name(field)
    assert (resolution.setup_kwargs()[name] if name else resolution.settings.chunk_bytes) == expected
    assert resolution.origin(field).source.value == "cli"
    assert moves_a_rollout(resolution)


@pytest.mark.parametrize("field", [field for field in WRITTEN if field != "chunk_bytes"])
def test_field_from_its_variable(field: str, master: MooncakeMaster) -> None:
    """What its variable says of a field reaches setup, and the client works."""
    text, expected = WRITTEN[field]
    spec = next(spec for spec in FIELDS if spec.name == field)
    kwargs = {name: value for name, value in SMALL.items() if name != field}
    variables = {"MOONCAKE_MASTER": master.address, str(spec.wiring.variable): text}
    resolution = resolve(kwargs, variables)
    assert resolution.setup_kwargs()[str(spec.wiring.engine)] == expected
    assert resolution.origin(field).spot == spec.wiring.variable
    assert moves_a_rollout(resolution)


def test_master_from_either_source(master: MooncakeMaster) -> None:
    """The master's address works from the variable and from JSON, and the JSON wins over a dead variable."""
    assert moves_a_rollout(resolve(SMALL, {"MOONCAKE_MASTER": master.address}))
    kwargs = {**SMALL, "master_server_address": master.address}
    assert moves_a_rollout(resolve(kwargs, {"MOONCAKE_MASTER": "127.0.0.1:1"}))


def get_and_answer(ref: Any, address: str, answer: Connection) -> None:
    """What another process does: resolves as a driver, gets, and answers with what it got."""
    kwargs = {**SMALL, "master_server_address": address}
    resolution = resolve_store_config(kwargs, role="driver", topology=ONE_NODE, environ={})
    with open_object_store("mooncake", resolution) as store, store.get(ref) as received:
        answer.send(dict(received))


def test_put_here_and_get_in_another_process(master: MooncakeMaster) -> None:
    """A rollout put in one process is got in another that contributes no segment."""
    with open_object_store("mooncake", resolve(SMALL, {"MOONCAKE_MASTER": master.address})) as store:
        ref = store.put(ROLLOUT)
        here, there = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        other = context.Process(target=get_and_answer, args=(ref, master.address, there))
        other.start()
        assert here.poll(60)
        assert here.recv() == ROLLOUT
        other.join(60)
        assert other.exitcode == 0
        store.remove(ref)
