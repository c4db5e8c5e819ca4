"""The three flags: on a parser, as launch arguments, and read out of a pasted command."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooncake_config.arguments import (
    PastedCommand,
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


def read(words: Sequence[str]) -> PastedCommand:
    """What a pasted command says, in a shell without variables."""
    return read_pasted_command(words, {})


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


@pytest.mark.parametrize("port", ["abc", "", 0, -1, 65536, True, None, 50051.5])
def test_launch_arguments_take_a_port(port: Any) -> None:
    """What is no port is refused before it stands in a launch line."""
    with pytest.raises(ValueError, match=r"^master_port is 1 to 65535, not "):
        get_mooncake_object_store_args(port)


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
    assert read(shlex.split(command)).flags.get("--mooncake-replica-num") == value


@pytest.mark.parametrize("command", ["train.py --mooncake-replica-num", "train.py --mooncake-replica-num --lr 1"])
def test_flag_without_value(command: str) -> None:
    """A flag of ours without a value is wrong use."""
    with pytest.raises(WrongUse, match="--mooncake-replica-num in the pasted command has no value"):
        read(shlex.split(command))


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
    assert read(shlex.split(command)).variables == variables


@pytest.mark.parametrize(
    ("command", "cleared", "unset", "through_sudo"),
    [
        ("A=1 python3 train.py -i -u B", False, set(), None),
        ("env -i python3 train.py", True, set(), None),
        ("/usr/bin/env - python3 train.py", True, set(), None),
        ("env --ignore-environment python3 train.py", True, set(), None),
        ("env -vi python3 train.py", True, set(), None),
        ("env -u B -uC --unset=D --unset E python3 train.py", False, {"B", "C", "D", "E"}, None),
        ("env -u B B=1 python3 train.py", False, set(), None),
        ("env -C /job -u B python3 train.py", False, {"B"}, None),
        ("env -S python3 train.py", False, set(), None),
        ("sudo python3 train.py", False, set(), set()),
        ("B=1 sudo -u miles A=1 python3 train.py", False, set(), {"A"}),
        ("sudo -E python3 train.py", False, set(), None),
        ("sudo -nE python3 train.py", False, set(), None),
        ("sudo --preserve-env python3 train.py", False, set(), None),
        ("sudo --preserve-env=A,B python3 train.py", False, set(), {"A", "B"}),
        ("ssh node-2 python3 train.py", False, set(), set()),
        ("A=1 ssh -p 22 node-2 'B=1 python3 train.py'", False, set(), {"B"}),
        ("bash -c 'for node in a b; do ssh $node B=1 python3 train.py; done'", False, set(), {"B"}),
        ("deepspeed --launcher ssh train.py", False, set(), None),
        ("bash -c 'exec env -i sudo python3 train.py'", True, set(), set()),
    ],
)
def test_variables_that_are_taken_away(
    command: str, cleared: bool, unset: set[str], through_sudo: set[str] | None
) -> None:
    """env -i, env -u, sudo and ssh are read for what they keep from the program behind them."""
    pasted = read(shlex.split(command))
    handed = None if pasted.through_sudo is None else set(pasted.through_sudo)
    assert (pasted.cleared, set(pasted.unset), handed) == (cleared, unset, through_sudo)


def test_variables_before_a_cleared_environment() -> None:
    """What stands before env -i is taken away too, and what stands behind it is not."""
    assert read(["A=1", "env", "-i", "B=2", "train.py"]).variables == {"B": "2"}


@pytest.mark.parametrize(
    "command",
    [
        """bash -c "A=1 python3 train.py --mooncake-replica-num 2" """,
        """bash -lc "cd /job && A=1 python3 train.py --mooncake-replica-num 2 2>&1 | tee log" """,
        """/bin/sh -euxo pipefail -c 'set -e; export A=1; python3 train.py --mooncake-replica-num=2'""",
        """nohup bash -o pipefail -c 'set -e\nA=1 \\\n python3 train.py \\\n --mooncake-replica-num 2'""",
        """docker run image bash -c "sh -c 'A=1 python3 train.py --mooncake-replica-num 2'" """,
        """ray job submit -- bash -c "A=1 python3 train.py --mooncake-replica-num 2" """,
        """'A=1 python3 train.py --mooncake-replica-num 2'""",
        "sudo -E A=1 python3 train.py --mooncake-replica-num 2",
        "sudo -u miles -E A=1 python3 train.py --mooncake-replica-num 2",
        "env -i A=1 python3 train.py --mooncake-replica-num 2",
        "env -u B A=1 python3 train.py --mooncake-replica-num 2",
        "srun --export=ALL,A=1 python3 train.py --mooncake-replica-num 2",
        "srun -N 2 --export ALL,B=2,A=1 python3 train.py --mooncake-replica-num 2",
        "docker run -e A=1 image python3 train.py --mooncake-replica-num 2",
        "podman run --env=A=1 image python3 train.py --mooncake-replica-num 2",
        "mpirun -n 2 -x A=1 python3 train.py --mooncake-replica-num 2",
        'ssh node-2 "A=1 python3 train.py --mooncake-replica-num 2"',
        "ssh -p 22 -t miles@node-2 A=1 python3 train.py --mooncake-replica-num 2",
        """bash -c 'for node in a b; do ssh $node "A=1 python3 train.py --mooncake-replica-num 2" & done; wait'""",
        """bash -c '#!/bin/bash\n# it'"'"'s for 2 nodes\nset -ex\nA=1 python3 train.py --mooncake-replica-num 2'""",
    ],
)
def test_wrapped_command(command: str) -> None:
    """Shells, sudo, env, containers and launchers around a command hide neither its variables nor its flags."""
    pasted = read(shlex.split(command))
    assert pasted.variables["A"] == "1"
    assert (pasted.flags, pasted.faults) == ({"--mooncake-replica-num": "2"}, ())


@pytest.mark.parametrize(
    ("script", "master"),
    [
        ("HEAD=10.0.0.5; MOONCAKE_MASTER=$HEAD:50051 python3 train.py", "10.0.0.5:50051"),
        ("export HEAD=a; bash -c 'MOONCAKE_MASTER=$HEAD:1 python3 train.py'", "a:1"),
        ("MOONCAKE_MASTER=$HERE:1 python3 train.py", "here:1"),
        ("HEAD=a; MOONCAKE_MASTER='$HEAD:1' python3 train.py", "$HEAD:1"),
    ],
)
def test_variables_of_a_script(script: str, master: str) -> None:
    """What a script sets is put in where a shell would put it, over what this shell has."""
    assert read_pasted_command(["bash", "-c", script], {"HERE": "here"}).variables["MOONCAKE_MASTER"] == master


@pytest.mark.parametrize(
    "lines",
    [
        "{P}",
        "sudo sysctl -w x=1\n{P}",
        "{P}\nsudo rm -rf /tmp/ray",
        "ssh worker 'ray start --address=a:1'\n{P}",
        "env -i bash -c 'echo hi'\n{P}",
        "env -u MOONCAKE_MASTER ray status\n{P}",
        "docker run -e MOONCAKE_MASTER=c:1 image mooncake_master\n{P}",
        "MOONCAKE_MASTER=b:1 ray start --head\n{P}",
        "(export MOONCAKE_MASTER=b:1; ray start)\n{P}",
        "{P}\nexport MOONCAKE_MASTER=b:1",
        "echo export MOONCAKE_MASTER=b:1 --object-store-backend ray\n{P}",
        "{P}\npython3 report.py",
        "chmod +x run.sh\n{P}",
        "bash <(sed x) && {P}",
        "source env.sh\n{P}",
        "for i in 1; do {P}; done",
        "srun bash -c '{P}'",
        "ray job submit -- {P}",
    ],
)
def test_command_that_launches_the_training(lines: str) -> None:
    """Of all commands of a script the launch counts, with what is exported until then; no other one touches it."""
    program = "python3 train.py --object-store-backend mooncake --mooncake-replica-num 2"
    pasted = read(["bash", "-c", f"export MOONCAKE_MASTER=a:1\n{lines.replace('{P}', program)}"])
    assert pasted.variables == {"MOONCAKE_MASTER": "a:1"}
    assert pasted.flags == {"--object-store-backend": "mooncake", "--mooncake-replica-num": "2"}
    assert (pasted.cleared, pasted.unset, pasted.through_sudo) == (False, frozenset(), None)


def test_launch_without_our_flags() -> None:
    """Where no command has a flag of ours, the last one that runs a program is the training."""
    script = "source env.sh\npython3 convert.py\nexport MOONCAKE_MASTER=a:1\npython3 train.py\necho done"
    pasted = read(["bash", "-c", script])
    assert pasted.variables == {"MOONCAKE_MASTER": "a:1"}
    assert [fault.offence for fault in pasted.faults] == ["unopened-file"]


@pytest.mark.parametrize(
    "script",
    [
        "export MOONCAKE_MASTER=a:1\nexport MOONCAKE_PROTOCOL=tcp",
        "cd /job\nexport MOONCAKE_MASTER=a:1 MOONCAKE_PROTOCOL=tcp",
        "export MOONCAKE_MASTER=a:1\nMOONCAKE_PROTOCOL=tcp miles-train --lr 1\necho done",
    ],
)
def test_script_without_a_launch(script: str) -> None:
    """A script in which nothing looks like a training is read as a whole."""
    assert read(["bash", "-c", script]).variables == {"MOONCAKE_MASTER": "a:1", "MOONCAKE_PROTOCOL": "tcp"}


@pytest.mark.parametrize(
    ("program", "master"),
    [
        ("bash", "here:1"),
        ("srun -N2 bash -x", "here:1"),
        ("bash -s --", "here:1"),
        ("sbatch -N 2", "here:1"),
        ("ssh node-2 bash -s", "here:1"),
        ("ssh node-2", "here:1"),
        ("cat", None),
        ("bash run.py", None),
    ],
)
def test_script_in_a_here_document(program: str, master: str | None) -> None:
    """A here-document that a shell reads is a script, in which this one has put its variables; any other is none."""
    script = f"H=here\n{program} <<EOF\nexport MOONCAKE_MASTER=$H:1\npython3 train.py\nEOF\n"
    assert read(["bash", "-c", script]).variables.get("MOONCAKE_MASTER") == master


def test_variable_of_another_script() -> None:
    """A variable that some other script of the line keeps for itself is no business of the training."""
    pasted = read(["bash", "-c", "bash -c 'MOONCAKE_MASTER=b:1; mooncake_master'\npython3 train.py"])
    assert (pasted.variables, pasted.faults) == ({}, ())


def test_variable_that_is_not_exported() -> None:
    """A variable that a script sets for itself is none of the training's."""
    pasted = read(["bash", "-c", "MOONCAKE_MASTER=a:1\npython3 train.py"])
    assert (pasted.variables, pasted.kept) == ({}, {"MOONCAKE_MASTER": "a:1"})


