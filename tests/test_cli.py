"""The command line: choices, exit status, formats."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import shlex
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from mooncake_config.cli import main
from mooncake_config.resolve import resolve_store_config
from mooncake_config.rules import ALL_RULES

NODE = ("--num-nodes", "2", "--node-ip", "10.0.0.7", "--local-rank", "0", "--processes-per-node", "8")
Explain = Callable[..., dict[str, Any]]


@pytest.fixture
def explain(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Explain:
    """Runs explain on a two-node job with a good master and gives its JSON answer."""
    monkeypatch.setenv("MOONCAKE_MASTER", "10.0.0.5:50051")

    def run(*words: str) -> dict[str, Any]:
        own, pasted = (words[: words.index("--")], words[words.index("--") :]) if "--" in words else (words, ())
        main(["explain", *NODE, "--format", "json", *own, *pasted])
        document: dict[str, Any] = json.loads(capsys.readouterr().out)
        return document

    return run


def status_of(*words: str) -> int | str | None:
    """The exit status of a command, also where argparse ends the process."""
    try:
        return main(list(words))
    except SystemExit as end:
        return end.code


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("explode",),
        ("explain", "--format", "xml"),
        ("check", "--host-root", "/nowhere/at/all"),
        ("check", "--host-root", __file__),
        ("schema", "--write", "--directory", "/proc/nowhere"),
        ("schema", "--write", "--directory", __file__),
        ("explain", "--num-node", "2"),
        ("rule", "MC999"),
        ("rule", ""),
        ("explain", "--field", "colour"),
        ("explain", "--field", "protocol", "--only-changed"),
        ("explain", "--field", "protocol", "--format", "json"),
        ("explain", "--only-changed", "--format", "json"),
        ("explain", "--quiet", "--format", "json"),
        ("check", "--quiet", "--format", "json"),
        ("explain", "--quiet", "--format", "env"),
        ("explain", "--diff", "/nowhere/at/all"),
        ("explain", "--diff", __file__),
        ("explain", "--diff", ""),
    ],
)
def test_wrong_use(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """Wrong use of the command line is status 2, and says why on standard error only."""
    assert status_of(*words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "error: " in err


SECRET = "http://admin:s3cret@10.0.0.5:8080/metadata"


@pytest.mark.parametrize(
    ("words", "split"),
    [
        (('{"metadata_server":', '"http://a:b@h:8080/metadata"}'), True),
        (("{metadata_server:", "http://a:b@h:8080/metadata,", "protocol:", "tcp}"), True),
        (("'{protocol:", "tcp}'"), True),
        (('{"protocol": "tcp"}', "more"), False),
        (("@store.json", "more"), False),
    ],
)
def test_json_split_at_a_blank(words: tuple[str, ...], split: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """Words that are the rest of a JSON are told as such, with the way out."""
    assert status_of("explain", "--mooncake-store-init-kwargs", *words) == 2
    assert ("was split at a blank: put it in single quotes, or pass @FILE" in capsys.readouterr().err) is split


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("--mooncake-store-init", "--mooncake-store-init-kwargs"),
        ("--mooncake_store_init_kwargs", "--mooncake-store-init-kwargs"),
        ("\u2013-mooncake-replica-num", "--mooncake-replica-num"),
        ("--object-store", "--object-store-backend"),
    ],
)
def test_nearly_a_flag(word: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A word that is nearly a flag of ours is refused with the flag that was meant."""
    for words in ([word, "{}"], [f"{word}={{}}"]):
        assert status_of("explain", *words) == 2
        assert f"; did you mean {meant}?\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [{"role": SECRET}, {"replica_num": SECRET}, {"ignore": [SECRET]}, {"ignore": SECRET}], ids=str
)
def test_wrong_use_in_python_is_fit_to_be_shown(words: dict[str, Any]) -> None:
    """Wrong use of the library names the value that it refuses, without the password in it."""
    with pytest.raises((ValueError, TypeError)) as refusal:
        resolve_store_config(**words)
    assert "***@10.0.0.5:8080" in str(refusal.value)
    assert "s3cret" not in str(refusal.value)


def test_unexpected_error_is_no_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    """A ValueError that nobody foresaw (no command line can hold a NUL) is raised as it is, not dressed as usage."""
    with pytest.raises(ValueError, match="null byte"):
        main(["schema", "--write", "--directory", "a\0b"])
    assert capsys.readouterr().err == ""


