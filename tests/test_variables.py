"""Variables that are no value: which are near misses, of what, and which are somebody else's real names."""

from __future__ import annotations

import importlib.util
import re
import string
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooncake_config.settings import FIELDS
from mooncake_config.variables import (
    ELSEWHERE,
    FOREIGN,
    FOREIGN_SWITCHES,
    READ,
    is_bare,
    is_known_elsewhere,
    is_service_link,
    kubernetes_master,
    meant_by,
    related_variables,
)

SEVEN = sorted(READ)
NEAR: dict[str, str] = {
    # a word added, another word for the same thing
    "MOONCAKE_MASTER_ADDR": "MOONCAKE_MASTER",
    "MOONCAKE_MASTER_ADDRESS": "MOONCAKE_MASTER",
    "MOONCAKE_MASTER_HOST": "MOONCAKE_MASTER",
    "MOONCAKE_MASTER_HOSTNAME": "MOONCAKE_MASTER",
    "MOONCAKE_MASTER_IP": "MOONCAKE_MASTER",
    "MOONCAKE_MASTER_ENDPOINT": "MOONCAKE_MASTER",
    "MOONCAKE_MASTER_URL": "MOONCAKE_MASTER",
    "MOONCAKE_MASTER_PORT": "MOONCAKE_MASTER",
    "MOONCAKE_MASTER_SERVER": "MOONCAKE_MASTER",
    "MOONCAKE_MASTER_SERVER_ADDR": "MOONCAKE_MASTER",
    "MOONCAKE_MASTER_SERVER_ADDRESS": "MOONCAKE_MASTER",
    "MOONCAKE_MASTER_RPC_ADDRESS": "MOONCAKE_MASTER",
    "MOONCAKE_STORE_MASTER": "MOONCAKE_MASTER",
    "MOONCAKE_METADATA_SERVER": "MOONCAKE_TE_META_DATA_SERVER",
    "MOONCAKE_METADATA": "MOONCAKE_TE_META_DATA_SERVER",
    "MOONCAKE_METADATA_URL": "MOONCAKE_TE_META_DATA_SERVER",
    "MOONCAKE_TE_METADATA_SERVER": "MOONCAKE_TE_META_DATA_SERVER",
    "MOONCAKE_META_DATA_SERVER": "MOONCAKE_TE_META_DATA_SERVER",
    "MOONCAKE_TE_META_SERVER": "MOONCAKE_TE_META_DATA_SERVER",
    "MOONCAKE_TE_METADATA": "MOONCAKE_TE_META_DATA_SERVER",
    "MOONCAKE_ETCD_METADATA_SERVER": "MOONCAKE_TE_META_DATA_SERVER",
    "MOONCAKE_DEVICE_NAME": "MOONCAKE_DEVICE",
    "MOONCAKE_DEVICES": "MOONCAKE_DEVICE",
    "MOONCAKE_RDMA_DEVICE": "MOONCAKE_DEVICE",
    "MOONCAKE_RDMA_DEVICES": "MOONCAKE_DEVICE",
    "MOONCAKE_IB_DEVICE": "MOONCAKE_DEVICE",
    "MOONCAKE_IB_DEVICE_NAME": "MOONCAKE_DEVICE",
    "MOONCAKE_NIC": "MOONCAKE_DEVICE",
    "MOONCAKE_HCA": "MOONCAKE_DEVICE",
    "MOONCAKE_HOSTNAME": "MOONCAKE_LOCAL_HOSTNAME",
    "MOONCAKE_LOCAL_HOST": "MOONCAKE_LOCAL_HOSTNAME",
    "MOONCAKE_LOCAL_IP": "MOONCAKE_LOCAL_HOSTNAME",
    "MOONCAKE_LOCAL_ADDRESS": "MOONCAKE_LOCAL_HOSTNAME",
    "MOONCAKE_LOCAL_HOST_NAME": "MOONCAKE_LOCAL_HOSTNAME",
    "MOONCAKE_NODE_IP": "MOONCAKE_LOCAL_HOSTNAME",
    "MOONCAKE_NODE_IP_ADDRESS": "MOONCAKE_LOCAL_HOSTNAME",
    "MOONCAKE_TRANSFER_PROTOCOL": "MOONCAKE_PROTOCOL",
    "MOONCAKE_PROTO": "MOONCAKE_PROTOCOL",
    "MOONCAKE_TRANSPORT": "MOONCAKE_PROTOCOL",
    "MOONCAKE_STORE_PROTOCOL": "MOONCAKE_PROTOCOL",
    "MOONCAKE_GLOBAL_SEGMENT": "MOONCAKE_GLOBAL_SEGMENT_SIZE",
    "MOONCAKE_SEGMENT_SIZE": "MOONCAKE_GLOBAL_SEGMENT_SIZE",
    "MOONCAKE_SEGMENT_SIZE_GB": "MOONCAKE_GLOBAL_SEGMENT_SIZE",
    "MOONCAKE_GLOBAL_SEGMENT_SIZE_BYTES": "MOONCAKE_GLOBAL_SEGMENT_SIZE",
    "MOONCAKE_STORE_GB": "MOONCAKE_GLOBAL_SEGMENT_SIZE",
    "MOONCAKE_BUFFER_SIZE": "MOONCAKE_LOCAL_BUFFER_SIZE",
    "MOONCAKE_LOCAL_BUFFER": "MOONCAKE_LOCAL_BUFFER_SIZE",
    "MOONCAKE_LOCAL_BUFFER_GB": "MOONCAKE_LOCAL_BUFFER_SIZE",
    # two slips in a long name
    "MOONCAKE_LOCAL_HOSTNMAES": "MOONCAKE_LOCAL_HOSTNAME",
    "MOONCAKE_GLOBL_SEGMNT_SIZE": "MOONCAKE_GLOBAL_SEGMENT_SIZE",
    # the prefix
    "MOONCKE_MASTER": "MOONCAKE_MASTER",
    "MONCAKE_LOCAL_HOSTNAME": "MOONCAKE_LOCAL_HOSTNAME",
    "MOONCAKES_PROTOCOL": "MOONCAKE_PROTOCOL",
    "MOON_CAKE_DEVICE": "MOONCAKE_DEVICE",
    "MC_MASTER": "MOONCAKE_MASTER",
    "MC_MASTER_ADDR": "MOONCAKE_MASTER",
    "MC_METADATA_SERVER": "MOONCAKE_TE_META_DATA_SERVER",
    "MC_PROTOCOL": "MOONCAKE_PROTOCOL",
    "MC_DEVICE": "MOONCAKE_DEVICE",
    "MC_GLOBAL_SEGMENT_SIZE": "MOONCAKE_GLOBAL_SEGMENT_SIZE",
    # underscores
    "MOONCAKEMASTER": "MOONCAKE_MASTER",
    "MOONCAKE__MASTER": "MOONCAKE_MASTER",
    "MOONCAKE_MASTER_": "MOONCAKE_MASTER",
    "MOONCAKE_LOCALHOSTNAME": "MOONCAKE_LOCAL_HOSTNAME",
    "MOONCAKE_TE_METADATASERVER": "MOONCAKE_TE_META_DATA_SERVER",
    # case
    "mooncake_master": "MOONCAKE_MASTER",
    "Mooncake_Protocol": "MOONCAKE_PROTOCOL",
    "MOONCAKE_master": "MOONCAKE_MASTER",
    "mooncake_master_addr": "MOONCAKE_MASTER",
    "mooncake_devce": "MOONCAKE_DEVICE",
    "mc_master": "MOONCAKE_MASTER",
    # no prefix
    "LOCAL_HOSTNAME": "MOONCAKE_LOCAL_HOSTNAME",
    "PROTOCOL": "MOONCAKE_PROTOCOL",
    "protocol": "MOONCAKE_PROTOCOL",
    "DEVICE_NAME": "MOONCAKE_DEVICE",
    "MASTER_SERVER_ADDRESS": "MOONCAKE_MASTER",
    "METADATA_SERVER": "MOONCAKE_TE_META_DATA_SERVER",
    "GLOBAL_SEGMENT_SIZE": "MOONCAKE_GLOBAL_SEGMENT_SIZE",
    "local_buffer_size": "MOONCAKE_LOCAL_BUFFER_SIZE",
}

