"""Sources: one layer each, reading claims from the world that it is given."""

from __future__ import annotations

import os

import pytest
from pydantic_settings import BaseSettings, InitSettingsSource

from mooncake_config.provenance import Claim, Origin, Source
from mooncake_config.ray_node import NodeAddress
from mooncake_config.settings import FIELDS, StoreSettings
from mooncake_config.sources import (
    DefaultSource,
    Environment,
    EnvironmentSource,
    InitKwargsSource,
    LayerSource,
    RayNodeSource,
    World,
    field_specs,
    mapping_claims,
    real_environment,
)

NODE = NodeAddress("10.0.0.7")
VARIABLES = {spec.wiring.variable: f"text of {spec.name}" for spec in FIELDS if spec.wiring.variable}


def world(init_kwargs: dict[str, object] | None = None, environ: dict[str, str] | None = None) -> World:
    """A world with these init kwargs and variables, on node 10.0.0.7."""
    return World(StoreSettings, mapping_claims(init_kwargs or {}), Environment(environ or {}), NODE)


def test_order_of_the_layers() -> None:
    """The precedence is the order in which the settings class gives its sources."""
    asking = world()
    ordered = StoreSettings.settings_customise_sources(StoreSettings, asking, asking, asking, asking)
    assert [type(source) for source in ordered] == [InitKwargsSource, EnvironmentSource, RayNodeSource, DefaultSource]


def test_init_kwargs() -> None:
    """The layer of init kwargs claims what they hold, empty values too; as values they are silence."""
    source = InitKwargsSource(StoreSettings, world({"protocol": "tcp", "device_name": "", "chunk_bytes": None}))
    assert set(source.claims) == {"protocol", "device_name", "chunk_bytes"}
    assert source() == {"protocol": "tcp"}


def test_init_kwargs_that_are_no_field() -> None:
    """A key that is no field is handed over even if it is empty, so that the settings refuse it."""
    assert InitKwargsSource(StoreSettings, world({"odd": None, "protocol": ""}))() == {"odd": None}


def test_environment() -> None:
    """Each of the seven variables claims its field, and is its origin."""
    source = EnvironmentSource(StoreSettings, world(environ={**VARIABLES, "PROTOCOL": "x", "mooncake_master": "y"}))
    assert {spec.name for spec in FIELDS if spec.wiring.variable} == set(source.claims)
    for spec in FIELDS:
        if spec.wiring.variable:
            assert source.claims[spec.name] == Claim(f"text of {spec.name}", Origin(Source.ENV, spec.wiring.variable))
    assert source()["protocol"] == "text of protocol"


@pytest.mark.parametrize("text", ["", " ", "\t\n"])
def test_blank_variable(text: str) -> None:
    """A blank variable is a claim for the ledger and silence as a value."""
    source = EnvironmentSource(StoreSettings, world(environ={"MOONCAKE_PROTOCOL": text}))
    assert source.claims["protocol"].raw == text
    assert source() == {}


def test_variable_of_a_launch_line() -> None:
    """A variable that a launch line sets is edited there."""
    environment = Environment(
        {"MOONCAKE_PROTOCOL": "tcp"}, {"MOONCAKE_PROTOCOL": "--runtime-env-json MOONCAKE_PROTOCOL"}
    )
    source = EnvironmentSource(StoreSettings, World(StoreSettings, {}, environment, NODE))
    assert source.claims["protocol"].origin.spot == "--runtime-env-json MOONCAKE_PROTOCOL"


def test_ray_node() -> None:
    """The Ray node IP claims the host name and nothing else; a guess says so."""
    assert RayNodeSource(StoreSettings, world())() == {"local_hostname": "10.0.0.7"}
    guess = World(StoreSettings, {}, Environment({}), NodeAddress("127.0.0.1", guessed=True))
    claim = RayNodeSource(StoreSettings, guess).claims["local_hostname"]
    assert claim.origin == Origin(Source.RAY, "Ray node IP (guess)")


def test_defaults() -> None:
    """The defaults are claims as they are written; a field without one is not claimed, an empty one is a value."""
    source = DefaultSource(StoreSettings, world())
    assert source() == {
        "metadata_server": "P2PHANDSHAKE",
        "protocol": "rdma",
        "device_name": "",
        "global_segment_size": "8gb",
        "local_buffer_size": "32gb",
        "chunk_bytes": None,
    }
    assert {claim.origin for claim in source.claims.values()} == {Origin(Source.DEFAULT, "default")}


def test_field_value() -> None:
    """A layer answers for one field as pydantic-settings asks, with None where it is silent."""
    source = InitKwargsSource(StoreSettings, world({"protocol": "tcp", "device_name": ""}))
    info = StoreSettings.model_fields["protocol"]
    assert source.get_field_value(info, "protocol") == ("tcp", "protocol", False)
    assert source.get_field_value(info, "device_name") == (None, "device_name", False)
    assert source.get_field_value(info, "chunk_bytes") == (None, "chunk_bytes", False)


def test_layer_must_read() -> None:
    """A layer says what it reads."""
    with pytest.raises(NotImplementedError):
        LayerSource(StoreSettings, world())


def test_world_has_no_values() -> None:
    """A world that is handed over as a source has no values of its own, and is the one that is read."""
    here = world({"protocol": "tcp"})
    assert World.asked_through(here) is here
    assert here() == {}
    assert here.get_field_value(StoreSettings.model_fields["protocol"], "protocol") == (None, "protocol", False)


def test_world_around_keyword_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a given world it is the process's own: its environment, its node, and the keyword arguments."""
    monkeypatch.setenv("MOONCAKE_PROTOCOL", "tcp")
    around = World.asked_through(InitSettingsSource(StoreSettings, init_kwargs={"chunk_bytes": 1, "$schema": "x"}))
    assert around.init_kwargs == mapping_claims({"chunk_bytes": 1})
    assert around.environment.variables["MOONCAKE_PROTOCOL"] == "tcp"
    assert around.node.address


def test_missing_environment_is_the_process_s_own() -> None:
    """Only a missing environment becomes the process's own; an empty one is empty."""
    assert real_environment(None) is os.environ
    assert real_environment({}) == {}


def test_table_is_read_off_a_class() -> None:
    """The table of a class without wiring is empty, and a table is read once."""

    class Bare(BaseSettings):
        anything: str = ""

    assert field_specs(Bare) == ()
    assert field_specs(StoreSettings) is field_specs(StoreSettings)


@pytest.mark.parametrize("name", ["MOONCAKE_\x1b[2J", "http://u:hunter2@h_DEVICE", "MOONCAKE_" + "X" * 5000, ""])
def test_odd_variable_names(name: str) -> None:
    """A name that no shell would take is a place to edit that can be shown."""
    environment = Environment({name: "secret"})
    spot = environment.origin(name).spot
    assert spot.isprintable()
    assert len(spot) <= 200
    assert "hunter2" not in spot + repr(environment)
    assert "secret" not in repr(environment)
