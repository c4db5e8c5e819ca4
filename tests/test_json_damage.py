"""Broken JSON: what arrived, where, what happened to it by all appearance, and what to write. Nothing is repaired."""

from __future__ import annotations

import base64
import html
import json
import re
import shlex
import urllib.parse
from collections.abc import Callable
from json import JSONDecodeError
from pathlib import Path

import pytest
from asking import fault_of
from hypothesis import given
from hypothesis import strategies as st
from strategies import passwords

from mooncake_config.init_kwargs import read_init_kwargs
from mooncake_config.json_damage import TRIAL_LIMIT, arrived, diagnose, is_deeper_than

SHORT = '{"protocol": "tcp", "chunk_bytes": 1024}'
LONE = '{"protocol": "tcp"}'
ESCAPED = SHORT.replace('"', '\\"')

TWICE = "its quotes are escaped by backslashes that nothing took away: it was escaped twice"
THRICE = "its quotes are escaped by backslashes that nothing took away: it was escaped three times"
LOST = "its double quotes are gone: a shell, or the shell behind a job submission, took them away"
EARLY = "it ends too early: its closing bracket is missing, or it was cut at a blank because nothing quoted it"
SINGLE = "it has single quotes, as Python prints a dictionary, where JSON has double quotes"
UNEXPANDED = "was never expanded: single quotes or a file kept it from a shell"
COMMENT = "it holds a comment, and JSON has none"
COMMA = "there is a comma with nothing behind it"
BRACKETS = "its curly brackets are missing; bash takes them away where a text with a comma has no quotes around it"
YAML = "it looks like YAML, and its curly brackets and quotes are missing"
GAP = "a value is missing behind the colon; an unset shell variable often leaves such a gap"
PLAIN = "it is plain text, and the init kwargs are one JSON object"
LINE_BREAK = "a text holds a line break or another control character"

RETYPE = "type that part anew; copying brings it along."
KEPT_QUOTES = "and the quotes around it are part of the value"
DOLLAR = "is part of the value: only some shells know it, and none took it away"
QUOTE_WHOLE = f"quote the whole value so that it stays one word: '{LONE}'."
QUOTE_ONCE = f"quote it once: '{SHORT}'."
KEEP = f"keep them by single quotes around the value: '{LONE}'; or export MOONCAKE_… variables instead."
DUMPS = f"print it with json.dumps(…), which gives '{LONE}'."
EXPAND = "put the value itself there, or use double quotes in the shell so that it expands the variable."
DECODED = f"hand it over decoded: '{SHORT}'."
OBJECT = f"put single quotes around the whole object: '{LONE}'."
ANEW = f"type it anew: '{SHORT}'."
IN_QUOTES = "write a plain number, or put it in double quotes:"
ENTRY = 'each entry is "field": value, and a comma stands between entries.'
QUOTE_IT = "put it in double quotes."

