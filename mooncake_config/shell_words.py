"""The text of a shell script taken apart: words, signs between commands, and the expressions that a shell replaces."""

from __future__ import annotations

import re
import shlex
from typing import NamedTuple

BETWEEN_COMMANDS = ";&|()\n"
"""What stands between two commands, each a word of its own."""
NAME = "[A-Za-z_][A-Za-z0-9_]*"
MARK = "\0"
"""Stands around the number of an expression while words are split: no argument of a program holds a NUL."""
MARKED = f"{MARK}([0-9]+){MARK}"

_DEEPEST = 50
_SPECIAL = re.escape("@*#?$!-0123456789")
_DELIMITER = r"""(?P<quote>['"])(?P<quoted>[^'"\n]+)(?P=quote)|(?P<escaped>\\?)(?P<bare>[A-Za-z_][\w.-]*)"""
_HERE_DOCUMENT = rf"<<(?P<indented>-?)[ \t]*(?:{_DELIMITER})"
_RUN = r"""[^\\'"#$`<>&()]+|\\(?P<literal>[$`])|\\."""
_PLAIN_IN_QUOTES = rf"(?s)(?P<dropped>\\\n)|{_RUN}"
_PLAIN = rf"""(?s)(?P<dropped>\\\n|\$(?=")|[<>]&[0-9-]+|&(?=>)|(?<=>)\|)|{_RUN}|'[^']*'|<+"""
"""What a shell takes as it stands: a run of letters, an escape, a quotation in single quotes."""
_ANSI = r"(?s)\$'(?:\\.|[^'\\])*'"


class Expression(NamedTuple):
    """What a shell replaces, as it stands, and whether it stands in double quotes, where the result is one word.

    ``document``: the lines of a here-document, which is no word at all; ``quoted`` says that nothing in it is replaced.
    """

    text: str
    quoted: bool
    document: bool = False


def marked(text: str) -> tuple[str, list[Expression]]:
    """The text without comments, and each expression and here-document as a mark with its number.

    Raises:
        ValueError: a substitution is not closed.
    """
    reader = _Scanner(text)
    reader.scan(0)
    return "".join(reader.pieces), reader.expressions


def split(text: str, blanks: str = " \t\r", signs: str = BETWEEN_COMMANDS) -> list[str]:
    """The words of a marked text, without quotations, and the signs between them, each run of signs as one word.

    Raises:
        ValueError: a quotation is not closed.
    """
    lexer = shlex.shlex(text, posix=True, punctuation_chars=signs)
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = blanks, True, ""
    try:
        return list(lexer)
    except ValueError:
        raise ValueError("a quotation is not closed") from None


