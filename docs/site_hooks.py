"""What the site adds to the pages: those at the top of the repository, and tooltips for the words of the glossary."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
ROOT_PAGES = ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
"""Pages that belong to the repository's top, where people and forges look for them, and to the site as well."""

_LINK = re.compile(r"(?<=\]\()[^)#\s:]+(?=[)#])")
_COMMENT = re.compile(r"^<!-- .*?-->\n", re.MULTILINE | re.DOTALL)
_TERM = re.compile(r"^(?P<term>[^\n<:#].*)\n\n?:   (?P<meaning>(?:.+\n)(?:    .+\n)*)", re.MULTILINE)
_MARKUP = re.compile(r"[`*]|\[([^\]]*)\]\([^)]*\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages of the top."""
    for name in ROOT_PAGES:
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The page with links as the site has them, without comments, and with what its short words mean."""
    source = page.file.src_uri
    linked = _LINK.sub(lambda match: _in_site(match.group(), source), _COMMENT.sub("", markdown))
    if source == "glossary.md":
        return linked
    return f"{linked}\n\n{_abbreviations()}"


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The page without the second colon that docstrings have before an example."""
    return html.replace("::</p>", ":</p>")


def _in_site(target: str, source: str) -> str:
    """A relative link as it must be in the site, where the pages of the top stand beside those of docs/."""
    folder = "" if source in ROOT_PAGES else posixpath.join("docs", posixpath.dirname(source))
    place = posixpath.normpath(posixpath.join(folder, target))
    inside = place if place in ROOT_PAGES else place.removeprefix("docs/")
    if place != inside or place in ROOT_PAGES:
        return posixpath.relpath(inside, posixpath.dirname(source) or ".")
    return target


def _abbreviations() -> str:
    """The words of the glossary that are written in capitals, as definitions that give them a tooltip."""
    return "\n".join(f"*[{term}]: {meaning}" for term, meaning in glossary().items() if re.search("[A-Z]{2}", term))


def glossary() -> dict[str, str]:
    """Term and meaning of each entry of the glossary, without markup, the meaning on one line."""
    page = (ROOT / "docs" / "glossary.md").read_text("utf-8")
    return {
        _MARKUP.sub(r"\1", found["term"]): " ".join(_MARKUP.sub(r"\1", found["meaning"]).split())
        for found in _TERM.finditer(page)
    }
