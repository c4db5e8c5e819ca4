"""The package as it is installed: from the sdist, the wheel of it, into an empty environment of every Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from pythons import ROOT, VERSIONS, interpreter, pip, requirements

WHEELS = ROOT / ".wheels"
PLAIN = {
    *("annotated-types", "humanfriendly", "markdown-it-py", "mdurl", "mooncake-config", "pydantic", "pydantic-core"),
    *("pydantic-settings", "pygments", "python-dotenv", "rich", "typing-extensions", "typing-inspection"),
}
"""All that a plain install brings. Who adds to it adds to every job."""

NAMES = """
import importlib.metadata, json, sys, warnings
warnings.simplefilter("error")
import mooncake_config
for name in mooncake_config.__all__:
    getattr(mooncake_config, name)
brought = [found.metadata["Name"].lower().replace("_", "-") for found in importlib.metadata.distributions()]
print(json.dumps([brought, sorted({"ray", "mooncake", "numpy"} & set(sys.modules)), mooncake_config.__file__]))
"""


def run(*command: str, status: int = 0) -> str:
    """What a command prints, far from the checkout."""
    bare = {name: text for name, text in os.environ.items() if name in ("PATH", "HOME", "LANG")}
    done = subprocess.run(command, cwd="/", env=bare, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == status, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The sdist of this checkout, and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--quiet", "--no-isolation", "--outdir", str(folder), str(ROOT))
    return sorted(folder.iterdir())


@pytest.fixture(scope="module")
def wheel(distributions: list[Path]) -> Path:
    """The wheel alone."""
    (path,) = [path for path in distributions if path.suffix == ".whl"]
    return path


@pytest.fixture(scope="module", params=VERSIONS)
def installed(request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment in which nothing but the wheel was asked for."""
    python = interpreter(request.param)
    if python is None:
        pytest.skip(f"there is no Python {request.param} on this machine, neither on the path nor of pyenv")
    if not WHEELS.is_dir():
        pytest.skip("the wheels to install from are not here; run: make setup")
    venv = tmp_path_factory.mktemp("venv")
    run(python, "-m", "venv", "--without-pip", str(venv))
    run(
        *pip(
            str(venv / "bin" / "python"),
            "install",
            "--no-compile",
            "--no-index",
            "-f",
            str(WHEELS),
            str(wheel),
        )
    )
    return venv / "bin"


def test_metadata_is_strict(distributions: list[Path]) -> None:
    """An index would take both files, and would render the README."""
    assert [path.suffix for path in distributions] == [".whl", ".gz"]
    run(sys.executable, "-m", "twine", "check", "--strict", *map(str, distributions))


def test_every_name_is_imported(installed: Path) -> None:
    """Every public name is imported without a warning, Ray, Mooncake or NumPy, and no more is brought than is known."""
    brought, engines, file = json.loads(run(str(installed / "python"), "-c", NAMES))
    assert set(brought) - {"setuptools", "exceptiongroup"} == PLAIN
    assert engines == []
    assert Path(file).is_relative_to(installed.parent)


def test_explain_needs_no_extra(installed: Path) -> None:
    """The console script explains a job, and so does the module, with status 1 where a master is missing."""
    job = ("--num-nodes", "1", "--node-ip", "10.0.0.7", "--format", "json", "--mooncake-store-init-kwargs")
    good = '{"protocol": "tcp", "master_server_address": "10.0.0.5:50051"}'
    answer = json.loads(run(str(installed / "mooncake-config"), "explain", *job, good))
    assert (answer["ok"], answer["setup"]["master_server_addr"]) == (True, "10.0.0.5:50051")
    python = str(installed / "python")
    answer = json.loads(run(python, "-W", "error", "-m", "mooncake_config", "explain", *job, "{}", status=1))
    assert [finding["rule"] for finding in answer["findings"]] == ["missing-master"]


def test_schema_needs_no_extra(installed: Path) -> None:
    """The printed schema is the committed one, and the one that lies in the package."""
    name = "mooncake-store-init-kwargs.schema.json"
    printed = run(str(installed / "mooncake-config"), "schema")
    (packaged,) = installed.parent.glob(f"lib/python*/site-packages/mooncake_config/schemas/{name}")
    assert printed == packaged.read_text("utf-8") == (ROOT / "schemas" / name).read_text("utf-8")


def test_version_is_told(installed: Path) -> None:
    """The installed program says the version of the wheel."""
    assert version("mooncake-config") in run(str(installed / "mooncake-config"), "--version")


# The newest dependencies

CORE = ("settings", "sources", "resolve", "sizes")
"""The modules that lean on pydantic, pydantic-settings and humanfriendly; the command line's own run shows rich."""


def newest(command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """pip without our pins, and without patience."""
    options = ("--disable-pip-version-check", "--quiet", "--retries", "0", "--timeout", "10")
    whole = [sys.executable, "-m", "pip", *options, command, *arguments, *requirements()]
    return subprocess.run(whole, capture_output=True, text=True, timeout=100, check=False)


@pytest.mark.timeout(300)
def test_newest_dependencies(tmp_path: Path) -> None:
    """What rests on the dependencies works with their newest releases too, where those are not the pinned ones."""
    report = tmp_path / "report.json"
    asked = newest("install", "--dry-run", "--ignore-installed", "--report", str(report))
    if asked.returncode:
        pytest.skip(f"no package index answers, so the newest releases are not known: {asked.stderr[-200:]}")
    found = [entry["metadata"] for entry in json.loads(report.read_text("utf-8"))["install"]]
    moved = [f"{one['name']} {one['version']}" for one in found if version(one["name"]) != one["version"]]
    if not moved:
        pytest.skip("the pinned releases are the newest ones: all of this suite runs on them")
    done = newest("install", "--target", str(tmp_path / "newest"))
    assert done.returncode == 0, done.stderr
    tests = [str(ROOT / "tests" / f"test_{name}.py") for name in CORE]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "newest")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, f"with {', '.join(moved)}:\n{done.stdout}"
