"""The pages: every console block shows what its command really prints."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_console_blocks_are_current(page: Path) -> None:
    """What stands below a command in a console block is what the command prints."""
    spec = importlib.util.spec_from_file_location("console_blocks", ROOT / "docs" / "console_blocks.py")
    assert spec and spec.loader
    blocks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(blocks)
    text = page.read_text("utf-8")
    assert blocks.refreshed(text) == text, f"run: python docs/console_blocks.py {page.relative_to(ROOT)}"
