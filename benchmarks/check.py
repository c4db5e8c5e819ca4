"""How long `check` takes on this machine: with a real master, and with endpoints that refuse."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from benchmarks.report import measure, print_figures
from mooncake_config.check import check_process
from mooncake_config.process import Backend
from mooncake_config.resolve import resolve_process
from mooncake_config.sources import Environment
from mooncake_config.store.master import start_mooncake_master
from mooncake_config.topology import Topology

ROUNDS = 9
SMALL = {"protocol": "tcp", "global_segment_size": "64mb", "local_buffer_size": "64mb"}
TOPOLOGY = Topology(num_nodes=1, local_rank=0, processes_per_node=1, node_ip="127.0.0.1")


def main() -> None:
    """Prints the table. Aim: under a second when all is well."""
    with start_mooncake_master() as master:
        runs = {
            "all is well": _check({**SMALL, "master_server_address": master.address}),
            "master refuses": _check({**SMALL, "master_server_address": "127.0.0.1:1"}),
        }
        print_figures("check, one host", measure(runs, ROUNDS), "ms", "all is well")


def _check(kwargs: Mapping[str, object]) -> Callable[[], float]:
    process, _ = resolve_process(
        kwargs,
        backend=Backend.MOONCAKE,
        role="trainer",
        replica_num=1,
        topology=TOPOLOGY,
        environment=Environment({}),
    )

    def run() -> float:
        began = time.perf_counter()
        check_process(process)
        return (time.perf_counter() - began) * 1e3

    return run
