"""schemas/ in an editor: the JSON client of VS Code completes, explains and marks; the files are fit for a store."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft7Validator
from strategies import edited, json_values

from mooncake_config import ConfigError, Topology, resolve_store_config
from mooncake_config.protocols import PROTOCOLS
from mooncake_config.schema import INIT_KWARGS_FILE, init_kwargs_schema
from mooncake_config.settings import FIELDS
from mooncake_config.sources import FieldSpec

ROOT = Path(__file__).resolve().parents[1]
EDITOR = ROOT / "tests" / "editor"
SCHEMA = ROOT / "schemas" / INIT_KWARGS_FILE
GOOD = sorted((EDITOR / "good").glob("*.json"))
BAD = sorted((EDITOR / "bad").glob("*.json"))

ONLY_FIELDS = (
    "Write one object, and in it these fields alone: master_server_address, local_hostname, metadata_server, "
    "protocol, device_name, global_segment_size, local_buffer_size, chunk_bytes."
)
SIZE = (
    'Write a whole number of bytes, or a text such as "8gb": digits and one of b, kb, mb, gb, tb, pb (powers of 1024); '
    "of fractions only halves, quarters and eighths, such as 1.5gb"
)
PROTOCOL = (
    "Write one of tcp, rdma, efa, cxi, ub, ubshmem, ascend, sunrise_link, cxl, nvlink_intra, rpc_only, in lower case."
)
DEVICES = "Write names of RDMA devices as ibv_devices prints them, separated by commas."

MARKS: dict[str, tuple[str, list[str]]] = {
    "misspelt-key": ('"protocl"', [ONLY_FIELDS]),
    "key-of-mooncake": ('"rdma_devices"', [ONLY_FIELDS, "Write device_name instead."]),
    "key-of-a-variable": ('"MOONCAKE_MASTER"', [ONLY_FIELDS, "Write master_server_address instead."]),
    "wrong-unit": ('"8 gigs"', [f"{SIZE}."]),
    "boolean-size": ("true", [f"{SIZE}."]),
    "negative-size": ("-1", [f"{SIZE}."]),
    "fraction-of-a-byte": ('"0.3kb"', [f"{SIZE}."]),
    "zero-chunk": ('"0mb"', [f"{SIZE}; not zero."]),
    "unknown-protocol": ('"rmda"', [PROTOCOL]),
    "schema-by-its-path": ('"roce"', [PROTOCOL]),
    "master-without-port": (
        '"10.0.0.5"',
        ["Write host:port, [IPv6]:port, or etcd://host:port;host:port for a master in HA mode."],
    ),
    "hostname-with-scheme": (
        '"http://10.0.0.7"',
        ["Write one host name or IP of this node, without a scheme; a port behind it is seldom right."],
    ),
    "metadata-without-scheme": (
        '"10.0.0.5:8080"',
        ["Write P2PHANDSHAKE, http://host:port/metadata, or etcd://host:port."],
    ),
    "devices-as-list": ('[\n    "mlx5_0",\n    "mlx5_1"\n  ]', [DEVICES]),
    "devices-with-colon": ('"mlx5_0:1"', [DEVICES]),
    "null": ("null", [PROTOCOL]),
    "list": ('[\n  {\n    "protocol": "tcp"\n  }\n]', [ONLY_FIELDS]),
}
"""Of each bad file: what the editor marks, and what it says about it."""


def node(script: str, request: dict[str, Any]) -> Any:
    """The answer of a script that runs beside the packages of tests/editor."""
    if not shutil.which("node") or not (EDITOR / "node_modules").is_dir():
        pytest.skip("the JSON client of VS Code is not installed; run: make setup")
    command = ["node", str(EDITOR / script)]
    done = subprocess.run(command, input=json.dumps(request), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def cursor(text: str) -> dict[str, object]:
    """A text and the place in it where the sign ▮ stands for the cursor."""
    return {"text": text.replace("▮", ""), "at": text.index("▮")}


def first_example(spec: FieldSpec) -> str:
    """The first value that a field's row shows, as JSON."""
    return json.dumps(next(iter(spec.info.examples or ())))


