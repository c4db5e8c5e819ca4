"""schema: an editor and a start-up agree, field by field, and the answer of explain is what its schema says."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft7Validator
from strategies import edited, field_texts, json_values

from mooncake_config.check import check_before_opening
from mooncake_config.findings import Finding, Severity
from mooncake_config.process import Backend, Process
from mooncake_config.provenance import Source
from mooncake_config.report.documents import check_document, explain_document
from mooncake_config.resolve import resolve_process
from mooncake_config.rules import examine
from mooncake_config.schema import (
    cluster_schema,
    explain_schema,
    init_kwargs_schema,
    schema_text,
    stale_schemas,
    write_schemas,
)
from mooncake_config.settings import FIELDS
from mooncake_config.sources import Environment, FieldSpec
from mooncake_config.topology import Role, Topology

ROOT = Path(__file__).resolve().parents[1]
PROPERTIES: dict[str, Any] = init_kwargs_schema()["properties"]
INIT_KWARGS = Draft7Validator(init_kwargs_schema())
EXPLAIN = Draft7Validator(explain_schema())
NEARLY_RIGHT = {spec.name: edited(st.from_regex(spec.form.pattern)) for spec in FIELDS}
VALUES = {name: st.one_of(json_values(), texts) for name, texts in NEARLY_RIGHT.items()}
each_field = pytest.mark.parametrize("spec", FIELDS, ids=lambda spec: spec.name)


def resolved(init_kwargs: str, **given: Any) -> tuple[Process, tuple[Finding, ...]]:
    """A process of a one-node job whose other fields leave room for anything, and its findings."""
    variables = {"MOONCAKE_MASTER": "10.0.0.5:50051", "MOONCAKE_LOCAL_BUFFER_SIZE": "1tb"}
    process, _ = resolve_process(
        init_kwargs,
        backend=given.get("backend", Backend.MOONCAKE),
        role=given.get("role", Role.DRIVER),
        replica_num=1,
        topology=Topology(num_nodes=1, node_ip="10.0.0.7", local_rank=0, processes_per_node=1),
        environment=Environment(given.get("variables", variables)),
    )
    return process, examine(process)


@each_field
@given(data=st.data())
def test_editor_and_start_up_agree(spec: FieldSpec, data: st.DataObject) -> None:
    """What the schema accepts is never malformed; what passes without a finding about the field, the schema accepts."""
    text = json.dumps({spec.name: data.draw(VALUES[spec.name])})
    process, findings = resolved(text)
    winner = process.winner(spec.name)
    is_malformed = process.values[spec.name] is None and winner is not None and winner.origin.source is Source.CLI
    is_accepted = INIT_KWARGS.is_valid(json.loads(text))
    assert not (is_accepted and is_malformed)
    assert is_accepted or any(spec.name in finding.fields for finding in findings)


@pytest.mark.parametrize("blank", [None, "", " "])
@each_field
def test_blank_is_unset_and_not_in_the_schema(spec: FieldSpec, blank: str | None) -> None:
    """Null and blank text count as unset, are reported, and an editor marks them."""
    text = json.dumps({spec.name: blank})
    assert not INIT_KWARGS.is_valid(json.loads(text))
    assert any(finding.rule == "empty-claim" and finding.fields == (spec.name,) for finding in resolved(text)[1])


@each_field
def test_examples_and_default_are_accepted(spec: FieldSpec) -> None:
    """What an editor offers for a field is accepted, and passes without an error."""
    described = PROPERTIES[spec.name]
    for offered in [*described["examples"], *([described["default"]] if "default" in described else [])]:
        text = json.dumps({spec.name: offered})
        assert INIT_KWARGS.is_valid(json.loads(text))
        assert all(finding.severity is not Severity.ERROR for finding in resolved(text)[1])


def test_constant_defaults_only() -> None:
    """A default stands in the schema where it is a constant text that may be written; the others stand in words."""
    defaults = {name: described.get("default") for name, described in PROPERTIES.items() if "default" in described}
    assert defaults == {
        "metadata_server": "P2PHANDSHAKE",
        "protocol": "rdma",
        "global_segment_size": "8gb",
        "local_buffer_size": "32gb",
    }


@each_field
def test_description_tells_variable_and_default(spec: FieldSpec) -> None:
    """Each description ends with variable, default and an example; the Markdown one says the same."""
    described = PROPERTIES[spec.name]
    variable = f"Variable: {spec.wiring.variable}." if spec.wiring.variable else "It has no variable."
    example = json.dumps(described["examples"][0])
    assert described["description"].endswith(f"{variable} Default: {spec.default_in_words}. Example: {example}.")
    assert described["markdownDescription"].replace("`", "").replace("\n\n", " ") == described["description"]


@each_field
def test_an_editor_says_what_to_write(spec: FieldSpec) -> None:
    """VS Code shows a sentence instead of the pattern, wherever it looks for one; what it matches is the parser's."""
    described = PROPERTIES[spec.name]
    alternatives = described.get("anyOf", [described])
    assert {each["errorMessage"] for each in [described, *alternatives]} == {f"Write {spec.form.expects}."}
    if not spec.form.choices:
        assert alternatives[0]["pattern"] == spec.form.pattern


