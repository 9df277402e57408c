"""Loads the models that are in use before a new API process is ready.

Each process records from time to time which versions it serves. A process that starts loads the
versions that any process has served within the time that a model stays loaded.
"""

import asyncio
import time
from math import inf

import structlog
from sqlalchemy import select, update

from app.core.platform.clock import db_now
from app.core.platform.db import Database
from app.core.platform.errors import ServiceError
from app.core.platform.probe import CheckResult
from app.core.platform.tables import Model, ModelVersion
from app.core.serving.client import Serving
from app.core.serving.resolver import ModelResolver

_LIST_SECONDS = 2.0  # to read what is in use; a database that is away does not delay the start
_POLL_SECONDS = 2.0
_RECORD_SECONDS = 60.0  # between two records of one version
_MAX_PRELOAD_SECONDS = 120.0  # after that the process is ready without the rest
_MAX_MODELS = 16
Version = tuple[str, str, int]  # tenant, name, number
log = structlog.get_logger()


class ModelPreloader:
    def __init__(
        self, db: Database, serving: Serving, resolver: ModelResolver, idle_seconds: float
    ) -> None:
        self._db = db
        self._serving = serving
        self._resolver = resolver
        self._idle_seconds = idle_seconds
        self._recorded: dict[Version, float] = {}
        self._started = time.monotonic()
        self._loading: str | None = None
        self._polled_at = self._started

    def check(self) -> CheckResult:
        """The readiness check: `starting` while models are loaded."""
        if self._loading is None:
            return CheckResult("ok", 0.0)
        seconds = time.monotonic() - self._started
        return CheckResult(
            "starting", seconds, f"loading {self._loading}", "wait: it takes seconds"
        )

    async def start(self) -> None:
        """Returns when the models to load are known, so that the process is not ready before."""
        in_use: list[Version] = []
        try:
            async with asyncio.timeout(_LIST_SECONDS):
                in_use = await asyncio.to_thread(self._list_recently_used)
        except Exception as error:  # noqa: BLE001 - they are loaded by their first request
            log.warning("models_in_use_list_failed", reason=repr(error)[:300])
        self._loading = _reference(in_use[0]) if in_use else None
        self._task = asyncio.create_task(self._run(in_use))

    def stop(self) -> None:
        self._task.cancel()

    async def _run(self, in_use: list[Version]) -> None:
        try:
            async with asyncio.timeout(_MAX_PRELOAD_SECONDS):
                await self._load(in_use)
        except Exception as error:  # noqa: BLE001 - they are loaded by their first request
            log.warning("models_preload_failed", reason=repr(error)[:300])
        self._loading = None
        while True:
            await asyncio.sleep(_POLL_SECONDS)
            try:
                await self._record_use()
            except Exception as error:  # noqa: BLE001 - the next attempt is soon
                log.warning("models_in_use_record_failed", reason=repr(error)[:300])

    async def _load(self, in_use: list[Version]) -> None:
        loaded = 0
        for version in in_use:
            self._loading = _reference(version)
            try:
                model = await asyncio.to_thread(self._resolver.read, version[0], self._loading)
                await asyncio.shield(self._serving.load(model.files))
            except ServiceError as error:
                log.warning("model_preload_failed", model=self._loading, reason=str(error))
                continue
            loaded += 1
            if len(self._serving.loaded()) < loaded:
                return  # the cache is full: one model was dropped for another

    async def _record_use(self) -> None:
        """Records the versions used since the last poll, each at most once a minute."""
        since, self._polled_at = self._polled_at, time.monotonic()
        used = self._resolver.used_since(since)
        due = [v for v in used if self._polled_at - self._recorded.get(v, -inf) >= _RECORD_SECONDS]
        if due:
            await asyncio.to_thread(self._write_served_at, due)
            self._recorded.update(dict.fromkeys(due, self._polled_at))

    def _list_recently_used(self) -> list[Version]:
        earliest = db_now() - self._idle_seconds
        with self._db.read() as session:
            rows = session.execute(
                select(Model.tenant, Model.name, ModelVersion.version)
                .join(ModelVersion, ModelVersion.model_id == Model.id)
                .where(ModelVersion.served_at > earliest)
                .order_by(ModelVersion.served_at.desc())
                .limit(_MAX_MODELS)
            )
            return [(tenant, name, version) for tenant, name, version in rows]

    def _write_served_at(self, versions: list[Version]) -> None:
        with self._db.write() as session:
            for tenant, name, number in versions:
                model = select(Model.id).where(Model.tenant == tenant, Model.name == name)
                session.execute(
                    update(ModelVersion)
                    .where(
                        ModelVersion.model_id == model.scalar_subquery(),
                        ModelVersion.version == number,
                    )
                    .values(served_at=db_now())
                    .execution_options(synchronize_session=False)
                )


def _reference(version: Version) -> str:
    _, name, number = version
    return f"{name}/versions/{number}"
