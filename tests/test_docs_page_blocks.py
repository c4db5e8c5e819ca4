"""The program that runs pages: what it runs, what it shows, and what it refuses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from test_docs import page_blocks

FENCE = "```"
HIDDEN = "<!-- python:\na = 1\n-->"
NOT_RUN = "<!-- not run: why -->"


def page(*parts: str) -> str:
    """A page of blocks and words: ``console|text`` is a block, anything else stands as it is."""
    return "\n".join(block(part) if re.match(r"\w+( title=\S+)?\|", part) else f"{part}\n" for part in parts)


def block(part: str) -> str:
    """A fenced block."""
    head, _, body = part.partition("|")
    return f"{FENCE}{head}\n{body}{FENCE}\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (["console|$ echo a\nold\n"], ["console|$ echo a\na\n"]),
        (["console|$ echo a\n$ echo b\n"], ["console|$ echo a\na\n\n$ echo b\nb\n"]),
        (["console|$ true\n$ echo b  \\\n  c\n"], ["console|$ true\n$ echo b  \\\n  c\nb c\n"]),
        (["console|$ echo 'a\n  b'\nold\n"], ["console|$ echo 'a\n  b'\na\n  b\n"]),
        (["console|$ x=1\n", "words", "console|$ echo $x\n"], ["console|$ x=1\n", "words", "console|$ echo $x\n1\n"]),
        (["console|$ cat; echo end\n"], ["console|$ cat; echo end\nend\n"]),
        (["bash|x=1\n", "console|$ echo $x\n"], ["bash|x=1\n", "console|$ echo $x\n1\n"]),
        (["python|print('a ')\n", "text|old\n"], ["python|print('a ')\n", "text|a\n"]),
        (["python|a = 1\n", "python|print(a)\n", "text|"], ["python|a = 1\n", "python|print(a)\n", "text|1\n"]),
        ([HIDDEN, "python|print(a)\n", "text|"], [HIDDEN, "python|print(a)\n", "text|1\n"]),
        (["<!-- bash: x=1 -->", "console|$ echo $x\n"], ["<!-- bash: x=1 -->", "console|$ echo $x\n1\n"]),
        (['text title="a.txt"|b\n', "console|$ cat a.txt\n"], ['text title="a.txt"|b\n', "console|$ cat a.txt\nb\n"]),
        ([NOT_RUN, "console|$ echo a\nold\n"], [NOT_RUN, "console|$ echo a\nold\n"]),
        (["<!-- left out: \\d+ -->", "console|$ echo a1\n"], ["<!-- left out: \\d+ -->", "console|$ echo a1\na…\n"]),
        (["<!-- left out: (a).* -->", "console|$ echo a1\n"], ["<!-- left out: (a).* -->", "console|$ echo a1\na…\n"]),
        ([NOT_RUN, "words", "console|$ echo a\n"], [NOT_RUN, "words", "console|$ echo a\na\n"]),
    ],
)
def test_runs(before: list[str], after: list[str]) -> None:
    """A page comes back with what its commands print, and otherwise as it was."""
    assert page_blocks.refreshed(page(*before)) == page(*after)


def test_indented() -> None:
    """A block inside of a list is run and keeps its indentation."""
    assert page_blocks.refreshed("- a\n\n    ```console\n    $ echo b\n    ```\n") == (
        "- a\n\n    ```console\n    $ echo b\n    b\n    ```\n"
    )


def test_generated_page() -> None:
    """A page that is generated as a whole stays as it is."""
    text = page_blocks.NOTE + page("console|$ false\nold\n")
    assert page_blocks.refreshed(text) == text


@pytest.mark.parametrize(
    ("parts", "line", "reason"),
    [
        (["python|print(1)\n"], 1, "no text block behind it shows it"),
        (["python|print(1)\n", "words", "text|1\n"], 1, "no text block behind it shows it"),
        (["python|1 / 0\n"], 1, "ZeroDivisionError"),
        (["words", "python|import os; os._exit(1)\n"], 3, "or ends Python"),
        (["text|1\n"], 1, "nothing prints this"),
        (["toil|1\n"], 1, "a block of toil"),
        (["bash|false\n"], 1, "this ends with status 1"),
        (["console|$ exit\n"], 1, "this does not end"),
        (['text title="../a"|b\n'], 1, "a title is a file below the page's directory"),
    ],
)
def test_refuses(parts: list[str], line: int, reason: str) -> None:
    """What shows more or less than it prints is refused, with the page and the line."""
    with pytest.raises(page_blocks.PageError, match=re.escape(reason)) as refusal:
        page_blocks.refreshed(page(*parts), "a.md")
    assert str(refusal.value).startswith(f"a.md:{line}: ")


def test_nothing_of_the_person_who_runs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands and Python see a directory of their own, and no variable of the shell that started them."""
    monkeypatch.setenv("MOONCAKE_MASTER", "10.0.0.5:50051")
    python = "import os; print(os.environ.get('MOONCAKE_MASTER'), os.listdir())\n"
    text = page_blocks.refreshed(page("console|$ echo $MOONCAKE_MASTER; ls\n", f"python|{python}", "text|"))
    assert text == page("console|$ echo $MOONCAKE_MASTER; ls\n\n", f"python|{python}", "text|None []\n")


def test_nothing_is_left(tmp_path: Path) -> None:
    """What a command leaves in the background ends with the page."""
    file = tmp_path / "pid"
    page_blocks.refreshed(page(f"console|$ sleep 600 & echo $! >{file}\n"))
    status = Path("/proc") / file.read_text().strip() / "status"
    assert not status.exists() or "State:\tZ" in status.read_text()


def test_rewrites_files(tmp_path: Path) -> None:
    """The program writes the pages that it is given, and leaves those alone in which nothing changed."""
    stale, current = tmp_path / "stale.md", tmp_path / "current.md"
    stale.write_text(page("console|$ echo a\n"), "utf-8")
    current.write_text(page("console|$ echo a\na\n"), "utf-8")
    before = current.stat().st_mtime_ns
    page_blocks.main([str(stale), str(current)])
    assert stale.read_text("utf-8") == current.read_text("utf-8")
    assert current.stat().st_mtime_ns == before
