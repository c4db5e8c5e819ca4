"""Our settings inside a configuration of Hydra and OmegaConf: its mappings are init kwargs."""

from __future__ import annotations

from pathlib import Path

import hydra
import pytest
from omegaconf import DictConfig, OmegaConf

from mooncake_config import ConfigError, Finding, Topology, resolve_store_config

MASTER = "10.0.0.5:50051"
ONE_NODE = Topology(num_nodes=1, node_ip="10.0.0.7", local_rank=0, processes_per_node=1)


def composed(folder: Path, text: str, *overrides: str) -> DictConfig:
    """What Hydra makes of a config file and overrides of the command line."""
    (folder / "config.yaml").write_text(text)
    with hydra.initialize_config_dir(version_base="1.3", config_dir=str(folder)):
        return hydra.compose("config", overrides=list(overrides))


def found(config: DictConfig) -> dict[str, Finding]:
    """The findings of a config that is refused, by their rules."""
    with pytest.raises(ConfigError) as refusal:
        resolve_store_config(config, topology=ONE_NODE)
    return {finding.rule: finding for finding in refusal.value.findings}


def test_hydra(tmp_path: Path) -> None:
    """A part of Hydra's config is a mapping of init kwargs; interpolations and overrides have happened."""
    text = "head: 10.0.0.5\nsize: 2gb\nstore:\n  master_server_address: ${head}:50051\n  global_segment_size: ${size}\n"
    config = composed(tmp_path, text, "size=4gb", "+store.protocol=tcp", "+store.chunk_bytes=67108864")
    resolution = resolve_store_config(config.store, topology=ONE_NODE)
    settings = resolution.settings
    assert (settings.master_server_address, settings.protocol) == (MASTER, "tcp")
    assert (settings.global_segment_size, settings.chunk_bytes) == (4 << 30, 64 << 20)
    assert resolution.origin("protocol").spot == "init kwargs"


def test_hydra_missing_value(tmp_path: Path) -> None:
    """??? is a value that somebody has to give: a finding at the field, with every other one."""
    config = composed(tmp_path, "store:\n  master_server_address: ???\n  protocol: rmda\n")
    findings = found(config.store)
    assert set(findings) == {"text-of-nothing", "unknown-protocol", "missing-master"}
    finding = findings["text-of-nothing"]
    assert finding.fields == ("master_server_address",)
    assert finding.message == (
        "the value of master_server_address cannot be read: Missing mandatory value: store.master_server_address."
    )
    assert finding.fix == "give it a value, or leave the key out."


def test_hydra_broken_interpolation(tmp_path: Path) -> None:
    """An interpolation that leads nowhere is a finding at its field."""
    config = composed(tmp_path, "store:\n  protocol: ${cluster.protocol}\n")
    finding = found(config.store)["text-of-nothing"]
    assert finding.fields == ("protocol",)
    assert "Interpolation key 'cluster.protocol' not found" in finding.message


@pytest.mark.parametrize(
    "value", ["{name: '${nowhere}'}", "['${nowhere}']", "{name: '???'}", "[{name: ['${nowhere}']}]"]
)
def test_hydra_broken_interpolation_inside_a_wrong_value(value: str, tmp_path: Path) -> None:
    """A list or an object is of the wrong type, whether what is in it can be read or not."""
    config = composed(tmp_path, f"store:\n  protocol: {value}\n  device_name: {value}\n")
    assert found(config.store)["wrong-type"].fields == ("device_name",)


def test_hydra_a_key_too_many(tmp_path: Path) -> None:
    """An unknown key of the config is a finding, as it is in JSON, even if its value is missing."""
    config = composed(tmp_path, "store:\n  protocl: ???\n")
    assert found(config.store)["unknown-key"].fields == ("protocol",)


def test_omegaconf_container(tmp_path: Path) -> None:
    """What OmegaConf.to_container gives is a mapping as well; ??? stays a text in it, and is no value."""
    config = composed(tmp_path, "head: 10.0.0.5\nstore:\n  master_server_address: ${head}:50051\n  protocol: ???\n")
    container = OmegaConf.to_container(config, resolve=True)
    assert isinstance(container, dict)
    with pytest.raises(ConfigError) as refusal:
        resolve_store_config(container["store"], topology=ONE_NODE)
    assert refusal.value.findings[0].rule == "text-of-nothing"
