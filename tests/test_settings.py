"""StoreSettings: the table of fields, and an ordinary pydantic-settings model over our sources."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import product
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BeforeValidator, ValidationError
from strategies import field_texts, json_values

from mooncake_config.process import Backend
from mooncake_config.provenance import Ledger, Source, stack
from mooncake_config.ray_node import NodeAddress
from mooncake_config.resolve import resolve_process
from mooncake_config.settings import FIELDS, StoreSettings
from mooncake_config.sources import Environment, LayerSource, Wiring, World, mapping_claims
from mooncake_config.topology import Role, Topology

MASTER = "10.0.0.5:50051"
VARIABLES = {spec.name: spec.wiring.variable for spec in FIELDS if spec.wiring.variable}


def test_table() -> None:
    """The table has the eight fields with their variables and defaults, as the reference document lists them."""
    assert {spec.name: (spec.wiring.variable, spec.wiring.default) for spec in FIELDS} == {
        "master_server_address": ("MOONCAKE_MASTER", None),
        "local_hostname": ("MOONCAKE_LOCAL_HOSTNAME", None),
        "metadata_server": ("MOONCAKE_TE_META_DATA_SERVER", "P2PHANDSHAKE"),
        "protocol": ("MOONCAKE_PROTOCOL", "rdma"),
        "device_name": ("MOONCAKE_DEVICE", ""),
        "global_segment_size": ("MOONCAKE_GLOBAL_SEGMENT_SIZE", "8gb"),
        "local_buffer_size": ("MOONCAKE_LOCAL_BUFFER_SIZE", "32gb"),
        "chunk_bytes": (None, None),
    }


def test_names_of_the_engine() -> None:
    """Seven fields are keys of Mooncake's setup, two of them under another name; the chunk size is none."""
    assert {spec.name: spec.wiring.engine for spec in FIELDS if spec.wiring.engine != spec.name} == {
        "master_server_address": "master_server_addr",
        "device_name": "rdma_devices",
        "chunk_bytes": None,
    }


@pytest.mark.parametrize(
    ("trait", "names"),
    [
        ("node_local", {"local_hostname", "device_name"}),
        ("from_ray", {"local_hostname"}),
        ("agreed", {"master_server_address", "metadata_server", "protocol"}),
        ("address", {"master_server_address", "local_hostname", "metadata_server"}),
        ("contributed", {"global_segment_size"}),
    ],
)
def test_traits(trait: str, names: set[str]) -> None:
    """Which fields belong to a node, come from Ray, must be agreed on, hold addresses, or are only contributed."""
    assert {spec.name for spec in FIELDS if getattr(spec.wiring, trait)} == names


def test_each_default_and_example_is_a_value() -> None:
    """Every default and every example of a field is accepted by its own parser."""
    for spec in FIELDS:
        if spec.wiring.default is not None:
            assert spec.parse(spec.wiring.default) is not None
        for example in spec.info.examples or ():
            assert spec.parse(example) is not None


# The precedence, field by field, in every combination of sources that speak.

SPOKEN: dict[str, dict[str, str | None]] = {
    "master_server_address": {"cli": "10.0.0.1:1", "env": "10.0.0.2:2"},
    "local_hostname": {"cli": "10.0.0.1", "env": "10.0.0.2", "ray": "10.0.0.3"},
    "metadata_server": {"cli": "etcd://a:1", "env": "etcd://b:2", "default": "P2PHANDSHAKE"},
    "protocol": {"cli": "tcp", "env": "efa", "default": "rdma"},
    "device_name": {"cli": "mlx5_1", "env": "mlx5_2", "default": ""},
    "global_segment_size": {"cli": "1gb", "env": "2gb", "default": "8gb"},
    "local_buffer_size": {"cli": "1gb", "env": "2gb", "default": "32gb"},
    "chunk_bytes": {"cli": "64mb", "default": None},
}
"""What each source says of each field, strongest first."""


def speaking(field: str) -> Iterator[tuple[str, frozenset[str]]]:
    """Every combination of sources that speak on a field, the default always among them where there is one."""
    silent_or_not = [(True,) if source == "default" else (False, True) for source in SPOKEN[field]]
    for choice in product(*silent_or_not):
        yield field, frozenset(source for source, speaks in zip(SPOKEN[field], choice, strict=True) if speaks)


COMBINATIONS = [row for field in SPOKEN for row in speaking(field)]


def settle(world: World, settings_cls: type[StoreSettings] = StoreSettings) -> tuple[StoreSettings | None, Ledger]:
    """The settings of a world, None where one is missing or malformed, and the ledger."""
    ordered = settings_cls.settings_customise_sources(settings_cls, world, world, world, world)
    sources = tuple(source for source in ordered if isinstance(source, LayerSource))
    ledger = stack(source.claims for source in sources)
    try:
        return settings_cls(_build_sources=(sources, {})), ledger
    except ValidationError:
        return None, ledger


