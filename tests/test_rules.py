"""The rules together: their pages, whose examples run; and examine, which makes findings of what they see."""

from __future__ import annotations

import json
import pickle
import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
from asking import MASTER, TWO_NODES, as_text, ask, found
from hypothesis import given
from hypothesis import strategies as st
from machines import process

from mooncake_config.cli import main
from mooncake_config.findings import Severity
from mooncake_config.process import Backend
from mooncake_config.provenance import Origin, Source
from mooncake_config.ray_node import find_node_address
from mooncake_config.rules import (
    ALL_RULES,
    PROCESS_RULES,
    cluster_rules,
    examine,
    find_rule,
    node_rules,
    plan_rules,
    refuse_unknown_rules,
)
from mooncake_config.rules.rule import Rule
from mooncake_config.topology import Role, Topology

Example = tuple[str, bool, str]
"""Code, whether it fires, and the line."""

_PRINTED = re.compile(r"\$\(seq ([0-9]+)\)")


def examples() -> Iterator[Example]:
    """The examples of the pages: lines of a shell, indented below ``Fires:`` and ``Silent:``."""
    for rule in PROCESS_RULES:
        for heading, fires in (("Fires:", True), ("Silent:", False)):
            section = rule.page.partition(f"\n{heading}\n")[2]
            for line in section.splitlines():
                if not line.startswith("    "):
                    break
                yield rule.code, fires, line.strip()


