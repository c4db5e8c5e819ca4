"""A survey: real raylets of this machine, and the comparison and the page of recorded answers of many more nodes.

python -m benchmarks.cluster [RAYLETS …]      how many raylets (default: 2 8)
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from io import StringIO
from itertools import pairwise
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from mooncake_config.answering import Question, reply
from mooncake_config.cluster import Seat, Survey, member_of, own_software, seat_names
from mooncake_config.job import Job
from mooncake_config.members import PACKAGE, Cluster
from mooncake_config.process import Backend
from mooncake_config.reach import Contact, Meeting, Post, chosen_pairs
from mooncake_config.report.cluster import cluster_document, print_survey
from mooncake_config.rules import examine_cluster
from mooncake_config.topology import Role, Topology

RAYLETS = (2, 8)
NODES = (100, 1_000, 10_000)
KWARGS = {
    "master_server_address": "127.0.0.1:1",
    "protocol": "tcp",
    "local_buffer_size": "64mb",
    "global_segment_size": "64mb",
}
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}


def main(raylets: Sequence[int] = RAYLETS) -> None:
    """Prints two tables: real raylets in wall seconds, recorded answers in processor seconds. Aim: linear in nodes."""
    table = Table(
        "raylets", "up", "survey", "asked", title="survey, real Ray", title_justify="left", box=box.SIMPLE_HEAD
    )
    for number in raylets:
        table.add_row(str(number), *_real(number))
    Console(highlight=False).print(table)
    title = "recorded answers: read, compare, print"
    columns = ("nodes", "read", "compare", "page", "lines", "JSON", "JSON size", "a node", "memory")
    recorded = Table(*columns, title=title, title_justify="left", box=box.SIMPLE_HEAD)
    answer = _recorded()
    for number in NODES:
        recorded.add_row(f"{number:,}", *_compared(number, answer))
    Console(highlight=False, width=120).print(recorded)


def _real(number: int) -> tuple[str, str, str]:
    """Seconds until so many raylets are up, seconds of a survey as a command, and how many nodes answered."""
    os.environ.update(QUIET)
    from ray.cluster_utils import Cluster as Raylets

    args = {"num_cpus": 1, "num_gpus": 0, "object_store_memory": 80 << 20}
    began = time.perf_counter()
    cluster = Raylets(initialize_head=True, head_node_args={**args, "include_dashboard": False})
    try:
        for _ in range(number - 1):
            cluster.add_node(wait=False, **args)
        cluster.wait_for_nodes(300)
        up = time.perf_counter() - began
        command = [sys.executable, "-m", "mooncake_config", "check", "--cluster", "--address", cluster.address]
        words = ["--format", "json", "--mooncake-store-init-kwargs", json.dumps(KWARGS)]
        began = time.perf_counter()
        done = subprocess.run([*command, *words], capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - began
    finally:
        cluster.shutdown()  # type: ignore[no-untyped-call]  # Ray has no types here
    answered = sum(node is not None for node in json.loads(done.stdout)["nodes"].values())
    return f"{up:.1f} s", f"{seconds:.1f} s", f"{answered} of {number}"


def _recorded() -> bytes:
    """The answer of a node as it crosses Ray, made by the code that makes it there, of this machine."""
    job = Job(json.dumps(KWARGS), Backend.MOONCAKE, Role.TRAINER, 1, Topology(num_nodes=2, node_ip="10.0.0.1"))
    return reply(pickle.dumps(Question(job)))


def _compared(number: int, answer: bytes) -> tuple[str, ...]:
    """One row: what is done with the answers of so many nodes after Ray gave them, and how much memory grows by it."""
    before, marks = _resident(), [time.process_time()]
    cluster = _cluster(number, answer)
    marks.append(time.process_time())
    survey = Survey(cluster, examine_cluster(cluster))
    marks.append(time.process_time())
    page = StringIO()
    print_survey(Console(file=page, width=100, highlight=False), survey)
    marks.append(time.process_time())
    document = json.dumps(cluster_document(survey))
    marks.append(time.process_time())
    read, compare, draw, write = (f"{later - earlier:.2f} s" for earlier, later in pairwise(marks))
    lines, size = str(page.getvalue().count("\n")), f"{len(document) / (1 << 20):.1f} MiB"
    each = f"{(marks[-1] - marks[0]) / number * 1e3:.2f} ms"
    return read, compare, draw, lines, write, size, each, f"{(_resident() - before) >> 20} MiB"


def _resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _cluster(number: int, answer: bytes) -> Cluster:
    """A cluster of nodes with that answer, each under its own address; every tenth has another Python."""
    seats = [
        Seat(f"{place:056x}", f"10.{place >> 16}.{place >> 8 & 255}.{place & 255}", place == 0)
        for place in range(number)
    ]
    said = {"Python": "3.11.9", "Ray": "2.60.0", "package": own_software()[PACKAGE], "reply": answer}
    odd = {**said, "Python": "3.11.7"}
    members = [
        replace(member, post=Post(member.name, member.address, 15000))
        for place, (name, seat) in enumerate(zip(seat_names(seats), seats, strict=True))
        for member in [member_of(name, seat, odd if place % 10 == 9 else said)]
    ]
    names = [member.name for member in members]
    contacts = tuple(
        Contact(source, to, f"{to}:15000", Meeting.REACHED, 0.0004)
        for source, others in chosen_pairs(names, names[0], 16)
        for to in others
    )
    node = members[0].node
    assert node is not None
    return Cluster(node.process, own_software(), tuple(members), contacts=contacts)


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or RAYLETS)
