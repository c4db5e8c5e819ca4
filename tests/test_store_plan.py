"""plan against a real store: as many rollouts as it says fit, and stay."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from mooncake_config.host import Host
from mooncake_config.plan import Load
from mooncake_config.resolve import resolve_store_config
from mooncake_config.sizing import plan_process
from mooncake_config.store import open_object_store
from mooncake_config.store.errors import StoreFullError
from mooncake_config.store.master import start_mooncake_master
from mooncake_config.store.mooncake import MooncakeObjectStore, MooncakeRef
from mooncake_config.topology import Topology

pytestmark = pytest.mark.mooncake

MIB = 1 << 20


def rollout(number: int) -> dict[str, Any]:
    """Eight samples of 1 MiB: int32 tokens in two fields."""
    tokens = np.full(MIB // 8, number, np.int32)
    return {"tokens": [tokens] * 8, "loss_masks": [np.ones_like(tokens)] * 8}


def put_until_full(store: MooncakeObjectStore, limit: int) -> Iterator[MooncakeRef]:
    """Puts rollouts until the store is full, and fails where it takes more than a limit."""
    for number in range(limit + 1):
        try:
            yield store.put(rollout(number))
        except StoreFullError:
            return
    pytest.fail(f"the store took {limit} more")


def test_planned_rollouts_fit_a_real_store() -> None:
    """As many rollouts as the plan says are put and stay readable; not much later the store is full."""
    with start_mooncake_master() as master:
        kwargs = {
            "master_server_address": master.address,
            "local_hostname": "127.0.0.1",
            "protocol": "tcp",
            "global_segment_size": 128 * MIB,
            "local_buffer_size": 64 * MIB,
        }
        shape = Topology(num_nodes=1, local_rank=0, processes_per_node=1)
        resolution = resolve_store_config(kwargs, topology=shape, environ={})
        size = sum(array.nbytes for field in rollout(0).values() for array in field)
        fit = plan_process(resolution.process, Load(size), Host("/copy")).plan.rollouts_that_fit
        assert (size, fit) == (8 * MIB, 14)
        with open_object_store("mooncake", resolution) as store:
            refs = [store.put(rollout(number)) for number in range(fit or 0)]
            for number, ref in enumerate(refs):
                with store.get(ref) as got:
                    assert all((array == number).all() for array in got["tokens"])
            beyond = list(put_until_full(store, 128 // 8))
            assert len(refs + beyond) <= 128 // 8
            for ref in refs + beyond:
                store.remove(ref)
