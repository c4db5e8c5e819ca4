"""What a node answers in a survey: this runs there, in a worker of Ray, with that node's environment and host facts."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlsplit

from mooncake_config.check import check_process
from mooncake_config.findings import Finding
from mooncake_config.job import Job
from mooncake_config.node import Node


@dataclass(frozen=True)
class Question:
    """What a node is asked. It pickles."""

    job: Job
    ignore: tuple[str, ...] = ()
    same: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reply:
    """What a node with this package answers. It pickles."""

    node: Node
    findings: tuple[Finding, ...]
    same: Mapping[str, str | None]


def reply(question: bytes) -> bytes:
    """What the node that this runs on answers: its own environment, Ray node IP, host facts and probes."""
    asked: Question = pickle.loads(question)
    result = check_process(asked.job.resolve(), asked.ignore)
    same = {name: installed_revision(name) for name in asked.same}
    return pickle.dumps(Reply(result.node, result.findings, same))


def installed_revision(name: str) -> str | None:
    """Version of a distribution, with the commit where it was installed from one; None where it is not installed."""
    try:
        found = metadata.distribution(name)
        told = json.loads(found.read_text("direct_url.json") or "{}")
    except (metadata.PackageNotFoundError, OSError, ValueError):
        return version_of(name)
    commit = _commit(told) if isinstance(told, dict) else ""
    return f"{found.version}@{commit[:12]}" if re.fullmatch("[0-9a-f]{7,64}", commit) else found.version


def _commit(told: Mapping[str, object]) -> str:
    """What direct_url.json names (PEP 610), or what the checkout stands at that it points to; empty for neither."""
    repository = told.get("vcs_info")
    named = repository.get("commit_id") if isinstance(repository, dict) else None
    return str(named) if named else _checked_out(str(told.get("url"))) or ""


def _checked_out(url: str) -> str | None:
    """The commit of the checkout that an editable install points to."""
    git = Path(unquote(urlsplit(url).path)) / ".git" if url.startswith("file://") else None
    if git is None:
        return None
    try:
        head = (git / "HEAD").read_text().strip()
        if not head.startswith("ref: "):
            return head
        ref = head.removeprefix("ref: ")
        if (git / ref).is_file():
            return (git / ref).read_text().strip()
        lines = (git / "packed-refs").read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    return next((line.split()[0] for line in lines if line.endswith(f" {ref}")), None)


def version_of(name: str) -> str | None:
    """The version of an installed distribution, None where it is not installed."""
    try:
        return metadata.version(name)
    except (metadata.PackageNotFoundError, ValueError):
        return None
