"""The pages: whatever they show was run just so, or says why it cannot be."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from mooncake_config import Topology
from mooncake_config.arguments import read_pasted_command
from mooncake_config.findings import Finding, Severity
from mooncake_config.process import Backend
from mooncake_config.resolve import resolve_process
from mooncake_config.rules import examine
from mooncake_config.settings import FIELDS
from mooncake_config.sources import Environment
from mooncake_config.topology import Role

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "docs" / "examples"
"""Larger than a page: tests/two_node runs them."""
PAGES = [*ROOT.glob("*.md"), *(page for page in (ROOT / "docs").rglob("*.md") if EXAMPLES not in page.parents)]
PAGES.sort()
GENERATED = "written by `python docs/reference_pages.py`"
ELSEWHERE = (GENERATED, "make two-node, ")
"""How the reason begins where a block is run, or written and compared, by another test."""

NOT_RUN = {
    "CONTRIBUTING.md": ["makes an environment, which takes minutes"],
    "README.md": ["makes an environment, which takes minutes", "a package index is asked"],
    "docs/how-to/check-a-cluster.md": ["it needs a cluster"],
    "docs/how-to/editor.md": [
        "settings of VS Code",
        "this is a configuration of Neovim",
        "check-jsonschema is not installed with this package",
        "settings of SchemaStore",
    ],
    "docs/how-to/high-availability.md": ["needs two hosts; the suite starts such a pair on loopback"],
    "docs/how-to/slurm.md": ["needs Slurm"],
    "docs/reference/data-path.md": ["takes minutes, and its figures differ by machine"] * 2,
    "docs/tutorial.md": [
        "makes the environment that all the rest of this page runs in",
        "takes minutes and needs root; the suite runs it by itself",
    ],
}
"""Every block that does not run, and why, by page."""


def script(name: str) -> Any:
    """A script of the documentation as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where dataclasses look up their annotations
    spec.loader.exec_module(module)
    return module


page_blocks = script("page_blocks")
reference_pages = script("reference_pages")


def name_of(page: Path) -> str:
    """The page's name below the repository."""
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[Any]:
    """The blocks of a page that a reader sees; none of a page that is generated as a whole."""
    text = page.read_text("utf-8")
    if text.startswith(page_blocks.NOTE):
        return []
    return [block for block in page_blocks.blocks(text) if not block.hidden]


@pytest.mark.mooncake
@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_blocks_are_current(page: Path) -> None:
    """Every command, script and piece of Python of a page does what the page shows, in a directory of its own."""
    text = page.read_text("utf-8")
    assert page_blocks.refreshed(text, name_of(page)) == text, f"run: python docs/page_blocks.py {name_of(page)}"


@pytest.mark.parametrize("name", sorted(reference_pages.PAGES))
def test_reference_pages_are_current(name: str) -> None:
    """The pages of the reference say what the source says."""
    written = (ROOT / "docs" / "reference" / name).read_text("utf-8")
    assert reference_pages.PAGES[name]() == written, "run: python docs/reference_pages.py"


@pytest.mark.mooncake
@pytest.mark.parametrize("name", sorted(reference_pages.PARTS))
def test_generated_parts_are_current(name: str) -> None:
    """The parts of other pages that are read off the source say what it says."""
    written = (ROOT / name).read_text("utf-8")
    assert GENERATED in written
    assert reference_pages.with_part(name) == written, "run: python docs/reference_pages.py"


def test_every_command_has_its_help() -> None:
    """The page of the command line has the help of each command that there is."""
    listed = subprocess.run(
        [sys.executable, "-m", "mooncake_config", "--help"], capture_output=True, text=True, check=True
    ).stdout
    commands = re.findall(r"^ {2,4}([a-z]+) {2,}", listed, re.MULTILINE)
    assert commands
    assert set(commands) == set(reference_pages.COMMANDS)


def test_every_public_name_is_on_the_page_of_the_api() -> None:
    """The page of the Python API has each public name once."""
    names = [name for names in reference_pages.API.values() for name in names]
    assert sorted(names) == sorted(import_module("mooncake_config").__all__)


def is_kept(reason: str | None) -> bool:
    """Whether a block stands as somebody wrote it: it does not run here, and no other test runs it."""
    return reason is not None and not reason.startswith(ELSEWHERE)


def test_what_is_not_run() -> None:
    """The blocks that do not run are these, each with its reason."""
    reasons = {name_of(page): [block.not_run for block in blocks(page) if is_kept(block.not_run)] for page in PAGES}
    assert {name: told for name, told in reasons.items() if told} == NOT_RUN


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_files_are_used(page: Path) -> None:
    """A file that a page shows is used by a later block of it, or is checked as what it is."""
    shown = blocks(page)
    for place, block in enumerate(shown):
        if block.title and block.language != "yaml":
            folder = block.title.partition("/")[0]
            assert any(folder in later.body for later in shown[place + 1 :]), block.title


