"""MC4xx: rules across nodes. The examples on their pages are small tables of nodes, and each of them is asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from clusters import GOOD, cluster_of, member
from hypothesis import given
from hypothesis import strategies as st
from machines import codes

from mooncake_config.findings import Finding, Severity
from mooncake_config.members import Cluster
from mooncake_config.process import Backend
from mooncake_config.rules import cluster_rules, examine_cluster
from mooncake_config.rules.rule import Rule

Example = tuple[str, bool, tuple[str, ...]]
"""Code, whether it fires, and the table of nodes."""


def examples() -> Iterator[Example]:
    """The tables on the pages, indented below ``Fires:`` and ``Silent:``."""
    for rule in cluster_rules():
        for heading, fires in (("Fires:", True), ("Silent:", False)):
            lines = []
            for line in rule.page.partition(f"\n{heading}\n")[2].splitlines():
                if not line.startswith("    "):
                    break
                lines.append(line.strip())
            yield rule.code, fires, tuple(lines)


def found(code: str, *lines: str) -> Finding:
    """The one finding of a rule on a table of nodes."""
    (finding,) = (item for item in examine_cluster(cluster_of(lines)) if item.code == code)
    return finding


@pytest.mark.parametrize("example", list(examples()), ids=lambda item: f"{item[0]}-{'fires' if item[1] else 'silent'}")
def test_page_examples(example: Example) -> None:
    """Each table of nodes on a page fires its rule, or leaves it silent, as the page says."""
    code, fires, lines = example
    findings = examine_cluster(cluster_of(lines))
    assert (code in [finding.code for finding in findings]) is fires
    for finding in findings:
        assert finding.message.endswith("."), finding
        assert finding.fix.endswith("."), finding
        assert (finding.message + finding.fix).isprintable(), finding


@pytest.mark.parametrize("rule", cluster_rules(), ids=lambda rule: rule.code)
def test_pages_are_whole(rule: Rule[Cluster]) -> None:
    """A page says why the rule matters and what to do, and shows a cluster that fires and one that does not."""
    for heading in ("Why:", "Fix:", "Fires:\n    ", "Silent:\n    "):
        assert f"\n{heading}" in rule.page, heading


def test_healthy() -> None:
    """Of two nodes that agree nothing across them is said."""
    lines = (f"job {GOOD}", f"10.0.0.5 {GOOD}", f"10.0.0.7 {GOOD}", "10.0.0.5 -> 10.0.0.7  reached")
    both = cluster_of((*lines, "10.0.0.7 -> 10.0.0.5  reached"))
    assert [item for item in examine_cluster(both) if item.code >= "MC4"] == []


def test_disagreement_names_both_nodes_and_both_origins() -> None:
    """Nodes that disagree are named with value and origin; the finding is about those that are not like most."""
    finding = found(
        "MC410", f"10.0.0.5 {GOOD}", f"10.0.0.7 {GOOD}", "10.0.0.9 MOONCAKE_MASTER=10.0.0.9:50051 MOONCAKE_PROTOCOL=tcp"
    )
    assert finding.message == (
        "the nodes do not agree on master_server_address: 10.0.0.5:50051 on 10.0.0.5 and 10.0.0.7 (MOONCAKE_MASTER); "
        "10.0.0.9:50051 on 10.0.0.9 (MOONCAKE_MASTER)."
    )
    assert finding.nodes == ("10.0.0.9",)
    assert finding.severity is Severity.ERROR


def test_a_node_without_a_value_disagrees() -> None:
    """A node where nobody sets the master is told apart from one that sets another."""
    finding = found("MC410", f"10.0.0.5 {GOOD}", "10.0.0.7 MOONCAKE_PROTOCOL=tcp")
    assert "no value on 10.0.0.7 (nobody sets it)" in finding.message


def test_unreadable_value_disagrees() -> None:
    """A value that is malformed on one node is shown as it was written there."""
    finding = found("MC410", f"10.0.0.5 {GOOD}", f"10.0.0.7 {GOOD.replace('tcp', 'rmda')}")
    assert "the unreadable rmda on 10.0.0.7 (MOONCAKE_PROTOCOL)" in finding.message


def test_passwords_are_masked() -> None:
    """A password in an address on which nodes disagree is not shown."""
    url = "MOONCAKE_TE_META_DATA_SERVER=http://user:geheim@10.0.0.5:8080/metadata"
    findings = examine_cluster(cluster_of((f"job {url}", f"10.0.0.5 {GOOD} {url}", f"10.0.0.7 {GOOD}")))
    assert {"MC410", "MC411"} <= {item.code for item in findings}
    assert not any("geheim" in str(item) for item in findings)


def test_driver_variable_shows_the_runtime_environment() -> None:
    """A variable that is set in the shell alone is handed over as a runtime environment, and for all such at once."""
    lines = ("job MOONCAKE_PROTOCOL=tcp MOONCAKE_LOCAL_BUFFER_SIZE=2gb", "10.0.0.5", "10.0.0.7")
    findings = [item for item in examine_cluster(cluster_of(lines)) if item.code == "MC411"]
    assert [(item.fields, item.severity.value) for item in findings] == [
        (("protocol",), "error"),
        (("local_buffer_size",), "warning"),
    ]
    for item in findings:
        assert '"MOONCAKE_PROTOCOL": "tcp"' in item.fix
        assert "to_runtime_env()" in item.fix
    assert findings[0].message == (
        "MOONCAKE_PROTOCOL is tcp in this shell and reaches no node, where the default rdma holds."
    )


def test_driver_variable_that_some_nodes_have() -> None:
    """The nodes that lack the variable are named; one with a variable of its own is the disagreement's."""
    other = GOOD.replace("tcp", "efa")
    lines = (f"job {GOOD}", f"10.0.0.5 {GOOD}", f"10.0.0.6 {other}", "10.0.0.7 MOONCAKE_MASTER=10.0.0.5:50051")
    finding = found("MC411", *lines)
    assert finding.nodes == ("10.0.0.7",)
    assert "does not reach 10.0.0.7, where the default rdma holds" in finding.message


