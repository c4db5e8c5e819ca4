"""What probably happened to a text that should have been a JSON object. Nothing is repaired; the message says it.

A mechanism is undone on trial: where the outcome is a JSON object, that mechanism is what happened, and the fix shows
the object as it should be written. Else the place where the parser stopped tells.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator
from json import JSONDecodeError

from mooncake_config.display import has_secret, shown, shown_part

EXAMPLE = '{"protocol": "tcp"}'
AS_FILE = "or write the JSON to a file and pass @FILE, which no shell touches"

TRIAL_LIMIT = 1 << 16
"""Longest text, in characters, on which damage is undone on trial; of longer ones the place alone tells."""

_QUOTES = "'\"`"
_FIX_LIMIT = 160
"""Longest argument that a fix writes out."""

_TYPOGRAPHIC = str.maketrans(
    {
        **dict.fromkeys("“”„‟«»″＂", '"'),
        **dict.fromkeys("‘’‚‛′", "'"),
        **dict(zip("｛｝［］：，", "{}[]:,", strict=True)),
    }
)
_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)'
_CONSTANT = rf"(?s){_STRING}|(?P<constant>-?Infinity|NaN)"
_BRACKET = rf"(?s){_STRING}|(?P<opens>[\[{{])|(?P<closes>[\]}}])"
_UNEXPANDED = r"\$\{\w+\}?|\$[A-Za-z_]\w*|\$\([^)]*\)?|\{\{.*?\}\}|`[^`]+`|%[A-Za-z_]\w*%|<[A-Za-z][\w .-]*>"
_PYTHON = r"(?P<constant>None|True|False)\b|(?:[uUrRbB]{1,2})?'|(?:dict|OrderedDict)\(|\("
_FILE_NAME = r"(?:file:)?[\w.~/ -]*(?:/[\w.-]+|\.(?:json[c5l]?|ya?ml|toml|txt|conf|cfg))"
_ENTRY = r"[\"']?[A-Za-z_][\w.-]*[\"']?\s*[:=]"
_PERCENT = r"%[0-9A-Fa-f]{2}"
_ENTITY = r"&(?:#[0-9]+|#[xX][0-9A-Fa-f]+|[A-Za-z]+);"
_BASE64 = r"eyJ[\w+/=-]+"
_ESCAPED_CHARACTER = r"\\+(?:u00([0-7][0-9A-Fa-f])|([^A-Za-z0-9\s]))"
_TEMPLATE = r"\{\{[^{}]*\}\}"
_SHELL_WORD = r"'\{.*\}'"

# What only a shell does, in words. Of a file these words would be wrong.
_NEVER_EXPANDED = "was never expanded: single quotes or a file kept it from a shell"
_VALUE_ITSELF = "put the value itself there"
_OR_EXPAND = ", or use double quotes in the shell so that it expands the variable"
_TAKEN_AWAY = "its double quotes are gone: a shell, or the shell behind a job submission, took them away"
_AS_IF_CUT = ", as if cut at a blank"
_KEEP_QUOTES = f"keep them by single quotes around the value: '{EXAMPLE}'; or export MOONCAKE_… variables instead"
_OR_CUT = ", or it was cut at a blank because nothing quoted it"
_QUOTE_WHOLE = f"quote the whole value so that it stays one word: '{EXAMPLE}'"
_BASH_TOOK_THEM = "; bash takes them away where a text with a comma has no quotes around it"
_BLANK_BEFORE_AT = "a blank stands before the @"
_WITHOUT_SHELL = (
    (_NEVER_EXPANDED, "was never expanded: no shell reads what stands here"),
    (_OR_EXPAND, ""),
    ("; an unset shell variable often leaves such a gap", "; a template with an unset variable leaves such a gap"),
    (_TAKEN_AWAY, "its keys and texts have no double quotes"),
    (_AS_IF_CUT, ""),
    (_KEEP_QUOTES, f"put double quotes around each key and text, as in {EXAMPLE}"),
    (_OR_CUT, ""),
    (_QUOTE_WHOLE, f"complete it; the form is that of {EXAMPLE}"),
    (_BASH_TOOK_THEM, ""),
    ("put single quotes around the whole object: ", "put curly brackets around it, as in "),
    ("quote it once, without backslashes: ", "write it without backslashes: "),
    ("quote it once: ", "write it without them: "),
    (_BLANK_BEFORE_AT, "it is the name of a file behind an @, and only a command line has such"),
    ("begin with the @: ", "write the object itself, or pass on the command line "),
    ("put an @ before it: ", "write the object itself, or pass on the command line "),
)

_TAIL = 2000
"""Characters at the end of a text in which a password may have been cut."""
_CUT_PASSWORD = r"""(://[^\s/@:"']*:)(?![0-9]{0,5}(?:[/"',;}\s]|$))[^\s"'@]+$"""

Diagnosis = tuple[str, str]
"""What happened, and what to write; neither ends with a full stop."""

_Tell = Callable[[str, JSONDecodeError], Diagnosis | None]


def diagnose(text: str, error: JSONDecodeError) -> tuple[str, str]:
    """The message and the fix for a text that the JSON parser refused.

    The message shows what arrived, where the parser stopped, and what happened to it by all appearance.
    """
    bare = text.strip()
    fallback = (_reason(error), f"write one JSON object, such as '{EXAMPLE}'")
    happened, write = next((found for tell in _TELLS if (found := tell(bare, error))), fallback)
    return f"not JSON at column {_column(error)} ({arrived(text)}): {happened}.", f"{write}."


def diagnose_file(text: str, error: JSONDecodeError) -> tuple[str, str]:
    """The same for a text that no shell saw, from a file or standard input."""
    happened, write = diagnose(text, error)
    for words, instead in _WITHOUT_SHELL:
        happened, write = happened.replace(words, instead), write.replace(words, instead)
    return happened, re.sub(_SHELL_WORD, lambda word: "".join(shlex.split(word.group())), write)


def tell_text(text: str) -> Diagnosis | None:
    """What happened where the JSON is no more than one text: quotes were kept around nothing, or around a variable."""
    bare = text.strip(_QUOTES + " ")
    if not bare:
        happened = "it is empty, and a pair of quotes around nothing is part of the value: quoted once too often"
        return happened, f"give an object, such as '{EXAMPLE}', or leave the option out"
    found = re.fullmatch(_UNEXPANDED, bare)
    if found is None:
        return None
    what = "was never rendered: no template engine saw it" if bare.startswith("{{") else "was never expanded"
    return f"{_arrived_part(bare, text)} {what}, and the quotes around it are part of the value", _VALUE_ITSELF


def diagnose_constant(text: str) -> tuple[str, str]:
    """The message and the fix for a text with NaN or Infinity, which Python's parser takes and JSON has not."""
    found = next(match for match in re.finditer(_CONSTANT, text) if match["constant"])
    error = JSONDecodeError("", text, found.start())
    message = f"not JSON at column {_column(error)} ({arrived(text)}): {found['constant']} is not a JSON number."
    return message, 'write a number, or a size such as "8gb"; JSON has no NaN and no Infinity.'


def is_deeper_than(text: str, levels: int) -> bool:
    """Whether brackets are nested deeper; told without a recursion, which deep nesting would exhaust."""
    if text.count("[") + text.count("{") <= levels:
        return False
    depth = 0
    for match in re.finditer(_BRACKET, text):
        depth += bool(match["opens"]) - bool(match["closes"])
        if depth > levels:
            return True
    return False


def arrived(text: str) -> str:
    """The text as it is shown: a password stays hidden also where it is escaped, encoded, or cut before its ``@``."""
    plain = _plain(text)
    if plain != text and (has_secret(plain) or re.search(_CUT_PASSWORD, plain[-_TAIL:])):
        text = plain
    return shown(text[:-_TAIL] + re.sub(_CUT_PASSWORD, r"\1***", text[-_TAIL:]))


def _arrived_part(part: str, text: str) -> str:
    """A part of the text; ``***`` where it may belong to a password."""
    return shown_part(_plain(part), _plain(text), 40) if "***" not in arrived(part) else "***"


def _plain(text: str) -> str:
    """The text with every kind of escape taken away that could keep a password from being recognised."""
    for _ in range(3):
        before = text
        if re.search(_PERCENT, text):
            text = _unquoted(text)
        if re.search(_ENTITY, text):
            text = _unescaped_entities(text)
        text = re.sub(_ESCAPED_CHARACTER, lambda m: chr(int(m[1], 16)) if m[1] else m[2], text)
        if text == before:
            break
    return _base64_decoded(text) if re.fullmatch(_BASE64, text) else text


def _unquoted(text: str) -> str:
    from urllib.parse import unquote

    return unquote(text)


def _unescaped_entities(text: str) -> str:
    from html import unescape

    return unescape(text)


def _column(error: JSONDecodeError) -> str:
    return f"{error.colno}" if error.lineno == 1 else f"{error.colno} of line {error.lineno}"


def _reason(error: JSONDecodeError) -> str:
    """The parser's own words, for what no tell knows."""
    stopped = error.doc[error.pos : error.pos + 1].strip()
    return f"{error.msg[:1].lower()}{error.msg[1:]}" + (f", found {shown(stopped)}" if stopped else "")


def _rest(error: JSONDecodeError) -> str:
    """What stands where the parser stopped."""
    return error.doc[error.pos :].lstrip()


def _object_in(text: str) -> dict[str, object] | None:
    """The JSON object that a text holds, perhaps as JSON text in JSON; None where it holds none."""
    for _ in range(3):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return None
        if not isinstance(value, str):
            return value if isinstance(value, dict) else None
        text = value
    return None


def _argument(value: dict[str, object]) -> str:
    """An object as it should stand in a shell; an example where it is long, secret, or no JSON after all."""
    try:
        text = json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        text = EXAMPLE
    return shlex.quote(EXAMPLE if len(text) > _FIX_LIMIT or has_secret(_plain(text)) else text)


def _byte_order_mark(text: str, error: JSONDecodeError) -> Diagnosis | None:
    if not text.startswith("\ufeff"):
        return None
    return "it begins with a byte order mark (BOM, U+FEFF)", "save the file as UTF-8 without BOM"


def _no_value(text: str, error: JSONDecodeError) -> Diagnosis | None:
    if text not in ("None", "undefined", "nil", "NULL", "Null"):
        return None
    happened = f"{text} is what a program makes of a value that is not there"
    return happened, f"give an object, such as '{EXAMPLE}', or leave the option out"


def _doubled_brackets(text: str, error: JSONDecodeError) -> Diagnosis | None:
    found = _object_in(text.replace("{{", "{").replace("}}", "}")) if text.startswith("{{") else None
    if found is None:
        return None
    happened = "its curly brackets are doubled, as format strings and templates have them"
    return happened, f"write each once: {_argument(found)}"


def _quoted_nothing(text: str, error: JSONDecodeError) -> Diagnosis | None:
    return tell_text(text) if text.startswith(("'", '"')) else None


def _unexpanded(text: str, error: JSONDecodeError) -> Diagnosis | None:
    # A template's brackets are an object's to the parser, which stops between them.
    template = (one for one in re.finditer(_TEMPLATE, error.doc) if one.start() <= error.pos < one.end())
    found = re.match(_UNEXPANDED, text) or re.match(_UNEXPANDED, _rest(error)) or next(template, None)
    if found is None:
        return None
    part = _arrived_part(found.group(), text)
    if found.group().startswith("<"):
        return f"{part} is a placeholder of a guide", _VALUE_ITSELF
    if found.group().startswith("{{"):
        return f"{part} was never expanded: no template engine saw it", _VALUE_ITSELF
    return f"{part} {_NEVER_EXPANDED}", f"{_VALUE_ITSELF}{_OR_EXPAND}"


def _typographic(text: str, error: JSONDecodeError) -> Diagnosis | None:
    plain = text.translate(_TYPOGRAPHIC)
    odd = next((one for one, other in zip(text, plain, strict=True) if one != other), None)
    found = _object_in(plain) if odd else None
    stopped = error.doc[error.pos : error.pos + 1]
    if odd is None or (found is None and '"' in text and stopped.translate(_TYPOGRAPHIC) == stopped):
        return None
    kind = "full-width character" if odd > "\uff00" else "typographic quote"
    write = f"type it anew: {_argument(found)}" if found else 'type the quotes anew as plain "'
    return f"it holds the {kind} {odd}, as word processors, chats and input methods write it", write


def _encoded(text: str, error: JSONDecodeError) -> Diagnosis | None:
    for pattern, undo, name in (
        (_PERCENT, _unquoted, "percent-encoded, as in a URL (%22 for a quote)"),
        (_ENTITY, _unescaped_entities, "HTML-escaped (&quot; for a quote)"),
        (r"(?i)\\u00[0-7]", _ascii_unescaped, r"escaped as in a JSON text (\u0022 for a quote)"),
        (_BASE64, _base64_decoded, "base64"),
    ):
        found = (
            (_object_in(undo(text)) or _object_in(undo(text.replace("+", " ")))) if re.search(pattern, text) else None
        )
        if found:
            return f"it is {name}", f"hand it over decoded: {_argument(found)}"
    return None


def _ascii_unescaped(text: str) -> str:
    return re.sub(r"\\u00([0-7][0-9A-Fa-f])", lambda m: chr(int(m[1], 16)), text)


def _base64_decoded(text: str) -> str:
    from base64 import b64decode

    try:
        return b64decode(text + "=" * (-len(text) % 4)).decode("utf-8", "replace")
    except ValueError:
        return ""


def _quoted_too_often(text: str, error: JSONDecodeError) -> Diagnosis | None:
    """Quotes around it, backslashes in it, or both, several times over."""
    found = next(_peelings(text), None)
    if found is None:
        return _escaped_and_more(text)
    steps, value = found
    words = []
    if "quotes" in steps:
        words.append(f"an extra pair of quotes ({text[0] if text[0] in _QUOTES else text[-1]}) is part of the value")
    if "backslashes" in steps:
        times = {1: "twice", 2: "three times"}.get(steps.count("backslashes"), "many times")
        words.append(f"its quotes are escaped by backslashes that nothing took away: it was escaped {times}")
    if "doubled" in steps:
        words.append("each of its double quotes stands twice, as CSV files and the command prompt of Windows have it")
    return " and ".join(words), f"quote it once: {_argument(value)}"


def _escaped_and_more(text: str) -> Diagnosis | None:
    """The same where something else is wrong besides, so that no object comes out."""
    if re.match(r"[\"'`]?\s*\\+[{\"]|\{\s*\\+[\"']", text):
        return "its quotes are escaped by backslashes that nothing took away: it was escaped twice", _quote_once()
    if re.match(r"(?P<quote>['\"`]{1,2})\s*[{\[]", text):
        return f"an extra pair of quotes ({text[0]}) is part of the value: it was quoted once too often", _quote_once()
    return None


def _quote_once() -> str:
    return f"quote it once, without backslashes: '{EXAMPLE}'"


def _peelings(text: str) -> Iterator[tuple[tuple[str, ...], dict[str, object]]]:
    """The ways to an object by taking layers of quoting away, the shortest first: the layers, and the object."""
    layer: list[tuple[tuple[str, ...], str]] = [((), text)]
    for _ in range(4):
        layer = [step for steps, left in layer for step in _peeled(steps, left)]
        for steps, left in layer:
            value = _object_in(left)
            if value is not None:
                yield steps, value


def _peeled(steps: tuple[str, ...], text: str) -> Iterator[tuple[tuple[str, ...], str]]:
    begin, end = text[:1] in tuple(_QUOTES), text[-1:] in tuple(_QUOTES)
    if begin or end:
        yield (*steps, "quotes"), text[begin : len(text) - end].strip()
    if re.search(r"\\[\"'{]", text):
        yield (*steps, "backslashes"), re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)
    if '""' in text:
        yield (*steps, "doubled"), text.replace('""', '"')


