"""MC13x: pages of what is reported while a launch line is read."""

from __future__ import annotations

from mooncake_config.findings import Severity
from mooncake_config.rules.rule import reported_by_reading


@reported_by_reading("MC130", Severity.INFO)
def ignored_in_vain() -> None:
    """A finding was to be ignored, and cannot be.

    Sees --ignore of a malformed value, of the required master, or of a rule that protects the process from a crash in
    native code.

    Why: there is no value to go on with, or the process would die.

    Fix: correct what the finding names.

    Fires:
        explain --num-nodes 1 --ignore missing-master
    Silent:
        MOONCAKE_MASTER=10.0.0.5:50051 explain --num-nodes 1 --ignore missing-master
    """


@reported_by_reading("MC131", Severity.INFO)
def assumed_backend() -> None:
    """A pasted command does not say --object-store-backend, and is read as mooncake.

    Why: without the flag the job uses Ray's object store, and every Mooncake setting in it does nothing.

    Fix: add --object-store-backend mooncake.

    Fires:
        explain --num-nodes 1 -- python3 train.py
    Silent:
        explain --num-nodes 1 -- python3 train.py --object-store-backend mooncake
    """


@reported_by_reading("MC132", Severity.WARNING)
def submitter_only_variable() -> None:
    """A variable stands in the shell that submits a Ray job, which hands it to nobody.

    Sees a pasted `ray job submit` where a field is won by a variable of the shell, by NAME=value before the command,
    or by NAME=value in its entrypoint, which reaches the driver alone. A command with a --runtime-env file is let
    alone: the file may hold them.

    Why: actors get the variables of the shell that ran `ray start` on their node, and those of the runtime environment
    (measured on two hosts). What only the submitting shell has, no process of the job sees.

    Fix: put it into env_vars of --runtime-env-json; what belongs to one node is exported there before Ray starts.

    Fires:
        MOONCAKE_MASTER=10.0.0.5:50051 explain --num-nodes 2 -- ray job submit -- python3 train.py
    Silent:
        MOONCAKE_MASTER=10.0.0.5:50051 explain --num-nodes 2 -- python3 train.py
    """


@reported_by_reading("MC136", Severity.WARNING)
def dropped_variable() -> None:
    """A program in a pasted command starts the next one without a variable that this shell has.

    Sees `env -i`, `env -u NAME`, `sudo` without -E or --preserve-env, and `ssh`. What env takes away does not count
    here; what sudo or ssh takes away does, since sudoers may keep it and the other host may set it too. Variables that
    are set behind them count.

    Why: the shell has the variable, so everything looks right, and the trainer gets a default or no value at all.

    Fix: set it behind env, sudo or the host of ssh, or let it through.

    Fires:
        MOONCAKE_MASTER=10.0.0.5:50051 explain --num-nodes 1 -- env -i python3 train.py
        MOONCAKE_MASTER=10.0.0.5:50051 explain --num-nodes 1 -- sudo python3 train.py
        MOONCAKE_MASTER=10.0.0.5:50051 explain --num-nodes 1 -- ssh node-2 python3 train.py
    Silent:
        MOONCAKE_MASTER=10.0.0.5:50051 explain --num-nodes 1 -- sudo -E python3 train.py
    """


@reported_by_reading("MC133", Severity.INFO)
def abbreviated_flag() -> None:
    """A flag of ours is abbreviated in a pasted command.

    Why: argparse takes a beginning that only one flag has, so it works, until a flag with the same beginning is added.

    Fix: write the flag in full.

    Fires:
        explain --num-nodes 1 -- python3 train.py --mooncake-store-init '{"protocol": "tcp"}'
    Silent:
        explain --num-nodes 1 -- python3 train.py --mooncake-store-init-kwargs '{"protocol": "tcp"}'
    """