@pytest.mark.parametrize(
    "line", ["export $(grep -v '^#' .env | xargs)", 'eval "$(mooncake-config explain --format env)"']
)
def test_variables_that_an_expression_sets(line: str) -> None:
    """An expression whose words are exported or run may set any variable, which is told."""
    (fault,) = read(["bash", "-c", f"{line}\npython3 train.py"]).faults
    assert (fault.offence, fault.fields, fault.origin.spot) == ("known-at-run-time", (), "pasted command")


@pytest.mark.parametrize("flag", ["--object-store-backend", "--mooncake-store-init-kwargs"])
def test_flag_at_the_end_of_a_line(flag: str) -> None:
    """A flag that ends its line has no value; what ends the line is none."""
    with pytest.raises(WrongUse, match=f"{flag} in the pasted command has no value"):
        read(["bash", "-c", f"python3 train.py {flag}\necho done"])


def test_windows_line_ends() -> None:
    """A script with Windows line ends is told, and read as it was meant."""
    pasted = read(["bash", "-c", "export MOONCAKE_MASTER=a:1\r\npython3 train.py\r\n"])
    assert pasted.variables == {"MOONCAKE_MASTER": "a:1"}
    assert [fault.offence for fault in pasted.faults] == ["unreadable-script"]


@pytest.mark.parametrize(
    "command",
    ["ssh node-2 'MOONCAKE_MASTER=$HERE:1 train.py'", "docker run image bash -c 'MOONCAKE_MASTER=$HERE:1 train.py'"],
)
def test_variables_of_another_host(command: str) -> None:
    """A script on another host or in a container does not start with the variables of this shell."""
    pasted = read_pasted_command(shlex.split(command), {"HERE": "here"})
    assert (pasted.variables, pasted.unknown) == ({}, {"MOONCAKE_MASTER": "$HERE:1"})


