"""Process: all that a rule of one process reads, and what its values amount to."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from mooncake_config.addresses import Endpoint, endpoints_of
from mooncake_config.display import masked
from mooncake_config.findings import Fault
from mooncake_config.protocols import VERBS, devices_of
from mooncake_config.provenance import Claim, Ledger, Origin, Source
from mooncake_config.ray_node import NodeAddress
from mooncake_config.settings import FIELDS
from mooncake_config.sizes import BUFFER_RANGE, DEFAULT_CHUNK
from mooncake_config.sources import Environment
from mooncake_config.topology import RANK_VARIABLES, Role, Topology
from mooncake_config.variables import GID_INDEX_NAMES

Value = int | str | None

_ADDRESSES = tuple(spec.name for spec in FIELDS if spec.wiring.address)
_SIZES = {spec.name: spec.wiring.default is not None for spec in FIELDS if spec.takes_numbers}
"""The sizes, and whether each has a default, so that most jobs have one of an ordinary kind."""
_READ = frozenset((*(spec.wiring.variable for spec in FIELDS), GID_INDEX_NAMES[1]))
"""No near miss, and no other tool's: the seven, and the name of NCCL's that the engine reads as well."""


RANK_VARIABLE = Origin(Source.ENV, RANK_VARIABLES[0])
"""Where the local rank is set unless it is given."""


class Backend(str, Enum):
    """The rollout object store of a job."""

    RAY = "ray"
    MOONCAKE = "mooncake"


@dataclass
class Process:
    """One process of the job: who it is, every claim on its settings, and the values that hold.

    ``values`` has each field's validated value, None where it is malformed or nobody claims it; passwords stand in it
    in clear, so no repr shows it. ``variables`` holds the environment variables whose names concern Mooncake, and no
    others. ``rank_origin`` is where the local rank is set, or would be.

    What several rules look at is taken apart once, when the process is made:

    Attributes:
        endpoints: each endpoint that an address field holds, with the field's name.
        odd_endpoints: those that are anything else than an ordinary IPv4 address in its usual form.
        odd_names: field and name of each host among them, and of each device.
        odd_sizes: the sizes below Mooncake's own chunk of 64 MiB or above its largest buffer of 1 TiB, and a chunk size
            that somebody asks for.
        urls: field and address where an address has a scheme.
        device_text: device_name as it is written, empty where there is none.
        own_endpoint: what this client advertises: host, and port where local_hostname has one.
        respelt: field, raw text and value, where a text is not itself the value, nor a size in digits and letters.
        unread_variables: names and texts of the variables that concern Mooncake and are no value here, by name.
        contributed: bytes that this process gives to the Store, None where it gives none or their number is malformed.
    """

    backend: Backend
    role: Role
    topology: Topology
    replica_num: int
    ledger: Ledger
    values: Mapping[str, Value] = field(repr=False)
    faults: tuple[Fault, ...]
    variables: Environment
    node: NodeAddress
    rank_origin: Origin = RANK_VARIABLE
    endpoints: tuple[tuple[str, Endpoint], ...] = field(init=False, repr=False, compare=False)
    odd_endpoints: tuple[tuple[str, Endpoint], ...] = field(init=False, repr=False, compare=False)
    odd_names: tuple[tuple[str, str], ...] = field(init=False, repr=False, compare=False)
    odd_sizes: tuple[int, ...] = field(init=False, repr=False, compare=False)
    urls: tuple[tuple[str, str], ...] = field(init=False, repr=False, compare=False)
    device_text: str = field(init=False, repr=False, compare=False)
    own_endpoint: Endpoint | None = field(init=False, repr=False, compare=False)
    respelt: tuple[tuple[str, str, int | str], ...] = field(init=False, repr=False, compare=False)
    unread_variables: tuple[tuple[str, str], ...] = field(init=False, repr=False, compare=False)
    contributed: int | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        values = self.values
        addresses = [(name, address) for name in _ADDRESSES if isinstance(address := values[name], str)]
        endpoints, odd, names = [], [], []
        for name, address in addresses:
            for endpoint in endpoints_of(address):
                endpoints.append((name, endpoint))
                if not endpoint.is_plain:
                    odd.append((name, endpoint))
                    names.append((name, endpoint.host))
        devices = self.text("device_name") or ""
        if devices:
            names += [("device_name", device) for device in devices_of(devices)]
        sizes = [
            size
            for name, has_default in _SIZES.items()
            if isinstance(size := values[name], int) and not (has_default and DEFAULT_CHUNK <= size <= BUFFER_RANGE[1])
        ]
        respelt = [
            (name, raw, value)
            for name, claims in self.ledger.claims.items()
            if isinstance(raw := claims[0].raw, str)
            and raw != (value := values[name])
            and value is not None
            and (isinstance(value, str) or not raw.isalnum())
        ]
        unread = [item for item in self.variables.variables.items() if item[0] not in _READ]
        self.endpoints = tuple(endpoints)
        self.odd_endpoints = tuple(odd)
        self.odd_names = tuple(names)
        self.odd_sizes = tuple(sizes)
        self.urls = tuple([item for item in addresses if "://" in item[1]])
        self.device_text = devices
        self.own_endpoint = dict(endpoints).get("local_hostname")
        self.respelt = tuple(respelt)
        self.unread_variables = tuple(sorted(unread))
        contributes = self.topology.contributes_segment(self.role)
        self.contributed = self.size("global_segment_size") if contributes else None

    @property
    def open_fields(self) -> tuple[str, ...]:
        """The fields that a launch script sets to what only a run of it tells, each once."""
        told = (fault.fields for fault in self.faults if fault.offence == "known-at-run-time")
        return tuple(dict.fromkeys(name for fields in told for name in fields))

    @property
    def contributes_segment(self) -> bool:
        """Whether this process gives memory to the Store."""
        return self.topology.contributes_segment(self.role)

    def text(self, name: str) -> str | None:
        """The value of a text field, None where there is none."""
        value = self.values[name]
        return value if isinstance(value, str) else None

    def size(self, name: str) -> int | None:
        """The value of a size field in bytes, None where there is none."""
        value = self.values[name]
        return value if isinstance(value, int) else None

    def winner(self, name: str) -> Claim | None:
        """The claim that holds."""
        return self.ledger.winner(name)

    def engine_variable(self, name: str) -> str:
        """The text of a variable of Mooncake's engine, empty where it is unset."""
        return self.variables.variables.get(name, "").strip()

    @property
    def uses_verbs(self) -> bool:
        """Whether RDMA is asked for, which pins all memory that it moves, and no engine variable takes it back."""
        forced = self.engine_variable("MC_FORCE_TCP").lower() not in ("", "0", "false", "off", "no")
        return self.text("protocol") in VERBS and not forced

    def clients_memory(self, clients: int | None, segments: int) -> int | None:
        """Bytes that Store clients of one node reserve, :func:`memory_of` with the sizes that hold; None: unknown."""
        buffer, segment = self.size("local_buffer_size"), self.size("global_segment_size")
        if clients is None or buffer is None or segment is None:
            return None
        return memory_of(clients, buffer, segments, segment)

    @property
    def node_memory(self) -> int | None:
        """Bytes that the trainers of one node reserve: each its buffer, and one of them the segment."""
        return self.clients_memory(self.topology.processes_per_node, 1)


def memory_of(clients: int, buffer: int, segments: int, segment: int) -> int:
    """Bytes that Store clients of one node reserve: each its local buffer, and some of them a segment."""
    return clients * buffer + segments * segment


def setup_kwargs(process: Process) -> dict[str, int | str]:
    """The dictionary for ``MooncakeDistributedStore.setup``: Mooncake's own names, in bytes and text.

    A process that contributes no segment hands over 0 for it. Only for a process without errors.
    """
    handed: dict[str, int | str] = {}
    for spec in FIELDS:
        value = process.values[spec.name]
        if spec.wiring.engine and value is not None:
            withheld = spec.wiring.contributed and not process.contributes_segment
            handed[spec.wiring.engine] = 0 if withheld else value
    return handed


def fingerprint(process: Process) -> str | None:
    """Equal on all nodes that belong together: a hash over the values that they must agree on, secrets masked first."""
    agreed = [process.text(spec.name) for spec in FIELDS if spec.wiring.agreed]
    if process.backend is not Backend.MOONCAKE or not all(agreed):
        return None
    text = json.dumps([masked(value) for value in agreed if value])
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()
