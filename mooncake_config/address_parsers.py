"""The parsers of the three addresses: each takes what its form matches, and nothing else."""

from __future__ import annotations

from mooncake_config.addresses import (
    HOSTNAME_EXAMPLE,
    HOSTNAME_PATTERN,
    MASTER_EXAMPLE,
    MASTER_PATTERN,
    METADATA_EXAMPLE,
    METADATA_PATTERN,
    P2P,
    PLAIN_HOSTNAME,
    PLAIN_MASTER,
    PLAIN_METADATA,
)
from mooncake_config.damage import matcher, text_of


def parse_master(raw: object) -> str:
    """A master address: ``host:port``, ``[v6]:port``, ``etcd://h:p;h:p``, ``redis://h[:p]``, ``k8s://[ns/]lease``.

    Source: client_service.cpp and ha_types.h of Mooncake; schemes are lower case there and the port is never added.

    Raises:
        Malformed: any other form.
    """
    text = text_of(raw, MASTER_EXAMPLE)
    if matcher(MASTER_PATTERN if "[" in text else PLAIN_MASTER)(text):
        return text
    from mooncake_config.address_refusals import why_not_master  # only a mistake needs it

    raise why_not_master(text, parse_master)


def parse_metadata(raw: object) -> str:
    """A metadata server: ``P2PHANDSHAKE``, ``http(s)://host[:port]/path``, ``etcd://h:p;…`` or ``redis://…``.

    Source: transfer_metadata_plugin.cpp; an unknown scheme aborts the process, a missing one is taken as etcd.

    Raises:
        Malformed: any other form.
    """
    text = text_of(raw, METADATA_EXAMPLE)
    if text == P2P or matcher(METADATA_PATTERN if "[" in text else PLAIN_METADATA)(text):
        return text
    from mooncake_config.address_refusals import why_not_metadata  # only a mistake needs it

    raise why_not_metadata(text, parse_metadata)


def parse_hostname(raw: object) -> str:
    """A name or an IP, with or without a port: ``10.0.0.7``, ``node-7:12345``, ``fd00::7``, ``[fd00::7]:12345``.

    Source: common.h of Mooncake's transfer engine (IPv6 since v0.3.12).

    Raises:
        Malformed: any other form.
    """
    text = text_of(raw, HOSTNAME_EXAMPLE)
    if matcher(HOSTNAME_PATTERN if "[" in text or text.count(":") > 1 else PLAIN_HOSTNAME)(text):
        return text
    from mooncake_config.address_refusals import why_not_hostname  # only a mistake needs it

    raise why_not_hostname(text, parse_hostname)
