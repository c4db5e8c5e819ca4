"""Our settings inside other people's configuration: pydantic-settings, argparse, Ray, logging."""

from __future__ import annotations

import argparse
import json
import logging
import pickle
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from pydantic import AliasChoices, BaseModel, Field, ValidationError
from pydantic_settings import BaseSettings, CliApp, SettingsConfigDict

from mooncake_config import (
    Source,
    StoreSettings,
    Topology,
    add_object_store_arguments,
    resolve_store_config,
)

MASTER = "10.0.0.5:50051"
ONE_NODE = Topology(num_nodes=1, node_ip="10.0.0.7", local_rank=0, processes_per_node=1)


class Nested(BaseSettings):
    """An application that has our settings as one of its fields."""

    model_config = SettingsConfigDict(env_prefix="TRAIN_", env_nested_delimiter="__", hide_input_in_errors=True)

    epochs: int = 1
    store: StoreSettings = Field(default_factory=StoreSettings)


class Extended(StoreSettings):
    """An application whose settings are ours and some more."""

    model_config = SettingsConfigDict(env_prefix="TRAIN_")

    epochs: int = 1
    run_name: str = "unnamed"
    seed: int = Field(default=0, validation_alias=AliasChoices("seed", "RNG_SEED"))


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A process with a master, and none of the other variables."""
    for name in ("MOONCAKE_PROTOCOL", "PROTOCOL", "EPOCHS", "TRAIN_EPOCHS", "RNG_SEED"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MOONCAKE_MASTER", MASTER)
    return monkeypatch


# pydantic-settings: a nested model


def test_nested_reads_its_own_sources(environment: pytest.MonkeyPatch) -> None:
    """Where the application says nothing of it, the nested model reads MOONCAKE_* and the defaults itself."""
    environment.setenv("MOONCAKE_PROTOCOL", "tcp")
    store = Nested().store
    assert (store.master_server_address, store.protocol, store.local_buffer_size) == (MASTER, "tcp", 32 << 30)


def test_nested_variable_is_a_keyword_argument(environment: pytest.MonkeyPatch) -> None:
    """A variable of the application, with its prefix and delimiter, is over MOONCAKE_* for that field alone."""
    environment.setenv("MOONCAKE_PROTOCOL", "efa")
    environment.setenv("MOONCAKE_GLOBAL_SEGMENT_SIZE", "2gb")
    environment.setenv("TRAIN_STORE__PROTOCOL", "tcp")
    store = Nested().store
    assert (store.protocol, store.global_segment_size) == ("tcp", 2 << 30)


def test_nested_json_variable(environment: pytest.MonkeyPatch) -> None:
    """The whole of it may stand in one variable as JSON, where $schema means nothing."""
    environment.setenv("TRAIN_STORE", '{"$schema": "x", "protocol": "tcp", "chunk_bytes": "64mb"}')
    assert (Nested().store.protocol, Nested().store.chunk_bytes) == ("tcp", 64 << 20)


def test_nested_argument_is_strongest(environment: pytest.MonkeyPatch) -> None:
    """An argument of the application is over its variable."""
    environment.setenv("TRAIN_STORE__PROTOCOL", "tcp")
    assert Nested.model_validate({"store": {"protocol": "cxi"}}).store.protocol == "cxi"


@pytest.mark.parametrize("empty", ["", " "])
def test_nested_empty_is_unset(environment: pytest.MonkeyPatch, empty: str) -> None:
    """Empty means unset inside of another model too."""
    environment.setenv("MOONCAKE_PROTOCOL", "tcp")
    environment.setenv("TRAIN_STORE__PROTOCOL", empty)
    assert Nested().store.protocol == "tcp"


def test_nested_by_the_command_line_of_pydantic(environment: pytest.MonkeyPatch) -> None:
    """pydantic-settings' own command line reaches the nested fields."""
    environment.setenv("MOONCAKE_PROTOCOL", "efa")
    settings = CliApp.run(Nested, cli_args=["--epochs", "3", "--store.protocol", "tcp"])
    assert (settings.epochs, settings.store.protocol) == (3, "tcp")


