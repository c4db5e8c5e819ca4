"""Runs what Markdown pages show, and puts the real output into its place.

The blocks of a page run in order, in one directory that is empty at first, as a reader types them:

- ``console``: each ``$ command`` (it goes on behind a backslash and inside of quotes) runs in the page's one bash, with
  a bare environment and 80 columns; what follows it is replaced by what it prints.
- ``bash``: a piece of script for the same bash, which must succeed; what it prints is not shown.
- ``python``: runs in the page's one Python; what it prints replaces the ``text`` block behind it.
- a block with ``title="NAME"`` is a file: it is written into the directory, and run by none.
- ``json``, ``yaml`` and ``toml`` without a title are shown; the suite checks them as what they are.

Comments, alone on a line or more, that a reader does not see:

- ``<!-- not run: REASON -->`` before a block: it stays as it is.
- ``<!-- left out: PATTERN -->`` before a block: what matches in its output, less a first group, is shown as ``…``.
- ``<!-- python: … -->`` or ``<!-- bash: … -->``: it runs and is not shown, for what a reader has and a page has not.

    python docs/page_blocks.py README.md docs/tutorial.md
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import shlex
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

NOTE = "<!-- Written by `python docs/reference_pages.py`; edit the source instead. -->\n"
"""Stands at the top of a page that is generated as a whole: nothing on it is run."""
SECONDS = 60.0
"""How long one command or one block of Python may take."""

_PIECE = re.compile(
    r"^<!-- (?P<comment>not run|left out|python|bash):(?P<words>.*?)-->$"
    r"|^(?P<indent> *)(?P<fence>`{3,})(?P<language>[\w-]*)(?P<options>[^\n`]*)\n"
    r"(?P<body>.*?)^(?P=indent)(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)
_TITLE = re.compile(r'title="([^"]+)"')
_SHOWN_ONLY = frozenset({"json", "yaml", "toml"})

_DRIVER = """
import contextlib, io, json, linecache, os, sys, traceback
answers, names = os.fdopen(os.dup(1), "w"), {"__name__": "__main__"}
os.dup2(2, 1)
for request in sys.stdin:
    source, name = json.loads(request)
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    trace = None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            exec(compile(source, name, "exec"), names)
        except BaseException:
            trace = traceback.format_exc()
    answers.write(json.dumps([printed.getvalue(), trace]) + "\\n")
    answers.flush()
"""


class PageError(Exception):
    """A page that cannot be run as it stands; the text begins with page and line."""


@dataclass(frozen=True)
class Block:
    """One fenced block of a page.

    Attributes:
        title: the file that it is, None for a block that is no file.
        hidden: whether it is a comment, which a reader does not see.
        body: its lines, without the indentation of the fence.
        not_run: why it is not run; None where it is.
        left_out: the pattern of what is not shown of its output, since it differs by machine or run; None: nothing.
        after_python: whether only blanks stand between it and a block of Python.
    """

    language: str
    title: str | None
    body: str
    line: int
    not_run: str | None = None
    left_out: str | None = None
    after_python: bool = False
    hidden: bool = False

    @property
    def commands(self) -> list[str]:
        """The commands of a console block, each with its ``$``."""
        found: list[str] = []
        goes_on = False
        for line in self.body.splitlines(keepends=True):
            if goes_on:
                found[-1] += line
            elif line.startswith("$ "):
                found.append(line)
            else:
                continue
            goes_on = _goes_on(found[-1])
        return found

    @property
    def script(self) -> str:
        """What a shell gets of the block, without what was printed."""
        if self.language != "console":
            return self.body
        return "".join(command.removeprefix("$ ") for command in self.commands)


def _goes_on(command: str) -> bool:
    """Whether a shell would wait for another line: behind a backslash, or inside of a quotation."""
    try:
        shlex.split(command)
    except ValueError:
        return True
    return command.endswith("\\\n")


def blocks(page: str) -> list[Block]:
    """Every block of a page, in order, the hidden ones too."""
    found: list[Block] = []

    def keep(block: Block) -> str:
        found.append(block)
        return block.body

    _rewritten(page, keep)
    return found


def refreshed(page: str, name: str = "page") -> str:
    """The page with the output of every block as it is now.

    Raises:
        PageError: a command hangs, Python raises, or text is shown that nothing prints.
    """
    if page.startswith(NOTE):
        return page
    with tempfile.TemporaryDirectory() as directory:
        run = _Run(name, Path(directory))
        try:
            return _rewritten(page, run.body_of)
        finally:
            run.end()


def _rewritten(page: str, body_of: Callable[[Block], str]) -> str:
    """The page, each block's body replaced by what the function gives for it."""
    pieces: list[str] = []
    place, behind_python = 0, False
    notes: dict[str, str] = {}
    for match in _PIECE.finditer(page):
        between = page[place : match.start()]
        if between.strip():
            notes, behind_python = {}, False
        block = _block(match, page, notes, after_python=behind_python)
        pieces.append(between)
        place = match.end()
        if match["comment"] in ("not run", "left out"):
            notes[match["comment"]] = match["words"].strip()
            pieces.append(match.group())
            continue
        notes = {}
        behind_python = block.language == "python" and not block.title and not block.hidden
        pieces.append(_with_body(match, body_of(block)))
    return "".join([*pieces, page[place:]])