REAL = (
    # Mooncake's own
    *("MOONCAKE_HOST_ID", "MOONCAKE_TENANT_ID", "MOONCAKE_STORE_CHECKSUM", "MOONCAKE_OFFLOAD_FSDIR"),
    *("MOONCAKE_OFFLOAD_LOCAL_BUFFER_SIZE_BYTES", "MOONCAKE_AWS_SECRET_ACCESS_KEY", "MOONCAKE_EP_NUM_LOCAL_RANKS"),
    *("MOONCAKE_ENABLE_CLIENT_HTTP_SERVER", "MOONCAKE_NVME_KV_QUEUE_DEPTH", "MOONCAKE_DFS_ROOT_DIR"),
    # scripts
    *("MOONCAKE_LOG", "MOONCAKE_LOG_DIR", "MOONCAKE_HOME", "MOONCAKE_VERSION", "MOONCAKE_MASTER_LOG", "MOONCAKE_ROOT"),
)
ENGINE = (
    *("MC_FORCE_TCP", "MC_MS_AUTO_DISC", "MC_STORE_MEMCPY", "MC_TCP_BIND_ADDRESS", "MC_RPC_PROTOCOL", "MC_TCP_PROTO"),
    *("MC_METADATA_CLUSTER_ID", "MC_REDIS_PASSWORD", "MC_FORCE_TPC", "MC_IB_GID_INDEX"),
)
STRANGERS = (
    *("MOONCAKE_FLUX_CAPACITOR", "MOONCAKE_SERVICE", "MOONCAKE_SERVER", "MOONCAKE_PROTOTYPE", "MOONCAKE_MODE"),
    *(
        "MASTER_ADDR",
        "MASTER_PORT",
        "HOSTNAME",
        "DEVICE",
        "MASTER",
        "CUDA_VISIBLE_DEVICES",
        "OTHER_PROTOCOL",
        "MCFOO",
        "",
    ),
)


