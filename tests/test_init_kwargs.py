"""Reading the init kwargs: JSON text, a file, standard input or a mapping becomes claims and faults."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

import pytest
from asking import fault_of
from hypothesis import given
from hypothesis import strategies as st
from machines import many_files_open

from mooncake_config.findings import Fault
from mooncake_config.init_kwargs import (
    BYTES_LIMIT,
    FAULTS_LIMIT,
    LEVELS_LIMIT,
    read_descriptor,
    read_init_kwargs,
    read_stream,
)
from mooncake_config.provenance import Origin, Source
from mooncake_config.settings import FIELDS
from mooncake_config.sources import FieldSpec

FLAG = Origin(Source.CLI, "--mooncake-store-init-kwargs")
SECOND = 3.0
"""What any answer may take at the most, traced by coverage and on a slow machine; without, it is under one."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Holds a block to seconds of this process's own, whatever else the machine is doing."""
    began = time.process_time()
    yield
    assert time.process_time() - began < seconds


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with nothing in it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def unreadable(text: str) -> tuple[str, str]:
    """Message and fix for what cannot be read."""
    offence, message, fix = fault_of(text)
    assert offence == "unreadable-file"
    assert message.endswith(".")
    assert fix.endswith(".")
    return message, fix


# What is read


def test_nothing() -> None:
    """No init kwargs make no claim and no fault."""
    reading = read_init_kwargs(None)
    assert (reading.claims, reading.faults) == ({}, ())


def test_text() -> None:
    """JSON text makes a claim for each field, raw as it was written, from the flag."""
    reading = read_init_kwargs('{"protocol": "TCP", "chunk_bytes": 1024, "global_segment_size": null}')
    assert {name: claim.raw for name, claim in reading.claims.items()} == {
        "protocol": "TCP",
        "chunk_bytes": 1024,
        "global_segment_size": None,
    }
    assert {claim.origin for claim in reading.claims.values()} == {FLAG}
    assert not reading.faults


def test_mapping() -> None:
    """A mapping's claims say that they come from the program, not from the command line's text."""
    reading = read_init_kwargs({"protocol": "tcp", "chunk_bytes": 1024})
    assert reading.claims["protocol"].origin == Origin(Source.CLI, "init kwargs")
    assert reading.claims["chunk_bytes"].raw == 1024


def test_empty_object() -> None:
    """An empty object claims nothing."""
    assert read_init_kwargs("{}").claims == {}
    assert read_init_kwargs("{}").faults == ()


@pytest.mark.parametrize("given_as", [5, b"{}", ["{}"], 1.5])
def test_other_types(given_as: object) -> None:
    """Anything but text, a mapping or None is a wrong use of the library."""
    with pytest.raises(TypeError, match="init kwargs must be"):
        read_init_kwargs(given_as)  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize("text", ["", "  ", "\n"])
def test_blank_text(text: str) -> None:
    """A blank flag counts as unset, and that is reported: an unset variable hides behind it."""
    offence, message, _ = fault_of(text)
    assert offence == "empty-claim"
    assert "counts as unset" in message
    assert not read_init_kwargs(text).claims


def test_schema_key() -> None:
    """The key of an editor is allowed, whatever it holds, in text and in a mapping."""
    for reading in (read_init_kwargs('{"$schema": {"x": 1}, "protocol": "tcp"}'), read_init_kwargs({"$schema": "x"})):
        assert not reading.faults
        assert "$schema" not in reading.claims


def test_fractions_are_exact() -> None:
    """A JSON fraction is kept as it was written, not as the nearest float."""
    assert read_init_kwargs('{"chunk_bytes": 0.1}').claims["chunk_bytes"].raw == Decimal("0.1")


def test_numbers_without_bounds() -> None:
    """A number of any length or exponent is read: what it cannot be is said by the field's own parser."""
    with within(SECOND):
        assert read_init_kwargs('{"chunk_bytes": 1' + "0" * 99_999 + "}").claims["chunk_bytes"].raw == Decimal(
            "1e99999"
        )
    for text in ("1e999999999999999999999", "-1e999999999999999999999", "1e-999999999999999999999"):
        assert isinstance(read_init_kwargs(f'{{"chunk_bytes": {text}}}').claims["chunk_bytes"].raw, Decimal)


