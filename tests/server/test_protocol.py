"""Limits of a connection: header bytes, number of connections, time."""

import socket
import time
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from app.server.protocol import _MAX_PIPELINED
from tests.conftest import MakeSettings
from tests.http_server import RawClient, read_all, running_server, status_of
from tests.waiting import LONG_SECONDS, wait_until

_GET = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n"
_PIECE, _PIECES = bytes(65536), 2000
_CHUNKED = b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"


async def _plain(scope: Any, receive: Any, send: Any) -> None:
    """Responds without reading the body; `/large` with more than the socket buffers."""
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for _ in range(_PIECES if scope["path"] == "/large" else 0):
        await send({"type": "http.response.body", "body": _PIECE, "more_body": True})
    await send({"type": "http.response.body", "body": b"fine"})


@pytest.fixture
def short(make_settings: MakeSettings) -> Iterator[RawClient]:
    """A server with short time limits."""
    settings = make_settings(
        head_seconds=0.5, keep_alive_seconds=0.5, stalled_seconds=0.5, max_connections=5
    )
    with running_server(settings, _plain) as client:
        yield client


@pytest.fixture
def server(make_settings: MakeSettings) -> Iterator[RawClient]:
    with running_server(make_settings(), _plain) as client:
        yield client


def _until_refused(opened: socket.socket, piece: bytes, most: int) -> tuple[int, bytes]:
    """Sends the chunk repeatedly; returns the accepted bytes and the response."""
    sent = 0
    try:
        while sent < most:
            opened.sendall(piece)
            sent += len(piece)
    except ConnectionError:
        pass
    return sent, read_all(opened)


@pytest.mark.parametrize(
    "start",
    [
        pytest.param(_GET + b"X-Long: ", id="header"),
        pytest.param(b"GET /", id="path"),
        pytest.param(_CHUNKED + b"0\r\nX-Long: ", id="trailer"),
    ],
)
def test_endless_headers_are_refused(server: RawClient, start: bytes) -> None:
    most = 64 * 1024 * 1024
    sent, _ = _until_refused(server.connect(start), b"x" * 65536, most)
    assert sent < most  # the sockets hold some of it
    assert status_of(server.get("/livez")) == 200


def test_long_headers_give_431(server: RawClient) -> None:
    for headers in (b"X: " + b"x" * 66_000 + b"\r\n", b"X: y\r\n" * 12_000):
        answer = server.ask(_GET + headers + b"\r\n")
        assert status_of(answer) == 431
        assert b"connection: close" in answer
    assert (
        status_of(server.ask(_GET + b"Connection: close\r\nX: " + b"x" * 60_000 + b"\r\n\r\n"))
        == 200
    )


def test_silent_connections_are_closed(short: RawClient) -> None:
    assert read_all(short.connect()).startswith(b"HTTP/1.1 408 ")


def test_slow_headers_are_refused(short: RawClient) -> None:
    """Each byte arrives in time, the headers as a whole do not."""
    for piece in (b"x", b"\r\n"):
        opened = short.connect(_GET + b"X: " if piece == b"x" else b"")
        _until_closed(opened, piece)


def _until_closed(opened: socket.socket, piece: bytes) -> None:
    opened.settimeout(0.05)
    end = time.monotonic() + LONG_SECONDS
    while time.monotonic() < end:
        try:
            opened.sendall(piece)
            if not opened.recv(1000):
                return
        except TimeoutError:
            continue
        except ConnectionError:
            return
    pytest.fail("the connection was never closed")


def test_an_idle_connection_is_closed_after_a_response(short: RawClient) -> None:
    opened = short.connect(_GET + b"\r\n")
    assert status_of(read_all(opened)) == 200


def test_two_requests_on_one_connection(server: RawClient) -> None:
    opened = server.connect(_GET + b"\r\n")
    assert opened.recv(1000).startswith(b"HTTP/1.1 200")
    opened.sendall(_GET + b"Connection: close\r\n\r\n")
    assert b"HTTP/1.1 200" in read_all(opened)


def _is_established(opened: socket.socket) -> bool:
    """Returns whether the server has not closed its end: nothing is read from ours."""
    ends = (opened.getpeername(), opened.getsockname())
    return any(
        (each.laddr, each.raddr) == ends and each.status == psutil.CONN_ESTABLISHED
        for each in psutil.net_connections("tcp4")
    )


def test_a_client_that_does_not_read_is_disconnected(short: RawClient) -> None:
    opened = short.connect(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert opened.recv(10)
    wait_until(lambda: not _is_established(opened))  # it takes nothing meanwhile
    assert len(read_all(opened)) < len(_PIECE) * _PIECES


def test_the_rest_of_a_body_is_not_read_for_long(server: RawClient) -> None:
    """The response is sent without the body, and the connection is closed soon."""
    head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n"
    _until_closed(server.connect(head), b"x" * 1000)


def test_the_connection_is_reused_when_the_body_ends(server: RawClient) -> None:
    opened = server.connect(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nab")
    assert opened.recv(1000).startswith(b"HTTP/1.1 200")
    opened.sendall(b"cd" + _GET + b"Connection: close\r\n\r\n")
    assert b"HTTP/1.1 200" in read_all(opened)


def test_idle_connections_make_room(make_settings: MakeSettings) -> None:
    with running_server(make_settings(max_connections=5), _plain) as server:
        idle = [server.connect(_GET) for _ in range(5)]
        assert status_of(server.get("/livez")) == 200
        assert read_all(idle[0]) == b""  # the one that was idle for longest


def test_busy_connections_are_not_closed(make_settings: MakeSettings) -> None:
    with running_server(make_settings(max_connections=3), _plain) as server:
        busy = [server.connect(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n") for _ in range(3)]
        assert all(one.recv(10) for one in busy)
        answer = server.get("/livez")
        assert (status_of(answer), b"retry-after" in answer) == (503, True)
        for one in busy:
            one.close()
        wait_until(lambda: status_of(server.get("/livez")) == 200)


def test_connections_per_address_are_limited(make_settings: MakeSettings) -> None:
    with running_server(make_settings(max_address_connections=3), _plain) as server:
        first = [server.connect(_GET) for _ in range(3)]
        wait_until(lambda: status_of(server.get("/livez")) == 503)
        first[0].close()
        wait_until(lambda: status_of(server.get("/livez")) == 200)


def test_pipelined_requests_are_limited(server: RawClient) -> None:
    few = server.ask((_GET + b"\r\n") * 3 + _GET + b"Connection: close\r\n\r\n")
    assert few.count(b"HTTP/1.1 200") == 4
    many = server.ask((_GET + b"\r\n") * 10_000)
    assert many.count(b"HTTP/1.1 200") <= _MAX_PIPELINED + 1


def test_requests_succeed_beside_two_hundred_slow_clients(make_settings: MakeSettings) -> None:
    """With the real application: silent, half headers, half a body, unread responses."""
    upload = (
        b"POST /v1/datasets HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/zip\r\n"
        b"Content-Length: 1000000\r\n\r\nPK\x03\x04"
    )
    unread = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with running_server(make_settings()) as server:
        for start in (b"", _GET + b"X: ", upload, unread):
            for _ in range(50):
                server.connect(start)
        for path in ("/livez", "/v1/datasets", "/v1/jobs"):
            assert status_of(server.get(path)) == 200
