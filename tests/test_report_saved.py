"""Saved answers: what is read back, what is refused, and what counts as a difference."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from asking import MASTER, TWO_NODES, ask

from mooncake_config.process import Process
from mooncake_config.report.documents import explain_document
from mooncake_config.report.saved import Answer, Comparison, Unreadable, read_answer
from mooncake_config.rules import examine
from mooncake_config.topology import Role, Topology


def answer_of(process: Process) -> Answer:
    """What explain answers about a process, read back."""
    return Answer.model_validate_json(json.dumps(explain_document(process, examine(process))))


def saved(path: Path, process: Process) -> str:
    """The path of a file that holds what explain answers."""
    path.write_text(json.dumps(explain_document(process, examine(process))))
    return str(path)


def test_answer_is_read_back(tmp_path: Path) -> None:
    """A saved answer equals that of the same process now."""
    process = ask(topology=TWO_NODES)
    there = read_answer(saved(tmp_path / "other.json", process))
    comparison = Comparison(answer_of(process), there)
    assert comparison.equal
    assert list(comparison.fields()) == []
    assert comparison.findings() == ([], [])


def test_answer_from_a_pipe(tmp_path: Path) -> None:
    """A pipe is read like a file, as a shell's `<(ssh other mooncake-config explain --format json)` makes one."""
    path = saved(tmp_path / "other.json", ask())
    with subprocess.Popen(["cat", path], stdout=subprocess.PIPE) as other:
        assert other.stdout
        assert read_answer(f"/dev/fd/{other.stdout.fileno()}") == read_answer(path)


def test_pipe_without_a_writer(tmp_path: Path) -> None:
    """A named pipe that nobody writes to is given up after a while."""
    os.mkfifo(tmp_path / "other")
    with pytest.raises(Unreadable, match=r"did not end within 0\.2 s"):
        read_answer(str(tmp_path / "other"), seconds=0.2)


