"""Environment variables that are no value here and still matter: near misses, other tools' names, the engine's own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from mooncake_config.settings import FIELDS

READ = frozenset(spec.wiring.variable for spec in FIELDS if spec.wiring.variable)
"""The seven variables that are read as values."""

_PREFIX = "MOONCAKE_"
_TAILS = tuple(sorted(name.removeprefix(_PREFIX) for name in READ))

BARE: dict[str, str] = {
    **{spec.name.upper(): spec.wiring.variable for spec in FIELDS if spec.wiring.variable},
    "MASTER_SERVER_ADDR": "MOONCAKE_MASTER",
    "TE_META_DATA_SERVER": "MOONCAKE_TE_META_DATA_SERVER",
}
"""Names without the prefix. Common words, so they matter only where the prefixed variable is unset."""

_BARE_NAMES = frozenset(spelt for name in BARE for spelt in (name, name.lower()))

FOREIGN: dict[str, str] = {
    "MOONCAKE_CONFIG_PATH": "vLLM, SGLang, the master and Mooncake's own config class read a JSON file from it",
    "MOONCAKE_CONFIG": "it looks like MOONCAKE_CONFIG_PATH, which other tools read",
    "SGLANG_HICACHE_MOONCAKE_CONFIG_PATH": "SGLang reads a JSON file from it",
    "MOONCAKE_STORE_INIT_KWARGS": "launch scripts keep the JSON of --mooncake-store-init-kwargs in it",
    "MOONCAKE_IB_GID_INDEX": "it looks like a name for MC_GID_INDEX, which is what the engine reads",
    "MC_IB_GID_INDEX": "it looks like a name for MC_GID_INDEX, which is what the engine reads",
}
"""Names that carry settings for another tool and none here."""

FOREIGN_SWITCHES: dict[str, str] = {
    "MOONCAKE_CLIENT": "SGLang reads the address of its standalone client from it",
    "MOONCAKE_STANDALONE_STORAGE": "SGLang reads it",
    "MOONCAKE_STANDALONE_CLIENT": "SGLang reads it",
    "MOONCAKE_CHECK_SERVER": "SGLang reads it",
    "MOONCAKE_MASTER_METRICS_PORT": "SGLang reads it",
    "MOONCAKE_ENABLE_SSD_OFFLOAD": "SGLang reads it",
}
"""Names of another tool's own switches, which stand for none of the eight fields."""

ELSEWHERE: dict[str, str] = {
    "MOONCAKE_CHUNK_BYTES": "chunk_bytes in --mooncake-store-init-kwargs",
    "MOONCAKE_CHUNK_SIZE": "chunk_bytes in --mooncake-store-init-kwargs",
    "MOONCAKE_REPLICA_NUM": "--mooncake-replica-num",
    "MOONCAKE_REPLICAS": "--mooncake-replica-num",
    "MOONCAKE_NUM_REPLICAS": "--mooncake-replica-num",
    "MOONCAKE_STORE_REPLICA_NUM": "--mooncake-replica-num",
    "MOONCAKE_OBJECT_STORE_BACKEND": "--object-store-backend",
}
"""Names for settings that no variable gives, and what gives them."""

ENGINE_NAMES = (
    _PREFIX + r"(?:HOST_ID|TENANT_ID|STORE_CHECKSUM|USE_URING|SCANMETA_ITERATOR_KEYS_LIMIT|SNAPSHOT_LOCAL_PATH"
    r"|CLIENT_HTTP_PORT|ENABLE_CLIENT_HTTP_SERVER|ENABLE_DFS|MASTER_SERVICE_SNAPSHOT_TEST_SKIP_CLEANUP"
    r"|(?:OFFLOAD|OFFSET|BUCKET|DISK|DFS|DISTRIBUTED|NVME_KV|AWS|EP|PG|DATAPROTO)_[A-Z0-9_]+)"
)
"""Names that Mooncake 0.3.13 itself reads, found in its binaries and Python modules, by family."""

