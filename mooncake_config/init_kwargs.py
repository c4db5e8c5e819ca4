"""Reading the init kwargs: JSON text, ``@file``, ``-`` for standard input, or a mapping, into claims and faults."""

from __future__ import annotations

import json
import os
import re
import select
import stat
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from itertools import islice
from json import JSONDecodeError
from pathlib import Path
from typing import NamedTuple

from mooncake_config.damage import kind_of
from mooncake_config.display import RAW_LIMIT, plain_text, shown
from mooncake_config.findings import Fault, Malformed
from mooncake_config.json_damage import (
    AS_FILE,
    EXAMPLE,
    arrived,
    diagnose,
    diagnose_constant,
    diagnose_file,
    is_deeper_than,
    tell_text,
)
from mooncake_config.protocols import nearest
from mooncake_config.provenance import Claim, Origin, Source
from mooncake_config.settings import FIELDS
from mooncake_config.sources import KWARGS_SPOT, SCHEMA_KEY

FLAG = "--mooncake-store-init-kwargs"
BYTES_LIMIT = 2 << 20
"""Largest JSON that is read, in bytes."""
LEVELS_LIMIT = 32
"""Deepest nesting that is read. The fields are flat; what is deeper would exhaust whoever copies or prints it."""
STDIN_SECONDS = 10.0
"""How long standard input may take to end."""
FAULTS_LIMIT = 20
"""Unknown keys that are reported one by one."""

_ARGUMENT = Origin(Source.CLI, FLAG)
_STANDARD_INPUT = Origin(Source.CLI, "standard input")

_KNOWN = frozenset(spec.name for spec in FIELDS)


class Reading(NamedTuple):
    """What was read: claims, and faults."""

    claims: Mapping[str, Claim] = {}
    faults: tuple[Fault, ...] = ()


InitKwargs = str | Mapping[str, object] | Reading | None
"""Reading: what was read before: standard input can be read once only, and of a script only a run tells a part."""


class JsonObject(dict[str, object]):
    """A JSON object that remembers which keys stood in it twice."""

    doubled: Sequence[str] = ()


