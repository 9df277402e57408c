"""uvicorn's protocol for one connection, with bounds on its head, its idle time and its number."""

import asyncio
from asyncio import TimerHandle
from collections import Counter
from typing import Any
from weakref import WeakKeyDictionary

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from app.server.config import ConnectionLimits, ServerConfig

_MAX_PIPELINED = 16  # requests that a client sends before the first is answered
_DISCARD_SECONDS = 5.0  # for the rest of a body that was answered before its end
_PHRASES = {
    400: "Bad Request",
    408: "Request Timeout",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
}


class _Shared:
    """What the connections of one server know of each other."""

    def __init__(self) -> None:
        self.idle: dict[BoundedProtocol, None] = {}  # the longest idle first
        self.by_address: Counter[str] = Counter()


_shared: "WeakKeyDictionary[ServerState, _Shared]" = WeakKeyDictionary()


class BoundedProtocol(HttpToolsProtocol):
    def __init__(self, config: ServerConfig, server_state: ServerState, *rest: Any, **more: Any):
        super().__init__(config, server_state, *rest, **more)
        self._limits: ConnectionLimits = config.limits
        self._shared = _shared.setdefault(server_state, _Shared())
        self._address: str | None = None
        self._timer: TimerHandle | None = None  # for the head, or for the rest of a body
        self._stall_timer: TimerHandle | None = None
        self._unread = 0  # bytes that the client had not taken when it was last looked
        self._head_bytes = 0
        self._silent_bytes = 0  # received since anything of a request was understood
        self._refusal = 400

    # The connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._address = self.client[0] if self.client else None
        if self._address is not None:
            self._shared.by_address[self._address] += 1
        if self._is_one_too_many():
            self._refuse(503, "Too many connections; try again in a moment.")
            return
        self._shared.idle[self] = None
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._shared.idle.pop(self, None)
        self._stop_timer()
        self._stop_stall_timer()
        if self._address is not None:
            self._shared.by_address[self._address] -= 1
            if not self._shared.by_address[self._address]:
                del self._shared.by_address[self._address]

    def _is_one_too_many(self) -> bool:
        """The connection that is idle for longest makes room, if there is one."""
        most = self._limits.max_address_connections
        if most and self._address and self._shared.by_address[self._address] > most:
            return True
        if len(self.connections) <= self._limits.max_connections:
            return False
        oldest = next(iter(self._shared.idle), None)
        if oldest is None:
            return True
        oldest._close()
        return False

    def _close(self) -> None:
        self._shared.idle.pop(self, None)
        self.connections.discard(self)
        self.transport.abort()

    # The head

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing() or self.parser is None:
            return
        self._silent_bytes += len(data)  # the parser's callbacks set it back
        super().data_received(data)
        if self.transport.is_closing():
            return
        # A header or trailer without an end: the parser tells nothing of it before that.
        if self._silent_bytes > self._limits.max_header_bytes:
            self._refuse(431, "The head of the request is too long.")
        elif self._is_waiting() and self._timer is None:
            self._await_head()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_bytes = 0
        if self._timer is None:
            self._await_head()

    def on_url(self, url: bytes) -> None:
        self._count_head(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count_head(len(name) + len(value) + 4)
        super().on_header(name, value)

    def _count_head(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > self._limits.max_header_bytes:
            self._refusal = 431
            raise ValueError("the head is too long")  # which ends the parsing

    def on_headers_complete(self) -> None:
        if len(self.pipeline) >= _MAX_PIPELINED:
            raise ValueError("too many requests at once")
        self._silent_bytes = 0
        self._stop_timer()
        self._shared.idle.pop(self, None)
        super().on_headers_complete()

    # The body, and the answer

    def on_body(self, body: bytes) -> None:
        self._silent_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._silent_bytes = 0
        is_rest = self.cycle.response_complete
        super().on_message_complete()
        if is_rest:  # of a body that had its answer: now the connection is idle
            self._stop_timer()
            self.cycle.more_body = False
            self._shared.idle[self] = None
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._watch_reader()
        elif not self.cycle.response_complete:
            pass  # the next one of a pipeline is on its way
        elif self.cycle.more_body:  # read on, or a client that still sends would miss its answer
            self._unset_keepalive_if_required()
            self._start_timer(_DISCARD_SECONDS, self.timeout_keep_alive_handler)
        else:
            self._shared.idle[self] = None

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._watch_reader()  # closing waits until the client has taken what was written

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reader()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_stall_timer()

    def _watch_reader(self) -> None:
        """Until the connection is gone, or the client has taken enough to write on."""
        self._stop_stall_timer()
        self._unread = self.transport.get_write_buffer_size()
        self._stall_timer = self.loop.call_later(self._limits.stalled_seconds, self._end_if_stalled)

    def _end_if_stalled(self) -> None:
        """Slow is allowed, as long as something of the answer is taken."""
        if self.transport.get_write_buffer_size() >= max(1, self._unread):
            self.transport.abort()
        else:
            self._watch_reader()

    # Timers and refusals

    def _is_waiting(self) -> bool:
        """For a request: none is in progress, and bytes that are none do not buy time."""
        return self.cycle is None or (self.cycle.response_complete and not self.cycle.more_body)

    def _await_head(self) -> None:
        self._start_timer(self._limits.head_seconds, self._end_late_head)

    def _end_late_head(self) -> None:
        if self.flow.read_paused:  # by us: an earlier request is not answered yet
            self._await_head()
            return
        self._refuse(408, "The head of the request did not arrive in time.")

    def _start_timer(self, seconds: float, then: Any) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(seconds, then)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _stop_stall_timer(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None

    def send_400_response(self, msg: str) -> None:
        """uvicorn's answer to what cannot be parsed."""
        refused = self._refusal
        self._refuse(refused, "The head of the request is too long." if refused == 431 else msg)

    def _refuse(self, status: int, message: str) -> None:
        if self.transport.is_closing():
            return
        if self.cycle is not None and not self.cycle.response_complete:
            self.transport.abort()  # in the middle of another answer
            return
        head = [
            f"HTTP/1.1 {status} {_PHRASES[status]}",
            "content-type: text/plain; charset=utf-8",
            f"content-length: {len(message)}",
            "retry-after: 2" if status == 503 else "x-content-type-options: nosniff",
            "connection: close",
        ]
        self.transport.write("\r\n".join([*head, "", message]).encode())
        self.transport.close()
        self._watch_reader()
