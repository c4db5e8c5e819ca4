"""MC25x and MC26x: rules over the installed Mooncake, each with installations on which it fires and is silent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from machines import WORKS, failing, importing, installation, node, problems, process

from mooncake_config.findings import Severity
from mooncake_config.host import Host
from mooncake_config.installation import Distribution, Installed, Trial
from mooncake_config.node import Node
from mooncake_config.ray_node import NodeAddress
from mooncake_config.rules import installed as installed_rules
from mooncake_config.rules.installed import _release
from mooncake_config.rules.rule import rules_in
from mooncake_config.topology import Role

ERROR, WARNING = Severity.ERROR, Severity.WARNING
STRUCTURED = "mooncake.structured_object_store"


def having(installed: Installed | None, environ: Mapping[str, str] | None = None, role: Role = Role.TRAINER) -> Node:
    """A process on a machine with this installation."""
    return node(process(environ, role=role), installed=installed)


def loader(text: str) -> Node:
    """An import that the loader refused with these words."""
    return having(importing(*failing("mooncake.store", "ImportError", text)))


def tried(
    *steps: Mapping[str, object], end: int | None = 0, errors: tuple[str, ...] = (), warnings: tuple[str, ...] = ()
) -> Node:
    """A dry setup that went so."""
    return node(setup=Trial(steps, end, errors, warnings))


def guessed(*rivals: str) -> Node:
    """A machine of which nothing says that it is a node of the job, except raylets that differ."""
    given = having(importing({"absent": True}))
    return replace(given, process=replace(given.process, node=NodeAddress("10.0.0.7", guessed=True, rivals=rivals)))


OLD = ("mooncake-transfer-engine", "0.3.11")
NEW = ("mooncake-transfer-engine", "0.3.13.post1")
NO_SUCH_FILE = "cannot open shared object file: No such file or directory"

FIRES: list[tuple[str, Node, Severity, str, str]] = [
    ("MC250", having(importing({"absent": True})), ERROR, "not installed", "mooncake-transfer-engine-non-cuda"),
    ("MC250", guessed(), WARNING, "not installed", "mooncake-cpu"),
    ("MC250", guessed("10.0.0.8", "10.0.0.9"), ERROR, "not installed", "mooncake-cpu"),
    (
        "MC250",
        replace(having(importing({"absent": True})), host=Host("/copy")),
        WARNING,
        "not installed",
        "mooncake-cuda13",
    ),
    (
        "MC251",
        having(importing(*failing("mooncake.store", "ModuleNotFoundError", "No module", "mooncake.store"))),
        ERROR,
        "the package mooncake at /site/mooncake is not that of mooncake-transfer-engine",
        "it hides mooncake-transfer-engine-non-cuda 0.3.13.post1",
    ),
    (
        "MC251",
        having(installation(trial=Trial(failing("mooncake.store", "ModuleNotFoundError", "x", "mooncake.store"), 0))),
        ERROR,
        "mooncake-transfer-engine",
        "uninstall or rename it",
    ),
    ("MC252", loader(f"libibverbs.so.1: {NO_SUCH_FILE}"), ERROR, "libibverbs.so.1", "libibverbs1"),
    ("MC252", loader(f"libnuma.so.1: {NO_SUCH_FILE}"), ERROR, "libnuma.so.1", "libnuma1"),
    ("MC252", loader(f"libcudart.so.12: {NO_SUCH_FILE}"), ERROR, "libcudart.so.12", "mooncake-cpu"),
    ("MC252", loader(f"libcuda.so.1: {NO_SUCH_FILE}"), ERROR, "libcuda.so.1", "NVIDIA driver"),
    (
        "MC252",
        loader(f"libodd-thing.so.7: {NO_SUCH_FILE}"),
        ERROR,
        "libodd-thing.so.7",
        "the package that has libodd-thing.so.7",
    ),
    ("MC252", loader("/lib/libstdc++.so.6: version `GLIBCXX_3.4.32' not found"), ERROR, "GLIBCXX_3.4.32", "newer"),
    ("MC252", loader("/lib/libc.so.6: version `GLIBC_2.38' not found"), ERROR, "GLIBC_2.38", "newer"),
    ("MC252", loader("store.so: undefined symbol: _ZN8mooncake"), ERROR, "undefined symbol", "two builds are mixed"),
    ("MC252", loader("something else"), ERROR, "something else", "reinstall"),
    (
        "MC252",
        having(importing(*failing(STRUCTURED, "ModuleNotFoundError", "No module named 'numpy'", "numpy"))),
        ERROR,
        "numpy",
        "install the Python package that has the module numpy",
    ),
    (
        "MC252",
        having(importing({"location": "/x"}, exit=-6, errors=("Check failed",))),
        ERROR,
        "killed by SIGABRT, saying: Check",
        "wheel",
    ),
    ("MC252", having(importing(exit=1)), ERROR, "ended with status 1", "wheel"),
    ("MC252", having(importing(exit=0)), ERROR, "ended with status 0", "wheel"),
    (
        "MC253",
        having(importing(*failing(STRUCTURED, "ModuleNotFoundError", "No module", STRUCTURED))),
        ERROR,
        "no module mooncake.structured_object_store",
        "mooncake-cuda13",
    ),
    (
        "MC253",
        having(importing({"lacks": [f"{STRUCTURED}.FieldSchema"]})),
        ERROR,
        "lacks mooncake.structured",
        "0.3.12.post1",
    ),
    (
        "MC254",
        having(installation(OLD)),
        ERROR,
        "mooncake-transfer-engine 0.3.11 is installed",
        "0.3.12.post1 or newer",
    ),
    ("MC254", having(installation(OLD, trial=Trial(WORKS, 0))), WARNING, "0.3.11", "same version"),
    (
        "MC254",
        having(installation(("mooncake-transfer-engine", "0.3.8"))),
        ERROR,
        "no setup from a dictionary",
        "newer",
    ),
    ("MC254", having(installation(OLD), role=Role.DRIVER), ERROR, "segment of 0 (-600)", "newer"),
    ("MC254", having(installation(OLD), {"MOONCAKE_LOCAL_HOSTNAME": "fd00::7"}), ERROR, "IPv6", "newer"),
    ("MC254", having(installation(OLD), {"MOONCAKE_PROTOCOL": "efa"}), ERROR, "not efa", "newer"),
    ("MC254", having(installation(("mooncake-transfer-engine", "0.3.12"))), ERROR, "it lacks FieldSchema", "newer"),
    (
        "MC255",
        having(installation(NEW, ("mooncake-transfer-engine-cuda13", "0.3.14"))),
        WARNING,
        "2 wheels of Mooncake share one directory",
        "pip uninstall -y mooncake",
    ),
    (
        "MC255",
        having(
            Installed((Distribution(*NEW, "/a"), Distribution("mooncake-transfer-engine-efa", None, "/b")), "x86_64")
        ),
        WARNING,
        "0.3.13.post1 in /a, mooncake-transfer-engine-efa (version unknown) in /b",
        "take their directories off the path",
    ),
    (
        "MC256",
        having(installation(NEW, machine="aarch64"), {"MOONCAKE_MASTER": "etcd://10.0.0.5:2379"}),
        ERROR,
        "without etcd",
        "host:port",
    ),
    (
        "MC256",
        having(installation(NEW, machine="aarch64"), {"MOONCAKE_TE_META_DATA_SERVER": "etcd://10.0.0.5:2379"}),
        ERROR,
        "without etcd",
        "P2PHANDSHAKE",
    ),
    ("MC257", having(importing({"location": "/x"}, exit=None)), WARNING, "did not end within", "by hand"),
    (
        "MC260",
        tried({"started": True}, end=-11, errors=("the reason",)),
        ERROR,
        "killed by SIGSEGV; the native log says: the reason",
        "kill",
    ),
    (
        "MC261",
        tried({"code": -600}, errors=("Total size must be",)),
        ERROR,
        "code -600; the native log says: Total size",
        "log",
    ),
    ("MC260", tried({"started": True}, end=-11), ERROR, "killed by SIGSEGV.", "no reason was logged"),
    ("MC261", tried({"code": -1}, end=-6), ERROR, "code -1.", "no reason was logged"),
    ("MC261", tried({"raised": "MemoryError: std::bad_alloc"}), ERROR, "std::bad_alloc.", "the exception names"),
    ("MC261", tried({"raised": "MemoryError"}, errors=("too much",)), ERROR, "too much", "the log names"),
    ("MC261", tried({"started": True}, end=None), ERROR, "did not end within the limit", "the master and the metadata"),
    ("MC261", tried(end=1), ERROR, "ended with status 1", "no reason was logged"),
    (
        "MC262",
        tried({"code": 0}, warnings=("x", "No RDMA devices found, check")),
        WARNING,
        "used TCP; the log says: No RDMA",
        "visible",
    ),
]

GOOD = having(importing(*WORKS))
SILENT: list[tuple[str, Node]] = [
    *[(rule.code, GOOD) for rule in rules_in(installed_rules)],
    *[(rule.code, node()) for rule in rules_in(installed_rules)],
    *[(rule.code, having(installation())) for rule in rules_in(installed_rules)],
    ("MC251", loader("libx.so.1")),
    ("MC252", having(importing(*failing("mooncake.store", "ModuleNotFoundError", "No module", "mooncake.store")))),
    ("MC252", having(importing(*failing(STRUCTURED, "ModuleNotFoundError", "No module", STRUCTURED)))),
    ("MC252", having(importing({"absent": True}))),
    ("MC252", having(importing({"location": "/x"}, exit=None))),
    ("MC253", having(importing(*failing(STRUCTURED, "ModuleNotFoundError", "No module named 'numpy'", "numpy")))),
    ("MC254", having(installation(("mooncake-transfer-engine", "0.3.12.post1")))),
    ("MC254", having(installation(("mooncake-transfer-engine", "1.0")))),
    *[
        ("MC254", having(Installed((Distribution("mooncake-transfer-engine", version),), "x86_64")))
        for version in (None, "", "abc", "None", "?", "-", "post1", "$VERSION")
    ],
    ("MC256", having(installation(NEW), {"MOONCAKE_MASTER": "etcd://10.0.0.5:2379"})),
    (
        "MC256",
        having(
            installation(("mooncake-transfer-engine-non-cuda", "0.3.13"), machine="aarch64"),
            {"MOONCAKE_MASTER": "etcd://10.0.0.5:2379"},
        ),
    ),
    ("MC257", having(importing({"lacks": []}, exit=None))),
    ("MC257", having(importing(*failing("mooncake", "ImportError", "x"), exit=None))),
    ("MC260", tried({"code": 0})),
    ("MC260", tried({"code": 0}, end=-6)),
    ("MC260", tried(end=None)),
    ("MC261", tried({"code": 0})),
    ("MC261", tried(end=-11)),
    ("MC262", tried({"code": 0})),
    ("MC262", tried({"code": -1}, warnings=("No RDMA devices found",))),
    (
        "MC262",
        replace(tried({"code": 0}, warnings=("No RDMA devices found",)), process=process({"MOONCAKE_PROTOCOL": "tcp"})),
    ),
]


@pytest.mark.parametrize(("code", "given", "severity", "says", "way"), FIRES)
def test_fires(code: str, given: Node, severity: Severity, says: str, way: str) -> None:
    """The rule sees one problem, of that weight; message and fix say so."""
    (found,) = problems(code, given)
    own = next(rule.severity for rule in rules_in(installed_rules) if rule.code == code)
    assert (found.severity or own) is severity
    assert says in found.message
    assert way in found.fix
    assert found.message.endswith(".")
    assert found.message.isprintable()


@pytest.mark.parametrize(("code", "given"), SILENT)
def test_silent(code: str, given: Node) -> None:
    """The rule sees nothing."""
    assert problems(code, given) == []


@pytest.mark.parametrize("steps", [({"code": -600},), ({"raised": "E"},), ({"started": True},), ()])
@pytest.mark.parametrize("end", [None, 0, 1, -6])
@pytest.mark.parametrize("errors", [(), ("the reason",)])
def test_a_log_is_named_only_where_there_is_one(
    steps: tuple[Mapping[str, object], ...], end: int | None, errors: tuple[str, ...]
) -> None:
    """However a dry setup fails, one rule tells it, and sends people to the log only if it holds something."""
    given = tried(*steps, end=end, errors=errors)
    (found,) = problems("MC260", given) + problems("MC261", given)
    assert ("the log names" in found.fix) is bool(errors)
    assert ("the reason" in found.message) is bool(errors)


def test_every_rule_fires() -> None:
    """No rule of this module goes without an example that fires."""
    assert {code for code, *_ in FIRES} == {rule.code for rule in rules_in(installed_rules)}


@pytest.mark.parametrize("rule", rules_in(installed_rules), ids=lambda rule: rule.code)
def test_pages(rule: object) -> None:
    """A page says why it matters, what to do, and gives an example."""
    page = getattr(rule, "page", "")
    assert all(f"{part}:" in page for part in ("Why", "Fix", "Example"))


def test_order_of_versions() -> None:
    """Versions are ordered by release, then early builds, then post numbers."""
    ordered = [
        "junk",
        "0.3.8",
        "0.3.11",
        "0.3.11.post1",
        "0.3.12rc1",
        "0.3.12",
        "0.3.12.post1",
        "0.3.13.post1",
        "0.4",
        "1.0",
    ]
    assert sorted(ordered, key=_release) == ordered
    assert _release("v0.3.12.post1") == _release("0.3.12.post1")


@given(text=st.text(max_size=30))
def test_any_version(text: str) -> None:
    """Whatever a distribution calls its version, it can be ordered."""
    assert _release(text) >= ()


@given(text=st.text(max_size=200), kind=st.text(max_size=20))
def test_any_words_of_a_loader(text: str, kind: str) -> None:
    """Whatever a foreign package raises, there is one problem, fit to be shown, with a way out."""
    (found,) = problems("MC252", having(importing(*failing("mooncake.store", kind, text))))
    assert found.message.isprintable()
    assert found.fix.endswith(".")
