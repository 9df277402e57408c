"""The export formats by name."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import IO

from app.core.exports import (
    coco,
    csv_file,
    hugging_face,
    image_folder,
    json_lines,
    label_studio,
    parquet,
)
from app.core.exports.source import ExportSource

_ROWS, _IMAGES = 2_000, 100  # per page; smaller with images, to report progress more often


@dataclass(frozen=True)
class ExportFormat:
    ending: str  # of the file name
    media_type: str
    write: Callable[[ExportSource, IO[bytes]], None]
    page: int = _ROWS


FORMATS = {
    "csv": ExportFormat(".csv", "text/csv", csv_file.write),
    "jsonl": ExportFormat(".jsonl", "application/x-ndjson", json_lines.write),
    "parquet": ExportFormat(".parquet", "application/vnd.apache.parquet", parquet.write),
    "coco": ExportFormat("-coco.json", "application/json", coco.write),
    "label_studio": ExportFormat("-label-studio.zip", "application/zip", label_studio.write),
    "image_folder": ExportFormat("-folders.zip", "application/zip", image_folder.write, _IMAGES),
    "huggingface": ExportFormat("-huggingface.zip", "application/zip", hugging_face.write, _IMAGES),
}