TABLE: tuple[tuple[str, int, str, str], ...] = (
    # the text, the column where the parser stops, what happened, what to write
    ("{protocol:tcp}", 2, LOST, KEEP),
    ("{protocol: tcp, chunk_bytes: 2gb}", 2, LOST, KEEP),
    ("{ device_name : mlx5_0 }", 3, LOST, KEEP),
    ("{protocol:", 2, f"{LOST}; and it ends too early, as if cut at a blank", KEEP),
    ('{"protocol":', 13, EARLY, QUOTE_WHOLE),
    ('{"protocol": "tcp",', 20, EARLY, QUOTE_WHOLE),
    ('{"protocol": "tcp", "device_name": "mlx', 36, EARLY, QUOTE_WHOLE),
    ("{", 2, EARLY, QUOTE_WHOLE),
    ('{"protocol": "tcp"', 19, EARLY, QUOTE_WHOLE),
    ('{"protocol": "tcp}', 14, "a text has no closing double quote", "put the missing double quote there."),
    ('{"protocol: "tcp"}', 14, "a key has no closing double quote", "put the missing double quote before the colon."),
    (ESCAPED, 2, TWICE, QUOTE_ONCE),
    (shlex.quote(SHORT).replace("{", "\\{").replace('"', '\\"').replace("}", "\\}").strip("'"), 1, TWICE, QUOTE_ONCE),
    (ESCAPED.replace('\\"', '\\\\\\"'), 2, THRICE, QUOTE_ONCE),
    ("{\\'protocol\\': 1}", 2, TWICE, f"quote it once, without backslashes: '{LONE}'."),
    (f"'{SHORT}'", 1, "an extra pair of quotes (') is part of the value", QUOTE_ONCE),
    (f'"{SHORT}"', 4, 'an extra pair of quotes (") is part of the value', QUOTE_ONCE),
    (f"`{SHORT}`", 1, "an extra pair of quotes (`) is part of the value", QUOTE_ONCE),
    (f"{SHORT}'", 41, "an extra pair of quotes (') is part of the value", QUOTE_ONCE),
    (f"'{ESCAPED}'", 1, f"an extra pair of quotes (') is part of the value and {TWICE}", QUOTE_ONCE),
    (
        '\'{"protocol":',
        1,
        "an extra pair of quotes (') is part of the value: it was quoted once too often",
        f"quote it once, without backslashes: '{LONE}'.",
    ),
    (
        SHORT.replace('"', '""'),
        4,
        "each of its double quotes stands twice, as CSV files and the command prompt of Windows have it",
        QUOTE_ONCE,
    ),
    ("{'protocol': 'tcp', 'device_name': None}", 2, SINGLE, DUMPS),
    ("{u'protocol': u'tcp'}", 2, SINGLE, DUMPS),
    ("{\"protocol\": 'tcp'}", 14, SINGLE, DUMPS),
    ('dict(protocol="tcp")', 1, "it is in Python's notation", DUMPS),
    (
        '{"device_name": None}',
        17,
        "None is Python; JSON has null",
        "write null, or print the mapping with json.dumps(…).",
    ),
    (
        '{"protocol": True}',
        14,
        "True is Python; JSON has true",
        "write true, or print the mapping with json.dumps(…).",
    ),
    (f"\ufeff{SHORT}", 1, "it begins with a byte order mark (BOM, U+FEFF)", "save the file as UTF-8 without BOM."),
    (
        SHORT.replace('"', "“"),
        2,
        "it holds the typographic quote “, as word processors, chats and input methods write it",
        ANEW,
    ),
    (
        '{“protocol”: “tcp"',
        2,
        "it holds the typographic quote “, as word processors, chats and input methods write it",
        'type the quotes anew as plain ".',
    ),
    (
        SHORT.replace(":", "："),
        12,
        "it holds the full-width character ：, as word processors, chats and input methods write it",
        ANEW,
    ),
    (
        '{"protocol":\u00a0"tcp"}',
        13,
        "an invisible character stands there (U+00A0)",
        "type that part anew; copying brings it along.",
    ),
    ('{"protocol": "tcp" // fast\n}', 20, COMMENT, "take the comment out."),
    ('{/* all */ "protocol": "tcp"}', 2, COMMENT, "take the comment out."),
    (f"# for the head\n{SHORT}", 1, COMMENT, "take the comment out."),
    ("protocol: tcp\nlocal_buffer_size: 2gb\n", 1, YAML, f"write JSON: '{LONE}'."),
    ("protocol: tcp", 1, YAML, f"write JSON: '{LONE}'."),
    ("protocol:tcp", 1, BRACKETS, OBJECT),
    ('"protocol": "tcp"', 11, BRACKETS, OBJECT),
    ("protocol=tcp", 1, "it looks like NAME=VALUE", f"write a JSON object: '{LONE}'."),
    ("MOONCAKE_PROTOCOL=tcp", 1, "it looks like NAME=VALUE", f"write a JSON object: '{LONE}'."),
    ("store.json", 1, "it looks like the name of a file", "put an @ before it: @store.json."),
    (
        "/etc/mooncake/store.yaml",
        1,
        "it looks like the name of a file",
        "put an @ before it: @/etc/mooncake/store.yaml.",
    ),
    ("file:///a/store.json", 1, "it looks like the name of a file", "put an @ before it: @/a/store.json."),
    (" @store.json", 2, "a blank stands before the @", "begin with the @: @store.json."),
    ("$KWARGS", 1, f"$KWARGS {UNEXPANDED}", EXPAND),
    ("${KWARGS}", 1, f"${{KWARGS}} {UNEXPANDED}", EXPAND),
    ("$(cat store.json)", 1, f"$(cat store.json) {UNEXPANDED}", EXPAND),
    ("`cat store.json`", 1, f"`cat store.json` {UNEXPANDED}", EXPAND),
    ('{"chunk_bytes": $CHUNK}', 17, f"$CHUNK {UNEXPANDED}", EXPAND),
    (
        "{{ .Values.store }}",
        2,
        "{{ .Values.store }} was never expanded: no template engine saw it",
        "put the value itself there.",
    ),
    ("<init-kwargs>", 1, "<init-kwargs> is a placeholder of a guide", "put the value itself there."),
    (
        "{{" + SHORT[1:-1] + "}}",
        2,
        "its curly brackets are doubled, as format strings and templates have them",
        f"write each once: '{SHORT}'.",
    ),
    ('{"chunk_bytes": }', 17, GAP, "write the value, in double quotes if it is text, or take the key out."),
    (
        '{"chunk_bytes":,"protocol":"tcp"}',
        16,
        GAP,
        "write the value, in double quotes if it is text, or take the key out.",
    ),
    (SHORT + SHORT, 41, "a second object stands behind the first", "put all fields into one object."),
    (SHORT + "}", 41, "it has a closing bracket too many", "take the last bracket away."),
    (SHORT + ";", 41, "the object ends there and more follows (;)", f"write one object and nothing else: '{LONE}'."),
    (SHORT.replace(",", ";"), 19, "; stands where JSON has ,", f"write , there: {ENTRY}"),
    ('{"protocol":"tcp"}\u00a0', 19, "an invisible character stands there (U+00A0)", RETYPE),
    ('{"protocol":"tcp"}\u2028', 19, "an invisible character stands there (U+2028)", RETYPE),
    ('\u00a0{"protocol":"tcp"}', 1, "an invisible character stands there (U+00A0)", RETYPE),
    (
        '{"protocol":"tcp, "device_name":"x"}',
        20,
        "the text tcp has no closing double quote",
        "put the missing double quote before the comma.",
    ),
    (
        '{"protocol": "tcp", \\\n"chunk_bytes": 1024}',
        21,
        "a backslash at the end of a line is part of it: inside single quotes it continues no line",
        f"take those backslashes away; JSON may have line breaks: '{SHORT}'.",
    ),
    (
        '{"protocol":{{ .Values.p }}}',
        14,
        "{{ .Values.p }} was never expanded: no template engine saw it",
        "put the value itself there.",
    ),
    ("'${KW}'", 1, f"${{KW}} was never expanded, {KEPT_QUOTES}", "put the value itself there."),
    (
        "'{{ kw }}'",
        1,
        f"{{{{ kw }}}} was never rendered: no template engine saw it, {KEPT_QUOTES}",
        "put the value itself there.",
    ),
    (
        "''",
        1,
        "it is empty, and a pair of quotes around nothing is part of the value: quoted once too often",
        f"give an object, such as '{LONE}', or leave the option out.",
    ),
    (
        SHORT.replace('"', '`"'),
        2,
        "its quotes are escaped by backticks, as PowerShell has it, and nothing took them away",
        QUOTE_ONCE,
    ),
    (
        '{protocol="tcp"}',
        2,
        "= stands where JSON has :, behind a key without double quotes",
        'write "protocol": instead.',
    ),
    (
        "{protocol=tcp}",
        2,
        "= stands where JSON has :, behind a key without double quotes",
        'write "protocol": instead.',
    ),
    (
        """{"protocol":"'"tcp"'"}""",
        16,
        "stray quotes stand in it: the signs that splice quotes in a shell, and none took them away",
        f"quote it once: '{LONE}'.",
    ),
    (f"$'{SHORT}'", 1, f"$'…' {DOLLAR}", QUOTE_ONCE),
    (f"$'{ESCAPED}'", 1, f"$'…' {DOLLAR}", QUOTE_ONCE),
    ("$'{protocol: tcp}'", 1, f"$'…' {DOLLAR}", f"quote it once: '{LONE}'."),
    ('{"protocol"="tcp"}', 12, "= stands where JSON has :", f"write : there: {ENTRY}"),
    ('{"protocol" => "tcp"}', 13, "=> stands where JSON has :", f"write : there: {ENTRY}"),
    ('{"protocol" "tcp"}', 13, "a colon is missing", f"put a colon there: {ENTRY}"),
    ('{"protocol": "tcp" "chunk_bytes": 1}', 20, "a comma is missing", f"put a comma there: {ENTRY}"),
    ('{"protocol": "tcp",, "chunk_bytes": 1}', 20, "there is a comma too many", "take one of the commas away."),
    (
        '{"protocol": "tcp"]',
        19,
        "] closes a bracket of the other kind",
        "close what was opened: {} for objects, [] for lists.",
    ),
    (
        '["protocol": "tcp"]',
        12,
        "it begins with [ as a list, and holds entries of an object",
        f"write curly brackets: '{LONE}'.",
    ),
    ('{"protocol": "t\ncp"}', 16, LINE_BREAK, "keep every text on one line, without tabs."),
    ('{"protocol": "t\tcp"}', 16, LINE_BREAK, "keep every text on one line, without tabs."),
    (
        '{"device_name": "C:\\x"}',
        20,
        "a backslash in a text is followed by no known escape",
        r'double the backslash ("\\") or take it away.',
    ),
    ('{protocol: "tcp"}', 2, "the key protocol stands without double quotes", QUOTE_IT),
    ('{"protocol": tcp}', 14, "the text tcp stands without double quotes", QUOTE_IT),
    ('{"global_segment_size": 2gb}', 26, "2gb is not a JSON number", f'{IN_QUOTES} "2gb".'),
    ('{"chunk_bytes": 0x400}', 18, "0x400 is not a JSON number", f'{IN_QUOTES} "0x400".'),
    ('{"chunk_bytes": 007}', 18, "007 is not a JSON number", f'{IN_QUOTES} "007".'),
    ('{"chunk_bytes": +1}', 17, "+1 is not a JSON number", f'{IN_QUOTES} "+1".'),
    ('{"local_hostname": 10.0.0.7}', 24, "10.0.0.7 is not a JSON number", f'{IN_QUOTES} "10.0.0.7".'),
    (html.escape(SHORT), 2, "it is HTML-escaped (&quot; for a quote)", DECODED),
    (urllib.parse.quote(SHORT), 1, "it is percent-encoded, as in a URL (%22 for a quote)", DECODED),
    (urllib.parse.quote_plus(SHORT), 1, "it is percent-encoded, as in a URL (%22 for a quote)", DECODED),
    (SHORT.replace('"', "\\u0022"), 2, r"it is escaped as in a JSON text (\u0022 for a quote)", DECODED),
    (base64.b64encode(SHORT.encode()).decode(), 1, "it is base64", DECODED),
    (
        "None",
        1,
        "None is what a program makes of a value that is not there",
        f"give an object, such as '{LONE}', or leave the option out.",
    ),
    ("eyJhb", 1, PLAIN, f"write an object, such as '{LONE}'."),
    ("tcp", 1, PLAIN, f"write an object, such as '{LONE}'."),
    ("10.0.0.5:50051", 5, PLAIN, f"write an object, such as '{LONE}'."),
    (
        "--mooncake-replica-num",
        1,
        "it looks like the next option, and the init kwargs are one JSON object",
        f"write an object, such as '{LONE}'.",
    ),
)