@pytest.mark.parametrize("given", [{"protocol": "tcp"}, {}], ids=["dictionary", "nothing"])
def test_validating_reads_the_sources(environment: pytest.MonkeyPatch, given: dict[str, str]) -> None:
    """model_validate of a dictionary, a plain model around it, and JSON all read the sources below."""
    environment.setenv("MOONCAKE_PROTOCOL", "efa")

    class Plain(BaseModel):
        store: StoreSettings

    expected = given.get("protocol", "efa")
    assert StoreSettings.model_validate(given).protocol == expected
    assert StoreSettings.model_validate_json(json.dumps(given)).protocol == expected
    assert Plain.model_validate({"store": given}).store.protocol == expected
    assert Plain.model_validate({"store": given}).store.master_server_address == MASTER


def test_nested_mistakes_have_their_place(environment: pytest.MonkeyPatch) -> None:
    """Every mistake in the nested fields is in one ValidationError, at its place, in our words, without the input."""
    environment.setenv("TRAIN_STORE", '{"protocol": "rmda", "protocl": 1}')
    environment.setenv("TRAIN_STORE__METADATA_SERVER", "http://u:hunter2@h:8080/a b")
    with pytest.raises(ValidationError) as refusal:
        Nested()
    places = [error["loc"] for error in refusal.value.errors()]
    assert places == [("store", "metadata_server"), ("store", "protocol"), ("store", "protocl")]
    assert "rmda is not a protocol of Mooncake Store" in str(refusal.value)
    assert "hunter2" not in str(refusal.value)


def test_nested_round_trip() -> None:
    """An application's settings pickle, print no password, and come back from their own dump."""
    store = {"protocol": "tcp", "metadata_server": "http://u:hunter2@h:8080/metadata"}
    settings = Nested.model_validate({"store": store})
    assert pickle.loads(pickle.dumps(settings)) == settings
    assert Nested.model_validate(settings.model_dump()) == settings
    assert "hunter2" not in repr(settings)


def test_a_mapping_field_is_checked_by_the_rules(environment: pytest.MonkeyPatch) -> None:
    """A mapping in the application's settings goes into resolve_store_config, which runs the rules on it."""

    class Trainer(BaseSettings):
        model_config = SettingsConfigDict(env_prefix="TRAIN_")
        store: dict[str, Any] = {}

    environment.setenv("TRAIN_STORE", '{"protocol": "tcp", "global_segment_size": "2gb"}')
    resolution = resolve_store_config(Trainer().store, topology=ONE_NODE)
    assert resolution.settings.global_segment_size == 2 << 30
    assert resolution.origin("protocol").source is Source.CLI
    assert resolution.origin("master_server_address").spot == "MOONCAKE_MASTER"


# pydantic-settings: a subclass


def test_subclass_has_both_kinds_of_fields(environment: pytest.MonkeyPatch) -> None:
    """Our fields come from MOONCAKE_*, whatever the subclass's prefix is; its own come from its own variables."""
    environment.setenv("MOONCAKE_PROTOCOL", "tcp")
    environment.setenv("TRAIN_PROTOCOL", "efa")
    environment.setenv("TRAIN_EPOCHS", "7")
    environment.setenv("RNG_SEED", "11")
    settings = Extended()
    assert (settings.protocol, settings.epochs, settings.run_name, settings.seed) == ("tcp", 7, "unnamed", 11)


def test_subclass_arguments_are_strongest(environment: pytest.MonkeyPatch) -> None:
    """An argument is over a variable for the own fields too, and an empty one is a value there."""
    environment.setenv("TRAIN_EPOCHS", "7")
    environment.setenv("TRAIN_RUN_NAME", "nightly")
    settings = Extended(epochs=3, run_name="")
    assert (settings.epochs, settings.run_name) == (3, "")


