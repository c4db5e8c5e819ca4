"""Writes the pages of the reference, and the parts of other pages that are read off the source.

python docs/reference_pages.py
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import mooncake_config
from mooncake_config import variables
from mooncake_config.init_kwargs import read_init_kwargs
from mooncake_config.rules import ALL_RULES, Rule
from mooncake_config.settings import FIELDS
from mooncake_config.sizes import human_size
from mooncake_config.sources import FieldSpec, Wiring
from mooncake_config.store.codes import CODES, Code

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
DIRECTORY = ROOT / "docs" / "reference"
COMMANDS = ("explain", "check", "plan", "schema", "rule", "demo", "completion")
NOTE = "<!-- Written by `python docs/reference_pages.py`; edit the source instead. -->\n"

_EXAMPLE = re.compile(r"^(Fires|Silent|Example):\n(?:    )", re.MULTILINE)
_HEAD = re.compile(r"^(Why|Fix|Fires|Silent|Example):")
_NAMES = "|".join(spec.name for spec in FIELDS)
_CODE = re.compile(
    rf"(?<![\w`.-])(?:(?:{_NAMES})\b(?!=)|(?:MOONCAKE|MC|NCCL|LOCAL)_[A-Z0-9_]*[A-Z0-9*]|--[a-z]+(?:-[a-z]+)*)"
)
"""Words of a page that are typed as they stand: fields, variables, options."""


def rules_page() -> str:
    """Every rule with its page, by code."""
    head = "# Rules\n\nThe same pages are printed by `mooncake-config rule CODE`.\n\n"
    table = "| code | rule | severity | what it sees |\n|---|---|---|---|\n"
    return NOTE + head + table + "".join(map(_rule_row, ALL_RULES)) + "".join(map(_rule_section, ALL_RULES))


def _rule_row(rule: Rule[object]) -> str:
    return f"| [{rule.code}](#{rule.code.lower()}) | `{rule.name}` | {rule.severity.value} | {rule.summary} |\n"


def _rule_section(rule: Rule[object]) -> str:
    ignored = "Cannot be ignored." if rule.protects else f"`--ignore {rule.code}` drops it."
    page = _marked_up(_EXAMPLE.sub(r"\1:\n\n    ", rule.page))
    heading = f'## <a id="{rule.code.lower()}"></a>{rule.code} {rule.name}'
    return f"\n{heading}\n\nSeverity: {rule.severity.value}. {ignored}\n\n{page}\n"


def _marked_up(page: str) -> str:
    """A rule's page, which is written for a terminal, with its heads in bold and what is typed as code."""
    return "".join(map(_marked_up_line, page.splitlines(keepends=True)))


def _marked_up_line(line: str) -> str:
    if line.startswith("    "):
        return line
    outside = line.split("`")  # every second part is code already
    outside[::2] = [_CODE.sub(r"`\g<0>`", part) for part in outside[::2]]
    return _HEAD.sub(r"**\1:**", "`".join(outside))


def fields_page() -> str:
    """The table of fields, and what each means."""
    head = "# Fields and variables\n\nInit kwargs win over the variable, the variable over the default.\n\n"
    table = "| field | variable | default | Mooncake's own name |\n|---|---|---|---|\n"
    return NOTE + head + table + "".join(map(_field_row, FIELDS)) + "".join(map(_field_section, FIELDS))


def _field_row(spec: FieldSpec) -> str:
    wiring = spec.wiring
    return f"| `{spec.name}` | {_code(wiring.variable)} | {_default(wiring)} | {_code(wiring.engine)} |\n"


def _default(wiring: Wiring) -> str:
    if wiring.from_ray:
        return "the Ray node IP"
    return (
        (_code(wiring.default) if wiring.default else "Mooncake's choice") if wiring.has_default else "none, required"
    )


def _code(text: str | None) -> str:
    return f"`{text}`" if text else "none"


def _field_section(spec: FieldSpec) -> str:
    examples = ", ".join(f"`{example}`" for example in spec.info.examples or ())
    return f"\n## {spec.name}\n\n{spec.info.description}\n\nExamples: {examples}.\n"


def command_line_page() -> str:
    """The help of every command."""
    asked = [[], *([command] for command in COMMANDS)]
    helps = zip(asked, _helps(asked), strict=True)
    return NOTE + "# Command line\n" + "".join(_help_section(words, text) for words, text in helps)


_ASKING = """
import json, sys
from contextlib import redirect_stdout, suppress
from io import StringIO
from mooncake_config.cli import main

def told(words):
    with redirect_stdout(StringIO()) as printed, suppress(SystemExit):
        main([*words, "--help"])
    return printed.getvalue()

print(json.dumps([told(words) for words in json.loads(sys.argv[1])]))
"""


