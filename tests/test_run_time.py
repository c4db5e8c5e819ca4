"""What only a run of a script tells: it is left out, told, and nothing else follows from its absence."""

from __future__ import annotations

import json

import pytest

from mooncake_config.cli import main
from mooncake_config.findings import Fault
from mooncake_config.init_kwargs import Reading
from mooncake_config.provenance import Origin, Source
from mooncake_config.run_time import RunTime

FLAG = "--mooncake-store-init-kwargs"


def test_told() -> None:
    """What is not known is told with the expression, the place, and the way to have it checked."""
    fault = RunTime(["$(hostname -i)"]).fault(
        "MOONCAKE_MASTER", "$(hostname -i):1", (), Origin(Source.ENV, "MOONCAKE_MASTER")
    )
    assert fault == Fault(
        "known-at-run-time",
        (),
        Origin(Source.ENV, "MOONCAKE_MASTER"),
        "MOONCAKE_MASTER is $(hostname -i):1, with what $(hostname -i) gives when the script runs, "
        "so it is not checked here.",
        "to have it checked, write in place of $(hostname -i) what it will give.",
    )


@pytest.mark.parametrize("expression", ["$HEAD", "${HEAD}"])
def test_variable_can_be_set(expression: str) -> None:
    """A variable that is missing can be set."""
    fault = RunTime([expression]).fault("MOONCAKE_MASTER", expression, (), Origin(Source.ENV, "MOONCAKE_MASTER"))
    assert (
        fault.message == f"MOONCAKE_MASTER is what {expression} gives when the script runs, so it is not checked here."
    )
    assert fault.fix == "to have it checked, set HEAD in the script, or write in its place what it will be."


def test_password_in_an_expression() -> None:
    """An expression is shown as any other text: without a password, and without the column of another text."""
    secret = "$(curl -u me:s3cr3t http://h)"
    reading = RunTime([secret]).init_kwargs(f'{{"master_server_address": "{secret}", }}')
    assert isinstance(reading, Reading)
    (fault,) = reading.faults
    assert "s3cr3t" not in fault.message + fault.fix
    assert "column" not in fault.message


def test_number_that_stands_for_nothing() -> None:
    """A number that looks like those which stand for expressions is what it is."""
    run_time = RunTime(["$A"])
    assert run_time.restored(run_time.tokened("$A 72634019587999")) == "$A 72634019587999"


def test_own_value() -> None:
    """A variable that is set from elsewhere, or otherwise in a branch, is told by its name."""
    fault = RunTime(["$A"]).fault("A", "$A", (), Origin(Source.ENV, "A"))
    assert fault.message == "what A holds is known when the script runs, so it is not checked here."
    assert fault.fix == "to have it checked, write there what it will be."


def test_init_kwargs_without_an_expression() -> None:
    """Init kwargs that hold no such expression stay the text that they are."""
    assert RunTime(["$A"]).init_kwargs('{"protocol": "$B"}') == '{"protocol": "$B"}'


def test_field_that_a_run_decides() -> None:
    """A field whose value a run decides is none that is claimed; the others are."""
    reading = RunTime(["$A"]).init_kwargs('{"protocol": "tcp", "device_name": "$A", "chunk_bytes": 1}')
    assert isinstance(reading, Reading)
    assert set(reading.claims) == {"protocol", "chunk_bytes"}
    assert [(fault.offence, fault.fields) for fault in reading.faults] == [("known-at-run-time", ("device_name",))]


@pytest.mark.parametrize(
    ("text", "offences"),
    [
        ("$A", ["known-at-run-time"]),
        ('{"chunk_bytes": $A}', ["known-at-run-time"]),
        ("@$A/store.json", ["known-at-run-time"]),
        ('{"protocol": tcp, "device_name": "$A"}', ["broken-json"]),
        ('{"protocl": "$A"}', ["unknown-key"]),
    ],
)
def test_form_that_a_run_decides(text: str, offences: list[str]) -> None:
    """Where a run decides whether it is JSON at all, that is told; where the JSON is broken anyway, so is that."""
    reading = RunTime(["$A"]).init_kwargs(text)
    assert isinstance(reading, Reading)
    assert (dict(reading.claims), [fault.offence for fault in reading.faults]) == ({}, offences)