def test_subclass_reads_a_dotenv_file_for_its_own_fields(tmp_path: Path) -> None:
    """A .env file fills the own fields and none of the table: there is one way to each of those."""
    (tmp_path / ".env").write_text("TRAIN_EPOCHS=5\nMOONCAKE_PROTOCOL=tcp\nTRAIN_PROTOCOL=tcp\nprotocol=tcp\nOTHER=1\n")

    class WithFile(Extended):
        model_config = SettingsConfigDict(env_file=tmp_path / ".env")

    assert (WithFile().epochs, WithFile().protocol) == (5, "rdma")


def test_subclass_refuses_what_is_no_field() -> None:
    """Unknown arguments are refused as before."""
    with pytest.raises(ValidationError, match="protocl"):
        Extended.model_validate({"protocl": "tcp"})


def test_subclass_does_not_declare_a_field_anew() -> None:
    """A field of the table that is declared anew would lose its variable; the class is refused when it is made."""
    with pytest.raises(TypeError, match="Anew declares protocol anew; give it a value as an argument"):

        class Anew(StoreSettings):
            protocol: str = "tcp"


# argparse


def test_three_lines_for_argparse() -> None:
    """A trainer's parser takes the flags beside its own, and the text goes into resolve_store_config as it is."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float)
    add_object_store_arguments(parser)
    args = parser.parse_args(["--lr", "1e-6", "--mooncake-store-init-kwargs", '{"protocol": "tcp"}'])
    resolution = resolve_store_config(
        args.mooncake_store_init_kwargs, replica_num=args.mooncake_replica_num, topology=ONE_NODE
    )
    assert args.object_store_backend == "ray"
    assert resolution.origin("protocol").spot == "--mooncake-store-init-kwargs"
    assert resolution.settings.protocol == "tcp"


# Ray

IN_RAY = """
import json, os, ray
from mooncake_config import ConfigError, resolve_store_config

@ray.remote
def same(resolution):
    return resolution, resolution.setup_kwargs()

@ray.remote
def resolved():
    return resolve_store_config()

@ray.remote
def refused():
    resolve_store_config({"protocol": "rmda"})

os.environ.pop("MOONCAKE_MASTER", None)
ray.init("local", num_cpus=1, include_dashboard=False, object_store_memory=80_000_000, log_to_driver=False)
here = resolve_store_config({"protocol": "tcp", "master_server_address": "10.0.0.5:50051", "local_buffer_size": "2gb"})
back, setup = ray.get(same.remote(here))
there = ray.get(resolved.options(runtime_env=here.to_runtime_env()).remote())
try:
    ray.get(refused.remote())
except ConfigError as error:
    rules = [finding.rule for finding in error.cause.findings]
origins = [there.origin(name).spot for name in ("protocol", "local_buffer_size", "global_segment_size")]
print(json.dumps([back == here, setup == here.setup_kwargs(), there.settings == here.settings, origins, rules]))
ray.shutdown()
"""


@pytest.mark.ray
def test_ray() -> None:
    """A resolution goes to a real task and back unchanged; to_runtime_env gives a task the same settings; a refusal
    arrives as a ConfigError with its findings."""
    done = subprocess.run([sys.executable, "-c", IN_RAY], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    back, setup, settings, origins, rules = json.loads(done.stdout.splitlines()[-1])
    assert (back, setup, settings) == (True, True, True)
    assert origins == ["MOONCAKE_PROTOCOL", "MOONCAKE_LOCAL_BUFFER_SIZE", "default"]
    assert "unknown-protocol" in rules


# Logging


def test_findings_log_as_one_record(caplog: pytest.LogCaptureFixture) -> None:
    """A finding is one line as text, and a dictionary of plain values for a structured log."""
    resolution = resolve_store_config({"protocol": ""}, topology=ONE_NODE)
    (finding,) = resolution.findings
    with caplog.at_level(logging.WARNING):
        logging.getLogger("trainer").warning("%s", finding, extra={"finding": asdict(finding)})
    (record,) = caplog.records
    assert record.getMessage().startswith("MC006 warning protocol: ")
    assert json.loads(json.dumps(record.__dict__["finding"]))["rule"] == "empty-claim"
