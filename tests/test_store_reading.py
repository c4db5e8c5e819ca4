"""The result of get: a dictionary inside of a with statement, and an answer outside of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mooncake_config.store.reading import Reading, reading

WAY = r"a stored dictionary is read inside of a with statement: with store\.get\(ref\) as rollout: …$"


class Shelf:
    """A store of one dictionary, which notes when it is given back."""

    def __init__(self) -> None:
        self.events: list[str] = []

    @reading
    def get(self, field: str) -> Iterator[dict[str, Any]]:
        """Gives a dictionary of one field."""
        self.events.append("open")
        try:
            yield {field: 1}
        finally:
            self.events.append("given back")


def test_with() -> None:
    """Inside of a with statement it is the dictionary, and leaving gives that back."""
    shelf = Shelf()
    with shelf.get("tokens") as got:
        assert got == {"tokens": 1}
        assert shelf.events == ["open"]
    assert shelf.events == ["open", "given back"]


def test_with_that_fails() -> None:
    """What is raised in the body comes out of it, behind the giving back."""
    shelf = Shelf()
    with pytest.raises(ZeroDivisionError), shelf.get("tokens"):
        raise ZeroDivisionError
    assert shelf.events == ["open", "given back"]


@pytest.mark.parametrize(
    ("slip", "error"),
    [
        (dict, TypeError),
        (list, TypeError),
        (lambda got: got["tokens"], TypeError),
        (lambda got: "tokens" in got, TypeError),
        (lambda got: got.items(), AttributeError),
    ],
    ids=["dict", "list", "field", "in", "items"],
)
def test_without_with(slip: Callable[[Reading], object], error: type[Exception]) -> None:
    """Without one the statement that is missing is told, and nothing was opened."""
    shelf = Shelf()
    with pytest.raises(error, match=WAY):
        slip(shelf.get("tokens"))
    assert shelf.events == []


def test_documented() -> None:
    """The docstring and the name of the method stay."""
    assert (Shelf.get.__doc__, Shelf.get.__name__) == ("Gives a dictionary of one field.", "get")