@pytest.mark.parametrize(
    ("script", "codes"),
    [
        ("MOONCAKE_MASTER=$(hostname -i):50051 python3 train.py", ["MC131", "MC138"]),
        ("export MOONCAKE_MASTER=$(hostname -i):50051\nray job submit -- train.py", ["MC131", "MC132", "MC138"]),
        (f'python3 train.py {FLAG} "$KWARGS"', ["MC131", "MC138"]),
        (f'python3 train.py {FLAG} "{{\\"master_server_address\\": \\"$HEAD:1\\"}}"', ["MC131", "MC138"]),
        ('ray job submit --runtime-env-json "$ENV" -- python3 train.py', ["MC131", "MC138"]),
        ("LOCAL_RANK=$SLURM_LOCALID python3 train.py", ["MC100", "MC131", "MC138"]),
        ("python3 train.py --object-store-backend $1", ["MC100", "MC138"]),
        ("A=$1 python3 train.py", ["MC100", "MC131"]),
        ("export MOONCAKE_MASTER=a:1 MOONCAKE_LOCAL_HOSTNAME=$(hostname -i); python3 x.py", ["MC131", "MC138"]),
        ("export MOONCAKE_MASTER=a:1 MOONCAKE_LOCAL_BUFFER_SIZE=$B\npython3 x.py", ["MC131", "MC138"]),
        ("export $(cat .env)\npython3 x.py", ["MC131", "MC138"]),
    ],
)
def test_what_follows(script: str, codes: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Where only a run tells the master, or the text that may hold it, it is not missed; nothing else is softened."""
    main(["explain", "--num-nodes", "2", "--node-ip", "10.0.0.7", "--format", "json", "--", "bash", "-c", script])
    assert sorted(finding["code"] for finding in json.loads(capsys.readouterr().out)["findings"]) == codes


@pytest.fixture
def unknown_master(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A launch line in which nothing is wrong, and of which only a run tells the master."""
    for name, value in (("PROTOCOL", "tcp"), ("GLOBAL_SEGMENT_SIZE", "64mb"), ("LOCAL_BUFFER_SIZE", "64mb")):
        monkeypatch.setenv(f"MOONCAKE_{name}", value)
    return [
        "--num-nodes",
        "1",
        "--node-ip",
        "127.0.0.1",
        "--",
        "bash",
        "-c",
        "MOONCAKE_MASTER=$HEAD:1 python3 train.py",
    ]


def test_page_names_what_is_open(unknown_master: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Below the table of settings stands which of them a run of the script may make another."""
    assert main(["explain", *unknown_master]) == 0
    page = " ".join(capsys.readouterr().out.split())
    assert "Only a run of the script tells master_server_address; above is what holds without it." in page


@pytest.mark.mooncake
def test_no_dry_setup_without_a_master(unknown_master: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Where only a run tells the master no setup is tried: without one it kills its process."""
    main(["check", "--dry-setup", "--format", "json", *unknown_master])
    answers = [probe["answer"] for probe in json.loads(capsys.readouterr().out)["probes"]]
    assert answers[-1] == "not tried: only a run of the script tells the master"


def test_variable_of_this_shell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """What this shell has for a variable that the script sets to something else is not what holds."""
    monkeypatch.setenv("MOONCAKE_PROTOCOL", "tcp")
    main(
        ["explain", "--num-nodes", "1", "--field", "protocol", "--", "bash", "-c", "MOONCAKE_PROTOCOL=$1 python3 x.py"]
    )
    assert capsys.readouterr().out == "rdma\n"
