"""What the native client says when something fails, and what it means: a RuntimeError with a number in its text, an
empty manifest that is no JSON, an integer. Each becomes one of our errors, with a way out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mooncake_config.display import shown
from mooncake_config.store.codes import OUT_OF_REACH, code_of
from mooncake_config.store.errors import (
    BufferTooSmallError,
    MasterUnreachableError,
    ObjectNotFoundError,
    StoreError,
    StoreFullError,
    StoreImportError,
    StoreSetupError,
    TransferError,
)

NATIVE_FAILURES = (RuntimeError, ValueError, KeyError, TypeError, MemoryError)
"""What the native client and its Python layer raise when they fail: JSONDecodeError is a ValueError."""

NO_ROOM = -200
NOT_FOUND = -704

_CODE = re.compile(r"(-\d+)\s*$")
_KEY = re.compile(r" for (\S+): -\d+\s*$")
_POOL = re.compile(r"no room for a piece|pool capacity|pool is exhausted")

_WHEELS = (
    "pip install 'mooncake-config[mooncake]' (CUDA 12), 'mooncake-config[mooncake-cuda13]' (CUDA 13) or "
    "'mooncake-config[mooncake-cpu]' (no CUDA)"
)


def code_in(error: BaseException) -> int | None:
    """The code at the end of a native error's text, such as ``put failed for KEY: -200``."""
    match = _CODE.search(str(error))
    return int(match[1]) if match else None


def import_failure(error: ImportError) -> StoreImportError:
    """Why the engine cannot be imported, and what to install."""
    text, module = str(error), error.name or "mooncake"
    if isinstance(error, ModuleNotFoundError) and module == "mooncake":
        return StoreImportError(f"Mooncake is not installed: {_WHEELS}.", module=module, extra="mooncake-cpu")
    if module in {"msgpack", "numpy"}:
        return StoreImportError(
            f"{module} is not installed, which comes with Mooncake: {_WHEELS}.", module=module, extra="mooncake-cpu"
        )
    library = re.match(r"(lib\S+?\.so\S*?): ", text)
    if library:
        return _library_failure(library[1], module)
    if module == "mooncake.structured_object_store" or "structured_object_store" in text:
        message = (
            "this wheel of Mooncake has no structured objects: it is older than 0.3.12.post1, or a CUDA 12 build "
            "without them. Install mooncake-config[mooncake-cuda13] or mooncake-config[mooncake-cpu] in its place."
        )
        return StoreImportError(message, module=module, extra="mooncake-cuda13")
    message = f"the module `mooncake` here is not Mooncake Store, or a broken one ({shown(text)}): {_WHEELS}."
    return StoreImportError(message, module=module, extra="mooncake-cpu")


def _library_failure(library: str, module: str) -> StoreImportError:
    if library.startswith("libibverbs"):
        way = "install it, even for TCP (Debian and Ubuntu: apt-get install libibverbs1)"
    elif library.startswith(("libcud", "libnv")):
        way = f"this wheel is built for another CUDA than this machine has: {_WHEELS}"
    else:
        way = "install the system package that has it"
    return StoreImportError(f"Mooncake needs {library}: {way}.", module=module, extra="mooncake-cpu")


def setup_failure(code: int, settings: Mapping[str, int | str], elapsed: float) -> StoreSetupError:
    """A setup that returned ``code``: what it can mean with these settings, likeliest first."""
    entry = code_of(code)
    causes = _setup_causes(settings, elapsed)
    message = (
        f"the Mooncake client could not be set up: {code} {entry.name} after {elapsed:.1f} s. Likeliest first: "
        f"{'; '.join(causes)}. The native log on standard error has the reason."
    )
    return StoreSetupError(message, code=code, name=entry.name, elapsed=elapsed)


def _setup_causes(settings: Mapping[str, int | str], elapsed: float) -> list[str]:
    master = f"no master answers at {shown(settings['master_server_addr'])}: start it, or mend the address"
    refused = (
        f"a setting is refused: global_segment_size {settings['global_segment_size']}, "
        f"local_buffer_size {settings['local_buffer_size']}, protocol {shown(settings['protocol'])}"
    )
    memory = "the host cannot give that much memory"
    device = f"the RDMA device {shown(settings['rdma_devices'])} does not exist here"
    causes = [refused, memory, master] if elapsed < 1 else [master, refused]
    return [device, *causes] if settings["rdma_devices"] and settings["protocol"] == "rdma" else causes