class _Scanner:
    """Goes through a text once; here-documents are cut out of it on the way."""

    def __init__(self, text: str, depth: int = 0) -> None:
        if depth > _DEEPEST:
            raise ValueError("substitutions are nested too deeply")
        self.text = text
        self.depth = depth
        self.pieces = [""]
        self.expressions: list[Expression] = []

    def scan(self, place: int, *, closes: str = "") -> int:
        """Goes to the end, or behind the bracket that closes one before the place; gives the place where it stopped.

        Raises:
            ValueError: a substitution is not closed.
        """
        quoted, depth = False, 1
        while place < len(self.text):
            sign = self.text[place]
            if closes and not quoted and sign in "()":
                depth += 1 if sign == "(" else -1
                if not depth:
                    return place + 1
            end = self._expression(place, quoted=quoted) or self._left_out(place, quoted=quoted)
            if end is None:
                end, piece = self._plain(place, quoted=quoted)
                quoted ^= piece == '"'
                self.pieces += [piece] if piece else []
            place = end
        if closes:
            raise ValueError("a substitution is not closed")
        return place

    def _expression(self, place: int, *, quoted: bool) -> int | None:
        end = self._end_of_expression(place, quoted=quoted)
        if end is not None:
            self.pieces.append(f"{MARK}{len(self.expressions)}{MARK}")
            self.expressions.append(Expression(self.text[place:end], quoted))
        return end

    def _end_of_expression(self, place: int, *, quoted: bool) -> int | None:
        opening = self.text[place : place + 2]
        if opening == "$(" or (opening in ("<(", ">(") and not quoted):
            return self._aside(place + 2)
        if opening == "${":
            return _end_of_braces(self.text, place + 2)
        found = re.compile(rf"(?s)\$(?:{NAME}|[{_SPECIAL}])|`(?:\\.|[^`\\])*`").match(self.text, place)
        if found is None and opening.startswith("`"):
            raise ValueError("a substitution in backticks is not closed")
        return found.end() if found else None

    def _aside(self, place: int) -> int:
        """Where the command ends that is substituted; its text stays, here-documents included."""
        inner = _Scanner(self.text, self.depth + 1)
        end = inner.scan(place, closes=")")
        return end + len(self.text) - len(inner.text)

    def _left_out(self, place: int, *, quoted: bool) -> int | None:
        """Behind a comment, or behind the sign of a here-document, whose lines are cut out."""
        if quoted:
            return None
        if self.text[place] == "#" and _ends_word(self.pieces[-1]):
            return place + len(self.text[place:].partition("\n")[0])
        document = re.compile(_HERE_DOCUMENT).match(self.text, place)
        if document:
            self.text, lines = _without_document(self.text, document)
            self.pieces.append(f" {MARK}{len(self.expressions)}{MARK} ")
            self.expressions.append(
                Expression(lines, document["bare"] is None or document["escaped"] != "", document=True)
            )
            return document.end()
        return None

    def _plain(self, place: int, *, quoted: bool) -> tuple[int, str]:
        """Where the plain text ends that begins at a place, and what who splits words needs of it."""
        ansi = None if quoted else re.compile(_ANSI).match(self.text, place)
        if ansi:
            return ansi.end(), shlex.quote(_unescaped(ansi.group()[2:-1]))
        found = re.compile(_PLAIN_IN_QUOTES if quoted else _PLAIN).match(self.text, place)
        if found is None:
            return place + 1, self.text[place]
        if found["dropped"]:
            return found.end(), " " if found["dropped"][0] in "<>" else ""
        return found.end(), found["literal"] or found.group()


_ESCAPE = r"(?s)\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|([0-7]{1,3})|(.))"
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "e": "\x1b", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


def _unescaped(text: str) -> str:
    """What ``$'…'`` holds."""

    def sign(found: re.Match[str]) -> str:
        if found[4]:
            return _LETTERS.get(found[4], found[4] if found[4] in "\\'\"?" else found.group())
        return chr(int(found[1] or found[2], 16) if found[1] or found[2] else int(found[3], 8) % 256)

    return re.sub(_ESCAPE, sign, text).replace(MARK, "")


def _ends_word(piece: str) -> bool:
    """Whether a new word begins behind a piece of a text: it is none, or ends in a blank that is not escaped."""
    return not piece or (piece[-1] in f" \t\r{BETWEEN_COMMANDS}" and not piece.startswith("\\"))


def _end_of_braces(text: str, place: int) -> int:
    """Behind the first brace that closes; only another ``${`` opens one more, and those in quotations count nothing."""
    depth = 1
    signs = re.compile(r"""(?s)'[^']*'|"(?:\\.|[^"\\])*"|\\.|\$\{|['"}]""")
    while found := signs.search(text, place):
        place = found.end()
        if found.group() in ("'", '"'):
            break
        depth += (found.group() == "${") - (found.group() == "}")
        if depth == 0:
            return place
    raise ValueError("a substitution is not closed")


def _without_document(text: str, begun: re.Match[str]) -> tuple[str, str]:
    """The text without the lines of a here-document, and these lines."""
    indent = r"\t*" if begun["indented"] else ""
    first = text.find("\n", begun.end()) + 1
    delimiter = re.escape(begun["quoted"] or begun["bare"])
    last = re.compile(rf"(?m)^{indent}{delimiter}$\n?").search(text, first) if first else None
    if last is None:
        return text, ""
    lines = text[first : last.start()]
    return text[:first] + text[last.end() :], re.sub(r"(?m)^\t+", "", lines) if indent else lines