def _python_notation(text: str, error: JSONDecodeError) -> Diagnosis | None:
    found = re.match(_PYTHON, _rest(error))
    if found is None:
        return None
    word = found["constant"]
    if word:
        instead = {"None": "null", "True": "true", "False": "false"}[word]
        return f"{word} is Python; JSON has {instead}", f"write {instead}, or print the mapping with json.dumps(…)"
    if found.group().endswith("'"):
        happened = "it has single quotes, as Python prints a dictionary, where JSON has double quotes"
    else:
        happened = "it is in Python's notation"
    return happened, f"print it with json.dumps(…), which gives '{EXAMPLE}'"


def _comment(text: str, error: JSONDecodeError) -> Diagnosis | None:
    if not re.match(r"//|/\*|#", _rest(error)):
        return None
    return "it holds a comment, and JSON has none", "take the comment out"


def _comma_without_entry(text: str, error: JSONDecodeError) -> Diagnosis | None:
    before, here, after = _neighbours(error)
    if (here in ("}", "]") and before == ",") or (here == "," and after in ("}", "]")):
        return "there is a comma with nothing behind it", "take away the comma before the closing bracket"
    if here == "," and before in (",", "{", "["):
        return "there is a comma too many", "take one of the commas away"
    return None


def _neighbours(error: JSONDecodeError) -> tuple[str, str, str]:
    """The character where the parser stopped and its neighbours, blanks left out; empty beyond the ends."""
    rest = _rest(error)
    return error.doc[: error.pos].rstrip()[-1:], rest[:1], rest[1:].lstrip()[:1]


