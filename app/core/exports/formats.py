"""The export formats by name."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, Literal

from app.core.exports import coco, cvat, hugging_face, image_folder, label_studio
from app.core.exports.source import ExportSource
from app.core.exports.text import write_csv, write_json_lines

FormatName = Literal[
    "csv",
    "jsonl",
    "parquet",
    "coco",
    "coco_images",
    "label_studio",
    "cvat",
    "image_folder",
    "yolo",
    "huggingface",
]
_ROWS, _IMAGES = 2_000, 100  # per page; smaller with images, to report progress more often


@dataclass(frozen=True)
class ExportFormat:
    ending: str  # of the file name
    media_type: str
    write: Callable[[ExportSource, IO[bytes]], None]
    page: int = _ROWS


def _write_parquet(source: ExportSource, file: IO[bytes]) -> None:
    from app.core.exports.arrow import write_parquet  # loads pyarrow

    write_parquet(source, file)


FORMATS: dict[FormatName, ExportFormat] = {
    "csv": ExportFormat(".csv", "text/csv", write_csv),
    "jsonl": ExportFormat(".jsonl", "application/x-ndjson", write_json_lines),
    "parquet": ExportFormat(".parquet", "application/vnd.apache.parquet", _write_parquet),
    "coco": ExportFormat("-coco.json", "application/json", coco.write),
    "coco_images": ExportFormat("-coco.zip", "application/zip", coco.write_zip, _IMAGES),
    "label_studio": ExportFormat("-label-studio.zip", "application/zip", label_studio.write),
    "cvat": ExportFormat("-cvat.zip", "application/zip", cvat.write, _IMAGES),
    "image_folder": ExportFormat("-folders.zip", "application/zip", image_folder.write, _IMAGES),
    "yolo": ExportFormat("-yolo.zip", "application/zip", image_folder.write_yolo, _IMAGES),
    "huggingface": ExportFormat("-huggingface.zip", "application/zip", hugging_face.write, _IMAGES),
}