def _object(pairs: list[tuple[str, object]]) -> JsonObject:
    value = JsonObject(pairs)
    if len(pairs) != len(value):
        value.doubled = sorted(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
    return value


class _NotANumber(ValueError):
    """NaN or Infinity, which Python's parser would take."""


def _integer(text: str) -> int | Decimal:
    return int(text) if len(text) <= 100 else Decimal(text)


def _fraction(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent beyond even Decimal's range
        return Decimal("-Infinity" if text.startswith("-") else "Infinity")


def _constant(name: str) -> float:
    raise _NotANumber(name)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_float=_fraction, parse_constant=_constant
)


def read_init_kwargs(value: InitKwargs) -> Reading:
    """The claims and faults of the init kwargs.

    Args:
        value: JSON text, ``@FILE``, ``-``, a mapping, or None.

    Raises:
        TypeError: a value of another type.
    """
    if value is None or isinstance(value, Reading):
        return value or Reading()
    if isinstance(value, str):
        return _read_argument(value)
    if isinstance(value, Mapping):
        return _claims_and_faults(value, Origin(Source.CLI, KWARGS_SPOT))
    raise TypeError(f"init kwargs must be JSON text, '@FILE', a mapping or None, not {type(value).__name__}")


def _read_argument(text: str) -> Reading:
    if text == "-":
        return _read_standard_input()
    if text.startswith("@"):
        return _read_file(text[1:], Origin(Source.CLI, shown(text[1:], RAW_LIMIT)))
    return _read_text(text, _ARGUMENT)


def _refused(offence: str, origin: Origin, message: str, fix: str) -> Reading:
    return Reading({}, (Fault(offence, (), origin, message, fix),))


def _read_file(path: str, origin: Origin) -> Reading:
    if not path:
        fix = "write the path behind the @, as in @store.json."
        return _refused("unreadable-file", _ARGUMENT, "@ is followed by no path.", fix)
    try:
        mode = Path(path).stat().st_mode
        if not stat.S_ISREG(mode):
            what = "a directory" if stat.S_ISDIR(mode) else "a pipe or device"
            fix = "name a regular file, or pass - and feed standard input."
            return _refused("unreadable-file", origin, f"{shown(path)} is {what}, not a regular file.", fix)
        with Path(path).open("rb") as file:
            return _read_bytes(file.read(BYTES_LIMIT + 1), origin)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        message = f"{shown(path)} cannot be read: {reason}."
        return _refused("unreadable-file", origin, message, _way_to_a_file(path))


def _way_to_a_file(path: str) -> str:
    if path.startswith(("~", "$")):
        return "no shell expands what stands behind the @; write the path in full."
    if path.startswith("/"):
        return "give a path that exists on this node, and that this user may read."
    try:
        here = shown(str(Path.cwd()))
    except OSError:
        here = "a directory that is gone"
    return f"give a path that exists on this node, best an absolute one; it was looked for in {here}."


def _read_standard_input() -> Reading:
    try:
        descriptor = sys.stdin.fileno()
    except (AttributeError, OSError, ValueError):  # None, closed, or replaced by something without a descriptor
        return _refused(
            "unreadable-file",
            _STANDARD_INPUT,
            "this process has no standard input.",
            f"pass the object itself, such as '{EXAMPLE}', or @FILE.",
        )
    return read_stream(descriptor, STDIN_SECONDS)


def read_stream(descriptor: int, seconds: float) -> Reading:
    """The claims and faults of the JSON that standard input holds, which may take so long to end."""
    try:
        data = read_descriptor(descriptor, seconds)
    except (OSError, ValueError) as error:
        message, fix = f"standard input cannot be read: {shown(str(error))}.", "pass @FILE."
        return _refused("unreadable-file", _STANDARD_INPUT, message, fix)
    if data is None:
        message = f"standard input did not end within {seconds:g} s."
        fix = "close it behind the JSON (Ctrl-D at a terminal), or pass @FILE."
        return _refused("unreadable-file", _STANDARD_INPUT, message, fix)
    return _read_bytes(data, _STANDARD_INPUT)


def read_descriptor(descriptor: int, seconds: float) -> bytes | None:
    """The bytes of an open file up to its end or one more than :data:`BYTES_LIMIT`; None where it does not end in time.

    Raises:
        OSError: it cannot be read.
    """
    data, end = b"", time.monotonic() + seconds
    awaited = select.poll()  # select() refuses descriptors above 1023, of which a program may have more open
    awaited.register(descriptor, select.POLLIN)
    while len(data) <= BYTES_LIMIT:
        if not awaited.poll(max(end - time.monotonic(), 0) * 1000):
            return None
        part = os.read(descriptor, BYTES_LIMIT + 1 - len(data))
        if not part:
            break
        data += part
    return data


def _read_bytes(data: bytes, origin: Origin) -> Reading:
    if len(data) > BYTES_LIMIT:
        return _refused(
            "unreadable-file",
            origin,
            f"{shown(origin.spot)} holds more than {BYTES_LIMIT >> 20} MiB; the init kwargs are eight short fields.",
            f"give the right one; it holds an object such as {EXAMPLE}.",
        )
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        utf16 = " It looks like UTF-16." if data[:2] in (b"\xff\xfe", b"\xfe\xff") else ""
        return _refused(
            "unreadable-file",
            origin,
            f"{shown(origin.spot)} is not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}.{utf16}",
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
        value = decode_json(text, diagnose if origin.spot == FLAG else diagnose_file)
    except Malformed as refusal:
        # A file survives a shell, so it is offered to who did not use one.
        offer = f" Or {AS_FILE.removeprefix('or ')}." if origin.spot == FLAG else ""
        return _refused(refusal.offence, origin, refusal.message, refusal.fix + offer)
    if isinstance(value, JsonObject):
        return _claims_and_faults(value, origin)
    return _not_an_object(value, origin)


def decode_json(text: str, explain: Callable[[str, JSONDecodeError], tuple[str, str]] = diagnose) -> object:
    """The value of a JSON text; objects know their doubled keys, and numbers are exact.

    Args:
        explain: gives the message and the fix for a text that is no JSON.

    Raises:
        Malformed: no JSON, NaN or Infinity, or one that is longer or deeper than anything that belongs here.
    """
    if len(text) > BYTES_LIMIT or is_deeper_than(text, LEVELS_LIMIT):
        what = "nested too deeply" if len(text) <= BYTES_LIMIT else "too long"
        fix = f"write one flat object, such as {EXAMPLE}."
        raise Malformed("broken-json", f"the JSON is {what} to be read here.", fix)
    try:
        value: object = _DECODER.decode(text)
    except JSONDecodeError as error:
        raise Malformed("broken-json", *explain(text, error)) from None
    except _NotANumber:
        raise Malformed("broken-json", *diagnose_constant(text)) from None
    return value


def _not_an_object(value: object, origin: Origin) -> Reading:
    times = 1
    while isinstance(value, str) and value.lstrip().startswith(("{", '"')) and not is_deeper_than(value, LEVELS_LIMIT):
        try:
            value, times = _DECODER.decode(value), times + 1
        except ValueError:
            break
    if times > 1 and isinstance(value, Mapping):
        often = {2: "twice", 3: "three times"}.get(times, f"{times} times")
        message = f"the value is JSON text that holds JSON ({shown(value)}): it was encoded {often}."
        return _refused("not-an-object", origin, message, f"encode it once: the value begins with {{, {AS_FILE}.")
    told = tell_text(value) if isinstance(value, str) else None
    if told:
        return _refused("not-an-object", origin, f"{told[0]}.", f"{told[1]}.")
    what = f'"{arrived(value)}"' if isinstance(value, str) else shown(value)
    message = f"{what} is {'no value' if value is None else kind_of(value)}, and the init kwargs are one JSON object."
    fix = f"write an object, such as '{EXAMPLE}'."
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], Mapping):
        fix = "take the square brackets away, and leave the object in them."
    return _refused("not-an-object", origin, message, fix)


