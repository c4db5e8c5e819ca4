"""Reading the init kwargs: JSON text, ``@file``, ``-`` for standard input, or a mapping, into claims and faults."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from json import JSONDecodeError

from mooncake_config.display import shown
from mooncake_config.damage import kind_of
from mooncake_config.findings import Fault
from mooncake_config.json_damage import AS_FILE, EXAMPLE, diagnose
from mooncake_config.protocols import nearest
from mooncake_config.provenance import Claim, Origin, Source
from mooncake_config.settings import FIELDS
from mooncake_config.sources import KWARGS_SPOT, SCHEMA_KEY, mapping_claims

FLAG = "--mooncake-store-init-kwargs"
BYTES_LIMIT = 4 << 20
"""Largest JSON that is read, in bytes."""
FAULTS_LIMIT = 20
"""Unknown keys that are reported one by one."""

InitKwargs = str | Mapping[str, object] | None


@dataclass(frozen=True)
class Reading:
    """What was read: claims, faults, and the spot that they came from."""

    claims: Mapping[str, Claim] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()


class _JsonObject(dict[str, object]):
    """A JSON object that remembers which keys stood in it twice."""

    def __init__(self, pairs: list[tuple[str, object]]) -> None:
        super().__init__(pairs)
        self.doubled = sorted({key for key, _ in pairs if len(pairs) != len(self) and _count(pairs, key) > 1})


def _count(pairs: list[tuple[str, object]], key: str) -> int:
    return sum(name == key for name, _ in pairs)


class _NotANumber(ValueError):
    """NaN or Infinity, which Python's parser would take."""


def _integer(text: str) -> int | Decimal:
    return int(text) if len(text) <= 100 else Decimal(text)


def _constant(name: str) -> float:
    raise _NotANumber(name)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_JsonObject, parse_int=_integer, parse_float=Decimal, parse_constant=_constant
)


def read_init_kwargs(value: InitKwargs) -> Reading:
    """The claims and faults of the init kwargs.

    Args:
        value: JSON text, ``@FILE``, ``-``, a mapping, or None.

    Raises:
        TypeError: a value of another type.
    """
    if value is None:
        return Reading()
    if isinstance(value, Mapping):
        return _claims_and_faults(value, Origin(Source.CLI, KWARGS_SPOT))
    if not isinstance(value, str):
        raise TypeError(f"init kwargs must be JSON text, '@FILE', a mapping or None, not {type(value).__name__}")
    if value == "-":
        return _read_bytes(sys.stdin.buffer.read(BYTES_LIMIT + 1), Origin(Source.CLI, "standard input"))
    if value.startswith("@"):
        return _read_file(value[1:], Origin(Source.CLI, value[1:]))
    return _read_text(value, Origin(Source.CLI, FLAG))


def _refused(offence: str, origin: Origin, message: str, fix: str) -> Reading:
    return Reading(faults=(Fault(offence, (), origin, message, fix),))


def _read_file(path: str, origin: Origin) -> Reading:
    if not path:
        fix = "write the path behind the @, as in @store.json."
        return _refused("unreadable-file", Origin(Source.CLI, FLAG), "@ is followed by no path.", fix)
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            what = "a directory" if stat.S_ISDIR(status.st_mode) else "a pipe or device"
            fix = "name a regular file, or pass - and feed standard input."
            return _refused("unreadable-file", origin, f"{shown(path)} is {what}, not a regular file.", fix)
        with open(path, "rb") as file:
            return _read_bytes(file.read(BYTES_LIMIT + 1), origin)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        here = shown(os.path.abspath(path)) if "\0" not in path else shown(path)
        fix = f"give a path that exists on this node (looked at {here})."
        return _refused("unreadable-file", origin, f"{shown(path)} cannot be read: {reason}.", fix)


def _read_bytes(data: bytes, origin: Origin) -> Reading:
    if len(data) > BYTES_LIMIT:
        return _refused(
            "unreadable-file",
            origin,
            f"{shown(origin.spot)} holds more than {BYTES_LIMIT >> 20} MiB; the init kwargs are eight short fields.",
            f"name the right file; it holds an object such as {EXAMPLE}.",
        )
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return _refused(
            "unreadable-file",
            origin,
            f"{shown(origin.spot)} is not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}.",
            "save it as UTF-8 without a byte order mark.",
        )
    return _read_text(text, origin)