@reported_by_reading("MC134", Severity.WARNING)
def misspelt_flag() -> None:
    """A word of a pasted command is nearly a flag of ours.

    Sees underscores for hyphens, capitals, a dash that a chat made of two hyphens, and letters that are wrong or too
    many.

    Why: the trainer's parser refuses it or passes it by, and what was written behind it holds nowhere.

    Fix: write the flag that the message names.

    Fires:
        explain --num-nodes 1 -- python3 train.py --mooncake_store_init_kwargs '{"protocol": "tcp"}'
    Silent:
        explain --num-nodes 1 -- python3 train.py --mooncake-master-port 50051
    """


@reported_by_reading("MC135", Severity.WARNING)
def unreadable_script() -> None:
    """The script of a `bash -c` in a pasted command has a quotation or `$(` that is not closed, or Windows line ends.

    Why: no shell runs it as it stands, and no flag or variable in it can be told. Of a Windows line end a shell makes a
    part of the last word: the value "tcp" and a carriage return is no protocol.

    Fix: close the quotation, or paste the command that stands in the script; convert the lines: sed -i 's/\\r$//' FILE.

    Fires:
        explain --num-nodes 1 -- bash -c "python3 train.py --mooncake-store-init-kwargs '{"
    Silent:
        explain --num-nodes 1 -- bash -c "python3 train.py --mooncake-store-init-kwargs '{}'"
    """


@reported_by_reading("MC137", Severity.WARNING)
def unopened_file() -> None:
    """A pasted command takes flags or variables from a file, which is not opened.

    Sees a script that a shell runs or sources, or that is a program itself (by its ending: .sh, .bash, .slurm and the
    like), and the file or directory of `ray job submit --runtime-env`.

    Why: the launch line is read as it stands. What such a file sets is not seen, so a finding that something is not
    set may be about the line alone.

    Fix: paste the script itself, `-- bash -c "$(cat launch.sh)"`; source in this shell first what the line sources;
    paste a runtime environment as --runtime-env-json.

    Fires:
        explain --num-nodes 1 -- bash launch.sh
        explain --num-nodes 1 -- sbatch -N 2 launch.sh
        explain --num-nodes 1 -- ray job submit --runtime-env rt.yaml -- python3 train.py
    Silent:
        explain --num-nodes 1 -- bash -c "python3 train.py"
        explain --num-nodes 1 -- python3 train.py --hook launch.sh
    """


@reported_by_reading("MC138", Severity.INFO)
def known_at_run_time() -> None:
    """A script in a pasted command sets a value to something that only a run of it tells.

    Sees `$(hostname -i)`, an expression in backticks, `$1`, `${A%:*}`, a variable that neither the script nor this
    shell sets, and one that a branch, a loop or a function sets to something else. What a shell can tell beforehand is
    put in: `$HEAD` where the script or this shell sets it, `${HEAD:-10.0.0.5}`, `$((4 << 30))`, `$(cat <<EOF …)`.

    Why: the value is left out of what is read, so nothing is said of the setting, nor of the default in its place.

    Fix: to have it checked, set the variable in the script to what it will be, or write the value in its place.

    Fires:
        explain --num-nodes 2 -- bash -c 'MOONCAKE_MASTER=$(hostname -i):50051 python3 train.py'
    Silent:
        explain --num-nodes 2 -- bash -c 'MOONCAKE_MASTER=${HEAD_IP:-10.0.0.5}:50051 python3 train.py'
    """


@reported_by_reading("MC139", Severity.WARNING)
def not_exported() -> None:
    """A script in a pasted command sets one of the seven variables and does not export it.

    Why: the variable stays in the shell, and the training that it starts never has it. What is shown here is what
    holds without it.

    Fix: write export before it, or put it before the command on the same line.

    Fires:
        explain --num-nodes 2 -- bash -c 'MOONCAKE_MASTER=10.0.0.5:50051; python3 train.py'
    Silent:
        explain --num-nodes 2 -- bash -c 'export MOONCAKE_MASTER=10.0.0.5:50051; python3 train.py'
        explain --num-nodes 2 -- bash -c 'MOONCAKE_MASTER=10.0.0.5:50051 python3 train.py'
    """
