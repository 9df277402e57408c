"""Bytes on their way: a bar on a terminal, silence elsewhere."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.markup import escape
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from app.cli.output import notices
from temi_client import Progress as Callback


@contextmanager
def transfer(what: str) -> Iterator[Callback]:
    """Yields what the client's uploads and downloads call with bytes done and in all."""
    bar = Progress(
        TextColumn("[bold]{task.description}"),
        BarColumn(bar_width=30),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=notices,
        disable=not notices.is_terminal,
    )
    with bar:
        task = bar.add_task(escape(what), total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total or None)
