"""MC12x: variables that are no values here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from asking import MASTER, ONE_NODE, TWO_NODES, as_text, ask, found, severities
from hypothesis import given
from hypothesis import strategies as st

from mooncake_config.findings import Severity
from mooncake_config.provenance import Origin, Source
from mooncake_config.rules import examine

ERROR, WARNING, INFO = Severity.ERROR, Severity.WARNING, Severity.INFO
UNREAD, FOREIGN, UNKNOWN, OVERRIDES, TOLD, CXL, ELSEWHERE, PORTS = (f"MC12{n}" for n in range(8))


def weights(code: str, variables: Mapping[str, str], init_kwargs: str | None = None) -> list[Severity]:
    """What a rule finds in these variables beside the master."""
    return severities(ask({**MASTER, **variables}, init_kwargs, topology=TWO_NODES), code)


# Near misses


def test_near_miss_names_the_variable() -> None:
    """A near miss is about the field that was meant, at the variable that is there, and names the one that is read."""
    (finding,) = found(ask({**MASTER, "MOONCAKE_DEVCE": "mlx5_0"}), UNREAD)
    assert finding.severity is WARNING
    assert finding.fields == ("device_name",)
    assert finding.origin == Origin(Source.ENV, "MOONCAKE_DEVCE")
    assert finding.message == "MOONCAKE_DEVCE is set, and nothing reads it; the variable is MOONCAKE_DEVICE."
    assert finding.fix == "export MOONCAKE_DEVICE instead, or unset MOONCAKE_DEVCE."


def test_near_miss_in_a_runtime_environment() -> None:
    """A near miss that stands in env_vars is renamed there: nothing that is exported wins over env_vars."""
    spot = "--runtime-env-json MOONCAKE_DEVCE"
    (finding,) = found(ask({**MASTER, "MOONCAKE_DEVCE": "mlx5_0"}, spots={"MOONCAKE_DEVCE": spot}), UNREAD)
    assert finding.origin == Origin(Source.ENV, spot)
    assert finding.fix == "rename it to MOONCAKE_DEVICE in env_vars."


def test_case_is_named() -> None:
    """A name that differs in case alone is told so."""
    (finding,) = found(ask({**MASTER, "mooncake_protocol": "tcp"}), UNREAD)
    assert "case-sensitive" in finding.message


def test_each_near_miss_is_reported() -> None:
    """Several near misses are several findings."""
    names = {"MOONCAKE_DEVCE": "x", "MOONCKE_PROTOCOL": "tcp", "MOONCAKE_METADATA_SERVER": "x"}
    assert weights(UNREAD, names) == [WARNING] * 3


@pytest.mark.parametrize(
    ("variables", "init_kwargs", "weight"),
    [
        ({"MOONCAKE_MASTER_ADDR": "10.0.0.9:50051"}, None, [WARNING]),
        ({"MOONCAKE_MASTER_ADDR": "10.0.0.5:50051"}, None, [INFO]),
        ({"MOONCAKE_MASTER_HOST": "10.0.0.5"}, None, [INFO]),
        ({"MOONCAKE_MASTER_PORT": "50051"}, None, [INFO]),
        ({"MOONCAKE_MASTER_PORT": "50052"}, None, [WARNING]),
        ({"MOONCAKE_MASTER_HOST": "10.0.0"}, None, [WARNING]),
        ({"MOONCAKE_MASTER_ADDR": ""}, None, [WARNING]),
        ({"MOONCAKE_PROTO": "tcp"}, '{"protocol": "tcp"}', [INFO]),
        ({"MOONCAKE_PROTO": "tcp"}, '{"protocol": "rdma"}', [WARNING]),
    ],
)
def test_value_that_is_in_force_anyway(
    variables: dict[str, str], init_kwargs: str | None, weight: list[Severity]
) -> None:
    """A near miss whose value is in force, or is a part of what is, as in a launch script, changes nothing: an info."""
    assert weights(UNREAD, variables, init_kwargs) == weight


@pytest.mark.parametrize(
    ("variables", "init_kwargs", "weight"),
    [
        ({"PROTOCOL": "tcp"}, None, [WARNING]),
        ({"LOCAL_HOSTNAME": "10.77.0.2"}, None, [WARNING]),
        ({"device_name": "mlx5_0"}, None, [WARNING]),
        ({"PROTOCOL": "http"}, None, [INFO]),
        ({"PROTOCOL": "tcp"}, '{"protocol": "rdma"}', [INFO]),
        ({"PROTOCOL": "tcp", "MOONCAKE_PROTOCOL": "rdma"}, None, []),
        ({"PROTOCOL": "tcp", "MOONCAKE_PROTOCOL": " "}, None, [WARNING]),
    ],
)
def test_bare_names(variables: dict[str, str], init_kwargs: str | None, weight: list[Severity]) -> None:
    """A bare name matters where nothing else claims the field, less where it could not be its value."""
    assert weights(UNREAD, variables, init_kwargs) == weight


def test_stray_variables_change_nothing() -> None:
    """No variable but the seven is ever a value."""
    strays = {
        "PROTOCOL": "tcp",
        "DEVICE_NAME": "mlx5_9",
        "LOCAL_HOSTNAME": "10.9.9.9",
        "MOONCAKE_MASTER_ADDR": "10.9.9.9:1",
        "mooncake_master": "10.9.9.9:1",
        "MOONCAKE_CHUNK_BYTES": "1gb",
        "MOONCAKE_STORE_INIT_KWARGS": '{"protocol": "tcp"}',
        "MOONCAKE_CONFIG_PATH": "/etc/mooncake.json",
    }
    with_strays, without = ask({**MASTER, **strays}), ask(MASTER)
    assert with_strays.values == without.values
    assert with_strays.ledger == without.ledger


def test_odd_names_are_shown_safely() -> None:
    """A name with characters that a terminal obeys is shown without them, as a place to edit too."""
    names = {"MOONCAKE_MASTER_ADDR\x1b[2J": "x", "MOONCAKE_\x1b]0;x\x07": "1", "mooncake://u:hunter2@x_DEVICE": "x"}
    findings = examine(ask({**MASTER, **names}))
    assert {finding.code for finding in findings} == {UNKNOWN}
    for finding in findings:
        assert finding.origin is not None
        assert (finding.message + finding.fix + finding.origin.spot).isprintable()
        assert "hunter2" not in str(finding)


# Other tools


@pytest.mark.parametrize(
    ("variables", "init_kwargs", "weight"),
    [
        ({"MOONCAKE_CONFIG_PATH": "/etc/mooncake.json"}, None, [WARNING]),
        ({"MOONCAKE_CONFIG": "/etc/mooncake.json"}, None, [WARNING]),
        ({"SGLANG_HICACHE_MOONCAKE_CONFIG_PATH": "/etc/mooncake.json"}, None, [WARNING]),
        ({"MOONCAKE_IB_GID_INDEX": "1"}, None, [WARNING]),
        ({"MC_IB_GID_INDEX": "1"}, None, [WARNING]),
        ({"MOONCAKE_STORE_INIT_KWARGS": "{}"}, None, [WARNING]),
        ({"MOONCAKE_STORE_INIT_KWARGS": "{}"}, '{"protocol": "tcp"}', [INFO]),
        ({"MOONCAKE_CHECK_SERVER": "1"}, None, [INFO]),
        ({"MOONCAKE_STANDALONE_STORAGE": "1", "MOONCAKE_CLIENT": "10.0.0.7:1"}, None, [INFO, INFO]),
        ({"MOONCAKE_LOG": "x"}, None, []),
    ],
)
def test_variables_of_other_tools(variables: dict[str, str], init_kwargs: str | None, weight: list[Severity]) -> None:
    """What carries settings for another tool is a warning, its mere switches an info."""
    assert weights(FOREIGN, variables, init_kwargs) == weight
    assert weights(UNREAD, variables) == weights(UNKNOWN, variables) == []


def test_way_out_of_another_tools_variable() -> None:
    """The fix depends on what the variable was meant for."""
    for name, words in (
        ("MOONCAKE_IB_GID_INDEX", "export MC_GID_INDEX"),
        ("MOONCAKE_STORE_INIT_KWARGS", '"$MOONCAKE_STORE_INIT_KWARGS"'),
        ("MOONCAKE_CONFIG_PATH", "@FILE"),
        ("MOONCAKE_CHECK_SERVER", "nothing, if that tool shall read it"),
    ):
        (finding,) = found(ask({**MASTER, name: "1"}), FOREIGN)
        assert words in finding.fix


@pytest.mark.parametrize(
    ("name", "field"),
    [("MOONCAKE_CHUNK_BYTES", ("chunk_bytes",)), ("MOONCAKE_REPLICA_NUM", ()), ("MOONCAKE_OBJECT_STORE_BACKEND", ())],
)
def test_settings_without_variable(name: str, field: tuple[str, ...]) -> None:
    """A variable for what no variable gives is told where that is given."""
    (finding,) = found(ask({**MASTER, name: "2"}), ELSEWHERE)
    assert finding.severity is WARNING
    assert finding.fields == field
    assert weights(UNKNOWN, {name: "2"}) == []


@pytest.mark.parametrize("name", ["MOONCAKE_FLUX_CAPACITOR", "MOONCAKE_SERVER", "MOONCAKE_1"])
def test_unknown_variable(name: str) -> None:
    """A name that nobody is known to read is an info with the seven names."""
    (finding,) = found(ask({**MASTER, name: "1"}), UNKNOWN)
    assert finding.severity is INFO
    assert "MOONCAKE_TE_META_DATA_SERVER" in finding.fix


@pytest.mark.parametrize(
    "variables",
    [
        {"MOONCAKE_LOG": "mooncake_master.log", "MOONCAKE_HOME": "/opt", "MC_LOG_LEVEL": "INFO"},
        {"MOONCAKE_HOST_ID": "node-7", "MOONCAKE_TENANT_ID": "a", "MOONCAKE_OFFLOAD_FSDIR": "/x"},
        {
            "MOONCAKE_MASTER_PORT": "tcp://10.0.0.44:50051",
            "MOONCAKE_MASTER_SERVICE_HOST": "10.0.0.44",
            "MOONCAKE_MASTER_SERVICE_PORT": "50051",
            "MOONCAKE_MASTER_PORT_50051_TCP": "tcp://10.0.0.44:50051",
            "MOONCAKE_MASTER_PORT_50051_TCP_PROTO": "tcp",
        },
        {"VLLM_MOONCAKE_PROTOCOL": "tcp", "mooncake_notes": "x", "OTHER": "1"},
    ],
)
def test_no_noise(variables: dict[str, str]) -> None:
    """Mooncake's real names, those of scripts and of Kubernetes, and names of other programs are no news."""
    assert examine(ask({**MASTER, **variables})) == ()