def questions() -> dict[str, dict[str, object]]:
    """All that is asked, so that the client starts once."""
    asked: dict[str, dict[str, object]] = {
        "keys": {"do": "complete", **cursor('{"▮"}')},
        "protocols": {"do": "complete", **cursor('{"protocol": ▮}')},
        "sizes": {"do": "complete", **cursor('{"global_segment_size": ▮}')},
        "anew": {"do": "complete", **cursor("▮")},
        "protocol value": {"do": "hover", **cursor('{"protocol": "t▮cp"}')},
        "own schema": {"do": "diagnose", "text": '{"$schema": "7", "protocol": "rmda"}'},
    }
    for spec in FIELDS:
        asked[spec.name] = {"do": "hover", **cursor(f'{{"{spec.name}▮": {first_example(spec)}}}')}
    for path in [*GOOD, *BAD]:
        text = path.read_text("utf-8")
        # At its own path a file has the schema that it names, elsewhere the one that its name is associated with.
        asked[path.stem] = {"do": "diagnose", "text": text, "path": str(path) if "$schema" in text else None}
    return asked


@pytest.fixture(scope="module")
def editor() -> dict[str, Any]:
    """The client's answers to all questions."""
    asked = questions()
    answers = node("ask.cjs", {"schema": str(SCHEMA), "questions": [*asked.values()]})
    return dict(zip(asked, answers, strict=True))


def test_keys_are_offered(editor: dict[str, Any]) -> None:
    """In an object the editor offers $schema and the eight fields, in the order of the table, each with its page."""
    offered = {item["label"]: item["documentation"] for item in editor["keys"]}
    assert list(offered) == ["$schema", *(spec.name for spec in FIELDS)]
    properties = init_kwargs_schema()["properties"]
    assert all(offered[spec.name] == properties[spec.name]["markdownDescription"] for spec in FIELDS)


def test_protocols_are_offered(editor: dict[str, Any]) -> None:
    """Behind protocol the editor offers every protocol with a word on it."""
    offered = {json.loads(item["label"]): item["documentation"] for item in editor["protocols"]}
    assert offered == PROTOCOLS


def test_sizes_are_offered(editor: dict[str, Any]) -> None:
    """Behind a size the editor offers the default, said to be that, then the examples."""
    assert [item["label"] for item in editor["sizes"]] == ['"8gb"', '"2gb"', "2147483648"]


def test_a_whole_file_is_offered(editor: dict[str, Any]) -> None:
    """In an empty file the editor offers one that can be filled in."""
    (item,) = editor["anew"]
    assert item["label"].startswith('{"master_server_address":"10.0.0.5:50051"')


@pytest.mark.parametrize("spec", FIELDS, ids=lambda spec: spec.name)
def test_a_field_is_explained(editor: dict[str, Any], spec: FieldSpec) -> None:
    """Over a field's name the editor shows what it is, its variable, its default and an example."""
    assert editor[spec.name]["marked"] == f'"{spec.name}"'
    shown = editor[spec.name]["shown"]
    words = spec.default_in_words if spec.wiring.unclaimed else f"`{spec.default_in_words}`"
    variable = f"Variable: `{spec.wiring.variable}`" if spec.wiring.variable else "It has no variable"
    assert shown.startswith(
        f"{spec.info.description}\n\n{variable}. Default: {words}. Example: `{first_example(spec)}`."
    )


def test_a_protocol_is_explained(editor: dict[str, Any]) -> None:
    """Over a protocol the editor shows the word on it too."""
    assert editor["protocol value"]["marked"] == '"tcp"'
    assert editor["protocol value"]["shown"].endswith("`tcp`: TCP sockets\\. Works on any routable network\\.")


def test_every_bad_file_has_its_marks() -> None:
    """No bad file is without an expectation."""
    assert {path.stem for path in BAD} == set(MARKS)


@pytest.mark.parametrize("name", MARKS)
def test_a_bad_file_is_marked(editor: dict[str, Any], name: str) -> None:
    """The editor marks exactly the wrong spot, in our words."""
    marked, messages = MARKS[name]
    assert editor[name] == [{"marked": marked, "message": message} for message in messages]


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_a_good_file_is_not_marked(editor: dict[str, Any], path: Path) -> None:
    """A good file has no mark, whether the editor knows the schema by the file's name or by its $schema."""
    assert editor[path.stem] == []


def test_a_schema_that_is_not_there(editor: dict[str, Any]) -> None:
    """A $schema that leads nowhere is said, at its spot, by the editor itself."""
    (found,) = editor["own schema"]
    assert found["marked"] == '"7"'
    assert found["message"].startswith("Unable to load schema")


