"""The job options of the command line: which process of which job is asked about."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from mooncake_config.arguments import (
    BACKEND_FLAG,
    REPLICA_FLAG,
    PastedCommand,
    WrongUse,
    add_object_store_arguments,
)
from mooncake_config.display import shown, shown_word
from mooncake_config.findings import Fault, Malformed
from mooncake_config.init_kwargs import FLAG as INIT_KWARGS_FLAG
from mooncake_config.job import Job
from mooncake_config.process import Backend
from mooncake_config.provenance import Origin, Source
from mooncake_config.rules import find_rule
from mooncake_config.sizes import parse_size
from mooncake_config.topology import COUNT_LIMIT, Role, Topology
from mooncake_config.usage import with_nearest

if TYPE_CHECKING:
    from mooncake_config.plan import Load


def add_job_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options that ``explain``, ``check`` and ``plan`` share; :func:`job_of` reads them."""
    add_object_store_arguments(parser, default_backend=Backend.MOONCAKE)
    parser.set_defaults(object_store_backend=None, mooncake_replica_num=None)
    job = parser.add_argument_group("process and job")
    job.add_argument(
        "--role",
        choices=[role.value for role in Role],
        default=Role.TRAINER.value,
        help="who is asked about (default: trainer)",
    )
    job.add_argument("--local-rank", type=_rank, metavar="N", help="rank on its node (default: LOCAL_RANK)")
    job.add_argument(
        "--num-nodes",
        type=_count,
        metavar="N",
        help="nodes in the job (default: unknown, or the alive nodes where this process is attached to Ray)",
    )
    job.add_argument("--trainer-nodes", type=_count, metavar="N", help="nodes with trainers (default: --num-nodes)")
    job.add_argument(
        "--processes-per-node", type=_count, metavar="N", help="Store clients per node (default: LOCAL_WORLD_SIZE)"
    )
    job.add_argument("--node-ip", metavar="ADDRESS", help="the Ray node IP to assume")
    findings = parser.add_argument_group("findings")
    findings.add_argument(
        "--ignore",
        action="append",
        type=_known_rule,
        default=[],
        metavar="RULE",
        help="drop findings of this code or name (repeatable)",
    )
    findings.add_argument("--strict", action="store_true", help="warnings count like errors for the exit status")


def add_load_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``plan`` that say what the Store shall hold; :func:`load_of` reads them."""
    load = parser.add_argument_group("rollouts")
    load.add_argument("--rollout-bytes", type=_size, metavar="SIZE", help="size of one rollout, such as 256mb")
    load.add_argument("--in-flight", type=_count, metavar="K", help="rollouts in the Store at once (default: 1)")


def load_of(options: argparse.Namespace) -> Load:
    """What the Store shall hold, as the options say it."""
    from mooncake_config.plan import Load  # no other command needs the formulas

    return Load(options.rollout_bytes, options.in_flight)


def _size(text: str) -> int:
    try:
        size = parse_size(text)
    except Malformed as refusal:
        says = refusal.message.rstrip(".") if text.strip() else f"{shown_word(text)} is not a size"
        raise argparse.ArgumentTypeError(f"{says}; {refusal.fix}") from None
    if size == 0:
        raise argparse.ArgumentTypeError("0 bytes are no rollout; write a size such as 256mb")
    return size


def _count(text: str) -> int:
    return _whole_number(text, 1)


def _rank(text: str) -> int:
    return _whole_number(text, 0)


def _whole_number(text: str, least: int) -> int:
    digits = text.isascii() and text.isdigit()
    if digits and len(text.lstrip("0")) > len(str(COUNT_LIMIT)):
        raise argparse.ArgumentTypeError(f"{shown(text)!r} is more than {COUNT_LIMIT}")
    if not (digits and int(text) >= least):
        raise argparse.ArgumentTypeError(f"{shown(text)!r} is not a whole number of {least} or more")
    return int(text)


def _known_rule(name: str) -> str:
    if find_rule(name) is None:
        refusal = f"{shown(name)!r} is no rule; `mooncake-config rule` lists them"
        raise argparse.ArgumentTypeError(with_nearest(refusal, name, rule_names()))
    return name


def rule_names() -> list[str]:
    """Every word that stands for a rule: the codes, then the names."""
    from mooncake_config.rules import ALL_RULES  # those about a machine are loaded for a mistake only

    return [*(rule.code for rule in ALL_RULES), *(rule.name for rule in ALL_RULES)]


def job_of(options: argparse.Namespace) -> Job:
    """The job that the options and the pasted command ask about.

    Raises:
        WrongUse: a flag given twice, or a value in the pasted command that is no choice or no integer.
    """
    pasted: PastedCommand = options.pasted or PastedCommand()
    _refuse_doubled_flags(options, pasted)
    return Job(
        init_kwargs=options.mooncake_store_init_kwargs if pasted.init_kwargs is None else pasted.init_kwargs,
        backend=_backend(options, pasted),
        role=Role(options.role),
        replica_num=_replica_num(options, pasted),
        topology=Topology(
            num_nodes=options.num_nodes,
            trainer_nodes=options.trainer_nodes,
            local_rank=options.local_rank,
            processes_per_node=options.processes_per_node,
            node_ip=options.node_ip,
        ),
        pasted=pasted,
        faults=(*pasted.faults, *_assumed_backend(options, pasted)),
    )


def _refuse_doubled_flags(options: argparse.Namespace, pasted: PastedCommand) -> None:
    given = {
        INIT_KWARGS_FLAG: options.mooncake_store_init_kwargs is not None,
        BACKEND_FLAG: options.object_store_backend is not None,
        REPLICA_FLAG: options.mooncake_replica_num is not None,
    }
    for flag, before in given.items():
        if before and flag in pasted.flags:
            raise WrongUse(f"{flag} stands before -- and in the pasted command; give it once")


def _backend(options: argparse.Namespace, pasted: PastedCommand) -> Backend:
    name = pasted.flags.get(BACKEND_FLAG, options.object_store_backend or Backend.MOONCAKE.value)
    if name not in [backend.value for backend in Backend]:
        choices = ", ".join(backend.value for backend in Backend)
        raise WrongUse(f"{BACKEND_FLAG} {shown(name)} in the pasted command: choose from {choices}")
    return Backend(name)


def _replica_num(options: argparse.Namespace, pasted: PastedCommand) -> int:
    text = pasted.flags.get(REPLICA_FLAG)
    if text is None:
        return 1 if options.mooncake_replica_num is None else int(options.mooncake_replica_num)
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", text):
        raise WrongUse(f"{REPLICA_FLAG} {shown(text)} in the pasted command is not an integer")
    return int(text)


def _assumed_backend(options: argparse.Namespace, pasted: PastedCommand) -> tuple[Fault, ...]:
    if options.pasted is None or options.object_store_backend or BACKEND_FLAG in (*pasted.flags, *pasted.unknown_flags):
        return ()
    message = "the pasted command does not select an object store, so Ray's would be used; it is read as mooncake here."
    fix = f"add {BACKEND_FLAG} mooncake."
    if pasted.scripts:
        unopened = " and ".join(map(shown, pasted.scripts))
        message = f"which object store {unopened} selects is unknown, as it is not opened; it is read as mooncake here."
        fix = f"paste the script itself, or say it before the --: {BACKEND_FLAG} mooncake."
    return (Fault("assumed-backend", (), Origin(Source.CLI, BACKEND_FLAG), message, fix),)