_SCRIPT_NAMES = _PREFIX + r"(?:LOGS?|HOME|VERSION|ROOT|DIR|PATH|BUILD|TEST|MASTER_BIN|MASTER_LOG)(?:_.*)?"
"""Names that launch and build scripts keep paths and the like in."""

_ADDRESS = r"(?:_(?:ADDR|ADDRESS|HOST|HOSTNAME|IP|NAME|ENDPOINTS?|URL|URI|PORT))*"
_AMOUNT = r"(?:_SIZE)?(?:_(?:BYTES|B|KB|MB|GB|TB|MIB|GIB))?"
_WORDINGS: tuple[tuple[str, str], ...] = tuple(
    (variable, rf"_*(?:(?:STORE|TE|TRANSFER|ENGINE|CLIENT|DEFAULT)_)?(?:{tail})_*")
    for variable, tail in (
        ("MOONCAKE_MASTER", rf"(?:RPC_)?MASTERS?(?:_(?:SERVER|SERVICE|NODE|RPC))?{_ADDRESS}"),
        ("MOONCAKE_TE_META_DATA_SERVER", rf"(?:HTTP_|ETCD_)?META(?:_?DATA)?(?:_(?:SERVER|SERVICE|STORE))?{_ADDRESS}"),
        ("MOONCAKE_LOCAL_HOSTNAME", rf"(?:LOCAL|NODE|SELF|MY)_(?:HOST|HOSTNAME|IP|ADDR|ADDRESS){_ADDRESS}|HOSTNAME"),
        ("MOONCAKE_PROTOCOL", r"(?:TRANSFER_|TRANSPORT_|RDMA_)?(?:PROTOCOL|PROTO|TRANSPORT)(?:_(?:NAME|TYPE))?"),
        ("MOONCAKE_DEVICE", r"(?:(?:LOCAL|RDMA|IB|ROCE|NIC|HCA)_)*(?:DEVICE|DEV|NIC|HCA)S?(?:_(?:NAMES?|LIST))?"),
        ("MOONCAKE_GLOBAL_SEGMENT_SIZE", rf"(?:GLOBAL_|LOCAL_)?SEGMENT{_AMOUNT}|(?:GLOBAL|STORE)_SIZE|STORE_GB"),
        ("MOONCAKE_LOCAL_BUFFER_SIZE", rf"(?:LOCAL_)?BUFFER{_AMOUNT}"),
    )
)
"""Other words for the same thing behind the prefix, as guides, scripts and other tools have them."""

_LINK = (
    r"(?P<service>MOONCAKE(?:_[A-Z0-9]+)*?)_"
    r"(?:(?P<host>SERVICE_HOST)|(?P<port>SERVICE_PORT(?:_[A-Z0-9_]+)?)|(?P<url>PORT)|PORT_[0-9]+_(?:TCP|UDP|SCTP)(?:_(?:ADDR|PORT|PROTO))?)"
)
_LINK_URL = r"(?:tcp|udp|sctp)://.+"
_NOT_THE_MASTER = r"META|ETCD|REDIS|METRIC|HTTP|PROMETHEUS|GRAFANA|^(?!.*MASTER).*(?:STORE|CLIENT)"

GID_INDEX_NAMES = ("MC_GID_INDEX", "NCCL_IB_GID_INDEX")
"""Which entry of the GID table the engine takes; the second name where the first is unset (config.cpp)."""

_OTHER_NAMES = frozenset((*_BARE_NAMES, *FOREIGN, *GID_INDEX_NAMES))
_RELATED_STARTS = ("MOONCAKE", "mooncake", "Mooncake", "MoonCake", "MC_", "mc_")

_FIRST_LETTERS = frozenset(start[0] for start in _RELATED_STARTS)
_ENDS = frozenset(name[-3:] for name in (*_TAILS, *_OTHER_NAMES))


