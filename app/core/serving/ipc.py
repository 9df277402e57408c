"""Messages on a socket between two processes of one machine: a length, then a pickle.

The API reads and writes it in its event loop: a thread in between would cost two more changes of
hands for every answer. The process that computes has nothing better to do than to wait for it.
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
    """Until the other side hangs up."""
    with connection.makefile("rb", _READ_BYTES) as reader:
        while len(head := reader.read(_LENGTH.size)) == _LENGTH.size:
            yield pickle.loads(reader.read(*_LENGTH.unpack(head)))  # noqa: S301 - our own process


class IpcChannel(asyncio.Protocol):
    def __init__(
        self, heard: Callable[[Any], None], hung_up: Callable[["IpcChannel"], None]
    ) -> None:
        self._heard = heard
        self._hung_up = hung_up
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None

    @classmethod
    async def over(
        cls,
        connection: socket.socket,
        heard: Callable[[Any], None],
        hung_up: Callable[["IpcChannel"], None],
    ) -> "IpcChannel":
        loop = asyncio.get_running_loop()
        wire = cls(heard, hung_up)
        wire._transport, _ = await loop.create_unix_connection(lambda: wire, sock=connection)
        return wire

    def send(self, packed: bytes) -> None:
        """Returns at once; what does not fit the socket yet is kept until it does."""
        assert self._transport is not None
        self._transport.write(packed)

    def hang_up(self) -> None:
        assert self._transport is not None
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._received += data
        at = 0
        while (message := self._message_at(at)) is not None:
            self._heard(pickle.loads(message))  # noqa: S301 - our own process
            at += _LENGTH.size + len(message)
        del self._received[:at]

    def _message_at(self, start: int) -> bytes | None:
        body = start + _LENGTH.size
        if len(self._received) < body:
            return None
        end = body + _LENGTH.unpack_from(self._received, start)[0]
        return bytes(self._received[body:end]) if len(self._received) >= end else None

    def connection_lost(self, _error: Exception | None) -> None:
        self._hung_up(self)
