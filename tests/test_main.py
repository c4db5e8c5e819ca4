"""python -m mooncake_config: how it starts."""

from __future__ import annotations

import subprocess
import sys


def test_collector_of_garbage() -> None:
    """While a command runs garbage is collected as ever; what the imports made is not looked through again."""
    code = "import gc, mooncake_config.__main__; print(gc.isenabled(), gc.get_freeze_count() > 10_000)"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert answer.stdout.split() == ["True", "True"]
