"""Scripts: words and variables as a shell would have them, without running anything."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mooncake_config.script import Command, read_script


def last(text: str, **environ: str) -> Command:
    """The last command of a script."""
    return [command for command in read_script(text, environ).commands if command.words][-1]


@pytest.mark.parametrize(
    ("script", "word"),
    [
        ("A=(a b); x $A", "a"),
        ('A=(a "b c"); x ${A[1]}', "c"),
        ('A=(a "b c"); A+=(d); x "${A[@]}"', "d"),
        ('A=(a # it\'s\n b\n); x "${A[@]}"', "b"),
        ("x $((2 * (3 + 4) % 5 ** 2))", "14"),
        ("A=4; x $((A<<10))", "4096"),
        ("A=4; x $((${A} << 10))", "4096"),
        ("x $((4 * ${A:-8}))", "32"),
        ('A=V; x "${A:-{"x": 1}}"', "V}"),
        ("A=1 B=$A; x $B", "1"),
        ("HERE=1 x $HERE", "here"),
        ('x "$(cat <<EOF\n{"a": "$HERE"}\nEOF\n)"', '{"a": "here"}'),
        ("x \"$(cat <<'EOF'\n$HERE\nEOF\n)\"", "$HERE"),
        ('read -r -d \'\' A <<EOF\n{"a": "$HERE"}\nEOF\nx "$A"', '{"a": "here"}'),
        ('x "${A:+--a $A}" ${HERE:+yes}', "yes"),
        ('unset HERE; x "$HERE"', ""),
        ("(HERE=there); x $HERE", "here"),
        ("HERE=there y; x $HERE", "here"),
        ('eval "HERE=there"; x $HERE', "there"),
        ("HEAD=a; x $HEAD:1", "a:1"),
        ('export HEAD=a\nx "${HEAD}:1"', "a:1"),
        ("HEAD=a; HEAD=b; ALL=$HEAD:1; x $ALL", "b:1"),
        ("A=a; A+=b; x $A", "ab"),
        ("x ${HEAD:-a}:1", "a:1"),
        ("HEAD=; x ${HEAD:-a}${HEAD-b}", "a"),
        ("HEAD=b; x ${HEAD:-a}", "b"),
        ('x ${HEAD:-"a b"}', "b"),
        ('x "${HEAD:-a b}"', "a b"),
        ("x ${A:-${B:-${HERE}}}", "here"),
        ("x ${A:=a}${A}", "aa"),
        ("x ${HERE:?is missing}", "here"),
        ("x $HERE", "here"),
        ("HERE=there; x $HERE", "there"),
        ("x '$HERE'", "$HERE"),
        ("x \\$HERE", "$HERE"),
        ('x "\\$HERE"', "$HERE"),
        ("x \\\\$HERE", "\\here"),
        ("x $'HERE' # $HERE", "HERE"),
        ("x a#$HERE", "a#here"),
        ("x '#' \"#\" \\\n  y", "y"),
        ("A='1 2'; x $A", "2"),
        ("A='1 2'; x \"$A\"", "1 2"),
        ("A='1 2'; B=$A; x \"$B\"", "1 2"),
        ("A=; x $A", "x"),
        ('A=; x "$A"', ""),
        ("x $", "$"),
    ],
)
def test_expansion(script: str, word: str) -> None:
    """A variable is put in where a shell puts it, with what stands in for it, quoted and split as there."""
    script_read = read_script(script, {"HERE": "here"})
    assert script_read.commands[-2].words[-1] == word
    assert not script_read.unknown


@pytest.mark.parametrize(
    "expression",
    [
        "$(hostname -i)",
        "$(echo $(id) ')' \")\")",
        "$(\n # the head's\n hostname)",
        "$(python3 - <<'EOF'\n# it's a (test\nEOF\n)",
        "`hostname -i`",
        "$HEAD",
        "${HEAD}",
        "${HEAD:?no head}",
        "$1",
        "$@",
        "${A[@]}",
        "${#A}",
        "${HERE%:*}",
        "$((1 / 0))",
        "$((1 << 64))",
        "$((A + 1))",
    ],
)
@pytest.mark.parametrize("line", ["x A={}:1", 'x A="{}:1"', "B={}; x A=$B:1", "B={}; HERE=$B; x A=$HERE:1"])
def test_known_when_it_runs(line: str, expression: str) -> None:
    """What only a run tells stays in the word as it stands, also behind variables that are set to it, and is told."""
    script = read_script(line.format(expression), {"HERE": "here"})
    assert script.commands[-2].words[-1] == f"A={expression}:1"
    assert script.unknown == {expression}


@pytest.mark.parametrize(
    "line",
    [
        "if x; then HERE=there; fi",
        "if x; then y; else HERE=there; fi",
        "case $HERE in --head) HERE=there;; *) HERE=2; shift;; esac",
        "while x; do HERE=there; done",
        "x && HERE=there",
        "x || export HERE=there",
        "f() { HERE=there; }",
        "function f {\n HERE=there\n}",
        "f() { HERE=there; }\nHERE=third\nf",
        "x && { y; HERE=there; }",
        "for HERE in a b; do x; done",
        "read -r HERE <<< there",
        "printf -v HERE there",
        "mapfile -t HERE < f",
        "if x; then unset HERE; fi",
        "(( HERE = 2 ))",
        "(( HERE++ ))",
    ],
)
def test_variable_that_a_run_decides(line: str) -> None:
    """What a branch, a loop, a function or an input makes of a variable is known when the script runs."""
    assert last(f"{line}\nx $HERE y", HERE="here").words == ("x", "$HERE", "y")


@pytest.mark.parametrize(
    "line",
    [
        "if x; then HERE=here; fi",
        "(HERE=there; y)",
        "HERE=there y",
        "bash -c 'HERE=there'",
        "echo HERE=there",
        "exit\nHERE=there",
        "cat <<EOF\nHERE=there\nEOF",
        "y 2>&1 HERE=there",
        "[[ $HERE == a && -n b ]]",
    ],
)
def test_variable_that_stays(line: str) -> None:
    """What ends in a subshell, before a command, in another shell or behind the last line changes no variable."""
    commands = read_script(f"{line}\nx $HERE", {"HERE": "here"}).commands
    assert commands[-1].given.get("HERE", "here") == "here"


@pytest.mark.parametrize(
    ("script", "given", "kept"),
    [
        ("A=1; x", {}, {"A": "1"}),
        ("export A=1; x", {"A": "1"}, {}),
        ("A=1; export A; x", {"A": "1"}, {}),
        ("A=1; export -n A; x", {}, {"A": "1"}),
        ("declare -rx A=1; x", {"A": "1"}, {}),
        ("declare A=1; x", {}, {"A": "1"}),
        ("set -a; A=1; set +a; B=2; x", {"A": "1"}, {"B": "2"}),
        ("set -o allexport; A=1; x", {"A": "1"}, {}),
        ("set -ea; A=1; x", {"A": "1"}, {}),
        ("declare +x A=1; x", {}, {"A": "1"}),
        ("time A=1 x", {"A": "1"}, {}),
        ("for ((i=0; i<3; i++)); do A=1 x; done", {"A": "1"}, {"i": "$i"}),
        ("A=1 x", {"A": "1"}, {}),
        ("A=1 B=2 x C=3", {"A": "1", "B": "2"}, {}),
        ("HERE=1; x", {"HERE": "1"}, {}),
        ("export A=1; A+=2; x", {"A": "12"}, {}),
        ("export A=1; unset A; x", {}, {}),
        (': "${A:=1}"; export A; x', {"A": "1"}, {}),
        ("if true; then A=1 x; fi", {"A": "1"}, {}),
        ("{ A=1 x; }", {"A": "1"}, {}),
        ("! A=1 x", {"A": "1"}, {}),
    ],
)
def test_what_a_command_is_given(script: str, given: dict[str, str], kept: dict[str, str]) -> None:
    """A command is given what is exported or stands before it; the rest stays in the shell."""
    command = last(script, HERE="here")
    assert (dict(command.given), dict(command.kept)) == (given, kept)


@pytest.mark.parametrize("text", ["x 'a", 'x "a', "x $(a", "x ${a", "x `a", 'x "$(a"', "$(" * 2000])
def test_not_closed(text: str) -> None:
    """A quotation or a substitution that is not closed, or is nested beyond reason, is no script."""
    with pytest.raises(ValueError, match=r"closing|closed|deeply"):
        read_script(text, {})


@pytest.mark.parametrize(
    ("sign", "document"),
    [
        ("<<EOF", "\there it's $(x)\n"),
        ("<<-EOF", "here it's $(x)\n"),
        ("<<'EOF'", "\t$HERE it's $(x)\n"),
        ("<<\\EOF", "\t$HERE it's $(x)\n"),
    ],
)
def test_here_document(sign: str, document: str) -> None:
    """A command has the lines of its here-document, in which variables are put in unless its end is quoted."""
    command = last(f"x {sign} >f\n\t$HERE it's $(x)\nEOF\n", HERE="here")
    assert (command.words, command.document) == (("x", ">f"), document)


def test_file_that_a_command_makes() -> None:
    """The name of a file that another command writes into is one word that is known when it runs."""
    assert last("x <(sort -u f) y").words == ("x", "<(sort -u f)", "y")


def test_does_not_grow() -> None:
    """A script that doubles a text again and again is read in a moment."""
    commands = read_script("A=xxxxxxxxxxxxxxxx; " + "A=$A$A$A$A$A$A$A$A; x $A; " * 200, {}).commands
    assert sum(len(word) for command in commands for word in command.words) < 5_000_000
    commands = read_script("A=(x)\n" + "A=(${A[@]} ${A[@]})\n" * 500 + "x ${A[@]}", {}).commands
    assert sum(len(command.words) for command in commands) < 50_000


def test_ends() -> None:
    """A script that runs itself again and again is told as too long, and is not read without end."""
    with pytest.raises(ValueError, match="more than 2,000 commands"):
        read_script('X=\'x; eval "$X"; eval "$X"\'; eval "$X"', {})


_BARE = ["$A", "${A}", "${B:-b}", "${B-c d}", "${E:-e}", "${E-f}", "${B:=1 2}", "$B", "${E:=$A}", "x", "#", "=", ":"]
_BARE += ["${L[@]}", "${L[1]}", "$((3 * 4))", "${A:+a b}", "${E+f}"]
_QUOTED = [
    "'$A'",
    '"$A"',
    '"${B:-b  c}"',
    '"a $A"',
    "'b \"'",
    "\\$A",
    '"\\$A"',
    '"$B"',
    "$'x\\t\\''",
    " ",
    "\\ ",
    " \\\n",
]
_QUOTED += ["\\\\", '"${L[@]}"', "\"${B:-'s'}\""]
_LINES = [
    "A=1",
    "export A=$B",
    "B='x  y'",
    'L=(a "b c" $A)',
    "L+=(d)",
    "(A=2)",
    "A=3 true",
    "A+=4",
    "unset A",
    "E=",
    ": ${B:=5}",
]
_LINES += [
    "if true; then A=1; fi",
    "cat >/dev/null <<EOF\n$A it's\nEOF",
    "# it's",
    "{ B=6; }",
    'eval "A=7"',
    "B=$((A + 1))",
]


@given(
    st.lists(st.sampled_from(_LINES), max_size=6).map("\n".join),
    st.lists(st.sampled_from(_BARE + _QUOTED), max_size=8).map("".join),
)
@example("", "$E")
def test_as_a_shell_has_it(lines: str, text: str) -> None:
    """The words that a program is given are those that a shell gives it, wherever no run decides them."""
    line, environ = f"{lines}\nprintf '<%s>' {text}", {"A": "a  a", "E": ""}
    script = read_script(line, environ)
    if script.unknown:
        return
    run = subprocess.run(
        ["bash", "-c", line], env={**environ, "PATH": "/bin:/usr/bin"}, capture_output=True, check=False
    )
    (printed,) = [command.words[2:] for command in script.commands if command.words[:1] == ("printf",)]
    assert "".join(f"<{word}>" for word in printed or [""]) == run.stdout.decode()


@given(st.text() | st.text(alphabet="$(){}`'\"\\#=A:-<& \n"))
def test_any_text_is_read(text: str) -> None:
    """Whatever a script holds, it is read or refused with a ``ValueError``."""
    try:
        script = read_script(text, {"A": "1"})
    except ValueError:
        return
    assert all("\0" not in word for command in script.commands for word in command.words)
