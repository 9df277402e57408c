"""Models that are in use stay loaded when an API process is replaced by another.

Whoever answers for a version writes down when, now and then. A process that starts loads what was
asked for within the time that a model is kept, here or elsewhere, and is ready after that.
"""

import asyncio
import time
from math import inf

import structlog
from sqlalchemy import select, update

from app.core.clock import db_now
from app.core.errors import ServiceError
from app.core.health import Finding
from app.core.runtime import Runtime
from app.core.serving.references import References
from app.core.serving.service import Serving
from app.core.tables import Model, ModelVersion

_LOOK_SECONDS = 2.0
_NOTE_SECONDS = 60.0  # between two notes of one version
_LONGEST_START = 120.0  # then it is ready without them
_MOST_MODELS = 16
Version = tuple[str, str, int]  # tenant, name, number
log = structlog.get_logger()


class Warmth:
    def __init__(self, runtime: Runtime, serving: Serving, references: References) -> None:
        self._runtime = runtime
        self._serving = serving
        self._references = references
        self._noted: dict[Version, float] = {}
        self._started = time.monotonic()
        self._loading: str | None = None
        self._looked_at = self._started

    def finding(self) -> Finding:
        """For those who send requests only to a process that is ready."""
        if self._loading is None:
            return Finding("ok", 0.0)
        seconds = time.monotonic() - self._started
        return Finding("starting", seconds, f"loading {self._loading}", "wait: it takes seconds")

    async def run(self) -> None:
        try:
            async with asyncio.timeout(_LONGEST_START):
                await self._load_what_is_in_use()
        except Exception as error:  # noqa: BLE001 - they are loaded when somebody asks
            log.warning("models_in_use_not_loaded", reason=str(error)[:300])
        self._loading = None
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                await self._write_down()
            except Exception as error:  # noqa: BLE001 - the next time is soon
                log.warning("models_in_use_not_noted", reason=str(error)[:300])

    async def _load_what_is_in_use(self) -> None:
        loaded = 0
        for tenant, name, version in await asyncio.to_thread(self._lately):
            self._loading = f"{name}/versions/{version}"
            try:
                target = await asyncio.to_thread(self._references.look, tenant, self._loading)
                await asyncio.shield(self._serving.load(target.files, target.sample))
            except ServiceError as error:
                log.warning("model_in_use_not_loaded", model=self._loading, reason=str(error))
                continue
            loaded += 1
            if len(self._serving.loaded()) < loaded:
                return  # one has made room for another

    async def _write_down(self) -> None:
        """What was asked for since the last look, unless it was written down a moment ago."""
        since, self._looked_at = self._looked_at, time.monotonic()
        asked = self._references.asked_since(since)
        due = [v for v in asked if self._looked_at - self._noted.get(v, -inf) >= _NOTE_SECONDS]
        if due:
            await asyncio.to_thread(self._note, due)
            self._noted.update(dict.fromkeys(due, self._looked_at))

    def _lately(self) -> list[Version]:
        earliest = db_now() - self._runtime.settings.predict_idle_seconds
        with self._runtime.db.read() as session:
            rows = session.execute(
                select(Model.tenant, Model.name, ModelVersion.version)
                .join(ModelVersion, ModelVersion.model_id == Model.id)
                .where(ModelVersion.served_at > earliest)
                .order_by(ModelVersion.served_at.desc())
                .limit(_MOST_MODELS)
            )
            return [(tenant, name, version) for tenant, name, version in rows]

    def _note(self, versions: list[Version]) -> None:
        with self._runtime.db.write() as session:
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