def test_choices_carry_a_word_each() -> None:
    """Each protocol that an editor offers has its description beside it."""
    protocol = PROPERTIES["protocol"]
    assert protocol["enum"][:2] == ["tcp", "rdma"]
    assert len(protocol["enum"]) == len(protocol["enumDescriptions"]) == 11
    assert all(re.search(FIELDS[3].form.pattern, choice) for choice in protocol["enum"])
    assert protocol["enumDescriptions"][0] == "TCP sockets. Works on any routable network."


@pytest.mark.parametrize(
    "text",
    [schema_text(), json.dumps(explain_schema()), json.dumps(cluster_schema())],
    ids=["init-kwargs", "explain", "cluster"],
)
def test_flat_and_of_draft_7(text: str) -> None:
    """The schemas declare draft 7, are valid by it, stand inline, and use nothing newer."""
    assert json.loads(text)["$schema"] == "http://json-schema.org/draft-07/schema#"
    Draft7Validator.check_schema(json.loads(text))
    for word in ("$ref", "$defs", "definitions", "2020-12", "prefixItems", "unevaluated", "dependentRequired"):
        assert word not in text


def test_only_the_fields_and_the_address_of_the_schema() -> None:
    """The eight fields in their order, and $schema, which may hold anything; an unknown key is refused."""
    assert list(PROPERTIES) == ["$schema", *(spec.name for spec in FIELDS)]
    assert '"null"' not in schema_text()
    assert INIT_KWARGS.is_valid({"$schema": 7})
    assert not INIT_KWARGS.is_valid({"protocl": "tcp"})


def test_whole_example_is_accepted() -> None:
    """The example of a whole file is valid, and resolves without a finding."""
    (example,) = init_kwargs_schema()["examples"]
    INIT_KWARGS.validate(example)
    assert resolved(json.dumps(example))[1] == ()


def test_walkthrough_is_accepted() -> None:
    """The init kwargs of the reference's two-node walkthrough."""
    example = {
        "protocol": "tcp",
        "master_server_address": "10.0.0.5:50051",
        "global_segment_size": "2gb",
        "local_buffer_size": "2gb",
        "chunk_bytes": 67108864,
    }
    assert INIT_KWARGS.is_valid(example)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("master_server_address", "10.0.0.5"),
        ("master_server_address", "10.0.0.5:50051\n"),
        ("master_server_address", "${HEAD_IP}:50051"),
        ("local_hostname", "10.0.0.7 10.0.0.8"),
        ("metadata_server", "p2phandshake"),
        ("metadata_server", "http://10.0.0.5:8080/$PATH"),
        ("protocol", "TCP"),
        ("device_name", "mlx5_0;mlx5_1"),
        ("global_segment_size", "8gb "),
        ("global_segment_size", "0.175kb"),
        ("global_segment_size", 2**64),
        ("local_buffer_size", 1.5),
        ("local_buffer_size", "0" * 65),
        ("chunk_bytes", 0),
        ("chunk_bytes", "0.0gb"),
        ("master_server_address", "k8s://" + "a" * 4091),
    ],
)
def test_an_editor_marks(field: str, value: object) -> None:
    """Values that an editor marks, each of another kind."""
    assert not INIT_KWARGS.is_valid({field: value})


def test_patterns_keep_to_what_python_and_ecma_share() -> None:
    """No pattern uses syntax that only Python or only ECMA-262 has, or that the two read differently."""
    shared = re.compile(
        r"""\(\?: | \(\?= | \(\?! | [()|*+?^$] | \{[0-9]+(?:,[0-9]*)?\} | \[\^?(?:[^\]\\])+\] | \\[.\[\]$] | \\n
        | [A-Za-z0-9 :/;%@#_,-] """,
        re.VERBOSE,
    )
    for spec in FIELDS:
        assert re.fullmatch(rf"(?:{shared.pattern})+", spec.form.pattern, re.VERBOSE), spec.name


@pytest.fixture(scope="module")
def ecma_matches() -> Iterator[Callable[[str], list[bool]]]:
    """Asks a JavaScript engine, as editors have one, which fields' patterns match a text."""
    if not shutil.which("node"):
        pytest.skip("no node here to ask")
    script = """const patterns = JSON.parse(process.argv[1]).map(p => new RegExp(p, 'u'));
        require('readline').createInterface({input: process.stdin}).on('line', line =>
            console.log(JSON.stringify(patterns.map(p => p.test(JSON.parse(line))))));"""
    patterns = json.dumps([spec.form.pattern for spec in FIELDS])
    command = ["node", "-e", script, patterns]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as node:
        questions, answers = node.stdin, node.stdout
        assert questions
        assert answers

        def ask(text: str) -> list[bool]:
            print(json.dumps(text), file=questions)
            answer: list[bool] = json.loads(answers.readline())
            return answer

        yield ask
        questions.close()


