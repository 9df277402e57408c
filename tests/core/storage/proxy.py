"""A proxy between the service and a store: counts requests and damages responses on demand."""

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

_HOP_BY_HOP = {"connection", "transfer-encoding", "content-length", "date", "server"}


@dataclass
class Proxy:
    url: str
    requests: list[str] = field(default_factory=list)  # "PUT /bucket/key"
    spoil: int = 0  # how many more GET responses get one bit flipped
    fail_parts: bool = False  # every second part of an upload is refused

    def count(self, method: str) -> int:
        return sum(request.startswith(f"{method} ") for request in self.requests)


@contextmanager
def run_proxy(target: str) -> Iterator[Proxy]:
    class Handler(_Handler):
        host = urlsplit(target).netloc

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    Handler.proxy = Proxy(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield Handler.proxy
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    host: str
    proxy: Proxy

    def _forward(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.proxy.requests.append(f"{self.command} {self.path}")
        if self.proxy.fail_parts and "partNumber=2" in self.path:
            self._answer(400, [], b"")
            return
        connection = http.client.HTTPConnection(self.host)
        connection.request(self.command, self.path, body, dict(self.headers))
        answer = connection.getresponse()
        data = answer.read()
        size = answer.getheader("Content-Length", str(len(data)))
        connection.close()
        if self.command == "GET" and self.proxy.spoil and answer.status < 300 and data:
            self.proxy.spoil -= 1
            data = bytes([data[0] ^ 1]) + data[1:]
        kept = [(k, v) for k, v in answer.getheaders() if k.lower() not in _HOP_BY_HOP]
        self._answer(answer.status, kept, data, size)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _forward

    def _answer(
        self, status: int, headers: list[tuple[str, str]], data: bytes, size: str = "0"
    ) -> None:
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", size if self.command == "HEAD" else str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """The requests are kept, not printed."""
