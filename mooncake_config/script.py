"""A shell script as it is read, not run: its commands, and what each of them is given where that can be told."""

from __future__ import annotations

import ast
import itertools
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from mooncake_config.shell_words import BETWEEN_COMMANDS, MARK, MARKED, NAME, Expression, marked, split

_VARIABLE = rf"(?s)\$(?:({NAME})|\{{({NAME})(?:(:?[-=?+])(.*))?\}})"
"""A variable, in braces perhaps with what stands in for it: ``$A``, ``${A}``, ``${A:-text}``, ``${A=text}``."""
_ELEMENT = rf"\$\{{({NAME})\[([@*]|[0-9]+)\]\}}"
_ARITHMETIC = r"(?s)\$\(\((.*)\)\)"
_DOCUMENT = r"""(?s)\$\(\s*cat\s*<<-?[ \t]*(['"]?)(\w+)\1[ \t]*\n(.*?)\n?[ \t]*\2\s*\)"""
"""A here-document that becomes a value, as scripts write JSON."""
_ASSIGNMENT = rf"(?s)({NAME})(\+?)=(.*)"
_OPENING = ("if", "while", "until", "for", "case", "select")
_KEYWORDS = ("then", "elif", "else", "do", "in", "!", "time", "done", "fi", "esac", "{", "}", "function", *_OPENING)
_DECLARING = ("export", "declare", "typeset", "readonly", "local")
_SETTING = ("read", "mapfile", "readarray", "getopts", "let")
"""Commands that give variables a value which only a run tells."""
_LONGEST_VALUE = 10_000
_LONGEST_WORD = 100_000
_MOST_COMMANDS = 2_000
_MOST_ELEMENTS = 10_000
_DEEPEST = 20
"""What bounds the text that a script can make of itself, and how deep a default may hide in another."""


class Command(NamedTuple):
    """One command of a script.

    Attributes:
        words: the program and its arguments, expanded.
        given: the variables that the script sets and hands to it, over those that the shell started with.
        kept: variables that the script sets, and hands to no command so far, since it exports none of them.
        document: the lines of a here-document that it reads, None where it has none.
    """

    words: tuple[str, ...]
    given: Mapping[str, str]
    kept: Mapping[str, str]
    document: str | None = None


class Script(NamedTuple):
    """What was read.

    ``unknown`` are the expressions that are left in words and values as they stand, such as ``$(hostname -i)``: what
    they give is known when the script runs. ``commands`` end with one without words: the state behind the last line.
    ``exports`` are those of them that are exported or run as a whole, so that they may set any variable.
    """

    commands: tuple[Command, ...]
    unknown: frozenset[str]
    exports: frozenset[str]


def read_script(text: str, environ: Mapping[str, str]) -> Script:
    """The commands of a script, split and expanded as a shell does it, but for what only a run can tell.

    Where branches, loops or functions set a variable to something else than before, only a run tells what it holds.

    Args:
        environ: the variables that the shell starts with.

    Raises:
        ValueError: a quotation or a substitution is not closed, or the script has more commands than any.
    """
    shell = _Shell(environ)
    commands = tuple(shell.read(text.replace(MARK, ""), 0))
    return Script((*commands, shell.command(())), frozenset(shell.unknown), frozenset(shell.exports))


class _Raw(NamedTuple):
    """A command before anything in it is expanded: marked words, and arrays by their names."""

    words: list[str]
    arrays: dict[str, list[str]]