def _missing_value(text: str, error: JSONDecodeError) -> Diagnosis | None:
    before, here, _ = _neighbours(error)
    if before != ":" or here not in ("}", ","):
        return None
    happened = "a value is missing behind the colon; an unset shell variable often leaves such a gap"
    return happened, "write the value, in double quotes if it is text, or take the key out"


def _odd_number(text: str, error: JSONDecodeError) -> Diagnosis | None:
    """A size with its unit, an address, a hexadecimal number: begun like a number, and none."""
    if not text.startswith(("{", "[")):
        return None
    begun = re.search(r"[-+]?[0-9][\w.]*$", error.doc[max(error.pos - 64, 0) : error.pos])
    rest = re.match(r"[^\s,\]}\"]{0,200}", error.doc[error.pos :])
    word = (begun.group() if begun else "") + (rest.group() if rest else "")
    if not re.match(r"[-+]?\.?[0-9]", word) or (begun and not (rest and rest.group())):
        return None
    written = _arrived_part(word, text)
    return f"{written} is not a JSON number", f'write a plain number, or put it in double quotes: "{written}"'


def _quotes_lost(text: str, error: JSONDecodeError) -> Diagnosis | None:
    if '"' in text or not re.match(r"\{\s*[A-Za-z_$][\w$.-]*\s*:", text):
        return None
    cut = "" if text.endswith("}") else f"; and it ends too early{_AS_IF_CUT}"
    return f"{_TAKEN_AWAY}{cut}", _KEEP_QUOTES