def test_submitted_job_needs_no_variable_here() -> None:
    """Where a launch line submits the job, its driver runs on a node, and this shell may lack what nodes have."""
    plain = cluster_of((f"10.0.0.5 {GOOD}", f"10.0.0.7 {GOOD}"))
    assert "MC412" in codes(examine_cluster(plain))
    assert "MC412" not in codes(examine_cluster(replace(plain, submits=True)))


def test_variable_to_export_here_is_whole() -> None:
    """A value that is to be exported is shown whole and as a shell takes it, however long it is."""
    master = "etcd://" + ";".join(f"etcd-{number}.master.example.com:2379" for number in range(5))
    finding = found("MC412", f"10.0.0.5 'MOONCAKE_MASTER={master}'", f"10.0.0.7 'MOONCAKE_MASTER={master}'")
    assert finding.fix == f"export MOONCAKE_MASTER='{master}' here too, or use `ray job submit`."


def test_raylets_of_one_machine_share_a_hostname() -> None:
    """Two raylets of one machine advertise one address, and that is right."""
    one = member(f"10.0.0.5 {GOOD}")
    pair = (replace(one, name="10.0.0.5#aa"), replace(one, name="10.0.0.5#bb"))
    assert not {"MC420", "MC421"} & {*codes(examine_cluster(replace(cluster_of((f"job {GOOD}",)), members=pair)))}


def test_address_of_another_node_is_told_once() -> None:
    """Of an address that is another node's, the rule that knows whose speaks, and what follows from it does not."""
    lines = (f"10.0.0.5 {GOOD}", f"10.0.0.7 {GOOD} MOONCAKE_LOCAL_HOSTNAME=10.0.0.5")
    findings = codes(examine_cluster(cluster_of((*lines, "10.0.0.5 -> 10.0.0.7  wrong interface"))))
    assert "MC421" in findings
    assert not {"MC220", "MC420", "MC442"} & {*findings}


@pytest.mark.parametrize(("versions", "severity"), [(("3.11.9", "3.12.1"), "error"), (("3.11.9", "3.11.7"), "warning")])
def test_python_weighs_by_its_minor_version(versions: tuple[str, str], severity: str) -> None:
    """Python 3.11 beside 3.12 is an error, a difference in the last number a warning."""
    lines = [f"10.0.0.{place} {GOOD} Python={version}" for place, version in enumerate(versions, 5)]
    assert codes(examine_cluster(cluster_of(lines)))["MC432"] == severity


def test_silent_node_lacks_nothing() -> None:
    """A node that gave no answer is not said to disagree, or to lack a version."""
    findings = examine_cluster(cluster_of((f"job {GOOD}", f"10.0.0.5 {GOOD}", "10.0.0.7  silent")))
    assert [item.code for item in findings if item.code >= "MC4"] == ["MC401"]
    assert found("MC401", f"10.0.0.5 {GOOD}", "10.0.0.7  silent").message == (
        "10.0.0.7 did not answer within 30 s, so nothing is known of it."
    )


