"""What a store's ``get`` gives: a dictionary for the body of a ``with`` statement, and an answer outside of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from types import TracebackType
from typing import Any, NoReturn, ParamSpec

_Asked = ParamSpec("_Asked")
_WAY = "a stored dictionary is read inside of a with statement: with store.get(ref) as rollout: …"


class Reading(AbstractContextManager[dict[str, Any]]):
    """A context manager that is no dictionary, and says so to whoever takes it for one."""

    def __init__(self, opened: AbstractContextManager[dict[str, Any]]) -> None:
        self._opened = opened

    def __enter__(self) -> dict[str, Any]:
        return self._opened.__enter__()

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return self._opened.__exit__(exc_type, exc, traceback)

    def __iter__(self) -> NoReturn:
        raise TypeError(_WAY)

    def __getitem__(self, field: object) -> NoReturn:
        raise TypeError(_WAY)

    def __contains__(self, field: object) -> NoReturn:
        raise TypeError(_WAY)

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{name}: {_WAY}")


def reading(opens: Callable[_Asked, Iterator[dict[str, Any]]]) -> Callable[_Asked, Reading]:
    """``contextlib.contextmanager``, for the ``get`` of a store."""
    opened = contextmanager(opens)

    @wraps(opens)
    def get(*args: _Asked.args, **named: _Asked.kwargs) -> Reading:
        return Reading(opened(*args, **named))

    return get
