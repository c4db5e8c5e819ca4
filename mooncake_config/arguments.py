"""The three object-store flags: on any argparse parser, as launch arguments, and read out of a pasted command."""

from __future__ import annotations

import argparse
import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from mooncake_config.damage import kind_of
from mooncake_config.display import shown
from mooncake_config.findings import Fault, Malformed
from mooncake_config.init_kwargs import FLAG as INIT_KWARGS_FLAG
from mooncake_config.init_kwargs import InitKwargs, JsonObject, decode_json
from mooncake_config.json_damage import EXAMPLE
from mooncake_config.process import Backend
from mooncake_config.provenance import Origin, Source
from mooncake_config.run_time import RunTime
from mooncake_config.script import Command, read_script
from mooncake_config.shell_words import BETWEEN_COMMANDS, NAME
from mooncake_config.sources import PASTED_SPOT, RUNTIME_ENV_FLAG

BACKEND_FLAG = "--object-store-backend"
REPLICA_FLAG = "--mooncake-replica-num"
_JOB_FLAGS = (BACKEND_FLAG, INIT_KWARGS_FLAG, REPLICA_FLAG)
_ASSIGNMENT = f"{NAME}="
_PASTED = Origin(Source.CLI, PASTED_SPOT)
_SOURCING = ("source", ".")
_SHELLS = ("bash", "sh", "dash", "zsh", "ksh", "ash")
_SCRIPTS_DEEP = 3
"""How many scripts inside scripts are read."""
_SCRIPT_FILE = r"[^-=\s][^=\s]*\.(?:sh|bash|zsh|ksh|slurm|sbatch)"
_TRAINER = r"python[0-9.]*|torchrun|accelerate|deepspeed|.*\.py"
"""What begins the words that a program is given."""
_SSH_OPTIONS_WITH_VALUE = frozenset(f"-{letter}" for letter in "bcDEeFIiJLlmOopQRSWw")
_BEFORE_PROGRAM = ("--", "env", "export", "exec", "nohup", "sudo", "time")
_OPTIONS_WITH_VALUE = ("-u", "-g", "-C", "--unset", "--user", "--group", "--chdir")
"""Options of env and sudo whose value is the next word."""
_CARRIERS = {
    **dict.fromkeys(("srun", "sbatch"), ("--export",)),
    **dict.fromkeys(("docker", "podman", "nerdctl"), ("-e", "--env")),
    **dict.fromkeys(("apptainer", "singularity"), ("--env",)),
    **dict.fromkeys(("mpirun", "mpiexec"), ("-x",)),
}
"""Launchers that set variables by an option, and its spellings."""
_CONTAINERS = ("docker", "podman", "nerdctl", "kubectl")
"""Programs whose command starts with variables of its own."""
_DASHED = "[-\u2010-\u2015\u2212]"
"""The hyphen, and the dashes that word processors and chats make of it."""
_SHORTEST_ABBREVIATION = len("--mooncake-") + 1
_RUNTIME_ENV_EXAMPLE = '{"env_vars": {"MOONCAKE_MASTER": "host:port"}}'
_NAMES_OF_ENV_VARS = ("envvars", "envvar", "env", "environment", "environmentvariables")


class WrongUse(Exception):
    """A command line that cannot be taken as it stands. The text says why, and its values are fit to be shown."""


def add_object_store_arguments(parser: argparse.ArgumentParser, *, default_backend: Backend = Backend.RAY) -> None:
    """Adds ``--object-store-backend``, ``--mooncake-store-init-kwargs`` and ``--mooncake-replica-num`` to a parser.

    The init kwargs stay text: ``resolve_store_config(args.mooncake_store_init_kwargs)`` reads them, so that a mistake
    in them is reported together with all others.

    Args:
        parser: any argparse parser.
        default_backend: what holds where the flag is absent; Ray's object store, as in Miles.
    """
    group = parser.add_argument_group("rollout object store")
    group.add_argument(
        BACKEND_FLAG,
        choices=[backend.value for backend in Backend],
        default=default_backend.value,
        help=f"object store that carries rollout data to the trainers (default: {default_backend.value})",
    )
    group.add_argument(
        INIT_KWARGS_FLAG,
        metavar="VALUE",
        help="init kwargs of Mooncake Store: a JSON object, @FILE, or - for standard input",
    )
    group.add_argument(
        REPLICA_FLAG,
        type=int,
        default=1,
        metavar="N",
        help="memory replicas of each object (default: 1)",
    )