def _claims_and_faults(given: Mapping[str, object], origin: Origin) -> Reading:
    mapping, unread = (given, ()) if isinstance(given, dict) else _entries(given, origin)
    claims = {name: Claim(raw, origin) for name, raw in mapping.items() if name in _KNOWN}
    doubled = getattr(mapping, "doubled", ())
    if len(claims) == len(mapping) and not doubled:
        return Reading(claims, unread)
    others = {key: raw for key, raw in mapping.items() if key not in _KNOWN and key != SCHEMA_KEY}
    return Reading(claims, (*_doubled_keys(doubled, origin), *_unknown_keys(others, origin), *unread))


def _entries(mapping: Mapping[str, object], origin: Origin) -> tuple[dict[str, object], tuple[Fault, ...]]:
    """What a mapping of another library holds, and a fault for each field that it has no value of.

    OmegaConf's, for one, raises where a value is ``???`` or an interpolation leads nowhere.
    """
    entries: dict[str, object] = {}
    faults = []
    for key in mapping:
        try:
            entries[key] = mapping[key]
        except Exception as error:  # noqa: BLE001 - what a mapping raises is known to its library alone
            if key in _KNOWN:
                reason = shown(str(error).partition("\n")[0])
                message = f"the value of {key} cannot be read: {reason}."
                fix = "give it a value, or leave the key out."
                faults.append(Fault("text-of-nothing", (key,), origin, message, fix))
            else:
                entries[key] = None
    return entries, tuple(faults)


def _doubled_keys(keys: Iterable[str], origin: Origin) -> Iterator[Fault]:
    for key in list(keys)[:FAULTS_LIMIT]:
        about = (key,) if any(spec.name == key for spec in FIELDS) else ()
        message = f"the key {shown(key)} stands more than once in the JSON; which one was meant is unknown."
        yield Fault("doubled-key", about, origin, message, f"keep one {shown(key)}.")


_FIELD_NAMES = ", ".join(spec.name for spec in FIELDS)

_BRAND = "(?i)mooncake_?"
"""What variables and other tools' settings begin with; a likeness of it alone is none."""

_SPELLINGS = {
    **{spec.name: spec.name for spec in FIELDS},
    **{spec.wiring.engine: spec.name for spec in FIELDS if spec.wiring.engine},
    **{spec.wiring.variable: spec.name for spec in FIELDS if spec.wiring.variable},
}
"""Each name that a field goes by: its own, Mooncake's, its variable's."""

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


def _unknown_keys(entries: Mapping[str, object], origin: Origin) -> Iterator[Fault]:
    for key, value in islice(entries.items(), FAULTS_LIMIT):
        yield _unknown_key(plain_text(key), value, origin)
    if len(entries) > FAULTS_LIMIT:
        message = f"{len(entries) - FAULTS_LIMIT:,} more keys are no fields of the init kwargs."
        yield Fault("unknown-key", (), origin, message, f"keep only {_FIELD_NAMES}.")


def _unknown_key(key: str, value: object, origin: Origin) -> Fault:
    flag = _ELSEWHERE.get(key.lower().replace("-", "_"))
    if flag:
        message = f"{shown(key)} is not a field of the init kwargs, and nobody reads it there."
        return Fault("unknown-key", (), origin, message, f"take it out and pass {flag} instead.")
    if isinstance(value, Mapping) and any(name in value for name in _KNOWN):
        message = f"{shown(key)} is not a field of the init kwargs; the fields stand one level too deep, inside it."
        return Fault("unknown-key", (), origin, message, f"take {shown(key)} away and leave the object in it.")
    near = (
        key
        if key in _SPELLINGS
        else nearest(re.sub(_BRAND, "", key), (name for name in _SPELLINGS if not re.match(_BRAND, name)))
    )
    if near is None:
        message = f"{shown(key) or 'an empty text'} is not a field of the init kwargs."
        return Fault("unknown-key", (), origin, message, f"take it out; the fields are {_FIELD_NAMES}.")
    name = _SPELLINGS[near]
    whose = "the variable's name" if re.match(_BRAND, near) else "Mooncake's own spelling"
    told = f" That is {whose}." if key == near else ""
    message = f"{shown(key)} is not a field of the init kwargs.{told}"
    return Fault("unknown-key", (name,), origin, message, f"write {name} instead.")
