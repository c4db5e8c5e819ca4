"""MC0xx: one value that could be read, and is still none to start with."""

from __future__ import annotations

import re

import pytest
from asking import MASTER, ONE_NODE, TWO_NODES, ask, found, severities
from hypothesis import given
from strategies import device_texts, edited

from mooncake_config.findings import Severity
from mooncake_config.topology import Role

ERROR, WARNING, INFO = Severity.ERROR, Severity.WARNING, Severity.INFO


def weights(code: str, **fields: object) -> list[Severity]:
    """What a rule finds in init kwargs, with a master unless they name one."""
    return severities(ask({}, {"master_server_address": "10.0.0.5:50051", **fields}), code)


# Addresses


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "[0:0::0]", "0", "0.0", "0x0", "[::ffff:0.0.0.0]"])
def test_wildcard(host: str) -> None:
    """The wildcard is an error wherever it stands, with one node as with several."""
    fields = {
        "master_server_address": f"{host}:50051",
        "local_hostname": host,
        "metadata_server": f"http://{host}:8080/metadata",
    }
    for topology in (ONE_NODE, TWO_NODES):
        findings = found(ask({}, fields, topology=topology), "MC040")
        assert {finding.fields for finding in findings} == {(name,) for name in fields}
        assert {finding.severity for finding in findings} == {ERROR}


@pytest.mark.parametrize("host", ["10.0.0.0", "0.example.net", "[::1]", "1.0.0.0"])
def test_no_wildcard(host: str) -> None:
    """Other hosts are no wildcard."""
    assert weights("MC040", master_server_address=f"{host}:50051") == []


@pytest.mark.parametrize(
    ("host", "weight"),
    [
        ("10.0.0.256", [ERROR]),
        ("10.0.0.5.1", [ERROR]),
        ("10.0.0.5.", [ERROR]),
        ("head.", []),
        ("999", []),
        ("1.2.3.4.5.6", [ERROR]),
        ("10.0.0.25", []),
        ("node7", []),
        ("7.node", []),
        ("[fd00::5]", []),
        ("127.1", []),
    ],
)
def test_not_an_ip(host: str, weight: list[Severity]) -> None:
    """A name that ends in a number is an IP that is none."""
    assert weights("MC045", master_server_address=f"{host}:50051") == weight


@pytest.mark.parametrize(
    ("host", "read_as"),
    [("010.0.0.5", "8.0.0.5"), ("10.5", "10.0.0.5"), ("0x0a000005", "10.0.0.5"), ("167772165", "10.0.0.5")],
)
def test_ip_of_the_c_library(host: str, read_as: str) -> None:
    """An IP in a form that only the C library reads is a warning with what it reads."""
    process = ask({"MOONCAKE_MASTER": f"{host}:50051"})
    (finding,) = found(process, "MC046")
    assert finding.severity is WARNING
    assert finding.message == f"the C library reads {host} as {read_as}."


@pytest.mark.parametrize("host", ["10.0.0.5", "10.0.0.5.", "[fd00::0005]", "head"])
def test_ip_in_its_usual_form(host: str) -> None:
    """An IP in four decimal numbers, IPv6 in any form, and names are as usual."""
    assert weights("MC046", master_server_address=f"{host}:50051") == []


@pytest.mark.parametrize(
    ("host", "weight"),
    [
        ("239.1.1.1", [ERROR]),
        ("224.0.0.1", [ERROR]),
        ("255.255.255.255", [ERROR]),
        ("[ff02::1]", [ERROR]),
        ("223.255.255.255", []),
        ("[fd00::1]", []),
        ("head", []),
    ],
)
def test_multicast(host: str, weight: list[Severity]) -> None:
    """An address that stands for many hosts is an error."""
    assert weights("MC054", master_server_address=f"{host}:50051") == weight


@pytest.mark.parametrize(
    ("master", "weight"),
    [
        ("redis://10.0.0.5:6379", [WARNING]),
        ("k8s://mooncake/lease", [WARNING]),
        ("etcd://10.0.0.5:2379", []),
        ("10.0.0.5:50051", []),
    ],
)
def test_scheme_that_no_wheel_has(master: str, weight: list[Severity]) -> None:
    """A master through Redis or a Kubernetes lease is right in form, and no published wheel can take it."""
    assert weights("MC049", master_server_address=master) == weight


