"""Scripts: words and variables as a shell would have them, without running anything."""

from __future__ import annotations

import subprocess
from itertools import takewhile

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mooncake_config.script import read_script


def words(text: str, **environ: str) -> list[str]:
    """The words of a script."""
    return list(read_script(text, environ).words)


@pytest.mark.parametrize(
    ("script", "last"),
    [
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
def test_expansion(script: str, last: str) -> None:
    """A variable is put in where a shell puts it, with what stands in for it, quoted and split as there."""
    script_read = read_script(script, {"HERE": "here"})
    assert (script_read.words[-1], script_read.unknown) == (last, frozenset())


@pytest.mark.parametrize(
    "expression",
    [
        "$(hostname -i)",
        "$(echo $(id) ')' \")\")",
        "`hostname`",
        "$HEAD",
        "${HEAD}",
        "${HEAD:?no head}",
        "$1",
        "$@",
        "${A[@]}",
        "${#A}",
        "${HERE%:*}",
        "$((1 + 1))",
        "${A:-$(id)}",
        "${A:-${B}}",
    ],
)
@pytest.mark.parametrize("line", ["x A={}:1", 'x A="{}:1"', "B={}; x A=$B:1", "B={}; HERE=$B; x A=$HERE:1"])
def test_known_when_it_runs(line: str, expression: str) -> None:
    """What only a run tells stays in the word as it stands, also where a variable was set to it, and is told."""
    script = read_script(line.format(expression), {"HERE": "here"})
    left = script.words[-1].removeprefix("A=").removesuffix(":1")
    assert left in script.unknown
    assert "A" not in script.variables


@pytest.mark.parametrize(
    "script",
    [
        "cat <<EOF >store.json\nit's {$A\nEOF\nx",
        "python3 - <<'END OF' || y\nprint('it\"s)\nEND OF\nx",
        "cat <<-\\EOF\n\tit's\n\tEOF\nx",
    ],
)
def test_here_document(script: str) -> None:
    """The lines of a here-document are no words of the script."""
    assert words(script)[-2:] == ["\n", "x"]


@pytest.mark.parametrize("script", ['x "<<EOF" y', "x <<<EOF y", "x $((1 << EOF)) y"])
def test_no_here_document(script: str) -> None:
    """What is quoted, a here-string, and a shift of bits begin no here-document."""
    assert words(f"{script}\nz EOF")[-3:] == ["\n", "z", "EOF"]


@pytest.mark.parametrize("text", ["x 'a", 'x "a', "x $(a", "x ${a", "x `a", 'x "$(a"'])
def test_not_closed(text: str) -> None:
    """A quotation or a substitution that is not closed is no script."""
    with pytest.raises(ValueError, match=r"closing|closed"):
        read_script(text, {})


def test_does_not_grow() -> None:
    """A script that doubles a text again and again is read in a moment."""
    assert sum(map(len, words("A=xxxxxxxxxxxxxxxx; " + "A=$A$A$A$A$A$A$A$A; " * 200))) < 200_000


def test_deep_defaults() -> None:
    """Defaults in defaults without end are known when it runs."""
    text = "${A:-" * 100 + "x" + "}" * 100
    assert words(f"x {text}") == ["x", text]


_BARE = ["$A", "${A}", "${B:-b}", "${B-c d}", "${E:-e}", "${E-f}", "${B:=1 2}", "$B", "${E:=$A}", "x", "#", "=", ":"]
_QUOTED = [
    "'$A'",
    '"$A"',
    '"${B:-b  c}"',
    '"a $A"',
    "'b \"'",
    "\\$A",
    '"\\$A"',
    '"$B"',
    "$'x'",
    " ",
    "\\ ",
    " \\\n",
    "\\\\",
]


@given(st.lists(st.sampled_from(_BARE + _QUOTED), max_size=12).map("".join))
@example("$E")
def test_as_a_shell_has_it(text: str) -> None:
    """The words that a program is given are those that a shell gives it."""
    line, environ = f"printf '<%s>' {text}", {"A": "a  a", "E": ""}
    script = read_script(line, environ)
    if script.unknown:
        return
    program = list(takewhile(lambda word: set(word) != {"\n"}, script.words))
    run = subprocess.run(["bash", "-c", line], env=environ, capture_output=True, check=False, text=True)
    assert "".join(f"<{word}>" for word in program[2:] or [""]) == run.stdout


@given(st.text() | st.text(alphabet="$(){}`'\"\\#=A:- \n"))
def test_any_text_is_read(text: str) -> None:
    """Whatever a script holds, it is read or refused with a ``ValueError``."""
    try:
        script = read_script(text, {"A": "1"})
    except ValueError:
        return
    assert all("\0" not in word for word in script.words)
