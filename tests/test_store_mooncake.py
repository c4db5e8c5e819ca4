"""The Mooncake store, over a real master and real clients on loopback."""

from __future__ import annotations

import gc
import json
import logging
import multiprocessing
import os
import pickle
import socket
import subprocess
import sys
import textwrap
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from rollouts import dictionaries, differences, rollout, specified

from mooncake_config.findings import ConfigError, Severity
from mooncake_config.resolve import Resolution, resolve_store_config
from mooncake_config.store import ROLLOUT_VALUE_SPEC, ValueSpec, open_object_store
from mooncake_config.store.errors import (
    BufferTooSmallError,
    MasterUnreachableError,
    ObjectNotFoundError,
    StoreClosedError,
    StoreFullError,
    StoreSetupError,
    TransferError,
)
from mooncake_config.store.master import MooncakeMaster, start_mooncake_master
from mooncake_config.store.mooncake import MooncakeObjectStore, MooncakeRef
from mooncake_config.store.values import as_stored, checked_fields
from mooncake_config.topology import Topology

pytestmark = pytest.mark.mooncake

HERE = Path(__file__).parent
MB = 1024 * 1024
LOOPBACK = {"local_hostname": "127.0.0.1", "protocol": "tcp"}


def resolved(master: str, *, replicas: int = 1, role: str = "trainer", **fields: str | int) -> Resolution:
    """A resolution for a process on loopback: 64 MiB of segment and of buffer, unless told otherwise."""
    kwargs = {**LOOPBACK, "global_segment_size": "64mb", "local_buffer_size": "64mb", **fields}
    return resolve_store_config(
        {"master_server_address": master, **kwargs},
        role=role,
        replica_num=replicas,
        topology=Topology(num_nodes=1),
        environ={},
        ignore=["segment-below-minimum"],
    )


def keys(master: MooncakeMaster) -> list[str]:
    """Every key that the master knows."""
    with urllib.request.urlopen(f"http://127.0.0.1:{master.metrics_port}/get_all_keys", timeout=5) as answer:
        return str(answer.read().decode()).split()


@pytest.fixture(scope="module")
def master() -> Iterator[MooncakeMaster]:
    """One master for the module."""
    with start_mooncake_master() as running:
        yield running


@pytest.fixture(scope="module")
def store(master: MooncakeMaster) -> Iterator[MooncakeObjectStore]:
    """One store with a segment for the module."""
    with open_object_store("mooncake", resolved(master.address)) as opened:
        yield opened


@pytest.fixture(autouse=True)
def purged(store: MooncakeObjectStore) -> Iterator[None]:
    """What one test leaves behind when it fails is no concern of the next one."""
    yield
    store.purge()


