"""Messages are complete, whatever the chunks in which they arrive."""

import asyncio
import socket
import threading
from typing import Any

import pytest

from app.core.serving.ipc import IpcChannel, pack, receive
from tests.waiting import LONG_SECONDS, join

_MESSAGES = [("a", 1), ("b", b"x" * 300_000), (), ("c", None)]


@pytest.mark.parametrize("size", [1, 7, 8, 9, 100_000, 10**9])
def test_chunks_of_any_size(size: int) -> None:
    received: list[Any] = []
    channel = IpcChannel(received.append, lambda _: None)
    sent = b"".join(map(pack, _MESSAGES[:1] if size == 1 else _MESSAGES))
    for at in range(0, len(sent), size):
        channel.data_received(sent[at : at + size])
    assert received == (_MESSAGES[:1] if size == 1 else _MESSAGES)


def test_round_trip_of_more_than_a_socket_buffers() -> None:
    """The prediction process reads and replies at its own pace."""
    ours, theirs = socket.socketpair()
    received: list[Any] = []
    many = 20

    def echo() -> None:
        with theirs:
            for message in receive(theirs):
                theirs.sendall(pack(message))

    async def talk() -> None:
        done, lost = asyncio.Event(), asyncio.Event()

        def on_message(message: Any) -> None:
            received.append(message)
            if len(received) == many:
                done.set()

        channel = await IpcChannel.connect(ours, on_message, lambda _: lost.set())
        for number in range(many):
            channel.send(pack((number, b"y" * 400_000)))
        await asyncio.wait_for(done.wait(), LONG_SECONDS)
        channel.close()
        await asyncio.wait_for(lost.wait(), LONG_SECONDS)

    other = threading.Thread(target=echo)
    other.start()
    asyncio.run(talk())
    join(other)  # it saw that we hung up
    assert [number for number, _ in received] == list(range(many))


def test_the_end_in_the_middle_of_a_length() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        ours.sendall(pack("whole") + b"\0\0\0")
        ours.close()
        assert list(receive(theirs)) == ["whole"]