@pytest.mark.parametrize("row", TABLE, ids=[f"{place}-{row[0][:24]!a}" for place, row in enumerate(TABLE)])
def test_damaged_texts(row: tuple[str, int, str, str]) -> None:
    """The message shows what arrived, the column and what happened; the fix is what to write; a file is offered."""
    text, column, happened, write = row
    offence, message, fix = fault_of(text)
    assert offence == "broken-json"
    place = rf"not JSON at column {column}( of line [0-9]+)? \((?P<arrived>.+)\): "
    assert re.match(place, message, re.DOTALL), message
    assert message.endswith(f"): {happened}.")
    assert fix == f"{write} Or write the JSON to a file and pass @FILE, which no shell touches."
    assert (message + fix).isprintable()
    assert not read_init_kwargs(text).claims


@pytest.mark.parametrize("row", TABLE, ids=[f"{place}-{row[0][:24]!a}" for place, row in enumerate(TABLE)])
def test_file_saw_no_shell(row: tuple[str, int, str, str], tmp_path: Path) -> None:
    """The same text in a file is not said to have come through a shell, and no quoting for one is advised."""
    path = tmp_path / "store.json"
    path.write_bytes(row[0].encode())
    _, message, fix = fault_of(f"@{path}")
    assert not re.search(r"from a shell|behind a job|cut at a blank|\bbash\b|in the shell|stands before the @", message)
    assert not re.search(r"shell|'\{|single quotes|one word|@FILE", fix.replace(f"such as '{LONE}'", ""))
    assert (message + fix).isprintable()