def _bare_entry(text: str, error: JSONDecodeError) -> Diagnosis | None:
    found = re.match(r"(?P<key>[A-Za-z_][\w.-]*)\s*(?P<mark>=>|:=|=)", _rest(error))
    if found is None or not text.startswith("{"):
        return None
    key = _arrived_part(found["key"], text)
    return f"{found['mark']} stands where JSON has :, behind a key without double quotes", f'write "{key}": instead'


def _bare_word(text: str, error: JSONDecodeError) -> Diagnosis | None:
    found = re.match(r"[A-Za-z_$][^\s,:}\]\"]*", _rest(error))
    if found is None or not error.msg.startswith(("Expecting value", "Expecting property name")):
        return None
    what = "the key" if error.msg.startswith("Expecting property name") else "the text"
    if not text.startswith(("{", "[")):
        return None
    return f"{what} {_arrived_part(found.group(), text)} stands without double quotes", "put it in double quotes"


def _wrong_mark(text: str, error: JSONDecodeError) -> Diagnosis | None:
    found = re.match(r"=>|:=|[;=]", _rest(error))
    wanted = re.match(r"Expecting '(?P<mark>[,:])' delimiter", error.msg)
    if found is None or wanted is None:
        return None
    mark, entry = wanted["mark"], 'each entry is "field": value, and a comma stands between entries'
    return f"{found.group()} stands where JSON has {mark}", f"write {mark} there: {entry}"