def _read_text(text: str, origin: Origin) -> Reading:
    if not text.strip():
        return _refused(
            "empty-claim",
            origin,
            f"{shown(origin.spot)} is empty and counts as unset; an unset shell variable often hides behind it.",
            f"give an object such as '{EXAMPLE}', or leave it out.",
        )
    try:
        value = _DECODER.decode(text)
    except JSONDecodeError as error:
        return _refused("broken-json", origin, *diagnose(text, error))
    except _NotANumber as error:
        fix = 'write a number, or a size such as "8gb"; JSON has no NaN and no Infinity.'
        return _refused("broken-json", origin, f"not JSON: {error} is not a JSON number.", fix)
    except RecursionError:
        fix = f"write one flat object, such as {EXAMPLE}."
        return _refused("broken-json", origin, "the JSON is nested too deeply to be read.", fix)
    if isinstance(value, _JsonObject):
        return _claims_and_faults(value, origin)
    return _not_an_object(value, origin)


def _not_an_object(value: object, origin: Origin) -> Reading:
    if isinstance(value, str) and value.lstrip().startswith("{"):
        message = f"the value is JSON text that holds JSON ({shown(value)}): it was encoded twice."
        return _refused("not-an-object", origin, message, f"encode it once: {shown(value)}, {AS_FILE}.")
    message = f"{shown(value)} is {kind_of(value)}, and the init kwargs are one JSON object."
    return _refused("not-an-object", origin, message, f"write an object, such as '{EXAMPLE}'.")


def _claims_and_faults(mapping: Mapping[str, object], origin: Origin) -> Reading:
    known = {spec.name for spec in FIELDS}
    doubled = _doubled_keys(getattr(mapping, "doubled", ()), origin)
    unknown = _unknown_keys([key for key in mapping if key not in known and key != SCHEMA_KEY], origin)
    if origin.spot == KWARGS_SPOT:
        claims = mapping_claims({name: raw for name, raw in mapping.items() if name in known})
    else:
        claims = {name: Claim(raw, origin) for name, raw in mapping.items() if name in known}
    return Reading(claims, (*doubled, *unknown))


def _doubled_keys(keys: Iterable[str], origin: Origin) -> Iterator[Fault]:
    for key in list(keys)[:FAULTS_LIMIT]:
        about = (key,) if any(spec.name == key for spec in FIELDS) else ()
        message = f"the key {shown(key)} stands more than once in the JSON; which one was meant is unknown."
        yield Fault("doubled-key", about, origin, message, f"keep one {shown(key)}.")


_ELSEWHERE = {
    "replica_num": "--mooncake-replica-num",
    "mooncake_replica_num": "--mooncake-replica-num",
    "object_store_backend": "--object-store-backend",
    "backend": "--object-store-backend",
    "role": "--role",
    "local_rank": "--local-rank",
    "num_nodes": "--num-nodes",
}
"""Keys that people put into the JSON and that belong to another flag."""


def _unknown_keys(keys: list[str], origin: Origin) -> Iterator[Fault]:
    spellings = {spec.name: spec.name for spec in FIELDS}
    spellings |= {spec.wiring.engine: spec.name for spec in FIELDS if spec.wiring.engine}
    spellings |= {spec.wiring.variable: spec.name for spec in FIELDS if spec.wiring.variable}
    for key in keys[:FAULTS_LIMIT]:
        yield _unknown_key(key if isinstance(key, str) else repr(key), spellings, origin)
    if len(keys) > FAULTS_LIMIT:
        message = f"{len(keys) - FAULTS_LIMIT:,} more keys are no fields of the init kwargs."
        yield Fault("unknown-key", (), origin, message, f"keep only {', '.join(spec.name for spec in FIELDS)}.")


def _unknown_key(key: str, spellings: Mapping[str, str], origin: Origin) -> Fault:
    flag = _ELSEWHERE.get(key.lower().replace("-", "_"))
    if flag:
        message = f"{shown(key)} is not a field of the init kwargs, and nobody reads it there."
        return Fault("unknown-key", (), origin, message, f"take it out and pass {flag} instead.")
    near = nearest(key, spellings)
    if near is None:
        message = f"{shown(key)} is not a field of the init kwargs."
        return Fault("unknown-key", (), origin, message, f"take it out; the fields are {', '.join(s.name for s in FIELDS)}.")
    name = spellings[near]
    whose = " That is Mooncake's own spelling." if key == near != name else ""
    message = f"{shown(key)} is not a field of the init kwargs.{whose}"
    return Fault("unknown-key", (name,), origin, message, f"write {name} instead.")
