"""COCO: each image has one annotation of its full size, with its class as the category.

The format knows no labels of whole images. A box and a polygon around the image are read by
pycocotools, FiftyOne, torchvision and detectors, which an annotation without a box is not.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from typing import IO, Any

from app.core.clusterings.revisions import LabeledImage
from app.core.exports.archive import add_file, add_image, open_archive
from app.core.exports.names import UniqueNames, image_stem_and_suffix
from app.core.exports.rows import to_json
from app.core.exports.source import ExportSource

FIRST_CATEGORY = 1  # detectors use 0 for the background


def write(source: ExportSource, file: IO[bytes]) -> None:
    """One file for all images, which it names as the dataset does."""
    with _document(source) as document:
        for row in source.rows():
            document.add(row, row.name)
        document.save(file)


def write_zip(source: ExportSource, file: IO[bytes]) -> None:
    """A folder per split with `labels.json`, and the images in `data`."""
    names = UniqueNames()
    with ExitStack() as stack:
        archive = stack.enter_context(open_archive(file))
        documents = {split: stack.enter_context(_document(source)) for split in source.split.names}
        for row in source.rows():
            split = source.split_of(row) or "train"
            name = names.give(*image_stem_and_suffix(row.name, row.format), folder=split)
            with source.open_image(row) as image:
                add_image(archive, f"{split}/data/{name}", image, row.bytes)
            documents[split].add(row, name)
        for split, document in documents.items():
            with tempfile.TemporaryFile(dir=source.scratch) as labels:
                document.save(labels)
                add_file(archive, f"{split}/labels.json", labels)


@contextmanager
def _document(source: ExportSource) -> Iterator["_Document"]:
    with (
        tempfile.TemporaryFile(dir=source.scratch) as images,
        tempfile.TemporaryFile(dir=source.scratch) as annotations,
    ):
        yield _Document(source, images, annotations)


class _Document:
    """Takes the images one by one; both lists are buffered in files."""

    def __init__(self, source: ExportSource, images: IO[bytes], annotations: IO[bytes]) -> None:
        self._source = source
        self._images, self._annotations = images, annotations
        self._image_count = self._annotation_count = 0

    def add(self, row: LabeledImage, file_name: str) -> None:
        self._image_count += 1
        _append(self._images, self._image(row, file_name), first=self._image_count == 1)
        if row.cluster_id is not None:
            self._annotation_count += 1
            first = self._annotation_count == 1
            _append(self._annotations, self._annotation(row), first=first)

    def save(self, file: IO[bytes]) -> None:
        file.write(f'{{"info":{to_json(_info(self._source))},"licenses":[],"images":['.encode())
        _copy(self._images, file)
        file.write(b'],"annotations":[')
        _copy(self._annotations, file)
        file.write(f'],"categories":{to_json(_categories(self._source))}}}\n'.encode())

    def _image(self, row: LabeledImage, file_name: str) -> dict[str, Any]:
        return {
            "id": self._image_count,
            "file_name": file_name,
            "width": row.width,
            "height": row.height,
            "coco_url": self._source.image_url(row),
            "split": self._source.split_of(row),
            "temi_image_id": row.image_id,
            "temi_name": row.name,
        }

    def _annotation(self, row: LabeledImage) -> dict[str, Any]:
        width, height = row.width, row.height
        class_id = self._source.classes.id_of(row.cluster_id)
        assert class_id is not None
        return {
            "id": self._annotation_count,
            "image_id": self._image_count,
            "category_id": FIRST_CATEGORY + class_id,
            "bbox": [0, 0, width, height],
            "segmentation": [[0, 0, width, 0, width, height, 0, height]],
            "area": width * height,
            "iscrowd": 0,
            "score": row.probability,
            "temi_cluster_id": row.cluster_id,
        }


def _info(source: ExportSource) -> dict[str, Any]:
    created = datetime.fromtimestamp(source.created_at, UTC)
    return {
        "description": source.dataset_name,
        "version": str(source.revision),
        "year": created.year,
        "date_created": created.isoformat(),
        **source.facts,
    }


def _categories(source: ExportSource) -> list[dict[str, Any]]:
    return [
        {"id": number, "name": name, "supercategory": "cluster"}
        for number, name in enumerate(source.classes.names, start=FIRST_CATEGORY)
    ]


def _append(file: IO[bytes], item: dict[str, Any], *, first: bool) -> None:
    file.write(f"{'' if first else ','}\n{to_json(item)}".encode())


def _copy(buffered: IO[bytes], file: IO[bytes]) -> None:
    buffered.seek(0)
    shutil.copyfileobj(buffered, file)