# The engine


@pytest.mark.parametrize(
    ("variables", "fires"),
    [
        ({"MC_FORCE_TCP": "1"}, True),
        ({"MC_FORCE_TCP": "0"}, True),
        ({"MC_FORCE_TCP": "1", "MOONCAKE_PROTOCOL": "tcp"}, False),
        ({"MC_FORCE_TCP": "1", "MOONCAKE_PROTOCOL": "rmda"}, False),
        ({"MC_FORCE_HCA": "1", "MOONCAKE_PROTOCOL": "tcp"}, True),
        ({"MC_FORCE_MNNVL": "1", "MOONCAKE_PROTOCOL": "tcp"}, True),
        ({"MC_INTRA_NVLINK": "1", "MOONCAKE_PROTOCOL": "tcp"}, True),
        ({"MC_FORCE_HCA": "1"}, False),
        ({"MC_MS_AUTO_DISC": "1"}, True),
        ({"MC_MS_AUTO_DISC": "0"}, False),
        ({"MC_MS_FILTERS": "mlx5_0"}, True),
        ({"MC_MS_FILTERS": "mlx5_0", "MC_MS_AUTO_DISC": "0"}, True),
        ({"MC_MS_FILTERS": ""}, False),
        ({"MC_USE_TENT": "1", "MOONCAKE_DEVICE": "mlx5_0"}, True),
        ({"MC_USE_TENT": "0", "MOONCAKE_DEVICE": "mlx5_0"}, False),
        ({"MC_USE_TENT": "1"}, False),
        ({"MC_STORE_USE_HUGEPAGE": "0"}, True),
        ({"MC_STORE_USE_HUGEPAGE": ""}, True),
        ({"MC_STORE_USE_HUGEPAGE": "1"}, False),
        ({"MC_USE_IPV6": "1"}, True),
        ({"MC_USE_IPV6": "0"}, True),
        ({"MC_USE_IPV6": "1", "MOONCAKE_LOCAL_HOSTNAME": "fd00::7"}, False),
        ({"MC_USE_IPV6": "1", "MOONCAKE_LOCAL_HOSTNAME": "node-7"}, False),
        ({"MC_TCP_BIND_ADDRESS": "10.1.0.7"}, True),
        ({"MC_RDMA_BIND_ADDRESS": "10.1.0.7"}, True),
        ({"MC_TCP_BIND_ADDRESS": "10.0.0.7"}, False),
        ({"MC_TCP_BIND_ADDRESS": "0.0.0.0"}, False),
        ({"MC_TCP_BIND_ADDRESS": "eth0"}, False),
        ({"MC_TCP_BIND_ADDRESS": ""}, False),
        ({"MC_TCP_BIND_ADDRESS": "10.1.0.7", "MOONCAKE_LOCAL_HOSTNAME": "a b"}, False),
        ({"MC_STORE_MEMCPY": "0"}, False),
    ],
)
def test_engine_variables_that_override(variables: dict[str, str], fires: bool) -> None:
    """An engine variable that overrides or contradicts a field is a warning; one that agrees is not."""
    assert weights(OVERRIDES, variables) == ([WARNING] if fires else [])