def test_wrong_content(capsys: pytest.CaptureFixture[str]) -> None:
    """Wrong content is a finding and status 1."""
    assert main(["explain", *NODE, "--mooncake-replica-num", "0"]) == 1
    assert "MC103 replicas-below-one" in capsys.readouterr().out


def test_strict(monkeypatch: pytest.MonkeyPatch, explain: Explain) -> None:
    """With --strict a warning decides the exit status, and ok stays true."""
    monkeypatch.setenv("MOONCAKE_DEVCE", "mlx5_0")
    assert explain()["ok"]
    assert main(["explain", *NODE]) == 0
    assert main(["explain", *NODE, "--strict"]) == 1


def test_document_is_whole_with_errors(explain: Explain) -> None:
    """With an error standing the answer still has all eight fields, and setup is null."""
    document = explain("--mooncake-store-init-kwargs", '{"protocol": "rmda"}')
    assert len(document["fields"]) == 8
    assert document["fields"]["protocol"] == {
        "value": None,
        "raw": "rmda",
        "source": "cli",
        "origin": "--mooncake-store-init-kwargs",
        "overridden": [{"raw": "rdma", "source": "default", "origin": "default"}],
    }
    assert document["setup"] is None


def test_ray_backend_needs_nothing(explain: Explain, monkeypatch: pytest.MonkeyPatch) -> None:
    """With Ray's object store nothing about Mooncake is an error, and there is no setup and no fingerprint."""
    monkeypatch.delenv("MOONCAKE_MASTER")
    document = explain("--object-store-backend", "ray", "--mooncake-store-init-kwargs", "{broken")
    assert document["ok"]
    assert (document["setup"], document["fingerprint"]) == (None, None)
    assert {finding["severity"] for finding in document["findings"]} == {"warning"}


