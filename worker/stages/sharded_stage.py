"""A stage cut into pieces that this worker does, and any other that is idle.

The pieces, and with them the result, are the same however many take part: a plan says all that
could make a difference between workers. With nobody else there, one after the other is done here.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy.typing as npt

from app.core.jobs.queue import publish_notification
from app.core.jobs.shards import (
    Piece,
    ShardClaim,
    State,
    claim_shard,
    finish_shard,
    mark_present,
    offer_shards,
    read_state,
    shards_by_worker,
    withdraw_shards,
)
from app.core.jobs.workers import count_idle
from app.core.platform.activity import report_activity
from app.core.platform.errors import WorkerCrashed
from app.core.platform.resources import Resource
from app.core.platform.tables import Shard
from app.core.runtime import Runtime
from worker.context import JobContext, Meter
from worker.stages.artifacts import save_array, save_json

_LOOK_SECONDS = 0.3
Advance = Callable[[int], None]


class ShardFunction(Protocol):
    def __call__(self, piece: Piece, advance: Advance) -> npt.NDArray[Any]:
        """What the file of a piece is to hold; `advance` is told of rows as they are done."""


@dataclass(frozen=True, kw_only=True)
class ShardedStage:
    """A stage in pieces."""

    context: JobContext
    stage: str
    plan_key: str
    plan: dict[str, Any]  # all that another worker has to know
    pieces: Sequence[Piece]
    needs: Resource

    def run(
        self, make: ShardFunction, meter: Meter, *, overtaken: Callable[[], bool] = lambda: False
    ) -> None:
        """Until every piece has its file, or until it no longer matters."""
        before = meter.completed
        if len(self.pieces) < 2:  # nothing to share
            self._alone(make, meter)
            return
        self._offer()
        while not overtaken():
            state = self._look()
            if before + state.rows_done > meter.completed:
                meter.to(before + state.rows_done)
                meter.checkpoint()
            if state.open == 0:
                break
            if not self._do_one(make, meter):
                # The workers that hold the rest are watched: one that hangs is ended, and its
                # piece can be claimed here. So waiting for them does not mean to hang.
                report_activity()
                time.sleep(_LOOK_SECONDS)
        self._withdraw()

    def _alone(self, make: ShardFunction, meter: Meter) -> None:
        storage = self.context.runtime.storage
        for piece in self.pieces:
            if storage.exists(piece.key):
                meter.advance(piece.rows)
            else:
                save_array(storage, piece.key, make(piece, meter.advance))
                meter.checkpoint()

    def _offer(self) -> None:
        context, job = self.context, self.context.job
        storage, settings = context.runtime.storage, context.runtime.settings
        save_json(storage, self.plan_key, self.plan)
        present = {n for n, piece in enumerate(self.pieces) if storage.exists(piece.key)}
        with context.transaction() as session:
            offer_shards(session, job, self.stage, self.plan_key, self.pieces, self.needs)
            mark_present(session, job.id, self.stage, present)
            idle = count_idle(session, self.needs, settings.lease_seconds)
        for _ in range(min(idle, len(self.pieces) - len(present) - 1)):
            publish_notification(context.runtime.celery, job.id, self.needs)

    def _look(self) -> State:
        crashes = self.context.runtime.settings.max_crashes
        with self.context.runtime.db.read() as session:
            state = read_state(session, self.context.job.id, self.stage, crashes)
        if state.spent:
            raise WorkerCrashed(
                f"Workers died {crashes} times of the same part of the {self.stage} stage; "
                "see their logs."
            )
        return state

    def _do_one(self, make: ShardFunction, meter: Meter) -> bool:
        """False if all that is left is in other hands."""
        context, settings = self.context, self.context.runtime.settings
        with context.transaction() as session:
            shard = claim_shard(
                session,
                context.job.id,
                self.stage,
                worker=context.job.worker or "",
                lease=settings.lease_seconds,
                max_crashes=settings.max_crashes,
            )
        if shard is None:
            return False
        context.report_claim(ShardClaim.of(shard))
        do_shard(context.runtime, shard, make, meter.advance)
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
            self.context.log(f"Stage {self.stage} was shared: {shares}.")


def do_shard(runtime: Runtime, shard: Shard, make: ShardFunction, advance: Advance) -> None:
    piece = Piece(shard.key, shard.first, shard.rows)
    if runtime.storage.exists(piece.key):
        advance(piece.rows)
    else:
        save_array(runtime.storage, piece.key, make(piece, advance))
    with runtime.db.write() as session:
        finish_shard(session, ShardClaim.of(shard))
