"""What answers at an address: real listeners on loopback, and a network of its own for silence."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hosts import dead_network
from hypothesis import given
from hypothesis import strategies as st
from machines import (
    Talk,
    as_master,
    dead_port,
    greeting,
    hanging_up,
    http,
    many_files_open,
    replying,
    resetting,
    server,
    silently,
)

from mooncake_config import dialogue
from mooncake_config.addresses import Endpoint
from mooncake_config.dialogue import Answer, Outcome, ask_endpoint, ask_metadata, ask_name, at_once

MASTER = "master_server_address"

TALKS: list[tuple[Talk, Outcome]] = [
    (as_master, Outcome.MASTER),
    (resetting, Outcome.MASTER),
    (silently, Outcome.SILENT),
    (hanging_up, Outcome.HANGS_UP),
    (replying(http("200 OK", '{"status":"ok","role":"leader","ha_state":"serving"}')), Outcome.METRICS),
    (replying(http("200 OK", "OK", "cinatra")), Outcome.METADATA),
    (replying(http("200 OK", "OK")), Outcome.HTTP),
    (replying(http("200 OK", '{"health":"true","reason":""}')), Outcome.ETCD),
    (replying(http("404 Not Found", "404 page not found\n")), Outcome.HTTP),
    (replying(b"HTTP/1.1"), Outcome.HTTP),
    (replying(b"HTTP/1.0 200 OK\r\n\r\nno length, no end"), Outcome.HTTP),
    (replying(b"HTTP/1.0 200 OK\r\n\r\n" + b"x" * (1 << 17)), Outcome.HTTP),
    (replying(b"-ERR wrong number of arguments for 'get' command\r\n"), Outcome.REDIS),
    (replying(b"-NOAUTH Authentication required.\r\n"), Outcome.REDIS),
    (replying(b"\x00\x00\x12\x04\x00\x00\x00\x00\x00" + b"\0" * 18), Outcome.HTTP2),
    (replying(b"\x15\x03\x01\x00\x02\x02\x46"), Outcome.TLS),
    (greeting(b"SSH-2.0-OpenSSH_9.2p1 Debian\r\n"), Outcome.OTHER),
    (greeting(b"220 \x1b[31mhi"), Outcome.OTHER),
    (replying(b"no"), Outcome.OTHER),
]


@pytest.mark.parametrize(("talk", "outcome"), TALKS)
def test_endpoint(talk: Talk, outcome: Outcome) -> None:
    """Each kind of server is told by what it does with a request, in under a second."""
    with server(talk) as port:
        answer = ask_endpoint(MASTER, Endpoint("127.0.0.1", port))
    assert answer.outcome is outcome
    assert answer.seconds < 1
    assert (answer.target, answer.addresses) == (f"127.0.0.1:{port}", ("127.0.0.1",))
    assert str(answer).isprintable()


def test_many_files_open() -> None:
    """A process with more than 1023 open files asks like any other."""
    with server(as_master) as port, many_files_open():
        assert ask_endpoint(MASTER, Endpoint("127.0.0.1", port)).outcome is Outcome.MASTER


def test_refused() -> None:
    """Where nothing listens the connection is refused, at once."""
    answer = ask_endpoint(MASTER, Endpoint("localhost", dead_port()))
    assert answer.outcome is Outcome.REFUSED
    assert answer.seconds < 1
    assert "127.0.0.1" in answer.addresses


def test_second_address() -> None:
    """A name with several addresses is alive when one of them is."""
    with server(as_master) as port:
        assert ask_endpoint(MASTER, Endpoint("localhost", port)).outcome is Outcome.MASTER


def test_unreachable() -> None:
    """An address that no route leads to is unreachable, not refused."""
    assert ask_endpoint(MASTER, Endpoint("fe80::1%lo", 1)).outcome in (Outcome.UNREACHABLE, Outcome.REFUSED)
    assert ask_endpoint(MASTER, Endpoint("255.255.255.255", 1)).outcome is Outcome.UNREACHABLE


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 64 + ".invalid", "."])
def test_unknown_name(host: str) -> None:
    """A name that does not resolve is told apart from a dead address."""
    answer = ask_endpoint(MASTER, Endpoint(host, 50051))
    assert answer.outcome is Outcome.UNKNOWN_NAME
    assert answer.detail


def test_name() -> None:
    """A name resolves to its addresses."""
    answer = ask_name("local_hostname", "localhost")
    assert answer.outcome is Outcome.RESOLVES
    assert "127.0.0.1" in answer.addresses
    assert (answer.port, answer.target) == (None, "localhost")


METADATA: list[tuple[Talk, Outcome]] = [
    (replying(http("404 Not Found", "metadata not found", "cinatra")), Outcome.METADATA),
    (
        replying(b"HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n12\r\nmetadata not found\r\n0\r\n\r\n"),
        Outcome.METADATA,
    ),
    (replying(http("404 Not Found", "404 Not Found", "cinatra")), Outcome.NO_PAGE),
    (replying(http("404 Not Found", "404: Not Found")), Outcome.NO_PAGE),
    (replying(http("404 Not Found", "404 page not found\n")), Outcome.NO_PAGE),
    (replying(http("404 Not Found", "Cannot GET /metadata/")), Outcome.NO_PAGE),
    (replying(http("404 Not Found", "<html><head><title>404 Not Found</title></head></html>")), Outcome.NO_PAGE),
    (replying(http("404 Not Found", '{"error": "no such key"}')), Outcome.HTTP),
    (replying(http("404 Not Found", "")), Outcome.HTTP),
    (replying(http("200 OK", "404 Not Found")), Outcome.HTTP),
    (replying(http("401 Unauthorized", "who are you")), Outcome.DENIED),
    (replying(http("403 Forbidden", "")), Outcome.DENIED),
    (replying(http("407 Proxy Authentication Required", "")), Outcome.DENIED),
    (replying(http("200 OK", "<html>welcome</html>")), Outcome.HTTP),
    (replying(http("503 Service Unavailable", "")), Outcome.HTTP),
    (as_master, Outcome.MASTER),
    (hanging_up, Outcome.HANGS_UP),
    (replying(b"-ERR unknown command\r\n"), Outcome.REDIS),
]


@pytest.mark.parametrize(("talk", "outcome"), METADATA)
def test_metadata(talk: Talk, outcome: Outcome) -> None:
    """Only Mooncake's own 404 is a metadata server; that of a server without such a path, and a refusal, are told."""
    with server(talk) as port:
        assert ask_metadata(f"http://127.0.0.1:{port}/metadata").outcome is outcome