def run(line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The JSON answer to a line of a shell: ``NAME=value … explain ARGS``. Of expansions it knows ``$(seq N)``."""
    expanded = _PRINTED.sub(lambda match: "\n".join(map(str, range(1, int(match[1]) + 1))), line)
    words = shlex.split(expanded)
    at = words.index("explain")
    for word in words[:at]:
        name, _, value = word.partition("=")
        monkeypatch.setenv(name, value)
    own = words.index("--") if "--" in words else len(words)
    main([*words[at:own], "--format", "json", *words[own:]])
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


@pytest.mark.parametrize(
    "example", list(examples()), ids=lambda example: f"{example[0]}-{'fires' if example[1] else 'silent'}"
)
def test_page_examples(example: Example, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Each example on a page fires its rule, or leaves it silent, as the page says."""
    code, fires, line = example
    if code == "MC112" and fires and not find_node_address().guessed:
        pytest.skip("a Ray on this host says the node IP, so there is nothing to guess")
    answer = run(line, monkeypatch, capsys)
    assert (code in [finding["code"] for finding in answer["findings"]]) is fires
    for finding in answer["findings"]:
        assert finding["message"].endswith("."), finding
        assert finding["fix"].endswith("."), finding
        assert (finding["message"] + finding["fix"]).isprintable(), finding


@pytest.mark.parametrize("rule", PROCESS_RULES, ids=lambda rule: rule.code)
def test_pages_are_whole(rule: Rule[object]) -> None:
    """A page says why the rule matters and what to do, and shows a case that fires and one that does not."""
    for heading in ("Why:", "Fix:", "Fires:\n    ", "Silent:\n    "):
        assert f"\n{heading}" in rule.page, heading


@pytest.mark.parametrize("rule", ALL_RULES, ids=lambda rule: rule.code)
def test_every_rule_has_a_reason_and_a_fix(rule: Rule[object]) -> None:
    """Every rule has a summary that is a sentence, a reason, a fix and an example, in lines that a terminal holds."""
    assert rule.summary.endswith(".")
    for heading in ("Why:", "Fix:"):
        assert f"\n{heading}" in rule.page, heading
    assert re.search(r"^(Example|Fires):", rule.page, re.MULTILINE)
    assert max(map(len, rule.page.splitlines())) <= 120
    assert rule.page.replace("\n", "").isprintable()


def test_codes_and_names_are_unique() -> None:
    """No two rules share a code or a name, and they are listed by code."""
    codes = [rule.code for rule in ALL_RULES]
    assert codes == sorted(set(codes))
    assert len({rule.name for rule in ALL_RULES}) == len(codes)
    assert all(re.fullmatch("MC[0-4][0-9]{2}", code) for code in codes)


def test_rules_of_a_machine_are_not_asked_about_a_process() -> None:
    """The rules of one process, of its machine, of its job and of a cluster share none, and together are all."""
    subjects = (PROCESS_RULES, node_rules(), plan_rules(), cluster_rules())
    codes = [rule.code for rules in subjects for rule in rules]
    assert sorted(codes) == [rule.code for rule in ALL_RULES]


EDGES = (
    0,
    1,
    (1 << 10) - 1,
    1 << 10,
    (16 << 20) - 1,
    (64 << 20) - 1,
    64 << 20,
    1 << 30,
    1 << 40,
    (1 << 40) + 1,
    1 << 47,
)
TEXTS = {
    "MOONCAKE_MASTER": [
        "10.0.0.5:6379",
        "127.0.0.1:50051",
        "etcd://head:2379;[fd00::5]:50051",
        "k8s://lease",
        "None:1",
    ],
    "MOONCAKE_LOCAL_HOSTNAME": [
        "10.0.0.7",
        " 10.0.0.7:1 ",
        "0.0.0.0",
        "169.254.1.1",
        "node-7",
        "eth0",
        "fe80::1%25eth0",
    ],
    "MOONCAKE_TE_META_DATA_SERVER": ["P2PHANDSHAKE", "http://10.0.0.5:8080", "redis://[fd00::5]", "etcd://a:1;b:2"],
    "MOONCAKE_PROTOCOL": ["tcp", "RDMA", "cxl"],
    "MOONCAKE_DEVICE": ["mlx5_0", "auto", "eth0, ib0", "auto-discovery", ",", "null"],
    "MOONCAKE_GLOBAL_SEGMENT_SIZE": [*map(str, (*EDGES, 1 << 64, 1 << 70)), "1.0625gb", "2GB"],
    "MOONCAKE_LOCAL_BUFFER_SIZE": [*map(str, (*EDGES, 1 << 64)), "1.0625gb", " 2gb"],
    "MOONCAKE_MASTER_ADDR": ["10.0.0.5"],
    "MC_FORCE_TCP": ["1"],
    "PROTOCOL": ["tcp"],
}
"""Texts at which some rule fires, and ordinary ones."""


@given(
    environ=st.fixed_dictionaries({}, optional={name: st.sampled_from(texts) for name, texts in TEXTS.items()}),
    kwargs=st.fixed_dictionaries({}, optional={"chunk_bytes": st.sampled_from((*EDGES[1:], 1 << 64))}),
    nodes=st.sampled_from([None, 1, 2]),
    processes=st.sampled_from([None, 1, 8]),
    rank=st.sampled_from([None, 0, 9]),
    role=st.sampled_from(Role),
)
def test_rule_that_is_not_asked(environ: dict[str, str], kwargs: dict[str, object], **shape: Any) -> None:
    """A rule that is not asked, since the part that it is about is empty, would have seen nothing."""
    asked_about = process(environ, kwargs, **shape)
    for rule in PROCESS_RULES:
        if rule.about and not getattr(asked_about, rule.about):
            assert list(rule.see(asked_about)) == [], rule.code


@pytest.mark.parametrize("spelling", ["MC101", "mc101", "loopback-in-multi-node", "Loopback-In-Multi-Node"])
def test_find_rule(spelling: str) -> None:
    """A rule is found by its code and by its name, in any case."""
    rule = find_rule(spelling)
    assert rule is not None
    assert rule.code == "MC101"


def test_unknown_rule() -> None:
    """A rule that does not exist is a wrong use, wherever it is named."""
    assert find_rule("MC999") is None
    with pytest.raises(ValueError, match="MC999"):
        refuse_unknown_rules(["MC101", "MC999"])
    with pytest.raises(ValueError, match="no-such-rule"):
        examine(ask(), ["no-such-rule"])
    with pytest.raises(TypeError, match=r"\['MC101'\]"):
        examine(ask(), "MC101")


def test_worst_first() -> None:
    """Findings come by severity, then by code."""
    process = ask({"MC_GID_INDEX": "3", "MOONCAKE_PROTOCOL": "", "MOONCAKE_DEVICE": "a b"}, topology=TWO_NODES)
    keys = [(finding.severity.rank, finding.code) for finding in examine(process)]
    assert keys == sorted(keys)
    assert len({rank for rank, _ in keys}) == 3


def test_origin_is_the_place_of_the_first_field() -> None:
    """A finding names the origin of the first field it is about, where the rule names no other place."""
    process = ask({**MASTER, "MOONCAKE_LOCAL_HOSTNAME": "127.0.0.1"}, topology=TWO_NODES)
    (finding,) = found(process, "MC101")
    assert finding.origin == Origin(Source.ENV, "MOONCAKE_LOCAL_HOSTNAME")
    assert finding.node is None


@pytest.mark.parametrize(("address", "code"), [("10.0.0.300", "MC045"), ("127.0.0.1", "MC101"), ("a b", "MC021")])
def test_given_node_ip_is_named(address: str, code: str) -> None:
    """What is wrong with a Ray node IP that somebody gave names the option, which its origin does not."""
    (finding,) = found(ask(MASTER, topology=Topology(2, node_ip=address)), code)
    assert finding.origin == Origin(Source.RAY, "Ray node IP")
    assert finding.message.endswith("; the Ray node IP was given as --node-ip (Python: Topology(node_ip=…)).")
    hostname = {**MASTER, "MOONCAKE_LOCAL_HOSTNAME": address}
    (written,) = found(ask(hostname, topology=Topology(2, node_ip="10.0.0.7")), code)
    assert "--node-ip" not in written.message


def test_nobody_claims_it() -> None:
    """A finding on a field that nobody claims names no place."""
    (finding,) = found(ask({}), "MC100")
    assert finding.origin is None


def test_ignored_finding_is_gone() -> None:
    """A finding that is ignored by code or name is gone, and no word is lost on it."""
    process = ask({**MASTER, "MOONCAKE_LOCAL_HOSTNAME": "127.0.0.1"}, topology=TWO_NODES)
    for name in ("MC101", "loopback-in-multi-node"):
        codes = [finding.code for finding in examine(process, [name])]
        assert "MC101" not in codes
        assert "MC130" not in codes


@pytest.mark.parametrize(
    ("init_kwargs", "code"),
    [
        (as_text(protocol="rmda"), "MC027"),
        ("{broken", "MC001"),
        (as_text(protocol="cxl"), "MC125"),
        (as_text(unheard_of=1), "MC004"),
    ],
)
def test_ignored_in_vain(init_kwargs: str, code: str) -> None:
    """A malformed value, and what would crash native code, stays when it is ignored, and one info says why."""
    findings = examine(ask(MASTER, init_kwargs), [code, code.lower()])
    assert code in [finding.code for finding in findings]
    (vain,) = (finding for finding in findings if finding.code == "MC130")
    assert vain.severity is Severity.INFO
    assert code in vain.message


def test_ignored_where_nothing_is_found() -> None:
    """Ignoring a rule that finds nothing is no news."""
    assert examine(ask(), ["missing-master"]) == ()


def test_required_master_cannot_be_ignored() -> None:
    """The missing master stays, whatever is ignored."""
    (finding,) = found(ask({}), "MC100", ["missing-master"])
    assert finding.severity is Severity.ERROR


def test_ray_backend_softens() -> None:
    """With Ray's object store no finding is more than a warning, and a missing master is none."""
    process = ask({"MOONCAKE_LOCAL_HOSTNAME": "0.0.0.0"}, "{broken", backend=Backend.RAY, topology=TWO_NODES)
    findings = examine(process)
    assert {finding.code: finding.severity for finding in findings} == {
        "MC001": Severity.WARNING,
        "MC040": Severity.WARNING,
    }


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "169.254.3.4", "172.17.0.1"])
def test_node_ip_under_the_ray_backend(address: str) -> None:
    """A node IP that Ray says is no finding where no Mooncake uses it; the same address in the variable is one."""
    topology = Topology(num_nodes=2, local_rank=0, processes_per_node=8, node_ip=address)
    assert examine(ask(backend=Backend.MOONCAKE, topology=topology)) != ()
    assert examine(ask(backend=Backend.RAY, topology=topology)) == ()
    written = {**MASTER, "MOONCAKE_LOCAL_HOSTNAME": address}
    assert examine(ask(written, backend=Backend.RAY, topology=topology)) != ()


def test_findings_pickle() -> None:
    """Findings cross a process border as they are."""
    findings = examine(ask({"MOONCAKE_PROTOCL": "tcp"}, topology=TWO_NODES))
    assert findings
    assert pickle.loads(pickle.dumps(findings)) == findings
