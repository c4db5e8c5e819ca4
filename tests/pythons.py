"""The Pythons of this machine that the package is promised for, and the wheels that an install on each of them needs.

python tests/pythons.py DIRECTORY: downloads those wheels, for tests that install without a network.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = ("3.10", "3.11", "3.12", "3.13")


def interpreter(version: str) -> str | None:
    """A Python of that version: on the path, or among those of pyenv. None where this machine has none that runs."""
    return next((path for path in _candidates(version) if _is(path, version)), None)


def _candidates(version: str) -> Iterator[str]:
    yield sys.executable
    yield from filter(None, [shutil.which(f"python{version}")])
    versions = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    yield from map(str, sorted(versions.glob(f"{version}*/bin/python"), reverse=True))


def _is(path: str, version: str) -> bool:
    """Whether a path runs, and as that version: a shim of pyenv may be there for a Python that is not."""
    told = "import sys, venv; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([path, "-c", told], capture_output=True, text=True, timeout=30, check=False)
    except OSError:
        return False
    return done.stdout.strip() == version


def requirements() -> list[str]:
    """What a plain install of the package needs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return list(project["dependencies"])


def pip(python: str, *arguments: str) -> list[str]:
    """A command of this environment's pip, on behalf of another Python, with the versions of constraints.txt."""
    command = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", "-qq"]
    return [*command, *arguments, "--constraint", str(ROOT / "constraints.txt")]


def download(directory: Path) -> bool:
    """Downloads the wheels of :func:`requirements` for every Python of this machine; whether all of it went well."""
    wheels = ("--only-binary", ":all:", "--dest", str(directory), *requirements())
    pythons = filter(None, map(interpreter, VERSIONS))
    at_once = [subprocess.Popen(pip(python, "download", *wheels)) for python in pythons]
    return max(process.wait() for process in at_once) == 0


if __name__ == "__main__":
    sys.exit(0 if download(Path(sys.argv[1])) else 1)
