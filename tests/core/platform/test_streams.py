"""Batches of items, and a sink whose bytes can be taken out."""

from app.core.platform.streams import ByteSink, batched


def test_batches_have_at_most_their_size() -> None:
    assert list(batched(range(7), 3)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert list(batched([], 3)) == []


def test_a_sink_returns_its_bytes_once() -> None:
    sink = ByteSink()
    sink.write(b"ab")
    sink.write(memoryview(b"c"))
    assert (sink.take(), sink.take(), sink.tell()) == (b"abc", b"", 3)
