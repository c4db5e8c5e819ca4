"""The options of ``check --cluster``: which cluster, and what must be the same on its nodes."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from mooncake_config.addresses import ENDPOINT
from mooncake_config.arguments import WrongUse
from mooncake_config.display import shown

_ADDRESS = f"auto|{ENDPOINT}"
_DISTRIBUTION = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_OTHER_DOORS = {
    **dict.fromkeys(("http", "https"), "this is Ray's dashboard, where jobs are submitted"),
    "ray": "this is the server of Ray Client",
}
"""What else of a head answers, by the scheme of its address."""
_OF_ONE_NODE = ("node_ip", "local_rank")


def add_cluster_options(parser: argparse.ArgumentParser) -> None:
    """Adds ``--cluster``, ``--address`` and ``--same``."""
    cluster = parser.add_argument_group("cluster")
    cluster.add_argument("--cluster", action="store_true", help="check every alive Ray node, and compare the nodes")
    cluster.add_argument(
        "--address", type=_address, metavar="HOST:PORT", help="the head of Ray (default: auto, the one of this node)"
    )
    cluster.add_argument(
        "--same",
        action="append",
        type=_distribution,
        default=[],
        metavar="NAME",
        help="a distribution that must be the same on every node, such as miles (repeatable)",
    )


def _address(text: str) -> str:
    if not re.fullmatch(_ADDRESS, text):
        refusal = f"{shown(text)!r} is not auto or HOST:PORT, such as 10.0.0.5:6379"
        door = _OTHER_DOORS.get(text.partition("://")[0].lower()) if "://" in text else None
        meant = f"; {door}, and the head itself is meant: port 6379 unless `ray start --port` says another"
        raise argparse.ArgumentTypeError(f"{refusal}{meant if door else ''}")
    return text


def _distribution(text: str) -> str:
    if not re.fullmatch(_DISTRIBUTION, text):
        raise argparse.ArgumentTypeError(f"{shown(text)!r} is no name of a distribution")
    return text


def refuse_mixed_survey(options: argparse.Namespace) -> None:
    """Refuses options of a survey without one, and with one those that hold for a single node.

    Raises:
        WrongUse: names the option, and why.
    """
    if not options.cluster:
        for flag, value in (("--address", options.address), ("--same", options.same)):
            if value:
                raise WrongUse(f"{flag} is about a cluster; add --cluster")
        return
    if options.host_root != Path("/"):
        raise WrongUse("--host-root reads the facts of one host, and --cluster asks each node for its own")
    if options.dry_setup:
        raise WrongUse("--dry-setup tries this machine; run it on each node, since it puts a segment into the Store")
    for name in _OF_ONE_NODE:
        if getattr(options, name) is not None:
            flag = f"--{name.replace('_', '-')}"
            raise WrongUse(f"{flag} is about one node, and with --cluster each node has its own")