def ints(mb: int, fill: int = 1, rows: int = 8) -> dict[str, Any]:
    """A dictionary of ``mb`` MiB of ragged int32."""
    return {"tokens": [np.full(mb * MB // 4 // rows, fill, dtype=np.int32) for _ in range(rows)]}


def test_round_trip(master: MooncakeMaster, store: MooncakeObjectStore) -> None:
    """A rollout comes back identical, and after remove the master knows no key of it."""
    value = rollout()
    ref = store.put(value)
    with store.get(ref) as got:
        assert differences(value, got) == {}
        assert list(got) == list(value)
    store.remove(ref)
    assert keys(master) == []


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(value=dictionaries())
@example(value={})
@example(value={"tokens": [[1, 2], [True]]})
@example(value={"tokens": [[], [1, 2**40]], "loss_masks": [[], []]})
@example(value={"metadata": [{1: "a"}, {"b": (1, 2)}]})
@example(value={"prompt": ["a", "\ud800"]})
@example(value={"metadata": [{"big": 2**70}, None]})
@example(value={"rollout_log_probs": [[0.1], [0.5]], "rewards": [1, 2.0]})
@example(value={"a": np.zeros((0, 3)), "b": [np.zeros((2, 0)), np.zeros((0, 2))]})
@example(value={"a": [np.zeros(()), np.ones(())], "b": [np.zeros(2), np.zeros((2, 2))]})
def test_any_dictionary(store: MooncakeObjectStore, value: dict[str, Any]) -> None:
    """Whatever can be stored comes back identical in value and type."""
    ref = pickle.loads(pickle.dumps(store.put(value)))
    with store.get(ref) as got:
        assert differences(value, got) == {}
        assert list(got) == list(value)
    store.remove(ref)


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(arguments=specified())
def test_any_spec(store: MooncakeObjectStore, arguments: tuple[dict[str, Any], dict[str, ValueSpec]]) -> None:
    """With specs either backend gives the same dictionary, or both refuse it: Ray stores what ``as_stored`` makes."""
    try:
        expected = as_stored(*checked_fields(*arguments))
    except ValueError:
        with pytest.raises(ValueError, match=r"."):
            store.put(*arguments)
        return
    ref = store.put(*arguments)
    with store.get(ref) as got:
        assert differences(expected, got) == {}
    store.remove(ref)


def test_plain_mooncake_reads_ours(store: MooncakeObjectStore) -> None:
    """MooncakeBundleTransfer.get(import_ref(ref.handle)) sees the fields, also after the handle was JSON."""
    from mooncake.structured_object_store import MooncakeBundleTransfer, import_ref

    value = rollout()
    ref = store.put(value)
    plain = MooncakeBundleTransfer(store._native)
    got = plain.get(import_ref(json.loads(json.dumps(ref.handle))), type="dict")
    value["partition"] = list(value["partition"])
    assert {name: type(got[name]) for name in value if name != "tokens"} == {
        name: type(value[name]) for name in value if name != "tokens"
    }
    assert got["loss_masks"] == value["loss_masks"]
    assert [row.tolist() for row in got["tokens"]] == [row.tolist() for row in value["tokens"]]
    MooncakeBundleTransfer.release_result(got)
    store.remove(ref)


def test_ours_reads_plain_mooncake(store: MooncakeObjectStore) -> None:
    """A handle of Mooncake's own export_ref can be read and removed, whatever its key prefix."""
    from mooncake.structured_object_store import FieldSchema, MooncakeBundleTransfer, export_ref

    plain = MooncakeBundleTransfer(store._native, key_prefix="somebody/else")
    schemas = {"tokens": FieldSchema("typed_ragged", metadata={"section": "non_tensor_batch", "dtype": "int32"})}
    handle = export_ref(plain.put({"tokens": [[1, 2], [3]], "step": 7}, type="dict", field_schemas=schemas))
    with store.get(handle) as got:
        assert got == {"tokens": [[1, 2], [3]], "step": 7}
    store.remove(handle)
    with pytest.raises(ObjectNotFoundError), store.get(handle):
        pass


def _produce(address: str, refs: Any, done: Any) -> None:
    resolution = resolved(address, role="rollout-manager")
    with open_object_store("mooncake", resolution) as store:
        refs.put(store.put(rollout()))
        done.wait(60)


def test_other_process(master: MooncakeMaster, store: MooncakeObjectStore) -> None:
    """What a rollout manager without a segment puts, a trainer in another process gets, from its own segment."""
    context = multiprocessing.get_context("spawn")
    refs, done = context.Queue(), context.Event()
    producer = context.Process(target=_produce, args=(master.address, refs, done))
    producer.start()
    try:
        ref = refs.get(timeout=60)
        with store.get(ref) as got:
            assert differences(rollout(), got) == {}
        store.remove(ref)
    finally:
        done.set()
        producer.join(60)
    assert producer.exitcode == 0


def test_refs_are_small(store: MooncakeObjectStore) -> None:
    """A ref of a large rollout pickles into less than 8 kB, and pickled refs are equal and hash alike."""
    ref = store.put(rollout(rows=2000))
    pickled = pickle.dumps(ref)
    assert len(pickled) < 8000
    assert pickle.loads(pickled) == ref
    assert len({ref, pickle.loads(pickled)}) == 1
    store.remove(ref)


def test_explicit_spec(store: MooncakeObjectStore) -> None:
    """With a spec numbers come out with its dtype, in the container that they came in."""
    value = {
        "tokens": [np.arange(3), np.arange(2)],
        "loss_masks": [[1, 0], [1.0]],
        "rewards": [1, 2],
        "raw_reward": np.arange(2),
        "prompt": ("a", None),
    }
    spec = {
        "tokens": ValueSpec("typed_ragged", "int32"),
        "loss_masks": ValueSpec("typed_ragged", "float32"),
        "rewards": ValueSpec("ndarray", "float32"),
        "raw_reward": ValueSpec("ndarray", "float64"),
        "prompt": ValueSpec("utf8_ragged"),
        "absent": ValueSpec("auto"),
    }
    ref = store.put(value, spec)
    with store.get(ref) as got:
        assert (
            differences(
                {
                    "tokens": [np.arange(3, dtype=np.int32), np.arange(2, dtype=np.int32)],
                    "loss_masks": [[1.0, 0.0], [1.0]],
                    "rewards": [1.0, 2.0],
                    "raw_reward": np.array([0.0, 1.0]),
                    "prompt": ["a", None],
                },
                got,
            )
            == {}
        )
    store.remove(ref)


def test_rollout_spec_as_promise(store: MooncakeObjectStore) -> None:
    """ROLLOUT_VALUE_SPEC can be passed as it is; a range of row numbers becomes a list of them."""
    ref = store.put(rollout(), ROLLOUT_VALUE_SPEC)
    with store.get(ref) as got:
        assert got["partition"] == list(rollout()["partition"])
        assert got["tokens"][0].dtype == np.int32
    store.remove(ref)


def test_preferred_dtype(store: MooncakeObjectStore) -> None:
    """Token lists take four bytes a number and come back as Python integers; other lists take eight."""
    rows = [[7] * 1000 for _ in range(8)]
    narrow, wide = store.put({"tokens": rows}), store.put({"other": rows})
    assert narrow.nbytes < 0.6 * wide.nbytes
    store.remove(narrow)
    store.remove(wide)


def test_after_the_with(store: MooncakeObjectStore) -> None:
    """After the with the dictionary is empty, and an array that somebody kept still holds its numbers."""
    refs = [store.put(ints(4, fill)) for fill in (1, 2)]
    with store.get(refs[0]) as got:
        kept = got["tokens"][3]
    assert got == {}
    for _ in range(20):
        with store.get(refs[1]) as other:
            assert other["tokens"][0][0] == 2
    assert (kept == 1).all()
    for ref in refs:
        store.remove(ref)


def test_results_are_released(store: MooncakeObjectStore) -> None:
    """Each result gives its share of the transfer buffer back: 40 of 16 MiB go through 64 MiB."""
    ref = store.put(ints(16))
    for _ in range(40):
        with store.get(ref) as got:
            del got
        assert store.unreleased == 0
    store.remove(ref)


def test_reading_never_waits(store: MooncakeObjectStore) -> None:
    """With the transfer buffer used up by results a get still answers at once (Mooncake's own waits forever)."""
    ref = store.put(ints(16))
    kept = []
    started = time.monotonic()
    for _ in range(10):
        with store.get(ref) as got:
            kept.append(got["tokens"])
    assert time.monotonic() - started < 5
    assert all((rows[7] == 1).all() for rows in kept)
    assert store.unreleased > 0
    store.remove(ref)


def test_full(master: MooncakeMaster, store: MooncakeObjectStore) -> None:
    """A full store is an error at put that leaves nothing behind, and what was put before is still there."""
    assert keys(master) == []
    refs: list[MooncakeRef] = []
    full = StoreFullError("")
    while len(refs) < 9:
        try:
            refs.append(store.put(ints(10)))
        except StoreFullError as error:
            full = error
            break
    assert "global_segment_size" in str(full)
    assert (full.code, full.needed) == (-200, 10 * MB)
    before = set(keys(master))
    for mb in (30, 200):
        with pytest.raises(StoreFullError):
            store.put({"first": np.zeros(8), **ints(mb), "other": list(range(1000))})
    assert set(keys(master)) == before
    for ref in refs:
        with store.get(ref) as got:
            assert (got["tokens"][7] == 1).all()
        store.remove(ref)
    ref = store.put(ints(40))
    store.remove(ref)


def test_remove_from_under_a_reader(store: MooncakeObjectStore) -> None:
    """Remove frees the space at once, lease or not: a reader's dictionary stays whole, a second get finds nothing."""
    ref = store.put(ints(24))
    with store.get(ref) as got:
        store.remove(ref)
        again = [store.put(ints(24, fill)) for fill in (2, 3)]
        assert (got["tokens"][0] == 1).all()
    store.remove(ref)
    with pytest.raises(ObjectNotFoundError, match="removed through this store") as caught, store.get(ref):
        pass
    assert caught.value.key == ref.key
    for other in again:
        store.remove(other)


def test_part_missing(store: MooncakeObjectStore) -> None:
    """An object of which a part is gone is not found, and what is left of it can be removed."""
    ref = store.put(ints(1))
    part = ref.key.replace("/manifest", "/buffer/non_tensor_batch.tokens.data")
    assert store._native.remove(part, True) == 0
    with pytest.raises(ObjectNotFoundError), store.get(ref):
        pass
    store.remove(ref)


def test_not_a_ref(store: MooncakeObjectStore) -> None:
    """What is no ref of this store is a TypeError."""
    wrong: Any
    for wrong in (None, "bundle/x", {}, 7):
        with pytest.raises(TypeError, match="not a ref"), store.get(wrong):
            pass
        with pytest.raises(TypeError, match="not a ref"):
            store.remove(wrong)


def test_refused_values(master: MooncakeMaster, store: MooncakeObjectStore) -> None:
    """An object that is no data is a TypeError that names its place, and nothing is stored."""
    with pytest.raises(TypeError, match=r"metadata\[1\]\['who'\] is a pathlib\.\w*Path"):
        store.put({"tokens": [[1], [2]], "metadata": [{}, {"who": Path()}]})
    with pytest.raises(TypeError, match="dictionary"):
        store.put([1, 2])  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(ValueError, match=r"tokens\[1\].*out of the range of int32"):
        store.put({"tokens": [[1], [2**40]]}, {"tokens": ValueSpec("typed_ragged", "int32")})
    assert keys(master) == []


def test_msgpack_limit(master: MooncakeMaster) -> None:
    """Rows of plain data beyond the 100 MiB that Mooncake can read back of a column come back all the same."""
    settings_ = resolved(master.address, global_segment_size="512mb", local_buffer_size="256mb")
    with open_object_store("mooncake", settings_, namespace="large") as store:
        value = {"metadata": [{"blob": bytes(101 * MB)}, {"blob": b""}]}
        ref = store.put(value)
        with store.get(ref) as got:
            assert got == value
        store.remove(ref)
    assert keys(master) == []


def test_threads(store: MooncakeObjectStore) -> None:
    """Puts, gets and removes of several threads do not disturb each other."""
    failures: list[BaseException] = []

    def work(fill: int) -> None:
        try:
            for _ in range(10):
                ref = store.put(ints(1, fill))
                with store.get(ref) as got:
                    assert all((row == fill).all() for row in got["tokens"])
                store.remove(ref)
        except BaseException as error:  # noqa: BLE001 - told by the thread that waits
            failures.append(error)

    threads = [threading.Thread(target=work, args=(fill,)) for fill in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []


def test_purge(master: MooncakeMaster, store: MooncakeObjectStore) -> None:
    """Purge removes what is left of this namespace, and nothing of another."""
    with open_object_store("mooncake", resolved(master.address), namespace="job.1") as other:
        left = other.put(rollout())
        ref = store.put(rollout())
        assert other.purge() > 5
        with pytest.raises(ObjectNotFoundError), other.get(left):
            pass
        with store.get(ref) as got:
            assert got
    store.remove(ref)


@pytest.mark.parametrize("namespace", ["", "a/b", "../x", "a b", "-x", "ä"])
def test_namespace(master: MooncakeMaster, namespace: str) -> None:
    """A namespace is one plain path segment; anything else is refused before the native client is made."""
    with pytest.raises(ValueError, match="namespace"):
        open_object_store("mooncake", resolved(master.address), namespace=namespace)


def test_missing_replicas(caplog: pytest.LogCaptureFixture) -> None:
    """Fewer copies than asked for are an error that takes the object back, or a warning, but never silence."""
    with start_mooncake_master() as master:
        resolution = resolved(master.address, replicas=2)
        with open_object_store("mooncake", resolution) as store:
            with pytest.raises(StoreFullError, match=r"2 replicas were asked for .* made 1") as caught:
                store.put(rollout())
            assert caught.value.replicas == 2
            assert keys(master) == []
        with open_object_store("mooncake", resolution, on_missing_replicas="warn") as store:
            caplog.clear()
            ref = store.put(rollout())
            assert ["2 replicas were asked for" in record.message for record in caplog.records] == [True]
            store.remove(ref)
        with pytest.raises(ValueError, match="on_missing_replicas"):
            open_object_store("mooncake", resolution, on_missing_replicas="ignore")


def test_two_replicas(master: MooncakeMaster, store: MooncakeObjectStore) -> None:
    """With two segments an object has two copies of each part, and a put says nothing."""
    with open_object_store("mooncake", resolved(master.address, replicas=2)) as twice:
        ref = twice.put(rollout())
        assert len(twice._native.get_replica_desc(ref.key)) == 2
        with store.get(ref) as got:
            assert differences(rollout(), got) == {}
        twice.remove(ref)


def test_small_buffer(master: MooncakeMaster) -> None:
    """An object larger than the transfer buffer goes through it in pieces, where Mooncake's own chunk would not fit."""
    with open_object_store("mooncake", resolved(master.address, local_buffer_size="1mb")) as store:
        ref = store.put(ints(48, rows=1))
        with store.get(ref) as got:
            assert (got["tokens"][0] == 1).all()
        store.remove(ref)


def test_buffer_in_use(master: MooncakeMaster) -> None:
    """A put that finds the transfer buffer used up by results says so after 5 s, and leaves nothing behind."""
    with open_object_store("mooncake", resolved(master.address, local_buffer_size="16mb")) as store:
        ref = store.put(ints(8))
        with store.get(ref):
            with pytest.raises(BufferTooSmallError, match="1 pieces of it are held") as caught:
                store.put(ints(12))
            assert caught.value.local_buffer_size == 16 * MB
            assert (caught.value.unreleased, caught.value.holders) == (1, (ref.key,))
        again = store.put(ints(12))
        for each in (ref, again):
            store.remove(each)
    assert keys(master) == []


def test_closed(master: MooncakeMaster) -> None:
    """A closed store refuses every operation, where the native client would end the process."""
    store = open_object_store("mooncake", resolved(master.address))
    ref = store.put({"a": [1, 2]})
    store.remove(ref)
    store.close()
    store.close()
    for use in (
        lambda: store.put({"a": 1}),
        lambda: store.remove(ref),
        lambda: store.get(ref).__enter__(),
        store.purge,
    ):
        with pytest.raises(StoreClosedError):
            use()


def test_close_with_a_result_in_use(master: MooncakeMaster, caplog: pytest.LogCaptureFixture) -> None:
    """Arrays that outlive the store keep their memory: the native client is closed when the last one goes."""
    store = open_object_store("mooncake", resolved(master.address))
    ref = store.put(ints(4, 5))
    with store.get(ref) as got:
        kept = got["tokens"]
    store.remove(ref)
    store.close()
    assert "while 1 pieces of its results are in use" in caplog.text
    assert (kept[0] == 5).all()
    assert store._end.alive
    del kept
    assert not store._end.alive


def test_garbage(master: MooncakeMaster, store: MooncakeObjectStore) -> None:
    """A store that nobody refers to any more is closed by itself, and its segment goes."""
    forgotten = open_object_store("mooncake", resolved(master.address))
    assert len(segments(master)) == 2
    end = forgotten._end
    del forgotten
    gc.collect()
    assert not end.alive
    assert len(segments(master)) == 1


SCRIPT = textwrap.dedent(
    """
    import os, sys, time
    import numpy as np
    from test_store_mooncake import resolved
    from mooncake_config.store import open_object_store

    master, case = sys.argv[1:]
    store = open_object_store("mooncake", resolved(master), namespace=case)
    ref = store.put({"tokens": [np.ones(1000, np.int32)], "metadata": [{"a": 1}]})
    """
)
CASES = {
    "forgotten": "",
    "held": "result = store.get(ref)\nheld = result.__enter__()['tokens']",
    "raised": "raise SystemExit(0)",
    "forked": textwrap.dedent(
        """
        child = os.fork()
        if not child:
            try:
                store.put({"a": 1})
            except Exception as error:
                os._exit(0 if "forked" in str(error) else 7)
            os._exit(8)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        with store.get(ref) as got:
            assert (got["tokens"][0] == 1).all()
        """
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_end_of_the_process(master: MooncakeMaster, store: MooncakeObjectStore, case: str) -> None:
    """A process that never closes its store ends by itself, quietly and soon, and its segment goes with it."""
    script = SCRIPT + CASES[case]
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", script, master.address, case],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [HERE, HERE.parent]))},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert len(segments(master)) == 1
    store._remove_below(f"bundle/{case}")


def segments(master: MooncakeMaster) -> list[str]:
    """Every segment that the master knows."""
    with urllib.request.urlopen(f"http://127.0.0.1:{master.metrics_port}/get_all_segments", timeout=5) as answer:
        return str(answer.read().decode()).split()


def test_setup_refused(master: MooncakeMaster) -> None:
    """A setup that fails is an error with code, name, seconds and likely causes, and its client is closed."""
    resolution = resolved(master.address, global_segment_size="1mb")
    with pytest.raises(StoreSetupError, match="a setting is refused: global_segment_size 1048576") as caught:
        open_object_store("mooncake", resolution)
    error = pickle.loads(pickle.dumps(caught.value))
    assert (error.code, error.name) == (-600, "INVALID_PARAMS")
    assert 0 < error.elapsed < 30
    assert len(segments(master)) == 1


def test_no_master() -> None:
    """A master that does not answer is a finding of `check`, at once: the native client would try for 90 s."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    started = time.monotonic()
    with pytest.raises(ConfigError, match=f"127.0.0.1:{port} refuses connections") as caught:
        open_object_store("mooncake", resolved(f"127.0.0.1:{port}"))
    assert time.monotonic() - started < 5
    assert [finding.code for finding in caught.value.findings if finding.severity is Severity.ERROR] == ["MC302"]


def test_ignored_rules(master: MooncakeMaster) -> None:
    """A rule about the endpoints can be ignored, and setup then says what it can; an unknown rule is a ValueError."""
    with pytest.raises(ValueError, match="no-such-rule"):
        open_object_store("mooncake", resolved(master.address), ignore=["no-such-rule"])
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    # With a port in local_hostname the native client gives up after 4 s instead of 90 s.
    resolution = resolved(f"127.0.0.1:{port}", local_hostname="127.0.0.1:17654")
    with pytest.raises(StoreSetupError, match=f"Likeliest first: no master answers at 127.0.0.1:{port}") as caught:
        open_object_store("mooncake", resolution, ignore=["MC302"])
    assert 1 < caught.value.elapsed < 60


def test_no_segment_anywhere(master: MooncakeMaster) -> None:
    """A store in which nobody has contributed a segment is full."""
    with (
        start_mooncake_master() as empty,
        open_object_store("mooncake", resolved(empty.address, role="rollout-manager")) as store,
        pytest.raises(StoreFullError, match="no segment at all"),
    ):
        store.put(rollout())


def test_first_put_after_a_restart(caplog: pytest.LogCaptureFixture) -> None:
    """The first put after a restart of the master succeeds within seconds, and one warning tells that it was retried.

    The native client gives -900, and then -200 until its segment is back.
    """
    first = start_mooncake_master()
    with open_object_store("mooncake", resolved(first.address)) as store:
        first.stop()
        with start_mooncake_master(rpc_port=first.rpc_port):
            started = time.monotonic()
            ref = store.put(rollout())
            assert time.monotonic() - started < 10
            with store.get(ref) as got:
                assert differences(rollout(), got) == {}
            store.close()
    assert sum("trying again" in record.message for record in caplog.records) <= 1


def test_debris(master: MooncakeMaster, store: MooncakeObjectStore) -> None:
    """What a put had stored when its master went out of reach is removed with the next put that succeeds."""
    left, kept = store.put(rollout()), store.put(rollout())
    store._debris.update(key.removesuffix("/manifest") for key in keys(master) if left.key.rsplit("/", 1)[0] in key)
    ref = store.put(rollout())
    assert not store._debris
    with pytest.raises(ObjectNotFoundError), store.get(left):
        pass
    for each in (left, kept, ref):
        store.remove(each)
    assert keys(master) == []


def test_capacity(master: MooncakeMaster, store: MooncakeObjectStore) -> None:
    """With the master's HTTP port a full store tells its capacity; without it, or where it is wrong, None."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        dead = free.getsockname()[1]
    for port, capacity in ((master.metrics_port, 128 * MB), (dead, None), (None, None)):
        with open_object_store("mooncake", resolved(master.address), metrics_port=port) as other:
            with pytest.raises(StoreFullError) as caught:
                other.put(ints(200, rows=4))
            assert (caught.value.needed, caught.value.capacity) == (200 * MB, capacity)


def test_journal(master: MooncakeMaster, store: MooncakeObjectStore, caplog: pytest.LogCaptureFixture) -> None:
    """One line tells who opened a store with which settings, and one what was done with it until it was closed."""
    caplog.set_level(logging.INFO, "mooncake_config")
    with open_object_store("mooncake", resolved(master.address, role="trainer"), namespace="told") as other:
        ref, left = other.put(ints(1)), other.put(ints(1))
        for _ in range(2):
            with other.get(ref):
                pass
        other.remove(ref)
        with pytest.raises(ObjectNotFoundError), other.get(ref):
            pass
        other._remove(left.handle)
    lines = _events(caplog)
    assert [line["event"] for line in lines] == ["store opened", "store closed"]
    assert lines[0]["role"] == "trainer"
    assert lines[0]["fingerprint"].startswith("sha256:")
    assert lines[0]["settings"]["protocol"] == {"value": "tcp", "origin": "init kwargs"}
    assert lines[1]["operations"] == {"put": 2, "get": 2, "remove": 1}
    assert lines[1]["bytes"]["put"] == 2 * ref.nbytes
    assert lines[1]["errors"] == {"-704 OBJECT_NOT_FOUND": 1}
    assert (lines[1]["live_refs"], lines[1]["unreleased_results"]) == (1, 0)


def _events(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [json.loads(record.message) for record in caplog.records if record.levelname == "INFO"]


def test_master_gone() -> None:
    """Without a master every operation is MasterUnreachableError, in seconds; after its restart the store goes on."""
    first = start_mooncake_master()
    with open_object_store("mooncake", resolved(first.address)) as store:
        ref = store.put(rollout())
        first.stop()
        for use in (lambda: store.put(rollout()), lambda: store.get(ref).__enter__(), lambda: store.remove(ref)):
            started = time.monotonic()
            with pytest.raises(MasterUnreachableError, match=first.address.replace(".", r"\.")):
                use()
            assert time.monotonic() - started < 30
        with start_mooncake_master(rpc_port=first.rpc_port):
            with pytest.raises(ObjectNotFoundError, match="one that is restarted has forgotten"), store.get(ref):
                pass
            again = store.put(rollout())
            with store.get(again) as got:
                assert differences(rollout(), got) == {}
            store.close()


def _hold(address: str, ready: Any) -> None:
    opened = open_object_store("mooncake", resolved(address))
    ready.set()
    time.sleep(600)
    opened.close()


def test_holder_gone() -> None:
    """An object whose segment's process was killed is a TransferError that names the peer, or not found.

    With another segment the same store puts and gets again, when the master has given the dead one up.
    """
    context = multiprocessing.get_context("spawn")
    with start_mooncake_master() as master:
        ready = context.Event()
        holder = context.Process(target=_hold, args=(master.address, ready))
        holder.start()
        try:
            assert ready.wait(60)
            with open_object_store("mooncake", resolved(master.address, role="rollout-manager")) as store:
                ref = store.put(rollout())
                os.kill(holder.pid or 0, 9)
                holder.join(10)
                with pytest.raises((TransferError, ObjectNotFoundError)) as caught, store.get(ref):
                    pass
                if isinstance(caught.value, TransferError):
                    assert caught.value.peer.startswith("127.0.0.1:")
                    assert "loopback" in str(caught.value)
                store.remove(ref)
                assert keys(master) == []
                with open_object_store("mooncake", resolved(master.address)):
                    again = put_within(60, store)
                    with store.get(again) as got:
                        assert differences(rollout(), got) == {}
                    store.remove(again)
        finally:
            holder.kill()
            holder.join(10)


def put_within(seconds: float, store: MooncakeObjectStore) -> MooncakeRef:
    """The ref of the first put that succeeds: for ``client_ttl``, 10 s, the master still offers a dead segment."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return store.put(rollout())
        except (TransferError, StoreFullError):
            if time.monotonic() >= deadline:
                raise