def test_redis_metadata_can_be_ignored() -> None:
    """A Redis metadata server aborts a published wheel; who has another build ignores the rule and goes on."""
    process = ask(MASTER, {"metadata_server": "redis://10.0.0.5:6379"})
    assert severities(process, "MC050") == [ERROR]
    assert found(process, "MC050", ["MC050"]) == []
    assert weights("MC050", metadata_server="etcd://10.0.0.5:2379") == []


@pytest.mark.parametrize(
    ("metadata", "write"),
    [
        ("http://10.0.0.5:8080", "http://10.0.0.5:8080/metadata"),
        ("http://10.0.0.5:8080/", "http://10.0.0.5:8080/metadata"),
        ("https://10.0.0.5/meta", "https://10.0.0.5/metadata"),
        ("http://u:hunter2@10.0.0.5:8080/x", "http://u:***@10.0.0.5:8080/metadata"),
        ("http://10.0.0.5:8080/metadata", None),
        ("http://10.0.0.5:8080/metadata/", "http://10.0.0.5:8080/metadata"),
        ("http://10.0.0.5:8080/metadata//", "http://10.0.0.5:8080/metadata"),
        ("etcd://10.0.0.5:2379", None),
        ("P2PHANDSHAKE", None),
    ],
)
def test_metadata_path(metadata: str, write: str | None) -> None:
    """An HTTP metadata server answers at /metadata, and not at what looks like it."""
    findings = found(ask(MASTER, {"metadata_server": metadata}), "MC051")
    assert [finding.fix for finding in findings] == ([f"write {write}."] if write else [])


@pytest.mark.parametrize("port", [2379, 6379, 8265, 8080, 9003, 10001])
def test_port_of_another_service(port: int) -> None:
    """The well-known port of another service is a warning that names the service."""
    (finding,) = found(ask({"MOONCAKE_MASTER": f"head:{port}"}), "MC052")
    assert finding.severity is WARNING
    assert "head:50051" in finding.fix


@pytest.mark.parametrize(
    ("environ", "way"),
    [
        ({"MOONCAKE_MASTER": "0.0.0.0:6379"}, "such as HOST:50051."),
        ({"MOONCAKE_MASTER": "[::]:6379"}, "such as HOST:50051."),
        ({"MOONCAKE_MASTER": "etcd://239.1.1.1:50051"}, "write HOST:50051 without etcd://"),
        ({"MOONCAKE_TE_META_DATA_SERVER": "http://0.0.0.0:2379/metadata"}, "such as http://HOST:8080/metadata."),
        ({"MOONCAKE_MASTER": "[fd00::5]:6379"}, "such as [fd00::5]:50051."),
    ],
)
def test_way_out_holds_no_address_of_nobody(environ: dict[str, str], way: str) -> None:
    """The address that is to be written instead of one with a wrong port is none that another rule refuses."""
    (finding,) = found(ask({"MOONCAKE_MASTER": "10.0.0.5:50051", **environ}), "MC052")
    assert way in finding.fix


@pytest.mark.parametrize(
    ("metadata", "says", "way"),
    [
        ("http://head:50051/metadata", "50051 is where the master itself", "http://head:8080/metadata"),
        ("http://10.0.0.5:40000/metadata", "40000 is where the master itself", "http://10.0.0.5:8080/metadata"),
        ("http://head:9003/metadata", "metrics page", "http://head:8080/metadata"),
        ("https://head:9003/metadata", "metrics page", "https://head:8080/metadata"),
        ("http://[fd00::5]:6379/metadata", "Ray", "http://[fd00::5]:8080/metadata"),
        ("http://u:hunter2@head:2379/metadata", "etcd", "http://head:8080/metadata"),
        ("etcd://head:50051", "the master itself", "etcd://head:2379"),
        ("etcd://head:8080", "HTTP metadata", "etcd://head:2379"),
        ("http://head:8080/metadata", None, ""),
        ("http://10.0.0.6:40000/metadata", None, ""),
        ("http://head/metadata", None, ""),
        ("https://head/metadata", None, ""),
        ("etcd://head:2379", None, ""),
        ("P2PHANDSHAKE", None, ""),
    ],
)
def test_metadata_port_of_another_service(metadata: str, says: str | None, way: str) -> None:
    """The port of the master, of its metrics or of another service is none of a metadata server."""
    findings = found(ask({"MOONCAKE_MASTER": "10.0.0.5:40000", "MOONCAKE_TE_META_DATA_SERVER": metadata}), "MC052")
    assert [says in finding.message for finding in findings if says] == [True] * (says is not None)
    assert all(way in finding.fix and finding.fields == ("metadata_server",) for finding in findings)
    assert len(findings) == (says is not None)