def findings_on(init_kwargs: str | None, environ: Mapping[str, str], words: list[str]) -> list[Finding]:
    """What explain says of init kwargs, variables and a pasted command in a job of two nodes."""
    pasted = read_pasted_command(words, {})
    process, _ = resolve_process(
        pasted.flags.get("--mooncake-store-init-kwargs", init_kwargs),
        backend=Backend.MOONCAKE,
        role=Role.TRAINER,
        replica_num=1,
        topology=Topology(num_nodes=2, local_rank=0, processes_per_node=8, node_ip="10.0.0.7"),
        environment=Environment({**environ, **pasted.variables}),
        faults=pasted.faults,
    )
    return list(examine(process))


def codes(findings: list[Finding]) -> list[str]:
    """The codes that matter: errors and warnings."""
    return [finding.code for finding in findings if finding.severity is not Severity.INFO]


def schema(name: str) -> Any:
    """One of the schemas of the repository."""
    return json.loads((ROOT / "schemas" / f"{name}.schema.json").read_text("utf-8"))


def json_blocks(*, of_others: bool) -> list[Any]:
    """JSON that pages show: what is for this program, or the files of other programs that a page hands to it."""
    names = {spec.name for spec in FIELDS} | {"$schema", "env_vars", "version"}
    shown = [block for page in PAGES for block in blocks(page) if block.language == "json" and not block.not_run]
    return [block for block in shown if of_others is bool(set(json.loads(block.body)) - names)]


@pytest.mark.parametrize("block", json_blocks(of_others=False), ids=lambda block: f"{block.title}:{block.line}")
def test_json(block: Any) -> None:
    """JSON of a page is init kwargs or a runtime environment without an error, or an answer, as its schema says."""
    value = json.loads(block.body)
    if "env_vars" in value:
        words = ["ray", "job", "submit", "--runtime-env-json", block.body, "--", "python3", "train.py"]
        assert codes(findings_on(None, {}, words)) == []
    elif "version" in value:
        jsonschema.validate(value, schema("explain"))
    else:
        jsonschema.validate(value, schema("mooncake-store-init-kwargs"))
        assert set(codes(findings_on(block.body, {}, []))) <= {"MC100", "MC101"}  # a file may be for one node


def test_json_of_others_is_a_file() -> None:
    """JSON with keys of another program stands on a page as a file, and the page shows what is said of it."""
    others = json_blocks(of_others=True)
    assert [block.title for block in others if not block.title] == []
    assert "mooncake.json" in [block.title for block in others]


def containers(value: Any) -> Iterator[dict[str, Any]]:
    """Every container of a Kubernetes object that has variables."""
    if isinstance(value, dict):
        if "env" in value:
            yield value
        for inner in value.values():
            yield from containers(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from containers(inner)


def variables_of(container: Mapping[str, Any]) -> dict[str, str]:
    """The variables of a container; what the cluster fills in is the pod's address."""
    return {entry["name"]: entry.get("value", "10.0.0.7") for entry in container["env"]}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_kubernetes(page: Path) -> None:
    """The variables and the command of every container that a page advises are accepted without an error or warning."""
    for block in blocks(page):
        for document in import_module("yaml").safe_load_all(block.body) if block.language == "yaml" else ():
            assert document["kind"]
            for container in containers(document):
                assert codes(findings_on(None, variables_of(container), container["command"])) == [], container["name"]


def test_kubernetes_is_shown() -> None:
    """The page on Kubernetes shows containers with variables, so that the test above has something to ask."""
    yaml = import_module("yaml")
    shown = [block for block in blocks(ROOT / "docs" / "how-to" / "kubernetes.md") if block.language == "yaml"]
    found = [list(containers(document)) for block in shown for document in yaml.safe_load_all(block.body)]
    assert sum(map(len, found)) >= 2


def own_commands() -> Iterator[str]:
    """The lines of blocks that do not run which call this program, and the commands of containers that do."""
    yaml = import_module("yaml")
    for page in PAGES:
        for block in blocks(page):
            if block.language == "bash" and is_kept(block.not_run):
                yield from re.findall(r"\bmooncake-config [a-z].*", block.body)
            for document in yaml.safe_load_all(block.body) if block.language == "yaml" else ():
                for container in containers(document):
                    if container["command"][0] == "mooncake-config":
                        yield shlex.join(container["command"])


@pytest.mark.parametrize("line", sorted(line for line in set(own_commands()) if "--cluster" not in line))
def test_commands_that_do_not_run_are_right(line: str) -> None:
    """A call of this program in a block that cannot run here is one that it takes; tests/two_node runs the surveys."""
    words = [sys.executable, "-m", "mooncake_config", *shlex.split(line, comments=True)[1:]]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode in (0, 1), done.stderr


@pytest.mark.parametrize("folder", ["how-to", "reference", "explanation"])
def test_index_pages_are_whole(folder: str) -> None:
    """The first page of each part leads to every other page of it."""
    place = ROOT / "docs" / folder
    index = (place / "index.md").read_text("utf-8")
    assert [page.name for page in place.glob("*.md") if page.name != "index.md" and f"({page.name})" not in index] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_scripts_are_bash(page: Path) -> None:
    """A script that a page shows and cannot run is one that bash can read."""
    for block in blocks(page):
        if block.language in ("bash", "console") and is_kept(block.not_run):
            done = subprocess.run(["bash", "-n"], input=block.script, capture_output=True, text=True, check=False)
            assert (done.returncode, done.stderr) == (0, ""), block.line
