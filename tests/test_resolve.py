"""Resolving: claims of all sources become settings without an error, or one exception with everything that is wrong."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from strategies import edited, field_texts, json_values, passwords

from mooncake_config.findings import ConfigError, Finding, Severity
from mooncake_config.provenance import Origin, Source
from mooncake_config.resolve import Resolution, resolve_store_config
from mooncake_config.settings import FIELDS
from mooncake_config.topology import Role, Topology

MASTER = {"MOONCAKE_MASTER": "10.0.0.5:50051"}
ONE_NODE = Topology(num_nodes=1, local_rank=0, processes_per_node=1, node_ip="10.0.0.7")
TWO_NODES = Topology(num_nodes=2, local_rank=0, processes_per_node=8, node_ip="10.0.0.7")
SEVEN = [spec.wiring.variable for spec in FIELDS if spec.wiring.variable]


def resolve(
    init_kwargs: str | Mapping[str, object] | None = None,
    environ: Mapping[str, str] = MASTER,
    topology: Topology = ONE_NODE,
    role: Role | str = Role.TRAINER,
) -> Resolution:
    """A resolution on one node, with a master in the environment unless that is given."""
    return resolve_store_config(init_kwargs, role=role, topology=topology, environ=environ)


def refusal(
    init_kwargs: str | Mapping[str, object] | None = None,
    environ: Mapping[str, str] = MASTER,
    topology: Topology = ONE_NODE,
) -> tuple[Finding, ...]:
    """What a configuration is refused with."""
    with pytest.raises(ConfigError) as caught:
        resolve(init_kwargs, environ, topology)
    return caught.value.findings


# What comes out


@pytest.mark.parametrize("blank", ["", " ", "\t\n", "\u00a0"])
def test_blank_node_ip(blank: str) -> None:
    """A blank node IP counts as unset: the guess follows, and all seven keys are there."""
    resolution = resolve(topology=Topology(num_nodes=1, node_ip=blank))
    assert resolution.settings == resolve(topology=Topology(num_nodes=1)).settings
    assert len(resolution.setup_kwargs()) == 7
    assert str(resolution.setup_kwargs()["local_hostname"]).strip()


def test_settings_and_origins() -> None:
    """A resolution has typed settings, and the exact origin of each."""
    resolution = resolve(
        '{"protocol": "TCP", "chunk_bytes": "64mb"}', {**MASTER, "MOONCAKE_GLOBAL_SEGMENT_SIZE": "2gb"}
    )
    settings = resolution.settings
    assert (settings.protocol, settings.chunk_bytes, settings.global_segment_size) == ("tcp", 64 << 20, 2 << 30)
    assert {spec.name: str(resolution.origin(spec.name)) for spec in FIELDS} == {
        "master_server_address": "MOONCAKE_MASTER",
        "local_hostname": "Ray node IP",
        "metadata_server": "default",
        "protocol": "--mooncake-store-init-kwargs",
        "device_name": "default",
        "global_segment_size": "MOONCAKE_GLOBAL_SEGMENT_SIZE",
        "local_buffer_size": "default",
        "chunk_bytes": "--mooncake-store-init-kwargs",
    }
    assert resolution.origin("protocol") == Origin(Source.CLI, "--mooncake-store-init-kwargs")


@pytest.mark.parametrize(
    ("name", "says"),
    [("protcol", "there is no field 'protcol'; did you mean protocol?"), ("odd", "there is no field 'odd'")],
)
def test_origin_of_no_field(name: str, says: str) -> None:
    """A field that does not exist has no origin; the nearest one that does is named."""
    with pytest.raises(KeyError) as caught:
        resolve_store_config(None, topology=ONE_NODE, environ=MASTER).origin(name)
    assert caught.value.args == (says,)


def test_repr_is_short() -> None:
    """A resolution in a log says whose it is and what was found, on one line, and none of its settings."""
    kwargs = {"metadata_server": "redis://:hunter2@10.0.0.5:6379"}
    resolution = resolve_store_config(kwargs, topology=ONE_NODE, environ=MASTER, ignore=["MC050"])
    node, found = resolution.settings.local_hostname, len(resolution.findings)
    assert re.fullmatch(
        rf"<Resolution of trainer on {re.escape(str(node))}, fingerprint {resolution.fingerprint}, {found} findings?>",
        repr(resolution),
    )
    assert "hunter2" not in repr(resolution)


def test_ledger_lists_the_losers() -> None:
    """The claims that lost are in the ledger, strongest first."""
    resolution = resolve({"protocol": "tcp"}, {**MASTER, "MOONCAKE_PROTOCOL": "efa"})
    assert [claim.raw for claim in resolution.ledger.overridden("protocol")] == ["efa", "rdma"]


def test_findings_of_a_resolution_are_no_errors() -> None:
    """What a resolution still finds are warnings and infos."""
    resolution = resolve(None, {**MASTER, "MOONCAKE_DEVCE": "x", "MC_GID_INDEX": "3"})
    assert {finding.severity for finding in resolution.findings} == {Severity.WARNING, Severity.INFO}


@pytest.mark.parametrize("role", ["trainer", "rollout-manager", "driver"])
def test_role_by_name(role: str) -> None:
    """A role may be given by its name, and decides what is handed over."""
    resolution = resolve(role=role)
    assert resolution.process.role is Role(role)
    assert resolution.setup_kwargs()["global_segment_size"] == (8 << 30 if role == "trainer" else 0)


def test_replicas_are_carried() -> None:
    """The number of replicas is part of the resolution."""
    topology = Topology(num_nodes=4, node_ip="10.0.0.7")
    assert resolve_store_config(replica_num=2, topology=topology, environ=MASTER).replica_num == 2


def test_own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an environment the process's own is read; an empty one is empty."""
    monkeypatch.setenv("MOONCAKE_MASTER", "10.0.0.6:50051")
    resolution = resolve_store_config(topology=ONE_NODE)
    assert resolution.settings.master_server_address == "10.0.0.6:50051"
    assert resolution.settings.local_hostname == "10.0.0.7"
    with pytest.raises(ConfigError):
        resolve_store_config(topology=ONE_NODE, environ={})


