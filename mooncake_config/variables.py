"""Environment variables that are no value here and still matter: near misses, other tools' names, the engine's own."""

from __future__ import annotations

import re
from collections.abc import Mapping

from mooncake_config.settings import FIELDS

READ = frozenset(spec.wiring.variable for spec in FIELDS if spec.wiring.variable)
"""The seven variables that are read as values."""

LOOK_ALIKES: dict[str, str] = {
    "MOONCAKE_MASTER_ADDR": "MOONCAKE_MASTER",
    "MOONCAKE_MASTER_ADDRESS": "MOONCAKE_MASTER",
    "MOONCAKE_MASTER_SERVER": "MOONCAKE_MASTER",
    "MOONCAKE_MASTER_SERVER_ADDR": "MOONCAKE_MASTER",
    "MOONCAKE_MASTER_SERVER_ADDRESS": "MOONCAKE_MASTER",
    "MOONCAKE_METADATA_SERVER": "MOONCAKE_TE_META_DATA_SERVER",
    "MOONCAKE_TE_METADATA_SERVER": "MOONCAKE_TE_META_DATA_SERVER",
    "MOONCAKE_META_DATA_SERVER": "MOONCAKE_TE_META_DATA_SERVER",
    "MOONCAKE_DEVICE_NAME": "MOONCAKE_DEVICE",
    "MOONCAKE_DEVICES": "MOONCAKE_DEVICE",
    "MOONCAKE_RDMA_DEVICE": "MOONCAKE_DEVICE",
    "MOONCAKE_RDMA_DEVICES": "MOONCAKE_DEVICE",
    "MOONCAKE_IB_DEVICE": "MOONCAKE_DEVICE",
    "MOONCAKE_HOSTNAME": "MOONCAKE_LOCAL_HOSTNAME",
    "MOONCAKE_LOCAL_HOST": "MOONCAKE_LOCAL_HOSTNAME",
    "MOONCAKE_LOCAL_IP": "MOONCAKE_LOCAL_HOSTNAME",
    "MOONCAKE_SEGMENT_SIZE": "MOONCAKE_GLOBAL_SEGMENT_SIZE",
    "MOONCAKE_BUFFER_SIZE": "MOONCAKE_LOCAL_BUFFER_SIZE",
}
"""Names seen in guides and other tools, and the one that is read here."""

BARE: dict[str, str] = {
    "LOCAL_HOSTNAME": "MOONCAKE_LOCAL_HOSTNAME",
    "MASTER_SERVER_ADDRESS": "MOONCAKE_MASTER",
    "MASTER_SERVER_ADDR": "MOONCAKE_MASTER",
    "METADATA_SERVER": "MOONCAKE_TE_META_DATA_SERVER",
    "TE_META_DATA_SERVER": "MOONCAKE_TE_META_DATA_SERVER",
    "GLOBAL_SEGMENT_SIZE": "MOONCAKE_GLOBAL_SEGMENT_SIZE",
    "LOCAL_BUFFER_SIZE": "MOONCAKE_LOCAL_BUFFER_SIZE",
    "PROTOCOL": "MOONCAKE_PROTOCOL",
    "DEVICE_NAME": "MOONCAKE_DEVICE",
}
"""Names without the prefix. Common words, so they matter only where the prefixed variable is unset."""

FOREIGN: dict[str, str] = {
    "MOONCAKE_CONFIG_PATH": "vLLM, SGLang and Mooncake's own config class read a JSON file from it",
    "MOONCAKE_STORE_INIT_KWARGS": "launch scripts keep the JSON of --mooncake-store-init-kwargs in it",
    "MOONCAKE_IB_GID_INDEX": "it looks like a name for MC_GID_INDEX, which is what the engine reads",
    "MOONCAKE_CONFIG": "it looks like MOONCAKE_CONFIG_PATH, which other tools read",
}
"""Names that carry settings for another tool and none here."""

KNOWN_OTHERS = re.compile(
    r"MOONCAKE_(LOG(_.*)?|LOGS?|HOME|VERSION|ROOT|DIR|HOST_ID|TENANT_ID|CHECK_SERVER|STORE_CHECKSUM|OFFLOAD_.*|DFS_.*"
    r"|NVME_KV_.*|AWS_.*|STANDALONE_CLIENT|ENABLE_.*|BUILD_.*)"
)
"""Real names of Mooncake and of its users' scripts that have nothing to do with the eight fields."""

KUBERNETES_LINK = re.compile(
    r"MOONCAKE(_[A-Z0-9]+)*_(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT|PORT_[0-9]+_(TCP|UDP|SCTP)(_(ADDR|PORT|PROTO))?)"
)
"""What Kubernetes injects for a Service whose name begins with mooncake."""

_RELATED = re.compile(r"(?i)mooncake|mc_")


def related_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables whose names concern Mooncake: ``MOONCAKE*``, ``MC_*`` in any case, and bare field names."""
    return {name: environ[name] for name in environ if _RELATED.match(name) or name in BARE}


def kubernetes_master(variables: Mapping[str, str]) -> str | None:
    """host:port of a Kubernetes Service of the master, where one was injected."""
    for name, host in sorted(variables.items()):
        if name.endswith("_SERVICE_HOST") and KUBERNETES_LINK.fullmatch(name) and host:
            port = variables.get(name[: -len("HOST")] + "PORT")
            if port and port.isdigit():
                return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return None
