"""Resolves `name`, `name@alias` and `name/versions/N` to a version.

A reference is read from the database once a second at most. A reference that has moved keeps its
old version until the new one is loaded: no client waits for a model while another version can
answer, and a damaged version never takes over.
"""

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import structlog

from app.core.clusterings.names import ModelClusters, current_clusters
from app.core.models.calibrations import current_calibration
from app.core.models.files import ModelFiles
from app.core.models.versions import resolve
from app.core.platform.db import Database
from app.core.serving.client import Serving
from temi.calibration import Calibration

_FRESH_SECONDS = 1.0
_RETRY_SECONDS = 30.0  # before a version that could not be loaded is tried again
_MAX_REFERENCES = 1000
log = structlog.get_logger()


@dataclass(frozen=True, kw_only=True)
class ResolvedModel:
    """A version, with all that a prediction needs of it."""

    model_id: str
    name: str
    version: int
    files: ModelFiles
    feature_dim: int
    clusters: ModelClusters  # as users have named and merged them
    clustering_id: str | None  # of its training
    calibration: Calibration  # of the probabilities after merging


@dataclass(eq=False)
class _CachedReference:
    model: ResolvedModel
    read_at: float
    reading: "asyncio.Task[ResolvedModel] | None" = None
    loading: "asyncio.Future[Any] | None" = None
    failed_at: float | None = None


class ModelResolver:
    """Belongs to one event loop."""

    def __init__(self, db: Database, serving: Serving) -> None:
        self._db = db
        self._serving = serving
        self._cache: OrderedDict[tuple[str, str], _CachedReference] = OrderedDict()
        self._invalidations = 0

    async def resolve(self, tenant: str, reference: str) -> ResolvedModel:
        key = (tenant, reference)
        cached = self._cache.get(key)
        if cached is None:
            before = self._invalidations
            model = await asyncio.to_thread(self.read, tenant, reference)
            if before != self._invalidations:  # it may have moved since it was read
                return model
            self._cache[key] = _CachedReference(model, time.monotonic())
            while len(self._cache) > _MAX_REFERENCES:
                self._cache.popitem(last=False)
            return model
        self._cache.move_to_end(key)
        if time.monotonic() - cached.read_at > _FRESH_SECONDS:
            await self._refresh(key, cached)
        return cached.model

    def prepare(self, tenant: str, reference: str) -> None:
        """Called before an alias moves: raises if the files are damaged, and waits until the
        version is loaded if this process serves predictions."""
        self._serving.prepare(self.read(tenant, reference).files)

    def invalidate(self, tenant: str, name: str) -> None:
        """Called from any thread after a change of the model: the next request sees it."""
        self._invalidations += 1
        for key in list(self._cache):
            if key[0] == tenant and key[1].partition("@")[0].partition("/")[0] == name:
                self._cache.pop(key, None)

    def used_since(self, moment: float) -> set[tuple[str, str, int]]:
        """Tenant, name and version of what was resolved since then, by the monotonic clock."""
        return {
            (tenant, cached.model.name, cached.model.version)
            for (tenant, _), cached in self._cache.items()
            if cached.read_at > moment
        }

    async def _refresh(self, key: tuple[str, str], cached: _CachedReference) -> None:
        """Reads the reference once for all requests that wait for it."""
        if cached.reading is None:
            cached.reading = asyncio.create_task(asyncio.to_thread(self.read, *key))
        try:
            model = await asyncio.shield(cached.reading)
        except Exception:
            self._cache.pop(key, None)
            raise
        finally:
            cached.reading = None
        cached.read_at = time.monotonic()
        if self._can_switch(cached, model):
            cached.model, cached.loading = model, None

    def _can_switch(self, cached: _CachedReference, model: ResolvedModel) -> bool:
        old, new = cached.model.files, model.files
        if old == new or self._serving.is_loaded(new) or not self._serving.is_loaded(old):
            return True
        if cached.loading is None and _may_retry(cached.failed_at):
            cached.loading = self._serving.load(new)
        if cached.loading is not None and cached.loading.done():
            error, cached.loading = cached.loading.exception(), None
            if error is None:
                return True
            cached.failed_at = time.monotonic()
            log.error(
                "model_version_rejected",
                model=model.name,
                version=model.version,
                reason=str(error),
                still_serving=cached.model.version,
            )
        return False

    def read(self, tenant: str, reference: str) -> ResolvedModel:
        """Reads the database; does not count as use of the model."""
        with self._db.read() as session:
            model, version = resolve(session, tenant, reference)
            return ResolvedModel(
                model_id=model.id,
                name=model.name,
                version=version.version,
                files=ModelFiles.of(version.folder, version.files, version.manifest),
                feature_dim=version.manifest["feature_dim"],
                clusters=current_clusters(session, version),
                clustering_id=version.clustering_id,
                calibration=current_calibration(session, version),
            )


def _may_retry(failed_at: float | None) -> bool:
    return failed_at is None or time.monotonic() - failed_at > _RETRY_SECONDS