def _ends_too_early(text: str, error: JSONDecodeError) -> Diagnosis | None:
    unterminated = error.msg.startswith("Unterminated string")
    if not text.startswith(("{", "[")) or not (unterminated or error.pos >= len(error.doc.rstrip())):
        return None
    if unterminated and text.endswith(("}", "]")):
        return "a text has no closing double quote", "put the missing double quote there"
    return f"it ends too early: its closing bracket is missing{_OR_CUT}", _QUOTE_WHOLE


def _more_behind(text: str, error: JSONDecodeError) -> Diagnosis | None:
    if error.msg != "Extra data" or not text.startswith(("{", "[")):
        return None
    rest = _rest(error)
    if rest.startswith("{"):
        return "a second object stands behind the first", "put all fields into one object"
    if not rest.strip("}] \t\r\n"):
        return "it has a closing bracket too many", "take the last bracket away"
    happened = f"the object ends there and more follows ({_arrived_part(rest, text)})"
    return happened, f"write one object and nothing else: '{EXAMPLE}'"


def _control_character(text: str, error: JSONDecodeError) -> Diagnosis | None:
    if not error.msg.startswith("Invalid control character"):
        return None
    return "a text holds a line break or another control character", "keep every text on one line, without tabs"


def _bad_escape(text: str, error: JSONDecodeError) -> Diagnosis | None:
    if "escape" not in error.msg:
        return None
    return "a backslash in a text is followed by no known escape", r'double the backslash ("\\") or take it away'


