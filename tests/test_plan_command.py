"""The command plan: its options, exit status and formats, on a host that was copied away."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from machines import lay_out

from mooncake_config.cli import main

GIB = 1 << 30
JOB = ("--num-nodes", "2", "--trainer-nodes", "1", "--processes-per-node", "8")


@pytest.fixture
def root(tmp_path: Path) -> str:
    """A host with 512 GiB."""
    return str(lay_out(tmp_path, {"proc/meminfo": f"MemTotal: {512 << 20} kB\n"}))


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    """Exit status and JSON answer of plan."""
    own, pasted = (words[: words.index("--")], words[words.index("--") :]) if "--" in words else (words, ())
    status = main(["plan", *own, "--format", "json", *pasted])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return status, document


def test_defaults(root: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A node with eight trainers and the default sizes needs 264 GiB, and no master is asked for."""
    status, document = answer(capsys, *JOB, "--host-root", root)
    assert status == 0
    assert document["ok"]
    assert [(node["role"], node["total"], node["memory"]) for node in document["nodes"]] == [
        ("head", 64 * GIB, 512 * GIB),
        ("trainer", 264 * GIB, 512 * GIB),
    ]
    assert (document["capacity"], document["rollouts_that_fit"]) == (8 * GIB, None)


def test_pasted_command(root: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Sizes and replicas are read out of a launch line."""
    line = (
        "MOONCAKE_LOCAL_BUFFER_SIZE=1gb python3 train.py --object-store-backend mooncake --mooncake-replica-num 2 "
        '--mooncake-store-init-kwargs {"global_segment_size":"4gb"}'
    )
    words = ("--num-nodes", "2", "--processes-per-node", "8", "--rollout-bytes", "512mb", "--host-root", root)
    status, document = answer(capsys, *words, "--", *line.split())
    assert (status, document["capacity"], document["rollouts_that_fit"]) == (0, 8 * GIB, 7)
    assert [node["buffers"] for node in document["nodes"]] == [10 * GIB, 8 * GIB]


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ((*JOB, "--rollout-bytes", "1gb", "--in-flight", "7"), 0),
        ((*JOB, "--rollout-bytes", "1gb", "--in-flight", "8"), 1),
        ((*JOB, "--rollout-bytes", "1gb", "--in-flight", "8", "--ignore", "MC140"), 0),
        ((*JOB, "--rollout-bytes", "8gb"), 1),
        ((*JOB, "--mooncake-replica-num", "2"), 0),
        ((*JOB, "--mooncake-replica-num", "2", "--strict"), 1),
        ((*JOB, "--object-store-backend", "ray", "--rollout-bytes", "1tb"), 0),
        (("--mooncake-store-init-kwargs", '{"global_segment_size": "8 gigs"}'), 1),
        ((), 0),
    ],
)
def test_status(words: tuple[str, ...], status: int, root: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The status is 1 where an error stands, with --strict a warning, else 0; the page and the document agree."""
    found, document = answer(capsys, *words, "--host-root", root)
    assert found == main(["plan", *words, "--host-root", root]) == status
    page = capsys.readouterr().out
    assert all(f"{finding['code']} {finding['rule']}" in page for finding in document["findings"])


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (("--rollout-bytes", "8 gigs"), "8 gigs is not a size;"),
        (("--rollout-bytes", "0"), "0 bytes are no rollout; write a size such as 256mb"),
        (("--rollout-bytes", "-1"), "--rollout-bytes"),
        (("--in-flight", "0"), "0' is not a whole number of 1 or more"),
        (("--in-flight", "many"), "is not a whole number of 1 or more"),
        (("--in-flight", "1" + "0" * 9), "'1000000000' is more than 999999999"),
        (("--rollout-bytes", ""), "'' is not a size; write a number"),
        (("--rollout-bytes", "1e3mb"), "1e3mb is in exponent form; write all digits"),
        (("--host-root", "/nowhere/at/all"), "is no directory here"),
        (("--host-root", ""), "'' is no directory here"),
        (("--host-root", " "), "' ' is no directory here"),
        (("--format", "env"), "env"),
        (("--num-nodes", "0"), "is not a whole number of 1 or more"),
        (("--rollout-byte", "1gb"), "--rollout-bytes"),
    ],
)
def test_wrong_use(words: tuple[str, ...], refusal: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Wrong use is status 2, and told on standard error alone."""
    with pytest.raises(SystemExit) as end:
        main(["plan", *words])
    assert end.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert refusal in " ".join(err.split())


def test_neither_ray_nor_mooncake_is_imported(root: str) -> None:
    """A plan is made without Ray, Mooncake or a socket: on a laptop, before there is a cluster."""
    program = (
        "import sys; from mooncake_config.cli import main; status = main(sys.argv[1:]); "
        "assert not {'ray', 'mooncake'} & sys.modules.keys(); sys.exit(status)"
    )
    words = ("plan", *JOB, "--rollout-bytes", "1gb", "--host-root", root)
    environment = {**os.environ, "COLUMNS": "80"}
    command = [sys.executable, "-c", program, *words]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert "7 fit" in done.stdout
