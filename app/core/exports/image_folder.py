"""A zip with a folder of images per cluster, for the loaders of torchvision and Keras."""

from typing import IO

from app.core.exports.archive import add_image, open_archive
from app.core.exports.names import UniqueNames, image_stem_and_suffix, safe_name
from app.core.exports.source import ExportSource

_EXCLUDED = "_excluded"


def write(source: ExportSource, file: IO[bytes]) -> None:
    folders, names = _folders(source), UniqueNames()
    with open_archive(file) as archive:
        for row in source.rows():
            folder = folders[row.cluster_id]
            name = names.give(*image_stem_and_suffix(row.name, row.format), folder=folder)
            with source.open_image(row) as image:
                add_image(archive, f"{folder}/{name}", image, row.bytes)


def _folders(source: ExportSource) -> dict[int | None, str]:
    names = UniqueNames()
    folders: dict[int | None, str] = {None: names.give(_EXCLUDED)}
    for number, label in source.clusters.items():
        folders[number] = names.give(safe_name(label, f"cluster {number}"))
    return folders
