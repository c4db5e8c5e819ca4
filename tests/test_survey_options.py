"""The options of check --cluster: what is taken, and what is refused with a reason."""

from __future__ import annotations

import pytest

from mooncake_config.cli import main


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--cluster", "--host-root", "/tmp"], "--host-root reads the facts of one host"),
        (["--cluster", "--dry-setup"], "--dry-setup tries this machine; run it on each node"),
        (["--cluster", "--node-ip", "10.0.0.7"], "--node-ip is about one node"),
        (["--cluster", "--local-rank", "0"], "--local-rank is about one node"),
        (["--address", "auto"], "--address is about a cluster; add --cluster"),
        (["--same", "miles"], "--same is about a cluster; add --cluster"),
        (["--cluster", "--address", "ray://10.0.0.5:10001"], "is not auto or HOST:PORT, such as 10.0.0.5:6379"),
        (
            ["--cluster", "--address", "http://10.0.0.5:8265"],
            "such as 10.0.0.5:6379; this is Ray's dashboard, where jobs are submitted, and the head itself is meant: "
            "port 6379 unless `ray start --port` says another",
        ),
        (["--cluster", "--address", "ray://10.0.0.5:10001"], "; this is the server of Ray Client, and the head itself"),
        (["--cluster", "--address", "etcd://10.0.0.5:2379"], "such as 10.0.0.5:6379 help:"),
        (["--cluster", "--address", "10.0.0.5"], "is not auto or HOST:PORT"),
        (["--cluster", "--address", "10.0.0.5:70000"], "is not auto or HOST:PORT"),
        (["--cluster", "--same", "a b"], "is no name of a distribution"),
        (["--cluster", "--format", "env"], "env"),
    ],
)
def test_refused(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Options that mean nothing together, and values of another form, are wrong use: status 2 and a reason."""
    with pytest.raises(SystemExit) as ended:
        main(["check", *words])
    assert ended.value.code == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert says in " ".join(told.err.split())
