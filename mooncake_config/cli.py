"""The command line: the only file that reads argv, prints and exits."""

from __future__ import annotations

import argparse
import contextlib
import errno
import io
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from mooncake_config.arguments import WrongUse, meant_flag, read_pasted_command
from mooncake_config.commands import SCHEMAS, SHELLS, make_parser
from mooncake_config.display import has_secret, masked, shown
from mooncake_config.findings import Finding, Severity
from mooncake_config.init_kwargs import FLAG as INIT_KWARGS_FLAG
from mooncake_config.options import job_of, load_of, rule_names
from mooncake_config.process import Process
from mooncake_config.report.documents import (
    Document,
    bare_value,
    check_document,
    claimed_fields,
    env_lines,
    explain_document,
    finding_lines,
    is_ok,
    rule_document,
)
from mooncake_config.report.pages import (
    print_bare_findings,
    print_check,
    print_explanation,
    print_rule_list,
    print_rule_page,
)
from mooncake_config.rules import examine, find_rule
from mooncake_config.settings import FIELDS
from mooncake_config.sources import FieldSpec, real_environment
from mooncake_config.survey_options import refuse_mixed_survey
from mooncake_config.usage import Unpadded, nearest_or_part, print_painted, readable_width, with_nearest, write_plainly

if TYPE_CHECKING:
    from rich.console import Console

    from mooncake_config.job import Job
    from mooncake_config.report.saved import Answer

Run = Callable[[argparse.Namespace], int]

COMPLETIONS = Path(__file__).parent / "completions"
"""Where the completion scripts are, which `python docs/completion_scripts.py` writes."""

_INTERRUPTED = 130
"""What a shell gives as the status of a command that Ctrl-C ended."""

_WRITING_FAILS = {errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}
"""What a standard output answers that cannot take the text."""


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
        write_plainly(stream)
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
    early = own[0] if own else ""
    parser = make_parser(early)
    if not words:
        with contextlib.suppress(OSError):
            parser.print_help(sys.stderr)
        parser.refuse("a command is missing")
    if early.startswith("--") and early.partition("=")[0] not in parser.flags:
        name = shown(early.partition("=")[0])
        parser.refuse(f"{name} stands before the command; options come behind it: mooncake-config COMMAND {name}")
    try:
        options, unknown = parser.parse_known_args(own)
        parser = options.parser
        if unknown:
            raise WrongUse(_unknown_words(unknown, options, pasted))
        options.pasted = None if pasted is None else read_pasted_command(pasted, real_environment(None))
        status = _RUNS[options.command](options)
    except WrongUse as refusal:
        parser.refuse(str(refusal))
    return status


def _unknown_words(unknown: Sequence[str], options: argparse.Namespace, behind: Sequence[str] | None) -> str:
    """What is said of words that have no place: what was meant, or where they come from."""
    message = f"unrecognized arguments: {shown(' '.join(map(masked, unknown)), 400)}"
    init_kwargs = getattr(options, "mooncake_store_init_kwargs", None)
    text = (init_kwargs or "").strip(" \t'\"")
    is_split = text.startswith("{") and not text.endswith("}")
    if behind is None and hasattr(options, "node_ip") and not is_split and re.match(r"[\w./~]", unknown[0]):
        return f"{message}; put a launch line behind --"
    names = [word.partition("=")[0] for word in unknown]
    meant = (meant_flag(name) or _nearest_flag(name, options.parser.flags) for name in names)
    nearest = next(filter(None, meant), None)
    if nearest:
        return f"{message}; did you mean {nearest}?"
    if is_split:
        message += f"; the JSON of {INIT_KWARGS_FLAG} was split at a blank: put it in single quotes, or pass @FILE"
    return message


def _nearest_flag(name: str, flags: Collection[str]) -> str | None:
    return nearest_or_part(name, flags) if name.startswith("--") else None


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


def _explain(options: argparse.Namespace) -> int:
    _refuse_mixed_output(options)
    job = job_of(options)
    saved = _saved_answer(options.diff, job) if options.diff is not None else None
    process = job.resolve()
    findings = examine(process, options.ignore)
    specs = claimed_fields(process) if options.only_changed else FIELDS
    if saved is not None:
        _print_comparison(options, explain_document(process, findings), saved)
    elif options.field is not None:
        _print_field(process, options.field, findings)
    elif options.format == "json":
        _print_document(explain_document(process, findings))
    elif options.format == "env":
        _print_env(process, findings, specs)
    elif options.quiet:
        print_bare_findings(_console(), findings)
    else:
        print_explanation(_console(), process, findings, specs)
    return _status(findings, _limit(options))


_FORMATS = {"quiet": ("table",), "only_changed": ("table", "env"), "field": ("table",), "diff": ("table", "json")}
"""The formats that an option of the output goes with. The JSON of an answer is whole, always."""


def _refuse_mixed_output(options: argparse.Namespace) -> None:
    for name, formats in _FORMATS.items():
        if getattr(options, name, None) not in (None, False) and options.format not in formats:
            flag = f"--{name.replace('_', '-')}"
            raise WrongUse(f"{flag} does not go with --format {options.format}, but with {' and '.join(formats)}")


