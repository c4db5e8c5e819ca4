"""What a node answers: the question crosses as bytes, and distributions are known by version and commit."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from mooncake_config.answering import Question, Reply, installed_revision, reply, version_of
from mooncake_config.job import Job
from mooncake_config.process import Backend
from mooncake_config.topology import Role, Topology

COMMIT = "31f1ca96a1b2c3d4e5f60718293a4b5c6d7e8f90"


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, direct_url: object = None) -> str:
    """A distribution on the path, installed from a URL; gives its name."""
    about = folder / "somewhere_else-0.2.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: somewhere-else\nVersion: 0.2.0\n")
    if direct_url is not None:
        text = direct_url if isinstance(direct_url, str) else json.dumps(direct_url)
        (about / "direct_url.json").write_text(text)
    monkeypatch.syspath_prepend(folder)
    return "somewhere-else"


def test_reply_crosses_as_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The question is answered in this process's environment, and the answer pickles with node, facts and findings."""
    monkeypatch.setenv("MOONCAKE_PROTOCOL", "tcp")
    job = Job(None, Backend.RAY, Role.TRAINER, 1, Topology(num_nodes=2, node_ip="10.0.0.7"))
    question = Question(job, same=("pytest", "no-such-distribution"))
    answer = pickle.loads(reply(pickle.dumps(question)))
    assert isinstance(answer, Reply)
    assert answer.node.process.values["protocol"] == "tcp"
    assert answer.node.host.memory_total
    assert answer.same == {"pytest": version_of("pytest"), "no-such-distribution": None}


def test_version_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was installed from a registry is known by its version."""
    assert installed_revision(install(tmp_path, monkeypatch)) == "0.2.0"


def test_commit_of_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was installed from a repository is known by its commit too."""
    url = {"url": "https://example.invalid/x.git", "vcs_info": {"vcs": "git", "commit_id": COMMIT}}
    assert installed_revision(install(tmp_path, monkeypatch, url)) == f"0.2.0@{COMMIT[:12]}"


@pytest.mark.parametrize("way", ["loose", "packed", "detached"])
def test_commit_of_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """An editable install is known by what its checkout stands at, in each form that git keeps it in."""
    git = tmp_path / "a checkout" / ".git"
    (git / "refs/heads").mkdir(parents=True)
    (git / "HEAD").write_text(f"{COMMIT}\n" if way == "detached" else "ref: refs/heads/main\n")
    if way == "loose":
        (git / "refs/heads/main").write_text(f"{COMMIT}\n")
    elif way == "packed":
        (git / "packed-refs").write_text(
            f"# pack-refs with: peeled\n{'0' * 40} refs/heads/x\n{COMMIT} refs/heads/main\n"
        )
    url = {"url": (tmp_path / "a checkout").as_uri(), "dir_info": {"editable": True}}
    assert installed_revision(install(tmp_path, monkeypatch, url)) == f"0.2.0@{COMMIT[:12]}"


@pytest.mark.parametrize("direct_url", ["{broken", "[]", {"url": 7}, {"vcs_info": None}, {"url": "file:///no/such"}])
def test_odd_metadata_leaves_the_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, direct_url: object) -> None:
    """A direct_url.json that is unreadable, or of another form, leaves the version, and raises nothing."""
    assert installed_revision(install(tmp_path, monkeypatch, direct_url)) == "0.2.0"


@pytest.mark.parametrize("name", ["no-such-distribution", "", "../x"])
def test_not_installed(name: str) -> None:
    """What is not installed, or no name at all, has no version."""
    assert version_of(name) is None
    assert installed_revision(name) is None