def test_presence_that_counts_is_named() -> None:
    """Where the engine looks at the presence of a variable, a value that says no is told to be of no use."""
    (finding,) = found(ask({**MASTER, "MC_FORCE_TCP": "0"}), OVERRIDES)
    assert "its presence counts" in finding.message
    (finding,) = found(ask({**MASTER, "MC_FORCE_TCP": "1"}), OVERRIDES)
    assert "its presence counts" not in finding.message


def test_engine_variables_are_told() -> None:
    """Engine variables that apply whatever is resolved are one info, without those that are a finding by themselves."""
    variables = {**MASTER, "MC_GID_INDEX": "3", "MC_STORE_MEMCPY": "0", "MC_FORCE_TCP": "1", "MC_LOG_LEVEL": "INFO"}
    (finding,) = found(ask(variables), TOLD)
    assert finding.severity is INFO
    assert "MC_GID_INDEX=3, MC_STORE_MEMCPY=0." in finding.message


def test_secret_of_the_engine_is_not_told() -> None:
    """The password that the engine reads is told nowhere."""
    process = ask({**MASTER, "MC_REDIS_PASSWORD": "hunter2", "MOONCAKE_AWS_SECRET_ACCESS_KEY": "hunter2"})
    assert "hunter2" not in str(examine(process)) + repr(process)


