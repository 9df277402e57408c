"""Promised and measured values, one row each."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

_PROPERTY = "promise"
_HEAD = ("guarantee", "required", "reached", "")


@dataclass(frozen=True)
class Row:
    promise: str
    asked: str
    reached: str
    kept: bool

    @property
    def cells(self) -> tuple[str, str, str, str]:
        return self.promise, self.asked, self.reached, "pass" if self.kept else "FAIL"


@dataclass
class Promises:
    """The rows of one scenario; each is recorded before it is checked."""

    node: pytest.Item
    reported: bool = False

    def keep(self, promise: str, asked: str, reached: str, *, kept: bool) -> None:
        self.keep_all(Row(promise, asked, reached, kept))

    def keep_all(self, *rows: Row) -> None:
        """Records all of them, even if one was not met."""
        for row in rows:
            self._record(row)
        broken = [row for row in rows if not row.kept]
        assert not broken, "; ".join(
            f"{r.promise}: {r.asked} was asked, {r.reached}" for r in broken
        )

    def close(self) -> None:
        if not self.reported:
            self._record(Row(self.node.name, "a figure", "none: it ended early", kept=False))

    def _record(self, row: Row) -> None:
        """Stores the rows where the summary finds them, also with several processes."""
        self.reported = True
        self.node.user_properties.append((_PROPERTY, list(row.cells)))


def rows_of(reports: Iterable[pytest.TestReport]) -> list[Any]:
    """The rows of all scenarios, in the order of their files."""
    ended = sorted((r for r in reports if r.when == "teardown"), key=lambda r: r.location)
    return [cells for r in ended for name, cells in r.user_properties if name == _PROPERTY]


def as_text(rows: Sequence[Sequence[str]]) -> list[str]:
    """For a terminal."""
    table = [_HEAD, *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(_HEAD))]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in table]


def as_markdown(rows: Sequence[Sequence[str]]) -> str:
    table = [_HEAD, ("---",) * len(_HEAD), *rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in table)


def longest(seconds: Sequence[float]) -> str:
    return f"{max(seconds, default=0.0):.1f} s"


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    reports = (report for found in terminalreporter.stats.values() for report in found)
    rows = rows_of(report for report in reports if isinstance(report, pytest.TestReport))
    if not rows:
        return
    terminalreporter.section("promises")
    for line in as_text(rows):
        terminalreporter.write_line(line)
    if path := config.getoption("--promises"):
        path.write_text(as_markdown(rows), encoding="utf-8")


@pytest.fixture
def promises(request: pytest.FixtureRequest) -> Iterator[Promises]:
    """The rows that a test adds to the table of promises."""
    found = Promises(request.node)
    yield found
    found.close()
