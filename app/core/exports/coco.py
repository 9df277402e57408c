"""COCO: each image has one annotation of its full size, with its cluster as the category."""

import shutil
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import IO, Any

from app.core.clusterings.revisions import LabeledImage
from app.core.exports.rows import json_array, to_json
from app.core.exports.source import ExportSource, content_url


def write(source: ExportSource, file: IO[bytes]) -> None:
    """One pass over the rows: annotations are buffered in a temporary file."""
    with tempfile.TemporaryFile(dir=source.scratch) as annotations:
        file.write(f'{{"info":{to_json(_info(source))},"licenses":[],"images":'.encode())
        file.writelines(json_array(_images(source, annotations)))
        file.write(b',"annotations":[')
        annotations.seek(0)
        shutil.copyfileobj(annotations, file)
    categories = [
        {"id": number, "name": label, "supercategory": "cluster"}
        for number, label in source.clusters.items()
    ]
    file.write(f'],"categories":{to_json(categories)}}}\n'.encode())


def _info(source: ExportSource) -> dict[str, Any]:
    created = datetime.fromtimestamp(source.created_at, UTC)
    return {
        "description": source.dataset_name,
        "version": str(source.revision),
        "year": created.year,
        "date_created": created.isoformat(),
        **source.facts,
    }


def _images(source: ExportSource, annotations: IO[bytes]) -> Iterator[dict[str, Any]]:
    written = 0
    for number, row in enumerate(source.rows(), start=1):
        if row.cluster_id is not None:
            written += 1
            separator = ",\n" if written > 1 else "\n"
            annotation = _annotation(row, annotation_id=written, image_id=number)
            annotations.write(f"{separator}{to_json(annotation)}".encode())
        yield {
            "id": number,
            "file_name": row.name,
            "width": row.width,
            "height": row.height,
            "coco_url": content_url(row.image_id),
            "temi_image_id": row.image_id,
        }


def _annotation(row: LabeledImage, *, annotation_id: int, image_id: int) -> dict[str, Any]:
    return {
        "id": annotation_id,
        "image_id": image_id,
        "category_id": row.cluster_id,
        "bbox": [0, 0, row.width, row.height],
        "area": row.width * row.height,
        "iscrowd": 0,
        "score": row.probability,
    }
