"""What was promised, and what was reached: one row a figure."""

from collections.abc import Sequence
from dataclasses import dataclass, field

_HEAD = ("promise", "figure asked", "figure reached", "")


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
class Report:
    seed: int
    rows: list[Row] = field(default_factory=list)

    def lines(self) -> list[str]:
        """For a terminal."""
        table = [_HEAD, *(row.cells for row in self.rows)]
        widths = [max(len(row[column]) for row in table) for column in range(len(_HEAD))]
        return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in table]

    def markdown(self) -> str:
        table = [_HEAD, ("---",) * len(_HEAD), *(row.cells for row in self.rows)]
        return "".join(f"| {' | '.join(row)} |\n" for row in table)


@dataclass
class Promises:
    """The rows of one scenario: each is written down before it is judged."""

    report: Report
    scenario: str
    told: bool = False

    def keep(self, promise: str, asked: str, reached: str, *, kept: bool) -> None:
        self.told = True
        self.report.rows.append(Row(promise, asked, reached, kept))
        assert kept, f"{promise}: {asked} was asked, {reached} was reached"

    def keep_all(self, *rows: Row) -> None:
        """All of them are written down, even if one was not kept."""
        self.told = True
        self.report.rows.extend(rows)
        broken = [row for row in rows if not row.kept]
        assert not broken, "; ".join(f"{row.promise}: {row.reached}" for row in broken)

    def close(self) -> None:
        if not self.told:
            self.report.rows.append(Row(self.scenario, "a figure", "none: it ended early", False))


def longest(seconds: Sequence[float]) -> str:
    return f"{max(seconds, default=0.0):.1f} s"
