"""explain as a whole, driven by anything: what the contract fixes for every answer holds for every input."""

from __future__ import annotations

import contextlib
import io
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mooncake_config.cli import main
from mooncake_config.settings import FIELDS

SECRET = "hunter2secret"
SETUP = {spec.wiring.engine for spec in FIELDS if spec.wiring.engine}
VARIABLES = [spec.wiring.variable for spec in FIELDS if spec.wiring.variable]

PIECES = [
    *("10.0.0.5:50051", "[fd00::5]:50051", "etcd://a:1;b:2", "127.0.0.1", "0.0.0.0", "localhost:1", ":1", "http://h/x"),
    *("P2PHANDSHAKE", "p2phandshake", "redis://h", f"http://u:{SECRET}@h:80/metadata", "tcp", "RDMA", "rmda", "mlx5_0"),
    *(
        "2gb",
        "1.5 GiB",
        "8",
        "0",
        "-1gb",
        "0.3gb",
        "1e9",
        "9" * 80,
        "$HEAD_IP",
        "<master>",
        '"x"',
        "a b",
        "",
        " ",
        "None",
    ),
    *("\x1b[2J", "\udcff", "\u202e", "１", "null", "{}", "[", "@nowhere", "\x00"),
]
texts = st.one_of(
    st.sampled_from(PIECES), st.text(max_size=20), st.lists(st.sampled_from(PIECES), max_size=3).map("".join)
)
values = st.one_of(texts, st.none(), st.booleans(), st.integers(), st.floats(), st.lists(texts, max_size=2))
keys = st.one_of(st.sampled_from([*(spec.name for spec in FIELDS), "rdma_devices", "replica_num", "$schema"]), texts)
objects = st.dictionaries(keys, values, max_size=6).map(json.dumps)
kwargs = st.one_of(objects, texts, st.tuples(objects, st.integers(0, 200)).map(lambda pair: pair[0][: pair[1]]))
names = st.one_of(
    st.sampled_from([*VARIABLES, "MOONCAKE_MASTER_ADDR", "LOCAL_RANK", "MC_FORCE_TCP"]),
    st.text("MOCAKE_X", max_size=12),
)
environments = st.dictionaries(names.filter(bool), texts.filter(lambda text: "\0" not in text), max_size=6)
counts = st.one_of(st.none(), st.integers(1, 9))


@contextlib.contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """This process's environment with more in it, for as long as the block lasts."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def explain(words: list[str], variables: Mapping[str, str]) -> tuple[int, str, str]:
    """Status, standard output and standard error of explain."""
    out, err = io.StringIO(), io.StringIO()
    with environment(variables), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main(["explain", "--node-ip", "10.0.0.7", *words])
        except SystemExit as end:
            status = int(end.code or 0)
    return status, out.getvalue(), err.getvalue()


def check_form(document: dict[str, Any], status: int) -> None:
    """What the contract fixes for every answer."""
    assert list(document["fields"]) == [spec.name for spec in FIELDS]
    errors = [finding for finding in document["findings"] if finding["severity"] == "error"]
    assert document["ok"] is (not errors)
    assert status == (1 if errors else 0)
    assert (document["setup"] is None) is bool(errors)
    if document["setup"]:
        assert set(document["setup"]) == SETUP
        assert all(value is not None for value in document["setup"].values())
        assert document["setup"]["master_server_addr"]
    assert all(finding["message"].strip() and finding["fix"].strip() for finding in document["findings"])


@given(kwargs, environments, counts, counts, st.integers(-2, 3))
def test_any_input_ends_in_an_answer(
    text: str, variables: dict[str, str], nodes: int | None, processes: int | None, replicas: int
) -> None:
    """Whatever stands in the init kwargs and the environment, explain gives one answer of the contract's form."""
    words = ["--format", "json", f"--mooncake-store-init-kwargs={text}", f"--mooncake-replica-num={replicas}"]
    words += [f"--num-nodes={nodes}"] if nodes else []
    words += [f"--processes-per-node={processes}"] if processes else []
    if text == "-":
        return
    status, out, err = explain(words, variables)
    assert err == ""
    assert SECRET not in out
    check_form(json.loads(out), status)


@given(kwargs, environments, st.sampled_from(["table", "env"]))
def test_any_input_is_printed_safely(text: str, variables: dict[str, str], form: str) -> None:
    """Whatever stands in them, nothing that is printed holds a control character or a password."""
    if text == "-":
        return
    words = ["--num-nodes=2", f"--format={form}", f"--mooncake-store-init-kwargs={text}"]
    status, out, err = explain(words, variables)
    assert status in (0, 1)
    assert (out + err).replace("\n", "").isprintable()
    assert SECRET not in out + err
