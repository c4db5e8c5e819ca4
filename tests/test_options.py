"""The job options: what they refuse, and the question that they make."""

from __future__ import annotations

import argparse
import shlex

import pytest

from mooncake_config.arguments import WrongUse, read_pasted_command
from mooncake_config.findings import Severity
from mooncake_config.job import Job
from mooncake_config.options import add_job_options, job_of, rule_names
from mooncake_config.process import Backend
from mooncake_config.provenance import Source
from mooncake_config.rules import examine, find_rule
from mooncake_config.topology import Role, Topology


def job(own: str = "", pasted: str | None = None) -> Job:
    """The question of a launch line: our own options, and a training command behind them."""
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_job_options(parser)
    options = parser.parse_args(shlex.split(own))
    options.pasted = None if pasted is None else read_pasted_command(shlex.split(pasted), {})
    return job_of(options)


def test_job_without_a_word() -> None:
    """Nothing said is a trainer of a job with Mooncake of which nothing else is known."""
    assert job() == Job(None, Backend.MOONCAKE, Role.TRAINER, 1, Topology())


def test_every_option_is_asked() -> None:
    """Each option has its place in the question."""
    asked = job(
        "--object-store-backend ray --mooncake-store-init-kwargs {} --mooncake-replica-num 2 --role driver "
        "--local-rank 0 --num-nodes 4 --trainer-nodes 3 --processes-per-node 8 --node-ip 10.0.0.7"
    )
    assert asked == Job("{}", Backend.RAY, Role.DRIVER, 2, Topology(4, 3, 0, 8, "10.0.0.7"))


def test_pasted_flags_are_asked() -> None:
    """Flags of ours behind -- count like those before it, and no other word there does."""
    asked = job(
        "--num-nodes 2", "train.py --mooncake-replica-num=2 --num-nodes 64 --object-store-backend ray --role boss"
    )
    assert (asked.replica_num, asked.topology.num_nodes, asked.backend, asked.role) == (2, 2, Backend.RAY, Role.TRAINER)


@pytest.mark.parametrize(
    ("own", "assumed"), [("", ["assumed-backend"]), ("--object-store-backend mooncake", [])], ids=["silent", "said"]
)
def test_assumed_backend(own: str, assumed: list[str]) -> None:
    """A pasted command that selects no backend is read as mooncake, which is told unless it was said."""
    asked = job(own, "python3 train.py")
    assert asked.backend is Backend.MOONCAKE
    assert [fault.offence for fault in asked.faults] == assumed
    rule = find_rule("assumed-backend")
    assert rule
    assert rule.severity is Severity.INFO


def test_assumed_backend_of_a_script() -> None:
    """Of a script that is not opened nobody says that it selects no object store."""
    (told,) = [fault for fault in job("", "bash launch.sh").faults if fault.offence == "assumed-backend"]
    assert told.message == (
        "which object store launch.sh selects is unknown, as it is not opened; it is read as mooncake here."
    )
    assert told.fix == "paste the script itself, or say it before the --: --object-store-backend mooncake."


def test_missing_master_of_a_script() -> None:
    """Where a file is not opened, no master is set in what is read, which is all that is said."""
    findings = examine(job("", "bash launch.sh").resolve())
    (missing,) = [finding for finding in findings if finding.code == "MC100"]
    assert missing.message == "no master address is set in what is read here, and there is no default for it."
    assert missing.fix.startswith("let the file be read that is not opened, as its own finding says; if it sets none, ")


@pytest.mark.parametrize(
    "own",
    [
        "--role boss",
        "--local-rank first",
        "--local-rank -1",
        "--local-rank ١",
        "--num-nodes 0",
        "--num-nodes 99999999999",
        "--trainer-nodes 0",
        "--processes-per-node 1.5",
        "--object-store-backend redis",
        "--mooncake-replica-num two",
        "--ignore MC999",
    ],
)
def test_refused_option(own: str) -> None:
    """A text that is no choice, no whole number in its range or no rule is wrong use."""
    with pytest.raises((argparse.ArgumentError, SystemExit)):
        job(own)


@pytest.mark.parametrize(
    ("own", "pasted", "refusal"),
    [
        ("", "train.py --object-store-backend redis", "redis in the pasted command: choose from ray, mooncake"),
        ("", "train.py --mooncake-replica-num two", "two in the pasted command is not an integer"),
        (
            "--mooncake-replica-num 1",
            "train.py --mooncake-replica-num 1",
            "--mooncake-replica-num stands before -- and",
        ),
        (
            "--object-store-backend ray",
            "train.py --object-store-backend=ray",
            "--object-store-backend stands before --",
        ),
        (
            "--mooncake-store-init-kwargs {}",
            "train.py --mooncake-store-init-kwargs {}",
            "--mooncake-store-init-kwargs stands before -- and in the pasted command; give it once",
        ),
    ],
)
def test_refused_command(own: str, pasted: str, refusal: str) -> None:
    """A flag of ours in a pasted command must be a choice or a number, and stand on one side of -- only."""
    with pytest.raises(WrongUse) as refused:
        job(own, pasted)
    assert refusal in str(refused.value)


@pytest.mark.parametrize(
    ("own", "variables", "origin"),
    [
        ("--local-rank 8", {}, (Source.CLI, "--local-rank")),
        ("--local-rank 8", {"LOCAL_RANK": "3"}, (Source.CLI, "--local-rank")),
        ("", {"LOCAL_RANK": "8"}, (Source.ENV, "LOCAL_RANK")),
    ],
)
def test_place_of_the_rank(
    own: str, variables: dict[str, str], origin: tuple[Source, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rank that is too high names the place where it was set."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    process = job(f"--num-nodes 1 --processes-per-node 8 --node-ip 10.0.0.7 {own}").resolve()
    (finding,) = (finding for finding in examine(process) if finding.code == "MC111")
    assert finding.origin
    assert (finding.source, finding.origin.spot) == origin


def test_rule_names() -> None:
    """Every word of the list finds its rule, and a rule is in it by its code and by its name."""
    found = [find_rule(name) for name in rule_names()]
    assert all(found)
    assert len(found) == 2 * len(set(found))