@pytest.mark.parametrize(
    ("protocol", "size", "weight"),
    [("cxl", None, [ERROR]), ("cxl", " ", [ERROR]), ("cxl", "1gb", []), ("tcp", None, [])],
)
def test_cxl(protocol: str, size: str | None, weight: list[Severity]) -> None:
    """cxl needs the size of its device."""
    variables = {"MOONCAKE_PROTOCOL": protocol, **({"MC_CXL_DEV_SIZE": size} if size is not None else {})}
    assert weights(CXL, variables) == weight


@pytest.mark.parametrize(
    ("lowest", "highest", "processes", "words"),
    [
        ("13000", "14000", 8, None),
        ("61000", "65535", 8, None),
        ("13000", "13007", 8, None),
        (None, None, 8, None),
        ("", " ", 8, None),
        ("13000", "13006", 8, "7 ports for 8 processes"),
        ("14000", "13000", 1, "the range 14000 to 13000 is empty"),
        ("15000", None, 1, "the range 15000 to 14300 is empty"),
        (None, "12000", 1, "the range 12300 to 12000 is empty"),
        ("80", "14000", 1, "not a port of 1024 to 32767"),
        ("13000", "40000", 1, "not a port of 1024 to 32767"),
        ("13000", "70000", 1, "not a port of 1024 to 32767"),
        ("auto", None, 1, "not a port of 1024 to 32767"),
        ("9" * 5000, None, None, "not a port of 1024 to 32767"),
    ],
)
def test_port_range(lowest: str | None, highest: str | None, processes: int | None, words: str | None) -> None:
    """The range of ports for the clients of a node holds a port for each, of those that Mooncake takes."""
    given_ports = {"MC_STORE_CLIENT_MIN_PORT": lowest, "MC_STORE_CLIENT_MAX_PORT": highest}
    environ = {**MASTER, **{name: text for name, text in given_ports.items() if text is not None}}
    findings = found(ask(environ, topology=replace(ONE_NODE, processes_per_node=processes)), PORTS)
    assert [words in finding.message for finding in findings if words] == ([True] if words else [])
    assert len(findings) == (1 if words else 0)
    assert all(finding.message.isprintable() and len(finding.message) < 400 for finding in findings)


