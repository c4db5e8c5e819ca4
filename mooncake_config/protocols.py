"""Transfer protocols and device lists."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mooncake_config.damage import matcher, refuse_damage, text_of, whole
from mooncake_config.display import shown
from mooncake_config.findings import Malformed

PROTOCOLS: dict[str, str] = {
    "tcp": "TCP sockets. Works on any routable network.",
    "rdma": "InfiniBand or RoCE. Needs an RDMA device on every node.",
    "efa": "AWS Elastic Fabric Adapter.",
    "cxi": "HPE Slingshot.",
    "ub": "Huawei Unified Bus.",
    "ubshmem": "Huawei Unified Bus shared memory.",
    "ascend": "Huawei Ascend NPU links.",
    "sunrise_link": "Sunrise accelerator links.",
    "cxl": "CXL shared memory; needs MC_CXL_DEV_SIZE.",
    "nvlink_intra": "NVLink inside one node.",
    "rpc_only": "Metadata only, no data transport.",
}
"""What the Store's client installs a transport for (client_service.cpp), with a word on each. Lower case only there."""

VERBS = frozenset({"rdma", "efa"})
"""Protocols over libibverbs: they need a device, and pin all memory that they move."""

PROTOCOL_PATTERN = whole("|".join(PROTOCOLS))
"""What an editor accepts as protocol: the parser lower-cases, and says so."""

AUTO_DISCOVERY = "auto-discovery"
"""The word that means "pick devices yourself" in device_name, like an empty text (since Mooncake v0.3.12)."""

_DEVICE = "[A-Za-z0-9_.-]+"

DEVICE_PATTERN = whole(rf"{_DEVICE}(?: *, *{_DEVICE})*")
"""What an editor accepts as device_name: RDMA device names, separated by commas."""

_OTHER_WORDS = {"roce": "rdma", "rocev2": "rdma", "infiniband": "rdma", "ib": "rdma", "verbs": "rdma", "socket": "tcp"}
"""What people call a protocol, where no likeness of letters tells it."""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant, or None."""
    table = {_plain(item): item for item in known}
    from difflib import get_close_matches  # only a mistake needs it

    meant = _plain(word[:80])
    matches = get_close_matches(meant, table, n=1, cutoff=0.6)
    # Two of three letters are soon alike; then the first must be.
    if not matches or (matches[0][:1] != meant[:1] and not get_close_matches(meant, matches, cutoff=0.7)):
        return None
    return table[matches[0]]


def _plain(word: str) -> str:
    return re.sub(r"[^a-z0-9]", "", word.lower())


def parse_protocol(raw: object) -> str:
    """A protocol of :data:`PROTOCOLS`, lower-cased.

    Raises:
        Malformed: no text, or a protocol that the Store's client does not know.
    """
    text = text_of(raw, "rdma")
    if text.isascii() and text.lower() in PROTOCOLS:
        return text.lower()
    refuse_damage(text, "rdma", parse_protocol)
    near = _OTHER_WORDS.get(text.lower()) or nearest(text, PROTOCOLS)
    meant = f"did you mean {near}? Known are" if near else "write one of"
    raise Malformed(
        "unknown-protocol",
        f"{shown(text)} is not a protocol of Mooncake Store, whose client would retry for 22 s and end in -1.",
        f"{meant} {', '.join(PROTOCOLS)}.",
    )


def parse_device_name(raw: object) -> str:
    """RDMA device names separated by commas, ``auto-discovery``, or empty text: Mooncake picks.

    Raises:
        Malformed: no text, or a damaged one.
    """
    text = text_of(raw, "mlx5_0")
    if not text or matcher(DEVICE_PATTERN)(text):
        return text
    refuse_damage(text, "mlx5_0", parse_device_name)
    if any(bracket in text for bracket in "{}[]"):
        raise Malformed(
            "device-form",
            f"{shown(text)} is a list or a map in JSON, which Mooncake takes as one odd device name.",
            "write the names with commas, mlx5_0,mlx5_1; where they differ by node, export MOONCAKE_DEVICE on each.",
        )
    return text


def devices_of(device_name: str) -> tuple[str, ...]:
    """The device names of an accepted text; none where Mooncake picks."""
    names = tuple(name.strip() for name in device_name.split(",") if name.strip())
    return () if names == (AUTO_DISCOVERY,) else names


def is_device_name(name: str) -> bool:
    """Whether a text may be the name of an RDMA device."""
    return re.fullmatch(_DEVICE, name) is not None


_OTHER_KINDS = (
    (
        "a word for a choice that Mooncake does not know",
        r"auto|any|all|default|detect|\*|auto[-_ ]?(?:discover(?:y|ed)?|detect)",
    ),
    ("a character device, which is numbered otherwise than the RDMA device", r"(?:uverbs|umad|issm)[0-9]+|rdma_cm"),
    ("an IP address", r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}"),
    ("an accelerator", r"(?:cuda|gpu|npu|rocm|xpu|nvidia)[0-9]*"),
)


def other_kind(name: str) -> str | None:
    """What a word is that has the form of a device's name, and is none; None of what may be one."""
    return next((kind for kind, form in _OTHER_KINDS if re.fullmatch(form, name, re.IGNORECASE)), None)
