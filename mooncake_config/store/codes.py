"""Mooncake's error codes: what each is called, what it says, what to do about it.

Numbers and names are those of the native client's ``ErrorCode`` (mooncake-store ``types.h``). The Transfer Engine
counts differently: a ``rc=-200`` in the native log is its ERR_METADATA, not NO_AVAILABLE_HANDLE.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Code:
    """One number that the native client returns."""

    number: int
    name: str
    meaning: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.number} {self.name}: {self.meaning}"


_REPORT = "This is a fault inside Mooncake: keep the native log, and compare the versions of client and master."
_MASTER_LOG = "Read the log of mooncake_master at this time; it names the request that it refused."
_RETRY = "Try again; if it stays, look for this key in the log of mooncake_master."
_SSD = (
    "It concerns offloading to disk, which this library does not switch on: see who set MOONCAKE_OFFLOAD_* variables."
)
_DFS = "It concerns the DFS tier: see the MOONCAKE_DFS_* variables and the file system behind them."
_HA = "Look at the backend of the master's high availability: is it reached, has it a quorum, is the cluster id right?"
_TASK = "It concerns copy and move tasks, which this library does not start: see who else uses this master."
_TENANT = "It concerns tenants: the master runs with --enable_multi_tenants; ask who administers it."
_SPACE = "Remove objects that were read, raise global_segment_size, or let more nodes contribute a segment."
_MASTER = "See that mooncake_master runs, that master_server_address is right, and that no firewall stands between."
_VERSION = "Install the same Mooncake release on every node, and start the master from it."
_KEY = "Refs of this library have valid keys: look for a namespace with unusual characters, or a ref made by hand."

_TABLE = (
    Code(0, "OK", "done", "Nothing."),
    Code(-1, "INTERNAL_ERROR", "anything without a code of its own; at setup: 20 tries to start failed", _MASTER),
    Code(-10, "BUFFER_OVERFLOW", "a buffer is smaller than what goes into it", "Raise local_buffer_size."),
    Code(-100, "SHARD_INDEX_OUT_OF_RANGE", "the master looked for a key in a place it does not have", _REPORT),
    Code(
        -101,
        "SEGMENT_NOT_FOUND",
        "the segment is not mounted (any more)",
        "See whether the process that contributed it lives.",
    ),
    Code(
        -102,
        "SEGMENT_ALREADY_EXISTS",
        "a segment of this host:port is mounted",
        "Give local_hostname without a port, or each process its own.",
    ),
    Code(
        -103,
        "CLIENT_NOT_FOUND",
        "the master does not know this client (any more)",
        "The client was silent for the master's client_ttl: open the store again.",
    ),
    Code(-200, "NO_AVAILABLE_HANDLE", "no segment has room for the object, or there is no segment at all", _SPACE),
    Code(-300, "INVALID_VERSION", "client and master are of different releases", _VERSION),
    Code(-400, "INVALID_KEY", "the key is not acceptable", _KEY),
    Code(-500, "WRITE_FAIL", "the bytes could not be written", _RETRY),
    Code(-600, "INVALID_PARAMS", "a setting or an argument is refused; at setup also: master not reached", _MASTER),
    Code(
        -601,
        "ILLEGAL_CLIENT",
        "the request came from another client than the one that began it",
        "Finish an operation with the store that began it.",
    ),
    Code(-700, "INVALID_WRITE", "the object is not in a state to be written", _RETRY),
    Code(-701, "INVALID_READ", "the object is not in a state to be read", _RETRY),
    Code(-702, "INVALID_REPLICA", "the copy is not in a state for this", _RETRY),
    Code(-703, "REPLICA_IS_NOT_READY", "the copy is still being written", _RETRY),
    Code(
        -704,
        "OBJECT_NOT_FOUND",
        "there is no object of this key",
        "It was removed or evicted, or the master was restarted: put it again.",
    ),
    Code(
        -705, "OBJECT_ALREADY_EXISTS", "the key is taken", "Keys of this library are unique: look for a second writer."
    ),
    Code(
        -706,
        "OBJECT_HAS_LEASE",
        "somebody read the object a moment ago",
        "Remove with force, as this library does, or wait for the lease (10 s) to end.",
    ),
    Code(
        -707,
        "LEASE_EXPIRED",
        "the read took longer than its lease",
        "Raise the master's --default_kv_lease_ttl, or read smaller objects.",
    ),
    Code(-708, "OBJECT_HAS_REPLICATION_TASK", "the object is being copied or moved", _TASK),
    Code(-709, "OBJECT_NO_REPLICATION_TASK", "the object is not being copied or moved", _TASK),
    Code(-710, "REPLICA_NOT_FOUND", "the object has no copy there", _RETRY),
    Code(-711, "REPLICA_ALREADY_EXISTS", "the object has a copy there already", _TASK),
    Code(
        -712,
        "REPLICA_IS_GONE",
        "the copy went away with its segment",
        "Put the object again; with replica_num 2 one segment may fail.",
    ),
    Code(-713, "REPLICA_NOT_IN_LOCAL_MEMORY", "the copy is not in this process", _TASK),
    Code(-714, "OBJECT_REPLICA_BUSY", "the copy is in use", _RETRY),
    Code(
        -800,
        "TRANSFER_FAIL",
        "the master is fine, the segment's process is not reached",
        "See whether local_hostname of that process can be reached from here: no loopback address, no firewall.",
    ),
    Code(
        -801,
        "CHECKSUM_MISMATCH",
        "the bytes arrived changed",
        "Look for a faulty link or memory, and for a second writer of the segment.",
    ),
    Code(-900, "RPC_FAIL", "the master does not answer", _MASTER),
    Code(
        -901,
        "RPC_TIMEOUT",
        "the master answers too late",
        "See how busy the master's host is, or raise MC_RPC_TIMEOUT_MS.",
    ),
    Code(-1000, "ETCD_OPERATION_ERROR", "etcd refused an operation", _HA),
    Code(-1001, "ETCD_KEY_NOT_EXIST", "etcd has no leader's address under this cluster id", _HA),
    Code(-1002, "ETCD_TRANSACTION_FAIL", "etcd: somebody else was faster", _HA),
    Code(-1003, "ETCD_CTX_CANCELLED", "the question to etcd was called off", _HA),
    Code(-1004, "OPLOG_ENTRY_NOT_FOUND", "the standby misses an entry of the leader's log", _HA),
    Code(-1005, "K8S_LEASE_OPERATION_ERROR", "Kubernetes refused an operation on the lease", _HA),
    Code(-1006, "K8S_LEASE_NOT_FOUND", "Kubernetes has no such lease", _HA),
    Code(-1007, "INCOMPLETE_OPLOG_CATCH_UP", "the standby has not caught up with the leader", _HA),
    Code(
        -1010,
        "UNAVAILABLE_IN_CURRENT_STATUS",
        "the master is not serving now: a standby, or starting",
        "Wait for the leader's election, and give the HA endpoint as master_server_address.",
    ),
    Code(
        -1011,
        "UNAVAILABLE_IN_CURRENT_MODE",
        "this build of Mooncake cannot do that",
        "Use a scheme of master_server_address that the installed wheel was built with.",
    ),
    Code(-1012, "NOT_SUPPORTED", "the operation is not supported here", _VERSION),
    Code(-1100, "FILE_NOT_FOUND", "no such file", _SSD),
    Code(-1101, "FILE_OPEN_FAIL", "a file could not be opened", _SSD),
    Code(-1102, "FILE_READ_FAIL", "a file could not be read", _SSD),
    Code(-1103, "FILE_WRITE_FAIL", "a file could not be written", _SSD),
    Code(-1104, "FILE_INVALID_BUFFER", "the buffer for a file is of a wrong size", _SSD),
    Code(-1105, "FILE_LOCK_FAIL", "a file could not be locked", _SSD),
    Code(-1106, "FILE_INVALID_HANDLE", "a file was closed already", _SSD),
    Code(-1200, "BUCKET_NOT_FOUND", "no such bucket of offloaded objects", _SSD),
    Code(-1201, "BUCKET_ALREADY_EXISTS", "the bucket of offloaded objects exists", _SSD),
    Code(-1202, "KEYS_EXCEED_BUCKET_LIMIT", "too many keys for a bucket", _SSD),
    Code(-1203, "KEYS_ULTRA_LIMIT", "too many keys for the disk tier", _SSD),
    Code(-1300, "UNABLE_OFFLOAD", "offloading is not possible", _SSD),
    Code(-1301, "UNABLE_OFFLOADING", "offloading is not possible now", _SSD),
    Code(-1400, "TASK_NOT_FOUND", "no such task", _TASK),
    Code(-1401, "TASK_PENDING_LIMIT_EXCEEDED", "too many tasks wait", _TASK),
    Code(-1402, "JOB_NOT_FOUND", "no such job", _TASK),
    Code(-1500, "SERIALIZE_UNSUPPORTED", "the master cannot write its state in this form", _MASTER_LOG),
    Code(-1501, "SERIALIZE_FAIL", "the master could not write its state", _MASTER_LOG),
    Code(-1502, "DESERIALIZE_FAIL", "the master could not read its state", _MASTER_LOG),
    Code(-1503, "PERSISTENT_FAIL", "the master could not save its state", _MASTER_LOG),
    Code(-1600, "DFS_NETWORK_TIMEOUT", "the file system answers too late", _DFS),
    Code(-1601, "DFS_SERVICE_UNAVAILABLE", "the file system is not serving", _DFS),
    Code(-1602, "DFS_QUOTA_EXCEEDED", "the quota of the file system is used up", _DFS),
    Code(-1603, "DFS_PERMISSION_DENIED", "the file system refuses this user", _DFS),
    Code(-1604, "DFS_STALE_HANDLE", "a file was replaced behind the client's back", _DFS),
    Code(-1605, "DFS_PARTIAL_WRITE", "a file was written in part only", _DFS),
    Code(-1700, "TENANT_QUOTA_EXCEEDED", "the quota of this tenant is used up", _TENANT),
    Code(-1701, "TENANT_NOT_REGISTERED", "the master does not know this tenant", _TENANT),
    Code(-1702, "TENANT_NOT_EMPTY", "the tenant still has objects", _TENANT),
)

CODES: dict[int, Code] = {code.number: code for code in _TABLE}
"""Every code of Mooncake 0.3.12.post1 to 0.3.13.post1, by its number."""


OUT_OF_REACH = frozenset({-900, -901, -1010})
"""The codes that say that the master does not answer. Each attempt takes 4 s or so."""


def code_of(number: int) -> Code:
    """The entry of a number; one that is not in the table is described as unknown."""
    return CODES.get(number) or Code(
        number, "UNKNOWN", "a number that this release of the library does not know", _VERSION
    )
