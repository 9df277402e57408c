"""Progress of jobs and transfers: a live bar on a terminal, plain lines or nothing elsewhere."""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from app.cli.errors import INTERRUPTED
from app.cli.job_report import print_result
from app.cli.output import notices, print_item
from temi_client import Job, JobFailed, TemiClient
from temi_client import Progress as ProgressCallback

_LINE_SECONDS = 10.0


class StageProgress:
    """Shows the current stage with its counts, rate and remaining time."""

    def __init__(self, console: Console = notices) -> None:
        self._console = console
        self._live = console.is_terminal
        self._bar = Progress(
            TextColumn("[bold]{task.description:<9}"),
            BarColumn(bar_width=30),
            TextColumn("{task.fields[count]:>13} {task.fields[speed]:>12} {task.fields[left]:>9}"),
            TimeElapsedColumn(),
            console=console,
            disable=not self._live,
        )
        self._task = self._bar.add_task("waiting", total=None, count="", speed="", left="")
        self._stage: str | None = None
        self._started = self._line_at = time.monotonic()
        self._line_done = -1

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def update(
        self,
        stage: str,
        completed: int,
        total: int,
        rate: float | None = None,
        eta_seconds: float | None = None,
    ) -> None:
        if stage != self._stage:
            self._begin(stage)
        if rate is None:
            rate, eta_seconds = self._measure(completed, total)
        count = f"{completed}/{total}" if total else str(completed or "")
        speed = f"{rate:.1f}/s" if rate else ""
        left = f"ETA {_duration(eta_seconds)}" if eta_seconds is not None else ""
        self._bar.update(
            self._task,
            description=escape(stage),
            completed=completed,
            total=total or None,
            count=count,
            speed=speed,
            left=left,
        )
        self._print_line(stage, completed, total, f"{count} {speed} {left}".rstrip())

    def _begin(self, stage: str) -> None:
        self._stage = stage
        self._started = time.monotonic()
        self._line_at = -_LINE_SECONDS  # the first line of a stage is printed at once
        self._line_done = -1

    def _measure(self, completed: int, total: int) -> tuple[float | None, float | None]:
        seconds = time.monotonic() - self._started
        if completed <= 0 or seconds < 0.5:
            return None, None
        rate = completed / seconds
        return rate, max(0, total - completed) / rate if total else None

    def _print_line(self, stage: str, completed: int, total: int, text: str) -> None:
        now = time.monotonic()
        ended = bool(total) and completed >= total
        due = now - self._line_at >= _LINE_SECONDS or ended
        if self._live or not due or completed == self._line_done:
            return
        self._line_at, self._line_done = now, completed
        line = f"{stage}: {text}" if text else stage
        self._console.print(line, markup=False, soft_wrap=True)


def show_progress(states: Iterable[Job]) -> Job:
    """Shows the states of a job until it ends; returns the last one, or raises JobFailed."""
    last: Job | None = None
    with StageProgress() as progress:
        for job in states:
            last = job
            now = job.progress
            stage = now.stage if job.status == "running" and now.stage else job.status
            progress.update(stage, now.completed, now.total, now.rate or 0.0, now.eta_seconds)
    assert last is not None  # a watched job reports at least its final state
    if last.status != "succeeded":
        raise JobFailed(last)
    return last


def wait_for_job(client: TemiClient, job: Job) -> Job:
    """Returns the succeeded job. Ctrl-C ends the command, but not the job."""
    try:
        return show_progress(client.watch(job.id))
    except KeyboardInterrupt:
        notices.print(
            f"The job is still running. Watch it with: temi jobs watch {job.id}\n"
            f"Cancel it with: temi jobs cancel {job.id}"
        )
        raise typer.Exit(INTERRUPTED) from None


def report_job(client: TemiClient, job: Job, wait: bool, as_json: bool) -> None:
    """Prints a job that the command has started, or with `wait` what came out of it."""
    if wait:
        job = wait_for_job(client, job)
    else:
        notices.print(f"Started. Watch it with: temi jobs watch {job.id}")
    if as_json:
        print_item(job, as_json, f"Job {job.id}")
    elif wait:
        print_result(client, job)
    else:
        print(job.id)


@contextmanager
def transfer_progress(description: str) -> Iterator[ProgressCallback]:
    """Yields a callback for the client's uploads and downloads that draws a bar on a terminal."""
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
        task = bar.add_task(escape(description), total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total or None)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