def test_healthy_ray_job(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A job with Ray's object store is told nothing about ranks, replicas and the node IP, which are Mooncake's."""
    ray = ("explain", "--object-store-backend", "ray", "--strict", "--format", "json")
    for words in (
        (),
        ("--num-nodes", "2"),
        ("--num-nodes", "2", "--processes-per-node", "8"),
        ("--num-nodes", "2", "--processes-per-node", "8", "--local-rank", "8"),
        ("--trainer-nodes", "1", "--mooncake-replica-num", "2"),
    ):
        assert main([*ray, *words]) == 0
        assert json.loads(capsys.readouterr().out)["findings"] == []


def test_env_format(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """--format env exports what all nodes share; the rest are comments that say why."""
    monkeypatch.setenv("MOONCAKE_MASTER", "10.0.0.5:50051")
    monkeypatch.setenv("MOONCAKE_TE_META_DATA_SERVER", "http://u:geheim@10.0.0.5:8080/metadata")
    kwargs = '{"chunk_bytes": "64mb", "global_segment_size": "2gb"}'
    assert main(["explain", *NODE, "--format", "env", "--mooncake-store-init-kwargs", kwargs]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "export MOONCAKE_MASTER=10.0.0.5:50051",
        "# MOONCAKE_LOCAL_HOSTNAME=10.0.0.7: belongs to this node; export it on each node",
        "# MOONCAKE_TE_META_DATA_SERVER: its value holds a password and is not printed",
        "export MOONCAKE_PROTOCOL=rdma",
        "export MOONCAKE_GLOBAL_SEGMENT_SIZE=2147483648",
        "export MOONCAKE_LOCAL_BUFFER_SIZE=34359738368",
        "# chunk_bytes 67108864: has no variable; give it as an init kwarg",
    ]


def test_env_format_of_what_was_set(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """With --only-changed nothing is exported that nobody set."""
    monkeypatch.setenv("MOONCAKE_MASTER", "10.0.0.5:50051")
    assert main(["explain", *NODE, "--format", "env", "--only-changed"]) == 0
    assert capsys.readouterr().out == "export MOONCAKE_MASTER=10.0.0.5:50051\n"


def test_only_changed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """With --only-changed the table holds what somebody set."""
    monkeypatch.setenv("MOONCAKE_MASTER", "10.0.0.5:50051")
    assert main(["explain", *NODE, "--only-changed"]) == 0
    page = capsys.readouterr().out
    assert "master_server_address 10.0.0.5:50051" in page
    assert "local_hostname" not in page
    assert "Nobody set the other 7 fields." in page


@pytest.mark.parametrize(
    ("name", "kwargs", "out", "err", "status"),
    [
        ("global_segment_size", '{"global_segment_size": "2gb"}', "2147483648\n", "", 0),
        ("chunk_bytes", "{}", "", "", 0),
        ("protocol", '{"protocol": "rmda"}', "", "MC027 error protocol: rmda is not", 1),
        ("protocol", '{"local_hostname": "localhost"}', "rdma\n", "MC101 error local_hostname: localhost is", 1),
        (
            "metadata_server",
            '{"metadata_server": "http://u:geheim@10.0.0.5:8080/metadata"}',
            "http://u:***@10.0.0.5:8080/metadata\n",
            "metadata_server: its value holds a password, which is printed as ***\n",
            0,
        ),
    ],
)
def test_field(
    name: str,
    kwargs: str,
    out: str,
    err: str,
    status: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """--field prints one bare value for a script; what was found, also about others, is on standard error."""
    monkeypatch.setenv("MOONCAKE_MASTER", "10.0.0.5:50051")
    words = ["explain", *NODE, "--field", name, "--mooncake-store-init-kwargs", kwargs]
    assert main(words) == status
    printed = capsys.readouterr()
    assert printed.out == out
    assert printed.err.startswith(err)
    assert bool(printed.err) is bool(err)


def test_quiet(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """-q prints the findings and nothing else, and nothing at all where there is none; the status stays."""
    monkeypatch.setenv("MOONCAKE_MASTER", "10.0.0.5:50051")
    assert main(["explain", *NODE, "-q"]) == 0
    assert capsys.readouterr() == ("", "")
    monkeypatch.setenv("MOONCAKE_LOCAL_HOSTNAME", "localhost")
    assert main(["explain", *NODE, "--quiet"]) == 1
    out, err = capsys.readouterr()
    assert [line.rstrip() for line in out.splitlines()] == [
        "✗ error MC101 loopback-in-multi-node · local_hostname",
        "  localhost is a loopback address, which only this host reaches, and this job",
        "  has 2 nodes.",
        "  From MOONCAKE_LOCAL_HOSTNAME",
        "  Fix: set it to this node's address on the data network, or unset it to use the",
        "  Ray node IP 10.0.0.7.",
    ]
    assert err == ""


def test_diff(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """--diff shows what differs from a saved answer; its status is that of explain, since a difference is no fault."""
    monkeypatch.setenv("MOONCAKE_MASTER", "10.0.0.5:50051")
    other = tmp_path / "other.json"
    assert main(["explain", *NODE, "--format", "json"]) == 0
    other.write_text(capsys.readouterr().out)
    assert main(["explain", *NODE, "--diff", str(other)]) == 0
    assert capsys.readouterr().out.startswith("Nothing differs between this answer and")
    monkeypatch.setenv("MOONCAKE_PROTOCOL", "tcp")
    assert main(["explain", *NODE, "--diff", str(other), "--format", "json"]) == 0
    assert list(json.loads(capsys.readouterr().out)["fields"]) == ["protocol"]
    monkeypatch.delenv("MOONCAKE_MASTER")
    assert main(["explain", *NODE, "--diff", str(other)]) == 1


def test_diff_through_a_pipe() -> None:
    """The answer of another node is compared through standard input; two things cannot be read from it."""
    program = f"{sys.executable} -m mooncake_config explain {' '.join(NODE)}"
    environment = {**os.environ, "MOONCAKE_MASTER": "10.0.0.5:50051"}
    command = ["bash", "-c", f"{program} --format json | {program} --diff - --role driver"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert re.search("^role +driver +trainer *$", done.stdout, re.MULTILINE)
    for before in ((), ("--", "python3", "train.py")):
        done = run("explain", "--diff", "-", *before, "--mooncake-store-init-kwargs", "-")
        assert done.returncode == 2
        assert "error: standard input cannot hold both what --diff and what --mooncake-store" in done.stderr


def test_env_format_with_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    """With an error standing nothing is exported, and the findings go to standard error."""
    assert main(["explain", *NODE, "--format", "env"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("MC100 error master_server_address: no master address is set")


@pytest.mark.parametrize(
    "words", ["explain", "explain --quiet", "check --host-root {}", "plan", "rule", "rule MC101"], ids=str
)
def test_no_line_ends_in_blanks(words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A page that goes into a file or a pipe has no blanks at the ends of its lines."""
    main(words.format(tmp_path).split())
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 3
    assert [line for line in lines if line != line.rstrip()] == []


def test_schema_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    """schema prints the JSON Schema of the init kwargs."""
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out)["additionalProperties"] is False


