"""Writes the completion scripts of the shells, which `mooncake-config completion SHELL` prints, from the parser itself.

python docs/completion_scripts.py
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import shtab

from mooncake_config.cli import COMPLETIONS
from mooncake_config.commands import SHELLS, make_parser
from mooncake_config.options import rule_names


def completion_script(shell: str) -> str:
    """The script of one shell: commands, options, choices, paths, and the codes and names of the rules."""
    parser = make_parser()
    for action in _actions(parser):
        if action.metavar == "RULE":
            action.choices = rule_names()
        elif action.metavar == "DIR":
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]  # where shtab looks
        elif action.metavar == "OTHER":
            action.complete = shtab.FILE  # type: ignore[attr-defined]  # where shtab looks
    return "".join(f"{line.rstrip()}\n" for line in shtab.complete(parser, shell).rstrip().splitlines())


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)


def main() -> None:
    """Writes every script."""
    COMPLETIONS.mkdir(exist_ok=True)
    for shell in SHELLS:
        (COMPLETIONS / f"mooncake-config.{shell}").write_text(completion_script(shell), "utf-8")


if __name__ == "__main__":
    main()