@pytest.mark.parametrize(
    ("text", "happened", "fix"),
    [
        ('{"protocol": "tcp"', "it ends too early: its closing bracket is missing", "complete it; the form is that of"),
        ("{protocol: tcp}", "its keys and texts have no double quotes", "put double quotes around each key and text"),
        ("@store.json", "it is the name of a file behind an @", "write the object itself"),
        (f"'{LONE}'", "an extra pair of quotes (') is part of the value", f"write it without them: {LONE}."),
        ("$KW", "$KW was never expanded: no shell reads what stands here", "put the value itself there."),
    ],
)
def test_damaged_files(text: str, happened: str, fix: str, tmp_path: Path) -> None:
    """What happened to a file is told in words for who edits it."""
    path = tmp_path / "store.json"
    path.write_text(text)
    _, said, way = fault_of(f"@{path}")
    assert f": {happened}" in said
    assert way.startswith(fix)


def test_lines_are_counted() -> None:
    """In a text of several lines the line is named with the column."""
    _, message, _ = fault_of('{\n  "protocol": "tcp"\n  "chunk_bytes": 1\n}')
    assert message.startswith("not JSON at column 3 of line 3 (")


@pytest.mark.parametrize("text", ['{"protocol": "tcp",}', '{"protocol": "tcp", }', '{"device_name": ["a",]}'])
def test_trailing_comma(text: str) -> None:
    """A comma before a closing bracket is named; Python 3.13 stops at the comma, older ones at the bracket."""
    assert COMMA in fault_of(text)[1]


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_constants_that_json_lacks(constant: str) -> None:
    """NaN and Infinity, which Python's parser takes, are refused at their column, and not where a text holds them."""
    offence, message, fix = fault_of(f'{{"device_name": "NaN", "chunk_bytes": {constant}}}')
    assert offence == "broken-json"
    assert message.startswith("not JSON at column 39 (")
    assert message.endswith(f": {constant} is not a JSON number.")
    assert "JSON has no NaN" in fix


