"""The three flags: on a parser, as launch arguments, and read out of a pasted command."""

from __future__ import annotations

import argparse
import json
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooncake_config.arguments import (
    WrongUse,
    add_object_store_arguments,
    get_mooncake_object_store_args,
    read_pasted_command,
)


def parse(*words: str) -> argparse.Namespace:
    """What a training script's parser makes of the words."""
    parser = argparse.ArgumentParser()
    add_object_store_arguments(parser)
    return parser.parse_args(words)


def test_training_job_defaults_to_ray() -> None:
    """A parser without our flags selects Ray's object store, no init kwargs and one replica."""
    options = parse()
    assert (options.object_store_backend, options.mooncake_store_init_kwargs, options.mooncake_replica_num) == (
        "ray",
        None,
        1,
    )


def test_init_kwargs_stay_text() -> None:
    """The parser hands the init kwargs on as they were written, broken or not."""
    assert parse("--mooncake-store-init-kwargs", "{protocol:tcp}").mooncake_store_init_kwargs == "{protocol:tcp}"


def test_unknown_backend_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """argparse refuses a backend that does not exist and names the two that do."""
    with pytest.raises(SystemExit):
        parse("--object-store-backend", "redis")
    assert "ray" in capsys.readouterr().err


def test_launch_arguments_of_a_bare_call() -> None:
    """Without arguments, the launch line is tcp to a master on loopback with 2 GiB each for segment and buffer."""
    assert get_mooncake_object_store_args() == (
        "--object-store-backend mooncake --mooncake-store-init-kwargs "
        '\'{"protocol": "tcp", "master_server_address": "127.0.0.1:50051", '
        '"global_segment_size": "2gb", "local_buffer_size": "2gb"}\''
    )


def test_launch_arguments_take_ipv6() -> None:
    """A bare IPv6 host gets its brackets."""
    assert '"[fd00::5]:50051"' in get_mooncake_object_store_args(master_host="fd00::5")


@given(st.dictionaries(st.sampled_from(["protocol", "device_name"]), st.text(min_size=1)), st.integers(1, 9))
def test_launch_arguments_survive_a_shell(fields: dict[str, object], replicas: int) -> None:
    """Whatever stands in the init kwargs, splitting the launch line as a shell does gives it back."""
    options = parse(*shlex.split(get_mooncake_object_store_args(init_kwargs=fields, replica_num=replicas)))
    assert json.loads(options.mooncake_store_init_kwargs).items() >= fields.items()
    assert options.mooncake_replica_num == replicas


@pytest.mark.parametrize(
    ("command", "value"),
    [
        ("python3 train.py --mooncake-replica-num 2", "2"),
        ("python3 train.py --mooncake-replica-num=2", "2"),
        ("python3 train.py --mooncake-replica-num 1 --mooncake-replica-num=3", "3"),
        ("ray job submit -- python3 train.py --mooncake-replica-num 2 --lr 1e-6", "2"),
        ("python3 train.py --mooncake-replica-nums 2", None),
        ("python3 train.py", None),
    ],
)
def test_flags_of_a_pasted_command(command: str, value: str | None) -> None:
    """Both spellings of a flag count, the last one wins, and other flags are left alone."""
    assert read_pasted_command(shlex.split(command)).flags.get("--mooncake-replica-num") == value


@pytest.mark.parametrize("command", ["train.py --mooncake-replica-num", "train.py --mooncake-replica-num --lr 1"])
def test_flag_without_value(command: str) -> None:
    """A flag of ours without a value is wrong use."""
    with pytest.raises(WrongUse, match="--mooncake-replica-num in the pasted command has no value"):
        read_pasted_command(shlex.split(command))


@pytest.mark.parametrize(
    ("command", "variables"),
    [
        ("MOONCAKE_MASTER=a:1 python3 train.py", {"MOONCAKE_MASTER": "a:1"}),
        ("A=1 env B=2 python3 train.py C=3", {"A": "1", "B": "2"}),
        ("ray job submit -- A=1 python3 train.py", {"A": "1"}),
        ("""ray job submit --runtime-env-json '{"env_vars": {"A": "1"}}' -- python3 train.py""", {"A": "1"}),
        ("""A=0 ray job submit --runtime-env-json='{"env_vars": {"A": "1"}}'""", {"A": "1"}),
        ("ray job submit --runtime-env-json '{}'", {}),
        ("ray job submit --runtime-env-json ''", {}),
    ],
)
def test_variables_of_a_pasted_command(command: str, variables: dict[str, str]) -> None:
    """Leading NAME=value words and env_vars of the runtime environment are variables; the latter win."""
    assert read_pasted_command(shlex.split(command)).variables == variables


def test_runtime_env_is_the_spot() -> None:
    """A variable of the runtime environment is edited there."""
    pasted = read_pasted_command(["ray", "--runtime-env-json", '{"env_vars": {"A": "1"}}'])
    assert pasted.spots == {"A": "--runtime-env-json A"}


@pytest.mark.parametrize(
    ("text", "offence"),
    [
        ("{env_vars:{A:1}}", "broken-json"),
        ("[" * 100_000, "broken-json"),
        ('{"env_vars": {"A": NaN}}', "broken-json"),
        ('{"env_vars": {"A": "1", "A": "2"}}', "doubled-key"),
        ("[1]", "not-an-object"),
        ('{"env_vars": ["A"]}', "not-an-object"),
        ('{"env_vars": {"A": 1}}', "wrong-type"),
    ],
)
def test_damaged_runtime_env(text: str, offence: str) -> None:
    """A runtime environment that cannot be read is a fault, not an exception."""
    faults = read_pasted_command(["ray", f"--runtime-env-json={text}"]).faults
    assert [(fault.offence, fault.origin.spot) for fault in faults] == [(offence, "--runtime-env-json")]
