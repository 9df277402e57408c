"""Parquet: typed, compressed, in row groups of bounded size."""

from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from app.core.exports.arrow import arrow_schema, to_batch
from app.core.exports.rows import IMAGES
from app.core.exports.source import ExportSource

_GROUP_ROWS = 32_000
_GROUP_BYTES = 16 * 1024 * 1024  # attributes may be long


def write(source: ExportSource, file: IO[bytes]) -> None:
    schema = arrow_schema(IMAGES, source.facts)
    waiting: list[pa.RecordBatch] = []
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for page in source.pages():
            waiting.append(to_batch(page, schema))
            if _is_full(waiting):
                writer.write_table(pa.Table.from_batches(waiting))
                waiting = []
        if waiting:
            writer.write_table(pa.Table.from_batches(waiting))


def _is_full(batches: list[pa.RecordBatch]) -> bool:
    rows: int = sum(batch.num_rows for batch in batches)
    size: int = sum(batch.nbytes for batch in batches)
    return rows >= _GROUP_ROWS or size >= _GROUP_BYTES
