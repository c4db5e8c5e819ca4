"""Resolving, as a trainer's author writes it. What is marked as an error must be one."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from typing_extensions import assert_type

from mooncake_config import (
    ConfigError,
    Finding,
    Origin,
    Resolution,
    Role,
    Severity,
    Source,
    StoreSettings,
    Topology,
    add_object_store_arguments,
    get_mooncake_object_store_args,
    resolve_store_config,
)


def from_a_parser(parser: argparse.ArgumentParser, given: Mapping[str, object] | None) -> Resolution:
    """Text, a mapping or nothing; a role by its name or as a Role."""
    add_object_store_arguments(parser)
    args = parser.parse_args()
    resolve_store_config("@store.json", role="driver", ignore=["MC112"])
    resolve_store_config(given, role=Role.TRAINER, replica_num=2, environ={"MOONCAKE_MASTER": "10.0.0.5:50051"})
    return resolve_store_config(args.mooncake_store_init_kwargs, topology=Topology(num_nodes=2, node_ip="10.0.0.7"))


def what_a_resolution_has(resolution: Resolution) -> None:
    """Every attribute has a type of its own."""
    assert_type(resolution.settings, StoreSettings)
    assert_type(resolution.origin("protocol"), Origin)
    assert_type(resolution.origin("protocol").source, Source)
    assert_type(resolution.findings, tuple[Finding, ...])
    assert_type(resolution.setup_kwargs(), dict[str, int | str])
    assert_type(resolution.to_runtime_env(), dict[str, dict[str, str]])
    assert_type(resolution.fingerprint, str | None)
    assert_type(resolution.replica_num, int)
    assert_type(resolution.settings.global_segment_size, int)
    assert_type(resolution.settings.chunk_bytes, int | None)
    assert_type(get_mooncake_object_store_args(50051, "10.0.0.5", init_kwargs={"protocol": "tcp"}), str)


def what_a_refusal_has() -> list[str]:
    """Findings carry text, a severity and a place."""
    try:
        resolve_store_config()
    except ConfigError as refusal:
        assert_type(refusal.findings, tuple[Finding, ...])
        for finding in refusal.findings:
            assert_type(finding.severity, Severity)
            assert_type(finding.origin, Origin | None)
            assert_type(finding.fields, tuple[str, ...])
        return [finding.fix for finding in refusal.findings if finding.severity is Severity.ERROR]
    return []


def wrong_use(resolution: Resolution) -> None:
    """What a type checker has to refuse."""
    resolve_store_config(["protocol"])  # type: ignore[arg-type]  # wrong on purpose
    resolve_store_config(None, Role.TRAINER)  # type: ignore[call-arg]  # wrong on purpose
    resolve_store_config(replica_num="2")  # type: ignore[arg-type]  # wrong on purpose
    resolve_store_config(num_nodes=2)  # type: ignore[call-arg]  # wrong on purpose
    Topology(num_nodes="2")  # type: ignore[arg-type]  # wrong on purpose
    resolution.settings = StoreSettings()  # type: ignore[misc]  # wrong on purpose
    _ = resolution.settings.protocl  # type: ignore[attr-defined]  # wrong on purpose
    resolution.origin("protocol").spot = "here"  # type: ignore[misc]  # wrong on purpose
    get_mooncake_object_store_args("50051")  # type: ignore[arg-type]  # wrong on purpose