@pytest.mark.parametrize(("name", "variable"), NEAR.items())
def test_near_misses(name: str, variable: str) -> None:
    """A name that was meant for one of the seven is told which, and is kept as one that concerns Mooncake."""
    assert meant_by(name, "x") == variable
    assert related_variables({name: "x"}) == {name: "x"}


def slips(name: str) -> Iterator[str]:
    """Every name that is one slip of the hand away: a letter dropped, doubled, swapped, replaced or added."""
    letters = string.ascii_uppercase + string.digits + "_"
    for at, letter in enumerate(name):
        yield name[:at] + name[at + 1 :]
        yield name[:at] + letter + name[at:]
        yield name[:at] + name[at + 1 : at + 2] + letter + name[at + 2 :]
        yield name[:at] + letter.lower() + name[at + 1 :]
        for other in letters:
            yield name[:at] + other + name[at + 1 :]
            yield name[:at] + other + name[at:]
    yield from (name + other for other in letters)


@pytest.mark.parametrize("variable", SEVEN)
def test_every_slip_is_recognised(variable: str) -> None:
    """Each of the thousand names that are one slip away from a variable is recognised as that variable."""
    for name in sorted(set(slips(variable)) - {variable}):
        assert meant_by(name, "x") == variable, name
        assert name in related_variables({name: "x"}), name


