"""Helpers for streaming: batches of items, and a sink whose bytes can be taken out."""

import io
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

Item = TypeVar("Item")


def batched(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Lists of up to `size` items, like `itertools.batched` of later Pythons."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


class ByteSink(io.RawIOBase):
    """Buffers what a writer writes until `take`; not seekable."""

    def __init__(self) -> None:
        self._chunks: list[bytes] = []
        self._written = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        chunk = bytes(data)
        self._chunks.append(chunk)
        self._written += len(chunk)
        return len(chunk)

    def tell(self) -> int:
        return self._written

    def take(self) -> bytes:
        taken = b"".join(self._chunks)
        self._chunks.clear()
        return taken