def test_topology_is_detected() -> None:
    """Without a topology rank and processes come from the launcher's variables, and the node IP from this host."""
    resolution = resolve_store_config(environ={**MASTER, "LOCAL_RANK": "3", "LOCAL_WORLD_SIZE": "8"})
    assert resolution.process.topology.local_rank == 3
    assert resolution.process.topology.processes_per_node == 8
    assert resolution.settings.local_hostname


# What is refused


def test_all_faults_at_once() -> None:
    """Five mistakes in five places are refused together, worst first, each with its place."""
    findings = refusal(
        '{"protocl": "tcp", "global_segment_size": -1, "metadata_server": "bogus://x"}',
        {"MOONCAKE_LOCAL_BUFFER_SIZE": "much", "LOCAL_RANK": "x", "MOONCAKE_DEVCE": "y"},
        Topology(num_nodes=1, node_ip="10.0.0.7"),
    )
    errors = {finding.code for finding in findings if finding.severity is Severity.ERROR}
    assert errors == {"MC004", "MC012", "MC025", "MC011", "MC029", "MC100"}
    assert "MC120" in {finding.code for finding in findings}
    ranks = [finding.severity.rank for finding in findings]
    assert ranks == sorted(ranks)


def test_malformed_value_does_not_fall_back() -> None:
    """A malformed claim refuses the configuration; the next claim does not step in."""
    findings = refusal('{"protocol": 111}', {**MASTER, "MOONCAKE_PROTOCOL": "tcp"})
    assert [(finding.code, finding.fields) for finding in findings] == [("MC010", ("protocol",))]


def test_rules_still_look_at_good_values() -> None:
    """Where one value is malformed, the rules still look at the others."""
    codes = {finding.code for finding in refusal('{"protocol": "x"}', {"MOONCAKE_MASTER": "0.0.0.0:1"})}
    assert {"MC027", "MC040"} <= codes


def test_overridden_value_is_not_judged() -> None:
    """A malformed value that lost is no fault: it is not in force."""
    assert resolve({"protocol": "tcp"}, {**MASTER, "MOONCAKE_PROTOCOL": "$P"}).settings.protocol == "tcp"


@pytest.mark.parametrize("role", ["boss", "Trainer", ""])
def test_unknown_role(role: str) -> None:
    """A role that does not exist is a wrong use of the library."""
    with pytest.raises(ValueError, match="Role"):
        resolve(role=role)


