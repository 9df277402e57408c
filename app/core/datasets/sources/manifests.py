"""Manifests: lists of images with labels and attributes, as CSV or JSON lines."""

import csv
import json
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO, Any

from app.core.platform.errors import ManifestInvalid

FORMATS = {"manifest.csv": "csv", "manifest.jsonl": "jsonl"}
_PATH_COLUMNS = ("path", "file", "url")  # the first one found is used
_MAX_LINE = 64 * 1024


@dataclass(frozen=True)
class Entry:
    line: int
    path: str
    label: str | None
    attributes: dict[str, Any]


def read_entries(file: IO[bytes], format_: str) -> Iterator[Entry]:
    """The rows in order; raises ManifestInvalid with the number of the bad line."""
    lines = _lines(file)
    return _read_csv(lines) if format_ == "csv" else _read_json(lines)


def manifest_format(name: str) -> str | None:
    """The format of a manifest at the root of a source; None for other files."""
    return FORMATS.get(normalized_name(name))


def normalized_name(name: str) -> str:
    """`./a/b.jpg` and `a\\b.jpg` name the same member as `a/b.jpg`."""
    return str(PurePosixPath(name.replace("\\", "/")))


class Lookup:
    """Labels and attributes by name, on disk: a manifest may list millions."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._rows = sqlite3.connect("", isolation_level=None)  # a temporary file
        self._rows.execute("CREATE TABLE rows (name TEXT PRIMARY KEY, known TEXT) WITHOUT ROWID")
        self._rows.execute("BEGIN")
        for entry in entries:
            known = json.dumps([entry.label, entry.attributes])
            name = normalized_name(entry.path)
            self._rows.execute("INSERT OR REPLACE INTO rows VALUES (?, ?)", (name, known))
        self._rows.execute("COMMIT")

    def find(self, name: str) -> tuple[str | None, dict[str, Any]]:
        query = "SELECT known FROM rows WHERE name = ?"
        row = self._rows.execute(query, (normalized_name(name),)).fetchone()
        if row is None:
            return None, {}
        label, attributes = json.loads(row[0])
        return label, attributes

    def close(self) -> None:
        self._rows.close()


def _lines(file: IO[bytes]) -> Iterator[str]:
    number = 0
    while line := file.readline(_MAX_LINE + 1):
        number += 1
        if len(line) > _MAX_LINE:
            raise _invalid(number, f"is longer than {_MAX_LINE:,} bytes")
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise _invalid(number, "is not UTF-8") from error
        if "\x00" in text:
            raise _invalid(number, "has a zero byte")
        yield text


class _RowLines:
    """Lines for the CSV reader; limits the size of a row, whose quoted fields may span lines."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines
        self._number = 0
        self._row_bytes = 0

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self._number += 1
            self._row_bytes += len(line)
            if self._row_bytes > _MAX_LINE:
                raise _invalid(self._number, f"belongs to a row of more than {_MAX_LINE:,} bytes")
            yield line

    def end_row(self) -> None:
        self._row_bytes = 0


def _read_csv(lines: Iterator[str]) -> Iterator[Entry]:
    row_lines = _RowLines(lines)
    rows = csv.reader(row_lines, strict=True)
    try:
        header = [column.strip() for column in next(rows, [])]
        row_lines.end_row()
        column = _path_column(header, 1)
        if len({column for column in header if column}) < sum(map(bool, header)):
            raise _invalid(1, "names a column twice")
        for row in rows:
            row_lines.end_row()
            if not row:
                continue
            if len(row) > len(header):
                raise _invalid(rows.line_num, "has more fields than the header")
            fields = {name: text for name, text in zip(header, row, strict=False) if name and text}
            yield _entry(rows.line_num, fields, column)
    except csv.Error as error:
        raise _invalid(rows.line_num, f"is not CSV: {error}") from error


def _read_json(lines: Iterator[str]) -> Iterator[Entry]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            fields = json.loads(line)
            # Databases refuse unpaired surrogates, zeros and NaN.
            written = json.dumps(fields, ensure_ascii=False, allow_nan=False).encode()
        except (ValueError, RecursionError) as error:
            raise _invalid(number, f"is not JSON: {error}") from error
        if not isinstance(fields, dict):
            raise _invalid(number, "is not a JSON object")
        if b"\\u0000" in written:
            raise _invalid(number, "has a zero character")
        yield _entry(number, fields, _path_column(fields, number))


def _path_column(columns: Iterable[str], line: int) -> str:
    known = set(columns)
    for name in _PATH_COLUMNS:
        if name in known:
            return name
    raise _invalid(line, "has no `path` (or `file`, or `url`)")


def _entry(line: int, fields: dict[str, Any], column: str) -> Entry:
    path, label = fields.pop(column, None), fields.pop("label", None)
    if not isinstance(path, str) or not path.strip():
        raise _invalid(line, f"has no `{column}`, or one that is not a string")
    if isinstance(label, int | float) and not isinstance(label, bool):
        label = str(label)
    if label is not None and not isinstance(label, str):
        raise _invalid(line, "has a `label` that is not a string")
    return Entry(line, path.strip(), label or None, fields)


def _invalid(line: int, problem: str) -> ManifestInvalid:
    return ManifestInvalid(f"Line {line} of the manifest {problem}.")