@pytest.mark.parametrize(
    ("field", "speak"),
    COMBINATIONS,
    ids=[f"{name}-{'+'.join(sorted(speak)) or 'nobody'}" for name, speak in COMBINATIONS],
)
def test_precedence(field: str, speak: frozenset[str]) -> None:
    """Of the sources that speak on a field the strongest wins, and the others are listed in order."""
    says = {source: text for source, text in SPOKEN[field].items() if source in speak}
    init_kwargs: dict[str, object] = {"master_server_address": MASTER} if field != "master_server_address" else {}
    init_kwargs |= {field: says["cli"]} if "cli" in says else {}
    variable = VARIABLES.get(field, "")
    node = NodeAddress(says.get("ray", "" if field == "local_hostname" else "10.0.0.9") or "")
    world = World(
        StoreSettings,
        mapping_claims(init_kwargs),
        Environment({variable: says["env"] or ""} if "env" in says else {}),
        node,
    )
    settings, ledger = settle(world)
    claims = [(claim.origin.source.value, claim.raw) for claim in ledger.claims.get(field, ())]
    assert claims == list(says.items())
    if not says:
        assert settings is None
        return
    spec = next(spec for spec in FIELDS if spec.name == field)
    assert settings is not None
    assert getattr(settings, field) == spec.parse(claims[0][1])


class Everywhere(StoreSettings):
    """A settings class with a field that all four sources may claim."""

    anywhere: Annotated[str, Wiring("ANYWHERE", from_ray=True, default="from default"), BeforeValidator(str)]


class Undecided(StoreSettings):
    """The same without a default."""

    anywhere: Annotated[str, Wiring("ANYWHERE", from_ray=True, has_default=False), BeforeValidator(str)]


@pytest.mark.parametrize("speak", list(product((False, True), repeat=4)))
def test_sixteen_combinations(speak: tuple[bool, bool, bool, bool]) -> None:
    """Of four sources in all sixteen combinations the strongest that speaks wins, and no claim is lost."""
    cli, env, ray, default = speak
    init_kwargs = {"master_server_address": MASTER, "local_hostname": "h", **({"anywhere": "from cli"} if cli else {})}
    environment = Environment({"ANYWHERE": "from env"} if env else {})
    world = World(StoreSettings, mapping_claims(init_kwargs), environment, NodeAddress("from ray" if ray else ""))
    settings_cls = Everywhere if default else Undecided
    settings, ledger = settle(world, settings_cls)
    expected = [f"from {name}" for name, speaks in zip(("cli", "env", "ray", "default"), speak, strict=True) if speaks]
    assert [claim.raw for claim in ledger.claims.get("anywhere", ())] == expected
    winner = ledger.winner("anywhere")
    assert (winner.origin.source.value if winner else None) == (expected[0].removeprefix("from ") if expected else None)
    assert getattr(settings, "anywhere", None) == (expected[0] if expected else None)


def test_equal_to_the_default() -> None:
    """A claim that equals the default is a claim of its own source."""
    world = World(
        StoreSettings,
        mapping_claims({"protocol": "rdma"}),
        Environment({"MOONCAKE_PROTOCOL": "rdma"}),
        NodeAddress("h"),
    )
    _, ledger = settle(world)
    assert [claim.origin.source for claim in ledger.claims["protocol"]] == [Source.CLI, Source.ENV, Source.DEFAULT]


@pytest.mark.parametrize("empty", ["", " ", None])
def test_empty_falls_through(empty: str | None) -> None:
    """An empty claim of one source leaves the field to the next."""
    init_kwargs = {"master_server_address": MASTER, "protocol": empty, "chunk_bytes": empty, "local_hostname": empty}
    settings, ledger = settle(
        World(StoreSettings, mapping_claims(init_kwargs), Environment({"MOONCAKE_PROTOCOL": "tcp"}), NodeAddress("h"))
    )
    assert settings is not None
    assert (settings.protocol, settings.chunk_bytes, settings.local_hostname) == ("tcp", None, "h")
    assert [name for name, _ in ledger.empty] == ["protocol", "chunk_bytes", "local_hostname"]


def test_zero_is_a_claim() -> None:
    """Zero is a value, not an absence."""
    settings, _ = settle(
        World(
            StoreSettings,
            mapping_claims({"master_server_address": MASTER, "global_segment_size": 0}),
            Environment({}),
            NodeAddress("h"),
        )
    )
    assert settings is not None
    assert settings.global_segment_size == 0


# The model alone


