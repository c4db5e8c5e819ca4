"""A parser whose help teaches and whose refusals name what was probably meant."""

from __future__ import annotations

import argparse
import codecs
import contextlib
import re
import shutil
import sys
from collections.abc import Collection, Iterable, Sequence
from textwrap import fill, wrap
from typing import IO, Any, NoReturn

from mooncake_config.display import shown, shown_word
from mooncake_config.protocols import nearest

LEAST_WIDTH = 40
"""Columns below which no page can be read. COLUMNS=0 stands for an unknown width in many containers."""

_USUAL_WIDTH = 80
_MOST_WIDTH = 10_000
"""Columns beyond which nothing is gained: no line of a page is as long."""
_WIDEST_HELP = 100
"""Columns beyond which the lines of a help are no longer read with ease."""

_REFUSAL_LIMIT = 400
"""Characters of what is wrong on the command line."""

_ARGPARSE_HEAD = r"(?a)(?:argument [^:]+: )?(?:invalid choice: |invalid \w+ value: |ignored explicit argument )?"
"""The words of argparse before a value that somebody wrote."""

_STYLES = {
    r"(?m)^(?:[a-z][a-z ]*|[\w-]+(?: [a-z]+)?: error):": "bold",
    r"(?<![\w-])--?[a-zA-Z][a-z-]*": "cyan",
    r"(?m)^ +\$ ": "dim",
    r"(?<=: )error(?=:)": "bold red",
    r"(?<=did you mean )\S+(?=\?)": "bold green",
}
"""What stands out in a help and in a refusal, where colours do."""


def nearest_or_part(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant by another, or of which the other is a part; None where there is none."""
    names = list(known)
    part = word.lower().replace("_", "-")
    return nearest(word, names) or next((name for name in names if len(part) > 3 and part in name), None)


def with_nearest(message: str, word: str, known: Iterable[str]) -> str:
    """The message, and a question behind it where a known word is near."""
    meant = nearest_or_part(word, known)
    return f"{message}; did you mean {meant}?" if meant else message


def readable_width(columns: int) -> int:
    """The columns to write in: those that there are, the usual number where these cannot hold a page."""
    return min(columns, _MOST_WIDTH) if columns >= LEAST_WIDTH else _USUAL_WIDTH


_PLAIN_SIGNS = {
    "×": "x",
    "÷": "/",
    "·": "-",
    "…": "...",
    "→": "->",
    "✗": "x",
    "─": "-",
    "├": "|",
    "└": "`",
    "▒": "=",
    "█": "#",
}
"""What the signs of our own pages become where the encoding of a terminal lacks them."""


def write_plainly(stream: Any) -> None:
    """Has a text stream write what its encoding lacks in signs that it has, or as an escape, instead of failing."""
    codecs.register_error("mooncake-config", _plainly)
    getattr(stream, "reconfigure", lambda **_: None)(errors="mooncake-config")


def _plainly(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    sign = error.object[error.start]
    if sign in _PLAIN_SIGNS:
        return _PLAIN_SIGNS[sign], error.start + 1
    error.end = error.start + 1
    return codecs.backslashreplace_errors(error)


class Unpadded:
    """A text stream without the blanks at the ends of lines that rich fills its columns with.

    On a terminal nobody sees them; in a file or a message they are in the way.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Writes whole lines, as rich hands over all that it prints."""
        return self._stream.write(re.sub(r"(?m) +$", "", text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """The formatter of argparse within a width that is read with ease, and without a heading for the commands."""

    def __init__(self, prog: str) -> None:
        columns = readable_width(shutil.get_terminal_size().columns)
        super().__init__(prog, max_help_position=28, width=min(columns, _WIDEST_HELP) - 2)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return super()._fill_text(text, width, indent) if "\n" in text else fill(text, width)

    def _split_lines(self, text: str, width: int) -> list[str]:
        return wrap(text, width, break_on_hyphens=False)

    def _format_action(self, action: argparse.Action) -> str:
        if isinstance(action, argparse._SubParsersAction):
            return "".join(self._format_action(one) for one in action._get_subactions())
        return super()._format_action(action)


class Parser(argparse.ArgumentParser):
    """An argparse parser whose refusals hold no password and no control character, and fit on a screen."""

    def __init__(self, *, prog: str, usage: str, description: str, epilog: str = "") -> None:
        super().__init__(
            prog=prog,
            usage=usage,
            description=description,
            epilog=epilog,
            formatter_class=_HelpFormatter,
            add_help=False,
            allow_abbrev=False,
        )

    @property
    def flags(self) -> Collection[str]:
        """Every spelling of every option."""
        return self._option_string_actions.keys()

    def add_general_options(self) -> argparse._ArgumentGroup:
        """Adds ``--help`` in a group of its own, below all others, and gives the group."""
        group = self.add_argument_group("general")
        group.add_argument("-h", "--help", action="help", help="show this help")
        return group

    def error(self, message: str) -> NoReturn:
        """Ends the process with status 2; argparse puts the value that it refuses into the message as it is."""
        head = re.match(_ARGPARSE_HEAD, message)
        words = head.group() if head else ""
        self.refuse(words + shown(message[len(words) :], _REFUSAL_LIMIT))

    def refuse(self, message: str) -> NoReturn:
        """Ends the process with status 2 and a message whose values were made fit to be shown."""
        with contextlib.suppress(OSError):  # the status says it too where standard error is full
            self._print_message(f"{self.prog}: error: {message}\nhelp: {self.prog} --help\n", sys.stderr)
        self.exit(2)

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """Refuses ``--option=--``, of which argparse makes an empty list before Python 3.13."""
        if action.option_strings and arg_strings == ["--"]:
            raise argparse.ArgumentError(action, "expected one argument")
        return super()._get_values(action, arg_strings)

    def _check_value(self, action: argparse.Action, value: object) -> None:
        """Refuses what is no choice, in the same words on every Python, with the choice that is nearest."""
        choices = [str(choice) for choice in action.choices or ()]
        if not choices or value in choices:
            return
        offer = f"choose from {', '.join(choices)}"
        word = str(value)
        is_command = isinstance(action, argparse._SubParsersAction)
        what = f"there is no command {shown_word(word)}" if is_command else f"{shown_word(word)} is no choice"
        message = with_nearest(what, word, choices)
        refusal = message if message.endswith("?") else f"{message}; {offer}"
        raise argparse.ArgumentError(None if is_command else action, refusal)

    def _print_message(self, message: str, file: Any = None) -> None:
        if message:
            print_painted(message, sys.stderr if file is None else file)


def print_painted(message: str, file: IO[str]) -> None:
    """Prints a help or a refusal as it is, with colours where the reader can see some."""
    from rich.console import Console
    from rich.text import Text

    text = Text(message.removesuffix("\n"))
    for pattern, style in _STYLES.items():
        text.highlight_regex(pattern, style)
    Console(file=file, highlight=False, markup=False, emoji=False).print(text, soft_wrap=True)


class ShowVersion(argparse.Action):
    """``--version``: the installed version, looked up when it is asked for."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str) -> None:  # noqa: A002 - argparse's own name
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, default=argparse.SUPPRESS, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        """Prints name and version, and ends the process with status 0."""
        from importlib.metadata import PackageNotFoundError, version

        try:
            installed = version("mooncake-config")
        except PackageNotFoundError:  # a checkout or a copy on PYTHONPATH has no metadata
            installed = "of unknown version: it runs from files that no installer put there"
        parser._print_message(f"{parser.prog} {installed}\n", sys.stdout)
        parser.exit()
