"""A job: what a pasted command adds to it, and which variables it hands to nobody."""

from __future__ import annotations

import pickle
import shlex

import pytest

from mooncake_config.arguments import read_pasted_command
from mooncake_config.findings import Finding
from mooncake_config.job import Job
from mooncake_config.process import Backend, Process
from mooncake_config.provenance import Origin, Source
from mooncake_config.rules import examine
from mooncake_config.topology import Role, Topology

TWO_NODES = Topology(num_nodes=2, local_rank=0, processes_per_node=8, node_ip="10.0.0.7")
RAY_JOB = "ray job submit -- python3 train.py"
MASTER_ENV = """--runtime-env-json '{"env_vars": {"MOONCAKE_MASTER": "10.0.0.5:50051"}}'"""


@pytest.fixture(autouse=True)
def shell_with_a_master(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shell that asks has exported a good master."""
    monkeypatch.setenv("MOONCAKE_MASTER", "10.0.0.5:50051")


def job(command: str, role: Role = Role.TRAINER, backend: Backend = Backend.MOONCAKE) -> Job:
    """A two-node job that a command starts."""
    pasted = read_pasted_command(shlex.split(command), {})
    kwargs = pasted.flags.get("--mooncake-store-init-kwargs")
    return Job(kwargs, backend, role, 1, TWO_NODES, pasted)


def found(process: Process, code: str) -> list[Finding]:
    """What one rule finds."""
    return [finding for finding in examine(process) if finding.code == code]


def test_job_pickles() -> None:
    """A question travels to another node as it is."""
    asked = job(f"MOONCAKE_PROTOCOL=tcp {RAY_JOB}")
    assert pickle.loads(pickle.dumps(asked)) == asked


def test_runtime_environment_to_paste_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """A value that is to be pasted into the runtime environment keeps its middle, however long it is."""
    master = "etcd://" + ";".join(f"etcd-{number}.master.example.com:2379" for number in range(5))
    monkeypatch.setenv("MOONCAKE_MASTER", master)
    (finding,) = found(job(RAY_JOB).resolve(), "MC132")
    assert f'"MOONCAKE_MASTER": "{master}"' in finding.fix


def test_variables_of_the_command_win() -> None:
    """A variable on the launch line is over that of the shell; env_vars are named as their place."""
    process = job("MOONCAKE_MASTER=10.0.0.6:1 python3 train.py").resolve()
    assert process.values["master_server_address"] == "10.0.0.6:1"
    process = job(RAY_JOB.replace("submit", f"submit {MASTER_ENV}")).resolve()
    assert process.ledger.origin("master_server_address") == Origin(Source.ENV, "--runtime-env-json MOONCAKE_MASTER")


@pytest.mark.parametrize(
    ("role", "command", "fields"),
    [
        (Role.TRAINER, RAY_JOB, ("master_server_address",)),
        (Role.TRAINER, f"MOONCAKE_PROTOCOL=tcp {RAY_JOB}", ("master_server_address", "protocol")),
        (Role.TRAINER, f"MOONCAKE_DEVICE=mlx5_0 {RAY_JOB}", ("master_server_address", "device_name")),
        (
            Role.TRAINER,
            RAY_JOB.replace("python3", "MOONCAKE_PROTOCOL=tcp python3"),
            ("master_server_address", "protocol"),
        ),
        (Role.DRIVER, RAY_JOB.replace("python3", "MOONCAKE_MASTER=10.0.0.6:1 python3"), None),
        (Role.TRAINER, RAY_JOB.replace("submit", f"submit {MASTER_ENV}"), None),
        (
            Role.TRAINER,
            f'{RAY_JOB} --mooncake-store-init-kwargs \'{{"master_server_address": "10.0.0.5:50051"}}\'',
            None,
        ),
        (Role.TRAINER, RAY_JOB.replace("submit", "submit --runtime-env=env.yaml"), None),
        (Role.TRAINER, RAY_JOB.replace("-- ", ""), ("master_server_address",)),
        (Role.TRAINER, "python3 train.py", None),
        (Role.TRAINER, "ray start --head", None),
    ],
)
def test_submitter_only_variable(role: Role, command: str, fields: tuple[str, ...] | None) -> None:
    """What only the submitting shell has reaches no actor; it is told where such a variable wins a field."""
    process = job(command, role).resolve()
    assert [finding.fields for finding in found(process, "MC132")] == ([] if fields is None else [fields])
    assert process.values["master_server_address"]


def test_way_out_of_the_submitting_shell() -> None:
    """What all nodes share goes into the runtime environment, masked; what belongs to a node is exported there."""
    variables = "MOONCAKE_DEVICE=mlx5_0 MOONCAKE_TE_META_DATA_SERVER=http://u:geheim@10.0.0.5:8080/metadata"
    (finding,) = found(job(f"{variables} {RAY_JOB}").resolve(), "MC132")
    assert finding.fix == (
        'put {"env_vars": {"MOONCAKE_MASTER": "10.0.0.5:50051", '
        '"MOONCAKE_TE_META_DATA_SERVER": "http://u:***@10.0.0.5:8080/metadata"}} into --runtime-env-json; '
        "export MOONCAKE_DEVICE on each node before Ray starts there."
    )


@pytest.mark.parametrize(
    ("command", "master", "message"),
    [
        ("env -i python3 train.py", None, "env -i takes away MOONCAKE_MASTER, which this shell has."),
        ("MOONCAKE_MASTER=b:1 env - t.py", None, "env -i takes away MOONCAKE_MASTER, which this shell has."),
        ("/usr/bin/env -u MOONCAKE_MASTER t.py", None, "env -u takes away MOONCAKE_MASTER, which this shell has."),
        ("env -i MOONCAKE_MASTER=b:1 t.py", "b:1", None),
        ("env -u MOONCAKE_PROTOCOL t.py", "10.0.0.5:50051", None),
        (
            "sudo t.py",
            "10.0.0.5:50051",
            "sudo hands MOONCAKE_MASTER on with -E only, or where sudoers keeps such variables.",
        ),
        ("sudo MOONCAKE_MASTER=b:1 t.py", "b:1", None),
        (
            "ssh node-2 t.py",
            "10.0.0.5:50051",
            "ssh hands MOONCAKE_MASTER to nobody: the other host has its own variables, if any.",
        ),
        ("ssh node-2 'MOONCAKE_MASTER=b:1 t.py'", "b:1", None),
        ("sudo -E t.py", "10.0.0.5:50051", None),
        ("sudo --preserve-env=LANG,MOONCAKE_MASTER t.py", "10.0.0.5:50051", None),
        ("env t.py", "10.0.0.5:50051", None),
    ],
)
def test_dropped_variable(command: str, master: str | None, message: str | None) -> None:
    """What env takes away does not count; what sudo or ssh may take away does; all are told where a field had it."""
    process = job(command).resolve()
    assert process.values["master_server_address"] == master
    assert [finding.message for finding in found(process, "MC136")] == ([] if message is None else [message])


def test_nothing_is_dropped_for_ray() -> None:
    """With Ray's object store nobody needs the variables."""
    for command in ("env -i t.py", "sudo t.py", RAY_JOB):
        assert examine(job(command, backend=Backend.RAY).resolve()) == ()


def test_variable_that_a_script_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable of ours that a script sets and does not export is told, with the line that mends it."""
    monkeypatch.delenv("MOONCAKE_MASTER")
    (finding,) = found(job("bash -c 'MOONCAKE_MASTER=a:1; python3 train.py'").resolve(), "MC139")
    assert finding.fields == ("master_server_address",)
    assert finding.message == (
        "the script sets MOONCAKE_MASTER to a:1 and does not export it, so no program that it starts has it."
    )
    assert finding.fix == "write export MOONCAKE_MASTER=… there."


def test_variable_that_reaches_the_init_kwargs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable that a script keeps, and hands over in the init kwargs, is nothing to tell."""
    monkeypatch.delenv("MOONCAKE_MASTER")
    kwargs = '{\\"master_server_address\\": \\"$MOONCAKE_MASTER\\"}'
    script = f'MOONCAKE_MASTER=a:1; python3 train.py --mooncake-store-init-kwargs "{kwargs}"'
    process = job(shlex.join(["bash", "-c", script])).resolve()
    assert process.values["master_server_address"] == "a:1"
    assert found(process, "MC139") == []


def test_variable_that_the_init_kwargs_outdo() -> None:
    """What only a run tells of a variable is no loss where the init kwargs have the field."""
    kwargs = '{"master_server_address": "a:1"}'
    script = f"MOONCAKE_MASTER=$(x):1 ray job submit -- python3 x.py --mooncake-store-init-kwargs '{kwargs}'"
    assert found(job(shlex.join(["bash", "-c", script])).resolve(), "MC132") == []