def get_mooncake_object_store_args(
    master_port: int = 50051,
    master_host: str = "127.0.0.1",
    *,
    init_kwargs: Mapping[str, object] | None = None,
    replica_num: int = 1,
) -> str:
    """The launch arguments that select Mooncake Store, as one text, quoted for a shell.

    Args:
        master_port: the master's RPC port.
        master_host: a name or IP that every node reaches; loopback is right for one node only.
        init_kwargs: fields beside or instead of the small defaults, which are protocol tcp and 2 GiB each for segment
            and buffer.
        replica_num: memory replicas of each object.

    Returns:
        ``--object-store-backend mooncake --mooncake-store-init-kwargs '{…}'``, with ``--mooncake-replica-num`` where
        it is not 1.

    Raises:
        ValueError: the port is none.
    """
    if not re.fullmatch(r"[1-9][0-9]{0,4}", str(master_port), re.ASCII) or int(master_port) > 65535:
        raise ValueError(f"master_port is 1 to 65535, not {shown(master_port)}")
    host = f"[{master_host}]" if ":" in master_host and not master_host.startswith("[") else master_host
    fields = {
        "protocol": "tcp",
        "master_server_address": f"{host}:{master_port}",
        "global_segment_size": "2gb",
        "local_buffer_size": "2gb",
        **(init_kwargs or {}),
    }
    words = [BACKEND_FLAG, Backend.MOONCAKE.value, INIT_KWARGS_FLAG, json.dumps(fields)]
    if replica_num != 1:
        words += [REPLICA_FLAG, str(replica_num)]
    return shlex.join(words)


@dataclass(frozen=True)
class PastedCommand:
    """What a training command says to us: our flags (absent: not given), and variables it sets, with their spots.

    Attributes:
        faults: what in it cannot be read, or is not read by whom it is meant for.
        submits: whether it is a ``ray job submit``, whose shell's variables reach no process of the job.
        for_driver: names of the variables that its entrypoint sets, which reach the driver alone.
        cleared: whether an ``env -i`` takes away all that the shell has.
        unset: names of the variables that an ``env -u`` takes away.
        through_sudo: behind a ``sudo`` that is not told to preserve the environment, the variables that it hands on
            all the same; None where there is no such sudo. An ``ssh`` is as such a sudo.
        through_ssh: whether an ``ssh`` is what drops them.
        scripts: files that it runs in a shell; they are not opened.
        init_kwargs: the init kwargs among the flags, less what only a run of its script tells; None where it has none.
        unknown: the variables that it sets to what only a run of its script tells, as they stand there.
        unknown_flags: the flags whose value, a backend or a number, only a run of its script tells.
        kept: the variables that its script sets and exports to nobody.
    """

    flags: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    spots: Mapping[str, str] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()
    submits: bool = False
    for_driver: frozenset[str] = frozenset()
    cleared: bool = False
    unset: frozenset[str] = frozenset()
    through_sudo: frozenset[str] | None = None
    through_ssh: bool = False
    scripts: tuple[str, ...] = ()
    init_kwargs: InitKwargs = None
    unknown: Mapping[str, str] = field(default_factory=dict)
    unknown_flags: frozenset[str] = frozenset()
    kept: Mapping[str, str] = field(default_factory=dict)


