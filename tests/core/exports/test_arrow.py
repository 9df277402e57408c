from collections.abc import Iterator

import pyarrow as pa
import pytest

from app.core.clusterings.revisions import LabeledImage
from app.core.exports.arrow import arrow_chunks, arrow_schema
from app.core.exports.rows import IMAGES, LABELS
from tests.core.exports.sources import excluded, row

FACTS = {"clustering_id": "cl_1", "revision": "3"}


def test_a_stream_of_batches() -> None:
    schema = arrow_schema(LABELS, FACTS)
    pages = [[row(0), row(1, true_label="x")], [excluded(2)]]
    chunks = list(arrow_chunks(pages, schema))
    assert len(chunks) == 4  # schema, two pages, the end
    with pa.ipc.open_stream(b"".join(chunks)) as reader:
        table = reader.read_all()
    assert table.schema.metadata == {b"temi.clustering_id": b"cl_1", b"temi.revision": b"3"}
    assert table.column_names == list(LABELS)
    assert table["cluster_id"].to_pylist() == [0, 0, None]
    assert table["excluded"].to_pylist() == [False, False, True]
    assert table["true_label"].to_pylist() == [None, "x", None]
    assert (table.schema.field("cluster_id").type, table.schema.field("name").nullable) == (
        pa.int32(),
        False,
    )


def test_nothing_but_the_schema() -> None:
    with pa.ipc.open_stream(b"".join(arrow_chunks([], arrow_schema(IMAGES, {})))) as reader:
        assert reader.read_all().num_rows == 0


def test_a_broken_stream_has_no_end_marker() -> None:
    """The end marker distinguishes a complete stream from a truncated one."""

    def pages() -> Iterator[list[LabeledImage]]:
        yield [row(0)]
        raise ConnectionError

    chunks = arrow_chunks(pages(), arrow_schema(LABELS, {}))
    received = [next(chunks), next(chunks)]
    with pytest.raises(ConnectionError):
        next(chunks)
    whole = b"".join(arrow_chunks([[row(0)]], arrow_schema(LABELS, {})))
    assert whole.startswith(b"".join(received))
    assert len(b"".join(received)) < len(whole)