def _invisible(text: str, error: JSONDecodeError) -> Diagnosis | None:
    odd = error.doc[error.pos : error.pos + 1]
    if not odd or odd.isascii() or (odd.isprintable() and not odd.isspace()):
        return None
    return f"an invisible character stands there (U+{ord(odd):04X})", "type that part anew; copying brings it along"


def _file_without_at(text: str, error: JSONDecodeError) -> Diagnosis | None:
    if text.startswith("@"):
        return _BLANK_BEFORE_AT, f"begin with the @: {shown(text)}"
    if len(text) > 1024 or not re.fullmatch(_FILE_NAME, text):
        return None
    return "it looks like the name of a file", f"put an @ before it: @{shown(text.removeprefix('file://'))}"


def _no_brackets(text: str, error: JSONDecodeError) -> Diagnosis | None:
    found = re.match(_ENTRY, text)
    if found is None:
        return None
    if found.group().endswith("="):
        return "it looks like NAME=VALUE", f"write a JSON object: '{EXAMPLE}'"
    if "\n" in text or re.match(r"[A-Za-z_]\w*: ", text):
        return "it looks like YAML, and its curly brackets and quotes are missing", f"write JSON: '{EXAMPLE}'"
    return f"its curly brackets are missing{_BASH_TOOK_THEM}", f"put single quotes around the whole object: '{EXAMPLE}'"


