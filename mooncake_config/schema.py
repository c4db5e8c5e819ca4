"""The JSON Schemas: of the init kwargs, for an editor, and of the answers of the commands, for a program.

All are generated from the table of fields and flat, without references: editors show descriptions and choices only
where they stand inline. Draft 7 is what editors complete for; ``errorMessage``, ``enumDescriptions`` and
``markdownDescription`` are additions that VS Code reads and validators pass over. The first schema keeps to what
schemastore.org asks of one: an https address as ``$id``, and Ajv's strict mode, so no list of types.
"""

from __future__ import annotations

import json
from dataclasses import fields
from enum import Enum
from pathlib import Path
from typing import Any

from mooncake_config.findings import Severity
from mooncake_config.host import Host
from mooncake_config.plan import NodeRole
from mooncake_config.process import Backend
from mooncake_config.provenance import Source
from mooncake_config.reach import Meeting
from mooncake_config.settings import FIELDS
from mooncake_config.sizes import LARGEST
from mooncake_config.sources import SCHEMA_KEY, FieldSpec
from mooncake_config.topology import Role

Schema = dict[str, Any]

INIT_KWARGS_FILE = "mooncake-store-init-kwargs.schema.json"
_DRAFT = "http://json-schema.org/draft-07/schema#"


def init_kwargs_schema() -> Schema:
    """The schema of the init kwargs. What it accepts is never malformed, and what passes without a finding it accepts.

    Null and blank text count as unset and are reported, so they are not in it.
    """
    note = "The address of this schema, for the editor. It means nothing else, whatever it holds."
    return {
        "$schema": _DRAFT,
        "$id": f"https://www.schemastore.org/{INIT_KWARGS_FILE.partition('.')[0]}.json",
        "title": "Init kwargs of Mooncake Store",
        "description": "The value of --mooncake-store-init-kwargs, or the content of the file behind its @. A field "
        "that is left out comes from its environment variable, then from its default.",
        "type": "object",
        "additionalProperties": False,
        "errorMessage": f"Write one object, and in it these fields alone: {', '.join(spec.name for spec in FIELDS)}.",
        "propertyNames": {"allOf": [_foreign(spec) for spec in FIELDS if spec.wiring.variable]},
        "properties": {SCHEMA_KEY: {"description": note}, **{spec.name: _property(spec) for spec in FIELDS}},
        "examples": [{spec.name: _example(spec) for spec in FIELDS if not spec.wiring.node_local}],
    }


def _example(spec: FieldSpec) -> object:
    """The first value that a field's row shows."""
    return (spec.info.examples or [None])[0]


def _foreign(spec: FieldSpec) -> Schema:
    """Refuses other names of a field, which are no keys here: its variable, and Mooncake's own."""
    names = [name for name in (spec.wiring.variable, spec.wiring.engine) if name and name != spec.name]
    return {"not": {"enum": names}, "errorMessage": f"Write {spec.name} instead."}


def _property(spec: FieldSpec) -> Schema:
    described: Schema = {
        "description": f"{spec.info.description} {_elsewhere(spec, '{}')}",
        "markdownDescription": f"{spec.info.description}\n\n{_elsewhere(spec, '`{}`')}",
        "errorMessage": f"Write {spec.form.expects}.",
        **_accepted(spec),
        "examples": spec.info.examples,
    }
    default = spec.wiring.default
    return {**described, "default": default} if default else described


def _accepted(spec: FieldSpec) -> Schema:
    """The values of a field: one of its choices, a text that matches, or for a size a number too."""
    form = spec.form
    if form.choices:
        return {"type": "string", "enum": [*form.choices], "enumDescriptions": [*form.choices.values()]}
    text = {"type": "string", "pattern": form.pattern, "maxLength": form.longest}
    if not spec.takes_numbers:
        return text
    # VS Code shows the message of the first alternative that is as near as any, so each carries it.
    number = {"type": "integer", "minimum": form.least, "maximum": LARGEST}
    refusal = {"errorMessage": f"Write {form.expects}."}
    return {"anyOf": [{**text, **refusal}, {**number, **refusal}]}


