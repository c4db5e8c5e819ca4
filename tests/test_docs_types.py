"""The table of types in the docs is true, row by row, with the real stores."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from test_store_mooncake import resolved

from mooncake_config.store import CODECS, ObjectStore, ValueSpec, open_object_store
from mooncake_config.store.master import start_mooncake_master
from mooncake_config.store.mooncake import MooncakeObjectStore
from mooncake_config.store.ray import private_ray

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "types.md"
ROW = re.compile(r"^\| `(?P<put>.+?)` \| (?P<spec>.+?) \| (?P<out>.+?) \| (?P<mooncake>.+?) \| (?P<ray>.+?) \|$", re.M)


class Row(NamedTuple):
    """A row of the table."""

    put: str
    spec: str
    out: str
    mooncake: str
    ray: str

    def fields(self) -> tuple[dict[str, Any], dict[str, ValueSpec]]:
        """The dictionary to put, and its specs."""
        names: dict[str, Any] = {"np": np}
        if "torch" in self.put:
            names["torch"] = pytest.importorskip("torch")
        words = re.findall(r"`(\w+)`", self.spec)
        return {"field": eval(self.put, names)}, {"field": ValueSpec(*words)} if words else {}


ROWS = [Row(*found.groups()) for found in ROW.finditer(PAGE.read_text("utf-8"))]


def described(value: Any) -> str:
    """A value as the table says it."""
    if isinstance(value, np.ndarray):
        return f"ndarray {value.dtype}"
    if type(value).__name__ == "Tensor":
        return f"tensor {str(value.dtype).removeprefix('torch.')}"
    items = list(value.values()) if isinstance(value, dict) else value
    name = type(value).__name__
    return f"{name} of {described(items[0])}" if isinstance(value, (list, tuple, dict)) and items else name


def numbers(value: Any) -> Any:
    """The first array or tensor in a value, or None."""
    while isinstance(value, (list, tuple, dict)) and value:
        value = next(iter(value.values())) if isinstance(value, dict) else value[0]
    return value if isinstance(value, np.ndarray) or type(value).__name__ == "Tensor" else None


def is_writable(array: Any) -> bool:
    """Whether a number can be written."""
    return bool(array.flags.writeable) if isinstance(array, np.ndarray) else bool(array.fill_(7)[0] == 7)


def test_every_codec() -> None:
    """The table has a row for each codec."""
    assert {word for row in ROWS for word in re.findall(r"^`(\w+)`", row.spec)} == set(CODECS)


@pytest.fixture(scope="module")
def store() -> Iterator[MooncakeObjectStore]:
    """One store for the module."""
    with start_mooncake_master() as master, open_object_store("mooncake", resolved(master.address)) as opened:
        yield opened


def comes_out(opened: ObjectStore[Any], row: Row) -> Iterator[Any]:
    """What comes out of a store, while it is held; it is the table's."""
    ref = opened.put(*row.fields())
    with opened.get(ref) as got:
        assert described(got["field"]) == row.out
        yield got["field"]
    opened.remove(ref)


@pytest.mark.mooncake
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.put} {row.spec}")
def test_mooncake(store: MooncakeObjectStore, row: Row) -> None:
    """With Mooncake a value comes out of the type and on the memory that the table says."""
    for value in comes_out(store, row):
        array = numbers(value)
        if array is None:
            assert row.mooncake == "objects"
            continue
        memory = "transfer buffer" if store.unreleased else "copy"
        assert row.mooncake == f"{memory}, {'writable' if is_writable(array) else 'read-only'}"


@pytest.fixture(scope="module")
def ray_store() -> Iterator[ObjectStore[Any]]:
    """A store of a Ray of one's own for the module."""
    with private_ray(), open_object_store("ray") as opened:
        yield opened


@pytest.mark.ray
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.put} {row.spec}")
def test_ray(ray_store: ObjectStore[Any], row: Row) -> None:
    """With Ray a value comes out of the same type, and its arrays are read-only: they lie in shared memory."""
    for value in comes_out(ray_store, row):
        array = numbers(value)
        if array is None:
            assert row.ray == "objects"
        elif is_writable(array):
            assert row.ray == "copy, writable"
        else:
            assert row.ray == "shared memory, read-only"
