"""Refusals: what they suggest, and what they must not show."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import rich
from hypothesis import given
from hypothesis import strategies as st

import mooncake_config
from mooncake_config.cli import main
from mooncake_config.commands import make_parser
from mooncake_config.topology import Role
from mooncake_config.usage import Unpadded, nearest_or_part

COMMANDS = ("explain", "check", "plan", "schema", "rule", "demo", "completion")
SECRET = "http://admin:s3cret@10.0.0.5:8080/metadata"


def status_of(*words: str) -> int | str | None:
    """The exit status of a command, also where argparse ends the process."""
    try:
        return main(list(words))
    except SystemExit as end:
        return end.code


@pytest.mark.parametrize("refused", [SECRET, f"{SECRET}\x1b[2J\x07"], ids=["password", "escape sequence"])
@pytest.mark.parametrize(
    "words",
    [
        ("explain", "{}"),
        ("explain", "--foo={}"),
        ("explain", "--mooncake-store-init", "{}"),
        ("{}",),
        ("rule", "{}"),
        ("rule", "MC101", "{}"),
        ("explain", "--strict={}"),
        *(
            ("explain", flag, "{}")
            for flag in (
                *("--role", "--ignore", "--format", "--local-rank", "--num-nodes", "--trainer-nodes"),
                *("--processes-per-node", "--mooncake-replica-num", "--object-store-backend"),
            )
        ),
        ("check", "--host-root", "{}"),
        ("explain", "--", "train.py", "--object-store-backend", "{}"),
        ("explain", "--", "train.py", "--mooncake-replica-num", "{}"),
    ],
    ids=" ".join,
)
def test_refusal_is_fit_to_be_shown(words: tuple[str, ...], refused: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever word is refused as wrong use, its password and control characters stay out of the message."""
    assert status_of(*(word.format(refused) for word in words)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "s3cret" not in err
    assert err.replace("\n", "").isprintable()
    assert "error: " in err


KNOWN = {*COMMANDS, *(role.value for role in Role)}
"""Words that the command line takes somewhere. Generated texts are sometimes words of the source, these among them."""


@given(st.text(min_size=1).filter(lambda word: not word.startswith("-") and "@" not in word and word not in KNOWN))
def test_refusal_is_printable(word: str) -> None:
    """No word makes a refusal that holds a control character, as an unknown command and as an unknown argument."""
    for words in ((word,), ("explain", word), ("explain", "--role", word), ("rule", f"{word}?")):
        with contextlib.redirect_stderr(io.StringIO()) as err:
            assert status_of(*words) == 2
        assert err.getvalue().replace("\n", "").isprintable()


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        ("explane", "mooncake-config: error: there is no command explane; did you mean explain?"),
        (
            "explode",
            f"mooncake-config: error: there is no command explode; choose from {', '.join(COMMANDS)}",
        ),
        (
            "explain --num-node 2",
            "mooncake-config explain: error: unrecognized arguments: --num-node 2; did you mean --num-nodes?",
        ),
        (
            "explain --fromat json",
            "mooncake-config explain: error: unrecognized arguments: --fromat json; did you mean --format?",
        ),
        (
            "explain python3 train.py",
            "mooncake-config explain: error: unrecognized arguments: python3 train.py; put a launch line behind --",
        ),
        (
            "plan python3 train.py --num-node 2",
            "mooncake-config plan: error: unrecognized arguments: python3 train.py --num-node 2; "
            "put a launch line behind --",
        ),
        (
            "explain train.py -- train.py",
            "mooncake-config explain: error: unrecognized arguments: train.py",
        ),
        (
            "explain --mooncake-store-init-kwargs {protocol: tcp}",
            "mooncake-config explain: error: unrecognized arguments: tcp}; the JSON of --mooncake-store-init-kwargs "
            "was split at a blank: put it in single quotes, or pass @FILE",
        ),
        ("schema train.py", "mooncake-config schema: error: unrecognized arguments: train.py"),
        (
            "--num-nodes 2 explain",
            "mooncake-config: error: --num-nodes stands before the command; options come behind it: "
            "mooncake-config COMMAND --num-nodes",
        ),
        (
            "--num-nodes=2 explain",
            "mooncake-config: error: --num-nodes stands before the command; options come behind it: "
            "mooncake-config COMMAND --num-nodes",
        ),
        ("completion", "mooncake-config completion: error: a shell is missing; choose from bash, zsh, fish"),
        (
            "explain --role trianer",
            "mooncake-config explain: error: argument --role: trianer is no choice; did you mean trainer?",
        ),
        (
            "explain --role boss",
            "mooncake-config explain: error: argument --role: boss is no choice; "
            "choose from trainer, rollout-manager, driver",
        ),
        (
            "check --ignore loopback",
            "mooncake-config check: error: argument --ignore: 'loopback' is no rule; "
            "`mooncake-config rule` lists them; did you mean loopback-in-multi-node?",
        ),
        (
            "rule loopback_in_multinode",
            "mooncake-config rule: error: there is no rule 'loopback_in_multinode'; "
            "`mooncake-config rule` lists them; did you mean loopback-in-multi-node?",
        ),
    ],
)
def test_refusal_names_the_nearest(words: str, refusal: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A refusal says what is wrong and what is nearest to it, then where the help is, and no more."""
    assert status_of(*words.split()) == 2
    program = refusal.partition(": error")[0]
    assert capsys.readouterr().err == f"{refusal}\nhelp: {program} --help\n"


@given(st.lists(st.text(st.characters(exclude_characters="\n"))))
def test_unpadded(lines: list[str]) -> None:
    """No line ends in blanks, and nothing else is taken away."""
    target = io.StringIO(newline="\n")
    Unpadded(target).write("".join(f"{line}   \n" for line in lines))
    assert target.getvalue() == "".join(f"{line.rstrip(' ')}\n" for line in lines)


WORDS = st.from_regex(r"[a-z]{3,9}(-[a-z]{2,9}){0,3}", fullmatch=True)


@given(st.text(), st.lists(WORDS, min_size=1))
def test_nearest_is_known(word: str, known: list[str]) -> None:
    """What is suggested is one of the known words; to a known word nothing is nearer than itself."""
    assert nearest_or_part(word, known) in {None, *known}
    assert nearest_or_part(known[0].upper(), known) == known[0]


def test_nothing_said(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a word the help goes to standard error, and what is missing stands below it."""
    assert status_of() == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("usage: mooncake-config COMMAND [OPTIONS]\n")
    assert err.endswith("mooncake-config: error: a command is missing\nhelp: mooncake-config --help\n")


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_version(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    """--version prints the name and the installed version."""
    assert status_of(flag) == 0
    assert capsys.readouterr() == (f"mooncake-config {version('mooncake-config')}\n", "")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("",), "there is no command '';"),
        (("explain", "--role", ""), "argument --role: '' is no choice;"),
        (("explain", "--field", " "), "argument --field: ' ' is no choice;"),
        (("completion", ""), "argument shell: '' is no choice;"),
        (("explain", "--num-nodes", ""), "argument --num-nodes: '' is not a whole number"),
        (("explain", "--ignore", ""), "argument --ignore: '' is no rule;"),
        (("check", "--host-root", ""), "argument --host-root: '' is no directory here"),
        (("check", "--cluster", "--address", ""), "argument --address: '' is not auto or HOST:PORT"),
        (("plan", "--rollout-bytes", ""), "argument --rollout-bytes: '' is not a size;"),
        (("rule", ""), "there is no rule '';"),
    ],
    ids=" ".join,
)
def test_blank_word_is_seen(words: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A blank word, as an unset shell variable in quotes leaves it, stands in quotes in the refusal."""
    assert status_of(*words) == 2
    assert f"error: {says}" in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS)
def test_two_dashes_are_no_value(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`--option=--` is wrong use of every option, on every Python."""
    words = (command, "bash") if command == "completion" else (command,)
    flags = make_parser().parse_args(words).parser.flags
    for flag in (flag for flag in flags if flag.startswith("--")):
        assert status_of(*words, f"{flag}=--") == 2
        assert f"argument {flag}" in capsys.readouterr().err.replace("-q/", "").replace("-h/", "")


@pytest.mark.parametrize("name", ["x" * 5000, "x/" * 5000, "a\0b", "\udcff", "\x1b[31m"], ids=ascii)
def test_odd_name_of_a_directory(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A name that no file can have is no directory."""
    assert status_of("plan", "--host-root", name) == 2
    assert "is no directory here" in capsys.readouterr().err


def test_version_of_a_copy(tmp_path: Path) -> None:
    """A copy of the files that was never installed says so, instead of a traceback."""
    for entry in Path(rich.__file__).parents[1].iterdir():
        if not entry.name.lower().startswith(("mooncake_config", "__editable__")):
            (tmp_path / entry.name).symlink_to(entry)
    (tmp_path / "mooncake_config").symlink_to(Path(mooncake_config.__file__).parent)
    command = [sys.executable, "-S", "-m", "mooncake_config", "--version"]
    done = subprocess.run(
        command,
        env={"PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "mooncake-config of unknown version: it runs from files that no installer put there\n"
