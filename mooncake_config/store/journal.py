"""What a store tells of itself: one line when it is opened, one when it is closed, as JSON, on ``mooncake_config``."""

from __future__ import annotations

import json
import logging
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

from mooncake_config.display import shown
from mooncake_config.findings import Severity
from mooncake_config.settings import FIELDS
from mooncake_config.store.codes import code_of
from mooncake_config.store.errors import StoreError

if TYPE_CHECKING:
    from mooncake_config.resolve import Resolution

LOGGER = logging.getLogger("mooncake_config")


class Journal:
    """Counts of one store. Several threads may count."""

    def __init__(self) -> None:
        self._counting = threading.Lock()
        self._operations: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()
        self._errors: Counter[str] = Counter()

    def done(self, operation: str, size: int = 0) -> None:
        """An operation that went well, and the bytes that it moved."""
        with self._counting:
            self._operations[operation] += 1
            self._bytes[operation] += size

    def failed(self, error: StoreError) -> None:
        """An operation that did not."""
        name = type(error).__name__ if error.code is None else f"{error.code} {code_of(error.code).name}"
        with self._counting:
            self._errors[name] += 1

    def summary(self) -> dict[str, Any]:
        """Operations, bytes and errors by their names."""
        with self._counting:
            moved = {name: size for name, size in self._bytes.items() if size}
            return {"operations": dict(self._operations), "bytes": moved, "errors": dict(self._errors)}


def opened(resolution: Resolution, namespace: str, seconds: float) -> dict[str, Any]:
    """What is told of a store that was opened: who it is, and each setting with its origin. Secrets are masked."""
    process = resolution.process
    return {
        "event": "store opened",
        "role": process.role.value,
        "node": shown(resolution.settings.local_hostname),
        "fingerprint": resolution.fingerprint,
        "namespace": namespace,
        "replica_num": resolution.replica_num,
        "contributes_segment": process.contributes_segment,
        "settings": {spec.name: _setting(resolution, spec.name) for spec in FIELDS},
        "warnings": [found.code for found in resolution.findings if found.severity is Severity.WARNING],
        "seconds": round(seconds, 3),
    }


def _setting(resolution: Resolution, name: str) -> dict[str, Any]:
    value = getattr(resolution.settings, name)
    return {"value": shown(value) if isinstance(value, str) else value, "origin": shown(resolution.origin(name).spot)}


def tell(event: dict[str, Any]) -> None:
    """One INFO line. The same as a dictionary is the record's attribute ``event``."""
    LOGGER.info("%s", json.dumps(event), extra={"event": event})