@pytest.mark.parametrize(
    ("script", "unknown"),
    [
        ("MOONCAKE_MASTER=$HEAD:1 LOCAL_RANK=$SLURM_LOCALID train.py", {"MOONCAKE_MASTER", "LOCAL_RANK"}),
        ("export MOONCAKE_DEVICE=`pick`", {"MOONCAKE_DEVICE"}),
        ("export MOONCAKE_PROTOCOL=tcp; $X && export MOONCAKE_PROTOCOL=rdma; x.py", {"MOONCAKE_PROTOCOL"}),
        ("srun --export=ALL,MOONCAKE_MASTER=$1 train.py", {"MOONCAKE_MASTER"}),
        ('ray job submit --runtime-env-json "{\\"env_vars\\": {\\"MC_X\\": \\"$A\\"}}" -- train.py', {"MC_X"}),
    ],
)
def test_variables_that_a_run_decides(script: str, unknown: set[str]) -> None:
    """A variable that only a run of the script tells is none that is read, and is kept apart."""
    pasted = read(["bash", "-c", script])
    assert set(pasted.unknown) == unknown
    assert not unknown & set(pasted.variables)


@pytest.mark.parametrize("flag", ["--object-store-backend", "--mooncake-replica-num"])
def test_flag_that_a_run_decides(flag: str) -> None:
    """A backend or a number that only a run of the script tells is told, and is no wrong use."""
    pasted = read(["bash", "-c", f"train.py {flag} ${{1}}"])
    assert not pasted.flags
    assert pasted.unknown_flags == {flag}
    (fault,) = pasted.faults
    assert fault.message == f"{flag} is what ${{1}} gives when the script runs, so it is not checked here."


