"""Zips with a folder of images per class: for torchvision and Keras, and for YOLO."""

from collections.abc import Mapping
from typing import IO

from app.core.exports.archive import add_image, add_text, open_archive
from app.core.exports.classes import EXCLUDED_FOLDER
from app.core.exports.names import UniqueNames, image_stem_and_suffix
from app.core.exports.source import ExportSource
from app.core.exports.splits import SplitName

_YOLO_SPLITS: dict[SplitName, str] = {"train": "train/", "validation": "val/"}


def write(source: ExportSource, file: IO[bytes]) -> None:
    """`label/name.jpg`; with a validation part below `train` and `validation`."""
    split = len(source.split.names) > 1
    _write(source, file, {name: f"{name}/" if split else "" for name in source.split.names})


def write_yolo(source: ExportSource, file: IO[bytes]) -> None:
    """`train/label/name.jpg` and `val/label/name.jpg`."""
    _write(source, file, _YOLO_SPLITS)


def _write(source: ExportSource, file: IO[bytes], splits: Mapping[SplitName, str]) -> None:
    folders, names = source.classes.folders(), UniqueNames()
    with open_archive(file) as archive:
        for row in source.rows():
            class_id, split = source.classes.id_of(row.cluster_id), source.split_of(row)
            if class_id is None or split is None:
                folder = EXCLUDED_FOLDER
            else:
                folder = f"{splits[split]}{folders[class_id]}"
            name = names.give(*image_stem_and_suffix(row.name, row.format), folder=folder)
            with source.open_image(row) as image:
                add_image(archive, f"{folder}/{name}", image, row.bytes)
        # The loaders number the folders by their names; this is the order of the other formats.
        add_text(archive, "classes.txt", "".join(f"{folder}\n" for folder in folders))