@pytest.mark.parametrize(("times", "often"), [(1, "twice"), (2, "three times"), (3, "4 times")])
def test_encoded_more_than_once(times: int, often: str) -> None:
    """JSON text that holds JSON text is told by how often it was encoded."""
    text = SHORT
    for _ in range(times):
        text = json.dumps(text)
    offence, message, _ = fault_of(text)
    assert offence == "not-an-object"
    assert message.endswith(f"it was encoded {often}.")


def test_encoded_more_often_than_is_undone() -> None:
    """What is encoded too often to be taken apart, with quotes around that, is refused like any other text."""
    text = SHORT
    for _ in range(5):
        text = json.dumps(text)
    offence, message, _ = fault_of(f"'{text}'")
    assert offence == "broken-json"
    assert message.isprintable()


@pytest.mark.parametrize("times", [1, 2, 3, 4, 5])
def test_password_below_many_escapes(times: int) -> None:
    """A password is hidden below several layers of escapes."""
    text = json.dumps({"metadata_server": "http://u:hunter2@h"}).replace("/", "\\/").replace("@", "\\u0040")
    for _ in range(times):
        text = json.dumps(text)[1:-1]
    assert "hunter2" not in fault_of(text)[1]


def test_what_nobody_knows() -> None:
    """Where no mechanism fits, the parser's own words and the character that it stopped at are given."""
    _, message, fix = fault_of('{"protocol": ?}')
    assert message == 'not JSON at column 14 ({"protocol": ?}): expecting value, found ?.'
    assert fix.startswith("write one JSON object")


