"""Comma-separated values, by RFC 4180. A name that looks like a formula stays as it is."""

import csv
import io
from collections.abc import Iterable, Iterator
from typing import IO, Any

from app.core.clusterings.revisions import LabeledImage
from app.core.exports.rows import IMAGES, reader, to_json
from app.core.exports.source import ExportSource

_IN_JSON = ("excluded", "attributes")  # `true` and `{...}` rather than Python's spelling


def write(source: ExportSource, file: IO[bytes]) -> None:
    file.writelines(csv_chunks(source.pages(), IMAGES))


def csv_chunks(pages: Iterable[list[LabeledImage]], columns: tuple[str, ...]) -> Iterator[bytes]:
    """The header, then a piece for each page."""
    read = reader(columns)
    in_json = [place for place, name in enumerate(columns) if name in _IN_JSON]
    yield _lines([columns])
    for page in pages:
        rows = [list(read(row)) for row in page]
        for row in rows:
            for place in in_json:
                row[place] = to_json(row[place])
        yield _lines(rows)


def _lines(rows: Iterable[Iterable[Any]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()
