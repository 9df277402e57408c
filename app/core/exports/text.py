"""Text formats with one row per line: CSV and JSON lines."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any

from app.core.clusterings.revisions import LabeledImage
from app.core.exports.rows import IMAGES, Column, reader, to_json
from app.core.exports.source import ExportSource

_IN_JSON = ("excluded", "attributes")  # `true` and `{...}` rather than Python's spelling


def write_csv(source: ExportSource, file: IO[bytes]) -> None:
    file.writelines(csv_chunks(source.pages(), IMAGES, source.columns))


def write_json_lines(source: ExportSource, file: IO[bytes]) -> None:
    file.writelines(json_chunks(source.pages(), IMAGES, source.columns))


def csv_chunks(
    pages: Iterable[list[LabeledImage]],
    columns: tuple[str, ...],
    computed: Mapping[str, Column] | None = None,
) -> Iterator[bytes]:
    """RFC 4180: the header, then a chunk per page. A name that looks like a formula stays as is."""
    read = reader(columns, computed)
    in_json = [index for index, name in enumerate(columns) if name in _IN_JSON]
    yield _csv_lines([columns])
    for page in pages:
        rows = [list(read(row)) for row in page]
        for row in rows:
            for index in in_json:
                row[index] = to_json(row[index])
        yield _csv_lines(rows)


def json_chunks(
    pages: Iterable[list[LabeledImage]],
    columns: tuple[str, ...],
    computed: Mapping[str, Column] | None = None,
) -> Iterator[bytes]:
    """An object per line, a chunk per page."""
    read = reader(columns, computed)
    for page in pages:
        lines = (to_json(dict(zip(columns, read(row), strict=True))) for row in page)
        yield "".join(f"{line}\n" for line in lines).encode()


def _csv_lines(rows: Iterable[Iterable[Any]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()