def read_pasted_command(words: Sequence[str], environ: Mapping[str, str]) -> PastedCommand:
    """Reads our flags and variables out of a training command; the rest is left alone.

    Both spellings of a flag, ``--flag value`` and ``--flag=value``, count, the last one wins; so does an abbreviation
    that argparse would take. The script of a ``bash -c`` and the command of an ``ssh`` are read as the shell splits
    and expands them; a file is not opened, and a fault says so. Variables come from ``NAME=value`` words before a
    program, from the options of launchers that set some, and from ``env_vars`` of ``--runtime-env-json``, which win
    over the others.

    Args:
        environ: the variables that a script would start with here.

    Raises:
        WrongUse: a flag of ours without its value.
    """
    gathered = _Gathered(environ, [], set(), {})
    spelt = list(_spelt_out(words, gathered, _SCRIPTS_DEEP))
    run_time = RunTime(gathered.unknown)
    flags = dict(_flag_values(spelt, _JOB_FLAGS))
    unknown_flags = run_time.parted({flag: text for flag, text in flags.items() if flag != INIT_KWARGS_FLAG})[1]
    leading = _leading(spelt)
    env_vars, env_faults = _env_vars(dict(_flag_values(spelt, (RUNTIME_ENV_FLAG,))).get(RUNTIME_ENV_FLAG, ""), run_time)
    spots = {name: f"{RUNTIME_ENV_FLAG} {name}" for name in env_vars}
    variables, unknown = run_time.parted({**leading.variables, **dict(_carried_assignments(spelt)), **env_vars})
    entrypoint = _entrypoint(spelt)
    scripts = dict(_script_files(spelt))
    runtime_env_files = () if entrypoint is None else _values_of(spelt, ("--runtime-env", "--runtime_env"))
    unopened = (*(_unopened_script(*item) for item in scripts.items()), *map(_unopened_environment, runtime_env_files))
    told = (*run_time.faults_of_flags(unknown_flags), *run_time.faults_of_variables(unknown, spots))
    return PastedCommand(
        {flag: text for flag, text in flags.items() if flag not in unknown_flags},
        variables,
        spots,
        (*gathered.faults, *_odd_flags(spelt), *env_faults, *unopened, *told),
        submits=entrypoint is not None and not runtime_env_files,  # a file may hold env_vars too
        for_driver=frozenset(_leading(entrypoint or ()).variables),
        cleared=leading.cleared,
        unset=frozenset(leading.unset),
        through_sudo=None if leading.handed is None else frozenset(leading.handed),
        through_ssh=leading.remote,
        scripts=tuple(name for name, runner in scripts.items() if runner not in _SOURCING),
        init_kwargs=run_time.init_kwargs(flags[INIT_KWARGS_FLAG]) if INIT_KWARGS_FLAG in flags else None,
        unknown=unknown,
        unknown_flags=frozenset(unknown_flags),
        kept={name: text for name, text in gathered.kept.items() if name not in variables and name not in unknown},
    )


class _Gathered(NamedTuple):
    """What scripts are read with, and what is gathered meanwhile.

    Attributes:
        environ: the variables that a script starts with.
        unknown: the expressions in the words that only a run can tell.
        kept: what a script sets and does not export before it launches the training.
    """

    environ: Mapping[str, str]
    faults: list[Fault]
    unknown: set[str]
    kept: dict[str, str]

    def elsewhere(self) -> _Gathered:
        """The same for a script that starts with other variables, of which nothing is known here."""
        return self._replace(environ={})


def _spelt_out(words: Sequence[str], gathered: _Gathered, depth: int) -> Iterator[str]:
    """The words, those of a script that stands in one of them each on its own."""
    if len(words) == 1 and depth and re.search(r"\s", words[0].strip()):
        yield from _script_words(words[0], gathered, depth)
        return
    state = ""
    for at, word in enumerate(words):
        if depth and (start := _remote_command(words, at)):
            end = next((end for end in range(start, len(words)) if _separates(words[end])), len(words))
            yield from (*words[at:start], ";")
            command = " ".join(words[start:end])  # as ssh itself joins them
            yield from _script_words(command, gathered.elsewhere(), depth)
            yield from _spelt_out(words[end:], gathered, depth)
            return
        if state == "script" and depth:
            yield ";"  # a command begins here
            yield from _script_words(word, gathered, depth)
            state = ""
        else:
            yield word
            state = _state_after(word, state)
            if word.rpartition("/")[2] in _CONTAINERS:
                gathered = gathered.elsewhere()


def _state_after(word: str, state: str) -> str:
    """What the next word is: behind a shell an option of it, the ``value`` of one, or its ``script``."""
    if word.rpartition("/")[2] in _SHELLS:
        return "shell"
    if state == "value":
        return "shell"
    if state == "shell" and word[:1] in ("-", "+"):
        long = word.startswith("--")
        return "script" if not long and "c" in word else "value" if not long and word.endswith("o") else "shell"
    return ""


