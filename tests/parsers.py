"""The parsers of addresses, each beside the pattern that an editor has."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mooncake_config.address_parsers import parse_hostname, parse_master, parse_metadata
from mooncake_config.addresses import HOSTNAME_PATTERN, MASTER_PATTERN, METADATA_PATTERN

Parse = Callable[[object], str]

each_parser = pytest.mark.parametrize(
    ("parse", "pattern"),
    [(parse_master, MASTER_PATTERN), (parse_metadata, METADATA_PATTERN), (parse_hostname, HOSTNAME_PATTERN)],
    ids=["master", "metadata", "hostname"],
)