def _elsewhere(spec: FieldSpec, code: str) -> str:
    """Where a field comes from that the JSON leaves out, and a value that may stand in it."""
    variable = spec.wiring.variable
    named = f"Variable: {code.format(variable)}." if variable else "It has no variable."
    words = spec.default_in_words
    default = words if spec.wiring.unclaimed else code.format(words)
    return f"{named} Default: {default}. Example: {code.format(json.dumps(_example(spec)))}."


def explain_schema() -> Schema:
    """The schema of the JSON answer of ``explain``, and of ``check``, which adds ``host`` and ``probes``."""
    about = "One process of a job: its settings, where each came from, and what was found."
    # Over Ray nothing is handed to Mooncake, and with an error standing nothing is either.
    nothing_handed = {"properties": {"setup": {"type": "null"}}}
    by_ray = {"properties": {"backend": {"const": Backend.RAY.value}}}
    no_fingerprint = {"properties": {"setup": {"type": "null"}, "fingerprint": {"type": "null"}}}
    rules = [
        {"if": {"properties": {"ok": {"const": False}}}, "then": nothing_handed},
        {"if": by_ray, "then": no_fingerprint},
    ]
    answer = _object(_explained(), about, _explained_at_times())
    return {**_answer_of("explain", "explain and check", answer), "allOf": rules}


def _explained() -> Schema:
    """What every answer of ``explain`` and ``check`` holds."""
    return {
        "version": {"const": 1},
        "ok": {"type": "boolean", "description": "Whether no error stands."},
        "backend": _one_of(Backend, "The rollout object store."),
        "process": _process_answer(),
        "topology": _topology_answer(),
        "fields": _object(
            {spec.name: _field_answer(spec) for spec in FIELDS}, "Every field, in the order of the table."
        ),
        "replica_num": {"type": "integer", "description": "Memory replicas of each object."},
        "setup": _setup_answer(),
        "findings": {"type": "array", "items": _finding_answer(), "description": "Worst first."},
        "fingerprint": {
            "type": ["string", "null"],
            "pattern": "^sha256:[0-9a-f]{64}$",
            "description": "Equal on all nodes that belong together; null where a value of it is missing.",
        },
    }


def _explained_at_times() -> Schema:
    """What some of these answers hold as well."""
    return {
        "memory_per_node": _count(0, "Bytes that all Store clients of a training node reserve; null: unknown."),
        "host": _object({fact.name: {} for fact in fields(Host)}, "From check: this machine; unknown is null."),
        "probes": {"type": "array", "items": _probe_answer(), "description": "From check: what was asked."},
    }


def _answer_of(name: str, command: str, answer: Schema) -> Schema:
    """The schema of a whole answer, which a program gets."""
    head = {"$schema": _DRAFT, "$id": f"urn:mooncake-config:{name}", "title": f"Answer of mooncake-config {command}"}
    return {**head, **answer}


def _object(required: Schema, description: str, optional: Schema | None = None) -> Schema:
    """An object of exactly these properties."""
    return {
        "description": description,
        "type": "object",
        "additionalProperties": False,
        "required": [*required],
        "properties": {**required, **(optional or {})},
    }


def _one_of(choices: type[Enum], description: str) -> Schema:
    return {"enum": [choice.value for choice in choices], "description": description}


def _text_or_null(description: str) -> Schema:
    return {"type": ["string", "null"], "description": description}


def _count(least: int, description: str) -> Schema:
    return {"type": ["integer", "null"], "minimum": least, "description": description}


def _source(description: str) -> Schema:
    return {"enum": [*(source.value for source in Source), None], "description": description}


def _process_answer() -> Schema:
    contributes = "Whether it gives memory to the Store; if not, it hands over 0 whatever the segment's size."
    answer = {
        "role": _one_of(Role, "What it does in the job."),
        "local_rank": _count(0, "Its rank on its node; null: none."),
        "contributes_segment": {"type": "boolean", "description": contributes},
    }
    return _object(answer, "The process that was asked about.")


def _topology_answer() -> Schema:
    answer = {
        "num_nodes": _count(1, "Nodes in the job."),
        "trainer_nodes": _count(1, "Nodes that run training actors; each contributes one segment."),
        "processes_per_node": _count(1, "Store clients on one node."),
        "node_ip": _text_or_null("The Ray node IP of this node, or the guess that stands in for it."),
    }
    return _object(answer, "The job's shape; what is unknown is null.")