def _separates(word: str) -> bool:
    return bool(word) and not word.strip(BETWEEN_COMMANDS)


def _is_ssh(words: Sequence[str], at: int) -> bool:
    """Whether a word starts an ``ssh``, and is no value of an option."""
    is_value = at > 0 and words[at - 1].startswith("--") and words[at - 1] != "--"
    return words[at].rpartition("/")[2] == "ssh" and not is_value


def _remote_command(words: Sequence[str], at: int) -> int | None:
    """Where the command begins that the ``ssh`` at a place runs; None where there stands none, or it runs none."""
    if not _is_ssh(words, at):
        return None
    place = at + 1
    while place < len(words) and words[place].startswith("-"):
        place += 2 if words[place] in _SSH_OPTIONS_WITH_VALUE else 1
    command = place + 1  # behind the host
    return command if command < len(words) and not any(map(_separates, words[place : command + 1])) else None


def _script_words(text: str, gathered: _Gathered, depth: int) -> Iterator[str]:
    """The command of a script that launches the training, behind what it exports until then; all where none does."""
    try:
        script = read_script(text.replace("\r\n", "\n"), gathered.environ)
    except ValueError as error:
        message = f"{error} in {shown(text)}: nothing of it is read here."
        fix = "mend that, or paste the command as it stands in the script, without a shell before it."
        gathered.faults.append(Fault("unreadable-script", (), _PASTED, message, fix))
        return
    if "\r\n" in text:
        message = "the script has Windows line ends, of which a shell makes a part of each last word."
        gathered.faults.append(Fault("unreadable-script", (), _PASTED, message, "convert it: sed -i 's/\\r$//' FILE."))
    gathered.unknown.update(script.unknown)
    gathered.faults.extend(map(_unknown_exports, sorted(script.exports)))
    lines = [_line(command, gathered, depth) for command in script.commands]
    launch = _launch(lines)
    launching = lines if launch is None else [lines[launch]]
    chosen = [*_sourcing(lines[:launch] if launch else ()), *launching]
    given = {name: value for line in launching for name, value in line.command.given.items()}
    gathered.kept.update(chosen[-1].command.kept)
    yield from ("export", *(f"{name}={value}" for name, value in given.items()), ";")
    for line in chosen:
        yield from (*line.words, ";")
        gathered.faults.extend(line.inside.faults)
        gathered.kept.update(line.inside.kept)


def _unknown_exports(expression: str) -> Fault:
    message = f"which variables {shown(expression)} sets is known when the script runs; none of them is read here."
    fix = "to have them checked, write the lines that set them in its place."
    return Fault("known-at-run-time", (), _PASTED, message, fix)


class _Line(NamedTuple):
    """A command of a script: its words, those of a script in it each on its own, and what was gathered from that."""

    command: Command
    words: tuple[str, ...]
    inside: _Gathered

    @property
    def rank(self) -> int:
        """How much there is in it of the launch of a training; 0 where nothing is."""
        if self.words[:1] in _TELLING:
            return 0
        ours = sum(word.partition("=")[0] in (*_JOB_FLAGS, RUNTIME_ENV_FLAG) for word in self.words)
        launches = any(re.fullmatch(_TRAINER, word.rpartition("/")[2]) for word in self.words)
        runs_file = any(runner not in _SOURCING for _, runner in _script_files(self.words))
        return 2 * ours + (launches or runs_file or _entrypoint(self.words) is not None)


_TELLING = (("echo",), ("printf",), ("cat",), ("grep",))


def _line(command: Command, gathered: _Gathered, depth: int) -> _Line:
    inside = _Gathered(environ={**gathered.environ, **command.given}, faults=[], unknown=gathered.unknown, kept={})
    words = list(_spelt_out(command.words, inside, depth - 1))
    if command.document and command.words and depth > 1 and _reads_script(command.words):
        remote = any(_is_ssh(command.words, at) for at in range(len(command.words)))
        words += [";", *_script_words(command.document, inside.elsewhere() if remote else inside, depth - 1)]
    return _Line(command, tuple(words), inside)


