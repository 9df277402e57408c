"""Output: results go to stdout, notices and errors to stderr."""

import csv
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Any, TypeVar

from pydantic import BaseModel
from rich.console import Console

from app.cli.layout import print_block, print_fitted, print_plain
from app.core.platform.processes import users_umask

results = Console(highlight=False)
notices = Console(stderr=True, highlight=False)
T = TypeVar("T", bound=BaseModel)


def print_json(items: Iterable[BaseModel]) -> None:
    """Prints a JSON array, one item at a time as they arrive."""
    before = "[\n"
    for item in items:
        print(f"{before}{_json(item)}", end="")
        before = ",\n"
    print("[]" if before == "[\n" else "\n]")


def print_rows(
    items: Iterable[T],
    as_json: bool,
    title: str,
    columns: Sequence[str],
    row: Callable[[T], Sequence[object]],
) -> None:
    """Prints a list as JSON, or as a table with one row per item."""
    if as_json:
        print_json(items)
    else:
        print_table(title, columns, (row(item) for item in items))


def print_item(item: BaseModel, as_json: bool, title: str) -> None:
    """Prints all fields of an item, as JSON or as a table."""
    if as_json:
        print(json.dumps(item.model_dump(mode="json"), indent=2, ensure_ascii=False))
        return
    print_fields(title, ((name, _cell(getattr(item, name))) for name in type(item).model_fields))


def print_fields(title: str, fields: Iterable[tuple[str, object]]) -> None:
    """Prints one line per field."""
    if not results.is_terminal:
        return print_plain(["field", "value"], fields)
    results.print(title, style="italic", markup=False)
    return print_block(results, fields)


def print_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], *, titled: bool = False
) -> None:
    """Prints a table; `layout.Column` explains the marks of columns.

    `titled` prints the title in a pipe, too: for one of several tables.
    """
    if results.is_terminal:
        return print_fitted(results, title, columns, rows)
    if titled:
        print(title)
    return print_plain(columns, rows)


def percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def format_time(value: datetime | None) -> str:
    return "" if value is None else f"{value:%Y-%m-%d %H:%M}"


def format_bytes(count: int) -> str:
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def print_saved(path: Path) -> None:
    notices.print(f"Saved {path}", markup=False, soft_wrap=True)


def write_labels(path: Path, rows: Iterable[tuple[str, int, float]]) -> None:
    """Writes a CSV file atomically."""
    with atomic_write(path) as file:
        writer = csv.writer(file)
        writer.writerow(["file", "cluster", "probability"])
        writer.writerows((name, number, f"{sure:.4f}") for name, number, sure in rows)


def write_bytes(path: Path, content: bytes) -> None:
    with atomic_write(path, binary=True) as file:
        file.write(content)
    print_saved(path)


@contextmanager
def atomic_write(path: Path, *, binary: bool = False) -> Iterator[IO[Any]]:
    """Yields a file that replaces `path` when the block ends without an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.")
    text: dict[str, Any] = {} if binary else {"newline": "", "encoding": "utf-8"}
    try:
        with os.fdopen(handle, "wb" if binary else "w", **text) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o666 & ~users_umask())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _json(item: BaseModel) -> str:
    return json.dumps(item.model_dump(mode="json"), ensure_ascii=False)


def _as_dict(item: BaseModel) -> dict[str, Any]:
    return item.model_dump(mode="json")


def _cell(value: object) -> str:
    if isinstance(value, datetime):
        return format_time(value)
    if isinstance(value, BaseModel):
        return _json(value)
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, default=_as_dict)
    return "" if value is None else str(value)