@given(
    st.dictionaries(
        st.one_of(
            st.builds("{}{}".format, st.sampled_from(["MOONCAKE_", "MC_", "mooncake", ""]), st.text(max_size=12)),
            st.sampled_from(
                ["MC_FORCE_TCP", "MC_STORE_CLIENT_MIN_PORT", "MC_TCP_BIND_ADDRESS", "MC_USE_IPV6", "PROTOCOL"]
            ),
        ),
        st.text(max_size=12),
        max_size=4,
    )
)
def test_any_variables(variables: dict[str, str]) -> None:
    """Whatever variables are set, what is found is printable and has a fix."""
    strays = {name: text for name, text in variables.items() if not name.startswith("MOONCAKE_MASTER")}
    process = ask({**MASTER, **strays}, as_text(protocol="tcp"))
    for finding in examine(process):
        assert (str(finding)).isprintable()
        assert finding.fix.endswith(".")


@pytest.mark.parametrize(
    ("variables", "fix"),
    [
        ({"MC_MTU": "1024"}, "nothing, if they are meant; keep them equal on all nodes."),
        (
            {"MC_TCP_BIND_ADDRESS": "10.0.0.7"},
            "nothing, if they are meant; MC_TCP_BIND_ADDRESS may differ, each node having its own.",
        ),
        (
            {"MC_GID_INDEX": "3", "MC_MTU": "1024", "MC_TCP_BIND_ADDRESS": "10.0.0.7"},
            "nothing, if they are meant; keep the others equal on all nodes; MC_GID_INDEX, MC_TCP_BIND_ADDRESS may "
            "differ, each node having its own.",
        ),
    ],
)
def test_engine_variables_of_one_node(variables: dict[str, str], fix: str) -> None:
    """Addresses and devices of a node are not asked to be equal on all nodes."""
    (finding,) = found(ask({**MASTER, **variables}), "MC124")
    assert finding.fix == fix