def test_pipe_whose_writer_comes_late(tmp_path: Path) -> None:
    """A named pipe is read to its end, also where its writer opens it after its reader."""
    path = saved(tmp_path / "other.json", ask())
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["sh", "-c", f"sleep 0.3; cat {path} > {tmp_path}/pipe"]):
        assert read_answer(str(tmp_path / "pipe")) == read_answer(path)


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        (
            "{",
            "other.json does not hold what `explain --format json` or `check --format json` prints "
            "(Invalid JSON: EOF while parsing an object at line 1 column 1)",
        ),
        (
            '{"version": 2}',
            "other.json does not hold what `explain --format json` or `check --format json` prints "
            "(version: Input should be 1)",
        ),
        (
            '{"version": 1, "ok": true, "nodes": {}}',
            'other.json holds an answer of `check --cluster`; take that of one node, a value of its "nodes"',
        ),
        (
            '{"version": 1, "ok": true, "inputs": {}, "nodes": []}',
            "other.json holds an answer of `plan`; take one of `explain --format json`",
        ),
        (
            '{"version": 1, "equal": true, "process": {}}',
            "other.json holds an answer of `explain --diff`; take one of `explain --format json`",
        ),
        (
            '{"version": 1, "ok": true, "nodes": 3}',
            "other.json does not hold what `explain --format json` or `check --format json` prints "
            "(backend: Field required)",
        ),
        (None, "other.json cannot be read: No such file or directory"),
    ],
)
def test_unreadable_answer(text: str | None, refusal: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is no saved answer is refused, with the first thing that is wrong with it."""
    monkeypatch.chdir(tmp_path)
    if text is not None:
        Path("other.json").write_text(text)
    with pytest.raises(Unreadable) as refused:
        read_answer("other.json")
    assert str(refused.value) == refusal


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        ("- <&-", "standard input cannot be read: this process has none"),
        ("- </dev/null", "standard input does not hold what"),
        ("''", "'' cannot be read: No such file or directory"),
        ("' '", "' ' cannot be read: No such file or directory"),
    ],
)
def test_no_answer_named(words: str, refusal: str) -> None:
    """Standard input is named as such, also where there is none, and a blank name is seen in the refusal."""
    command = f"exec {sys.executable} -m mooncake_config explain --diff {words}"
    run = subprocess.run(["sh", "-c", command], check=False, capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith(f"mooncake-config explain: error: --diff: {refusal}")


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"fields":' * 100_000, "\x00\xff", '{"version": 1, "nodes": {"a": NaN}']
)
def test_damaged_answer(text: str, tmp_path: Path) -> None:
    """However deep or damaged a file is, it is refused in a few words."""
    (tmp_path / "other.json").write_text(text)
    with pytest.raises(Unreadable, match="does not hold what") as refused:
        read_answer(str(tmp_path / "other.json"))
    assert len(str(refused.value)) < 400


def test_no_secret_in_a_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that holds something else is not quoted."""
    monkeypatch.chdir(tmp_path)
    Path("other.json").write_text('{"version": "geheim", "fields": "geheim"}')
    with pytest.raises(Unreadable) as refused:
        read_answer("other.json")
    assert "geheim" not in str(refused.value)


def test_endless_answer() -> None:
    """A stream without an end is given up when it is longer than any answer."""
    with pytest.raises(Unreadable, match="does not hold"):
        read_answer("/dev/zero")


def test_descriptor_is_closed(tmp_path: Path) -> None:
    """Reading leaves no descriptor open."""
    path = saved(tmp_path / "other.json", ask())
    before = len(list(Path("/proc/self/fd").iterdir()))
    read_answer(path)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_fields_differ_by_value_and_by_origin() -> None:
    """A field differs where its value does, and where only the place does in which it was set."""
    here = ask(MASTER | {"MOONCAKE_PROTOCOL": "rdma", "MOONCAKE_DEVICE": "mlx5_0"}, topology=TWO_NODES)
    comparison = Comparison(answer_of(here), answer_of(ask(topology=TWO_NODES)))
    assert [
        (name, one and (one.value, one.origin), other and (other.value, other.origin))
        for name, one, other in comparison.fields()
    ] == [
        ("protocol", ("rdma", "MOONCAKE_PROTOCOL"), ("rdma", "default")),
        ("device_name", ("mlx5_0", "MOONCAKE_DEVICE"), ("", "default")),
    ]


def test_circumstances_differ() -> None:
    """Process, job and replicas are compared too."""
    here = ask(topology=TWO_NODES, role=Role.DRIVER, replica_num=2)
    there = ask(topology=Topology(num_nodes=3, local_rank=0, processes_per_node=8, node_ip="10.0.0.7"))
    assert list(Comparison(answer_of(here), answer_of(there)).circumstances()) == [
        ("role", "driver", "trainer"),
        ("contributes_segment", False, True),
        ("num_nodes", 2, 3),
        ("trainer_nodes", 2, 3),
        ("replica_num", 2, 1),
    ]


def test_findings_differ_by_rule_and_field() -> None:
    """The same finding with another node's address in its words is no difference."""
    here = ask(MASTER | {"MOONCAKE_LOCAL_HOSTNAME": "localhost"}, topology=TWO_NODES)
    there = ask(MASTER | {"MOONCAKE_LOCAL_HOSTNAME": "127.0.0.1", "MOONCAKE_PROTOCOL": "rmda"}, topology=TWO_NODES)
    only_here, only_there = Comparison(answer_of(here), answer_of(there)).findings()
    assert only_here == []
    assert [finding.code for finding in only_there] == ["MC027"]


def test_findings_differ_by_their_place() -> None:
    """Two variables that nobody reads are two findings, though they are meant for one field."""
    here = ask(MASTER | {"MOONCAKE_MASTER_ADDR": "10.0.0.5:50051"}, topology=TWO_NODES)
    there = ask(MASTER | {"MOONCAKE_MASTER_HOST": "10.0.0.5:50051"}, topology=TWO_NODES)
    only_here, only_there = Comparison(answer_of(here), answer_of(there)).findings()
    assert [finding.origin for finding in only_here] == ["MOONCAKE_MASTER_ADDR"]
    assert [finding.origin for finding in only_there] == ["MOONCAKE_MASTER_HOST"]