# What is refused


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "[] is a list"),
        ('["protocol", "tcp"]', '["protocol", "tcp"] is a list'),
        ("5", "5 is a number"),
        ("2.5", "2.5 is a number"),
        ("true", "true is a boolean"),
        ("null", "null is no value"),
        ('"tcp"', '"tcp" is text'),
        ('"{not json"', '"{not json" is text'),
        ('"{\\"a\\": NaN}"', '"{"a": NaN}" is text'),
        ('"http://u:hunter2@h"', '"http://u:***@h" is text'),
    ],
)
def test_no_object(text: str, words: str) -> None:
    """JSON that is no object is refused with what it is instead."""
    offence, message, fix = fault_of(text)
    assert offence == "not-an-object"
    assert message == f"{words}, and the init kwargs are one JSON object."
    assert fix == """write an object, such as '{"protocol": "tcp"}'."""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('""', "it is empty"),
        ('" "', "it is empty"),
        ('"${KW}"', "${KW} was never expanded"),
        ('"$(cat x)"', "$(cat x) was never expanded"),
        ('"{{ kw }}"', "{{ kw }} was never rendered"),
    ],
)
def test_quotes_around_nothing(text: str, words: str) -> None:
    """Quotes that were kept around nothing, or around a variable, are told as that."""
    offence, message, _ = fault_of(text)
    assert offence == "not-an-object"
    assert message.startswith(words)


def test_object_in_a_list() -> None:
    """An object alone in a list needs only its brackets taken away."""
    assert fault_of('[{"protocol": "tcp"}]')[2] == "take the square brackets away, and leave the object in them."


@pytest.mark.parametrize(
    ("key", "field"),
    [
        ("protocl", "protocol"),
        ("Protocol", "protocol"),
        ("device_name ", "device_name"),
        ("metadata_sever", "metadata_server"),
        ("localHostname", "local_hostname"),
        ("local-hostname", "local_hostname"),
        ("global_segmentsize", "global_segment_size"),
        ("chunk_size_bytes", "chunk_bytes"),
        ("mooncake_protocol", "protocol"),
        ("mooncake_master_server_adress", "master_server_address"),
    ],
)
def test_unknown_key_names_the_nearest(key: str, field: str) -> None:
    """An unknown key is refused with the field that was probably meant, and is about that field."""
    (fault,) = read_init_kwargs(json.dumps({key: "x"})).faults
    assert fault.offence == "unknown-key"
    assert fault.fields == (field,)
    assert fault.message.startswith(f"{key} is not a field")
    assert fault.fix == f"write {field} instead."


@pytest.mark.parametrize(
    ("key", "field"),
    [(spec.wiring.engine, spec.name) for spec in FIELDS if spec.wiring.engine not in (None, spec.name)],
)
def test_spelling_of_the_engine(key: str, field: str) -> None:
    """A key as Mooncake's own setup spells it is recognised as that."""
    (fault,) = read_init_kwargs(json.dumps({key: "x"})).faults
    assert "Mooncake's own spelling" in fault.message
    assert fault.fix == f"write {field} instead."


@pytest.mark.parametrize("spec", [spec for spec in FIELDS if spec.wiring.variable], ids=lambda spec: spec.name)
def test_variable_for_a_key(spec: FieldSpec) -> None:
    """A key that is the name of a variable is recognised as that."""
    (fault,) = read_init_kwargs({str(spec.wiring.variable): "x"}).faults
    assert fault.message == f"{spec.wiring.variable} is not a field of the init kwargs. That is the variable's name."
    assert fault.fix == f"write {spec.name} instead."


@pytest.mark.parametrize("key", ["mooncake_prefer_local_alloc", "mooncake_tenant", "MOONCAKE_X", "mooncake"])
def test_prefix_is_no_likeness(key: str) -> None:
    """A key that shares no more than Mooncake's name with a field is like none."""
    (fault,) = read_init_kwargs({key: "x"}).faults
    assert fault.fields == ()
    assert fault.fix.startswith("take it out; the fields are")


@pytest.mark.parametrize(
    ("key", "flag"),
    [
        ("replica_num", "--mooncake-replica-num"),
        ("mooncake-replica-num", "--mooncake-replica-num"),
        ("object_store_backend", "--object-store-backend"),
        ("Role", "--role"),
        ("num_nodes", "--num-nodes"),
    ],
)
def test_key_of_another_flag(key: str, flag: str) -> None:
    """A key that belongs to another flag is refused with that flag."""
    (fault,) = read_init_kwargs(json.dumps({key: 2})).faults
    assert flag in fault.fix
    assert fault.fields == ()


