"""The command line: the only file that reads argv, prints and exits."""

from __future__ import annotations

import argparse
import errno
import io
import json
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from mooncake_config.arguments import (
    BACKEND_FLAG,
    REPLICA_FLAG,
    RUNTIME_ENV_FLAG,
    PastedCommand,
    WrongUse,
    add_object_store_arguments,
    meant_flag,
    read_pasted_command,
)
from mooncake_config.display import masked, shown
from mooncake_config.findings import Fault, Finding, Severity
from mooncake_config.init_kwargs import FLAG as INIT_KWARGS_FLAG
from mooncake_config.process import Backend, Process
from mooncake_config.provenance import Origin, Source
from mooncake_config.report import (
    Document,
    check_document,
    env_lines,
    explain_document,
    finding_lines,
    is_ok,
    print_check,
    print_explanation,
    print_rule_list,
    print_rule_page,
    rule_document,
)
from mooncake_config.resolve import resolve_process
from mooncake_config.rules import examine, find_rule
from mooncake_config.settings import FIELDS
from mooncake_config.sources import Environment, real_environment
from mooncake_config.topology import Role, Topology

if TYPE_CHECKING:
    from rich.console import Console

    Commands = argparse._SubParsersAction["_Parser"]

Run = Callable[[argparse.Namespace], int]


_INTERRUPTED = 130
"""What a shell gives as the status of a command that Ctrl-C ended."""

_WRITING_FAILS = {errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}
"""What a standard output answers that cannot take the text."""

_LEAST_WIDTH = 40
"""Columns below which no page can be read. COLUMNS=0 stands for an unknown width in many containers."""

_ARGPARSE_HEAD = re.compile(
    r"(?:argument [^:]+: )?(?:invalid choice: |invalid \w+ value: |ignored explicit argument )?", re.ASCII
)
"""The words of argparse before a value that somebody wrote."""


class _Parser(argparse.ArgumentParser):
    """An argparse parser whose refusals hold no password and no control character."""

    def error(self, message: str) -> NoReturn:
        """Ends the process with status 2; argparse puts the value that it refuses into the message as it is."""
        head = _ARGPARSE_HEAD.match(message)
        words = head.group() if head else ""
        self.refuse(words + shown(message[len(words) :], _REFUSAL_LIMIT))

    def refuse(self, message: str) -> NoReturn:
        """Ends the process with status 2 and a message whose values were made fit to be shown."""
        super().error(message)


