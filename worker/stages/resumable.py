"""Runs of many steps that survive a crash."""

import time
from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

import safetensors.torch
from torch import Tensor

from worker.stages.base import EmbeddedJob

# A step of a large model may take a minute on a CPU: the first report says how long they are.
_FIRST_STEPS = 1
_SECONDS_A_REPORT = 0.5


class Report(Protocol):
    """Where a run stands."""

    @property
    def step(self) -> int: ...


ReportT = TypeVar("ReportT", bound=Report, covariant=True)


class Run(Protocol[ReportT]):
    """Training or fine-tuning: a number of steps that can be stored and taken up again."""

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
    show: Callable[[ReportT], None],
    save: Callable[[ReportT], None],
) -> None:
    """To the end, from the last checkpoint if there is one; the bits come out the same."""
    if job.storage.exists(job.checkpoint_key):
        run.load_state(safetensors.torch.load(job.storage.read(job.checkpoint_key)))
        job.context.log(f"Goes on from a checkpoint at step {run.step:,}.")
    job.context.forget_curve_after(run.step)
    meter = job.context.meter(stage, total=run.total_steps, completed=run.step)
    steps, saved_at = _FIRST_STEPS, time.monotonic()
    report = run.report()
    while not run.done:
        started = time.monotonic()
        report = run.run(steps)
        meter.to(run.step)
        show(report)
        now = time.monotonic()
        steps = max(1, round(steps * min(4.0, _SECONDS_A_REPORT / max(now - started, 1e-3))))
        if now - saved_at > job.context.runtime.settings.checkpoint_seconds:
            job.storage.write(job.checkpoint_key, safetensors.torch.save(run.state()))
            meter.checkpoint()
            saved_at = now
    save(report)
    meter.checkpoint()
