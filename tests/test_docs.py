"""The pages: every console block shows what its command really prints."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def script(name: str) -> Any:
    """A script of the documentation as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_console_blocks_are_current(page: Path) -> None:
    """What stands below a command in a console block is what the command prints."""
    blocks = script("console_blocks")
    text = page.read_text("utf-8")
    assert blocks.refreshed(text) == text, f"run: python docs/console_blocks.py {page.relative_to(ROOT)}"


@pytest.mark.parametrize("name", ["rules.md", "fields.md", "command-line.md", "codes.md"])
def test_reference_pages_are_current(name: str) -> None:
    """The pages of the reference say what the source says."""
    written = (ROOT / "docs" / "reference" / name).read_text("utf-8")
    assert script("reference_pages").PAGES[name]() == written, "run: python docs/reference_pages.py"
