"""uvicorn's protocol for one connection, with limits on headers, idle time and connections."""

import asyncio
from asyncio import TimerHandle
from collections import Counter
from typing import Any
from weakref import WeakKeyDictionary

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from app.server.config import ConnectionLimits, ServerConfig

_MAX_PIPELINED = 16  # requests before the first response
_DISCARD_SECONDS = 5.0  # for the rest of a body after an early response
_PHRASES = {
    400: "Bad Request",
    408: "Request Timeout",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
}


class _Connections:
    """The connections of one server."""

    def __init__(self) -> None:
        self.idle: dict[LimitedProtocol, None] = {}  # longest idle first
        self.by_address: Counter[str] = Counter()


_connections: "WeakKeyDictionary[ServerState, _Connections]" = WeakKeyDictionary()


class LimitedProtocol(HttpToolsProtocol):
    def __init__(self, config: ServerConfig, server_state: ServerState, *rest: Any, **more: Any):
        super().__init__(config, server_state, *rest, **more)
        self._limits: ConnectionLimits = config.limits
        self._others = _connections.setdefault(server_state, _Connections())
        self._address: str | None = None
        self._timer: TimerHandle | None = None  # for the headers, or for the rest of a body
        self._stall_timer: TimerHandle | None = None
        self._unread = 0  # bytes that the client had not read at the last check
        self._header_bytes = 0
        self._silent_bytes = 0  # received since the parser's last callback
        self._error_status = 400

    # Connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._address = self.client[0] if self.client else None
        if self._address is not None:
            self._others.by_address[self._address] += 1
        if self._exceeds_limit():
            self._send_error(503, "Too many connections; try again in a moment.")
            return
        self._others.idle[self] = None
        self._await_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._others.idle.pop(self, None)
        self._stop_timer()
        self._stop_stall_timer()
        if self._address is not None:
            self._others.by_address[self._address] -= 1
            if not self._others.by_address[self._address]:
                del self._others.by_address[self._address]

    def _exceeds_limit(self) -> bool:
        """Closes the longest idle connection, if there is one, to make room."""
        most = self._limits.max_address_connections
        if most and self._address and self._others.by_address[self._address] > most:
            return True
        if len(self.connections) <= self._limits.max_connections:
            return False
        oldest = next(iter(self._others.idle), None)
        if oldest is None:
            return True
        oldest._close()
        return False

    def _close(self) -> None:
        self._others.idle.pop(self, None)
        self.connections.discard(self)
        self.transport.abort()

    # Headers

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing() or self.parser is None:
            return
        self._silent_bytes += len(data)  # the parser's callbacks reset it
        super().data_received(data)
        if self.transport.is_closing():
            return
        # An endless header or trailer: the parser calls back only at its end.
        if self._silent_bytes > self._limits.max_header_bytes:
            self._send_error(431, "The request headers are too long.")
        elif self._is_waiting() and self._timer is None:
            self._await_headers()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._header_bytes = 0
        if self._timer is None:
            self._await_headers()

    def on_url(self, url: bytes) -> None:
        self._count_headers(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count_headers(len(name) + len(value) + 4)
        super().on_header(name, value)

    def _count_headers(self, size: int) -> None:
        self._header_bytes += size
        if self._header_bytes > self._limits.max_header_bytes:
            self._error_status = 431
            raise ValueError("the headers are too long")  # ends the parsing

    def on_headers_complete(self) -> None:
        if len(self.pipeline) >= _MAX_PIPELINED:
            raise ValueError("too many requests at once")
        self._silent_bytes = 0
        self._stop_timer()
        self._others.idle.pop(self, None)
        super().on_headers_complete()

    # Body and response

    def on_body(self, body: bytes) -> None:
        self._silent_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._silent_bytes = 0
        is_rest = self.cycle.response_complete
        super().on_message_complete()
        if is_rest:  # of a body after an early response: now the connection is idle
            self._stop_timer()
            self.cycle.more_body = False
            self._others.idle[self] = None
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._watch_reader()
        elif not self.cycle.response_complete:
            pass  # the next response of a pipeline follows
        elif self.cycle.more_body:  # read on: a client that still sends would miss the response
            self._unset_keepalive_if_required()
            self._start_timer(_DISCARD_SECONDS, self.timeout_keep_alive_handler)
        else:
            self._others.idle[self] = None

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._watch_reader()  # closing waits until the client has read the response

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reader()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_stall_timer()

    def _watch_reader(self) -> None:
        """Runs until the connection is closed, or the client has read enough to continue."""
        self._stop_stall_timer()
        self._unread = self.transport.get_write_buffer_size()
        self._stall_timer = self.loop.call_later(self._limits.stalled_seconds, self._end_if_stalled)

    def _end_if_stalled(self) -> None:
        """A client may be slow, as long as it reads something."""
        if self.transport.get_write_buffer_size() >= max(1, self._unread):
            self.transport.abort()
        else:
            self._watch_reader()

    # Timers and errors

    def _is_waiting(self) -> bool:
        """Whether no request is in progress; invalid bytes do not extend the time."""
        return self.cycle is None or (self.cycle.response_complete and not self.cycle.more_body)

    def _await_headers(self) -> None:
        self._start_timer(self._limits.head_seconds, self._end_late_headers)

    def _end_late_headers(self) -> None:
        if self.flow.read_paused:  # by us: an earlier request is still in progress
            self._await_headers()
            return
        self._send_error(408, "The request headers did not arrive in time.")

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
        """Called by uvicorn for a request that cannot be parsed."""
        status = self._error_status
        self._send_error(status, "The request headers are too long." if status == 431 else msg)

    def _send_error(self, status: int, message: str) -> None:
        if self.transport.is_closing():
            return
        if self.cycle is not None and not self.cycle.response_complete:
            self.transport.abort()  # in the middle of another response
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
