"""JSON lines: an object a line."""

from collections.abc import Iterable, Iterator
from typing import IO

from app.core.clusterings.revisions import LabeledImage
from app.core.exports.rows import IMAGES, reader, to_json
from app.core.exports.source import ExportSource


def write(source: ExportSource, file: IO[bytes]) -> None:
    file.writelines(json_chunks(source.pages(), IMAGES))


def json_chunks(pages: Iterable[list[LabeledImage]], columns: tuple[str, ...]) -> Iterator[bytes]:
    """A piece for each page."""
    read = reader(columns)
    for page in pages:
        lines = (to_json(dict(zip(columns, read(row), strict=True))) for row in page)
        yield "".join(f"{line}\n" for line in lines).encode()
