"""A node: what process, host and answers amount to together."""

from __future__ import annotations

import pickle

import pytest
from machines import GIB, answer, device, host_with, mapped, node, process

from mooncake_config.dialogue import Outcome
from mooncake_config.host import Host
from mooncake_config.topology import Role

SIZES = {"MOONCAKE_LOCAL_BUFFER_SIZE": "2gb", "MOONCAKE_GLOBAL_SEGMENT_SIZE": "8gb"}


@pytest.mark.parametrize(
    ("role", "rank", "processes", "own", "job"),
    [
        (Role.TRAINER, 0, 8, 10, 24),
        (Role.TRAINER, 3, 8, 2, 24),
        (Role.TRAINER, 0, None, 10, 10),
        (Role.TRAINER, 3, None, 2, 2),
        (Role.ROLLOUT_MANAGER, None, 1, 2, 2),
        (Role.DRIVER, None, None, 2, 2),
    ],
)
def test_memory(role: Role, rank: int | None, processes: int | None, own: int, job: int) -> None:
    """A process reserves its buffer, and its segment if it contributes one; a training node has one segment in all."""
    given = node(process(SIZES, role=role, rank=rank, processes=processes))
    assert (given.own_memory, given.job_memory) == (own * GIB, job * GIB)


def test_memory_unknown() -> None:
    """With a malformed size the sum is unknown."""
    given = node(process({"MOONCAKE_LOCAL_BUFFER_SIZE": "lots"}))
    assert (given.own_memory, given.job_memory) == (None, None)


@pytest.mark.parametrize(
    ("environ", "uses"),
    [
        ({}, True),
        ({"MOONCAKE_PROTOCOL": "efa"}, True),
        ({"MOONCAKE_PROTOCOL": "tcp"}, False),
        ({"MOONCAKE_PROTOCOL": "rmda"}, False),
        ({"MC_FORCE_TCP": "1"}, False),
        ({"MC_FORCE_TCP": "0"}, True),
    ],
)
def test_uses_verbs(environ: dict[str, str], uses: bool) -> None:
    """RDMA is asked for by the protocol, and taken back by MC_FORCE_TCP."""
    assert node(process(environ)).uses_verbs is uses


@pytest.mark.parametrize(
    ("environ", "chosen"),
    [
        ({}, None),
        ({"MC_GID_INDEX": "3"}, ("MC_GID_INDEX", 3)),
        ({"NCCL_IB_GID_INDEX": "3"}, ("NCCL_IB_GID_INDEX", 3)),
        ({"MC_GID_INDEX": "1", "NCCL_IB_GID_INDEX": "3"}, ("MC_GID_INDEX", 1)),
        ({"MC_GID_INDEX": " ", "NCCL_IB_GID_INDEX": "3"}, ("NCCL_IB_GID_INDEX", 3)),
        ({"NCCL_IB_GID_INDEX": "-1"}, None),
        ({"MC_GID_INDEX": "9" * 5000}, None),
        ({"MC_GID_INDEX": "x"}, None),
    ],
)
def test_gid_index(environ: dict[str, str], chosen: object) -> None:
    """Which GID is taken says MC_GID_INDEX, and NCCL's variable where that is unset, as the engine reads them."""
    of = process(environ)
    assert node(of).gid_index == chosen
    assert "NCCL_IB_GID_INDEX" not in [name for name, _ in of.unread_variables]


def test_devices() -> None:
    """The devices in use are the named ones that exist, or all where none is named."""
    host = host_with(device("mlx5_0", behind="eth0"), device("mlx5_1", behind="eth1"))
    named = node(process({"MOONCAKE_DEVICE": "mlx5_1,mlx5_9"}), host)
    assert [item.name for item in named.used_devices] == ["mlx5_1"]
    assert [item.name for item in node(process(), host).used_devices] == ["mlx5_0", "mlx5_1"]
    assert [item.name for item in named.devices_behind("eth0")] == ["mlx5_0"]
    assert node().used_devices == ()


def test_own_addresses() -> None:
    """An IP is this host's, or not, or unknown by family; loopback always is."""
    given = node(host=Host("/", ipv4=("10.0.0.7",)))
    asked = ("10.0.0.7", "10.0.0.8", "fd00::7", "127.9.9.9", "::1", "::ffff:10.0.0.7", "name")
    assert [given.is_own(item) for item in asked] == [True, False, None, True, True, True, None]


def test_addresses_of_a_name() -> None:
    """On this machine the live resolver counts; of a copied host its own table, and the resolver where it is silent."""
    found = (answer("local_hostname", "a", Outcome.RESOLVES, "10.0.0.1"),)
    for root, expected in (("/", "10.0.0.1"), ("/copy", "127.0.1.1")):
        assert node(host=mapped("a", "127.0.1.1", root), answers=found).addresses_of("local_hostname", "a") == (
            expected,
        )
    assert node(host=mapped("b", "127.0.1.1"), answers=found).addresses_of("local_hostname", "a") == ("10.0.0.1",)
    assert node(host=mapped("a", "127.0.1.1", "/")).addresses_of("local_hostname", "a") == ("127.0.1.1",)
    assert node().addresses_of("local_hostname", "10.1") == ("10.0.0.1",)


@pytest.mark.parametrize(("nodes", "several"), [(1, False), (2, True), (None, None)])
def test_several_nodes(nodes: int | None, several: bool | None) -> None:
    """More than one node, one, or unknown."""
    assert node(process(nodes=nodes)).several_nodes is several


def test_claimed() -> None:
    """A person wrote what stands in JSON or in a variable; Ray and defaults are nobody."""
    assert node(process({"MOONCAKE_LOCAL_HOSTNAME": "a"})).claimed("local_hostname")
    assert node(process(kwargs={"protocol": "tcp"})).claimed("protocol")
    assert not node().claimed("local_hostname")
    assert not node(process({"MOONCAKE_MASTER": ""})).claimed("master_server_address")


def test_pickles() -> None:
    """A node crosses Ray."""
    given = node(host=host_with(device("mlx5_0")))
    assert pickle.loads(pickle.dumps(given)).host == given.host
