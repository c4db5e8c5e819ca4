"""The package as it is shipped: its metadata, its wheel, and what its files may say."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from types import FunctionType
from typing import Any
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import mooncake_config

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

REGISTRY = re.compile(r"\b(?:pypi|pythonhosted|npmjs|debian)\.(?:org|com)\b|\b(?:index[-_]url|find[-_]links)\b", re.I)
MACHINE_PATH = re.compile(r"(?<![\w.~/-])/(?:home|root|Users|work)/")


def pins(file: str) -> Iterator[Requirement]:
    """The requirements of a constraints file."""
    for line in (ROOT / file).read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            yield Requirement(line)


def lower_bound(requirement: Requirement) -> Version:
    """The version behind the one `>=` of a requirement."""
    (bound,) = requirement.specifier
    assert bound.operator == ">=", requirement
    return Version(bound.version)


def written_files() -> Iterator[Path]:
    """Every file of the repository that git keeps or would keep."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True)
    for name in done.stdout.split("\0"):
        if (ROOT / name).is_file():
            yield ROOT / name


def lines_that_match(pattern: re.Pattern[str]) -> list[str]:
    """Where the repository's files say what the pattern says, as file:line."""
    return [
        f"{path.relative_to(ROOT)}:{number}"
        for path in written_files()
        for number, line in enumerate(path.read_text("utf-8", errors="replace").splitlines(), 1)
        if pattern.search(line)
    ]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist of this checkout and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("built")
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def shipped(built: Path) -> frozenset[str]:
    """The names of the files in the wheel."""
    (wheel,) = built.glob("*.whl")
    with ZipFile(wheel) as archive:
        return frozenset(archive.namelist())


@pytest.fixture(scope="module")
def source(built: Path) -> frozenset[str]:
    """The names of the files in the sdist, below its one folder."""
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        assert all(member.isfile() for member in archive)
        names = [name.partition("/") for name in archive.getnames()]
    assert {folder for folder, _, _ in names} == {f"mooncake_config-{PROJECT['version']}"}
    return frozenset(rest for _, _, rest in names)


def test_sdist_has_what_the_wheel_is_made_of(source: frozenset[str]) -> None:
    """The package, the schemas, what pyproject.toml refers to, and the changes; no environment beside them."""
    tops = {"mooncake_config", "schemas", "CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml"}
    assert {name.split("/")[0] for name in source} == {*tops, ".gitignore"}
    assert {str(path.relative_to(ROOT)) for path in (ROOT / "mooncake_config").rglob("*.py")} <= source


def test_wheel_has_no_leavings(shipped: frozenset[str]) -> None:
    """Of the package's own files the wheel has code, schemas, completions and the marker of its types; nothing else."""
    own = [Path(name) for name in shipped if name.startswith("mooncake_config/")]
    assert {path.suffix for path in own} <= {".py", ".json", ".typed", ".bash", ".fish", ".zsh"}


def test_wheel_has_every_module(shipped: frozenset[str]) -> None:
    """Each module of the checkout is in the wheel."""
    modules = {str(path.relative_to(ROOT)) for path in (ROOT / "mooncake_config").rglob("*.py")}
    assert modules <= shipped


def test_wheel_has_the_schemas(shipped: frozenset[str]) -> None:
    """The schemas stand at the top of the repository and inside the package of the wheel."""
    schemas = {f"mooncake_config/schemas/{path.name}" for path in (ROOT / "schemas").glob("*.json")}
    assert schemas
    assert schemas <= shipped


def test_wheel_is_typed(shipped: frozenset[str]) -> None:
    """The marker that makes type checkers read our annotations is in the wheel."""
    assert "mooncake_config/py.typed" in shipped


def test_wheel_has_nothing_else(shipped: frozenset[str]) -> None:
    """No tests, no documentation, no benchmark is installed: the package and its metadata alone."""
    assert {name.split("/")[0] for name in shipped} == {
        "mooncake_config",
        f"mooncake_config-{PROJECT['version']}.dist-info",
    }


def test_wheel_has_the_licence(shipped: frozenset[str]) -> None:
    """Whoever has the wheel has the terms."""
    assert f"mooncake_config-{PROJECT['version']}.dist-info/licenses/LICENSE" in shipped


