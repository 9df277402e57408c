"""Many HTTP clients in one thread, with prepared requests over plain sockets.

Clients and server share the cores, so a client library would distort the measurement.
"""

import selectors
import socket
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field


def multipart_request(host: str, path: str, name: str, data: bytes) -> bytes:
    boundary = "temi-benchmark"
    head = (
        f"--{boundary}\r\n"
        f'Content-Disposition: form-data; name="files"; filename="{name}"\r\n'
        "Content-Type: image/jpeg\r\n\r\n"
    )
    body = head.encode() + data + f"\r\n--{boundary}--\r\n".encode()
    lines = (
        f"POST {path} HTTP/1.1",
        f"Host: {host}",
        f"Content-Type: multipart/form-data; boundary={boundary}",
        f"Content-Length: {len(body)}",
    )
    return "\r\n".join((*lines, "", "")).encode() + body


@dataclass
class Result:
    """The response times in seconds by status."""

    taken: dict[int, list[float]] = field(default_factory=dict)
    heads: dict[int, bytes] = field(default_factory=dict)  # one response head per status
    broken: int = 0  # connections closed without a response

    def add(self, status: int, seconds: float, head: bytes) -> None:
        self.taken.setdefault(status, []).append(seconds)
        self.heads.setdefault(status, head)

    def join(self, other: "Result") -> None:
        for status, seconds in other.taken.items():
            self.taken.setdefault(status, []).extend(seconds)
        self.heads |= other.heads
        self.broken += other.broken

    def count(self, status: int) -> int:
        return len(self.taken.get(status, ()))


class OneClient:
    """A client that sends one request at a time over one connection."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._client = _Client(address)
        self._client.socket.setblocking(True)

    def ask(self, request: bytes) -> tuple[int, float]:
        """Return status and milliseconds."""
        self._client.start(request)
        while (answer := self._client.receive()) is None:
            pass
        return answer[0], (time.perf_counter() - self._client.started) * 1e3


class _Client:
    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self.received = bytearray()
        self.started = 0.0
        self.connect()

    def connect(self) -> None:
        self.socket = socket.create_connection(self._address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.unsent = memoryview(b"")
        self.waits = False  # for a response

    def start(self, request: bytes) -> None:
        self.unsent = memoryview(request)
        self.received.clear()
        self.started = time.perf_counter()
        self.waits = True
        self.send()

    def send(self) -> None:
        try:
            while self.unsent:
                self.unsent = self.unsent[self.socket.send(self.unsent) :]
        except BlockingIOError:
            pass

    def receive(self) -> tuple[int, bytes] | None:
        """Return status and head when the response is complete."""
        data = self.socket.recv(65536)
        if not data:
            raise ConnectionError
        self.received += data
        end = self.received.find(b"\r\n\r\n")
        if end < 0:
            return None
        head = bytes(self.received[:end]).lower()
        length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
        if len(self.received) < end + 4 + length:
            return None
        self.waits = False
        return int(head.split(b" ", 2)[1]), head


def run_load(
    address: tuple[str, int],
    requests: Sequence[bytes],
    *,
    clients: int,
    seconds: float,
    rate: float | None = None,
) -> Result:
    """Each client sends its next request after a response; with `rate`, a free client sends one
    when the next request is due, whether earlier ones have been answered or not."""
    result = Result()
    selector = selectors.DefaultSelector()
    free = deque(_Client(address) for _ in range(clients))
    for client in free:
        selector.register(client.socket, selectors.EVENT_READ, client)
    started = time.perf_counter()
    sent, busy = 0, 0
    while (now := time.perf_counter()) < started + seconds or busy:
        running = now < started + seconds
        due = len(free) if rate is None else int((now - started) * rate) - sent
        while running and free and due > 0:
            client = free.popleft()
            client.start(requests[sent % len(requests)])
            _watch(selector, client)
            sent, due, busy = sent + 1, due - 1, busy + 1
        for key, mask in selector.select(0.001 if rate else 1.0):
            client = key.data
            if mask & selectors.EVENT_WRITE:
                client.send()
                _watch(selector, client)
            if mask & selectors.EVENT_READ:
                try:
                    answer = client.receive()
                except ConnectionError:
                    waited = client.waits  # else the server has closed an idle connection
                    selector.unregister(client.socket)
                    client.socket.close()
                    client.connect()
                    selector.register(client.socket, selectors.EVENT_READ, client)
                    if waited:
                        result.broken += 1
                        free.append(client)
                        busy -= 1
                    continue
                if answer is not None:
                    result.add(answer[0], time.perf_counter() - client.started, answer[1])
                    free.append(client)
                    busy -= 1
    selector.close()
    for client in free:
        client.socket.close()
    return result


def _watch(selector: selectors.BaseSelector, client: _Client) -> None:
    events = selectors.EVENT_READ | (selectors.EVENT_WRITE if client.unsent else 0)
    selector.modify(client.socket, events, client)