def related_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables whose names concern Mooncake: by their beginning, as a bare field name, or by the end of a name.

    The end finds a prefix that is misspelt (``MOONCKE_MASTER``).
    """
    # Every start goes through the whole environment, so a few letters decide first, and most names end there.
    return {
        name: environ[name]
        for name in environ
        if (name[-3:] in _ENDS and (name.endswith(_TAILS) or name in _OTHER_NAMES))
        or (name[:1] in _FIRST_LETTERS and name.startswith(_RELATED_STARTS))
    }


def is_service_link(name: str, value: str) -> bool:
    """Whether Kubernetes injected the variable for a Service whose name begins with mooncake.

    ``MOONCAKE_MASTER_PORT`` is one only where it holds a URL; a bare number was written by a person.
    """
    match = re.fullmatch(_LINK, name)
    return match is not None and (match["url"] is None or re.fullmatch(_LINK_URL, value) is not None)


def is_known_elsewhere(name: str) -> bool:
    """Whether the name is one of Mooncake's own or of scripts around it, with no bearing on the eight fields."""
    return bool(re.fullmatch(ENGINE_NAMES, name) or re.fullmatch(_SCRIPT_NAMES, name)) or name in FOREIGN_SWITCHES


def meant_by(name: str, value: str) -> str | None:
    """The one of the seven variables that was probably meant by another name, or None.

    Args:
        value: what the variable holds, which tells a Service link from a name that a person made up.
    """
    if name in READ or name in FOREIGN or name in ELSEWHERE or is_known_elsewhere(name) or is_service_link(name, value):
        return None
    upper = name.upper()
    if upper in READ:
        return upper
    return BARE.get(upper) or _by_wording(upper) or _by_spelling(upper)


def is_bare(name: str) -> bool:
    """Whether the name is a common word, which may be meant for another program altogether."""
    return name in _BARE_NAMES


def _by_wording(name: str) -> str | None:
    for prefix in ("MOONCAKE", "MC_"):
        if name.startswith(prefix):
            tail = name[len(prefix) :]
            return next((variable for variable, words in _WORDINGS if re.fullmatch(words, tail)), None)
    return None


def _by_spelling(name: str) -> str | None:
    """The variable that the name is a slip of the hand away from; underscores left out or added count for nothing."""
    if name.startswith("MC_"):
        return None
    letters = name.replace("_", "")
    for variable in READ:
        known = variable.replace("_", "")
        if _slips(letters, known) <= (2 if len(known) > 20 else 1):
            return variable
    return None


def _slips(word: str, known: str) -> int:
    """Letters dropped, added, replaced or swapped with their neighbour between two words; 3 where there are more."""
    if abs(len(word) - len(known)) > 2:
        return 3
    before: list[int] = []
    row = list(range(len(known) + 1))
    for i, letter in enumerate(word):
        two_before, before, row = before, row, [i + 1]
        for j, wanted in enumerate(known):
            cost = min(before[j + 1] + 1, row[j] + 1, before[j] + (letter != wanted))
            if i and j and letter == known[j - 1] and word[i - 1] == wanted:
                cost = min(cost, two_before[j - 1] + 1)
            row.append(cost)
    return row[-1]


def kubernetes_master(variables: Mapping[str, str]) -> str | None:
    """host:port of the Kubernetes Service of a master, where one was injected."""
    for name, host in sorted(variables.items(), key=lambda item: ("MASTER" not in item[0], item)):
        match = re.fullmatch(_LINK, name)
        if match and match["host"] and host and not re.search(_NOT_THE_MASTER, match["service"]):
            port = _service_port(match["service"], variables)
            if port:
                return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return None


def _service_port(service: str, variables: Mapping[str, str]) -> str | None:
    """The port that speaks RPC: by its name, else by the master's default, else the first of the Service."""
    first = f"{service}_SERVICE_PORT"
    ports = {name: value for name, value in sorted(variables.items()) if name.startswith(first) and value.isdigit()}
    by_name: Iterable[str] = (value for name, value in ports.items() if "RPC" in name.removeprefix(first))
    by_default: Iterable[str] = (value for value in ports.values() if value == "50051")
    return next(iter((*by_name, *by_default, *ports.values())), None)
