"""A stage in shards, which this worker runs, and every other worker that is idle.

The shards, and with them the result, are the same for any number of workers: the plan holds all
that could differ between them. Without other workers, this one runs all shards in turn.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy.typing as npt

from app.core.jobs.shards import (
    ShardClaim,
    ShardCounts,
    ShardSpec,
    claim_shard,
    count_shards,
    finish_shard,
    mark_done,
    offer_shards,
    shards_by_worker,
    withdraw_shards,
)
from app.core.jobs.workers import count_idle
from app.core.platform.activity import report_activity
from app.core.platform.errors import WorkerCrashed
from app.core.platform.resources import Resource
from app.core.platform.tables import Shard
from app.core.runtime import Runtime
from worker.context import JobContext, ProgressReporter
from worker.stages.artifacts import save_array, save_json

_POLL_SECONDS = 0.3
Advance = Callable[[int], None]


class ShardFunction(Protocol):
    def __call__(self, shard: ShardSpec, advance: Advance) -> npt.NDArray[Any]:
        """Returns the array of a shard; calls `advance` with the number of rows done."""


@dataclass(frozen=True, kw_only=True)
class ShardedStage:
    context: JobContext
    stage: str
    plan_key: str
    plan: dict[str, Any]  # all that another worker has to know
    shards: Sequence[ShardSpec]
    needs: Resource

    def run(
        self,
        compute: ShardFunction,
        progress: ProgressReporter,
        *,
        superseded: Callable[[], bool] = lambda: False,
    ) -> None:
        """Returns once every shard has its file, or once the result is `superseded`."""
        before = progress.completed
        if len(self.shards) < 2:  # nothing to share
            self._run_alone(compute, progress)
            return
        self._offer()
        while not superseded():
            counts = self._count()
            if before + counts.rows_done > progress.completed:
                progress.advance_to(before + counts.rows_done)
                progress.checkpoint()
            if counts.open == 0:
                break
            if not self._run_one(compute, progress):
                # The other workers are supervised: a stalled one is killed, and its shard can be
                # claimed here. So waiting for them is no stall.
                report_activity()
                time.sleep(_POLL_SECONDS)
        self._withdraw()

    def _run_alone(self, compute: ShardFunction, progress: ProgressReporter) -> None:
        storage = self.context.runtime.storage
        for shard in self.shards:
            if storage.exists(shard.key):
                progress.advance(shard.rows)
            else:
                save_array(storage, shard.key, compute(shard, progress.advance))
                progress.checkpoint()

    def _offer(self) -> None:
        context, job = self.context, self.context.job
        storage, settings = context.runtime.storage, context.runtime.settings
        save_json(storage, self.plan_key, self.plan)
        # An earlier attempt or another job may have made some of the files.
        done = {number for number, shard in enumerate(self.shards) if storage.exists(shard.key)}
        with context.transaction() as session:
            offer_shards(session, job, self.stage, self.plan_key, self.shards, self.needs)
            mark_done(session, job.id, self.stage, done)
            idle = count_idle(session, self.needs, settings.lease_seconds)
        messages = min(idle, len(self.shards) - len(done) - 1)
        if messages > 0:
            self._notify(messages)

    def _notify(self, messages: int) -> None:
        from app.core.jobs.queue import publish_notification  # imports Celery, which few jobs need

        context, job = self.context, self.context.job
        for _ in range(messages):
            publish_notification(context.runtime.celery, job.id, self.needs)

    def _count(self) -> ShardCounts:
        max_crashes = self.context.runtime.settings.max_crashes
        with self.context.runtime.db.read() as session:
            counts = count_shards(session, self.context.job.id, self.stage, max_crashes)
        if counts.failed:
            raise WorkerCrashed(
                f"Workers crashed {max_crashes} times with the same shard of the {self.stage} "
                "stage; see their logs."
            )
        return counts

    def _run_one(self, compute: ShardFunction, progress: ProgressReporter) -> bool:
        """Returns False if other workers have claimed all open shards."""
        context, settings = self.context, self.context.runtime.settings
        with context.transaction() as session:
            shard = claim_shard(
                session,
                context.job.id,
                self.stage,
                worker=context.job.worker or "",
                lease_seconds=settings.lease_seconds,
                max_crashes=settings.max_crashes,
            )
        if shard is None:
            return False
        context.report_claim(ShardClaim.of(shard))
        run_shard(context.runtime, shard, compute, progress.advance)
        context.report_claim(None)
        return True

    def _withdraw(self) -> None:
        job_id = self.context.job.id
        with self.context.transaction() as session:
            done = shards_by_worker(session, job_id, self.stage)
            withdraw_shards(session, job_id, self.stage)
        self.context.runtime.storage.delete(self.plan_key)
        if len(done) > 1:
            shares = ", ".join(f"{count} by {worker}" for worker, count in done.items())
            self.context.log(f"Shards of the stage {self.stage}: {shares}.")


def run_shard(runtime: Runtime, row: Shard, compute: ShardFunction, advance: Advance) -> None:
    shard = ShardSpec(row.key, row.first, row.rows)
    if runtime.storage.exists(shard.key):
        advance(shard.rows)
    else:
        save_array(runtime.storage, shard.key, compute(shard, advance))
    with runtime.db.write() as session:
        finish_shard(session, ShardClaim.of(row))