def test_long_argument_is_not_written_out() -> None:
    """The fix writes a short object out, and for a long one or one with a password gives an example."""
    long = json.dumps({"device_name": "mlx5_0," * 40})
    assert fault_of(f"'{long}'")[2].startswith(f"quote it once: '{LONE}'.")
    secret = json.dumps({"metadata_server": "http://u:hunter2@h"})
    assert fault_of(f"'{secret}'")[2].startswith(f"quote it once: '{LONE}'.")
    assert fault_of("'{\"chunk_bytes\": NaN}'")[2].startswith(f"quote it once: '{LONE}'.")


def test_long_text_is_judged_by_place() -> None:
    """A text beyond the limit of trials is judged by where the parser stopped, and shortened in the middle."""
    text = "'" + json.dumps({"device_name": "x" * TRIAL_LIMIT}) + "'"
    _, message, _ = fault_of(text)
    assert f"…({len(text):,} characters)…" in message


def test_message_for_another_place() -> None:
    """A diagnosis offers no file by itself: what is broken need not be the init kwargs."""
    with pytest.raises(JSONDecodeError) as refusal:
        json.loads("{a:1}")
    message, fix = diagnose("{a:1}", refusal.value)
    assert message == f"not JSON at column 2 ({{a:1}}): {LOST}."
    assert "@FILE" not in fix


# Laws: each mechanism, applied to any init kwargs, is named.

FIELDS: dict[str, st.SearchStrategy[object]] = {
    "protocol": st.sampled_from(["tcp", "rdma"]),
    "master_server_address": st.sampled_from(["10.0.0.5:50051", "head:50051", "etcd://a:2379;b:2379"]),
    "local_hostname": st.sampled_from(["10.0.0.7", "node-7", "fd00::7"]),
    "metadata_server": st.sampled_from(["P2PHANDSHAKE", "http://10.0.0.5:8080/metadata"]),
    "device_name": st.sampled_from(["mlx5_0", "mlx5_0, mlx5_1", ""]),
    "global_segment_size": st.one_of(st.integers(0, 2**40), st.sampled_from(["8gb", "2 GiB"])),
    "chunk_bytes": st.one_of(st.integers(1, 2**30), st.just("64mb")),
}


