"""Counts predictions for drift, and writes the counts every few seconds.

A process that is killed loses the counts of the last seconds; predictions never wait for them.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable

import numpy as np
import structlog

from app.core.models.drift import Bucket, add_counts, tenth
from app.core.platform.db import Database
from app.core.serving.messages import Outcome, Predicted
from app.core.serving.resolver import ResolvedModel

_WRITE_SECONDS = 5.0
log = structlog.get_logger()


class PredictionCounter:
    """Belongs to one event loop."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._counts: dict[tuple[str, int], Counter[Bucket]] = {}
        self._task: asyncio.Task[None] | None = None

    def add(self, model: ResolvedModel, outcomes: Iterable[Outcome]) -> None:
        counts = self._counts.setdefault((model.model_id, model.version), Counter())
        for outcome in outcomes:
            if not isinstance(outcome, Predicted):
                continue
            merged = model.clusters.merge(outcome.probabilities)
            likeliest = int(np.argmax(merged))
            counts["cluster", model.clusters.cluster_ids[likeliest]] += 1
            sure = float(model.calibration.apply(merged[likeliest]))
            counts["probability", tenth(sure)] += 1
            if outcome.novelty is not None:
                counts["novelty", tenth(outcome.novelty)] += 1

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Writes what is left."""
        if self._task is not None:
            self._task.cancel()
        await self._write()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(_WRITE_SECONDS)
            await self._write()

    async def _write(self) -> None:
        taken, self._counts = self._counts, {}
        for (model_id, version), counts in taken.items():
            try:
                await asyncio.to_thread(self._write_one, model_id, version, counts)
            except Exception as error:  # noqa: BLE001 - tried again with the next counts
                log.warning("prediction_counts_write_failed", reason=repr(error)[:300])
                self._counts.setdefault((model_id, version), Counter()).update(counts)

    def _write_one(self, model_id: str, version: int, counts: Counter[Bucket]) -> None:
        with self._db.write() as session:
            add_counts(session, model_id, version, counts)
