"""Shell words: a script taken apart before anything in it is replaced."""

from __future__ import annotations

import pytest

from mooncake_config.shell_words import MARK, marked, split


def words(text: str) -> list[str]:
    """The words of a text, each expression as a ``@``."""
    return [word.replace(f"{MARK}0{MARK}", "@") for word in split(marked(text)[0])]


@pytest.mark.parametrize(
    "script",
    [
        "cat <<EOF >store.json\nit's {$A\nEOF\nx",
        "python3 - <<'END OF' || y\nprint('it\"s)\nEND OF\nx",
        "cat <<-\\EOF\n\tit's\n\tEOF\nx",
        "cat <<A <<B\nit's\nA\nit's\nB\nx",
    ],
)
def test_here_document(script: str) -> None:
    """The lines of a here-document are no words of the script."""
    assert words(script)[-2:] == ["\n", "x"]


@pytest.mark.parametrize("script", ['x "<<EOF" y', "x <<<EOF y", "x $((1 << EOF)) y"])
def test_no_here_document(script: str) -> None:
    """What is quoted, a here-string, and a shift of bits begin no here-document."""
    assert words(f"{script}\nz EOF")[-3:] == ["\n", "z", "EOF"]


@pytest.mark.parametrize(
    ("text", "split_up"),
    [
        ("a;b&&c", ["a", ";", "b", "&&", "c"]),
        ("a # it's\nb", ["a", "\n", "b"]),
        ("a#b \\# c", ["a#b", "#", "c"]),
        ("a >log 2>&1 &", ["a", ">log", "2", "&"]),
        ("a &>log", ["a", ">log"]),
        ("a \\\n b", ["a", "b"]),
        ("x $'it\\'s\\t\\x41\\u00e9\\101' $\"b\"", ["x", "it's\tAéA", "b"]),
        ("x \"${A:?the 'head}s'}\"", ["x", "@"]),
        ("x <(sort 'a)')", ["x", "@"]),
    ],
)
def test_split(text: str, split_up: list[str]) -> None:
    """Words and signs are told apart as in bash; comments and moved streams are left out."""
    assert words(text) == split_up