def _saved_answer(path: str, job: Job) -> Answer:
    from mooncake_config.report.saved import Unreadable, read_answer

    if path == "-" == job.init_kwargs:
        raise WrongUse(f"standard input cannot hold both what --diff and what {INIT_KWARGS_FLAG} is given")
    try:
        return read_answer(path)
    except Unreadable as refusal:
        raise WrongUse(f"--diff: {refusal}") from None


def _print_comparison(options: argparse.Namespace, document: Document, saved: Answer) -> None:
    from mooncake_config.report.comparison import comparison_document, print_comparison
    from mooncake_config.report.saved import Answer, Comparison

    comparison = Comparison(Answer.model_validate(document), saved)
    if options.format == "json":
        _print_document(comparison_document(comparison))
    else:
        print_comparison(_console(), comparison, options.diff)


def _print_field(process: Process, name: str, findings: Sequence[Finding]) -> None:
    value = process.values[name]
    if value not in (None, ""):
        print(bare_value(process, name))
    if isinstance(value, str) and has_secret(value):
        _tell(f"{name}: its value holds a password, which is printed as ***")
    for line in finding_lines(findings):
        _tell(line)


def _check(options: argparse.Namespace) -> int:
    from mooncake_config.check import check_dry_setup, check_process

    _refuse_mixed_output(options)
    refuse_mixed_survey(options)
    if options.cluster:
        return _check_cluster(options)
    result = check_process(job_of(options).resolve(), options.ignore, root=options.host_root)
    if options.dry_setup:
        result = check_dry_setup(result, options.ignore)
    if options.format == "json":
        _print_document(check_document(result))
    elif options.quiet:
        print_bare_findings(_console(), result.findings)
    else:
        print_check(_console(), result)
    return _status(result.findings, _limit(options))


def _check_cluster(options: argparse.Namespace) -> int:
    from mooncake_config.cluster import AUTO, survey
    from mooncake_config.report.cluster import cluster_document, print_survey, progress_bar

    with progress_bar() as progress:
        found = survey(
            job_of(options), options.ignore, address=options.address or AUTO, same=options.same, progress=progress
        )
    if options.format == "json":
        _print_document(cluster_document(found))
    elif options.quiet:
        print_bare_findings(_console(), found.findings)
    else:
        print_survey(_console(), found)
    return _status(found.findings, _limit(options))


def _plan(options: argparse.Namespace) -> int:
    from mooncake_config.report.plan import plan_document, print_plan
    from mooncake_config.sizing import plan_job

    result = plan_job(job_of(options), load_of(options), options.ignore, root=options.host_root)
    if options.format == "json":
        _print_document(plan_document(result))
    else:
        print_plan(_console(), result)
    return _status(result.findings, _limit(options))


def _limit(options: argparse.Namespace) -> Severity:
    """The mildest severity that makes the exit status 1."""
    return Severity.WARNING if options.strict else Severity.ERROR


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
        repair = "mooncake-config schema --write"
        if options.directory != SCHEMAS:
            repair += f" --directory {shlex.quote(options.directory)}"
        for name in stale:
            state = "is stale" if (Path(options.directory) / name).exists() else "is missing"
            _tell(f"{shown(options.directory)}: {name} {state}; run: {shown(repair)}")
        return 1 if stale else 0
    print(schema_text(), end="")
    return 0


def _rule(options: argparse.Namespace) -> int:
    from mooncake_config.rules import ALL_RULES

    chosen = find_rule(options.name) if options.name is not None else None
    if options.name is not None and chosen is None:
        refusal = f"there is no rule {shown(options.name)!r}; `mooncake-config rule` lists them"
        raise WrongUse(with_nearest(refusal, options.name, rule_names()))
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
    from mooncake_config.store.errors import StoreError

    try:
        return run_demo(_console())
    except StoreError as failure:  # what is not installed, above all: it says what to install
        sys.stdout.flush()
        with contextlib.suppress(OSError):
            print_painted(f"mooncake-config demo: error: {failure}\nhelp: mooncake-config demo --help\n", sys.stderr)
        return 1


def _completion(options: argparse.Namespace) -> int:
    if options.shell is None:
        raise WrongUse(f"a shell is missing; choose from {', '.join(SHELLS)}")
    print((COMPLETIONS / f"mooncake-config.{options.shell}").read_text("utf-8"), end="")
    return 0


def _print_env(process: Process, findings: Sequence[Finding], specs: Sequence[FieldSpec]) -> None:
    if is_ok(findings):
        for line in env_lines(process, specs):
            print(line)
    for line in finding_lines(findings):
        _tell(line)


def _tell(line: str) -> None:
    """A line beside the answer; where standard error takes none, answer and status are the same."""
    with contextlib.suppress(OSError):
        print(line, file=sys.stderr)


def _print_document(document: Document | list[Document] | Mapping[str, object]) -> None:
    print(json.dumps(document, indent=2))


def _console() -> Console:
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    console.width = readable_width(console.width)
    if not console.is_terminal:
        console.file = cast("IO[str]", Unpadded(console.file))
    return console


def _status(findings: Sequence[Finding], limit: Severity) -> int:
    return 1 if any(finding.severity.rank <= limit.rank for finding in findings) else 0


_RUNS: Mapping[str, Run] = {
    "explain": _explain,
    "check": _check,
    "plan": _plan,
    "schema": _schema,
    "rule": _rule,
    "demo": _demo,
    "completion": _completion,
}