def test_key_of_nothing() -> None:
    """A key that resembles no field is refused with the list of fields."""
    for key in ("zzz", "", "\x1b[2J"):
        (fault,) = read_init_kwargs(json.dumps({key: 1})).faults
        assert all(spec.name in fault.fix for spec in FIELDS)
        assert fault.message.isprintable()


@pytest.mark.parametrize("key", ["store", "mooncake_store_init_kwargs", "env_vars"])
def test_object_too_deep(key: str) -> None:
    """Fields that stand one level too deep are told to come up."""
    (fault,) = read_init_kwargs({key: {"protocol": "tcp"}}).faults
    assert "one level too deep" in fault.message
    assert fault.fix == f"take {key} away and leave the object in it."


def test_secret_in_a_key() -> None:
    """A password in a key is not shown."""
    (fault,) = read_init_kwargs('{"http://u:hunter2@h": 1}').faults
    assert "hunter2" not in str(fault)


def test_keys_of_other_types() -> None:
    """A mapping's key that is no text is an unknown key."""
    for key in (1, None, (1,), 10**5000, (10**5000,)):
        (fault,) = read_init_kwargs({key: "x"}).faults  # type: ignore[dict-item]  # wrong on purpose
        assert fault.offence == "unknown-key"
        assert fault.message.isprintable()


def test_doubled_key() -> None:
    """A key that stands twice is refused, whatever it says, and is about its field."""
    reading = read_init_kwargs('{"protocol": "tcp", "protocol": "tcp", "odd": 1, "odd": 2}')
    assert [(fault.offence, fault.fields) for fault in reading.faults] == [
        ("doubled-key", ()),
        ("doubled-key", ("protocol",)),
        ("unknown-key", ()),
    ]
    assert reading.claims["protocol"].raw == "tcp"


@pytest.mark.parametrize("pair", ['"k{n}": {n}', '"k{n}": {n}, "k{n}": 0'])
def test_many_keys(pair: str) -> None:
    """Ten thousand keys that are no fields, or twice as many doubled ones, are answered within a second."""
    text = "{" + ", ".join(pair.format(n=n) for n in range(10_000)) + "}"
    with within(SECOND):
        faults = read_init_kwargs(text).faults
    assert [fault for fault in faults if fault.offence == "unknown-key"][-1].message.startswith("9,980 more keys")
    assert len(faults) <= 2 * FAULTS_LIMIT + 1


def test_nesting() -> None:
    """Nesting beyond the limit is refused before it exhausts anybody, well-formed or not, in lists and objects."""
    deep = 10_000
    for text in (
        '{"protocol":' + "[" * deep + "]" * deep + "}",
        '{"protocol":' * deep + "1" + "}" * deep,
        "[" * deep,
        "{" * deep,
        '{"protocol":' + '[{"a":' * deep,
    ):
        with within(SECOND):
            offence, message, fix = fault_of(text)
        assert (offence, message) == ("broken-json", "the JSON is nested too deeply to be read here.")
        assert "@FILE" in fix


def test_nesting_in_text() -> None:
    """JSON text in JSON text is taken apart no deeper either."""
    text = json.dumps('{"a":' + "[" * 10_000 + "]" * 10_000 + "}")
    offence, message, _ = fault_of(text)
    assert offence == "not-an-object"
    assert "is text" in message


def test_nesting_that_is_read_crosses_processes() -> None:
    """What is nested as deep as is read can be pickled and printed."""
    depth = LEVELS_LIMIT - 1
    claim = read_init_kwargs('{"protocol":' + "[" * depth + "]" * depth + "}").claims["protocol"]
    assert pickle.loads(pickle.dumps(claim)) == claim
    assert "…" in repr(claim)


