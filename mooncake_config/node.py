"""Node: process, host and probe answers of one machine, all that a rule about a machine reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mooncake_config.addresses import ip_of, is_loopback
from mooncake_config.host import Host, RdmaDevice
from mooncake_config.probe import Probes
from mooncake_config.process import Process
from mooncake_config.protocols import devices_of
from mooncake_config.topology import Role
from mooncake_config.variables import GID_INDEX_NAMES


@dataclass(frozen=True)
class Node:
    """One process of the job on one host."""

    process: Process
    host: Host
    probes: Probes

    @property
    def several_nodes(self) -> bool | None:
        """Whether the job has more than one node; None: unknown."""
        return self.process.topology.several_nodes

    @property
    def uses_verbs(self) -> bool:
        """Whether the configuration asks for RDMA, and no engine variable takes it back."""
        return self.process.uses_verbs

    def variable(self, name: str) -> str:
        """The text of an engine variable, empty where it is unset."""
        return self.process.engine_variable(name)

    @property
    def gid_index(self) -> tuple[str, int] | None:
        """The variable that chooses an entry of the GID table, and the entry; None where the engine picks."""
        name = next((name for name in GID_INDEX_NAMES if self.variable(name)), GID_INDEX_NAMES[0])
        text = self.variable(name)
        return (name, int(text)) if text.isascii() and text.isdigit() and len(text) < 4 else None

    @property
    def named_devices(self) -> tuple[str, ...]:
        """The devices that device_name asks for; none where Mooncake picks."""
        return devices_of(self.process.text("device_name") or "")

    @property
    def used_devices(self) -> tuple[RdmaDevice, ...]:
        """The existing devices that Mooncake would use: the named ones, else all."""
        named, found = self.named_devices, self.host.rdma_devices or ()
        return tuple(device for device in found if not named or device.name in named)

    @property
    def own_memory(self) -> int | None:
        """Bytes that this process alone reserves: its buffer, and its segment where it contributes one."""
        return self.process.clients_memory(1, int(self.process.contributes_segment))

    @property
    def clients(self) -> int:
        """The Store's clients on this node; where their number is unknown this process alone."""
        return self.process.topology.processes_per_node or 1

    @property
    def segments(self) -> int:
        """How many of them contribute a segment: of a node's trainers one, whichever we are."""
        alone = self.process.topology.processes_per_node is None
        return int(self.process.contributes_segment if alone else self.process.role is Role.TRAINER)

    @property
    def job_memory(self) -> int | None:
        """Bytes that these clients reserve."""
        return self.process.clients_memory(self.clients, self.segments)

    def addresses_of(self, name: str, host: str) -> tuple[str, ...]:
        """The addresses of a host that a setting names: itself, what this machine's resolver says, or its table.

        For a host that was copied away its own table speaks first, and this machine's resolver after it.
        """
        if ip_of(host) is not None:
            return (str(ip_of(host)),)
        live = tuple(item for answer in self.probes.of(name) if answer.host == host for item in answer.addresses)
        table = self.host.mapped(host)
        return (table or live) if self.host.is_copy else (live or table)

    def is_own(self, address: str) -> bool | None:
        """Whether an IP is one of this host's; None where its addresses of that family are unknown."""
        ip = ip_of(address)
        if ip is None:
            return None
        if is_loopback(address):
            return True
        known = self.host.ipv4 if ip.version == 4 else self.host.ipv6
        return None if known is None else str(ip) in known

    def claimed(self, name: str) -> bool:
        """Whether a person wrote this setting: in the init kwargs or in a variable."""
        winner = self.process.winner(name)
        return winner is not None and winner.origin.is_written

    def devices_behind(self, name: str) -> Iterator[RdmaDevice]:
        """The RDMA devices that stand behind a network interface."""
        return (device for device in self.host.rdma_devices or () if name in device.interfaces)