@given(st.sampled_from(SEVEN), st.data())
def test_slips_within_a_long_name(variable: str, data: st.DataObject) -> None:
    """Two slips in a long name are still recognised, unless they make another known name of it."""
    if len(variable) < 24:
        return
    once = data.draw(st.sampled_from(sorted(set(slips(variable)))))
    twice = data.draw(st.sampled_from(sorted(set(slips(once)))))
    assert twice in READ or meant_by(twice, "x") == variable


@pytest.mark.parametrize("name", [*SEVEN, *REAL, *ENGINE, *STRANGERS, *FOREIGN, *FOREIGN_SWITCHES, *ELSEWHERE])
def test_no_near_misses(name: str) -> None:
    """Names that are read, that others read, and names of other things are no near misses."""
    assert meant_by(name, "x") is None


@pytest.mark.parametrize("name", [*REAL, *FOREIGN_SWITCHES])
def test_known_elsewhere(name: str) -> None:
    """Real names of Mooncake, of scripts and of other tools' switches are known."""
    assert is_known_elsewhere(name)


@pytest.mark.parametrize("name", [*SEVEN, *ENGINE, *STRANGERS, "MOONCAKE_DEVCE", "MOONCAKE_CONFIG_PATH"])
def test_not_known_elsewhere(name: str) -> None:
    """What could be meant for us is not hidden behind the families of others' names."""
    assert not is_known_elsewhere(name)


def test_bare_names() -> None:
    """The fields' own names, in capitals and small letters, are bare names; names with a prefix are none."""
    for spec in FIELDS:
        if spec.wiring.variable:
            assert is_bare(spec.name)
            assert is_bare(spec.name.upper())
            assert not is_bare(spec.wiring.variable)


def wheel_names() -> Iterator[str]:
    """Every name in the installed wheel, its binaries included, that looks like a variable of Mooncake."""
    spec = importlib.util.find_spec("mooncake")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        for path in Path(place).rglob("*"):
            if path.is_file() and path.suffix != ".pyc":
                for match in re.finditer(rb"(?<![A-Za-z0-9_])(?:MOONCAKE|MC)_[A-Z][A-Z0-9_]+", path.read_bytes()):
                    yield match.group().decode()


@pytest.mark.mooncake
def test_names_of_the_installed_wheel() -> None:
    """Every name that the installed Mooncake itself reads is known, and none is taken for a near miss."""
    names = sorted(set(wheel_names()))
    assert len(names) > 100
    for name in names:
        assert meant_by(name, "x") is None, name
        if name.startswith("MOONCAKE_"):
            assert name in READ or name in FOREIGN or is_known_elsewhere(name), name


# Kubernetes


LINKS = {
    "{}_SERVICE_HOST": "10.0.0.44",
    "{}_SERVICE_PORT": "50051",
    "{}_SERVICE_PORT_RPC": "50051",
    "{}_SERVICE_PORT_HTTP_METADATA": "8080",
    "{}_PORT": "tcp://10.0.0.44:50051",
    "{}_PORT_50051_TCP": "tcp://10.0.0.44:50051",
    "{}_PORT_50051_TCP_ADDR": "10.0.0.44",
    "{}_PORT_50051_TCP_PORT": "50051",
    "{}_PORT_50051_TCP_PROTO": "tcp",
    "{}_PORT_53_UDP": "udp://10.0.0.44:53",
}
SERVICES = (
    *("MOONCAKE", "MOONCAKE_MASTER", "MOONCAKE_MASTER_0", "MOONCAKE_STORE_MASTER_SVC", "MOONCAKE_METADATA"),
    *("MOONCAKE_DEVICE", "MOONCAKE_LOCAL_HOSTNAME", "MOONCAKE_MASTER_SERVICE"),
)


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("form", LINKS)
def test_service_links(service: str, form: str) -> None:
    """What Kubernetes injects for any Service whose name begins with mooncake is a link, and no near miss."""
    name, value = form.format(service), LINKS[form]
    assert is_service_link(name, value)
    assert meant_by(name, value) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MOONCAKE_MASTER_PORT", "50051"),
        ("MOONCAKE_MASTER_PORT", ""),
        ("MOONCAKE_MASTER_HOST", "10.0.0.5"),
        ("mooncake_master_service_host", "10.0.0.5"),
        ("OTHER_MASTER_SERVICE_HOST", "10.0.0.5"),
        ("MOONCAKE_MASTER_PORT_50051_HTTP", "x"),
        ("MOONCAKE_MASTER", "10.0.0.5:50051"),
    ],
)
def test_no_service_links(name: str, value: str) -> None:
    """A port as a bare number was written by a person, and other names are none of Kubernetes'."""
    assert not is_service_link(name, value)