def test_megabyte() -> None:
    """A megabyte of JSON is answered within a second, whatever it is, with its claims and faults."""
    size = 1_000_000
    for text, counts in (
        ('{"protocol": "' + "x" * size + '"}', (1, 0)),
        ("{" + " " * size + "}", (0, 0)),
        ("x" * size, (0, 1)),
        ('"' + '\\"' * (size // 2), (0, 1)),
        ("{" + '"a":1,' * (size // 6), (0, 1)),
        ("'" * size, (0, 1)),
        ("http://u:p@" * (size // 11), (0, 1)),
        ("://a:" * (size // 5) + '"', (0, 1)),
    ):
        with within(SECOND):
            reading = read_init_kwargs(text)
        assert (len(reading.claims), len(reading.faults)) == counts


def test_too_long() -> None:
    """A text beyond the limit is refused without a look."""
    offence, message, _ = fault_of("x" * (BYTES_LIMIT + 1))
    assert (offence, message) == ("broken-json", "the JSON is too long to be read here.")


@given(st.text())
def test_any_text(text: str) -> None:
    """Any text is read or refused, and no message holds a character that a terminal obeys."""
    if text.startswith(("@", "-")):
        return
    for fault in read_init_kwargs(text).faults:
        assert isinstance(fault, Fault)
        assert (fault.message + fault.fix).isprintable()


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=4)),
    max_leaves=12,
)


@given(json_values)
def test_any_json(value: object) -> None:
    """Any JSON value is claims, or a fault that says what it is."""
    reading = read_init_kwargs(json.dumps(value))
    assert bool(reading.faults) is not (isinstance(value, dict) and set(value) <= {spec.name for spec in FIELDS})


# Files


def test_file(here: Path) -> None:
    """A file is read, by a relative or an absolute path, and its name is the place to edit."""
    (here / "store.json").write_text('{"protocol": "tcp"}', "utf-8")
    for path in ("store.json", "./store.json", str(here / "store.json")):
        claim = read_init_kwargs(f"@{path}").claims["protocol"]
        assert claim.raw == "tcp"
        assert claim.origin == Origin(Source.CLI, path)


def test_file_that_is_missing(here: Path) -> None:
    """A file that is not there is named, with the directory that a relative path was looked for in."""
    message, fix = unreadable("@nowhere/store.json")
    assert message == "nowhere/store.json cannot be read: No such file or directory."
    assert here.name in fix
    assert "best an absolute one" in fix
    _, fix = unreadable(f"@{here}/nowhere.json")
    assert fix == "give a path that exists on this node, and that this user may read."


@pytest.mark.parametrize("path", ["~/store.json", "$HOME/store.json", "${HOME}/store.json"])
def test_path_that_a_shell_would_expand(path: str, here: Path) -> None:
    """What stands behind the @ is not expanded by a shell, and the fix says so."""
    _, fix = unreadable(f"@{path}")
    assert fix == "no shell expands what stands behind the @; write the path in full."


def test_directory_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A current directory that was removed leaves a relative path unreadable, without a crash."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    _, fix = unreadable("@store.json")
    assert "a directory that is gone" in fix


@pytest.mark.parametrize("path", ["", "a\0b", "x" * 5000, "a\udcffb", "\x1b[2J"])
def test_odd_paths(path: str, here: Path) -> None:
    """No path at all, and paths that no file can have, are refused in printable words."""
    message, fix = unreadable(f"@{path}")
    assert (message + fix).isprintable()
    (fault,) = read_init_kwargs(f"@{path}").faults
    assert fault.origin.spot.isprintable()


def test_directory(here: Path) -> None:
    """A directory is no file."""
    assert unreadable(f"@{here}")[0].endswith("is a directory, not a regular file.")


def test_pipes_and_devices(here: Path) -> None:
    """A pipe that nobody writes to and an endless device are refused without being read."""
    os.mkfifo(here / "pipe")
    with within(SECOND):
        assert unreadable("@pipe")[0] == "pipe is a pipe or device, not a regular file."
        assert unreadable("@/dev/zero")[0] == "/dev/zero is a pipe or device, not a regular file."


def test_huge_file(here: Path) -> None:
    """A file of 5 MB, or of a terabyte of nothing, is refused within a second."""
    (here / "store.json").write_bytes(b" " * 5_000_000)
    with (here / "sparse.json").open("wb") as sparse:
        sparse.truncate(1 << 40)
    for name in ("store.json", "sparse.json"):
        with within(SECOND):
            assert unreadable(f"@{name}")[0].startswith(f"{name} holds more than 2 MiB")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'{"protocol": "tcp\xff"}', "byte 0xff at offset 17."),
        (b'{"protocol": "tcp', None),
        ('{"protocol": "tcp"}'.encode("utf-16"), "byte 0xff at offset 0. It looks like UTF-16."),
        (b"\x80", "byte 0x80 at offset 0."),
    ],
)
def test_encoding(data: bytes, words: str | None, here: Path) -> None:
    """A file that is not UTF-8 is refused with the first such byte."""
    (here / "store.json").write_bytes(data)
    offence, message, fix = fault_of("@store.json")
    if words is None:
        assert offence == "broken-json"
        assert "@FILE" not in fix
    else:
        assert message == f"store.json is not UTF-8: {words}"


def test_byte_order_mark(here: Path) -> None:
    """A byte order mark in a file is named, and nothing of the file is taken."""
    (here / "store.json").write_bytes(b'\xef\xbb\xbf{"protocol": "tcp"}')
    offence, message, fix = fault_of("@store.json")
    assert offence == "broken-json"
    assert "byte order mark" in message
    assert fix == "save the file as UTF-8 without BOM."


def test_empty_file(here: Path) -> None:
    """An empty file counts as unset, and is named."""
    (here / "store.json").touch()
    offence, message, _ = fault_of("@store.json")
    assert (offence, message.split(" is ")[0]) == ("empty-claim", "store.json")


# Standard input

ASK = "from mooncake_config.init_kwargs import read_init_kwargs as read; r = read('-'); print(r.faults or r.claims)"


def reading_of_stdin(data: bytes | None, ask: str = ASK) -> str:
    """What a child process makes of its standard input; None: it is closed."""
    command = [sys.executable, "-c", ask]
    if data is None:
        command = ["sh", "-c", 'exec "$@" <&-', "sh", *command]
    return subprocess.run(command, input=data or b"", capture_output=True, check=True, timeout=30).stdout.decode()


def test_standard_input() -> None:
    """Standard input is read to its end; it is the place to edit."""
    answer = reading_of_stdin(b'{"protocol": "tcp"}\n')
    assert "'protocol'" in answer
    assert "spot='standard input'" in answer


def test_empty_standard_input() -> None:
    """Standard input with nothing in it counts as unset."""
    assert "standard input is empty and counts as unset" in reading_of_stdin(b"")


def test_closed_standard_input() -> None:
    """A process without standard input is told so."""
    assert "this process has no standard input" in reading_of_stdin(None)


def test_replaced_standard_input() -> None:
    """A standard input without a descriptor, as some notebooks have it, is none."""
    ask = f"import io, sys; sys.stdin = io.StringIO('{{}}'); {ASK}"
    assert "this process has no standard input" in reading_of_stdin(b"", ask)


def test_standard_input_that_does_not_end() -> None:
    """Standard input that never ends is given up after a while, and the message says for how long it was waited."""
    reader, writer = os.pipe()
    with os.fdopen(reader), os.fdopen(writer, "wb") as pipe:
        pipe.write(b'{"protocol":')
        pipe.flush()
        (fault,) = read_stream(reader, 0.05).faults
    assert fault.message == "standard input did not end within 0.05 s."
    assert fault.origin.spot == "standard input"


def test_standard_input_that_cannot_be_read(here: Path) -> None:
    """Standard input that is a directory, or open for writing only, is told with the reason."""
    descriptor = os.open(here, os.O_RDONLY)
    try:
        (fault,) = read_stream(descriptor, 1).faults
    finally:
        os.close(descriptor)
    assert fault.message == "standard input cannot be read: [Errno 21] Is a directory."


def test_descriptor_to_its_end() -> None:
    """An open file is read to its end, also where it comes in parts."""
    reader, writer = os.pipe()
    with os.fdopen(reader), os.fdopen(writer, "wb") as pipe:
        pipe.write(b"{}")
        pipe.flush()
        assert read_descriptor(reader, 0.05) is None
        pipe.write(b"[]")
        pipe.close()
        assert read_descriptor(reader, 5) == b"[]"


def test_descriptor_with_many_files_open(here: Path) -> None:
    """A file whose descriptor is above 1023 is read like any other."""
    Path("store.json").write_text("{}")
    with many_files_open(), Path("store.json").open("rb") as file:
        assert file.fileno() > 1023
        assert read_descriptor(file.fileno(), 5) == b"{}"


def test_descriptor_beyond_the_limit() -> None:
    """An endless file is read one byte past the limit and no further."""
    with Path("/dev/zero").open("rb") as endless, within(5):
        data = read_descriptor(endless.fileno(), 5)
    assert data is not None
    assert len(data) == BYTES_LIMIT + 1