@pytest.mark.parametrize("master", ["head:50051", "etcd://head:2379", "redis://head:6379"])
def test_port_that_belongs(master: str) -> None:
    """The master's own port, and those of etcd and Redis behind their schemes, are right."""
    assert weights("MC052", master_server_address=master) == []


# Sizes


@pytest.mark.parametrize(
    ("size", "weight"),
    [("1mb", [ERROR]), (8, [ERROR]), (16777215, [ERROR]), (16777216, []), ("16mb", []), (0, []), ("2gb", [])],
)
def test_segment_floor(size: object, weight: list[Severity]) -> None:
    """A contributed segment has 16 MiB at least, or none at all."""
    assert weights("MC041", global_segment_size=size) == weight


def test_segment_floor_is_for_contributors() -> None:
    """Who contributes nothing may have any segment size."""
    process = ask(MASTER, {"global_segment_size": "1mb"}, role=Role.DRIVER)
    assert not found(process, "MC041")


def test_unit_that_was_forgotten() -> None:
    """A number that was meant in GiB is shown with its unit."""
    assert '"8gb"' in found(ask(MASTER, {"global_segment_size": 8}), "MC041")[0].fix
    assert '"32gb"' in found(ask(MASTER, {"local_buffer_size": "32"}), "MC042")[0].fix
    assert '"64mb"; if 64 MiB' not in found(ask(MASTER, {"chunk_bytes": 2048}), "MC053")[0].fix
    assert '"4mb"' in found(ask(MASTER, {"chunk_bytes": 4}), "MC053")[0].fix


@pytest.mark.parametrize(
    ("size", "weight"),
    [
        (0, [ERROR]),
        (1023, [ERROR]),
        ("1kb", []),
        ("1tb", []),
        (2**40 + 1, [ERROR]),
        ("2048gb", [ERROR]),
        (10**60, [ERROR]),
    ],
)
def test_buffer_range(size: object, weight: list[Severity]) -> None:
    """The buffer has 1 KiB to 1 TiB, both included, and is never 0."""
    assert weights("MC042", local_buffer_size=size) == weight


@pytest.mark.parametrize("field", ["global_segment_size", "chunk_bytes"])
@pytest.mark.parametrize(("size", "weight"), [(2**64 - 1, []), (2**64, [ERROR]), ("99999999999gb", [ERROR])])
def test_sixty_four_bits(field: str, size: object, weight: list[Severity]) -> None:
    """A size fits into 64 bits."""
    assert weights("MC043", **{field: size}) == weight


@pytest.mark.parametrize(("size", "weight"), [(64, [WARNING]), (2**20 - 1, [WARNING]), ("1mb", []), ("64mb", [])])
def test_tiny_chunk(size: object, weight: list[Severity]) -> None:
    """A chunk below 1 MiB makes puts crawl."""
    assert weights("MC053", chunk_bytes=size) == weight


@pytest.mark.parametrize(
    ("size", "weight"),
    [("1.0625gb", [INFO]), ("1.125gb", []), ("1.1250000gb", []), ("2gb", []), ("1.5", []), (1.5e9, [])],
)
def test_long_decimal(size: object, weight: list[Severity]) -> None:
    """A long decimal fraction is exact, hard to read, and remarked on."""
    assert weights("MC048", global_segment_size=size) == weight


# Spelling


