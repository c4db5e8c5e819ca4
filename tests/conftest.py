"""What every test gets: a hypothesis profile, and an environment that configures nothing."""

from __future__ import annotations

import os
import re

import pytest
from hypothesis import settings

CONFIGURES = re.compile(r"MOONCAKE_|MC_|LOCAL_RANK$|LOCAL_WORLD_SIZE$")

# No deadlines: a slow machine is no bug. `ci` asks the same questions in every run; `make fuzz` asks new ones.
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=100)
settings.register_profile("fuzz", deadline=None, max_examples=int(os.environ.get("EXAMPLES", "1000")))
settings.load_profile("ci")

# A Ray that a test starts leaves no token in the developer's home, where the next `ray start` would demand it.
os.environ.setdefault("RAY_AUTH_MODE", "disabled")


@pytest.fixture(autouse=True)
def unconfigured(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of the developer's shell decides how a test ends."""
    for name in filter(CONFIGURES.match, list(os.environ)):
        monkeypatch.delenv(name)