_REFUSAL_LIMIT = 400
"""Characters of what is wrong on the command line."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command.

    Returns:
        0 without an error among the findings, 1 with one, or where the answer cannot be written; 130 after Ctrl-C.
        Wrong use exits with 2.
    """
    if sys.stderr is None:  # closed by the caller; print would take standard output instead
        sys.stderr = io.StringIO()
    if sys.stdout is None:
        print("mooncake-config: standard output is closed, so there is nowhere to answer", file=sys.stderr)
        return 1
    for stream in (sys.stdout, sys.stderr):
        getattr(stream, "reconfigure", lambda **_: None)(errors="backslashreplace")
    try:
        status = _run(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _INTERRUPTED
    except OSError as error:
        if error.filename is not None or error.errno not in _WRITING_FAILS:
            raise
        _give_up_writing(error)
        return 1
    return status


def _run(words: list[str]) -> int:
    own, pasted = _split(words)
    parser = _parser()
    try:
        options, unknown = parser.parse_known_args(own)
        if unknown:
            raise WrongUse(_unknown_words(unknown, getattr(options, "mooncake_store_init_kwargs", None)))
        options.pasted = None if pasted is None else read_pasted_command(pasted)
        status: int = options.run(options)
    except WrongUse as refusal:
        parser.refuse(str(refusal))
    return status


def _unknown_words(unknown: Sequence[str], init_kwargs: str | None) -> str:
    """What argparse says of words that it cannot place, and where they come from if they are the rest of a JSON."""
    message = f"unrecognized arguments: {shown(' '.join(map(masked, unknown)), _REFUSAL_LIMIT)}"
    meant = next(filter(None, (meant_flag(word.partition("=")[0]) for word in unknown)), None)
    if meant:
        return f"{message}; did you mean {meant}?"
    text = (init_kwargs or "").strip(" \t'\"")
    if text.startswith("{") and not text.endswith("}"):
        message += f"; the JSON of {INIT_KWARGS_FLAG} was split at a blank: put it in single quotes, or pass @FILE"
    return message


def _give_up_writing(error: OSError) -> None:
    """Says why the answer ends early, and lets what is still in the buffer go nowhere when the process ends."""
    if error.errno != errno.EPIPE:
        reason = os.strerror(error.errno or 0)
        print(f"mooncake-config: the answer cannot be written to standard output: {reason}", file=sys.stderr)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _split(words: list[str]) -> tuple[list[str], list[str] | None]:
    """Our own words, and the training command behind the first ``--``, where there is one."""
    if "--" not in words:
        return words, None
    place = words.index("--")
    return words[:place], words[place + 1 :]


def _parser() -> _Parser:
    parser = _Parser(
        prog="mooncake-config",
        description="Resolves, explains and checks the configuration of Mooncake Store in a Ray training job.",
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for add in (_add_explain, _add_check, _add_schema, _add_rule, _add_demo):
        add(commands)
    return parser


def _add_command(commands: Commands, name: str, about: str, run: Run, example: str) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        name,
        help=about,
        description=f"{about[0].upper()}{about[1:]}.",
        epilog=f"example:\n  mooncake-config {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(run=run)
    return parser


def _add_explain(commands: Commands) -> None:
    about = "print the effective settings of one process, where each came from, and every finding"
    example = "explain --num-nodes 2 -- python3 train.py --object-store-backend mooncake …"
    parser = _add_command(commands, "explain", about, _explain, example)
    _add_job_options(parser)
    _add_format(parser, ("table", "json", "env"))


def _add_check(commands: Commands) -> None:
    about = "explain, then look at this machine and at the endpoints, each with a time limit"
    parser = _add_command(commands, "check", about, _check, "check --num-nodes 2 --role trainer --local-rank 0")
    _add_job_options(parser)
    machine = parser.add_argument_group("machine")
    machine.add_argument(
        "--host-root", type=_directory, default=Path("/"), metavar="DIR", help="read host facts below DIR (default: /)"
    )
    machine.add_argument(
        "--dry-setup", action="store_true", help="try Mooncake's real setup() in a child process, where no error stands"
    )
    _add_format(parser, ("table", "json"))


def _add_schema(commands: Commands) -> None:
    about = "print the JSON Schema of the init kwargs"
    parser = _add_command(commands, "schema", about, _schema, "schema > mooncake-store-init-kwargs.schema.json")
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--write", action="store_true", help="write both schemas into DIR")
    choice.add_argument("--check", action="store_true", help="status 1 if a schema in DIR is stale")
    parser.add_argument("--directory", metavar="DIR", default="schemas", help="default: %(default)s")


def _add_rule(commands: Commands) -> None:
    parser = _add_command(commands, "rule", "print the page of a rule, or the list of all rules", _rule, "rule MC101")
    parser.add_argument("name", nargs="?", metavar="RULE", help="a code (MC101) or a name (loopback-in-multi-node)")
    _add_format(parser, ("table", "json"))


def _add_demo(commands: Commands) -> None:
    about = "start a real master on loopback, resolve, explain, round-trip a rollout, shut down"
    _add_command(commands, "demo", about, _demo, "demo")


def _add_job_options(parser: argparse.ArgumentParser) -> None:
    add_object_store_arguments(parser, default_backend=Backend.MOONCAKE)
    parser.set_defaults(object_store_backend=None, mooncake_replica_num=None)
    job = parser.add_argument_group("process and job")
    job.add_argument(
        "--role", choices=[role.value for role in Role], default=Role.TRAINER.value, help="default: %(default)s"
    )
    job.add_argument("--local-rank", type=_rank, metavar="N", help="rank on its node (default: LOCAL_RANK, then none)")
    job.add_argument(
        "--num-nodes", type=_count, metavar="N", help="nodes in the job (default: alive Ray nodes, if attached)"
    )
    job.add_argument(
        "--trainer-nodes", type=_count, metavar="N", help="nodes that run training actors (default: --num-nodes)"
    )
    job.add_argument(
        "--processes-per-node", type=_count, metavar="N", help="Store clients on one node (default: LOCAL_WORLD_SIZE)"
    )
    job.add_argument("--node-ip", metavar="ADDRESS", help="the Ray node IP to assume")
    findings = parser.add_argument_group("findings")
    findings.add_argument(
        "--ignore",
        action="append",
        type=_known_rule,
        default=[],
        metavar="RULE",
        help="drop findings of a rule (repeatable)",
    )
    findings.add_argument("--strict", action="store_true", help="warnings count like errors for the exit status")


def _add_format(parser: argparse.ArgumentParser, formats: Sequence[str]) -> None:
    parser.add_argument("--format", choices=formats, default="table", help="default: %(default)s")


def _count(text: str) -> int:
    return _whole_number(text, 1)


def _rank(text: str) -> int:
    return _whole_number(text, 0)


def _whole_number(text: str, least: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) >= least):
        raise argparse.ArgumentTypeError(f"{shown(text)!r} is not a whole number of {least} or more")
    return int(text)


def _directory(text: str) -> Path:
    path = Path(text)
    if not path.is_dir():
        raise argparse.ArgumentTypeError(f"{shown(text, 200)} is no directory here, so no fact can be read below it")
    return path


def _known_rule(name: str) -> str:
    if find_rule(name) is None:
        raise argparse.ArgumentTypeError(f"{shown(name)!r} is no rule; `mooncake-config rule` lists them")
    return name


def _explain(options: argparse.Namespace) -> int:
    process = process_of(options)
    findings = examine(process, options.ignore)
    if options.format == "json":
        _print_document(explain_document(process, findings))
    elif options.format == "env":
        _print_env(process, findings)
    else:
        print_explanation(_console(), process, findings)
    return _status(findings, _limit(options))


def _check(options: argparse.Namespace) -> int:
    from mooncake_config.check import check_dry_setup, check_process

    result = check_process(process_of(options), options.ignore, root=options.host_root)
    if options.dry_setup:
        result = check_dry_setup(result, options.ignore)
    if options.format == "json":
        _print_document(check_document(result))
    else:
        print_check(_console(), result)
    return _status(result.findings, _limit(options))


def _limit(options: argparse.Namespace) -> Severity:
    """The mildest severity that makes the exit status 1."""
    return Severity.WARNING if options.strict else Severity.ERROR


def process_of(options: argparse.Namespace) -> Process:
    """The process that the job options ask about, a pasted command taken into account.

    Raises:
        WrongUse: a flag given twice, or a value in the pasted command that is no choice or no integer.
    """
    pasted: PastedCommand = options.pasted or PastedCommand()
    _refuse_doubled_flags(options, pasted)
    topology = Topology(
        num_nodes=options.num_nodes,
        trainer_nodes=options.trainer_nodes,
        local_rank=options.local_rank,
        processes_per_node=options.processes_per_node,
        node_ip=options.node_ip,
    )
    process, _ = resolve_process(
        pasted.flags.get(INIT_KWARGS_FLAG, options.mooncake_store_init_kwargs),
        backend=_backend(options, pasted),
        role=options.role,
        replica_num=_replica_num(options, pasted),
        topology=topology,
        environment=_environment(pasted),
        faults=(*pasted.faults, *_assumed_backend(options, pasted)),
    )
    unheard = _submitter_only_variables(process, pasted) if pasted.submits else None
    return replace(process, faults=(*process.faults, unheard)) if unheard else process


def _submitter_only_variables(process: Process, pasted: PastedCommand) -> Fault | None:
    """The fields that variables win which a ``ray job submit`` hands to no process like this one."""
    heard = {*pasted.spots, *(pasted.for_driver if process.role is Role.DRIVER else ())}
    won = [(spec, spec.wiring.variable, process.winner(spec.name)) for spec in FIELDS if spec.wiring.variable]
    unheard = {
        variable: (spec, claim.raw)
        for spec, variable, claim in won
        if claim and claim.origin.source is Source.ENV and variable not in heard
    }
    if not unheard or process.backend is not Backend.MOONCAKE:
        return None
    message = f"ray job submit hands {', '.join(unheard)} to no actor, unless each node had it before Ray started."
    everywhere = {name: shown(raw) for name, (spec, raw) in unheard.items() if not spec.wiring.node_local}
    local = [name for name, (spec, _) in unheard.items() if spec.wiring.node_local]
    ways = []
    if everywhere:
        ways.append(f"put {json.dumps({'env_vars': everywhere})} into {RUNTIME_ENV_FLAG}")
    if local:
        ways.append(f"export {' and '.join(local)} on each node before Ray starts there")
    names = tuple(spec.name for spec, _ in unheard.values())
    origin = Origin(Source.ENV, next(iter(unheard)))
    return Fault("submitter-only-variable", names, origin, message, f"{'; '.join(ways)}.")


def _environment(pasted: PastedCommand) -> Environment:
    real = real_environment(None)
    return Environment({**real, **pasted.variables}, pasted.spots) if pasted.variables else Environment(real)


def _refuse_doubled_flags(options: argparse.Namespace, pasted: PastedCommand) -> None:
    given = {
        INIT_KWARGS_FLAG: options.mooncake_store_init_kwargs is not None,
        BACKEND_FLAG: options.object_store_backend is not None,
        REPLICA_FLAG: options.mooncake_replica_num is not None,
    }
    for flag, before in given.items():
        if before and flag in pasted.flags:
            raise WrongUse(f"{flag} stands before -- and in the pasted command; give it once")


def _backend(options: argparse.Namespace, pasted: PastedCommand) -> Backend:
    name = pasted.flags.get(BACKEND_FLAG, options.object_store_backend or Backend.MOONCAKE.value)
    if name not in [backend.value for backend in Backend]:
        choices = ", ".join(backend.value for backend in Backend)
        raise WrongUse(f"{BACKEND_FLAG} {shown(name)} in the pasted command: choose from {choices}")
    return Backend(name)


def _replica_num(options: argparse.Namespace, pasted: PastedCommand) -> int:
    text = pasted.flags.get(REPLICA_FLAG)
    if text is None:
        return 1 if options.mooncake_replica_num is None else int(options.mooncake_replica_num)
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", text):
        raise WrongUse(f"{REPLICA_FLAG} {shown(text)} in the pasted command is not an integer")
    return int(text)


def _assumed_backend(options: argparse.Namespace, pasted: PastedCommand) -> tuple[Fault, ...]:
    if options.pasted is None or options.object_store_backend or BACKEND_FLAG in pasted.flags:
        return ()
    message = "the pasted command does not select an object store, so Ray's would be used; it is read as mooncake here."
    return (Fault("assumed-backend", (), Origin(Source.CLI, BACKEND_FLAG), message, f"add {BACKEND_FLAG} mooncake."),)


def _schema(options: argparse.Namespace) -> int:
    from mooncake_config.schema import schema_text, stale_schemas, write_schemas

    if options.write:
        try:
            written = write_schemas(options.directory)
        except OSError as error:
            raise WrongUse(f"--directory {shown(options.directory)} cannot be written: {error.strerror}") from None
        for path in written:
            print(path)
        return 0
    if options.check:
        stale = stale_schemas(options.directory)
        for name in stale:
            state = "is stale" if (Path(options.directory) / name).exists() else "is missing"
            print(f"{shown(options.directory)}: {name} {state}; run: mooncake-config schema --write", file=sys.stderr)
        return 1 if stale else 0
    print(schema_text(), end="")
    return 0


def _rule(options: argparse.Namespace) -> int:
    from mooncake_config.rules import ALL_RULES

    chosen = find_rule(options.name) if options.name is not None else None
    if options.name is not None and chosen is None:
        raise WrongUse(f"there is no rule {shown(options.name)!r}; `mooncake-config rule` lists them")
    rules = ALL_RULES if chosen is None else (chosen,)
    if options.format == "json":
        _print_document([rule_document(rule) for rule in rules])
    elif chosen is None:
        print_rule_list(_console(), rules)
    else:
        print_rule_page(_console(), chosen)
    return 0


def _demo(options: argparse.Namespace) -> int:
    from mooncake_config.demo import run_demo

    return run_demo(_console())


def _print_env(process: Process, findings: Sequence[Finding]) -> None:
    if is_ok(findings):
        print("\n".join(env_lines(process)))
    for line in finding_lines(findings):
        print(line, file=sys.stderr)


def _print_document(document: Document | list[Document] | Mapping[str, object]) -> None:
    print(json.dumps(document, indent=2))


def _console() -> Console:
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    if console.width < _LEAST_WIDTH:
        console.width = 80
    return console


def _status(findings: Sequence[Finding], limit: Severity) -> int:
    return 1 if any(finding.severity.rank <= limit.rank for finding in findings) else 0