def init_kwargs() -> st.SearchStrategy[dict[str, object]]:
    """Init kwargs as people write them, one field at least."""
    all_fields = st.fixed_dictionaries({}, optional=FIELDS)
    return all_fields.filter(bool)


def _cut_at(text: str, blank: int) -> str:
    places = [place for place, letter in enumerate(text) if letter == " "]
    return text[: places[blank % len(places)]]


def _shell_escaped(text: str) -> str:
    return re.sub(r"([^A-Za-z0-9_./:-])", r"\\\1", text)


MECHANISMS: dict[str, tuple[Callable[[str], str], str]] = {
    "all quotes stripped": (lambda text: text.replace('"', ""), "double quotes are gone"),
    "repr of the dictionary": (lambda text: repr(json.loads(text)), "Python"),
    "escaped by a shell": (_shell_escaped, "escaped twice"),
    "escaped by a shell twice": (lambda text: _shell_escaped(_shell_escaped(text)), "escaped three times"),
    "quotes escaped": (lambda text: text.replace('"', '\\"'), "escaped twice"),
    "trailing comma": (lambda text: text[:-1] + ",}", "comma with nothing behind it"),
    "single quotes around": (lambda text: f"'{text}'", "extra pair of quotes"),
    "double quotes around": (lambda text: f'"{text}"', "extra pair of quotes"),
    "backticks around": (lambda text: f"`{text}`", "extra pair of quotes"),
    "byte order mark": (lambda text: f"\ufeff{text}", "byte order mark"),
    "typographic quotes": (lambda text: text.replace('"', "”"), "typographic quote"),
    "closing bracket missing": (lambda text: text[:-1], "ends too early"),
    "closing bracket doubled": (lambda text: text + "}", "closing bracket too many"),
    "two objects": (lambda text: text + "\n" + text, "second object"),
    "braces doubled": (lambda text: "{{" + text[1:-1] + "}}", "doubled"),
    "percent-encoded": (urllib.parse.quote, "percent-encoded"),
    "HTML-escaped": (html.escape, "HTML-escaped"),
    "quotes doubled": (lambda text: text.replace('"', '""'), "stands twice"),
    "brackets stripped": (lambda text: text[1:-1], "curly brackets are missing"),
    "comment in front": (lambda text: "{ // ours\n" + text[1:], "comment"),
    "encoded twice": (json.dumps, "encoded twice"),
    "in a list": (lambda text: f"[{text}]", "is a list"),
}


@given(init_kwargs(), st.sampled_from(sorted(MECHANISMS)))
def test_mechanism_is_named(fields: dict[str, object], name: str) -> None:
    """Whatever the init kwargs say, the mechanism that damaged them is named, and nothing of them is taken."""
    damage, words = MECHANISMS[name]
    reading = read_init_kwargs(damage(json.dumps(fields)))
    (fault,) = reading.faults
    assert words in fault.message
    assert not reading.claims


@given(init_kwargs(), st.integers(0, 30))
def test_cut_at_any_blank(fields: dict[str, object], blank: int) -> None:
    """A text that was cut at any of its blanks is said to end too early."""
    _, message, _ = fault_of(_cut_at(json.dumps(fields), blank))
    assert "ends too early" in message


@given(st.text(max_size=40), st.sampled_from(sorted(MECHANISMS)))
def test_any_text_has_an_answer(text: str, name: str) -> None:
    """Any text, damaged by any mechanism, is read or refused in printable sentences."""
    damage, _ = MECHANISMS[name]
    for fault in read_init_kwargs(damage(json.dumps({"protocol": text}))).faults:
        assert (fault.message + fault.fix).isprintable()
        assert fault.message.endswith(".")
        assert fault.fix.endswith(".")


# Passwords