def test_schema_write_and_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--check is status 1 while a schema is stale and names the command that repairs it; --write repairs it."""
    assert main(["schema", "--check", "--directory", str(tmp_path)]) == 1
    assert "is missing; run: mooncake-config schema --write" in capsys.readouterr().err
    assert main(["schema", "--write", "--directory", str(tmp_path)]) == 0
    assert main(["schema", "--check", "--directory", str(tmp_path)]) == 0
    (tmp_path / "explain.schema.json").write_text("{}")
    assert main(["schema", "--check", "--directory", str(tmp_path)]) == 1
    assert "explain.schema.json is stale; run: mooncake-config schema --write" in capsys.readouterr().err


def test_schema_repair_is_about_the_same_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command that repairs schemas writes where they were looked for, whatever the directory is called."""
    monkeypatch.chdir(tmp_path)
    assert main(["schema", "--check", "--directory", "my schemas"]) == 1
    repair = capsys.readouterr().err.splitlines()[0].partition("; run: mooncake-config ")[2]
    assert repair == "schema --write --directory 'my schemas'"
    assert main(shlex.split(repair)) == 0
    assert main(["schema", "--check", "--directory", "my schemas"]) == 0
    capsys.readouterr()
    assert main(["schema", "--check"]) == 1
    assert capsys.readouterr().err.splitlines()[0].endswith("is missing; run: mooncake-config schema --write")


