"""What probably happened to a text that should have been JSON. Nothing is repaired; the message says what to write."""

from __future__ import annotations

import re
from collections.abc import Callable
from json import JSONDecodeError

from mooncake_config.display import shown, shown_part

EXAMPLE = '{"protocol": "tcp"}'
AS_FILE = "or write the JSON to a file and pass @FILE, which no shell touches"

_TYPOGRAPHIC = re.compile("[“”„‟‘’«»″]")
_PYTHON_WORD = re.compile(r"(?<![\w\"'])(None|True|False)(?![\w\"'])")
_BARE_KEY = re.compile(r"[{,]\s*[A-Za-z_$][\w$-]*\s*:")
_ASSIGNMENTS = re.compile(r"\s*[A-Za-z_][\w.-]*\s*=")

Diagnosis = tuple[str, str]
"""What happened, and what to write."""


def diagnose(text: str, error: JSONDecodeError) -> Diagnosis:
    """The message and the fix for a text that the JSON parser refused.

    The message shows what arrived, where the parser stopped, and what happened to it by all appearance.
    """
    happened, write = next(
        (found for tell in _TELLS if (found := tell(text.strip(), error))),
        (f"{error.msg}", f"write one JSON object, such as '{EXAMPLE}', {AS_FILE}."),
    )
    return f"not JSON at column {_column(error)} ({shown(text)}): {happened}.", write


def _column(error: JSONDecodeError) -> str:
    return f"{error.colno}" if error.lineno == 1 else f"{error.colno} of line {error.lineno}"


def _byte_order_mark(text: str, error: JSONDecodeError) -> Diagnosis | None:
    if not text.startswith("\ufeff"):
        return None
    return "it begins with a byte order mark (BOM, U+FEFF)", "save the file as UTF-8 without BOM."


def _typographic_quotes(text: str, error: JSONDecodeError) -> Diagnosis | None:
    found = _TYPOGRAPHIC.search(text)
    if found is None:
        return None
    happened = f"it holds the typographic quote {found.group()}, as word processors and chats write it"
    return happened, f'type the quotes anew as plain ", {AS_FILE}.'


def _escaped_twice(text: str, error: JSONDecodeError) -> Diagnosis | None:
    if not re.match(r'"?\s*\\+[{"]|\{\s*\\+"', text):
        return None
    happened = "its quotes are escaped by backslashes that nothing took away: it was escaped twice"
    return happened, f"inside single quotes write no backslashes: '{EXAMPLE}', {AS_FILE}."


def _outer_quotes(text: str, error: JSONDecodeError) -> Diagnosis | None:
    if not re.match(r"(?P<quote>['\"`])\s*\{", text):
        return None
    happened = f"an extra pair of quotes ({text[0]}) is part of the value: it was quoted once too often"
    return happened, f"take the outer quotes away, so that the program gets {EXAMPLE}, {AS_FILE}."


def _python_literal(text: str, error: JSONDecodeError) -> Diagnosis | None:
    word = _PYTHON_WORD.search(text)
    if re.search(r"[{,:\[]\s*'", text):
        return (
            "it has single quotes, as Python prints a dictionary, where JSON has double quotes",
            f"print it with json.dumps(…), which gives {EXAMPLE}, {AS_FILE}.",
        )
    if word is None:
        return None
    instead = {"None": "null", "True": "true", "False": "false"}[word.group()]
    return f"{word.group()} is Python; JSON has {instead}", f"write {instead}, or print the mapping with json.dumps(…)."


def _truncated(text: str, error: JSONDecodeError) -> Diagnosis | None:
    unterminated = error.msg.startswith("Unterminated string")
    if not text.startswith("{") or not (unterminated or error.pos >= len(error.doc.rstrip())):
        return None
    happened = "it ends too early; a text without quotes around it is cut at its first blank"
    return happened, f"quote the whole value so that it stays one word: '{EXAMPLE}', {AS_FILE}."


def _quotes_lost(text: str, error: JSONDecodeError) -> Diagnosis | None:
    if not _BARE_KEY.match(text):
        return None
    happened = (
        "its double quotes are gone: a shell, or the shell behind a job submission, took them away"
        if '"' not in text
        else "a key stands without double quotes"
    )
    return happened, f"keep them by single quotes around the value: '{EXAMPLE}', {AS_FILE}; or export MOONCAKE_… variables."


def _trailing_comma(text: str, error: JSONDecodeError) -> Diagnosis | None:
    before = error.doc[: error.pos + 1].rstrip().rstrip("}]").rstrip()
    if not before.endswith(",") or error.doc[error.pos : error.pos + 1] not in ("}", "]", "", ","):
        return None
    return "there is a comma with nothing behind it", "take away the comma before the closing bracket."


def _comment(text: str, error: JSONDecodeError) -> Diagnosis | None:
    if not re.match(r"//|/\*|#", error.doc[error.pos :].lstrip()):
        return None
    return "it holds a comment, and JSON has none", "take the comment out."


def _more_behind(text: str, error: JSONDecodeError) -> Diagnosis | None:
    if error.msg != "Extra data":
        return None
    happened = f"the value ends there and more follows ({shown_part(error.doc[error.pos :], error.doc, 40)})"
    return happened, f"write one object and nothing else: {EXAMPLE}."


def _control_character(text: str, error: JSONDecodeError) -> Diagnosis | None:
    if not error.msg.startswith("Invalid control character"):
        return None
    return "a text holds a line break or another control character", "keep every text on one line, without tabs."


def _bad_escape(text: str, error: JSONDecodeError) -> Diagnosis | None:
    if "escape" not in error.msg:
        return None
    return "a backslash in a text is followed by no known escape", r'double the backslash ("\\") or take it away.'


def _file_without_at(text: str, error: JSONDecodeError) -> Diagnosis | None:
    if not re.fullmatch(r"[\w./~-]+\.json[c5]?", text):
        return None
    return "it looks like the name of a file", f"put an @ before it: @{shown(text)}."


def _assignments(text: str, error: JSONDecodeError) -> Diagnosis | None:
    if not _ASSIGNMENTS.match(text):
        return None
    return "it looks like NAME=VALUE", f"write a JSON object: '{EXAMPLE}', {AS_FILE}."


def _missing_comma(text: str, error: JSONDecodeError) -> Diagnosis | None:
    if error.msg not in ("Expecting ',' delimiter", "Expecting ':' delimiter"):
        return None
    mark = error.msg[11]
    return f"a {'comma' if mark == ',' else 'colon'} is missing", f"put a {mark} there: each entry is \"field\": value."


def _no_brackets(text: str, error: JSONDecodeError) -> Diagnosis | None:
    if not re.match(r"\"?[A-Za-z_]\w*\"?\s*:", text):
        return None
    return "its curly brackets are missing", f"write '{EXAMPLE}', {AS_FILE}."


def _unexpanded(text: str, error: JSONDecodeError) -> Diagnosis | None:
    found = re.match(r"\$\{?\w+\}?|\$\(|\{\{", text)
    if found is None:
        return None
    happened = f"{shown(text)} was never expanded"
    return happened, f"use double quotes around the variable so that the shell expands it, {AS_FILE}."


_TELLS: tuple[Callable[[str, JSONDecodeError], Diagnosis | None], ...] = (
    _byte_order_mark,
    _unexpanded,
    _typographic_quotes,
    _escaped_twice,
    _outer_quotes,
    _python_literal,
    _trailing_comma,
    _truncated,
    _quotes_lost,
    _comment,
    _more_behind,
    _control_character,
    _bad_escape,
    _missing_comma,
    _file_without_at,
    _assignments,
    _no_brackets,
)
