"""Messages on a socket between two processes of one machine: a length, then a pickle.

The API reads and writes the socket in its event loop: a thread in between would add two context
switches to every response. The prediction process reads it with blocking calls.
"""

import asyncio
import pickle
import socket
import struct
from collections.abc import Callable, Iterator
from typing import Any

_LENGTH = struct.Struct("!Q")
_READ_BYTES = 256 * 1024


def pack(message: object) -> bytes:
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(data)) + data


def receive(connection: socket.socket) -> Iterator[Any]:
    """Yields messages until the other side closes the socket."""
    with connection.makefile("rb", _READ_BYTES) as reader:
        while len(head := reader.read(_LENGTH.size)) == _LENGTH.size:
            yield pickle.loads(reader.read(*_LENGTH.unpack(head)))  # noqa: S301 - our own process


class IpcChannel(asyncio.Protocol):
    def __init__(
        self, on_message: Callable[[Any], None], on_close: Callable[["IpcChannel"], None]
    ) -> None:
        self._on_message = on_message
        self._on_close = on_close
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None

    @classmethod
    async def connect(
        cls,
        connection: socket.socket,
        on_message: Callable[[Any], None],
        on_close: Callable[["IpcChannel"], None],
    ) -> "IpcChannel":
        loop = asyncio.get_running_loop()
        channel = cls(on_message, on_close)
        channel._transport, _ = await loop.create_unix_connection(lambda: channel, sock=connection)
        return channel

    def send(self, packed: bytes) -> None:
        """Returns at once; bytes that do not fit the socket yet are buffered."""
        assert self._transport is not None
        self._transport.write(packed)

    def close(self) -> None:
        assert self._transport is not None
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._received += data
        start = 0
        while (message := self._message_at(start)) is not None:
            self._on_message(pickle.loads(message))  # noqa: S301 - our own process
            start += _LENGTH.size + len(message)
        del self._received[:start]

    def _message_at(self, start: int) -> bytes | None:
        body = start + _LENGTH.size
        if len(self._received) < body:
            return None
        end = body + _LENGTH.unpack_from(self._received, start)[0]
        return bytes(self._received[body:end]) if len(self._received) >= end else None

    def connection_lost(self, _error: Exception | None) -> None:
        self._on_close(self)
