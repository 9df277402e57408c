"""Runs of many steps that resume from a checkpoint after a crash."""

import time
from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

import safetensors.torch
from torch import Tensor

from worker.stages.base import EmbeddedJob

# A step of a large model may take a minute on a CPU: the first report shows the duration.
_FIRST_STEPS = 1
_REPORT_SECONDS = 0.5


class Report(Protocol):
    """The state of a run after some steps."""

    @property
    def step(self) -> int: ...


ReportT = TypeVar("ReportT", bound=Report, covariant=True)


class Run(Protocol[ReportT]):
    """Training or fine-tuning, whose state can be saved and loaded."""

    total_steps: int

    @property
    def step(self) -> int: ...

    @property
    def done(self) -> bool: ...

    def run(self, n_steps: int) -> ReportT: ...

    def report(self) -> ReportT: ...

    def state(self) -> dict[str, Tensor]: ...

    def load_state(self, state: Mapping[str, Tensor]) -> None: ...


def run_resumable(
    job: EmbeddedJob,
    stage: str,
    run: Run[ReportT],
    *,
    on_report: Callable[[ReportT], None],
    save: Callable[[ReportT], None],
) -> None:
    """Runs all steps, from the last checkpoint if there is one, with the same result bit by bit."""
    if job.storage.exists(job.checkpoint_key):
        run.load_state(safetensors.torch.load(job.storage.read(job.checkpoint_key)))
        job.context.log(f"Resumed from a checkpoint at step {run.step:,}.")
    job.context.delete_curve_after(run.step)
    progress = job.context.start_progress(stage, total=run.total_steps, completed=run.step)
    steps, saved_at = _FIRST_STEPS, time.monotonic()
    report = run.report()
    while not run.done:
        started = time.monotonic()
        report = run.run(steps)
        progress.advance_to(run.step)
        on_report(report)
        now = time.monotonic()
        steps = max(1, round(steps * min(4.0, _REPORT_SECONDS / max(now - started, 1e-3))))
        if now - saved_at > job.context.runtime.settings.checkpoint_seconds:
            job.storage.write(job.checkpoint_key, safetensors.torch.save(run.state()))
            progress.checkpoint()
            saved_at = now
    save(report)
    progress.checkpoint()
