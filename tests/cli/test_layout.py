"""Tables on terminals of any width, and in a pipe."""

import io
import re

import pytest
from rich.console import Console

from app.cli.layout import print_fitted, print_plain
from tests.cli.conftest import Temi

ID = "cl_01k9z3m4q5r6s7t8v9w0x1y2z3"
COLUMNS = ["id", "model", ">clusters", "?>revision", "?created", "?dataset"]
ROW = (ID, "a model with a long name of many words", 20, 3, "2026-01-02 03:04", "ds_" + ID[3:])


def _printed(width: int, columns: list[str], *rows: tuple[object, ...]) -> str:
    out = io.StringIO()
    print_fitted(Console(file=out, force_terminal=True, width=width), "Table", columns, rows)
    return re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())


@pytest.mark.parametrize("width", [20, 33, 50, 64, 80, 100, 120, 200])
def test_an_id_is_whole_at_every_width(width: int) -> None:
    printed = _printed(width, COLUMNS, ROW)
    assert ID in printed
    if width >= 50:
        assert max(map(len, printed.splitlines())) <= width


def test_a_narrow_terminal_leaves_out_columns() -> None:
    assert ROW[-1] in _printed(200, COLUMNS, ROW)
    narrow = _printed(80, COLUMNS, ROW)
    assert "dataset" not in narrow
    assert "revision" in narrow
    assert "many" in narrow  # a text is folded, and not cut


def test_a_row_becomes_a_block_on_a_very_narrow_terminal() -> None:
    lines = _printed(24, COLUMNS, ROW).splitlines()
    assert f"id        {ID}" in lines
    assert f"dataset   {ROW[-1]}" in lines


def test_a_pipe_gets_whole_lines_with_tabs(capsys: pytest.CaptureFixture[str]) -> None:
    print_plain([">id", "?name"], [(1, "two\nlines\x1b[31m"), (2, "x" * 500)])
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["id\tname", "1\ttwo lines [31m", "2\t" + "x" * 500]


def test_lists_in_a_pipe_are_plain(temi: Temi) -> None:
    header, row = temi("datasets", "list").stdout.splitlines()
    assert header.split("\t") == [
        *("id", "name", "status", "images", "issues", "skipped", "created"),
    ]
    assert row.split("\t")[1:5] == ["Cats & Dogs", "ready", "4", "1"]
