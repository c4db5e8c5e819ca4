"""Asks a parser of values whether it refuses one, and with which words."""

from __future__ import annotations

import time
from collections.abc import Callable

from mooncake_config.findings import Malformed


def refusal_of(parse: Callable[[object], object], raw: object) -> Malformed | None:
    """The refusal of a value, None where it is taken."""
    try:
        parse(raw)
    except Malformed as refusal:
        return refusal
    return None


def refused(parse: Callable[[object], object], raw: object) -> tuple[str, str, str]:
    """Offence, message and fix of a value that must be refused."""
    refusal = refusal_of(parse, raw)
    assert refusal is not None, f"{raw!r} is taken"
    return refusal.offence, refusal.message, refusal.fix


def is_taken_or_refused_well(parse: Callable[[object], object], raw: object) -> bool:
    """Whether a value is taken, or refused by words that can be printed, with a way out."""
    refusal = refusal_of(parse, raw)
    return refusal is None or (str(refusal).isprintable() and bool(refusal.fix) and len(str(refusal)) < 700)


def seconds_to_answer(parse: Callable[[object], object], raw: object) -> float:
    """How long a parser takes to take or refuse a value."""
    start = time.process_time()
    refusal_of(parse, raw)
    return time.process_time() - start
