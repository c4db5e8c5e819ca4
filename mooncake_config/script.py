"""A shell script as it is read, not run: its words, with what its variables hold where that can be told."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import NamedTuple

BETWEEN_COMMANDS = ";&|()\n"
"""What stands between two commands, each a word of its own."""

_KEYWORDS = ("if", "then", "elif", "else", "while", "until", "do", "{", "!", "time")
_BEFORE_ASSIGNMENT = frozenset(("export", "declare", "local", "readonly", "typeset", *_KEYWORDS))
"""Words behind which an assignment is one; behind any other it is an argument."""
_NAME = "[A-Za-z_][A-Za-z0-9_]*"
_VARIABLE = rf"\$(?:({_NAME})|\{{({_NAME})(?:(:?[-=?])(.*))?\}})"
"""A variable, in braces perhaps with what stands in for it: ``$A``, ``${A}``, ``${A:-text}``, ``${A=text}``."""
_SPECIAL = re.escape("@*#?$!-0123456789")
_QUOTATION = r"""'[^']*'|"(?:\\.|[^"\\])*"|\\."""
_MARK = "\0"
"""Stands around the number of an expression while words are split: no argument of a program holds a NUL."""
_MOST_EXPRESSIONS = 20
_DEEPEST = 20
_LONGEST_VALUE = 10_000
"""What bounds the text that a script can make of itself, and how deep a default may hide in another."""


class Script(NamedTuple):
    """What was read: the words, and what is known once the script has run to its end.

    ``unknown`` are the expressions that are left in the words as they stand, such as ``$(hostname -i)``: what they give
    is known when the script runs. ``variables`` are those that it sets to a text, over those of its environment.
    """

    words: tuple[str, ...]
    unknown: frozenset[str]
    variables: Mapping[str, str]


class _Expression(NamedTuple):
    text: str
    quoted: bool


def read_script(text: str, environ: Mapping[str, str]) -> Script:
    """The words of a script, split and expanded as a POSIX shell does it, but for what only a run can tell.

    Args:
        environ: the variables that the shell starts with.

    Raises:
        ValueError: a quotation or a substitution is not closed.
    """
    reader = _Reader(environ)
    words = tuple(reader.read(text.replace(_MARK, "")))
    return Script(words, frozenset(reader.unknown), reader.held())