@pytest.mark.parametrize(
    ("variables", "address"),
    [
        ({"MOONCAKE_MASTER_SERVICE_HOST": "10.0.0.44", "MOONCAKE_MASTER_SERVICE_PORT": "50051"}, "10.0.0.44:50051"),
        ({"MOONCAKE_MASTER_SERVICE_HOST": "fd00::44", "MOONCAKE_MASTER_SERVICE_PORT": "50051"}, "[fd00::44]:50051"),
        ({"MOONCAKE_SERVICE_HOST": "10.0.0.44", "MOONCAKE_SERVICE_PORT": "7000"}, "10.0.0.44:7000"),
        (
            {
                "MOONCAKE_MASTER_SERVICE_HOST": "10.0.0.44",
                "MOONCAKE_MASTER_SERVICE_PORT": "8080",
                "MOONCAKE_MASTER_SERVICE_PORT_HTTP": "8080",
                "MOONCAKE_MASTER_SERVICE_PORT_RPC": "7000",
            },
            "10.0.0.44:7000",
        ),
        (
            {
                "MOONCAKE_MASTER_SERVICE_HOST": "10.0.0.44",
                "MOONCAKE_MASTER_SERVICE_PORT": "8080",
                "MOONCAKE_MASTER_SERVICE_PORT_MAIN": "50051",
            },
            "10.0.0.44:50051",
        ),
        (
            {
                "MOONCAKE_A_SERVICE_HOST": "10.0.0.1",
                "MOONCAKE_A_SERVICE_PORT": "1",
                "MOONCAKE_MASTER_SERVICE_HOST": "10.0.0.2",
                "MOONCAKE_MASTER_SERVICE_PORT": "2",
            },
            "10.0.0.2:2",
        ),
        ({"MOONCAKE_METADATA_SERVICE_HOST": "10.0.0.44", "MOONCAKE_METADATA_SERVICE_PORT": "8080"}, None),
        ({"MOONCAKE_STORE_SERVICE_HOST": "10.0.0.44", "MOONCAKE_STORE_SERVICE_PORT": "12345"}, None),
        ({"MOONCAKE_MASTER_SERVICE_HOST": "10.0.0.44"}, None),
        ({"MOONCAKE_MASTER_SERVICE_HOST": "", "MOONCAKE_MASTER_SERVICE_PORT": "50051"}, None),
        ({"MOONCAKE_MASTER_SERVICE_HOST": "10.0.0.44", "MOONCAKE_MASTER_SERVICE_PORT": "x"}, None),
        ({}, None),
    ],
)
def test_master_that_kubernetes_announces(variables: dict[str, str], address: str | None) -> None:
    """The Service of a master gives host and port: the RPC port by its name or number, no metadata or store Service."""
    assert kubernetes_master(variables) == address


def test_related_variables() -> None:
    """Of an environment only the names that concern Mooncake are kept, as they are."""
    environ = {
        "PATH": "/bin",
        "HOME": "/root",
        "MC_GID_INDEX": "3",
        "MOONCAKE_MASTER": "a:1",
        "MASTER_ADDR": "b",
        "X": "",
    }
    assert related_variables(environ) == {"MC_GID_INDEX": "3", "MOONCAKE_MASTER": "a:1"}
