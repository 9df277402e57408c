"""Keeps the images that `:predict` has refused, beside the requests: predictions never wait for it.

A process that is killed loses what it has not stored yet. So do images that come faster than they
can be stored, and images for which the storage or the quota has no room: predictions go on.
"""

import asyncio
import hashlib
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import structlog

from app.core.datasets.decoding.pool import DecoderPool
from app.core.datasets.sources.base import cut_text, storable_name
from app.core.gathering.keeping import Refusal, keep_refused
from app.core.platform.actor import Actor
from app.core.platform.db import Database
from app.core.platform.settings import MiB, Settings
from app.core.serving.messages import Predicted
from app.core.serving.resolver import ResolvedModel
from app.core.storage import Storage, store_blob

_MAX_IMAGES = 512  # that wait to be stored
_MAX_BYTES = 64 * MiB
_STOP_SECONDS = 5.0
log = structlog.get_logger()


@dataclass(frozen=True, kw_only=True)
class RefusedUpload:
    name: str
    data: bytes
    features: npt.NDArray[np.float32]  # (D,)
    outcome: Predicted


@dataclass(frozen=True, kw_only=True)
class _Waiting:
    model: ResolvedModel
    actor: Actor
    uploads: Sequence[RefusedUpload]

    @property
    def bytes(self) -> int:
        return sum(len(upload.data) for upload in self.uploads)


class RefusedKeeper:
    """Belongs to one event loop."""

    def __init__(
        self, db: Database, storage: Storage, decoders: DecoderPool, settings: Settings
    ) -> None:
        self._db = db
        self._storage = storage
        self._decoders = decoders
        self._settings = settings
        self._waiting: deque[_Waiting] = deque()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def add(self, model: ResolvedModel, actor: Actor, uploads: Sequence[RefusedUpload]) -> None:
        """Returns at once."""
        added = _Waiting(model=model, actor=actor, uploads=uploads)
        images = sum(len(each.uploads) for each in self._waiting) + len(uploads)
        bytes_ = sum(each.bytes for each in self._waiting) + added.bytes
        if images > _MAX_IMAGES or bytes_ > _MAX_BYTES:
            log.warning("refused_images_not_kept", images=len(uploads), reason="too many wait")
            return
        self._waiting.append(added)
        self._wake.set()

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Stores what waits, for a few seconds."""
        if self._task is not None:
            self._task.cancel()
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await self._store_waiting()
        except TimeoutError:
            log.warning("refused_images_not_kept", reason="the process stops")

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            await self._store_waiting()

    async def _store_waiting(self) -> None:
        while self._waiting:
            one = self._waiting.popleft()
            try:
                await asyncio.to_thread(self._store, one)
            except Exception as error:  # noqa: BLE001 - predictions go on without it
                reason = repr(error)[:300]
                log.warning("refused_images_not_kept", images=len(one.uploads), reason=reason)

    def _store(self, one: _Waiting) -> None:
        refusals = [self._refusal(one.model, upload) for upload in one.uploads]
        with self._db.write() as session:
            keep_refused(
                session,
                self._settings,
                tenant=one.actor.tenant,
                model_id=one.model.model_id,
                version=one.model.version,
                refusals=refusals,
                quota=one.actor.storage_bytes,
            )

    def _refusal(self, model: ResolvedModel, upload: RefusedUpload) -> Refusal:
        """Stores the bytes; those that no row will refer to are collected as garbage."""
        facts = self._decoders.inspect(upload.data)
        sha256 = hashlib.sha256(upload.data).hexdigest()
        store_blob(self._storage, sha256, upload.data)
        calibrated = model.calibration.apply_to_all(
            model.clusters.merge(upload.outcome.probabilities)
        )
        second, first = np.sort(calibrated)[-2:].tolist()
        return Refusal(
            name=cut_text(storable_name(upload.name), self._settings.max_name_bytes),
            sha256=sha256,
            width=facts.width,
            height=facts.height,
            format=facts.format,
            bytes=len(upload.data),
            novelty=upload.outcome.novelty or 0.0,
            probability=round(first, 6),
            margin=round(first - second, 6),
            features=upload.features,
        )
