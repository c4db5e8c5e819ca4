"""Typed configuration resolution for Mooncake Store, the object store that carries rollout data in RL training jobs.

Names are imported when they are first used, so that ``import mooncake_config`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mooncake_config.arguments import add_object_store_arguments, get_mooncake_object_store_args
    from mooncake_config.findings import ConfigError, Finding, Severity
    from mooncake_config.provenance import Origin, Source
    from mooncake_config.resolve import Resolution, resolve_store_config
    from mooncake_config.settings import StoreSettings
    from mooncake_config.store import ValueSpec, open_object_store
    from mooncake_config.store.master import start_mooncake_master
    from mooncake_config.topology import Role, Topology

__all__ = [
    "ConfigError",
    "Finding",
    "Origin",
    "Resolution",
    "Role",
    "Severity",
    "Source",
    "StoreSettings",
    "Topology",
    "ValueSpec",
    "add_object_store_arguments",
    "get_mooncake_object_store_args",
    "open_object_store",
    "resolve_store_config",
    "start_mooncake_master",
]

_ROOMS = {
    "arguments": ("add_object_store_arguments", "get_mooncake_object_store_args"),
    "findings": ("ConfigError", "Finding", "Severity"),
    "provenance": ("Origin", "Source"),
    "resolve": ("Resolution", "resolve_store_config"),
    "settings": ("StoreSettings",),
    "store": ("ValueSpec", "open_object_store"),
    "store.master": ("start_mooncake_master",),
    "topology": ("Role", "Topology"),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}


def __getattr__(name: str) -> object:
    room = _ROOM_OF.get(name)
    if room is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{room}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