WRITTEN: dict[str, Callable[[str], str]] = {
    "as it is": lambda text: text,
    "JSON, cut": lambda text: json.dumps({"metadata_server": text})[:-1],
    "JSON, no quotes": lambda text: json.dumps({"metadata_server": text}).replace('"', ""),
    "JSON, repr": lambda text: repr({"metadata_server": text}),
    "JSON, slashes escaped": lambda text: json.dumps({"metadata_server": text})[:-1].replace("/", "\\/"),
    "JSON, at escaped": lambda text: json.dumps({"metadata_server": text})[:-1].replace("@", "\\u0040"),
    "JSON, all escaped": lambda text: json.dumps({"a": text})[:-1].replace("/", "\\/").replace("@", "\\u0040"),
    "JSON, percent": lambda text: urllib.parse.quote(json.dumps({"metadata_server": text})),
    "JSON, percent, all": lambda text: urllib.parse.quote(json.dumps({"metadata_server": text}), safe=""),
    "JSON, HTML": lambda text: html.escape(json.dumps({"metadata_server": text})),
    "JSON, base64": lambda text: base64.b64encode(json.dumps({"metadata_server": text}).encode()).decode(),
    "JSON, twice": lambda text: json.dumps(json.dumps({"metadata_server": text})),
    "JSON, escaped": lambda text: json.dumps(json.dumps({"metadata_server": text}))[1:-1],
    "JSON, quoted": lambda text: "'" + json.dumps({"metadata_server": text}) + "'",
    "JSON, bare": lambda text: '{"metadata_server": ' + text + "}",
    "JSON, more behind": lambda text: '{"protocol": "tcp"} ' + text,
    "YAML": lambda text: f"metadata_server: {text}",
    "assignment": lambda text: f"MOONCAKE_TE_META_DATA_SERVER={text}",
}


@pytest.mark.parametrize("form", WRITTEN)
def test_password_is_never_shown(form: str) -> None:
    """The password of a URL is hidden however the JSON around it is broken or encoded."""
    text = WRITTEN[form]("http://admin:hunter2Qx@10.0.0.5:8080/metadata")
    for fault in read_init_kwargs(text).faults:
        assert "hunter2Qx" not in fault.message + fault.fix
        assert base64.b64encode(b"hunter2Qx").decode()[:8] not in fault.message + fault.fix


@given(passwords(), st.sampled_from(sorted(WRITTEN)))
def test_no_part_of_any_password_is_shown(password: str, form: str) -> None:
    """Also a password with blanks, quotes and signs that mean something in URLs stays hidden."""
    if form in ("JSON, twice", "JSON, escaped") and "\\" in password:
        return
    text = WRITTEN[form](f"http://admin:{password}@10.0.0.5:8080/metadata")
    for fault in read_init_kwargs(text).faults:
        assert "Zq" not in fault.message + fault.fix


@pytest.mark.parametrize("kept", range(7, 16))
def test_password_that_was_cut_is_not_shown(kept: int) -> None:
    """Where the text was cut inside a password, before the @ that tells it, what is left of it is hidden."""
    url = "http://admin:hunter2Q"
    shown = arrived('{"metadata_server": "' + url[: len("http://admin:") + kept])
    assert "hunter" not in shown
    assert "***" in shown


def test_port_is_no_password() -> None:
    """A port at the end of a cut text is shown."""
    assert arrived('{"metadata_server": "http://10.0.0.5:8080').endswith("10.0.0.5:8080")


@pytest.mark.parametrize(
    ("text", "deep"),
    [
        ("[" * 33 + "]" * 33, True),
        ("[" * 32 + "]" * 32, False),
        ("[]" * 100, False),
        (json.dumps("[" * 100), False),
        ('{"a": "\\"' + "[" * 100 + '"}', False),
        ('{"a":' * 40, True),
        ('"' + "[" * 100, False),
    ],
)
def test_depth(text: str, deep: bool) -> None:
    """Depth is counted by open brackets outside of texts."""
    assert is_deeper_than(text, 32) is deep