@pytest.mark.parametrize(
    ("field", "raw", "message"),
    [
        ("protocol", "TCP", '"TCP" is read as tcp.'),
        ("protocol", " rdma ", '" rdma " is read as rdma.'),
        ("metadata_server", "P2PHANDSHAKE ", '"P2PHANDSHAKE " is read as P2PHANDSHAKE.'),
        ("global_segment_size", " 8gb", '" 8gb" is read as 8gb.'),
        ("protocol", "tcp", None),
        ("global_segment_size", "8 GB", None),
        ("global_segment_size", 2**30, None),
        ("protocol", "rmda", None),
    ],
)
def test_rewritten_value(field: str, raw: object, message: str | None) -> None:
    """A value that is taken in another spelling than it was written in is remarked on."""
    findings = found(ask(MASTER, {field: raw}), "MC047")
    assert [finding.message for finding in findings] == ([message] if message else [])
    assert {finding.severity for finding in findings} <= {INFO}


def test_rewritten_value_of_a_variable() -> None:
    """The remark names the place to edit."""
    (finding,) = found(ask({**MASTER, "MOONCAKE_PROTOCOL": "RDMA"}), "MC047")
    assert finding.origin is not None
    assert finding.origin.spot == "MOONCAKE_PROTOCOL"


@pytest.mark.parametrize(
    ("device", "weight", "write"),
    [
        ("/sys/class/infiniband/mlx5_0", [ERROR], "write mlx5_0;"),
        ("/sys/class/infiniband/mlx5_0/ports/1", [ERROR], "write mlx5_0;"),
        ("mlx5_0/1", [ERROR], "write mlx5_0;"),
        ("mlx5_0，mlx5_1", [ERROR], "write mlx5_0,mlx5_1;"),
        ("/dev/infiniband/uverbs0", [ERROR], "write names as `ibv_devices` prints them, for example"),
        ("cuda:0", [ERROR], "write names as `ibv_devices` prints them, for example"),
        ("mlx5_0 uverbs0", [ERROR], "write names as `ibv_devices` prints them, for example"),
        ("/opt/x", [ERROR], "write names as `ibv_devices` prints them, for example"),
        ("mlx5_0:1", [ERROR], "write mlx5_0;"),
        ("mlx5_0 mlx5_1", [ERROR], "write mlx5_0,mlx5_1;"),
        ("mlx5_0;mlx5_1", [ERROR], "write mlx5_0,mlx5_1;"),
        ("mlx5_0,", [WARNING], "take the comma away."),
        ("mlx5_0,mlx5_1", [], ""),
        ("mlx5_0, mlx5_1", [], ""),
        ("auto-discovery", [], ""),
        ("", [], ""),
    ],
)
def test_device_names(device: str, weight: list[Severity], write: str) -> None:
    """device_name holds names of devices, and nothing else that is known of them."""
    findings = found(ask(MASTER, {"device_name": device}), "MC044")
    assert [finding.severity for finding in findings] == weight
    assert all(finding.fix.startswith(write) for finding in findings)


@given(text=edited(device_texts()))
def test_devices_of_a_fix_are_devices(text: str) -> None:
    """Whatever devices a fix tells to write are accepted by the rules that refused."""
    for finding in found(ask(MASTER, {"device_name": text}), "MC044"):
        written = re.match(r"write ([^ ]+); several|.*for example ([^ ]+)\.$", finding.fix)
        if written and "…" not in finding.fix:
            process = ask(MASTER, {"device_name": written[1] or written[2]})
            assert not found(process, "MC044") + found(process, "MC057")


@pytest.mark.parametrize(
    "device",
    ["auto", "AUTO-DISCOVERY", "auto_discovery", "all", "any", "uverbs0", "10.0.0.7", "cuda0", "mlx5_0,auto-discovery"],
)
def test_device_of_another_kind(device: str) -> None:
    """A word, an address and another kind's name are no devices; a warning where the protocol asks none."""
    assert weights("MC057", device_name=device) == [ERROR]
    assert weights("MC057", device_name=device, protocol="tcp") == [WARNING]


