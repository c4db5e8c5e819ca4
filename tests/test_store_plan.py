"""plan against a real store: as many rollouts as it says fit, and stay."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from mooncake_config.host import Host
from mooncake_config.plan import Load, Sizes
from mooncake_config.resolve import resolve_store_config
from mooncake_config.sizing import plan_process
from mooncake_config.store import open_object_store
from mooncake_config.store.errors import StoreFullError
from mooncake_config.store.master import start_mooncake_master
from mooncake_config.store.mooncake import MooncakeObjectStore, MooncakeRef
from mooncake_config.topology import Topology

pytestmark = pytest.mark.mooncake

MIB, GIB = 1 << 20, 1 << 30


def rollout(number: int, size: int = 8 * MIB) -> dict[str, Any]:
    """Eight samples of two fields, so many bytes of int32 in all."""
    tokens = np.full(size // 64, number, np.int32)
    return {"tokens": [tokens] * 8, "loss_masks": [np.ones_like(tokens)] * 8}


def bytes_of(value: dict[str, Any]) -> int:
    """Bytes of all arrays of a rollout."""
    return sum(int(array.nbytes) for field in value.values() for array in field)


def put_until_full(store: MooncakeObjectStore, limit: int) -> Iterator[MooncakeRef]:
    """Puts rollouts until the store is full, and fails where it takes more than a limit."""
    for number in range(limit + 1):
        try:
            yield store.put(rollout(number))
        except StoreFullError:
            return
    pytest.fail(f"the store took {limit} more")


@pytest.mark.parametrize("replicas", [1, 3])
def test_planned_rollouts_fit_a_real_store(replicas: int) -> None:
    """As many rollouts as the plan says are put and stay readable; not much later the store is full.

    With one segment that is so too where more replicas are asked for: there is one copy of each.
    """
    with start_mooncake_master() as master:
        kwargs = {
            "master_server_address": master.address,
            "local_hostname": "127.0.0.1",
            "protocol": "tcp",
            "global_segment_size": 128 * MIB,
            "local_buffer_size": 64 * MIB,
        }
        shape = Topology(num_nodes=1, local_rank=0, processes_per_node=1)
        resolution = resolve_store_config(kwargs, topology=shape, replica_num=replicas, environ={})
        size = bytes_of(rollout(0))
        fit = plan_process(resolution.process, Load(size), Host("/copy")).plan.rollouts_that_fit
        assert (size, fit) == (8 * MIB, 14)
        with open_object_store("mooncake", resolution, on_missing_replicas="warn") as store:
            refs = [store.put(rollout(number)) for number in range(fit or 0)]
            for number, ref in enumerate(refs):
                with store.get(ref) as got:
                    assert all((array == number).all() for array in got["tokens"])
            beyond = list(put_until_full(store, 128 // 8))
            assert len(refs + beyond) <= 128 // 8
            for ref in refs + beyond:
                store.remove(ref)


def test_log_tells_the_size_of_a_rollout(caplog: pytest.LogCaptureFixture) -> None:
    """What a closed store logs of its puts is the size of the arrays, and less than a thousandth beside them."""
    kwargs = {"local_hostname": "127.0.0.1", "protocol": "tcp", "local_buffer_size": "64mb"}
    with start_mooncake_master() as master, caplog.at_level("INFO", "mooncake_config"):
        kwargs |= {"master_server_address": master.address, "global_segment_size": "64mb"}
        shape = Topology(num_nodes=1, local_rank=0, processes_per_node=1)
        with open_object_store("mooncake", resolve_store_config(kwargs, topology=shape, environ={})) as store:
            for ref in [store.put(rollout(number)) for number in range(3)]:
                store.remove(ref)
    (told,) = (json.loads(record.getMessage()) for record in caplog.records if "store closed" in record.getMessage())
    size = told["bytes"]["put"] / told["operations"]["put"]
    assert bytes_of(rollout(0)) <= size < bytes_of(rollout(0)) * 1.001


def test_proposed_sizes_hold_in_a_real_store() -> None:
    """Sizes that a plan proposes for a small node, buffers of two chunks, carry what it was asked for."""
    load = Load(160 * MIB, 2)
    kwargs = {"local_hostname": "127.0.0.1", "protocol": "tcp"}
    shape = Topology(num_nodes=1, local_rank=0, processes_per_node=1)
    with start_mooncake_master() as master:
        kwargs["master_server_address"] = master.address
        planned = plan_process(
            resolve_store_config(kwargs, topology=shape, environ={}).process, load, Host("/copy", memory_total=GIB)
        )
        assert planned.plan.proposal == Sizes(segment=384 * MIB, buffer=128 * MIB)
        sizes = {"global_segment_size": "384mb", "local_buffer_size": "128mb"}
        resolution = resolve_store_config({**kwargs, **sizes}, topology=shape, environ={})
        with open_object_store("mooncake", resolution) as store:
            sent = [rollout(number, 160 * MIB) for number in (1, 2)]
            assert [bytes_of(value) for value in sent] == [load.rollout_bytes] * 2
            refs = [store.put(value) for value in sent]
            for number, ref in enumerate(refs, 1):
                with store.get(ref) as got:
                    assert bytes_of(got) == load.rollout_bytes
                    assert all((array == number).all() for array in got["tokens"])
                store.remove(ref)