def test_distribution_that_one_node_lacks() -> None:
    """A distribution named with --same that is missing on one node differs there; missing everywhere is a slip."""
    finding = found("MC433", "job --same miles", f"10.0.0.5 {GOOD} miles=0.2.0", f"10.0.0.7 {GOOD} miles=")
    assert "0.2.0 on 10.0.0.5, missing on 10.0.0.7" in finding.message
    nowhere = found("MC433", "job --same mils", f"10.0.0.5 {GOOD} mils=", f"10.0.0.7 {GOOD} mils=")
    assert nowhere.severity is Severity.WARNING
    assert nowhere.origin is not None
    assert nowhere.origin.spot == "--same"


def test_detour_is_a_warning() -> None:
    """A connection that stands and leaves by another address of the caller is a warning."""
    lines = (f"10.0.0.5 {GOOD}", f"10.0.0.7 {GOOD}", "10.0.0.5 -> 10.0.0.7  reached")
    cluster = cluster_of(lines)
    (one,) = cluster.contacts
    findings = examine_cluster(replace(cluster, contacts=(replace(one, detail="left by 192.168.0.5"),)))
    assert codes(findings)["MC442"] == "warning"


def test_node_that_calls_nobody_is_a_warning() -> None:
    """A node that answered and then called nobody is named: whom it reaches is unknown."""
    lines = (f"10.0.0.5 {GOOD}", f"10.0.0.7 {GOOD}", "10.0.0.5 -> 10.0.0.7  reached", "10.0.0.7 -> 10.0.0.5  not tried")
    finding = found("MC443", *lines)
    assert finding.severity is Severity.WARNING
    assert finding.message == "10.0.0.7 gave no answer when asked to call the others, so whom it reaches is unknown."


def test_many_connections_in_few_words() -> None:
    """Connections that fail alike are one finding, named by what they have in common."""
    names = [f"10.0.0.{number}" for number in range(1, 7)]
    nodes = [f"{name} {GOOD}" for name in names]
    to_one = [f"{name} -> 10.0.0.6  no answer" for name in names[:5]]
    assert found("MC441", *nodes, *to_one).message.startswith(
        "every connection to 10.0.0.6 (10.0.0.6:15000) from 5 nodes gets no answer within 2 s"
    )
    from_one = [f"10.0.0.6 -> {name}  no answer" for name in names[:5]]
    assert found("MC441", *nodes, *from_one).message.startswith("every connection from 10.0.0.6 to 5 nodes")
    message = found("MC441", *nodes, *to_one, *from_one).message
    assert "and 7 more" in message


def test_one_cause_is_one_finding() -> None:
    """What 50 nodes found on themselves is told once, in the words of one, with all their names."""
    lines = [f"10.0.1.{number} {GOOD} MOONCAKE_LOCAL_HOSTNAME=127.0.0.{number}" for number in range(1, 51)]
    finding = found("MC101", *lines)
    assert len(finding.nodes) == 50
    assert finding.node == "all 50 nodes, in the words of 10.0.1.1"


def test_ignored_across_nodes() -> None:
    """A rule across nodes is ignored by code or name; what protects stays, and an info says why."""
    lines = (f"10.0.0.5 {GOOD}", f"10.0.0.7 {GOOD.replace('tcp', 'rdma')}")
    assert "MC410" in codes(examine_cluster(cluster_of(lines)))
    for name in ("MC410", "disagreement-between-nodes"):
        assert "MC410" not in codes(examine_cluster(cluster_of(lines), [name]))
    kept = codes(examine_cluster(cluster_of(("no cluster",)), ["MC400"]))
    assert kept["MC400"] == "error"
    assert kept["MC130"] == "info"


def test_over_ray_nothing_about_mooncake_is_asked() -> None:
    """With Ray's object store no rule about Mooncake speaks; Ray, Python and a silent node weigh as ever."""
    lines = ("10.0.0.5 Mooncake=1 MOONCAKE_PROTOCOL=tcp", "10.0.0.7 Mooncake=2 Ray=2.59.0", "10.0.0.9  silent")
    findings = codes(examine_cluster(cluster_of(lines, Backend.RAY)))
    assert {code: weight for code, weight in findings.items() if code >= "MC4"} == {"MC401": "error", "MC431": "error"}
    assert codes(examine_cluster(cluster_of(("no cluster",), Backend.RAY))) == {"MC400": "error"}


@given(st.lists(st.sampled_from(["", "MOONCAKE_PROTOCOL=tcp", "MOONCAKE_PROTOCOL=rdma"]), min_size=1, max_size=6))
def test_order_of_nodes_does_not_matter(words: list[str]) -> None:
    """What is found across nodes does not depend on the order in which they are listed."""
    lines = [f"10.0.0.{number} {some}" for number, some in enumerate(words, 1)]
    there, back = (examine_cluster(cluster_of(some)) for some in (lines, lines[::-1]))
    assert [(item.code, item.severity, item.fields) for item in there] == [
        (item.code, item.severity, item.fields) for item in back
    ]