@pytest.mark.parametrize("replica_num", [True, 1.0, "1", None])
def test_replicas_of_another_type(replica_num: object) -> None:
    """A number of replicas that is no integer is a wrong use of the library."""
    with pytest.raises(TypeError, match="replica_num"):
        resolve_store_config(replica_num=replica_num, environ=MASTER)  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        ({"topology": {"num_nodes": 2}}, "topology must be a Topology, as in Topology(num_nodes=2), not dict"),
        ({"topology": 2}, "topology must be a Topology, as in Topology(num_nodes=2), not int"),
        ({"environ": ["MOONCAKE_MASTER"]}, "environ must be a mapping or None, not list"),
        ({"environ": {"LOCAL_RANK": 0}}, "environ must hold text, and LOCAL_RANK is int"),
        ({"environ": {"MOONCAKE_MASTER": None}}, "environ must hold text, and MOONCAKE_MASTER is NoneType"),
        ({"environ": {b"MOONCAKE_MASTER": b"10.0.0.5:50051"}}, "environ must hold text, and "),
        ({"ignore": [101]}, "ignore takes codes or names, not '101'"),
        ({"ignore": "MC101"}, "ignore takes several codes or names: "),
    ],
)
def test_argument_of_another_type(words: dict[str, Any], refusal: str) -> None:
    """A wrong use of the library is a TypeError that names the argument, not an error from within."""
    with pytest.raises(TypeError, match=f"^{re.escape(refusal)}"):
        resolve_store_config({"master_server_address": "10.0.0.5:50051"}, **words)


@pytest.mark.parametrize("other", [None, 3, {"protocol": "tcp"}])
def test_compared_with_something_else(other: Any) -> None:
    """Only a resolution is compared with a resolution."""
    with pytest.raises(TypeError, match=f"not with {type(other).__name__}$"):
        resolve_store_config(None, topology=ONE_NODE, environ=MASTER).differences(other)


def test_replicas_below_one() -> None:
    """A number of replicas below 1 is wrong content: a finding."""
    with pytest.raises(ConfigError, match="MC103"):
        resolve_store_config(replica_num=0, environ=MASTER, topology=ONE_NODE)


def test_ignored_error() -> None:
    """An error that is ignored refuses nothing; what cannot be ignored does."""
    environ = {**MASTER, "MOONCAKE_LOCAL_HOSTNAME": "127.0.0.1"}
    assert {finding.code for finding in refusal(None, environ, TWO_NODES)} == {"MC101"}
    resolution = resolve_store_config(environ=environ, topology=TWO_NODES, ignore=["MC101"])
    assert resolution.settings.local_hostname == "127.0.0.1"
    with pytest.raises(ConfigError, match="MC130"):
        resolve_store_config(environ={}, topology=TWO_NODES, ignore=["missing-master"])
    with pytest.raises(ValueError, match="MC999"):
        resolve_store_config(environ=MASTER, ignore=["MC999"])
    with pytest.raises(TypeError, match="MC101"):
        resolve_store_config(environ=MASTER, ignore="MC101")


def test_exception_lists_its_findings() -> None:
    """The text of the exception counts the errors and has a line for each finding."""
    with pytest.raises(ConfigError) as caught:
        resolve("{broken", {})
    lines = str(caught.value).splitlines()
    assert lines[0] == "2 errors in the Mooncake Store configuration:"
    assert [line.split()[0] for line in lines[1:]] == [finding.code for finding in caught.value.findings]


# Empty means unset


@pytest.mark.parametrize(
    ("init_kwargs", "environ", "message"),
    [
        (None, {"MOONCAKE_PROTOCOL": ""}, "MOONCAKE_PROTOCOL is empty and counts as unset."),
        (None, {"MOONCAKE_PROTOCOL": " \t"}, "MOONCAKE_PROTOCOL is blank and counts as unset."),
        ('{"protocol": null}', {}, "--mooncake-store-init-kwargs leaves protocol null, which counts as unset."),
        ('{"protocol": ""}', {}, "--mooncake-store-init-kwargs leaves protocol empty, which counts as unset."),
        ({"protocol": " "}, {}, "init kwargs leaves protocol blank, which counts as unset."),
        (
            "",
            {},
            "--mooncake-store-init-kwargs is empty and counts as unset; an unset shell variable often hides behind it.",
        ),
    ],
)
def test_empty_is_reported(init_kwargs: str | dict[str, object] | None, environ: dict[str, str], message: str) -> None:
    """An empty claim counts as unset in each source, and is reported at its place with what is in force instead."""
    resolution = resolve(init_kwargs, {**MASTER, **environ})
    (finding,) = resolution.findings
    assert (finding.code, finding.severity, finding.message) == ("MC006", Severity.WARNING, message)
    assert resolution.settings.protocol == "rdma"
    if finding.fields:
        assert "the default (rdma) is in force" in finding.fix


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("chunk_bytes", "Mooncake's own, 64 MiB"),
        ("device_name", "empty; Mooncake picks"),
        ("local_buffer_size", "32gb"),
    ],
)
def test_default_in_force_in_words(field: str, words: str) -> None:
    """Where an empty claim leaves a default that is no text, it stands in words."""
    (finding,) = resolve({field: None}, MASTER).findings
    assert finding.fix.endswith(f"; the default ({words}) is in force.")