@pytest.mark.parametrize("name", mooncake_config.__all__)
def test_public_name_is_documented(name: str) -> None:
    """Each public name has a docstring of its own, so have its public members, and it stands on the page of the API."""
    public = getattr(mooncake_config, name)
    assert own_docstring(public)
    members = vars(public).items() if inspect.isclass(public) else ()
    assert [member for member, value in members if is_documentable(member, value) and not own_docstring(value)] == []
    page = (ROOT / "docs" / "reference" / "api.md").read_text("utf-8")
    assert re.search(rf"^::: {re.escape(public.__module__)}\.{name}$", page, re.MULTILINE)


def own_docstring(public: object) -> str | None:
    """What was written for it: not inherited, and not made up by dataclass or Enum."""
    written = vars(public).get("__doc__") if inspect.isclass(public) else inspect.getdoc(public)
    return None if written and written.startswith(f"{getattr(public, '__name__', '')}(") else written


def is_documentable(name: str, value: object) -> bool:
    """Whether a member of a class is a method or property that users call by its name."""
    return not name.startswith(("_", "model_")) and isinstance(
        value, (property, classmethod, staticmethod, FunctionType)
    )


def test_version_is_typed_once() -> None:
    """The version is written in pyproject.toml, and no module repeats it."""
    quoted = re.compile(rf"""["']{re.escape(PROJECT["version"])}["']""")
    modules = (ROOT / "mooncake_config").rglob("*.py")
    assert [path for path in modules if quoted.search(path.read_text("utf-8"))] == []


def test_version_is_the_installed_one() -> None:
    """What pip says of the installed package is what pyproject.toml says."""
    assert version("mooncake-config") == PROJECT["version"]


def test_dependencies() -> None:
    """A plain install brings four packages, and nothing of Ray or Mooncake."""
    names = [Requirement(line).name for line in PROJECT["dependencies"]]
    assert names == ["humanfriendly", "pydantic", "pydantic-settings", "rich"]


def test_every_dependency_has_a_reason() -> None:
    """Each requirement of the package or of an extra stands in the table of reasons, stubs with what they type."""
    lines = PROJECT["dependencies"] + [line for extra in PROJECT["optional-dependencies"].values() for line in extra]
    table = (ROOT / "docs" / "why.md").read_text("utf-8").partition("## Dependencies")[2]
    named = set(re.findall(r"[a-z0-9][a-z0-9-]*[a-z0-9]", table))
    needed = {Requirement(line).name.removeprefix("types-") for line in lines}
    # The client has one row for its three builds.
    assert {name for name in needed - named if not name.startswith("mooncake-transfer-engine-")} == set()


def test_lowest_constraints_are_the_lower_bounds() -> None:
    """`make test-lowest` runs on exactly the versions that the dependencies name as their lowest."""
    bounds = {needed.name: lower_bound(needed) for needed in map(Requirement, PROJECT["dependencies"])}
    lowest = {pin.name: Version(str(pin.specifier).removeprefix("==")) for pin in pins("constraints-lowest.txt")}
    assert bounds == {name: lowest[name] for name in bounds}


def test_constraints_satisfy_every_extra() -> None:
    """Each requirement of each extra has a pin, and the pin is a version that the requirement admits."""
    lines = PROJECT["dependencies"] + [line for extra in PROJECT["optional-dependencies"].values() for line in extra]
    needed = list(map(Requirement, lines))
    pinned: dict[str, list[str]] = {}
    for pin in pins("constraints.txt"):
        pinned.setdefault(pin.name, []).append(str(pin.specifier).removeprefix("=="))
    assert [one.name for one in needed if not pinned.get(one.name)] == []
    assert [one.name for one in needed if not all(one.specifier.contains(pin) for pin in pinned[one.name])] == []


@pytest.mark.parametrize("file", ["constraints.txt", "constraints-lowest.txt"])
def test_constraints_are_exact(file: str) -> None:
    """Every line of a constraints file is one exact version, taken from no particular address."""
    for pin in pins(file):
        assert re.fullmatch(r"==[^*,]+", str(pin.specifier)), pin
        assert pin.url is None


@pytest.mark.parametrize("pattern", [REGISTRY, MACHINE_PATH], ids=["registry", "path"])
def test_no_file_knows_its_machine(pattern: re.Pattern[str]) -> None:
    """No file names the host of a package registry or a path of the machine that it was written on."""
    assert lines_that_match(pattern) == []
