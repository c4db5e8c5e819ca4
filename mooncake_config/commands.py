"""The commands: the options, the help and the examples of each."""

from __future__ import annotations

import argparse
import os.path
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mooncake_config.display import shown_word
from mooncake_config.options import add_job_options, add_load_options
from mooncake_config.settings import FIELDS
from mooncake_config.survey_options import add_cluster_options
from mooncake_config.usage import Parser, ShowVersion

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[Parser]

Example = tuple[str, str]
"""What a reader wants, and the command that gives it."""

SHELLS = ("bash", "zsh", "fish")
SCHEMAS = "schemas"
"""Where the schemas are unless it is said."""


def make_parser(word: str = "") -> Parser:
    """The parser of the whole command line; ``command`` of what it parses is the command's name, ``parser`` its own.

    Args:
        word: the first word of the line; where it is a command, only that one is made, since a start waits for each.
    """
    parser = Parser(
        prog="mooncake-config",
        usage="%(prog)s COMMAND [OPTIONS]",
        description="Resolves, explains and checks the configuration of Mooncake Store in a Ray training job.",
        epilog=_examples(
            ("What would this launch line do?", "mooncake-config explain -- python3 train.py"),
            ("What does the code of a finding mean?", "mooncake-config rule MC101"),
        ),
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND", parser_class=Parser)
    for name, add in _ADDING.items():
        if word == name or word not in _ADDING:
            add(commands, name)
    general = parser.add_general_options()
    general.add_argument("-V", "--version", action=ShowVersion, help="show the version")
    return parser


def _add_command(commands: Commands, name: str, about: str, usage: str, *examples: Example) -> Parser:
    parser = commands.add_parser(
        name,
        help=about,
        prog=f"mooncake-config {name}",
        usage=f"%(prog)s {usage}".rstrip(),
        description=f"{about[0].upper()}{about[1:]}.",
        epilog=_examples(*examples),
    )
    parser.set_defaults(command=name, parser=parser)
    return parser


def _examples(*examples: Example) -> str:
    return "examples:" + "".join(f"\n  {says}\n    $ {command}" for says, command in examples)


def _add_explain(commands: Commands, name: str) -> None:
    parser = _add_command(
        commands,
        name,
        "print the effective settings of one process, where each came from, and every finding",
        "[OPTIONS] [-- LAUNCH LINE]",
        (
            "A launch line as it is, in a job of two nodes:",
            "mooncake-config explain --num-nodes 2 -- \\\n"
            '        python3 train.py --mooncake-store-init-kwargs \'{"protocol": "tcp"}\'',
        ),
        ("The same settings for the shell that starts Ray:", 'eval "$(mooncake-config explain --format env)"'),
        ("One value for a script:", "master=$(mooncake-config explain --field master_server_address)"),
        (
            "What another node, or an earlier run, has that this one has not:",
            "mooncake-config explain --format json > other.json\n    $ mooncake-config explain --diff other.json",
        ),
    )
    add_job_options(parser)
    output = _add_output(parser, ("table", "json", "env"))
    part = output.add_mutually_exclusive_group()
    _add_quiet(part)
    part.add_argument("--only-changed", action="store_true", help="leave out the fields that nobody set")
    names = [spec.name for spec in FIELDS]
    part.add_argument(
        "--field",
        choices=names,
        metavar="NAME",
        help="print the value of one field and nothing else, sizes in bytes; findings go to standard error",
    )
    part.add_argument(
        "--diff", metavar="OTHER", help="print what differs from a saved answer of explain or check: a JSON file, or -"
    )
    parser.add_general_options()


def _add_check(commands: Commands, name: str) -> None:
    parser = _add_command(
        commands,
        name,
        "explain, then look at this machine and at the endpoints, each with a time limit",
        "[OPTIONS] [-- LAUNCH LINE]",
        ("On each node, before the job starts:", "mooncake-config check --num-nodes 2 --processes-per-node 8"),
        ("Every node of the cluster, while Ray runs:", "mooncake-config check --cluster"),
        ("Is Mooncake's own client content as well?", "mooncake-config check --num-nodes 1 --dry-setup"),
    )
    add_job_options(parser)
    machine = parser.add_argument_group("machine")
    _add_host_root(machine)
    machine.add_argument(
        "--dry-setup", action="store_true", help="try Mooncake's real setup() in a child process, where no error stands"
    )
    add_cluster_options(parser)
    _add_quiet(_add_output(parser, ("table", "json")))
    parser.add_general_options()


def _add_plan(commands: Commands, name: str) -> None:
    parser = _add_command(
        commands,
        name,
        "add up the memory of each node, and how many rollouts fit into the Store",
        "[OPTIONS] [-- LAUNCH LINE]",
        (
            "Two nodes, of which one trains with eight processes:",
            "mooncake-config plan --num-nodes 2 --trainer-nodes 1 \\\n"
            "        --processes-per-node 8 --rollout-bytes 1gb --in-flight 2",
        ),
    )
    add_job_options(parser)
    add_load_options(parser)
    _add_host_root(parser.add_argument_group("machine"))
    _add_output(parser, ("table", "json"))
    parser.add_general_options()


def _add_host_root(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--host-root", type=_directory, default=Path("/"), metavar="DIR", help="read host facts below DIR (default: /)"
    )


def _add_schema(commands: Commands, name: str) -> None:
    parser = _add_command(
        commands,
        name,
        "print the JSON Schema of the init kwargs",
        "[OPTIONS]",
        ("For an editor that completes and checks the file:", "mooncake-config schema > store.schema.json"),
    )
    output = parser.add_argument_group("output")
    choice = output.add_mutually_exclusive_group()
    choice.add_argument("--write", action="store_true", help="write the schemas into DIR")
    choice.add_argument("--check", action="store_true", help="status 1 if a schema in DIR is stale")
    output.add_argument(
        "--directory", metavar="DIR", default=SCHEMAS, help=f"where the schemas are (default: {SCHEMAS})"
    )
    parser.add_general_options()


def _add_rule(commands: Commands, name: str) -> None:
    parser = _add_command(
        commands,
        name,
        "print the page of a rule, or the list of all rules",
        "[RULE] [OPTIONS]",
        ("What a code means, and what to do:", "mooncake-config rule MC101"),
        ("The same page by its name:", "mooncake-config rule loopback-in-multi-node"),
        ("All rules:", "mooncake-config rule"),
    )
    subject = parser.add_argument_group("rule")
    subject.add_argument("name", nargs="?", metavar="RULE", help="a code (MC101) or a name (loopback-in-multi-node)")
    _add_output(parser, ("table", "json"))
    parser.add_general_options()


def _add_demo(commands: Commands, name: str) -> None:
    parser = _add_command(
        commands,
        name,
        "start a real master on loopback, resolve, explain, round-trip a rollout, shut down",
        "",
        ("Everything once, on this machine alone:", "mooncake-config demo"),
    )
    parser.add_general_options()


def _install(shell: str, path: str) -> str:
    return f"mooncake-config completion {shell} |\n        install -D -m 644 /dev/stdin \\\n        {path}"


def _add_completion(commands: Commands, name: str) -> None:
    parser = _add_command(
        commands,
        name,
        "print the script that completes commands, options, choices and rules in a shell",
        "{bash,zsh,fish}",
        ("In this bash:", 'eval "$(mooncake-config completion bash)"'),
        ("In every bash to come:", _install("bash", "~/.local/share/bash-completion/completions/mooncake-config")),
        (
            "In every zsh whose .zshrc has fpath+=(~/.zfunc) before compinit:",
            _install("zsh", "~/.zfunc/_mooncake-config"),
        ),
        ("In every fish:", _install("fish", "~/.config/fish/completions/mooncake-config.fish")),
    )
    parser.add_argument_group("shell").add_argument("shell", nargs="?", choices=SHELLS, help="the shell that is used")
    parser.add_general_options()


_ADDING: dict[str, Callable[[Commands, str], None]] = {
    "explain": _add_explain,
    "check": _add_check,
    "plan": _add_plan,
    "schema": _add_schema,
    "rule": _add_rule,
    "demo": _add_demo,
    "completion": _add_completion,
}
"""The commands in the order of the help, and what adds each."""


def _add_output(parser: Parser, formats: Sequence[str]) -> argparse._ArgumentGroup:
    group = parser.add_argument_group("output")
    group.add_argument("--format", choices=formats, default="table", help="how the answer is printed (default: table)")
    return group


def _add_quiet(group: argparse._ActionsContainer) -> None:
    group.add_argument("-q", "--quiet", action="store_true", help="print the findings and nothing else")


def _directory(text: str) -> Path:
    # Path("") is the directory here, which an unset variable does not mean.
    if not text.strip() or not os.path.isdir(text):  # noqa: PTH112 - Path.is_dir raises for too long a name
        name = shown_word(text, 200)
        raise argparse.ArgumentTypeError(f"{name} is no directory here, so no fact can be read below it")
    return Path(text)
