"""Writes the generated pages of the reference: the rules, the fields, the command line, the codes of Mooncake.

python docs/reference_pages.py
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from mooncake_config.rules import ALL_RULES, Rule
from mooncake_config.settings import FIELDS
from mooncake_config.sources import FieldSpec, Wiring
from mooncake_config.store.codes import CODES, Code

DIRECTORY = Path(__file__).parent / "reference"
COMMANDS = ("explain", "check", "schema", "rule", "demo")
NOTE = "<!-- Written by `python docs/reference_pages.py`; edit the source instead. -->\n"

_EXAMPLE = re.compile(r"^(Fires|Silent|Example):\n(?:    )", re.MULTILINE)


def rules_page() -> str:
    """Every rule with its page, by code."""
    head = "# Rules\n\nThe same pages are printed by `mooncake-config rule CODE`.\n\n"
    table = "| code | rule | severity | what it sees |\n|---|---|---|---|\n"
    return NOTE + head + table + "".join(map(_rule_row, ALL_RULES)) + "".join(map(_rule_section, ALL_RULES))


def _rule_row(rule: Rule[object]) -> str:
    return f"| [{rule.code}](#{rule.code.lower()}) | `{rule.name}` | {rule.severity.value} | {rule.summary} |\n"


def _rule_section(rule: Rule[object]) -> str:
    ignored = "Cannot be ignored." if rule.protects else f"`--ignore {rule.code}` drops it."
    page = _EXAMPLE.sub(r"\1:\n\n    ", rule.page)
    heading = f'## <a id="{rule.code.lower()}"></a>{rule.code} {rule.name}'
    return f"\n{heading}\n\nSeverity: {rule.severity.value}. {ignored}\n\n{page}\n"


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
    return NOTE + "# Command line\n" + "".join(_help_section(words) for words in _helps())


def _helps() -> Iterator[tuple[str, ...]]:
    yield ()
    for command in COMMANDS:
        yield (command,)


def _help_section(words: tuple[str, ...]) -> str:
    command = [sys.executable, "-m", "mooncake_config", *words, "--help"]
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    return f"\n## {' '.join(('mooncake-config', *words))}\n\n```text\n{done.stdout}```\n"


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


PAGES: dict[str, Callable[[], str]] = {
    "rules.md": rules_page,
    "fields.md": fields_page,
    "command-line.md": command_line_page,
    "codes.md": codes_page,
}


def main() -> None:
    """Writes every page."""
    DIRECTORY.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        (DIRECTORY / name).write_text(page(), "utf-8")


if __name__ == "__main__":
    main()
