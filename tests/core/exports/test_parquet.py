import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.core.exports import arrow
from tests.core.exports.sources import excluded, row, source_of


def written(folder: Path, count: int) -> pq.ParquetFile:
    rows = [row(n, attributes={"n": n}) if n % 3 else excluded(n) for n in range(count)]
    out = io.BytesIO()
    arrow.write_parquet(source_of(folder, rows), out)
    out.seek(0)  # still open: it is its owner who closes it
    return pq.ParquetFile(out)


def test_types_and_values(tmp_path: Path) -> None:
    file = written(tmp_path, 4)
    table = file.read()
    types = {field.name: field.type for field in table.schema}
    assert types["cluster_id"] == types["width"] == pa.int32()
    assert types["bytes"] == pa.int64()
    assert types["probability"] == pa.float64()
    assert types["excluded"] == pa.bool_()
    assert table["cluster_id"].to_pylist() == [None, 0, 0, None]
    assert [json.loads(text) for text in table["attributes"].to_pylist()][1] == {"n": 1}
    metadata = file.schema_arrow.metadata
    assert metadata[b"temi.clustering_id"] == b"cl_1"
    assert metadata[b"temi.revision"] == b"3"
    assert metadata[b"temi.model"] == b"pets/versions/2"
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"


def test_row_groups_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow, "_GROUP_ROWS", 4)
    file = written(tmp_path, 11)
    groups = [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)]
    assert groups == [4, 4, 3]


def test_no_images(tmp_path: Path) -> None:
    assert written(tmp_path, 0).read().num_rows == 0