def test_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model alone reads its keyword arguments, the variables, this host, and the defaults."""
    monkeypatch.setenv("MOONCAKE_MASTER", MASTER)
    monkeypatch.setenv("MOONCAKE_PROTOCOL", "TCP")
    settings = StoreSettings(protocol="efa", global_segment_size="2gb")
    assert settings.master_server_address == MASTER
    assert settings.protocol == "efa"
    assert settings.global_segment_size == 2 << 30
    assert settings.local_buffer_size == 32 << 30
    assert settings.local_hostname
    assert settings.chunk_bytes is None


def test_alone_without_a_master() -> None:
    """The model alone refuses a missing master as pydantic does."""
    with pytest.raises(ValidationError, match="master_server_address"):
        StoreSettings()


@pytest.mark.parametrize("keywords", [{"protocl": "tcp"}, {"rdma_devices": "x"}, {"odd": None}])
def test_alone_with_an_unknown_field(keywords: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    """A keyword argument that is no field is refused, also when it is empty."""
    monkeypatch.setenv("MOONCAKE_MASTER", MASTER)
    with pytest.raises(ValidationError, match=next(iter(keywords))):
        StoreSettings(**keywords)  # type: ignore[arg-type]  # any keywords


def test_value_errors_are_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """A malformed value is refused with the message and the fix that a finding has, and with no password."""
    monkeypatch.setenv("MOONCAKE_MASTER", "http://u:hunter2@10.0.0.5:50051")
    with pytest.raises(ValidationError) as refusal:
        StoreSettings()
    assert "the master is spoken to without one" in str(refusal.value)
    assert "Fix: write 10.0.0.5:50051" in str(refusal.value)
    assert "hunter2" not in str(refusal.value)
    assert "hunter2" not in repr(refusal.value)


def test_stray_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable but the seven is a value, not even one of a field's name."""
    monkeypatch.setenv("MOONCAKE_MASTER", MASTER)
    for name in ("PROTOCOL", "protocol", "DEVICE_NAME", "mooncake_protocol", "CHUNK_BYTES", "MASTER_SERVER_ADDRESS"):
        monkeypatch.setenv(name, "tcp")
    settings = StoreSettings()
    assert (settings.protocol, settings.device_name, settings.chunk_bytes) == ("rdma", "", None)


def test_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings do not change."""
    monkeypatch.setenv("MOONCAKE_MASTER", MASTER)
    settings = StoreSettings()
    with pytest.raises(ValidationError, match="frozen"):
        settings.protocol = "tcp"  # type: ignore[misc]  # wrong on purpose


def test_password_is_in_the_attribute_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A password is in the attribute; repr and str hide it. Settings pickle."""
    monkeypatch.setenv("MOONCAKE_MASTER", MASTER)
    monkeypatch.setenv("MOONCAKE_TE_META_DATA_SERVER", "http://u:hunter2@h:8080/metadata")
    settings = StoreSettings()
    assert "hunter2" in settings.metadata_server
    assert "hunter2" not in repr(settings) + str(settings)
    assert pickle.loads(pickle.dumps(settings)) == settings


# StoreSettings() and resolving: one merge.


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """A block in which the process has these variables."""
    with pytest.MonkeyPatch.context() as patch:
        for name in VARIABLES.values():
            patch.delenv(name, raising=False)
        for name, text in variables.items():
            patch.setenv(name, text)
        yield


def texts() -> st.SearchStrategy[str]:
    """Texts that a variable can hold."""
    any_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
    return st.one_of(field_texts().filter(lambda text: "\0" not in text and text.isprintable()), any_text)


@given(
    st.dictionaries(st.sampled_from([spec.name for spec in FIELDS]), json_values(), max_size=4),
    st.dictionaries(st.sampled_from(sorted(VARIABLES.values())), texts(), max_size=4),
)
def test_model_alone_and_resolving_agree(mapping: dict[str, object], variables: dict[str, str]) -> None:
    """Of any mapping of fields and any environment the model alone makes what resolving makes, or both refuse."""
    with environment(variables):
        process, resolved = resolve_process(
            mapping,
            backend=Backend.MOONCAKE,
            role=Role.TRAINER,
            replica_num=1,
            topology=Topology(),
            environment=Environment(variables),
        )
        try:
            alone = StoreSettings(**mapping)  # type: ignore[arg-type]  # any mapping
        except ValidationError as refusal:
            assert resolved is None
            refused = {error["loc"][0] for error in refusal.errors()}
            malformed = {name for fault in process.faults if fault.offence != "empty-claim" for name in fault.fields}
            missing = {name for name in ("master_server_address",) if not process.winner(name)}
            assert refused == malformed | missing
            return
    assert alone == resolved
    assert alone.model_dump() == process.values