class _Shell:
    """Reads commands in order, and keeps what they make of variables; an unknown value is the expression itself."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environ = environ
        self.values: dict[str, str] = {}
        self.arrays: dict[str, list[str]] = {}
        self.exported: set[str] = set()
        self.exports_all = False
        self.unset: set[str] = set()
        self.unknown: set[str] = set()
        self.blocks: list[str] = []
        self.outside: list[tuple[dict[str, str], dict[str, list[str]], set[str], set[str]]] = []
        self.perhaps = self.defines = False
        self.ended = False
        self.count = 0
        self.document: str | None = None
        self.exports: set[str] = set()
        self.by_functions: set[str] = set()
        self.expressions: list[Expression] = []

    def command(self, words: Sequence[str], prefix: Mapping[str, str] | None = None) -> Command:
        """A command as things stand."""
        handed = self.exported | set(self.environ)
        given = {name: text for name, text in self.values.items() if name in handed}
        kept = {name: text for name, text in self.values.items() if name not in handed}
        return Command(tuple(words), {**given, **(prefix or {})}, kept, self.document)

    def read(self, text: str, depth: int) -> Iterator[Command]:
        """The commands of a text, each expanded before the next is read."""
        outer, (plain, self.expressions) = self.expressions, marked(text)
        for raw in _commands(split(plain), self):
            self.count += 1
            if self.count > _MOST_COMMANDS:
                raise ValueError(f"more than {_MOST_COMMANDS:,} commands stand")
            if not self.ended:
                yield from self._run(raw, depth)
        self.expressions = outer

    def _run(self, raw: _Raw, depth: int) -> Iterator[Command]:
        self.document = None
        words = self._without_keywords([word for word in raw.words if not self._takes_document(word)])
        prefix: dict[str, str] = {}
        for name, elements in raw.arrays.items():
            self._set_array(name, [one for element in elements for one in self._expanded(element)])
        before = dict(self.values)
        while words and (found := re.fullmatch(_ASSIGNMENT, words[0])):
            prefix[found[1]] = (self._held(found[1]) or "") * bool(found[2]) + self._whole(found[3])
            self.values[found[1]] = prefix[found[1]]  # the next one sees it, and a program's arguments do not
            words = words[1:]
        self.values = before
        if not words:
            for name, value in prefix.items():
                self._assign(name, value)
            return
        program = self._expanded(words[0])
        if len(program) == 1 and program[0] in (*_DECLARING, "unset", *_SETTING, "printf", "set", "eval", "exit"):
            yield from self._builtin(program[0], words[1:], depth)
            return
        yield self.command((*program, *(word for raw_word in words[1:] for word in self._expanded(raw_word))), prefix)

    def _takes_document(self, word: str) -> bool:
        """Whether a word stands for a here-document, whose lines are then those of this command."""
        found = re.fullmatch(MARKED, word)
        expression = self.expressions[int(found[1])] if found else None
        if expression is None or not expression.document:
            return False
        text = expression.text
        self.document = text if expression.quoted else self._default(Expression(_as_quoted(text), quoted=True), 0)
        return True

    def _without_keywords(self, words: list[str]) -> list[str]:
        """The words behind keywords, which open and close what runs perhaps, often or later."""
        while words and words[0] in _KEYWORDS:
            keyword, words = words[0], words[1:]
            if keyword in _OPENING:
                self.blocks.append(keyword)
            elif keyword in ("done", "fi", "esac", "}") and self.blocks:
                self.blocks.pop()
            elif keyword == "{":
                self.blocks.append("function" if self.defines else "perhaps" if self.perhaps else "{")
            if keyword in ("for", "select") and words:
                self.forget(words[0])
            if keyword in ("for", "select", "case"):
                return []
            if keyword == "function":
                self.defines, words = True, words[1:]
        return words

    def hear(self, signs: str) -> None:
        """Takes the signs between two commands, and what they mean for the next."""
        self.defines = signs.startswith("()")
        for sign in signs[2:] if self.defines else signs:
            if sign == "(":
                self.blocks.append("(")
                self.outside.append((dict(self.values), dict(self.arrays), set(self.exported), set(self.unset)))
            elif sign == ")" and self.blocks[-1:] == ["("]:
                self.blocks.pop()
                self.values, self.arrays, self.exported, self.unset = self.outside.pop()
        self.perhaps = "&&" in signs or "||" in signs

    def _runs_perhaps(self) -> bool:
        return self.perhaps or any(block not in ("(", "{") for block in self.blocks)

    def _builtin(self, name: str, raw: list[str], depth: int) -> Iterator[Command]:
        if name in _DECLARING:
            self._declare(name, raw)
            return
        words = [word for raw_word in raw for word in self._expanded(raw_word)]
        if name == "eval" and (unknown := self.unknown.intersection(words)):
            self.exports.update(unknown)
        elif name == "eval" and depth < _DEEPEST:
            yield from self.read(" ".join(words), depth + 1)
        elif name == "printf" and "-v" not in words:
            yield self.command((name, *words))
        elif name == "exit":
            self.ended = not (self.perhaps or self.blocks)
        elif name == "set":
            self._set(words)
        else:
            self._give(name, words)

    def _set(self, words: Sequence[str]) -> None:
        for word in itertools.takewhile(lambda word: word != "--", words):
            if re.fullmatch(r"[-+]\w*a\w*", word) or (word == "allexport"):
                self.exports_all = not words[0].startswith("+")

    def _declared(self, raw: str) -> list[str]:
        """An assignment as it stands, to be expanded whole; of any other word what it becomes."""
        if re.fullmatch(_ASSIGNMENT, raw):
            return [raw]
        words = self._expanded(raw)
        self.exports.update(word for word in words if word in self.unknown)
        return words

    def _give(self, name: str, words: Sequence[str]) -> None:
        """What ``unset`` takes away, and what ``read`` and its like give: a here-document, or what only a run tells."""
        if name == "read" and "-d" in words and self.document is not None and re.fullmatch(NAME, words[-1]):
            self._assign(words[-1], self.document.strip())
            return
        for word in words:
            if name != "unset" or self._runs_perhaps():
                self.forget(word.partition("=")[0])
            else:
                self.values.pop(word, None)
                self.arrays.pop(word, None)
                self.unset.add(word)

    def _declare(self, name: str, raw: list[str]) -> None:
        options = "".join(word for word in raw if word.startswith("-"))
        exports = name == "export" or "x" in options
        for word in (one for raw_word in raw for one in self._declared(raw_word)):
            found = re.fullmatch(_ASSIGNMENT, word)
            if found:
                self._assign(found[1], (self._held(found[1]) or "") * bool(found[2]) + self._whole(found[3]))
            target = found[1] if found else word
            if exports and re.fullmatch(NAME, target):
                (self.exported.discard if "n" in options else self.exported.add)(target)

    def forget(self, name: str) -> None:
        """Only a run tells from here on what a variable holds."""
        if re.fullmatch(NAME, name):
            self.arrays.pop(name, None)
            self._keep(name, self._open(f"${name}"))

    def _open(self, expression: str) -> str:
        self.unknown.add(expression)
        return expression

    def _assign(self, name: str, value: str) -> None:
        before = self._held(name)
        if "function" in self.blocks:
            self.by_functions.add(name)
        if (self._runs_perhaps() or name in self.by_functions) and before not in (None, value):
            value = self._open(f"${name}")
        self._keep(name, value if len(value) <= _LONGEST_VALUE else self._open(f"${name}"))

    def _keep(self, name: str, value: str) -> None:
        self.values[name] = value
        self.unset.discard(name)
        if self.exports_all:
            self.exported.add(name)

    def _set_array(self, target: str, elements: list[str]) -> None:
        name, appends = target.rstrip("+"), target.endswith("+")
        before = self.arrays.get(name, [])
        if self._runs_perhaps() and not appends and before not in ([], elements):
            elements = [self._open(f"${{{name}[@]}}")]
        self.values.pop(name, None)
        elements = [*before, *elements] if appends else elements
        self.arrays[name] = elements if len(elements) <= _MOST_ELEMENTS else [self._open(f"${{{name}[@]}}")]

    def _held(self, name: str) -> str | None:
        if name in self.values:
            return self.values[name]
        if name in self.arrays:
            return next(iter(self.arrays[name]), "")
        return None if name in self.unset else self.environ.get(name)

    def _whole(self, word: str) -> str:
        """A word that is not split, as that of an assignment."""
        return re.sub(MARKED, lambda mark: self._text_of(self.expressions[int(mark[1])]), word)[:_LONGEST_WORD]

    def _expanded(self, word: str) -> list[str]:
        """The words that a word becomes: what stands in no quotation is split at its blanks."""
        parts = re.split(MARKED, word)
        if len(parts) == 1:
            return [word]
        quoted, length = False, 0
        for place in range(1, len(parts), 2):
            expression = self.expressions[int(parts[place])]
            pieces = self._pieces(expression) if length < _LONGEST_WORD else [self._open(expression.text)]
            parts[place] = MARK.join(pieces)
            quoted = quoted or (expression.quoted and pieces == [""])
            length += len(parts[place])
        return [part for part in "".join(parts).split(MARK) if part] or [""] * quoted

    def _pieces(self, expression: Expression) -> list[str]:
        """What an expression gives, as the words or parts of words that it is."""
        element = re.fullmatch(_ELEMENT, expression.text)
        if element and element[1] in self.arrays and element[2] in "@*":
            elements = self.arrays[element[1]]
            return [*elements] if expression.quoted else [one for text in elements for one in self._split(text)]
        text = self._text_of(expression)
        return [text] if expression.quoted else self._split(text)

    def _split(self, text: str) -> list[str]:
        """A value at its blanks; an expression in it is one piece."""
        pieces = text.split()
        if len(pieces) < 2:
            return pieces
        ones = sorted((one for one in self.unknown if re.search(r"\s", one) and one in text), key=len, reverse=True)
        for number, one in enumerate(ones):
            text = text.replace(one, f"{MARK}{number}{MARK}")
        pieces = text.split()
        for number, one in enumerate(ones):
            pieces = [piece.replace(f"{MARK}{number}{MARK}", one) for piece in pieces]
        return pieces

    def _text_of(self, expression: Expression) -> str:
        value = self._value(expression, 0)
        return self._open(expression.text) if value is None else value

    def _value(self, expression: Expression, depth: int) -> str | None:
        """What an expression gives, None where only a run can tell."""
        if depth > _DEEPEST:
            return None
        if found := re.fullmatch(_VARIABLE, expression.text):
            return self._variable(
                found[1] or found[2], found[3] or "", Expression(found[4] or "", expression.quoted), depth
            )
        if found := re.fullmatch(_ELEMENT, expression.text):
            elements = self.arrays.get(found[1])
            if elements is None or found[2] in "@*":
                return None if elements is None else " ".join(elements)
            return elements[int(found[2])] if int(found[2]) < len(elements) else ""
        if found := re.fullmatch(_ARITHMETIC, expression.text):
            return self._sum(found[1], depth)
        if found := re.fullmatch(_DOCUMENT, expression.text):
            return found[3] if found[1] else self._default(Expression(_as_quoted(found[3]), quoted=True), depth + 1)
        return None

    def _variable(self, name: str, sign: str, instead: Expression, depth: int) -> str | None:
        value = self._held(name)
        stands = value is not None and not (value == "" and sign.startswith(":"))
        if sign.endswith("+"):
            return self._default(instead, depth + 1) if stands else ""
        if stands or not sign or sign.endswith("?"):
            return value if stands or name not in self.unset else ""
        text = self._default(instead, depth + 1)
        if sign.endswith("="):
            self._keep(name, text)
        return text

    def _default(self, expression: Expression, depth: int) -> str:
        """What stands in for a variable: a text with expressions of its own."""
        text = expression.text.replace("'", "\\'") if expression.quoted else expression.text
        plain, inner = marked(text)
        values = [self._value(Expression(one.text, expression.quoted), depth) for one in inner]
        texts = [self._open(one.text) if value is None else value for one, value in zip(inner, values, strict=True)]
        whole = "".join(split(plain, blanks="", signs=""))
        return re.sub(MARKED, lambda mark: texts[int(mark[1])], whole)[:_LONGEST_WORD]

    def _sum(self, text: str, depth: int) -> str | None:
        """The number that an arithmetic expression gives."""
        plain, inner = marked(text)
        values = [self._value(one, depth + 1) or "" for one in inner]
        numbers = re.sub(MARKED, lambda mark: values[int(mark[1])] or "?", plain)
        return _calculated(re.sub(NAME, lambda name: self._held(name[0]) or "?", numbers))


_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.Div: operator.floordiv,
    ast.Mod: operator.mod,
}
_LARGEST = 1 << 63


def _calculated(text: str) -> str | None:
    """The value of a sum of whole numbers, None where it is none, or does not fit into 63 bits."""
    if len(text) > 200 or not re.fullmatch(r"[0-9+*/%()<>\s-]+", text):
        return None
    try:
        value = _number(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ArithmeticError, ValueError, RecursionError):
        return None
    return str(value)


def _number(node: ast.expr) -> int:
    """The value of a part of a sum. Raises ``ValueError`` for what is none, or too large."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        value = node.value
    elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = _number(node.left), _number(node.right)
        if isinstance(node.op, (ast.Pow, ast.LShift)) and right > 63:
            raise ValueError(right)
        value = _OPERATORS[type(node.op)](left, right)
    else:
        raise ValueError(node)
    if not 0 <= value < _LARGEST:
        raise ValueError(value)
    return value