@pytest.mark.parametrize(
    ("url", "line", "header"),
    [
        ("http://{place}/metadata", b"GET /metadata?key=mooncake-config-probe HTTP/1.1", None),
        ("http://{place}", b"GET /?key=mooncake-config-probe HTTP/1.1", None),
        ("http://{place}/m?tenant=a", b"GET /m?tenant=a&key=mooncake-config-probe HTTP/1.1", None),
        ("http://me:s3%20cret@{place}/metadata", b"GET /metadata?key=", b"Authorization: Basic bWU6czMgY3JldA=="),
    ],
)
def test_metadata_request(url: str, line: bytes, header: bytes | None) -> None:
    """The request is for an unknown key, at the path as it stands, with the user of the URL; no password is shown."""
    heard: list[bytes] = []

    def talk(peer: socket.socket) -> None:
        heard.append(peer.recv(4096))
        peer.sendall(http("404 Not Found", "metadata not found"))

    with server(talk) as port:
        answer = ask_metadata(url.format(place=f"127.0.0.1:{port}"))
    assert answer.outcome is Outcome.METADATA
    assert heard[0].startswith(line)
    assert header is None or header in heard[0].split(b"\r\n")
    assert "cret" not in answer.target


def test_metadata_default_port() -> None:
    """Without a port it is 80, or 443 under https."""
    ports = [ask_metadata(f"{scheme}://127.255.255.254/metadata").port for scheme in ("http", "https")]
    assert ports == [80, 443]


def test_https_to_a_plain_server() -> None:
    """A plain server behind https fails in the handshake."""
    with server(replying(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as port:
        answer = ask_metadata(f"https://127.0.0.1:{port}/metadata")
    assert answer.outcome is Outcome.TLS_FAILED
    assert answer.detail


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 that signs itself, and its key, in one file."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    request = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    named = ["-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*request, *named, "-keyout", path, "-out", f"{path}.crt"], check=True, capture_output=True)
    path.write_bytes(path.read_bytes() + Path(f"{path}.crt").read_bytes())
    return path


def secured(path: Path, talk: Talk) -> Talk:
    """A server behind TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)

    def speak(peer: socket.socket) -> None:
        with context.wrap_socket(peer, server_side=True) as inner:
            talk(inner)

    return speak


def test_https(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under https the certificate must be trusted, as the request may hold a password."""
    talk = secured(certificate, replying(http("404 Not Found", "metadata not found")))
    with server(talk) as port:
        assert ask_metadata(f"https://127.0.0.1:{port}/metadata").outcome is Outcome.TLS_FAILED
        monkeypatch.setenv("SSL_CERT_FILE", f"{certificate}.crt")
        assert ask_metadata(f"https://127.0.0.1:{port}/metadata").outcome is Outcome.METADATA


def test_at_once() -> None:
    """Questions run beside each other; one that does not end in time gives None, and holds nothing up."""
    began = time.monotonic()
    waiting: list[Callable[[], int]] = [lambda: 1, lambda: _wait(60), lambda: 3]
    assert at_once(waiting, 0.2) == [1, None, 3]
    assert time.monotonic() - began < 5


def _wait(seconds: float) -> int:
    time.sleep(seconds)
    return 2


def test_answer_in_words() -> None:
    """An answer reads as a sentence after its target, with the peer's words behind."""
    assert str(Answer(MASTER, "h:1", "h", 1, Outcome.REFUSED, detail="Connection refused")) == (
        "refuses connections (Connection refused)"
    )
    assert str(Answer(MASTER, "h:1", "h", 1, Outcome.MASTER)).startswith("accepts connections")


@given(reply=st.binary(min_size=1, max_size=300))
def test_any_reply(reply: bytes) -> None:
    """Whatever a peer says, it is told apart into some outcome, with words that are fit to be shown."""
    outcome, detail = dialogue._kind(reply)
    assert isinstance(outcome, Outcome)
    assert detail.isprintable()


def test_dead_network() -> None:
    """An address that nobody owns and a name server that is gone are timed out, within the limits."""
    script = """
from mooncake_config.addresses import Endpoint
from mooncake_config.dialogue import ask_endpoint, ask_metadata
for answer in (
    ask_endpoint("x", Endpoint("10.99.0.8", 50051)),
    ask_endpoint("x", Endpoint("head.example", 50051)),
    ask_metadata("http://10.99.0.8:8080/metadata"),
):
    print(answer.outcome.name, answer.seconds < 3.2)
"""
    with dead_network() as enter:
        command = [*enter, sys.executable, "-c", script]
        run = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    assert run.stdout.splitlines() == ["TIMED_OUT True", "NAME_TIMED_OUT True", "TIMED_OUT True"]
