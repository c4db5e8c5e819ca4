"""The site: it builds strictly, leads nowhere that is not there, and asks no other host for anything."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

import mooncake_config
from mooncake_config.rules import ALL_RULES

ROOT = Path(__file__).resolve().parents[1]

EXTERNAL = {
    "https://check-jsonschema.readthedocs.io/",
    "https://github.com/SchemaStore/schemastore",
    "https://keepachangelog.com/en/1.1.0/",
    "https://semver.org/spec/v2.0.0.html",
}
"""The links that lead out of the site. Nothing here follows them: look at each when you add it."""

LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "object": "data"}
"""Elements that a browser loads something for, and the attribute that says what."""


class Page(HTMLParser):
    """What a page of the site refers to, loads and can be pointed at."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.targets: set[str] = {""}
        self.tooltips: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Sorts one element."""
        given = {name: value or "" for name, value in attrs}
        self.targets |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "link" and given.get("rel") not in ("prev", "next", "canonical"):
            self.loads.append(given["href"])
        elif tag in LOADED and LOADED[tag] in given:
            self.loads.append(given[LOADED[tag]])
        elif tag == "abbr":
            self.tooltips.add(given.get("title", ""))


def test_taken_port_is_named() -> None:
    """make docs with a port that is taken ends with a line that names DOCS_PORT, before it builds anything."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = ["make", "--no-print-directory", "-o", "setup", "docs", f"BIN={Path(sys.executable).parent}"]
        done = subprocess.run(
            [*command, f"DOCS_PORT={port}"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
        )
    says, *makes_own = done.stderr.splitlines()
    assert says == f"docs: port {port} is taken or is none; choose another: make docs DOCS_PORT=8001"
    assert done.returncode == 2
    assert "Traceback" not in "".join(makes_own)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built once, with every warning as an error."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="session")
def pages(site: Path) -> dict[Path, Page]:
    """Every page of the site, read."""
    return {path: Page(path.read_text("utf-8")) for path in site.rglob("*.html")}


def test_every_page_is_built(site: Path) -> None:
    """Each page below docs/ and at the top but the README has become one of the site."""
    sources = [
        path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md") if "examples" not in path.parts
    ]
    top = [path.relative_to(ROOT) for path in ROOT.glob("*.md") if path.name != "README.md"]
    assert [str(source) for source in (*sources, *top) if not built(site / source).exists()] == []


def built(source: Path) -> Path:
    """The page of a source; a README is the index of its folder."""
    return source.with_name("index.html") if source.name == "README.md" else source.with_suffix(".html")


def split(page: Path, link: str) -> tuple[Path, str]:
    """The file and the place in it that a link of a page leads to."""
    parts = urlsplit(link)
    path = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    return (path / "index.html" if path.is_dir() else path), unquote(parts.fragment)


def is_external(link: str) -> bool:
    """Whether a link leads out of the site."""
    return bool(urlsplit(link).scheme or urlsplit(link).netloc)


def broken(pages: dict[Path, Page]) -> Iterator[str]:
    """The links that lead to no page, no file, or to a place that no page has."""
    for path, page in pages.items():
        if path.name == "404.html":
            continue  # it is served for addresses of any depth, so its links begin at the root
        for link in page.links:
            target, place = split(path, link)
            if is_external(link) or (target in pages and place in pages[target].targets):
                continue
            if target.suffix == ".html" or place or not target.exists():
                yield f"{path.name}: {link}"


def test_links(pages: dict[Path, Page]) -> None:
    """Every link inside of the site leads to a page that is there, and to a place that the page has."""
    assert list(broken(pages)) == []


def test_external_links(pages: dict[Path, Page]) -> None:
    """The links that lead out are those of the list."""
    assert {link for page in pages.values() for link in page.links if is_external(link)} == EXTERNAL


def test_nothing_is_loaded_from_elsewhere(site: Path, pages: dict[Path, Page]) -> None:
    """Scripts, styles, fonts and pictures are all files of the site."""
    for path, page in pages.items():
        for load in page.loads:
            assert not is_external(load), f"{path.name}: {load}"
            assert path.name == "404.html" or split(path, load)[0].exists(), f"{path.name}: {load}"
    for style in site.rglob("*.css"):
        assert not re.search(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", style.read_text("utf-8")), style.name


def test_search(site: Path) -> None:
    """The index of the search is a file of the site, and finds each rule under its code."""
    entries: list[dict[str, Any]] = json.loads((site / "search" / "search_index.json").read_text("utf-8"))["docs"]
    found = {entry["title"] for entry in entries if entry["location"].startswith("reference/rules.html#")}
    assert {f"{rule.code} {rule.name}" for rule in ALL_RULES} <= found
    assert (site / "search" / "search_index.js").exists(), "the search works from a folder too"


def test_api(site: Path, pages: dict[Path, Page]) -> None:
    """The page of the API has a place for each public name."""
    targets = pages[site / "reference" / "api.html"].targets
    for name in mooncake_config.__all__:
        assert any(target.endswith(f".{name}") for target in targets), name


def test_rules_have_places(site: Path, pages: dict[Path, Page]) -> None:
    """Each rule can be pointed at by its code in lower case."""
    targets = pages[site / "reference" / "rules.html"].targets
    assert {rule.code.lower() for rule in ALL_RULES} <= targets


def test_glossary_gives_tooltips(site: Path, pages: dict[Path, Page]) -> None:
    """Words of the glossary that are written in capitals say what they mean where they stand."""
    assert any(tip.startswith("Remote direct memory access") for tip in pages[site / "how-to" / "rdma.html"].tooltips)