def test_script_of_a_name_that_a_run_decides() -> None:
    """The way to a script whose name only a run tells holds no expression that another shell would not know."""
    (fault,) = read(["bash", "-c", 'source "${DIR}/models.sh"']).faults
    assert fault.fix == "paste its lines in place of it: only a run of the script tells which file that is."


def test_launch_script_as_jobs_have_it() -> None:
    """A launch script with comments, arrays and a runtime environment in a variable is read as it runs."""
    script = r"""#!/bin/bash
    # it's for 2 nodes; don't run it as root
    set -ex
    STORE_ARGS=(
       --object-store-backend mooncake   # the job's store
       --mooncake-store-init-kwargs '{"protocol": "tcp"}'
    )
    RUNTIME_ENV_JSON="{
      \"env_vars\": {\"MOONCAKE_MASTER\": \"10.0.0.5:50051\"}
    }"
    ray job submit --address="http://127.0.0.1:8265" \
       --runtime-env-json="${RUNTIME_ENV_JSON}" \
       -- python3 train.py --actor-num-nodes 2 "${STORE_ARGS[@]}"
    """
    pasted = read(["bash", "-c", script])
    assert pasted.faults == ()
    assert pasted.spots == {"MOONCAKE_MASTER": "--runtime-env-json MOONCAKE_MASTER"}
    assert pasted.flags == {
        "--object-store-backend": "mooncake",
        "--mooncake-store-init-kwargs": '{"protocol": "tcp"}',
    }


_NOT_READ = "is not opened: what it sets, and the flags in it, are not read here."


@pytest.mark.parametrize(
    "command",
    [
        "bash launch.sh",
        "./launch.sh --lr 1",
        "sh -x launch.sh 2 bash",
        "bash -o pipefail -e launch.sh",
        "sbatch -N 2 launch.sh",
        "nohup /bin/bash launch.sh",
        "sudo --preserve-env bash launch.sh",
        "MASTER=a:1 srun launch.sh",
        "ray job submit -- bash launch.sh",
        "kubectl exec pod -- launch.sh",
        "ssh node-2 bash launch.sh",
        "bash -c 'cd /job && ./launch.sh 2>&1 | tee log'",
    ],
)
def test_script_that_is_not_opened(command: str) -> None:
    """A script that a shell is given to run is told as unread, with the line that lets it be read."""
    pasted = read(shlex.split(command))
    (fault,) = pasted.faults
    (name,) = pasted.scripts
    assert name in ("launch.sh", "./launch.sh")
    assert fault.offence == "unopened-file"
    assert fault.message == f"{name} {_NOT_READ}"
    assert fault.fix == f'paste the script itself: -- bash -c "$(cat {name})".'