def _missing_mark(text: str, error: JSONDecodeError) -> Diagnosis | None:
    wanted = re.match(r"Expecting '(?P<mark>[,:])' delimiter", error.msg)
    if wanted is None or not text.startswith(("{", "[")):
        return None
    if _rest(error)[:1] in ("}", "]") and wanted["mark"] == ",":
        return (
            f"{_rest(error)[:1]} closes a bracket of the other kind",
            "close what was opened: {} for objects, [] for lists",
        )
    if text.startswith("[") and _rest(error)[:1] == ":":
        return "it begins with [ as a list, and holds entries of an object", f"write curly brackets: '{EXAMPLE}'"
    if wanted["mark"] == ":" and ":" in error.doc[: error.pos].rpartition('"')[0].rpartition('"')[2]:
        return "a key has no closing double quote", "put the missing double quote before the colon"
    unclosed = re.search(r'"(?P<text>[^",]*),\s*"$', error.doc[: error.pos]) if wanted["mark"] == "," else None
    if unclosed and re.match(r'[A-Za-z_$][\w.$-]*"\s*:', _rest(error)):
        happened = f"the text {_arrived_part(unclosed['text'], text)} has no closing double quote"
        return happened, "put the missing double quote before the comma"
    name = "comma" if wanted["mark"] == "," else "colon"
    return (
        f"a {name} is missing",
        f'put a {name} there: each entry is "field": value, and a comma stands between entries',
    )


def _no_object(text: str, error: JSONDecodeError) -> Diagnosis | None:
    if text.startswith(("{", "[", '"')):
        return None
    what = "it looks like the next option" if text.startswith("--") else "it is plain text"
    return f"{what}, and the init kwargs are one JSON object", f"write an object, such as '{EXAMPLE}'"


def _dollar_quoted(text: str, error: JSONDecodeError) -> Diagnosis | None:
    if not text.startswith(("$'", '$"')):
        return None
    inner = text[2:].rstrip("'\"")
    found = _object_in(inner) or _object_in(re.sub(r"\\(.)", r"\1", inner, flags=re.DOTALL))
    sign = f"{text[:2]}…{text[1]}"
    happened = f"{sign} is part of the value: only some shells know it, and none took it away"
    return happened, f"quote it once: {_argument(found) if found else shlex.quote(EXAMPLE)}"


def _line_continued(text: str, error: JSONDecodeError) -> Diagnosis | None:
    joined = re.sub(r"\\[ \t]*\r?\n", " ", text)
    found = _object_in(joined) if joined != text else None
    if found is None:
        return None
    happened = "a backslash at the end of a line is part of it: inside single quotes it continues no line"
    return happened, f"take those backslashes away; JSON may have line breaks: {_argument(found)}"


def _of_powershell(text: str, error: JSONDecodeError) -> Diagnosis | None:
    found = _object_in(text.replace('`"', '"')) if '`"' in text else None
    if found is None:
        return None
    happened = "its quotes are escaped by backticks, as PowerShell has it, and nothing took them away"
    return happened, f"quote it once: {_argument(found)}"


def _spliced(text: str, error: JSONDecodeError) -> Diagnosis | None:
    found = _object_in(text.replace('"\'"', '"').replace("'\"'", '"'))
    if found is None:
        return None
    happened = "stray quotes stand in it: the signs that splice quotes in a shell, and none took them away"
    return happened, f"quote it once: {_argument(found)}"


_TRIALS: tuple[_Tell, ...] = (
    *(_dollar_quoted, _line_continued, _of_powershell),
    *(_doubled_brackets, _typographic, _encoded, _spliced, _quoted_too_often),
)
"""Tells that undo the damage on trial."""


def _by_trial(text: str, error: JSONDecodeError) -> Diagnosis | None:
    if len(text) > TRIAL_LIMIT:
        return None
    return next((found for tell in _TRIALS if (found := tell(text, error))), None)


_TELLS: tuple[_Tell, ...] = (
    _byte_order_mark,
    _no_value,
    _invisible,
    _quoted_nothing,
    _by_trial,
    _unexpanded,
    _quotes_lost,
    _python_notation,
    _comment,
    _ends_too_early,
    _comma_without_entry,
    _missing_value,
    _odd_number,
    _bare_entry,
    _bare_word,
    _wrong_mark,
    _more_behind,
    _control_character,
    _bad_escape,
    _missing_mark,
    _file_without_at,
    _no_brackets,
    _no_object,
)
"""The surest first."""
