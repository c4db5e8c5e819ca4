"""What the child process of the probe runs: an import of Mooncake, or a real setup. Native code may kill this process.

``python -m mooncake_config.store.trial import`` and ``… setup SECONDS`` (the dictionary for setup as JSON on standard
input, so that no password stands in argv). Each step that was reached is one JSON object on a line of standard output;
whatever the package or native code prints goes to standard error.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import os
import resource
import signal
import sys
from collections.abc import Callable, Sequence

Tell = Callable[[dict[str, object]], None]
"""Reports one step to the parent."""

MODULES = ("mooncake", "mooncake.store", "mooncake.structured_object_store")
NEEDED: dict[str, tuple[str, ...]] = {
    "mooncake.store": ("MooncakeDistributedStore", "ReplicateConfig"),
    "mooncake.structured_object_store": ("MooncakeBundleTransfer", "FieldSchema", "export_ref", "import_ref"),
}
"""What the rollout path takes from each module. The structured names came with 0.3.12.post1."""

_TEXT_LIMIT = 2000


def main(arguments: Sequence[str]) -> None:
    """Runs one trial and tells its steps on what was standard output."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    channel = os.dup(1)
    os.dup2(2, 1)

    def tell(step: dict[str, object]) -> None:
        with contextlib.suppress(BrokenPipeError):
            os.write(channel, json.dumps(step).encode() + b"\n")

    if arguments[0] == "import":
        _forget_working_directory()
        try_import(tell)
    else:
        signal.alarm(int(arguments[1]))
        _forget_working_directory()
        try_setup(json.load(sys.stdin), tell)


def _forget_working_directory() -> None:
    """Takes away what ``-m`` puts first: a directory of the name mooncake there is not what the job imports."""
    if sys.path and sys.path[0] == os.getcwd():  # noqa: PTH109 - compared with what the interpreter itself wrote
        del sys.path[0]


def try_import(tell: Tell) -> None:
    """Imports the modules in turn; tells where the package lies, what failed first, and which names are lacking."""
    spec = importlib.util.find_spec("mooncake")
    if spec is None:
        tell({"absent": True})
        return
    places = list(spec.submodule_search_locations or [])
    tell({"location": places[0] if places else spec.origin})
    for name in MODULES:
        if not _imported(name, tell):
            return
    tell(
        {
            "lacks": [
                f"{name}.{item}" for name in NEEDED for item in NEEDED[name] if not hasattr(sys.modules[name], item)
            ]
        }
    )


def _imported(name: str, tell: Tell) -> bool:
    try:
        importlib.import_module(name)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a foreign package raises, the parent is to hear
        lacking = error.name if isinstance(error, ModuleNotFoundError) else None
        tell({"failed": name, "kind": type(error).__name__, "text": str(error)[:_TEXT_LIMIT], "lacking": lacking})
        return False
    tell({"imported": name})
    return True


def try_setup(kwargs: dict[str, int | str], tell: Tell) -> None:
    """Sets a client up as the job would, tells its code, and closes it again."""
    from mooncake.store import MooncakeDistributedStore

    store = MooncakeDistributedStore()
    tell({"started": True})
    try:
        tell({"code": store.setup(kwargs)})
    except Exception as error:  # noqa: BLE001 - native code raises what it likes, such as MemoryError for std::bad_alloc
        tell({"raised": f"{type(error).__name__}: {error}"[:_TEXT_LIMIT]})
    store.close()
    tell({"closed": True})


if __name__ == "__main__":
    main(sys.argv[1:])