def test_every_empty_claim_is_reported() -> None:
    """Empty in the JSON and empty in the variable are two findings."""
    findings = refusal({"master_server_address": None}, {"MOONCAKE_MASTER": ""})
    assert [finding.code for finding in findings] == ["MC100", "MC006", "MC006"]
    assert {finding.fields for finding in findings} == {("master_server_address",)}


# For Ray


def test_runtime_env() -> None:
    """A runtime environment holds what all nodes agree on, and sizes only where somebody claimed them."""
    assert resolve().to_runtime_env() == {
        "env_vars": {
            "MOONCAKE_MASTER": "10.0.0.5:50051",
            "MOONCAKE_TE_META_DATA_SERVER": "P2PHANDSHAKE",
            "MOONCAKE_PROTOCOL": "rdma",
        }
    }
    fields = {
        spec.name: "10.0.0.7" if spec.name == "local_hostname" else spec.info.examples[0]
        for spec in FIELDS
        if spec.info.examples
    }
    env_vars = resolve(fields).to_runtime_env()["env_vars"]
    assert set(env_vars) == set(SEVEN) - {"MOONCAKE_LOCAL_HOSTNAME", "MOONCAKE_DEVICE"}
    assert env_vars["MOONCAKE_GLOBAL_SEGMENT_SIZE"] == str(2 << 30)


@given(
    st.dictionaries(
        st.sampled_from([spec.name for spec in FIELDS]), st.one_of(field_texts(), json_values()), max_size=5
    )
)
def test_runtime_env_gives_the_same(fields: dict[str, object]) -> None:
    """Resolving in the runtime environment of a resolution gives the same fingerprint and sizes, and it is all text."""
    with refused_or_not():
        resolution = resolve(fields)
        env_vars = resolution.to_runtime_env()["env_vars"]
        assert all(isinstance(text, str) for text in env_vars.values())
        again = resolve(None, env_vars)
        assert again.fingerprint == resolution.fingerprint
        for name in ("global_segment_size", "local_buffer_size"):
            assert getattr(again.settings, name) == getattr(resolution.settings, name)
        assert again.to_runtime_env() == resolution.to_runtime_env()


def test_crossing_processes() -> None:
    """A resolution and a refusal pickle, whole."""
    resolution = resolve({"metadata_server": "http://u:hunter2@h:1/metadata"}, {**MASTER, "MOONCAKE_DEVCE": "x"})
    copy: Resolution = pickle.loads(pickle.dumps(resolution))
    assert copy == resolution
    assert copy.setup_kwargs() == resolution.setup_kwargs()
    assert copy.fingerprint == resolution.fingerprint
    error = ConfigError(refusal("{broken", {}))
    assert pickle.loads(pickle.dumps(error)).findings == error.findings


@pytest.mark.ray
def test_crossing_ray() -> None:
    """Ray's own pickling carries them too."""
    from ray import cloudpickle

    resolution = resolve(None, {**MASTER, "MOONCAKE_DEVCE": "x"})
    carried: bytes = cloudpickle.dumps(resolution)  # type: ignore[no-untyped-call]  # it has no types
    assert cloudpickle.loads(carried) == resolution


# Laws


@contextmanager
def refused_or_not() -> Iterator[SimpleNamespace]:
    """Holds a block to the law: it raises ConfigError with an error in it, or nothing. Gives what was raised."""
    outcome = SimpleNamespace(refusal=None)
    try:
        yield outcome
    except ConfigError as error:
        outcome.refusal = error
    if outcome.refusal:
        assert any(finding.severity is Severity.ERROR for finding in outcome.refusal.findings)