def _block(match: re.Match[str], page: str, notes: dict[str, str], *, after_python: bool) -> Block:
    line = page.count("\n", 0, match.start()) + 1
    if match["comment"]:
        return Block(match["comment"], None, textwrap.dedent(match["words"]).strip() + "\n", line, hidden=True)
    title = _TITLE.search(match["options"])
    return Block(
        match["language"],
        title and title[1],
        textwrap.dedent(match["body"]) if match["indent"] else match["body"],
        line,
        notes.get("not run"),
        notes.get("left out"),
        after_python,
    )


def _with_body(match: re.Match[str], body: str) -> str:
    if match["comment"]:
        return match.group()
    start, indent = match.start(), match["indent"]
    head = match.group()[: match.start("body") - start]
    return head + textwrap.indent(body, indent) + indent + match["fence"]


class _Run:
    """One page being run: its directory, its shell and its Python, both started when they are first needed."""

    def __init__(self, name: str, directory: Path) -> None:
        self._name = name
        self._directory = directory
        self._shell: _Shell | None = None
        self._python: _Python | None = None
        self._printed: tuple[int, str] | None = None

    def body_of(self, block: Block) -> str:
        """Runs a block, and gives what belongs into it."""
        if block.language == "text" and block.after_python and self._printed:
            printed, self._printed = self._printed[1], None
            return _shown(block, printed)
        self._refuse_hidden_output()
        if block.not_run:
            return block.body
        if block.title:
            self._write(block, block.title)
            return block.body
        return self._run(block)

    def end(self) -> None:
        """Ends what was started; what Python printed last must have been shown."""
        for child in (self._shell, self._python):
            if child:
                child.end()
        if sys.exc_info()[0] is None:
            self._refuse_hidden_output()

    def _refuse_hidden_output(self) -> None:
        if self._printed and self._printed[1]:
            line, printed = self._printed
            raise self._error(line, f"this prints, and no text block behind it shows it:\n{printed}")
        self._printed = None

    def _write(self, block: Block, name: str) -> None:
        path = self._directory / name
        if not path.resolve().is_relative_to(self._directory.resolve()):
            raise self._error(block.line, f"a title is a file below the page's directory, not {name}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.body, "utf-8")

    def _run(self, block: Block) -> str:
        match block.language:
            case "console":
                return self._dialogue(block)
            case "bash":
                self._output(block, block.body)
                return block.body
            case "python":
                self._printed = (block.line, self._interpreted(block))
                return block.body
            case language if language in _SHOWN_ONLY:
                return block.body
        reason = "nothing prints this; show what runs, or say <!-- not run: REASON --> before it"
        raise self._error(block.line, f"a block of {block.language or 'no language'}: {reason}")

    def _dialogue(self, block: Block) -> str:
        """Commands and what they print, a blank line behind each output but the last."""
        told = [(command, self._output(block, command)) for command in block.commands]
        parts = [command + output + ("\n" if output else "") for command, output in told]
        return "".join(parts[:-1]) + "".join(told[-1])

    def _output(self, block: Block, command: str) -> str:
        self._shell = self._shell or _Shell(self._directory)
        output, status = self._shell.run(command.removeprefix("$ "))
        if block.language == "bash" and status:
            raise self._error(block.line, f"this ends with status {status}:\n{output}")
        if status is None:
            raise self._error(block.line, f"this does not end in {SECONDS:g} s: {command}{output}")
        return _shown(block, output)

    def _interpreted(self, block: Block) -> str:
        self._python = self._python or _Python(self._directory)
        printed, trace = self._python.run(block.body, f"{self._name}:{block.line}")
        if trace:
            raise self._error(block.line, trace)
        return printed

    def _error(self, line: int, reason: str) -> PageError:
        return PageError(f"{self._name}:{line}: {reason}")


def _shown(block: Block, output: str) -> str:
    """What a block shows of an output: lines without blanks at their end, and without what it leaves out."""
    text = "".join(f"{line.rstrip()}\n" for line in output.splitlines())
    if not block.left_out:
        return text
    pattern = re.compile(block.left_out, re.MULTILINE)
    return pattern.sub(lambda match: f"{match[1] or ''}…" if pattern.groups else "…", text)


def _environment(home: Path) -> dict[str, str]:
    """What a page's programs see: nothing of the person who runs it."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "COLUMNS": "80", "HOME": str(home), "LANG": "C.UTF-8"}


class _Child:
    """A program that runs pieces of a page one by one, in a session of its own."""

    def __init__(self, command: Sequence[str], directory: Path, stderr: int) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=_environment(directory),
            cwd=directory,
            start_new_session=True,
        )
        if self._process.stdin is None or self._process.stdout is None:
            raise AssertionError("a child without pipes")
        self._stdin: IO[bytes] = self._process.stdin
        self._stdout: IO[bytes] = self._process.stdout

    def _ask(self, request: str, answer: str) -> re.Match[str] | None:
        """What is printed, up to what matches; None where the time is up or the child ends before."""
        self._stdin.write(request.encode())
        self._stdin.flush()
        data, end, found = b"", time.monotonic() + SECONDS, None
        while not found and select.select([self._stdout], [], [], max(end - time.monotonic(), 0))[0]:
            part = os.read(self._stdout.fileno(), 1 << 16)
            if not part:
                break
            data += part
            found = re.search(answer, data.decode("utf-8", "replace"), re.DOTALL)
        return found

    def end(self, seconds: float = 30.0) -> None:
        """Ends the child: with its input, so that it may tidy up, and then all that is left of its session."""
        self._stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)
            time.sleep(0.2)
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._stdout.close()


class _Shell(_Child):
    """A bash."""

    def __init__(self, directory: Path) -> None:
        super().__init__(["bash", "--noprofile", "--norc"], directory, subprocess.STDOUT)
        self._mark = uuid.uuid4().hex

    def run(self, command: str) -> tuple[str, int | None]:
        """What a command prints, and its status; None where it does not end in time."""
        found = self._ask(
            f"{{\n{command}\n}} </dev/null\nprintf '{self._mark} %d\\n' $?\n", rf"(.*){self._mark} (\d+)\n"
        )
        return (found[1], int(found[2])) if found else ("", None)


class _Python(_Child):
    """A Python with one namespace."""

    def __init__(self, directory: Path) -> None:
        super().__init__([sys.executable, "-c", _DRIVER], directory, subprocess.DEVNULL)

    def run(self, source: str, name: str) -> tuple[str, str | None]:
        """What the source prints, and the traceback where it raises."""
        printed: str
        trace: str | None
        found = self._ask(json.dumps([source, name]) + "\n", r"(.*)\n")
        printed, trace = json.loads(found[1]) if found else ("", f"this does not end in {SECONDS:g} s, or ends Python")
        return printed, trace


def main(names: list[str]) -> None:
    """Rewrites the named pages."""
    for page in map(Path, names):
        old = page.read_text("utf-8")
        new = refreshed(old, str(page))
        if new != old:
            page.write_text(new, "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