def _claim_answer() -> Schema:
    raw = "As it was written, with its JSON type; long text is shortened, a password is ***."
    return {
        "raw": {"type": ["string", "number", "boolean", "null"], "description": raw},
        "source": _source("The kind of place; null: nobody."),
        "origin": _text_or_null("The spot to edit: a variable's name, the flag, the file's path."),
    }


def _field_answer(spec: FieldSpec) -> Schema:
    kind = "integer" if spec.takes_numbers else "string"
    value: Schema = {"type": [kind, "null"], "description": "Null where it is malformed, or nobody's claim."}
    if spec.takes_numbers:
        value |= {"minimum": spec.form.least, "description": f"In bytes. {value['description']}"}
    lost = {"type": "array", "items": _object(_claim_answer(), "A claim that lost."), "description": "Strongest first."}
    return _object({"value": value, **_claim_answer(), "overridden": lost}, f"{spec.info.description}")


def _setup_answer() -> Schema:
    keys = {
        spec.wiring.engine: {"type": "integer", "minimum": 0} if spec.takes_numbers else {"type": "string"}
        for spec in FIELDS
        if spec.wiring.engine
    }
    answer = _object(keys, "What MooncakeDistributedStore.setup gets, passwords masked; null while an error stands.")
    return {**answer, "type": ["object", "null"]}


def _finding_answer() -> Schema:
    names = [spec.name for spec in FIELDS]
    answer = {
        "code": {"type": "string", "pattern": "^MC[0-9]{3}$"},
        "rule": {"type": "string", "pattern": "^[a-z0-9]+(-[a-z0-9]+)*$", "description": "Its name, as for --ignore."},
        "severity": _one_of(Severity, "An error refuses the configuration."),
        "fields": {"type": "array", "items": {"enum": names}, "description": "Empty where it is about no field."},
        "source": _source("The kind of place to edit; null: none."),
        "origin": _text_or_null("The spot to edit."),
        "node": _text_or_null("The node it was found on, where several are compared."),
        "message": {"type": "string", "minLength": 1, "description": "What was seen."},
        "fix": {"type": "string", "minLength": 1, "description": "The way out."},
    }
    return _object(answer, "What one rule saw.")


def _probe_answer() -> Schema:
    answer = {
        "what": {"type": "string", "description": "The kind of question, or the field whose address was asked."},
        "target": {"type": "string", "description": "Who was asked."},
        "answer": {"type": "string", "description": "The answer, in words."},
        "seconds": {"type": "number", "minimum": 0, "description": "How long it took."},
    }
    return _object(answer, "One question to this machine or to an endpoint.")


def plan_schema() -> Schema:
    """The schema of the JSON answer of ``plan``."""
    sizes = {name: {"type": "integer", "minimum": 1} for name in ("global_segment_size", "local_buffer_size")}
    proposal = _object(
        sizes, "Sizes in bytes that fit, the present ones where they do; null: none do, or too little is known."
    )
    answer = {
        "version": {"const": 1},
        "ok": {"type": "boolean", "description": "Whether no error stands."},
        "inputs": _plan_inputs(),
        "nodes": {"type": "array", "items": _node_answer(), "description": "One for each kind of node; none over Ray."},
        "capacity": _count(0, "Bytes that the training nodes contribute together; null: unknown."),
        "rollouts_that_fit": _count(0, "Rollouts that the Store holds at once with their replicas; null: unknown."),
        "proposal": {**proposal, "type": ["object", "null"]},
        "findings": {"type": "array", "items": _finding_answer(), "description": "Worst first."},
    }
    about = "A whole job: what its nodes give to the Store, and what fits into it."
    return _answer_of("plan", "plan", _object(answer, about))


