"""Comma-separated values, by RFC 4180. A name that looks like a formula stays as it is."""

import csv
import io
from collections.abc import Iterable, Iterator
from typing import IO, Any

from app.core.exports.rows import IMAGES, to_json, values
from app.core.exports.source import ExportSource
from app.core.revisions import LabelledImage


def write(source: ExportSource, file: IO[bytes]) -> None:
    file.writelines(csv_chunks(source.pages(), IMAGES))


def csv_chunks(pages: Iterable[list[LabelledImage]], columns: tuple[str, ...]) -> Iterator[bytes]:
    """The header, then a piece for each page."""
    yield _lines([columns])
    for page in pages:
        yield _lines([map(_cell, values(row, columns)) for row in page])


def _lines(rows: Iterable[Iterable[Any]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def _cell(value: Any) -> Any:
    return to_json(value) if isinstance(value, bool | dict) else value
