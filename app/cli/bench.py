"""`temi bench`: the throughput of this machine and the share of it that each stage reaches."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.live import Live
from rich.table import Table

from app.cli.options import AsJson
from app.cli.output import results

if TYPE_CHECKING:
    from temi.bench import Figure


def bench(as_json: AsJson = False) -> None:
    """Measure the speed of each stage on this machine; takes about two minutes."""
    from app.core.platform.settings import get_settings
    from temi.bench import bench as measure

    figures: list[Figure] = []
    if as_json:
        print(json.dumps([asdict(figure) for figure in measure(get_settings().device)], indent=2))
        return
    with Live(_table(figures), console=results, auto_refresh=False) as live:
        for figure in measure(get_settings().device):
            figures.append(figure)
            live.update(_table(figures), refresh=True)


def _table(figures: "list[Figure]") -> Table:
    table = Table(title="Speed of this machine and of each stage")
    for column in ("stage", "rate", "", "share", "of"):
        table.add_column(column, justify="right" if column in ("rate", "share") else "left")
    for figure in figures:
        share = "" if figure.share is None else f"{100 * figure.share:.1f} %"
        table.add_row(figure.what, f"{figure.rate:,.0f}", figure.unit, share, figure.limit or "")
    return table
