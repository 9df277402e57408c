"""The API behind its real server, in this process, and raw connections to it."""

import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import uvicorn

from app.core.platform.settings import Settings
from app.main import create_app
from app.server import make_config
from tests.waiting import LONG_SECONDS, wait_until


class RawClient:
    """A raw connection, for requests that no HTTP library would send."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._open = ExitStack()

    def connect(self, data: bytes = b"", **options: Any) -> socket.socket:
        opened = socket.create_connection(("127.0.0.1", self.port), timeout=LONG_SECONDS, **options)
        self._open.callback(opened.close)
        if data:
            opened.sendall(data)
        return opened

    def ask(self, data: bytes) -> bytes:
        """The response until the server closes the connection."""
        return read_all(self.connect(data))

    def get(self, path: str, *headers: str) -> bytes:
        lines = [f"GET {path} HTTP/1.1", "Host: localhost", "Connection: close", *headers]
        return self.ask("\r\n".join([*lines, "", ""]).encode())

    def close(self) -> None:
        self._open.close()


@contextmanager
def running_server(settings: Settings, app: Any = None) -> Iterator[RawClient]:
    before = tempfile.tempdir
    config = make_config(settings, app or create_app(settings), port=0, log_config=None)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        wait_until(lambda: server.started)
        client = RawClient(server.servers[0].sockets[0].getsockname()[1])
        yield client
        client.close()
    finally:
        server.should_exit = True
        thread.join()
        tempfile.tempdir = before  # the API had moved it


def read_all(opened: socket.socket) -> bytes:
    """Until the connection ends."""
    parts = []
    try:
        while part := opened.recv(65536):
            parts.append(part)
    except ConnectionError:
        pass
    return b"".join(parts)


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])