def unreachable(code: int, master: str) -> MasterUnreachableError:
    """The master did not answer."""
    entry = code_of(code)
    return MasterUnreachableError(
        f"the master at {master} does not answer ({code} {entry.name}). {entry.remedy}", code=code, master=master
    )


def put_failure(
    error: BaseException,
    *,
    master: str,
    needed: int,
    replicas: int,
    buffer: int,
    chunk: int,
    holders: Sequence[str],
) -> StoreError:
    """Why a put failed. Sizes are bytes; ``holders`` has the key of the object of each piece that results still use."""
    if _POOL.search(str(error)) or isinstance(error, MemoryError):
        return _buffer_failure(str(error), buffer, chunk, holders)
    code = code_in(error)
    if code is None:
        return StoreError(f"the object could not be stored: {shown(str(error))}")
    if code in OUT_OF_REACH:
        return unreachable(code, master)
    entry = code_of(code)
    if code == NO_ROOM:
        message = f"no room for {needed:,} bytes in the store of {master} ({entry}). {entry.remedy}"
        return StoreFullError(message, code=code, needed=needed, replicas=replicas)
    message = f"the object could not be stored ({entry}). {entry.remedy}"
    if code in {-800, -801}:
        key = _KEY.search(str(error))
        return TransferError(message, code=code, key=key[1] if key else "")
    return StoreError(message, code=code)


def _buffer_failure(text: str, buffer: int, chunk: int, holders: Sequence[str]) -> BufferTooSmallError:
    names = tuple(dict.fromkeys(holders))
    if names:
        some = ", ".join(names[:3]) + (", …" if names[3:] else "")
        why = f"{len(holders)} pieces of it are held by arrays of results that are still in use: let those of {some} go"
    else:
        why = "other operations are using it: raise local_buffer_size, or set a smaller chunk_bytes"
    message = f"the transfer buffer of {buffer:,} bytes (local_buffer_size) has no room ({shown(text)}): {why}."
    return BufferTooSmallError(
        message, local_buffer_size=buffer, chunk_bytes=chunk, unreleased=len(holders), holders=names
    )


def read_failure(
    error: BaseException, native: Any, keys: list[str], *, master: str, buffer: int, fate: Callable[[str], str]
) -> StoreError:
    """Why a get failed. The native client gives nothing but an empty answer, so the master is asked what it knows.

    ``fate`` says what became of a key, as far as this process can tell.
    """
    states = [int(native.is_exist(key)) for key in keys]
    for key, state in zip(keys, states, strict=True):
        if state < 0:
            return unreachable(state, master)
        if state == 0:
            return _not_found(key, master, fate(key))
    code = code_in(error)
    if code == NOT_FOUND:
        return _not_found(keys[0], master, fate(keys[0]))
    if not buffer:
        message = "without a transfer buffer nothing can be read: raise local_buffer_size."
        return BufferTooSmallError(message, local_buffer_size=buffer)
    if isinstance(error, MemoryError):
        return StoreError(f"the object is in the store, and this process has no memory for it: {shown(str(error))}")
    peer = holder(native, keys[0])
    message = (
        f"the object is in the store, and its bytes cannot be fetched from {peer or 'the process that holds them'}"
        f"{f' ({code_of(code)})' if code else ''}: that process ended, or is not reachable from here. {_advice(peer)}"
    )
    return TransferError(message, code=code, key=keys[0], peer=peer)


def _advice(peer: str) -> str:
    if re.match(r"127\.|localhost|\[?::1", peer):
        return "It advertises a loopback address: give it a local_hostname that other nodes reach."
    return "See its local_hostname and the firewall between the nodes."


def _not_found(key: str, master: str, fate: str) -> ObjectNotFoundError:
    message = f"the store of {master} has no object {key}: {fate}."
    return ObjectNotFoundError(message, code=NOT_FOUND, key=key)


def holder(native: Any, key: str) -> str:
    """``host:port`` of the segment that holds a key, as far as the client tells."""
    try:
        for replica in native.get_replica_desc(key):
            if replica.is_memory_replica():
                return str(replica.get_memory_descriptor().buffer_descriptor.transport_endpoint)
    except (RuntimeError, AttributeError):
        pass
    return ""


def remove_failure(code: int, key: str, master: str) -> StoreError:
    """Why the space of an object was not freed."""
    if code in OUT_OF_REACH:
        return unreachable(code, master)
    entry = code_of(code)
    return StoreError(f"{key} was not removed, and keeps its space ({entry}). {entry.remedy}", code=code)
