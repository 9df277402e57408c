"""The layout of a table: by the width of a terminal, and plain where a program reads it.

An id is never broken or cut, because users copy it. On a terminal that is too narrow, columns
marked `?` are left out, the last one first; if that is not enough, each row becomes a block of
lines. In a pipe or a file, every row is one line with tabs and has all columns.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.markup import escape
from rich.table import Table

_ID = re.compile(r"[a-z]+_[0-9a-z]+")
_GAP = 2  # between two columns
_FOLDED = 12  # a column of text gets at least this many characters, if its text is that long
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")  # would break the line, or change the terminal

Rows = list[list[str]]


@dataclass(frozen=True)
class Column:
    title: str
    right: bool = False
    optional: bool = False

    @classmethod
    def parse(cls, text: str) -> "Column":
        """`>` aligns a column to the right, `?` marks one that a narrow terminal leaves out."""
        title = text.lstrip(">?")
        marks = text[: len(text) - len(title)]
        return cls(title, ">" in marks, "?" in marks)


@dataclass(frozen=True)
class _Width:
    least: int
    most: int


def print_plain(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Prints the rows as they arrive."""
    print("\t".join(Column.parse(text).title for text in columns))
    for row in rows:
        print("\t".join(_one_line(cell) for cell in row))


def print_fitted(
    console: Console, title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]
) -> None:
    parsed = [Column.parse(text) for text in columns]
    cells = [[_one_line(cell) for cell in row] for row in rows]
    measured = [_measure(column, [row[at] for row in cells]) for at, column in enumerate(parsed)]
    shown = _choose(parsed, measured, console.width)
    if shown is not None:
        widths = _distribute([measured[at] for at in shown], console.width)
        return console.print(_table(title, parsed, cells, dict(zip(shown, widths, strict=True))))
    console.print(title, style="italic", markup=False)
    for row in cells:
        console.print()
        print_block(console, zip((column.title for column in parsed), row, strict=True))
    return None


def print_block(console: Console, fields: Iterable[tuple[str, object]]) -> None:
    """Prints one line per field; the terminal wraps long ones, and copies them whole."""
    lines = [(name, _one_line(value)) for name, value in fields]
    label = max((len(name) for name, _ in lines), default=0)
    for name, value in lines:
        console.print(f"{name:<{label}}  {value}", markup=False, soft_wrap=True)


def _measure(column: Column, cells: list[str]) -> _Width:
    widest = max(map(cell_len, [column.title, *cells]))
    if column.right:
        return _Width(widest, widest)
    words = [word for cell in cells for word in cell.split() if _ID.fullmatch(word)]
    whole = max(map(len, [*words, *column.title.split()]), default=0)
    return _Width(max(whole, min(widest, _FOLDED)), widest)


def _choose(columns: list[Column], measured: list[_Width], width: int) -> list[int] | None:
    """Returns the positions of the columns to show, or None if not even the others fit."""
    shown = list(range(len(columns)))
    optional = [at for at in shown if columns[at].optional]
    while sum(measured[at].least + _GAP for at in shown) > width:
        if not optional:
            return None
        shown.remove(optional.pop())
    return shown


def _distribute(measured: list[_Width], width: int) -> list[int]:
    """Gives each column its least width, and what is left to those that want more, in turn."""
    widths = [one.least for one in measured]
    left = width - sum(widths) - _GAP * len(widths)
    while left > 0 and any(now < one.most for now, one in zip(widths, measured, strict=True)):
        for at, one in enumerate(measured):
            if left > 0 and widths[at] < one.most:
                widths[at] += 1
                left -= 1
    return widths


def _table(title: str, columns: list[Column], rows: Rows, widths: dict[int, int]) -> Table:
    table = Table(
        title=escape(title),
        title_justify="left",
        box=SIMPLE_HEAD,  # a space between two columns
        show_edge=False,
        padding=(0, _GAP - 1, 0, 0),
    )
    for at, width in widths.items():
        justify: JustifyMethod = "right" if columns[at].right else "left"
        table.add_column(columns[at].title, justify=justify, overflow="fold", width=width)
    for row in rows:
        table.add_row(*(escape(row[at]) for at in widths))
    return table


def _one_line(cell: object) -> str:
    return _CONTROL.sub(" ", str(cell))
