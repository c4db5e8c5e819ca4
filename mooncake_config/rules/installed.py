"""MC25x and MC26x: the Mooncake that is installed here, its import, and a dry setup."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mooncake_config.addresses import ip_of, scheme_of, split_endpoint
from mooncake_config.display import shown
from mooncake_config.findings import Severity
from mooncake_config.installation import Distribution, Trial
from mooncake_config.node import Node
from mooncake_config.rules.rule import Problem, rule

FLOOR = "0.3.12.post1"
"""The first version with FieldSchema, export_ref and import_ref (Mooncake b272a04b, #2907)."""
EXTRAS = "mooncake-config[mooncake-cuda13] (CUDA 13) or mooncake-config[mooncake-cpu] (no CUDA)"
INSTALL = f"install one of the extras {EXTRAS}: mooncake-transfer-engine-cuda13, or mooncake-transfer-engine-non-cuda"

LIBRARIES: dict[str, str] = {
    "libibverbs": "Debian's libibverbs1 (needed for TCP too): apt-get install libibverbs1",
    "librdmacm": "Debian's librdmacm1: apt-get install librdmacm1",
    "libnuma": "Debian's libnuma1: apt-get install libnuma1",
    "libcurl": "Debian's libcurl4: apt-get install libcurl4",
    "liburing": "Debian's liburing2: apt-get install liburing2",
    "libssl": "Debian's libssl3: apt-get install libssl3",
    "libcrypto": "Debian's libssl3: apt-get install libssl3",
    "libgomp": "Debian's libgomp1: apt-get install libgomp1",
    "libstdc++": "Debian's libstdc++6: apt-get install libstdc++6",
    "libhiredis": "Debian's libhiredis: apt-get install libhiredis-dev",
    "libcuda": "the NVIDIA driver of the host (containers: --gpus all)",
    "libnvidia-ml": "the NVIDIA driver of the host (containers: --gpus all)",
    "libefa": "Debian's ibverbs-providers: apt-get install ibverbs-providers",
    "libmlx5": "Debian's ibverbs-providers: apt-get install ibverbs-providers",
    "libfabric": "the AWS EFA installer, or a wheel without -efa",
}
"""Shared libraries that the wheels link against and do not bring, and what has each."""


@rule("MC250", Severity.ERROR)
def mooncake_not_installed(node: Node) -> Iterator[Problem]:
    """This Python has no package mooncake.

    Sees the import path of the interpreter that runs the check. A warning where nothing says that this machine is a
    node of the job (no Ray runs here, no --node-ip), or where the facts of another host are looked at.

    Why: the job's first process that opens the store dies with ModuleNotFoundError, after the cluster is up.

    Fix: install one of the extras; run the check with the Python that the job uses.

    Example: `mooncake-config check` in a fresh environment.
    """
    trial = _trial(node)
    if trial is not None and trial.told("absent"):
        elsewhere = (node.process.node.guessed and not node.process.node.rivals) or node.host.is_copy
        message = "Mooncake is not installed for this Python (mooncake-transfer-engine)."
        fix = f"{INSTALL}, into the Python that the job uses."
        yield Problem((), message, fix, Severity.WARNING if elsewhere else None)


@rule("MC251", Severity.ERROR)
def another_package_named_mooncake(node: Node) -> Iterator[Problem]:
    """A package named mooncake is found, and it is not Mooncake's.

    Sees a package without the module mooncake.store. A directory of that name on PYTHONPATH is enough, also beside an
    installed Mooncake, which it hides.

    Why: `from mooncake.store import …` fails, and pip says that all is well.

    Fix: take the other package or directory off the path, and install mooncake-transfer-engine.

    Example: `pip install mooncake`, which is a library for spoken language.
    """
    failed = _failure(node)
    if failed is None or failed.get("lacking") not in ("mooncake.store", "mooncake"):
        return
    place, installed = _place(node), node.probes.installed
    message = (
        f"the package mooncake at {place} is not that of mooncake-transfer-engine: it has no module mooncake.store."
    )
    hidden = ", ".join(map(str, installed.distributions)) if installed else ""
    fix = f"take {place} off the path: it hides {hidden}." if hidden else f"uninstall or rename it, and {INSTALL}."
    yield Problem((), message, fix)


@rule("MC252", Severity.ERROR)
def broken_import(node: Node) -> Iterator[Problem]:
    """The installed Mooncake cannot be imported.

    Sees an import in a child process: a shared library that is missing or of another version, another exception, an
    abort. The loader's own words are in the message.

    Why: every process of the job dies at this import, some of them without a word.

    Fix: install the library that the message names, or the wheel that fits this machine.

    Example: libibverbs.so.1 is missing in a slim container; the wheel for CUDA 12 on a machine with CUDA 13.
    """
    trial, failed = _trial(node), _failure(node)
    if failed is not None:
        if failed.get("lacking") not in ("mooncake", "mooncake.store", "mooncake.structured_object_store"):
            text = str(failed.get("text"))
            what = f"importing {failed['failed']} from {_place(node)} fails"
            message = f"{what}: {shown(str(failed.get('kind')))}: {shown(text, 200)}."
            yield Problem((), message, f"{_remedy(text, failed.get('lacking'))}.")
    elif trial is not None and trial.exit is not None and not (trial.step("lacks") or trial.step("absent")):
        said = f", saying: {'; '.join(trial.errors)}" if trial.errors else ""
        message = f"a process that imports Mooncake {trial.end}{said}."
        yield Problem((), message, f"install a wheel that fits this machine: {EXTRAS}.")


def _remedy(text: str, lacking: object) -> str:
    """What to install for an error of the loader, or for a Python module that is lacking."""
    if lacking:
        return f"install the Python package that has the module {shown(str(lacking))}"
    library = re.search(r"(lib[\w+-]+?)\.so[.\d]*", text)
    if re.search(r"GLIBC(XX)?_|CXXABI_", text):
        return (
            "the wheel was built for a newer C or C++ library than this system has: use a newer distribution or image"
        )
    if "undefined symbol" in text:
        return "two builds are mixed: uninstall every mooncake-transfer-engine wheel, then install one"
    if library is None:
        return f"reinstall Mooncake: {INSTALL}"
    name = library[1]
    if name.startswith(("libcudart", "libcublas", "libnccl", "libnvrtc", "libcufile")):
        return (
            f"{library[0]} is of a CUDA runtime that is not here: install that runtime, or a wheel that fits: {EXTRAS}"
        )
    known = LIBRARIES.get(name)
    return (
        f"install {known}" if known else f"install the package that has {library[0]}, or the wheel that fits: {EXTRAS}"
    )


@rule("MC253", Severity.ERROR)
def no_structured_store(node: Node) -> Iterator[Problem]:
    """The installed Mooncake has the store, and not the structured objects that carry a rollout.

    Sees mooncake.structured_object_store that cannot be found, or lacks FieldSchema, export_ref or import_ref.

    Why: the rollout path imports them; the wheel for CUDA 12 does not have the module, and versions below 0.3.12.post1
    lack the names.

    Fix: install the wheel for CUDA 13 or the one without CUDA.

    Example: an image for CUDA 12 with mooncake-transfer-engine.
    """
    failed, trial = _failure(node), _trial(node)
    if failed is not None and failed.get("lacking") == "mooncake.structured_object_store":
        message = (
            f"Mooncake at {_place(node)} has no module mooncake.structured_object_store, which carries rollout data."
        )
        yield Problem((), message, f"{INSTALL}; the wheel for CUDA 12 lacks it.")
    lacks = trial.told("lacks") if trial else None
    if isinstance(lacks, list) and lacks:
        names = shown(", ".join(map(str, lacks)), 200)
        message = f"Mooncake at {_place(node)} lacks {names}, which came with {FLOOR}."
        yield Problem((), message, f"{INSTALL}, {FLOOR} or newer.")


@rule("MC254", Severity.ERROR)
def mooncake_below_floor(node: Node) -> Iterator[Problem]:
    """The installed Mooncake is older than 0.3.12.post1.

    Sees the version of the installed distribution; one that cannot be read is unknown. A warning where
    the import finds everything all the same, as in a build of one's own.

    Why: the names of the rollout path are missing below 0.3.12.post1. Below 0.3.12 a segment of 0 is refused with -600,
    so that no rollout manager can connect, IPv6 without a port is taken apart at its last colon, and protocols other
    than tcp and rdma do not exist. Up to 0.3.8 there is no setup from a dictionary at all.

    Fix: install 0.3.12.post1 or newer, the same on every node and for the master.

    Example: mooncake-transfer-engine 0.3.11 from an older image.
    """
    installed = node.probes.installed
    if installed is None:
        return
    works = installed.trial is not None and installed.trial.told("lacks") == []
    for item in installed.distributions:
        order = _release(item.version or "")
        if order and order < _release(FLOOR):
            broken = "; ".join(_broken_below(order, node))
            message = f"{item} is installed, and {FLOOR} is the oldest that works: {broken}."
            fix = f"install {FLOOR} or newer on every node, and the same version for the master."
            yield Problem((), message, fix, Severity.WARNING if works else None)


def _release(version: str) -> tuple[int, ...]:
    """The order of a version, as far as Mooncake's own numbers need it: release and post number. Empty: no version."""
    match = re.match(
        r"v?(\d{1,6})(?:\.(\d{1,6}))?(?:\.(\d{1,6}))?(rc\d*|a\d*|b\d*|\.dev\d*)?(?:\.?post(\d{1,6}))?", version
    )
    if match is None:
        return ()
    major, minor, patch, early, post = match.groups()
    return int(major), int(minor or 0), int(patch or 0), -1 if early else 0, int(post or 0)


def _broken_below(order: tuple[int, ...], node: Node) -> Iterator[str]:
    """What breaks in a version of this order, first what this configuration needs."""
    process = node.process
    if order < _release("0.3.9"):
        yield "it has no setup from a dictionary"
    elif order < _release("0.3.12"):
        own = ip_of(split_endpoint(process.text("local_hostname") or "?").host)
        if not process.contributes_segment:
            yield "it refuses this process's segment of 0 (-600)"
        if own is not None and own.version == 6:
            yield "it takes IPv6 addresses apart at the last colon"
        if process.text("protocol") not in ("tcp", "rdma", None):
            yield f"it knows only tcp and rdma, not {process.text('protocol')}"
    yield "it lacks FieldSchema, export_ref and import_ref of the structured objects"


@rule("MC255", Severity.WARNING)
def several_mooncake_wheels(node: Node) -> Iterator[Problem]:
    """Several wheels of Mooncake are installed at once.

    Why: in one directory the last one was unpacked over the others, pip shows every one as installed, and uninstalling
    one takes files of the others along. In several directories the first on the path hides the others, whichever was
    meant.

    Fix: uninstall all of them, then install the one that fits.

    Example: mooncake-transfer-engine beside mooncake-transfer-engine-cuda13.
    """
    distributions = node.probes.installed.distributions if node.probes.installed else ()
    if len(distributions) > 1:
        names = " ".join(item.name for item in distributions)
        message, fix = _shared(distributions), f"run `pip uninstall -y {names}`, then install one of them."
        if len({item.place for item in distributions}) > 1:
            message = _apart(distributions)
            fix = "keep one: uninstall the others, or take their directories off the path (PYTHONPATH)."
        yield Problem((), message, fix)


def _shared(distributions: tuple[Distribution, ...]) -> str:
    listed = ", ".join(map(str, distributions))
    return f"{len(distributions)} wheels of Mooncake share one directory: {listed}."


def _apart(distributions: tuple[Distribution, ...]) -> str:
    listed = ", ".join(f"{item} in {shown(item.place, 200)}" for item in distributions)
    return (
        f"{len(distributions)} wheels of Mooncake are on the path, and the first directory hides the others: {listed}."
    )


@rule("MC256", Severity.ERROR)
def wheel_without_etcd(node: Node) -> Iterator[Problem]:
    """An etcd:// address on ARM with a CUDA wheel, which is built without etcd.

    Sees etcd:// in the master's address or the metadata server, a machine of architecture aarch64, and a CUDA wheel.

    Why: as a master it ends in -600, "Invalid HA backend entry"; as a metadata server it aborts the process (from
    Mooncake's own build scripts).

    Fix: use host:port and P2PHANDSHAKE, or the wheel without CUDA, or a build of your own and ignore this.

    Example: etcd://10.0.0.5:2379 on a Grace node.
    """
    installed = node.probes.installed
    if installed is None or installed.machine not in ("aarch64", "arm64"):
        return
    cuda = [
        item
        for item in installed.distributions
        if item.name in ("mooncake-transfer-engine", "mooncake-transfer-engine-cuda13")
    ]
    for name in ("master_server_address", "metadata_server"):
        if cuda and scheme_of(node.process.text(name) or "") == "etcd":
            message = f"{cuda[0]} for {installed.machine} is built without etcd, and this address needs it."
            yield Problem((name,), message, "use host:port and P2PHANDSHAKE, or mooncake-transfer-engine-non-cuda.")


@rule("MC257", Severity.WARNING)
def slow_import(node: Node) -> Iterator[Problem]:
    """The import of Mooncake did not end within its limit.

    Why: it hangs, or the file system of the environment is slow; then every process of the job waits as long.

    Fix: run `python -c "import mooncake.store"` by hand and see where it stands.

    Example: an environment on a network file system that is read for the first time.
    """
    trial = _trial(node)
    if trial is not None and trial.exit is None and not trial.step("lacks") and not trial.step("failed"):
        message = f"importing Mooncake did not end within {trial.seconds:.1f} s, so its state is unknown."
        yield Problem((), message, 'run `python -c "import mooncake.store"` by hand with this Python.')


@rule("MC260", Severity.ERROR)
def dry_setup_crashed(node: Node) -> Iterator[Problem]:
    """A real setup with these settings killed its process.

    Sees the child of `check --dry-setup` end by a signal, and what the native log said before.

    Why: the same settings kill the job's processes, which no Python code can catch.

    Fix: as the log says, if it says anything; report it to Mooncake, since its client should not crash.

    Example: SIGABRT from a metadata scheme that the installed build does not know.
    """
    trial = node.probes.setup
    if trial is not None and trial.exit is not None and trial.exit < 0 and not trial.step("code"):
        message = f"the process of a real setup {trial.end}{_log_words(trial)}."
        what = "change the settings that the log names" if trial.errors else f"no reason was logged: {_BY_TRIAL}"
        yield Problem((), message, f"{what}; these would kill the job's processes too.")


_BY_TRIAL = "try again with protocol tcp, P2PHANDSHAKE and small sizes, then change back one after the other"


@rule("MC261", Severity.ERROR)
def dry_setup_refused(node: Node) -> Iterator[Problem]:
    """A real setup with these settings failed.

    Sees the child of `check --dry-setup`: a code other than 0, an exception, or no end within the limit, with the error
    lines of the native log, which is the only place where Mooncake says why.

    Why: the job would fail in the same way, with the code alone.

    Fix: as the log says; without a log, try the settings one after the other.

    Example: code -600 and "Total size must be at least 16777216".
    """
    trial = node.probes.setup
    if (
        trial is None
        or trial.told("code") == 0
        or (trial.exit is not None and trial.exit < 0 and not trial.step("code"))
    ):
        return
    how = f"it {trial.end}"
    if trial.step("code"):
        how = f"code {trial.told('code')}"
    elif trial.step("raised"):
        how = shown(str(trial.told("raised")), 200)
    message = f"a real setup with these settings failed: {how}{_log_words(trial)}."
    yield Problem((), message, _after_refusal(trial))


def _after_refusal(trial: Trial) -> str:
    """What to do next, by what the trial left behind."""
    if trial.errors:
        return "change what the log names; Mooncake's code alone has many causes."
    if trial.step("raised"):
        return "change what the exception names."
    if trial.exit is None and not trial.step("code"):
        return "no reason was logged: see whether the master and the metadata server answer, which a setup waits for."
    return f"no reason was logged: {_BY_TRIAL}."


@rule("MC262", Severity.WARNING)
def dry_setup_over_tcp(node: Node) -> Iterator[Problem]:
    """A real setup with protocol rdma succeeded, and used TCP.

    Sees "No RDMA devices found" in the native log of `check --dry-setup`.

    Why: transfers are slower than planned, and nothing else says so; the master lists the segment as rdma (measured).

    Fix: make the devices visible to this process, or set the protocol to tcp.

    Example: a container without --device=/dev/infiniband.
    """
    trial = node.probes.setup
    if trial is None or trial.told("code") != 0 or not node.uses_verbs:
        return
    said = next((line for line in trial.warnings if "No RDMA devices found" in line), None)
    if said:
        message = f"a real setup with protocol {node.process.text('protocol')} used TCP; the log says: {said}."
        yield Problem(
            ("protocol",), message, "make the RDMA devices visible to this process, or set the protocol to tcp."
        )


def _trial(node: Node) -> Trial | None:
    return node.probes.installed.trial if node.probes.installed else None


def _place(node: Node) -> str:
    """Where the package lies that is imported."""
    trial = _trial(node)
    return shown(str(trial.told("location") if trial else None), 200)


def _failure(node: Node) -> dict[str, object] | None:
    """The step that tells which module could not be imported."""
    trial = _trial(node)
    failed = trial.step("failed") if trial else None
    return dict(failed) if failed else None


def _log_words(trial: Trial) -> str:
    return f"; the native log says: {'; '.join(trial.errors)}" if trial.errors else ""