@given(text=st.one_of(field_texts(), *NEARLY_RIGHT.values()), end=st.sampled_from(["", "", "\n", "\r", "\u2028", " "]))
def test_patterns_mean_the_same_in_ecma(ecma_matches: Callable[[str], list[bool]], text: str, end: str) -> None:
    """A JavaScript engine matches what Python matches."""
    assert ecma_matches(text + end) == [bool(re.search(spec.form.pattern, text + end)) for spec in FIELDS]


@given(
    raw=st.dictionaries(st.sampled_from([spec.name for spec in FIELDS]), json_values()),
    backend=st.sampled_from(Backend),
)
def test_answers_of_explain_are_valid(raw: dict[str, object], backend: Backend) -> None:
    """Whatever the init kwargs hold, the answer of explain is valid by its schema."""
    process, findings = resolved(json.dumps(raw), backend=backend, role=Role.TRAINER)
    answer = explain_document(process, findings)
    assert [*EXPLAIN.iter_errors(json.loads(json.dumps(answer, allow_nan=False)))] == []


def test_a_good_answer_is_valid() -> None:
    """An answer with a setup dictionary and a fingerprint, and one of a process that nobody gave a master."""
    good = explain_document(*resolved('{"protocol": "tcp"}'))
    assert good["setup"]
    assert good["fingerprint"]
    EXPLAIN.validate(good)
    lost = explain_document(*resolved("{}", variables={}))
    assert lost["fields"]["master_server_address"]["source"] is None
    EXPLAIN.validate(lost)


def test_what_check_adds_is_valid() -> None:
    """check adds the facts of this host and what it asked; a finding may name its node."""
    dead = {"MOONCAKE_MASTER": "127.0.0.1:1", "MOONCAKE_PROTOCOL": "tcp"}
    answer = json.loads(json.dumps(check_document(check_before_opening(resolved("{}", variables=dead)[0]))))
    assert answer["probes"][0]["what"] == "master_server_address"
    EXPLAIN.validate(answer)
    EXPLAIN.validate(answer | {"findings": [_FINDING | {"node": "10.0.0.7"}]})
    assert not EXPLAIN.is_valid(answer | {"host": {}})
    assert not EXPLAIN.is_valid(answer | {"probes": [{}]})


_FINDING: dict[str, object] = {
    "code": "MC101",
    "rule": "loopback-in-multi-node",
    "severity": "warning",
    "fields": ["local_hostname"],
    "source": "env",
    "origin": "MOONCAKE_LOCAL_HOSTNAME",
    "node": None,
    "message": "…",
    "fix": "…",
}


@pytest.mark.parametrize(
    "broken",
    [
        {"version": 2},
        {"backend": "etcd"},
        {"ok": False},
        {"backend": "ray"},
        {"fields": {}},
        {"setup": {"protocol": "tcp"}},
        {"fingerprint": "sha256:0"},
        {"extra": 1},
        {"process": {"role": "boss", "local_rank": 0, "contributes_segment": True}},
        {"topology": {"num_nodes": 0, "trainer_nodes": None, "processes_per_node": None, "node_ip": None}},
        *({"findings": [_FINDING | {key: value}]} for key, value in [
            ("code", "101"), ("severity", "fatal"), ("fields", ["protocl"]), ("source", "file"), ("fix", ""),
        ]),
    ],
    ids=str,
)  # fmt: skip
def test_a_broken_answer_is_refused(broken: dict[str, object]) -> None:
    """An answer that breaks one promise of the contract is not valid."""
    answer = explain_document(*resolved("{}"))
    assert EXPLAIN.is_valid(answer)
    assert not EXPLAIN.is_valid(answer | broken)


def test_committed_schemas_are_current() -> None:
    """schemas/ holds what the table of fields gives now."""
    assert stale_schemas(ROOT / "schemas") == []


def test_write_and_stale(tmp_path: Path) -> None:
    """A missing or altered schema is stale; writing makes the directory and cures it; the text is the file's."""
    directory = tmp_path / "made" / "here"
    names = [
        "mooncake-store-init-kwargs.schema.json",
        "explain.schema.json",
        "plan.schema.json",
        "check-cluster.schema.json",
    ]
    assert stale_schemas(directory) == names
    assert write_schemas(directory) == [directory / name for name in names]
    assert stale_schemas(str(directory)) == []
    (directory / names[1]).write_bytes(b"\xff")
    assert stale_schemas(directory) == names[1:2]
    assert (directory / names[0]).read_text("utf-8") == schema_text()
