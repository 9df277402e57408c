"""Where output goes: results to stdout, everything said along the way to stderr."""

import csv
import json
import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import BaseModel
from rich.console import Console
from rich.markup import escape
from rich.table import Table

results = Console(highlight=False)
notices = Console(stderr=True, highlight=False)


def print_json(items: Iterable[BaseModel]) -> None:
    """A JSON array that other programs can read; no colors, no wrapping."""
    rows = [item.model_dump(mode="json") for item in items]
    print(json.dumps(rows, indent=2, ensure_ascii=False))


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Columns whose name starts with `>` hold numbers and are set to the right."""
    table = Table(title=escape(title), title_justify="left")
    for column in columns:
        right = column.startswith(">")
        table.add_column(
            column.removeprefix(">"), justify="right" if right else "left", overflow="fold"
        )
    for row in rows:
        table.add_row(*(escape(str(cell)) for cell in row))
    results.print(table)


def percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def write_labels(path: Path, rows: Iterable[tuple[str, int, float]]) -> None:
    """A CSV that is either whole or not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["file", "cluster", "probability"])
            writer.writerows((name, number, f"{sure:.4f}") for name, number, sure in rows)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
