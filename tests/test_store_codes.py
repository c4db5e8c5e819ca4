"""The table of Mooncake's error codes."""

from __future__ import annotations

import pytest

from mooncake_config.store.codes import CODES, code_of


def test_every_code_is_explained() -> None:
    """Each of the 72 codes has a name of its own, a meaning and something to do."""
    assert len(CODES) == 72
    assert len({code.name for code in CODES.values()}) == len(CODES)
    for number, code in CODES.items():
        assert number == code.number <= 0
        assert code.name.isupper()
        assert code.meaning
        assert code.remedy.endswith((".", "?"))


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (0, "OK"),
        (-1, "INTERNAL_ERROR"),
        (-200, "NO_AVAILABLE_HANDLE"),
        (-600, "INVALID_PARAMS"),
        (-704, "OBJECT_NOT_FOUND"),
        (-714, "OBJECT_REPLICA_BUSY"),
        (-800, "TRANSFER_FAIL"),
        (-901, "RPC_TIMEOUT"),
        (-1011, "UNAVAILABLE_IN_CURRENT_MODE"),
        (-1106, "FILE_INVALID_HANDLE"),
        (-1605, "DFS_PARTIAL_WRITE"),
        (-1702, "TENANT_NOT_EMPTY"),
    ],
)
def test_names(number: int, name: str) -> None:
    """A number has the native client's name."""
    assert CODES[number].name == name
    assert str(CODES[number]).startswith(f"{number} {name}: ")


def test_unknown_code() -> None:
    """A number of a newer release is described as unknown, not an error of its own."""
    assert code_of(-9999).name == "UNKNOWN"
    assert code_of(-704) is CODES[-704]