def _helps(asked: list[list[str]]) -> list[str]:
    """What each command says of itself, all asked in one process of 100 columns."""
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
    command = [sys.executable, "-c", _ASKING, json.dumps(asked)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    texts: list[str] = json.loads(done.stdout)
    return texts


def _help_section(words: list[str], text: str) -> str:
    return f"\n## {' '.join(('mooncake-config', *words))}\n\n```text\n{text}```\n"


def codes_page() -> str:
    """Every code of the native client."""
    head = (
        "# Mooncake's error codes\n\n"
        "An operation of a store raises a `StoreError`; its `code` is one of these numbers, where the native client\n"
        "gave one. The Transfer Engine counts differently: `rc=-200` in the native log is its ERR_METADATA.\n\n"
    )
    return (
        NOTE
        + head
        + "| code | name | meaning | what to do |\n|---|---|---|---|\n"
        + "".join(map(_code_row, CODES.values()))
    )


def _code_row(code: Code) -> str:
    return f"| {code.number} | {code.name} | {code.meaning} | {code.remedy} |\n"


def variables_page() -> str:
    """Every variable that is read, and those that look as if they were."""
    return NOTE + "# Variables\n\n" + "\n\n".join(_variable_sections()) + "\n"


def _variable_sections() -> Iterator[str]:
    yield (
        "Names are case-sensitive. A blank variable is unset, and is reported. Seven variables are values, two say\n"
        "which process this is, and no other is read: each of the rest is told where it is set."
    )
    read = {spec.wiring.variable: f"[{spec.name}](fields.md#{spec.name})" for spec in FIELDS if spec.wiring.variable}
    yield _table("Read as values", ("variable", "field"), read)
    ranks = {
        "LOCAL_RANK": "rank of the process on its node; the trainer with 0 or none contributes the segment",
        "LOCAL_WORLD_SIZE": "Store clients on the node",
    }
    yield _table("Read to know the process", ("variable", "says"), ranks)
    yield _table("Of other tools", ("variable", "whose it is"), variables.FOREIGN | variables.FOREIGN_SWITCHES)
    yield _table("Settings that no variable gives", ("variable", "write instead"), variables.ELSEWHERE)
    bare = {name: f"`{meant}`" for name, meant in variables.BARE.items()}
    yield _table("Without the prefix", ("variable", "meant, probably"), bare)
    yield (
        "Misspelt and reworded names are found too (`MOONCAKE_MASTER_ADDR`, `MOONCAKE_PROTOCL`): see\n"
        "[MC120](rules.md#mc120). Variables that begin with `MC_` go to Mooncake's engine, whatever is resolved here:\n"
        "[MC123](rules.md#mc123), [MC124](rules.md#mc124)."
    )


def _table(title: str, head: tuple[str, str], rows: Mapping[str, str]) -> str:
    lines = "\n".join(f"| `{name}` | {meaning} |" for name, meaning in rows.items())
    return f"## {title}\n\n| {head[0]} | {head[1]} |\n|---|---|\n{lines}"


def json_page() -> str:
    """Every key of the JSON answers, read off their schemas."""
    head = (
        "# JSON output\n\n"
        "`--format json` prints one document, also where the status is 1. These are its keys; a dot leads into an\n"
        "object, `[]` into a list. A secret inside a value is `***`.\n"
    )
    schemas = sorted(path for path in (ROOT / "schemas").glob("*.json") if "init-kwargs" not in path.name)
    return NOTE + head + "".join(_schema_section(path) for path in schemas)


def _schema_section(path: Path) -> str:
    schema = json.loads(path.read_text("utf-8"))
    rows = "".join(f"| `{name}` | {kind} | {about} |\n" for name, kind, about in _keys(schema, ""))
    head = f"## {schema['title']}\n\nSchema: `schemas/{path.name}`.\n\n"
    return f"\n{head}| key | type | what it says |\n|---|---|---|\n{rows}"


def _keys(schema: Mapping[str, Any], place: str) -> Iterator[tuple[str, str, str]]:
    """Key, type and description, whatever stands below a key behind it; what is alike is listed once, as a NAME."""
    for name, inner in _properties(schema, place):
        yield f"{place}{name}", _kind(inner), inner.get("description", "").replace("|", "\\|")
        if f"{place}{name}" == "nodes.NAME":
            continue  # the answer of check, which has a table of its own
        items = inner.get("items", {})
        yield from _keys(items if "properties" in items else inner, f"{place}{name}{'[]' if 'items' in inner else ''}.")


def _properties(schema: Mapping[str, Any], place: str) -> Iterable[tuple[str, Mapping[str, Any]]]:
    properties: dict[str, Mapping[str, Any]] = schema.get("properties", {})
    if place == "fields.":
        return [("NAME", {**next(iter(properties.values())), "description": "One of the eight fields."})]
    others = schema.get("additionalProperties")
    return properties.items() if not isinstance(others, dict) else [*properties.items(), ("NAME", others)]


def _kind(schema: Mapping[str, Any]) -> str:
    if "const" in schema:
        return f"{schema['const']}"
    if "enum" in schema:
        return ", ".join("null" if item is None else f"`{item}`" for item in schema["enum"])
    kinds = schema.get("type", "any")
    return kinds if isinstance(kinds, str) else " or ".join(kinds)


API = {
    "Resolving": ("resolve_store_config", "Resolution", "StoreSettings", "Origin", "Source"),
    "The job": ("Role", "Topology"),
    "What was found": ("Finding", "Severity", "ConfigError"),
    "The data path": ("open_object_store", "ValueSpec"),
    "For launch scripts": (
        "add_object_store_arguments",
        "get_mooncake_object_store_args",
        "start_mooncake_master",
    ),
}
"""The public names, by subject."""

ROOMS_OF_API = {
    "Stores": ("mooncake_config.store.ObjectStore", "mooncake_config.store.master.MooncakeMaster"),
    "Errors of a store": ("mooncake_config.store.errors",),
    "For tests": ("mooncake_config.testing",),
}
"""What those names give and raise."""


def api_page() -> str:
    """The public names, each with what its docstring says."""
    head = (
        "# Python API\n\nAll of it is imported from `mooncake_config`, when it is first used. Wrong input is\n"
        "a finding, in `ConfigError`; wrong use is a `TypeError` or `ValueError`.\n"
    )
    public = {title: [_true_place(name) for name in names] for title, names in API.items()}
    everything = {**public, **ROOMS_OF_API}
    return NOTE + head + "".join(_api_section(title, places) for title, places in everything.items())


def _true_place(name: str) -> str:
    """Where a public name is defined: the page is read off the source, which knows no lazy import."""
    return f"{getattr(mooncake_config, name).__module__}.{name}"


def _api_section(title: str, places: Iterable[str]) -> str:
    return f"\n## {title}\n" + "".join(f"\n::: {place}\n" for place in places)


def layers() -> str:
    """The rooms from top to bottom as import-linter holds them, and what each is."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    ordered = settings["contracts"][0]["layers"]
    rooms = [[name.strip(" ()") for name in layer.split("|")] for layer in ordered]
    rows = [
        _room_row(name, lead) for layer in rooms for name, lead in zip(layer, ["  ", *"|" * len(layer)], strict=False)
    ]
    return "```text\n" + "".join(filter(None, rows)) + "```\n"


def _room_row(name: str, lead: str) -> str | None:
    package = ROOT / "mooncake_config"
    path = next(filter(Path.exists, (package / f"{name}.py", package / name / "__init__.py")), None)
    if path is None:
        return None
    docstring = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    about = re.split(r"(?<=[.;])\s", " ".join(docstring.replace("``", "").split()), maxsplit=1)[0].rstrip(".;")
    about = re.sub(rf"^{name}: ", "", about, flags=re.IGNORECASE)  # some begin with their own name
    return f"{lead.strip():<2}{name:<15} {textwrap.shorten(about, 70, placeholder=' …')}\n"


def foreign_keys() -> str:
    """What becomes of each key of Mooncake's JSON configuration and setup, as our reader of init kwargs says it."""
    theirs = _defaults_of_mooncake()
    ours = {spec.name: spec.default_in_words for spec in FIELDS}
    setup = (spec.wiring.engine for spec in FIELDS if spec.wiring.engine)
    rows = "".join(
        f"| `{key}` | {_fate(key)} | {theirs.get(key, '')} | {ours.get(key, '')} |\n"
        for key in dict.fromkeys([*theirs, *setup])
    )
    return (
        "\n| key of Mooncake | in the init kwargs | default there | default here |\n|---|---|---|---|\n" + rows + "\n"
    )


def _defaults_of_mooncake() -> dict[str, str]:
    """What Mooncake's own class makes of a file that holds no more than it must."""
    from mooncake.mooncake_config import MooncakeConfig

    required = ("local_hostname", "metadata_server", "master_server_address")
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(dict.fromkeys(required, "x"), file)
        file.flush()
        values = vars(MooncakeConfig.from_file(file.name))
    return {key: "required" if key in required else _in_words(key, value) for key, value in values.items()}


def _in_words(key: str, value: object) -> str:
    if key.endswith("_size") and isinstance(value, int):
        return human_size(value)
    return str(value) or "empty"


def _fate(key: str) -> str:
    reading = read_init_kwargs({key: "x"})
    if reading.claims:
        return "the same key"
    (fault,) = reading.faults
    return fault.fix.partition(";")[0].rstrip(".")


PAGES: dict[str, Callable[[], str]] = {
    "rules.md": rules_page,
    "fields.md": fields_page,
    "variables.md": variables_page,
    "command-line.md": command_line_page,
    "json.md": json_page,
    "api.md": api_page,
    "codes.md": codes_page,
}

PARTS: dict[str, Callable[[], str]] = {
    "CONTRIBUTING.md": layers,
    "docs/how-to/vllm-sglang.md": foreign_keys,
}
"""Pages with one generated part, between two comments."""

_PART = re.compile(
    r"(?<=<!-- not run: written by `python docs/reference_pages.py` -->\n).*?(?=<!-- until here -->)", re.DOTALL
)


def with_part(name: str) -> str:
    """A page of :data:`PARTS` as it is with its part written anew."""
    return _PART.sub(lambda _: PARTS[name](), (ROOT / name).read_text("utf-8"))


def main() -> None:
    """Writes every page and every part."""
    DIRECTORY.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        (DIRECTORY / name).write_text(page(), "utf-8")
    for name in PARTS:
        (ROOT / name).write_text(with_part(name), "utf-8")


if __name__ == "__main__":
    main()