@pytest.mark.parametrize("word", ["source", "."])
def test_sourced_script_is_not_opened(word: str) -> None:
    """A script that is sourced may set variables, and does not select the object store of the line behind it."""
    pasted = read(["bash", "-c", f"{word} 'my env' && python3 train.py"])
    (fault,) = pasted.faults
    assert pasted.scripts == ()
    assert fault.message == f"my env {_NOT_READ}"
    assert fault.fix == f"run {word} 'my env' in this shell first, or paste its lines in place of it."


def test_name_of_a_script_is_quoted_for_the_shell() -> None:
    """The line that lets a script be read is fit for a shell, whatever the script is called."""
    (fault,) = read(["bash", "my launch.sh"]).faults
    assert fault.fix == """paste the script itself: -- bash -c "$(cat 'my launch.sh')"."""


@pytest.mark.parametrize(
    "command",
    [
        "python3 train.py --hook launch.sh",
        "torchrun train.py launch.sh",
        "bash -c 'python3 train.py . source bash'",
        "docker build . -t image",
        "slurm --shell bash job",
        "bash",
        "ssh node-2",
        "ssh",
        "A=launch.sh python3 train.py",
    ],
)
def test_command_without_a_script(command: str) -> None:
    """Words that a program is given are no scripts that a shell runs."""
    pasted = read(shlex.split(command))
    assert (pasted.faults, pasted.scripts) == ((), ())


def test_ssh_joins_its_words() -> None:
    """The words of an ssh are joined before the other shell splits them, so quotes of this shell are gone by then."""
    pasted = read(["ssh", "node-2", "train.py", "--mooncake-store-init-kwargs", '{"protocol": "tcp"}'])
    assert pasted.flags == {"--mooncake-store-init-kwargs": "{protocol:"}


@pytest.mark.parametrize("words", ["--runtime-env rt.yaml", "--runtime-env=rt.yaml", "--runtime_env rt.yaml"])
def test_runtime_environment_that_is_not_opened(words: str) -> None:
    """The runtime environment in a file is told as unread, with the flag that is read, and is none of a trainer's."""
    (fault,) = read(shlex.split(f"ray job submit {words} -- python3 train.py")).faults
    assert fault.offence == "unopened-file"
    assert fault.message == "the runtime environment rt.yaml is not opened: env_vars in it are not read here."
    assert fault.fix.startswith("""paste what it holds as JSON: --runtime-env-json '{"env_vars": {""")
    assert read(shlex.split(f"python3 train.py {words}")).faults == ()


@pytest.mark.parametrize(
    ("command", "variables"),
    [
        ("docker run -e A=1,2 image", {"A": "1,2"}),
        ("srun --export=NONE,A=1,B=2 x", {"A": "1", "B": "2"}),
        ("srun --export=ALL x", {}),
        ("docker run -e A image", {}),
        ("docker run -e", {}),
        ("python3 train.py -e A=1 -x B=2", {}),
        ("bash train.sh -c A=1", {}),
    ],
)
def test_variables_of_launchers(command: str, variables: dict[str, str]) -> None:
    """Of the options of a launcher those that set a variable are read, and no others."""
    assert read(shlex.split(command)).variables == variables


@pytest.mark.parametrize(
    "words", [["bash", "-c", "python3 'train.py"], ["python3 train.py --x '{"], ["sh", "-c", "sh -c 'a \"b'"]]
)
def test_unreadable_script(words: list[str]) -> None:
    """A script that no shell could split is told, and never an exception."""
    assert [fault.offence for fault in read(words).faults] == ["unreadable-script"]


