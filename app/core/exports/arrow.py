"""Arrow streams and Parquet files, with typed columns."""

from collections.abc import Iterable, Iterator, Mapping
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from app.core.clusterings.revisions import LabeledImage
from app.core.exports.rows import IMAGES, Column, reader, to_json
from app.core.exports.source import ExportSource
from app.core.platform.streams import ByteSink

_TYPES = {
    "image_id": pa.string(),
    "name": pa.string(),
    "cluster_id": pa.int32(),
    "label": pa.string(),
    "probability": pa.float64(),
    "excluded": pa.bool_(),
    "true_label": pa.string(),
    "class_id": pa.int32(),
    "split": pa.string(),
    "sha256": pa.string(),
    "width": pa.int32(),
    "height": pa.int32(),
    "format": pa.string(),
    "bytes": pa.int64(),
    "attributes": pa.string(),  # JSON: keys differ between images
}
_NULLABLE = {"cluster_id", "label", "true_label", "class_id", "split"}
_GROUP_ROWS = 32_000
_GROUP_BYTES = 16 * 1024 * 1024  # attributes may be long


def write_parquet(source: ExportSource, file: IO[bytes]) -> None:
    """Row groups of bounded size."""
    schema = arrow_schema(IMAGES, source.facts)
    group: list[pa.RecordBatch] = []
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for page in source.pages():
            group.append(to_batch(page, schema, source.columns))
            if _is_full(group):
                writer.write_table(pa.Table.from_batches(group))
                group = []
        if group:
            writer.write_table(pa.Table.from_batches(group))


def arrow_schema(columns: tuple[str, ...], facts: dict[str, str]) -> pa.Schema:
    fields = [pa.field(name, _TYPES[name], name in _NULLABLE) for name in columns]
    return pa.schema(fields, {f"temi.{name}": value for name, value in facts.items()})


def to_batch(
    page: list[LabeledImage], schema: pa.Schema, computed: Mapping[str, Column] | None = None
) -> pa.RecordBatch:
    rows = map(reader(tuple(schema.names), computed), page)
    columns = dict(zip(schema.names, zip(*rows, strict=True), strict=True))
    if "attributes" in columns:
        columns["attributes"] = tuple(map(to_json, columns["attributes"]))
    arrays = [pa.array(columns[field.name], type=field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def arrow_chunks(pages: Iterable[list[LabeledImage]], schema: pa.Schema) -> Iterator[bytes]:
    """The schema, a chunk per page, and the end marker."""
    sink = ByteSink()
    with pa.ipc.new_stream(sink, schema) as writer:
        yield sink.take()
        for page in pages:
            writer.write_batch(to_batch(page, schema))
            yield sink.take()
    yield sink.take()


def _is_full(group: list[pa.RecordBatch]) -> bool:
    rows: int = sum(batch.num_rows for batch in group)
    size: int = sum(batch.nbytes for batch in group)
    return rows >= _GROUP_ROWS or size >= _GROUP_BYTES
