"""The three object-store flags: on any argparse parser, as launch arguments, and read out of a pasted command."""

from __future__ import annotations

import argparse
import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mooncake_config.damage import kind_of
from mooncake_config.display import shown
from mooncake_config.findings import Fault, Malformed
from mooncake_config.init_kwargs import FLAG as INIT_KWARGS_FLAG
from mooncake_config.init_kwargs import JsonObject, decode_json
from mooncake_config.process import Backend
from mooncake_config.provenance import Origin, Source

BACKEND_FLAG = "--object-store-backend"
REPLICA_FLAG = "--mooncake-replica-num"
RUNTIME_ENV_FLAG = "--runtime-env-json"
_JOB_FLAGS = (BACKEND_FLAG, INIT_KWARGS_FLAG, REPLICA_FLAG)
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")


class WrongUse(Exception):
    """A command line that cannot be taken as it stands. The text says why, and its values are fit to be shown."""


def add_object_store_arguments(parser: argparse.ArgumentParser, *, default_backend: Backend = Backend.RAY) -> None:
    """Adds ``--object-store-backend``, ``--mooncake-store-init-kwargs`` and ``--mooncake-replica-num`` to a parser.

    The init kwargs stay text: ``resolve_store_config(args.mooncake_store_init_kwargs)`` reads them, so that a mistake
    in them is reported together with all others.

    Args:
        parser: any argparse parser.
        default_backend: what holds where the flag is absent; Ray's object store, as in Miles.
    """
    group = parser.add_argument_group("rollout object store")
    group.add_argument(
        BACKEND_FLAG,
        choices=[backend.value for backend in Backend],
        default=default_backend.value,
        help=f"object store that carries rollout data to the trainers (default: {default_backend.value})",
    )
    group.add_argument(
        INIT_KWARGS_FLAG,
        metavar="VALUE",
        help="init kwargs of Mooncake Store: a JSON object, @FILE, or - for standard input",
    )
    group.add_argument(
        REPLICA_FLAG,
        type=int,
        default=1,
        metavar="N",
        help="memory replicas of each object (default: 1)",
    )


def get_mooncake_object_store_args(
    master_port: int = 50051,
    master_host: str = "127.0.0.1",
    *,
    init_kwargs: Mapping[str, object] | None = None,
    replica_num: int = 1,
) -> str:
    """The launch arguments that select Mooncake Store, as one text, quoted for a shell.

    Args:
        master_port: the master's RPC port.
        master_host: a name or IP that every node reaches; loopback is right for one node only.
        init_kwargs: fields beside or instead of the small defaults, which are protocol tcp and 2 GiB each for segment
            and buffer.
        replica_num: memory replicas of each object.

    Returns:
        ``--object-store-backend mooncake --mooncake-store-init-kwargs '{…}'``, with ``--mooncake-replica-num`` where
        it is not 1.
    """
    host = f"[{master_host}]" if ":" in master_host and not master_host.startswith("[") else master_host
    fields = {
        "protocol": "tcp",
        "master_server_address": f"{host}:{master_port}",
        "global_segment_size": "2gb",
        "local_buffer_size": "2gb",
        **(init_kwargs or {}),
    }
    words = [BACKEND_FLAG, Backend.MOONCAKE.value, INIT_KWARGS_FLAG, json.dumps(fields)]
    if replica_num != 1:
        words += [REPLICA_FLAG, str(replica_num)]
    return shlex.join(words)


@dataclass(frozen=True)
class PastedCommand:
    """What a training command says to us: our flags (absent: not given), and variables it sets, with their spots.

    ``faults``: a ``--runtime-env-json`` that cannot be read.
    """

    flags: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    spots: Mapping[str, str] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()


def read_pasted_command(words: Sequence[str]) -> PastedCommand:
    """Reads our flags and variables out of a training command; the rest is left alone.

    Both spellings of a flag, ``--flag value`` and ``--flag=value``, count, the last one wins. Variables come from
    leading ``NAME=value`` words and from ``env_vars`` of ``--runtime-env-json``, which win over the former.

    Raises:
        WrongUse: a flag of ours without its value.
    """
    flags = dict(_flag_values(words, _JOB_FLAGS))
    leading = dict(_leading_assignments(words))
    runtime_env = dict(_flag_values(words, (RUNTIME_ENV_FLAG,))).get(RUNTIME_ENV_FLAG)
    env_vars, faults = _env_vars(runtime_env) if runtime_env is not None else ({}, ())
    spots = {name: f"{RUNTIME_ENV_FLAG} {name}" for name in env_vars}
    return PastedCommand(flags, {**leading, **env_vars}, spots, faults)


def _flag_values(words: Sequence[str], wanted: Sequence[str]) -> Iterator[tuple[str, str]]:
    for position, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name not in wanted:
            continue
        if equals:
            yield name, value
        elif position + 1 < len(words) and not words[position + 1].startswith("--"):
            yield name, words[position + 1]
        else:
            raise WrongUse(f"{name} in the pasted command has no value")


def _leading_assignments(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """``NAME=value`` words before a program: at the start, behind ``env``, and behind a submission's own ``--``."""
    at_start = True
    for word in words:
        if at_start and _ASSIGNMENT.match(word):
            name, _, value = word.partition("=")
            yield name, value
        else:
            at_start = word in ("--", "env", "export", "exec", "nohup", "sudo")


def _env_vars(text: str) -> tuple[dict[str, str], tuple[Fault, ...]]:
    origin = Origin(Source.ENV, RUNTIME_ENV_FLAG)
    if not text.strip():
        return {}, ()
    try:
        value = decode_json(text)
    except Malformed as refusal:
        return {}, (Fault(refusal.offence, (), origin, refusal.message, refusal.fix),)
    env_vars = value.get("env_vars", JsonObject([])) if isinstance(value, JsonObject) else value
    if not isinstance(env_vars, JsonObject):
        message = f"{shown(env_vars)} is {kind_of(env_vars)}, where env_vars is an object of texts."
        return {}, (Fault("not-an-object", (), origin, message, 'write {"env_vars": {"NAME": "value"}}.'),)
    texts = {name: item for name, item in env_vars.items() if isinstance(item, str)}
    return texts, tuple(_env_var_faults(env_vars, origin))


def _env_var_faults(env_vars: JsonObject, origin: Origin) -> Iterator[Fault]:
    for name in env_vars.doubled:
        message = f"the name {shown(name)} stands more than once in env_vars; which one was meant is unknown."
        yield Fault("doubled-key", (), origin, message, f"keep one {shown(name)}.")
    for name, item in env_vars.items():
        if not isinstance(item, str):
            message = f"{shown(name)} is {kind_of(item)}; Ray takes texts only."
            yield Fault("wrong-type", (), origin, message, "put it in quotes.")