class _Reader:
    """Reads words in order, and keeps what the assignments among them make known; None: known when it runs."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environ = environ
        self.known: dict[str, str | None] = {}
        self.unknown: set[str] = set()

    def held(self) -> Mapping[str, str]:
        """The variables as they are now, less those that are known when it runs."""
        merged = {**self.environ, **self.known}
        return {name: text for name, text in merged.items() if text is not None}

    def read(self, text: str) -> Iterator[str]:
        """The words of a text, each expanded before the next is read."""
        marked, expressions = _marked(text)
        words = _split(marked)
        at_start = True
        for word, following in zip(words, [*words[1:], ""], strict=False):
            assigns = re.match(rf"({_NAME})\+?=", word) if at_start else None
            expanded, certain = self._expanded(word, expressions, splits=not assigns)
            if assigns:
                value = expanded[0][assigns.end() :] if certain and not following.startswith("(") else None
                self._assign(assigns[1], value, appends="+" in assigns[0])
            at_start = bool(assigns) or word in _BEFORE_ASSIGNMENT or not word.strip(BETWEEN_COMMANDS)
            yield from expanded

    def _assign(self, name: str, value: str | None, *, appends: bool) -> None:
        if appends and value is not None:
            before = self._held(name)
            value = None if before is None else before + value
        self.known[name] = value if value is None or len(value) <= _LONGEST_VALUE else None

    def _held(self, name: str) -> str | None:
        return self.known[name] if name in self.known else self.environ.get(name)

    def _expanded(self, word: str, expressions: list[_Expression], *, splits: bool) -> tuple[list[str], bool]:
        """The words that a word becomes, and whether all in it is known."""
        parts = re.split(f"{_MARK}([0-9]+){_MARK}", word)
        certain, quoted = True, False
        for place in range(1, len(parts), 2):
            expression = expressions[int(parts[place])]
            value = self._value(expression.text, 0) if place < 2 * _MOST_EXPRESSIONS else None
            if value is None:
                certain = False
                self.unknown.add(expression.text)
                value = expression.text
            elif splits and not expression.quoted:
                value = _MARK.join(value.split())
            parts[place] = value
            quoted |= expression.quoted
        whole = "".join(parts)
        if len(parts) == 1 or not splits:
            return [whole], certain
        return [part for part in whole.split(_MARK) if part] or [""] * quoted, certain

    def _value(self, expression: str, depth: int) -> str | None:
        """What an expression gives, None where only a run can tell."""
        found = re.fullmatch(_VARIABLE, expression, re.DOTALL)
        if found is None or depth > _DEEPEST:
            return None
        name, operator = found[1] or found[2], found[3] or ""
        is_set, value = name in self.known or name in self.environ, self._held(name)
        stands = is_set and not (value == "" and operator.startswith(":"))
        if stands or not operator or operator.endswith("?"):
            return value if stands else None
        instead = self._default(found[4], depth + 1)
        if operator.endswith("="):
            self.known[name] = instead
        return instead

    def _default(self, text: str, depth: int) -> str | None:
        marked, expressions = _marked(text)
        values = [self._value(expression.text, depth) for expression in expressions]
        if any(value is None for value in values) or len(values) > _MOST_EXPRESSIONS:
            return None
        plain = "".join(_split(marked, blanks="", signs=""))
        return re.sub(f"{_MARK}([0-9]+){_MARK}", lambda mark: values[int(mark[1])] or "", plain)


def _split(marked: str, blanks: str = " \t\r", signs: str = BETWEEN_COMMANDS) -> list[str]:
    lexer = shlex.shlex(marked, posix=True, punctuation_chars=signs)
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = blanks, True, ""
    return list(lexer)


def _marked(text: str) -> tuple[str, list[_Expression]]:
    """The text without comments, and each expression that a shell would replace as a mark with its number.

    Raises:
        ValueError: a substitution is not closed.
    """
    expressions: list[_Expression] = []
    marked = [""]
    place, quoted = 0, False
    while place < len(text):
        end = _end_of_expression(text, place)
        if end is not None:
            marked.append(f"{_MARK}{len(expressions)}{_MARK}")
            expressions.append(_Expression(text[place:end], quoted))
        elif text[place] == "#" and not quoted and _ends_word(marked[-1]):
            end = place + len(text[place:].partition("\n")[0])
        elif not quoted and (document := re.compile(_HERE_DOCUMENT).match(text, place)):
            text = _without_document(text, document)
            end = document.end()
        else:
            end, plain = _plain_text(text, place, quoted=quoted)
            quoted ^= plain == '"'
            marked += [plain] if plain else []
        place = end
    return "".join(marked), expressions


def _without_document(text: str, begun: re.Match[str]) -> str:
    """The text without the lines of a here-document, which are what some program reads and no words."""
    indent = r"\t*" if begun["indented"] else ""
    first = text.find("\n", begun.end()) + 1
    last = (
        re.compile(rf"(?m)^{indent}{re.escape(begun['quoted'] or begun['bare'])}$\n?").search(text, first)
        if first
        else None
    )
    return text[:first] + text[last.end() :] if last else text


def _ends_word(piece: str) -> bool:
    """Whether a new word begins behind a piece of a text: it is none, or ends in a blank that is not escaped."""
    return not piece or (piece[-1] in f" \t\r{BETWEEN_COMMANDS}" and not piece.startswith("\\"))


_HERE_DOCUMENT = r"""<<(?P<indented>-?)[ \t]*(?:(?P<quote>['"])(?P<quoted>[^'"\n]+)(?P=quote)|\\?(?P<bare>[\w.-]+))"""
_RUN = r"""<+|[^\\'"#$`<]+|\\(?P<literal>[$`])|\\."""
_PLAIN_IN_QUOTES = rf"(?s)(?P<dropped>\\\n)|{_RUN}"
_PLAIN = rf"""(?s)(?P<dropped>\\\n|\$(?=['"]))|{_RUN}|'[^']*'"""
"""What a shell takes as it stands: a run of letters, an escape, a quotation in single quotes."""


def _plain_text(text: str, place: int, *, quoted: bool) -> tuple[int, str]:
    """Where the plain text ends that begins at a place, and what who splits words, and expands none, needs of it."""
    found = re.compile(_PLAIN_IN_QUOTES if quoted else _PLAIN).match(text, place)
    if found is None:
        return place + 1, text[place]
    return found.end(), "" if found["dropped"] else found["literal"] or found.group()


def _end_of_expression(text: str, place: int) -> int | None:
    """Where the expression ends that begins at a place; None where none does."""
    opening = text[place : place + 2]
    if opening == "$(":
        return _end_of_nested(text, place + 2, "(", ")")
    if opening == "${":
        return _end_of_nested(text, place + 2, "{", "}")
    found = re.compile(rf"\$(?:{_NAME}|[{_SPECIAL}])|`(?:\\.|[^`\\])*`", re.DOTALL).match(text, place)
    if found is None and opening.startswith("`"):
        raise ValueError("a substitution in backticks is not closed")
    return found.end() if found else None


def _end_of_nested(text: str, place: int, opens: str, closes: str) -> int:
    """Behind the bracket that closes the one before a place; those in quotations count for nothing."""
    depth = 1
    signs = re.compile(rf"{_QUOTATION}|[{re.escape(opens + closes)}]", re.DOTALL)
    while found := signs.search(text, place):
        place = found.end()
        depth += (found.group() == opens) - (found.group() == closes)
        if depth == 0:
            return place
    raise ValueError("a substitution is not closed")