def is_well_worded(finding: Finding) -> bool:
    """Whether a finding has a fact and a way out, and holds nothing that a terminal obeys."""
    return str(finding).isprintable() and finding.message.endswith(".") and finding.fix.endswith(".")


def environments() -> st.SearchStrategy[dict[str, str]]:
    """Environments with any text in the variables that are read, and variables of any name."""
    names = st.one_of(
        st.sampled_from([*SEVEN, "LOCAL_RANK", "LOCAL_WORLD_SIZE", "PROTOCOL", "MC_FORCE_TCP", "MOONCAKE_MASTER_ADDR"]),
        st.text(max_size=10),
        st.builds("MOONCAKE_{}".format, st.text(max_size=8)),
    )
    return st.dictionaries(names, st.one_of(field_texts(), st.text(max_size=20)), max_size=5)


def broken_json() -> st.SearchStrategy[str]:
    """JSON texts, most of them edited into something else, and texts that were never JSON."""
    fields = st.dictionaries(st.sampled_from([spec.name for spec in FIELDS]), json_values(), max_size=4)
    return st.one_of(edited(fields.map(json.dumps)), fields.map(json.dumps), json_values().map(json.dumps), st.text())


@given(
    broken_json(),
    environments(),
    st.sampled_from([ONE_NODE, TWO_NODES, Topology(node_ip="fd00::7")]),
    st.sampled_from(Role),
)
@example('{"chunk_bytes": 1e999999999999999999999}', {}, ONE_NODE, Role.TRAINER)
@example('{"chunk_bytes": -1e999999999, "protocol": 1e-999999999}', {}, ONE_NODE, Role.TRAINER)
@example(
    '{"local_hostname": "\\ud800", "device_name": "\\udcff"}', {"MOONCAKE_MASTER": "\udcff:1"}, ONE_NODE, Role.DRIVER
)
@example('{"protocol": [[[[[[{"a": [[]]}]]]]]]}', {}, ONE_NODE, Role.TRAINER)
def test_any_text_and_environment(init_kwargs: str, environ: dict[str, str], topology: Topology, role: Role) -> None:
    """Any init kwargs in any environment resolve, or are refused with ConfigError, in well-worded findings."""
    assume(not init_kwargs.startswith("@") and init_kwargs != "-")
    with refused_or_not() as outcome:
        resolution = resolve_store_config(init_kwargs, role=role, topology=topology, environ=environ)
        assert all(is_well_worded(finding) for finding in resolution.findings)
        handed = resolution.setup_kwargs()
        assert len(handed) == 7
        assert all(type(value) is (int if key.endswith("_size") else str) for key, value in handed.items())
        assert handed["master_server_addr"]
        assert pickle.loads(pickle.dumps(resolution)) == resolution
    if outcome.refusal:
        assert all(is_well_worded(finding) for finding in outcome.refusal.findings)
        assert pickle.loads(pickle.dumps(outcome.refusal)).findings == outcome.refusal.findings


@given(st.dictionaries(st.text(max_size=12), json_values(), max_size=5), environments())
def test_any_mapping_and_environment(init_kwargs: dict[str, object], environ: dict[str, str]) -> None:
    """Any mapping in any environment resolves or is refused, and what is written as JSON text fares alike."""
    outcomes = []
    for given_as in (init_kwargs, json.dumps(init_kwargs)):
        with refused_or_not() as outcome:
            resolve(given_as, environ)
        outcomes.append({finding.code for finding in outcome.refusal.findings} if outcome.refusal else None)
    assert outcomes[0] == outcomes[1]


@given(
    st.dictionaries(
        st.sampled_from(["PROTOCOL", "DEVICE_NAME", "mooncake_master", "MOONCAKE_MASTR"]), st.text(max_size=8)
    ),
    environments(),
)
def test_strays_change_nothing(strays: dict[str, str], environ: dict[str, str]) -> None:
    """A variable that is not one of the seven changes no value, whatever it holds."""
    base = {name: text for name, text in environ.items() if name in SEVEN}
    values = []
    for variables in (base, base | strays):
        with refused_or_not():
            values.append(resolve(None, variables).setup_kwargs())
    assert len(values) in (0, 2)
    assert values[:1] == values[1:]


