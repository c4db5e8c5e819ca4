"""What the child process of a probe tells its parent, with packages of our own named mooncake on its path."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from machines import lay_out

STORE = "class MooncakeDistributedStore: pass\nclass ReplicateConfig: pass\n"
STRUCTURED = (
    "class MooncakeBundleTransfer: pass\nclass FieldSchema: pass\ndef export_ref(r): ...\ndef import_ref(r): ...\n"
)
GOOD = {"mooncake/__init__.py": "", "mooncake/store.py": STORE, "mooncake/structured_object_store.py": STRUCTURED}
Steps = list[dict[str, Any]]


def run(root: Path, *words: str, given: str = "", cwd: Path | None = None) -> tuple[int, Steps, str]:
    """Runs a trial with the packages of ``root``; its status, steps and standard error."""
    command = [sys.executable, "-m", "mooncake_config.store.trial", *words]
    environ = {**os.environ, "PYTHONPATH": str(root)}
    child = subprocess.run(
        command, input=given, env=environ, cwd=cwd, capture_output=True, text=True, timeout=60, check=False
    )
    return child.returncode, [json.loads(line) for line in child.stdout.splitlines()], child.stderr


def keys(steps: Steps) -> set[str]:
    """All that was told."""
    return {key for step in steps for key in step}


def test_good_package(tmp_path: Path) -> None:
    """A whole package is told with its place, each module, and that nothing lacks."""
    status, steps, _ = run(lay_out(tmp_path, GOOD), "import")
    assert status == 0
    assert steps[0] == {"location": str(tmp_path / "mooncake")}
    assert [step["imported"] for step in steps if "imported" in step] == [
        "mooncake",
        "mooncake.store",
        "mooncake.structured_object_store",
    ]
    assert steps[-1] == {"lacks": []}


@pytest.mark.parametrize(
    ("files", "failed", "kind", "lacking"),
    [
        ({"mooncake/__init__.py": ""}, "mooncake.store", "ModuleNotFoundError", "mooncake.store"),
        ({"mooncake.py": ""}, "mooncake.store", "ModuleNotFoundError", "mooncake.store"),
        ({"mooncake/__init__.py": "import no_such_thing"}, "mooncake", "ModuleNotFoundError", "no_such_thing"),
        ({"mooncake/__init__.py": "raise SystemExit(3)"}, "mooncake", "SystemExit", None),
        ({**GOOD, "mooncake/store.py": "raise ImportError('libx.so.1')"}, "mooncake.store", "ImportError", None),
        ({**GOOD, "mooncake/store.py": "raise RuntimeError('x' * 9999)"}, "mooncake.store", "RuntimeError", None),
        (
            {"mooncake/__init__.py": "", "mooncake/store.py": STORE},
            "mooncake.structured_object_store",
            "ModuleNotFoundError",
            "mooncake.structured_object_store",
        ),
    ],
)
def test_failed_import(tmp_path: Path, files: dict[str, str], failed: str, kind: str, lacking: str | None) -> None:
    """The first module that fails is told with the kind of exception, its words and the module that it lacks."""
    status, steps, _ = run(lay_out(tmp_path, files), "import")
    assert status == 0
    step = steps[-1]
    assert (step["failed"], step["kind"], step["lacking"]) == (failed, kind, lacking)
    assert len(step["text"]) <= 2000


def test_lacking_names(tmp_path: Path) -> None:
    """Names that a module lacks are told one by one."""
    files = {**GOOD, "mooncake/structured_object_store.py": "class MooncakeBundleTransfer: pass\n"}
    _, steps, _ = run(lay_out(tmp_path, files), "import")
    assert steps[-1] == {
        "lacks": [f"mooncake.structured_object_store.{name}" for name in ("FieldSchema", "export_ref", "import_ref")]
    }


def test_absent(tmp_path: Path) -> None:
    """Without any package that is all that is told. The path is emptied, since this Python has Mooncake."""
    script = (
        "import sys; from mooncake_config.store.trial import try_import; "
        "sys.path[:] = []; sys.modules.pop('mooncake', None); try_import(print)"
    )
    child = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    assert child.stdout == "{'absent': True}\n"


def test_noise(tmp_path: Path) -> None:
    """What a package prints, also in native code, goes to standard error and not between the steps."""
    files = {**GOOD, "mooncake/__init__.py": "import os\nprint('hello')\nos.write(1, b'native\\n')\n"}
    status, steps, noise = run(lay_out(tmp_path, files), "import")
    assert (status, steps[-1]) == (0, {"lacks": []})
    assert "hello" in noise
    assert "native" in noise


def test_abort(tmp_path: Path) -> None:
    """A package that aborts kills the trial; what was told before is heard."""
    status, steps, _ = run(lay_out(tmp_path, {**GOOD, "mooncake/store.py": "import os\nos.abort()"}), "import")
    assert status == -6
    assert keys(steps) == {"location", "imported"}


def test_working_directory(tmp_path: Path) -> None:
    """A directory of that name where the command was run is not what the job imports."""
    site, here = lay_out(tmp_path / "site", GOOD), lay_out(tmp_path / "here", {"mooncake/__init__.py": "1/0"})
    _, steps, _ = run(site, "import", cwd=here)
    assert steps[-1] == {"lacks": []}


def client(setup: str) -> dict[str, str]:
    """A package whose client sets up so."""
    body = f"    def setup(self, kwargs):\n        {setup}\n    def close(self):\n        print('closed')\n"
    return {"mooncake/__init__.py": "", "mooncake/store.py": f"import os\nclass MooncakeDistributedStore:\n{body}"}


@pytest.mark.parametrize(
    ("setup", "told"),
    [
        ("return 0", {"started": True, "code": 0, "closed": True}),
        ("return -600 if kwargs['protocol'] == 'tcp' else 0", {"started": True, "code": -600, "closed": True}),
        (
            "raise MemoryError('std::bad_alloc')",
            {"started": True, "raised": "MemoryError: std::bad_alloc", "closed": True},
        ),
    ],
)
def test_setup(tmp_path: Path, setup: str, told: dict[str, object]) -> None:
    """The dictionary comes by standard input; the code or the exception is told, and the client is closed."""
    status, steps, noise = run(lay_out(tmp_path, client(setup)), "setup", "30", given='{"protocol": "tcp"}')
    assert status == 0
    assert {key: value for step in steps for key, value in step.items()} == told
    assert "closed" in noise


def test_setup_that_dies(tmp_path: Path) -> None:
    """Where native code kills the process, the last step is the one before."""
    status, steps, _ = run(lay_out(tmp_path, client("os.kill(os.getpid(), 11)")), "setup", "30", given="{}")
    assert (status, steps) == (-11, [{"started": True}])


def test_setup_ends_itself(tmp_path: Path) -> None:
    """A setup without end is ended by the trial's own alarm, should its parent be gone."""
    status, _, _ = run(lay_out(tmp_path, client("import time; time.sleep(60)")), "setup", "1", given="{}")
    assert status == -14