def _reads_script(words: Sequence[str]) -> bool:
    """Whether what a command reads is a script: a shell without a file, an ``ssh`` without a command, an ``sbatch``."""
    programs = [word.rpartition("/")[2] for word in words]
    shell = next((at for at, program in enumerate(programs) if program in _SHELLS), None)
    if shell is not None:
        return "-s" in words or all(word.startswith("-") and "c" not in word for word in words[shell + 1 :])
    return programs[0] == "sbatch" or (programs[0] == "ssh" and _remote_command(words, 0) is None)


def _launch(lines: Sequence[_Line]) -> int | None:
    """The place of the launch of the training: the first with most of our flags, without any the last that runs one."""
    ranks = [line.rank for line in lines]
    most = max(ranks)
    places = [place for place, rank in enumerate(ranks) if rank == most]
    return None if not most else places[-1 if most == 1 else 0]


def _sourcing(lines: Sequence[_Line]) -> list[_Line]:
    return [line for line in lines if line.words[:1] and line.words[0] in _SOURCING]


def _script_files(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each file that a shell is given to run, and what runs it: a shell, ``source``, empty where it is a program."""
    runner = state = before = ""
    for word in words:
        following = _state_after(word, state)
        if _separates(word):
            runner = state = ""
        elif runner == "program":
            continue
        elif (state == "shell" and not following) or runner in _SOURCING or re.fullmatch(_SCRIPT_FILE, word):
            yield word, runner
            runner, state = "program", ""
        elif re.fullmatch(_TRAINER, word.rpartition("/")[2]):
            runner, state = "program", ""
        elif word in _SOURCING and (not before or _separates(before)):
            runner = word
        elif not (following == "shell" and before.startswith("--") and before != "--"):
            state = following
        before = word


def _unopened_script(name: str, runner: str) -> Fault:
    message = f"{shown(name)} is not opened: what it sets, and the flags in it, are not read here."
    if "$" in name or "`" in name:
        fix = "paste its lines in place of it: only a run of the script tells which file that is."
    elif runner in _SOURCING:
        fix = f"run {runner} {shown(shlex.quote(name))} in this shell first, or paste its lines in place of it."
    else:
        fix = f'paste the script itself: -- bash -c "$(cat {shown(shlex.quote(name))})".'
    return Fault("unopened-file", (), _PASTED, message, fix)


def _unopened_environment(name: str) -> Fault:
    message = f"the runtime environment {shown(name)} is not opened: env_vars in it are not read here."
    fix = f"paste what it holds as JSON: {RUNTIME_ENV_FLAG} '{_RUNTIME_ENV_EXAMPLE}'."
    return Fault("unopened-file", (), _PASTED, message, fix)


def _values_of(words: Sequence[str], spellings: Sequence[str]) -> tuple[str, ...]:
    pairs = zip(words, (*words[1:], ""), strict=True)
    parted = [(word.partition("="), following) for word, following in pairs]
    return tuple(value if equals else following for (name, equals, value), following in parted if name in spellings)


def _entrypoint(words: Sequence[str]) -> Sequence[str] | None:
    """What a ``ray job submit`` runs; None where the command is none."""
    for at in range(len(words) - 2):
        if words[at].rpartition("/")[2] == "ray" and tuple(words[at + 1 : at + 3]) == ("job", "submit"):
            rest = words[at + 3 :]
            return rest[rest.index("--") + 1 :] if "--" in rest else ()
    return None


def _flag_values(words: Sequence[str], wanted: Sequence[str]) -> Iterator[tuple[str, str]]:
    for position, word in enumerate(words):
        name, equals, value = word.partition("=")
        flag = _full_flag(name)
        if flag not in wanted:
            continue
        if equals:
            yield flag, value
        elif (following := words[position + 1 : position + 2]) and not _is_no_value(following[0]):
            yield flag, following[0]
        else:
            raise WrongUse(f"{flag} in the pasted command has no value")


def _is_no_value(word: str) -> bool:
    return word.startswith("--") or _separates(word)


def _full_flag(name: str) -> str:
    """The flag that argparse takes an abbreviation for; any other word as it is."""
    if len(name) < _SHORTEST_ABBREVIATION or not name.startswith("--"):
        return name
    meant = [flag for flag in _JOB_FLAGS if flag.startswith(name)]
    return meant[0] if len(meant) == 1 else name


def _odd_flags(words: Sequence[str]) -> Iterator[Fault]:
    """Words that are probably a flag of ours and are not spelt like it."""
    for name in dict.fromkeys(word.partition("=")[0] for word in words):
        flag = _full_flag(name)
        if flag != name:
            message = f"{shown(name)} is read as {flag}, of which it is an abbreviation; a newer flag may take it over."
            yield Fault("abbreviated-flag", (), Origin(Source.CLI, flag), message, f"write {flag}.")
            continue
        meant = meant_flag(name)
        if meant:
            message = f"{shown(name)} is no flag, and what is written behind it is not read; {meant} is one."
            yield Fault("misspelt-flag", (), Origin(Source.CLI, meant), message, f"write {meant}.")


def meant_flag(name: str) -> str | None:
    """The flag that a word which is none was probably meant as; None for a flag and for any other word."""
    known = {flag.strip("-"): flag for flag in (*_JOB_FLAGS, RUNTIME_ENV_FLAG)}
    if name in known.values() or not re.match(_DASHED, name):
        return None
    full = _full_flag(name)
    if full != name:
        return full
    plain = re.sub(r"[\W_]+", "-", name.lower()).strip("-")
    if plain in known or not re.search("cake|object-store|store-init", plain):
        return known.get(plain)
    from difflib import get_close_matches  # only a mistake needs it

    close = get_close_matches(plain, known, n=1, cutoff=0.85)
    return known[close[0]] if close else None


@dataclass
class _Leading:
    """What stands before a program: the variables that it is given, and those that are taken away from it."""

    variables: dict[str, str] = field(default_factory=dict)
    cleared: bool = False
    unset: set[str] = field(default_factory=set)
    handed: set[str] | None = None
    remote: bool = False

    def assign(self, word: str) -> None:
        """Takes a ``NAME=value``."""
        name, _, value = word.partition("=")
        self.variables[name] = value
        self.unset.discard(name)
        if self.handed is not None:
            self.handed.add(name)

    def begin(self, program: str) -> None:
        """Takes a program that starts another one."""
        if program == "sudo":
            self.handed = set()

    def go_elsewhere(self) -> None:
        """Takes an ``ssh``: nothing that was said before it is known where it goes."""
        self.handed, self.remote = set(), True

    def take_option(self, program: str, word: str) -> str:
        """Takes an option of ``env``, ``sudo`` and the like; gives it back where the next word is its value."""
        name, _, value = word.partition("=")
        if program == "sudo" and (re.fullmatch("-[a-zA-Z]*E[a-zA-Z]*", word) or word == "--preserve-env"):
            self.handed = None
        elif program == "sudo" and name == "--preserve-env" and self.handed is not None:
            self.handed |= set(value.split(","))
        elif program == "env" and re.fullmatch("-|-[a-zA-Z0]*i[a-zA-Z0]*|--ignore-environment", word):
            self._clear()
        elif program == "env" and (unset := re.fullmatch("--unset=(.*)|-[a-tv-zA-Z0]*u(.*)", word)):
            self.take_away(unset[1] or unset[2] or "")
        return word if word in _OPTIONS_WITH_VALUE else ""

    def take_away(self, name: str) -> None:
        """Takes the name of a variable that the program does not get."""
        if name:
            self.variables.pop(name, None)
            self.unset.add(name)

    def _clear(self) -> None:
        self.variables.clear()
        self.cleared = True


def _leading(words: Sequence[str]) -> _Leading:
    """What stands before a program: at the start, behind ``env`` and the like, behind what ends a command."""
    found, at_start, prefix, awaited = _Leading(), True, "", ""
    for at, word in enumerate(words):
        if _is_ssh(words, at):
            found.go_elsewhere()
        if awaited:
            found.take_away(word if (prefix, awaited) in (("env", "-u"), ("env", "--unset")) else "")
            awaited = ""
        elif at_start and re.match(_ASSIGNMENT, word):
            found.assign(word)
        elif prefix and word.startswith("-") and word != "--":
            awaited = found.take_option(prefix, word)
        else:
            program = word.rpartition("/")[2]
            prefix = program if program in _BEFORE_PROGRAM else ""
            at_start = bool(prefix) or not word.strip(BETWEEN_COMMANDS)
            found.begin(prefix)
    return found


def _carried_assignments(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Variables that a launcher sets by its options: ``srun --export=ALL,NAME=value``, ``docker run -e NAME=value``."""
    options: tuple[str, ...] = ()
    for word, following in zip(words, (*words, "")[1:], strict=True):
        options = _CARRIERS.get(word.rpartition("/")[2], options)
        name, equals, value = word.partition("=")
        if name in options:
            yield from _assignments(value if equals else following)


def _assignments(text: str) -> Iterator[tuple[str, str]]:
    parts = text.split(",")
    several = all(re.match(_ASSIGNMENT, part) or part in ("ALL", "NONE", "NIL") for part in parts)
    for part in parts if several else [text]:
        if re.match(_ASSIGNMENT, part):
            name, _, value = part.partition("=")
            yield name, value


def _env_vars(text: str, run_time: RunTime) -> tuple[dict[str, str], tuple[Fault, ...]]:
    origin = Origin(Source.ENV, RUNTIME_ENV_FLAG)
    if not text.strip():
        return {}, ()
    if run_time.decides_form(text):
        return {}, (run_time.fault(RUNTIME_ENV_FLAG, text, (), origin),)
    try:
        value = decode_json(run_time.tokened(text))
    except Malformed as refusal:
        about_kwargs = EXAMPLE in refusal.fix or "@" in refusal.fix
        fix = f"write an object in single quotes, such as '{_RUNTIME_ENV_EXAMPLE}'." if about_kwargs else refusal.fix
        return {}, (run_time.restored_fault(Fault(refusal.offence, (), origin, refusal.message, fix)),)
    if not isinstance(value, JsonObject):
        return {}, (_no_object("the runtime environment", value, origin),)
    stray = tuple(_stray_keys(value, origin))
    env_vars = value.get("env_vars")
    if env_vars is None:
        return {}, stray
    if not isinstance(env_vars, JsonObject):
        return {}, (*stray, _no_object("env_vars", env_vars, origin))
    texts = {name: run_time.restored(item) for name, item in env_vars.items() if isinstance(item, str)}
    return texts, (*stray, *_env_var_faults(env_vars, origin))


def _no_object(name: str, value: object, origin: Origin) -> Fault:
    what = "null" if value is None else f"{kind_of(value)} ({shown(value)})"
    return Fault(
        "not-an-object", (), origin, f"{name} is {what}, and must be an object.", f"write {_RUNTIME_ENV_EXAMPLE}."
    )


def _stray_keys(runtime_env: JsonObject, origin: Origin) -> Iterator[Fault]:
    """Keys beside ``env_vars`` that were probably meant for it, and a second ``env_vars``."""
    if "env_vars" in runtime_env.doubled:
        message = "env_vars stands more than once in the runtime environment, and only the last one counts."
        yield Fault("doubled-key", (), origin, message, "keep one env_vars, with all variables in it.")
    for key in runtime_env:
        if key != "env_vars" and re.sub(r"[\W_]", "", key.lower()) in _NAMES_OF_ENV_VARS:
            message = f"{shown(key)} is no key of a runtime environment: what is in it reaches nobody."
            yield Fault("unknown-key", (), origin, message, "write env_vars instead.")
        elif key.startswith("MOONCAKE_"):
            message = f"{shown(key)} stands beside env_vars in the runtime environment, where it reaches nobody."
            yield Fault("unknown-key", (), origin, message, "move it into env_vars.")


def _env_var_faults(env_vars: JsonObject, origin: Origin) -> Iterator[Fault]:
    for name in env_vars.doubled:
        message = f"the name {shown(name)} stands more than once in env_vars; which one was meant is unknown."
        yield Fault("doubled-key", (), origin, message, f"keep one {shown(name)}.")
    for name, item in env_vars.items():
        if not isinstance(item, str):
            message = f"{shown(name)} is {kind_of(item)}; Ray takes texts only."
            yield Fault("wrong-type", (), origin, message, "put it in quotes.")