def _plan_inputs() -> Schema:
    answer = {
        "backend": _one_of(Backend, "The rollout object store."),
        "num_nodes": _count(1, "Nodes in the job."),
        "trainer_nodes": _count(1, "Nodes that run training actors; each contributes one segment."),
        "processes_per_node": _count(1, "Trainers on each of them."),
        "replica_num": {"type": "integer", "description": "Memory replicas of each object."},
        "protocol": _text_or_null("The transfer protocol."),
        "pinned": {"type": ["boolean", "null"], "description": "Whether memory is pinned when a store opens."},
        "global_segment_size": _count(0, "Bytes of the segment of a training node."),
        "local_buffer_size": _count(0, "Bytes of the buffer of each Store client."),
        "rollout_bytes": _count(1, "Bytes of one rollout."),
        "in_flight": _count(1, "Rollouts in the Store at the same time."),
        "eviction_watermark": {"type": "number", "description": "Share of the capacity that rollouts may take."},
    }
    return _object(answer, "What the plan was made from; what is unknown is null.")


def _node_answer() -> Schema:
    answer = {
        "role": _one_of(NodeRole, "What runs on such a node."),
        "count": _count(1, "How many there are."),
        "segment": _count(0, "Bytes that one gives to the Store."),
        "buffers": _count(0, "Bytes of the buffers of all Store clients on one."),
        "total": _count(0, "Bytes that one reserves for both."),
        "memory": _count(0, "Bytes of memory that one has: those of the host that was looked at."),
    }
    return _object(answer, "Nodes of one kind; what is unknown is null.")


def cluster_schema() -> Schema:
    """The schema of the JSON answer of ``check --cluster``."""
    check = {name: part for name, part in explain_schema().items() if name not in ("$schema", "$id", "title")}
    check["required"] = [*check["required"], "host", "probes"]
    check |= {"type": ["object", "null"], "description": "The answer of check on this node; null where it gave none."}
    finding = _finding_answer()
    nodes = {"type": "array", "items": {"type": "string"}, "description": "All nodes that it is about."}
    finding |= {"required": [*finding["required"], "nodes"], "properties": {**finding["properties"], "nodes": nodes}}
    versions = {"type": "object", "additionalProperties": _text_or_null("Its version; null: not installed.")}
    answer = {
        "version": {"const": 1},
        "ok": {"type": "boolean", "description": "Whether no error stands."},
        "nodes": {"type": "object", "additionalProperties": check, "description": "Every alive Ray node."},
        "software": {"type": "object", "additionalProperties": versions, "description": "What is installed on each."},
        "reach": {"type": "array", "items": _contact_answer(), "description": "Connections between nodes."},
        "findings": {"type": "array", "items": finding, "description": "Worst first, each cause once."},
        "fingerprint": _text_or_null("That of every node; null where nodes differ, or one has none."),
    }
    about = "Every node of a Ray cluster, and what was found by comparing them."
    return _answer_of("check-cluster", "check --cluster", _object(answer, about))


def _contact_answer() -> Schema:
    answer = {
        "from": {"type": "string", "description": "The node that connected."},
        "to": {"type": "string", "description": "The node that it should reach."},
        "target": {"type": "string", "description": "host:port that it connected to."},
        "answer": _one_of(Meeting, "How it ended."),
        "detail": {"type": "string", "description": "The system's own words, or what was seen."},
        "seconds": {"type": "number", "minimum": 0, "description": "How long the connection took to stand or to fail."},
    }
    return _object(answer, "One connection between the data addresses of two nodes.")


_SCHEMAS = {
    INIT_KWARGS_FILE: init_kwargs_schema,
    "explain.schema.json": explain_schema,
    "plan.schema.json": plan_schema,
    "check-cluster.schema.json": cluster_schema,
}


def _text(schema: Schema) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def schema_text() -> str:
    """The schema of the init kwargs as text, as it stands in its file."""
    return _text(init_kwargs_schema())


def write_schemas(directory: str | Path) -> list[Path]:
    """Writes the schemas into a directory, which is made where it is missing, and gives their paths.

    Raises:
        OSError: the directory cannot be written to.
    """
    Path(directory).mkdir(parents=True, exist_ok=True)
    paths = [Path(directory, name) for name in _SCHEMAS]
    for path, make in zip(paths, _SCHEMAS.values(), strict=True):
        path.write_text(_text(make()), encoding="utf-8")
    return paths


def stale_schemas(directory: str | Path) -> list[str]:
    """The names of the schemas that a directory has not, or not as they would be written now."""
    return [name for name, make in _SCHEMAS.items() if _bytes_of(Path(directory, name)) != _text(make()).encode()]


def _bytes_of(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None
