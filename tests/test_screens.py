"""The pictures of the command line: real, current, the same everywhere, and without anything from the network."""

from __future__ import annotations

import importlib.util
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
NAMES = ("check", "explain", "plan")
PICTURES = [ROOT / "docs" / "screens" / f"{name}.svg" for name in NAMES]


def screens() -> Any:
    """The script that takes the pictures, as a module."""
    spec = importlib.util.spec_from_file_location("screens", ROOT / "docs" / "screens.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def words_of(picture: Path) -> str:
    """The text of a picture, line by line."""
    lines: dict[str, list[str]] = {}
    for element in ET.fromstring(picture.read_text("utf-8")).iter("{http://www.w3.org/2000/svg}text"):
        lines.setdefault(element.get("y", ""), []).append(element.text or "")
    return "\n".join("".join(parts) for parts in lines.values()).replace("\xa0", " ")


# rich draws; the pictures are those of the pinned one, and a check looks for the installed Mooncake.
@pytest.mark.mooncake
@pytest.mark.parametrize("name", NAMES)
def test_pictures_are_current(name: str) -> None:
    """A picture shows what its command prints now."""
    assert screens().screen(name) == (ROOT / "docs" / "screens" / f"{name}.svg").read_text("utf-8"), (
        "run: python docs/screens.py"
    )


@pytest.mark.parametrize("picture", PICTURES, ids=lambda path: path.stem)
def test_pictures_fetch_nothing(picture: Path) -> None:
    """A picture names no address but those of its format: no font and no image comes from elsewhere."""
    text = picture.read_text("utf-8")
    assert "@font-face" not in text
    assert set(re.findall(r"https?://[^\s\"'<)]+", text)) <= {"http://www.w3.org/2000/svg", "https://www.textualize.io"}
    assert not re.search(r"url\((?!#)|href=|@import", text)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("explain", "4 errors, 1 warning. Mooncake is not started with this."),
        ("check", "did you mean mlx5_1? Write one of mlx5_0, mlx5_1."),
        ("plan", "16 GiB × 0.9 ÷ (2 GiB × 1 replica): 7 fit, 4 in flight"),
    ],
)
def test_pictures_hold_text(name: str, words: str) -> None:
    """A picture is text that can be searched and copied."""
    assert words in words_of(ROOT / "docs" / "screens" / f"{name}.svg")


def test_every_picture_is_shown() -> None:
    """Each picture stands in the README or on a page, and no other one does."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = {name for page in pages for name in re.findall(r"screens/(\w+)\.svg", page.read_text("utf-8"))}
    assert shown == set(NAMES) == {path.stem for path in (ROOT / "docs" / "screens").glob("*.svg")}