@pytest.mark.parametrize(
    "device",
    ["auto-discovery", "", "mlx5_0", "mlx5_bond_0", "rocep1s0f0", "hfi1_0", "bnxt_re0", "irdma0", "efa_0", "erdma_0"],
)
def test_device_of_its_kind(device: str) -> None:
    """Names that drivers give to RDMA devices raise nothing."""
    assert weights("MC057", device_name=device) == []


@pytest.mark.parametrize(
    ("host", "fix"),
    [
        ("[fd00::5%25eth0]", ["write [fd00::5%eth0]:50051."]),
        ("[fe80::5%eth0]", []),
        ("[fe80::5%25]", []),
        ("[fe80::5%251]", []),
        ("head", []),
    ],
)
def test_zone_of_a_url(host: str, fix: list[str]) -> None:
    """A zone that is percent-encoded is an error in an address that is no URL."""
    assert [finding.fix for finding in found(ask({"MOONCAKE_MASTER": f"{host}:50051"}), "MC058")] == fix
    assert weights("MC058", metadata_server=f"http://{host}:8080/metadata") == []


@pytest.mark.parametrize(
    ("size", "weight"), [("8388608tb", [ERROR]), ("128tb", [ERROR]), ("127tb", []), ("8gb", []), (2**64, []), (0, [])]
)
def test_segment_beyond_address_space(size: object, weight: list[Severity]) -> None:
    """A segment that no process can map is an error, once; beyond 64 bits another rule speaks."""
    assert weights("MC059", global_segment_size=size) == weight
    assert not found(ask(MASTER, {"global_segment_size": size}, role=Role.DRIVER), "MC059")


def test_master_behind_the_scheme_of_etcd() -> None:
    """etcd:// before the master's own port is a warning that tells to leave the scheme out."""
    (finding,) = found(ask({"MOONCAKE_MASTER": "etcd://head:50051"}), "MC052")
    assert finding.severity is WARNING
    assert finding.fix.startswith("write head:50051 without etcd://")


@pytest.mark.parametrize("text", ["None", "null", "NULL", "nil", "undefined"])
@pytest.mark.parametrize(
    "field", ["master_server_address", "local_hostname", "metadata_server", "protocol", "device_name"]
)
def test_text_of_nothing(field: str, text: str) -> None:
    """What a program writes for a value that it does not have is an error in every text field, read or refused."""
    (finding,) = found(ask(MASTER, {field: text}), "MC055", ["MC055"])
    assert finding.severity is ERROR
    assert finding.fields == (field,)


@pytest.mark.parametrize(
    ("fields", "weight"),
    [
        ({"master_server_address": "None:50051"}, [ERROR]),
        ({"metadata_server": "http://null:8080/metadata"}, [ERROR]),
        ({"global_segment_size": "None"}, [ERROR]),
        ({"global_segment_size": None}, []),
        ({"local_hostname": "none.example.net"}, []),
        ({"local_hostname": "nonesuch"}, []),
        ({"device_name": "nil_0"}, []),
    ],
)
def test_host_of_nothing(fields: dict[str, object], weight: list[Severity]) -> None:
    """A host of that text is one too; a name that merely begins so is none, and JSON's own null is an absence."""
    assert weights("MC055", **fields) == weight


@pytest.mark.parametrize("name", ["eth0", "ib0", "bond12", "lo", "docker0", "ens3", "eno1", "enp65s0f1np1", "enp3s0"])
def test_interface_for_an_address(name: str) -> None:
    """The name of a network interface is a warning where an address or a device belongs."""
    assert (
        weights("MC056", local_hostname=name, master_server_address=f"{name}:50051", device_name=name) == [WARNING] * 3
    )


@pytest.mark.parametrize(
    "name",
    [
        "node-7",
        "eth0.example.net",
        "mlx5_0",
        "ibp1s0",
        "rocep1s0f0",
        "ethernet",
        "local",
        "ib001",
        "eth01",
        "bond007",
        "docker01",
        "eno01",
        "eth1234567",
    ],
)
def test_no_interface(name: str) -> None:
    """Names of hosts and of RDMA devices are none of interfaces."""
    assert weights("MC056", local_hostname=name, device_name=name) == []