@pytest.mark.parametrize("name", ["MC101", "mc101", "loopback-in-multi-node"])
def test_rule_page(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The page of a rule is found by its code or its name."""
    assert main(["rule", name]) == 0
    assert capsys.readouterr().out.startswith(
        "MC101 loopback-in-multi-node (error)\n\nAn address that only this machine"
    )


def test_rule_list(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a name all rules are listed, as JSON with the keys of the contract."""
    assert main(["rule", "--format", "json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [item["code"] for item in listed] == [rule.code for rule in ALL_RULES]
    assert set(listed[0]) == {"code", "rule", "severity", "page"}
    assert main(["rule"]) == 0


def run(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    environment = {**os.environ, **variables}
    command = [sys.executable, "-m", "mooncake_config", *words]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def test_module_runs() -> None:
    """python -m mooncake_config is the program."""
    done = run("explain", *NODE, MOONCAKE_MASTER="10.0.0.5:50051")
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b[" not in done.stdout


def test_colour_on_demand() -> None:
    """FORCE_COLOR colours a piped answer, and NO_COLOR takes the colours away again."""
    assert "\x1b[" in run("explain", *NODE, FORCE_COLOR="1").stdout
    assert "\x1b[3" not in run("explain", *NODE, FORCE_COLOR="1", NO_COLOR="1").stdout


def on_terminal(words: Sequence[str], variables: Mapping[str, str], columns: int = 80) -> str:
    """What the command shows on a terminal of its own, as wide as said and as the variables describe it."""
    end, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR", "FORCE_COLOR")}
    command = [sys.executable, "-m", "mooncake_config", *words]
    shown = b""
    with subprocess.Popen(
        command, stdin=terminal, stdout=terminal, stderr=terminal, env={**kept, **variables}
    ) as asked:
        os.close(terminal)
        with contextlib.suppress(OSError):  # the other end closes when the command ends
            while part := os.read(end, 65536):
                shown += part
    os.close(end)
    assert asked.returncode == 1
    return shown.decode().replace("\r\n", "\n")


RED = "\x1b[1;31m"


@pytest.mark.parametrize(
    ("variables", "red", "bold"),
    [
        ({"TERM": "xterm-256color"}, True, True),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, False, True),
        ({"TERM": "dumb"}, False, False),
        ({"TERM": "unknown"}, False, False),
    ],
)
def test_colours_of_a_terminal(variables: dict[str, str], red: bool, bold: bool) -> None:
    """A terminal gets colours; NO_COLOR leaves bold type, and a terminal that can nothing gets plain text."""
    shown = on_terminal(("explain", *NODE), variables)
    assert (RED in shown, "\x1b[1m" in shown) == (red, bold)
    assert "MC100" in shown


@pytest.mark.parametrize("columns", [60, 120])
def test_page_is_as_wide_as_the_terminal(columns: int) -> None:
    """The page fits the terminal's own width, and lines of text fill it."""
    shown = on_terminal(("explain", *NODE), {"TERM": "xterm", "NO_COLOR": "1"}, columns)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    widths = [len(line.rstrip()) for line in plain.splitlines()]
    assert columns - 20 < max(widths) <= columns
    assert ("value, and where it was set" in plain) is (columns == 60)


def test_ascii_terminal() -> None:
    """A standard output that knows ASCII only gets an answer, not a traceback."""
    done = run("explain", *NODE, MOONCAKE_MASTER="10.0.0.5:50051", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_signs_that_an_encoding_lacks(encoding: str) -> None:
    """Sums, bars and marks are written in signs of the encoding, never as escapes."""
    words = (*NODE, "--num-nodes", "1", "--processes-per-node", "8")
    for command in (("explain", *words), ("plan", *words, "--rollout-bytes", "1gb"), ("rule",), ("rule", "MC200")):
        command_line = [sys.executable, "-m", "mooncake_config", *command]
        done = subprocess.run(
            command_line, capture_output=True, env={"PYTHONIOENCODING": encoding}, check=False, timeout=60
        )
        assert b"\\" not in done.stdout
        assert done.stdout.decode(encoding)


@pytest.mark.parametrize("columns", ["0", "1", "3", "39", "100000", "9" * 30, "-5", "wide"])
@pytest.mark.parametrize("command", ["explain", "plan"])
def test_useless_width(command: str, columns: str) -> None:
    """A width in which nothing can be read, or that no terminal has, does not keep the findings from being printed."""
    done = run(command, *NODE, "--num-nodes", "1", "--processes-per-node", "99999", COLUMNS=columns)
    assert done.returncode == 1
    assert ("MC100 missing-master" if command == "explain" else "MC200 memory-above-host") in done.stdout
    assert len(done.stdout) < 200_000
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("redirection", "status", "says"),
    [
        (">/dev/full", 1, "mooncake-config: the answer cannot be written to standard output: No space left on device"),
        (">&-", 1, "mooncake-config: standard output is closed, so there is nowhere to answer"),
        (">/dev/null 2>&-", 0, ""),
    ],
)
@pytest.mark.parametrize("words", ["rule", "rule --format json", "schema"])
def test_nowhere_to_answer(words: str, redirection: str, status: int, says: str) -> None:
    """A standard output that is full or closed is told in one line, without a traceback."""
    command = f"{sys.executable} -m mooncake_config {words} {redirection}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.strip()) == (status, says)


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("explain --bogus", 2),
        ("bogus", 2),
        ("", 2),
        ("explain --node-ip ::1 --format env", 1),
        ("explain --node-ip ::1 --object-store-backend ray --field protocol", 0),
        ("schema --check --directory /proc/nothing", 1),
    ],
)
@pytest.mark.parametrize("redirection", ["2>/dev/full", "2>&-"])
def test_nowhere_to_complain(words: str, status: int, redirection: str) -> None:
    """A standard error that is full or closed changes no status."""
    command = f"{sys.executable} -m mooncake_config {words} {redirection}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == status


def test_interrupted() -> None:
    """Ctrl-C while standard input is awaited ends the command with status 130, without a traceback."""
    # A job in the background is started with SIGINT ignored, and CI may be one.
    code = """if True:
        import signal, sys
        signal.signal(signal.SIGINT, signal.default_int_handler)
        from mooncake_config.cli import main
        print('ready', file=sys.stderr)
        sys.exit(main())"""
    command = [sys.executable, "-c", code, "explain", *NODE, "--mooncake-store-init-kwargs", "-"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as asked:
        assert asked.stderr
        assert asked.stderr.readline() == "ready\n"
        wait_until_it_reads(asked.pid)
        asked.send_signal(signal.SIGINT)
        out, err = asked.communicate(timeout=20)
    assert (asked.returncode, out, err) == (130, "", "")


def wait_until_it_reads(pid: int) -> None:
    """Waits until a process sleeps in a system call that waits for input."""
    end = time.monotonic() + 20
    waiting = Path(f"/proc/{pid}/wchan")
    while time.monotonic() < end and not re.search("poll|select|pipe", waiting.read_text()):
        time.sleep(0.01)


def test_broken_pipe() -> None:
    """A reader that goes away early causes no traceback."""
    command = f"{sys.executable} -m mooncake_config rule | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""


HEAVY = {"ray", "mooncake", "numpy", "torch", "jsonschema", "rich.markdown", "rich.syntax", "rich.progress", "pygments"}


def modules_after(*words: str) -> set[str]:
    """The modules that a process has imported when a command ends."""
    code = "import sys; from mooncake_config.cli import main; main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


@pytest.mark.parametrize("words", [("explain", "--node-ip", "::1", "--object-store-backend", "ray"), ("schema",)])
def test_cold_start_imports(words: tuple[str, ...]) -> None:
    """A cold explain or schema imports none of the heavy modules."""
    assert modules_after(*words) & HEAVY == set()


def test_json_needs_no_rich() -> None:
    """The JSON answer is printed without importing rich."""
    assert "rich" not in modules_after("explain", "--object-store-backend", "ray", "--format", "json")


def host_tree(root: Path) -> Path:
    """A host with 64 GiB of memory, no control group limit and no RDMA device."""
    files = {
        "proc/meminfo": "MemTotal: 67108864 kB\nMemAvailable: 33554432 kB\n",
        "proc/self/limits": "Limit  Soft Limit  Hard Limit  Units\nMax locked memory  8388608  8388608  bytes\n",
        "proc/self/cgroup": "0::/\n",
        "sys/fs/cgroup/cgroup.controllers": "memory\n",
        "sys/fs/cgroup/memory.max": "max\n",
        "sys/class/net/lo/address": "00:00:00:00:00:00\n",
        "etc/hostname": "gpu-7\n",
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


ONE_NODE = ("--num-nodes", "1", "--node-ip", "127.0.0.1", "--processes-per-node", "1")


def test_check_page(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """check prints the settings, the host, what was asked with its answer, and the findings."""
    monkeypatch.setenv("MOONCAKE_MASTER", "127.0.0.1:1")
    assert main(["check", *ONE_NODE, "--host-root", str(host_tree(tmp_path))]) == 1
    page = "".join(f"{line.rstrip()}\n" for line in capsys.readouterr().out.splitlines())
    assert "host          gpu-7\nmemory        64 GiB, 32 GiB available\ncgroup limit  unlimited\n" in page
    assert "memlock       8 MiB\nRDMA devices  none\n" in page
    assert "127.0.0.1:1\n                          refuses connections (Connection refused), 0." in page
    assert "MC302 master-unreachable" in page


def test_check_document(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """check --format json is explain's document with the host's facts and the probes; a dry setup is only tried."""
    monkeypatch.setenv("MOONCAKE_MASTER", "127.0.0.1:1")
    words = ["check", *ONE_NODE, "--host-root", str(host_tree(tmp_path)), "--dry-setup", "--format", "json"]
    assert main(words) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["host"]["memory_total"] == 64 << 30
    assert {"what", "target", "answer", "seconds"} == set(document["probes"][0])
    assert document["setup"] is None


@pytest.mark.parametrize(
    ("kwargs", "expected"),
    [
        ("{}", "Hands 0 bytes of segment to the Store: of a node's trainers only local rank 0 contributes one"),
        ('{"local_buffer_size": "lots"}', "MC011 unreadable-size"),
    ],
)
def test_explain_of_another_rank(kwargs: str, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A trainer of another rank is told that it contributes nothing; without sizes nothing is summed up."""
    main(["explain", *NODE[:4], "--local-rank", "3", "--mooncake-store-init-kwargs", kwargs])
    assert expected in " ".join(capsys.readouterr().out.split())


def test_names_are_those_of_the_rooms() -> None:
    """The public names are listed, importable, and no others."""
    import mooncake_config

    assert set(mooncake_config.__all__) <= set(dir(mooncake_config))
    assert all(getattr(mooncake_config, name) for name in mooncake_config.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'resolve_all'"):
        _ = mooncake_config.resolve_all