@given(
    st.lists(
        st.text()
        | st.sampled_from(
            [
                *("bash", "-c", "env", "--", "docker", "-e", "ray", "job", "submit", "ssh", "source", "--runtime-env"),
                "<<EOF\nx\nEOF",
                "bash <<E\n$(a) x.py\nE",
                "A=(b $c)\nx.py ${A[@]}",
                "if x; then export A=1; fi",
            ]
        )
    )
)
def test_any_command_is_read(words: list[str]) -> None:
    """Whatever is pasted, it is read, with findings that can be printed."""
    for fault in read(words).faults:
        assert (fault.message + fault.fix).isprintable()


FLAGS = ("--object-store-backend", "--mooncake-store-init-kwargs", "--mooncake-replica-num")


@pytest.mark.parametrize("flag", FLAGS)
def test_abbreviated_flag(flag: str) -> None:
    """A beginning that only one flag has is taken for it, as argparse does, and told."""
    for length in range(12, len(flag)):
        for command in ([flag[:length], "1"], [f"{flag[:length]}=1"]):
            pasted = read(["train.py", *command])
            assert pasted.flags == {flag: "1"}
            assert [fault.offence for fault in pasted.faults] == ["abbreviated-flag"]


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        *((flag.replace("-", "_").replace("__", "--", 1), flag) for flag in FLAGS),
        *((f"\u2014{flag[2:]}", flag) for flag in FLAGS),
        *((f"\u2013{flag[1:]}", flag) for flag in FLAGS),
        *((flag[1:], flag) for flag in FLAGS),
        *((flag.title(), flag) for flag in FLAGS),
        *((f"{flag}s", flag) for flag in FLAGS),
        *((flag[:-3] + flag[-2:], flag) for flag in FLAGS),
        ("--mooncake-store-kwargs", FLAGS[1]),
        ("--runtime_env_json", "--runtime-env-json"),
    ],
)
def test_misspelt_flag(word: str, meant: str) -> None:
    """A word that is nearly a flag of ours is named with the flag, and what stands behind it is not read."""
    for command in ([word, "{}"], [f"{word}={{}}"]):
        pasted = read(["train.py", *command])
        assert (dict(pasted.flags), dict(pasted.variables)) == ({}, {})
        (fault,) = pasted.faults
        assert (fault.offence, fault.origin.spot, fault.fix) == ("misspelt-flag", meant, f"write {meant}.")


@pytest.mark.parametrize(
    "word",
    [
        *("--mooncake-master-port", "--mooncake", "--object-store-memory", "--runtime-env", "--runtime-env-file"),
        *("--lr", "-m", "mooncake_store_init_kwargs", "mooncake-replica-num", "--", "-", "train.py", "--store-path"),
    ],
)
def test_other_flags_are_left_alone(word: str) -> None:
    """Flags that are merely about the same things, and words that are no flags, are no misspelling."""
    assert read(["train.py", word, "1"]).faults == ()


def test_runtime_env_is_the_spot() -> None:
    """A variable of the runtime environment is edited there."""
    pasted = read(["ray", "--runtime-env-json", '{"env_vars": {"A": "1"}}'])
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
        ("null", "not-an-object"),
        ('{"env_vars": {"A": "1"}, "env_vars": {"B": "1"}}', "doubled-key"),
        ('{"env-vars": {"A": "1"}}', "unknown-key"),
        ('{"envVars": {"A": "1"}}', "unknown-key"),
        ('{"env": {"A": "1"}}', "unknown-key"),
        ('{"MOONCAKE_MASTER": "10.0.0.5:50051"}', "unknown-key"),
        ('{"env_vars": {}, "MOONCAKE_MASTER": "10.0.0.5:50051"}', "unknown-key"),
    ],
)
def test_damaged_runtime_env(text: str, offence: str) -> None:
    """A runtime environment that cannot be read is a fault, not an exception."""
    faults = read(["ray", f"--runtime-env-json={text}"]).faults
    assert [(fault.offence, fault.origin.spot) for fault in faults] == [(offence, "--runtime-env-json")]
    words = faults[0].message + faults[0].fix
    assert "protocol" not in words
    assert "@FILE" not in words
    assert "null is null" not in words


@pytest.mark.parametrize("text", ['{"env_vars": null}', '{"working_dir": ".", "pip": [], "env_vars": {}}'])
def test_sound_runtime_env(text: str) -> None:
    """Other keys of a runtime environment, and none of ours, are no fault."""
    assert read(["ray", f"--runtime-env-json={text}"]).faults == ()