def is_plain(value: object) -> bool:
    """Whether every reader of JSON sees the same value: from 2^53 on JavaScript rounds, and 1.0 is no integer to it."""
    return not isinstance(value, float) and not (isinstance(value, int) and abs(value) > 2**53)


ODD = json_values().filter(is_plain)
OBJECTS = st.one_of(
    [st.fixed_dictionaries({spec.name: edited(st.from_regex(spec.form.pattern)) | ODD}) for spec in FIELDS]
)
"""Objects with one field, whose value is good, nearly good or odd."""


def test_an_editor_and_a_validator_agree() -> None:
    """The editor marks what a validator of JSON Schema refuses, and nothing else."""
    values: list[dict[str, object]] = []

    @settings(max_examples=200)
    @given(OBJECTS)
    def collect(value: dict[str, object]) -> None:
        values.append(value)

    collect()  # and then ask once: the client takes longer to start than to answer
    asked = [{"do": "diagnose", "text": json.dumps(value)} for value in values]
    marks = node("ask.cjs", {"schema": str(SCHEMA), "questions": asked})
    is_valid = Draft7Validator(init_kwargs_schema()).is_valid
    verdicts = [(value, found == [], is_valid(value)) for value, found in zip(values, marks, strict=True)]
    assert {True, False} == {accepted for _, accepted, _ in verdicts}
    assert [value for value, accepted, valid in verdicts if accepted is not valid] == []


def refused(path: Path) -> bool:
    """Whether a start-up finds something in a file, beside what it may say of any."""
    topology = Topology(num_nodes=1, node_ip="10.0.0.7", local_rank=0, processes_per_node=1)
    environ = {"MOONCAKE_MASTER": "10.0.0.5:50051"}
    try:
        findings = resolve_store_config(f"@{path}", topology=topology, environ=environ, role="driver").findings
    except ConfigError as refusal:
        findings = refusal.findings
    return any(finding.code < "MC100" for finding in findings)


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_a_start_up_reports_a_bad_file(path: Path) -> None:
    """What the editor marks, the resolver reports."""
    assert refused(path)


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_a_start_up_takes_a_good_file(path: Path) -> None:
    """What the editor leaves alone, no rule about single values reports."""
    assert not refused(path)


def test_good_files_show_everything() -> None:
    """The good files together hold every property and every protocol, as the store wants its examples."""
    held = [json.loads(path.read_text("utf-8")) for path in GOOD]
    assert {name for each in held for name in each} == set(init_kwargs_schema()["properties"])
    assert {each["protocol"] for each in held if "protocol" in each} == set(PROTOCOLS)


def test_the_store_takes_the_schema() -> None:
    """schemastore.org's own check passes: an https $id, draft 7, Ajv's strict mode, its verdict on each example.

    Of the additions only errorMessage has to be announced there, in schema-validation.jsonc.
    """
    schema = json.loads(SCHEMA.read_text("utf-8"))
    assert schema["$id"] == "https://www.schemastore.org/mooncake-store-init-kwargs.json"
    assert all(described["description"] for described in schema["properties"].values())
    request = {"schema": str(SCHEMA), "additions": ["errorMessage"], "files": [str(path) for path in [*GOOD, *BAD]]}
    expected = {str(path): True for path in GOOD} | {str(path): False for path in BAD}
    assert node("compile.cjs", request) == expected


def check_jsonschema(*arguments: str) -> subprocess.CompletedProcess[str]:
    """What check-jsonschema says, which matches patterns with an engine of its own."""
    command = [sys.executable, "-m", "check_jsonschema", "--output-format", "json", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_schemas_are_schemas() -> None:
    """check-jsonschema finds both files valid by the metaschema of their draft."""
    done = check_jsonschema("--check-metaschema", *map(str, sorted((ROOT / "schemas").glob("*.json"))))
    assert (done.returncode, json.loads(done.stdout)["status"]) == (0, "ok"), done.stdout


def test_check_jsonschema_takes_the_good_files() -> None:
    """The command that people put into CI and pre-commit takes every good file."""
    done = check_jsonschema("--schemafile", str(SCHEMA), *map(str, GOOD))
    assert done.returncode == 0, done.stdout


def test_check_jsonschema_refuses_the_bad_files() -> None:
    """It refuses every bad file."""
    done = check_jsonschema("--schemafile", str(SCHEMA), *map(str, BAD))
    assert done.returncode == 1
    assert {Path(error["filename"]) for error in json.loads(done.stdout)["errors"]} == set(BAD)