def _as_quoted(document: str) -> str:
    """The lines of a here-document as a text in double quotes, in which they mean the same."""
    return re.sub(r"\\(?![$`\\\n])", r"\\\\", document).replace('"', '\\"')


def _commands(words: Sequence[str], shell: _Shell) -> Iterator[_Raw]:
    """The commands between the signs; what brackets and ``&&`` mean for them is told to the shell."""
    raw, place = _Raw([], {}), 0
    while place < len(words):
        word = words[place]
        following = words[place + 1] if place + 1 < len(words) else ""
        array = re.fullmatch(rf"({NAME}\+?)=", word) if following.startswith("(") else None
        if array:
            place, raw.arrays[array[1]], rest = _array(words, place + 1)
        elif word.strip(BETWEEN_COMMANDS):
            raw.words.append(word)
            place, rest = place + 1, ""
        else:
            place, rest = place + 1, word
        if rest.startswith("(("):
            place, rest = _behind_sum(words, place, shell)
        if rest:
            yield raw
            raw = _Raw([], {})
            shell.hear(rest)
    yield raw


def _array(words: Sequence[str], place: int) -> tuple[int, list[str], str]:
    """The elements of an array whose bracket opens at a place; the place behind it, and the signs that close it."""
    elements: list[str] = []
    rest = words[place][1:]
    while place + 1 < len(words) and ")" not in rest:
        place += 1
        if words[place].strip(BETWEEN_COMMANDS):
            elements.append(words[place])
        else:
            rest = words[place]
    return place + 1, elements, rest.partition(")")[2]


def _behind_sum(words: Sequence[str], place: int, shell: _Shell) -> tuple[int, str]:
    """The place behind ``((…))``, whose variables only a run tells, and the signs that follow at once."""
    end = next((end for end in range(place, len(words)) if words[end].startswith("))")), len(words))
    for name in re.findall(rf"({NAME})(?=\s*(?:[^=!<>\s]?=[^=]|\+\+|--))", " ".join((*words[place:end], ""))):
        shell.forget(name)
    return end + 1, words[end][2:] if end < len(words) else ""