SECRET_PLACES = [spec.name for spec in FIELDS]


@given(
    passwords(), st.sampled_from(SECRET_PLACES), st.sampled_from(["http", "redis", "etcd", "ftp", ""]), st.booleans()
)
@example("Zq/Zq:Zq", "device_name", "", False)
def test_no_password_is_shown(password: str, field: str, scheme: str, in_variable: bool) -> None:
    """A password in any field, read or refused, in force or not, is in no text that anybody prints."""
    url = f"{scheme}://user:{password}@10.0.0.5:8080/metadata" if scheme else f"user:{password}@10.0.0.5:8080"
    variable = next(spec.wiring.variable for spec in FIELDS if spec.name == field)
    environ = {**MASTER, **({variable: url} if in_variable and variable else {})}
    init_kwargs: dict[str, object] = {} if in_variable else {field: url, f"x{field}": url, url: 1}
    with refused_or_not() as outcome:
        resolution = resolve(init_kwargs, environ)
        assert "Zq" not in repr(resolution) + str(resolution.settings)
    if outcome.refusal:
        assert "Zq" not in str(outcome.refusal) + repr(outcome.refusal)


def test_password_for_the_engine() -> None:
    """A password is in the settings and in the setup dictionary alone."""
    resolution = resolve({"metadata_server": "http://user:hunter2@10.0.0.5:8080/metadata"})
    assert "hunter2" in resolution.settings.metadata_server
    assert "hunter2" in str(resolution.setup_kwargs()["metadata_server"])
    assert "hunter2" in resolution.to_runtime_env()["env_vars"]["MOONCAKE_TE_META_DATA_SERVER"]
    assert "hunter2" not in repr(resolution) + str(resolution) + repr(resolution.ledger) + str(resolution.findings)


# Two processes of one job


def test_differences_name_both_values_and_both_origins() -> None:
    """Two resolutions say which fields differ, with both origins, what must agree first; an equal one says nothing."""
    driver = resolve('{"protocol": "tcp", "local_buffer_size": "2gb"}')
    trainer = resolve(environ={**MASTER, "MOONCAKE_PROTOCOL": "rdma", "MOONCAKE_LOCAL_BUFFER_SIZE": "4gb"})
    assert [str(item) for item in trainer.differences(driver)] == [
        "protocol: rdma here (MOONCAKE_PROTOCOL), tcp there (--mooncake-store-init-kwargs)",
        "local_buffer_size: 4294967296 here (MOONCAKE_LOCAL_BUFFER_SIZE), "
        "2147483648 there (--mooncake-store-init-kwargs)",
    ]
    assert [item.must_agree for item in trainer.differences(driver)] == [True, False]
    assert driver.differences(pickle.loads(pickle.dumps(driver))) == ()


def test_what_belongs_to_a_node_is_no_difference() -> None:
    """Address and device of a node are meant to differ."""
    here = resolve(environ={**MASTER, "MOONCAKE_DEVICE": "mlx5_0"})
    there = resolve(environ={**MASTER, "MOONCAKE_DEVICE": "mlx5_1", "MOONCAKE_LOCAL_HOSTNAME": "10.0.0.9"})
    assert here.differences(there) == ()


def test_differences_show_no_password() -> None:
    """The text of a difference masks a password; the values of it do not."""
    variable = "MOONCAKE_TE_META_DATA_SERVER"
    here, there = (
        resolve(environ={**MASTER, variable: f"http://u:{word}@10.0.0.5/metadata"}) for word in ("ab1", "cd2")
    )
    (difference,) = here.differences(there)
    assert "ab1" not in f"{difference} {difference!r}"
    assert difference.ours == "http://u:ab1@10.0.0.5/metadata"


@given(st.sampled_from(["tcp", "rdma"]), st.sampled_from(["tcp", "rdma"]), st.sampled_from(["1gb", "2gb"]))
def test_fingerprints_differ_where_what_must_agree_does(ours: str, theirs: str, size: str) -> None:
    """Fingerprints are equal exactly where no field that must agree differs."""
    here = resolve({"protocol": ours, "local_buffer_size": "1gb"})
    there = resolve({"protocol": theirs, "local_buffer_size": size})
    agrees = not any(item.must_agree for item in here.differences(there))
    assert (here.fingerprint == there.fingerprint) is agrees
