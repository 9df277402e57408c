"""Models that are in use stay loaded when an API process is replaced by another.

Whoever answers for a version writes down when, now and then. A process that starts loads what was
asked for within the time that a model is kept, here or elsewhere, and is ready after that.
"""

import asyncio
import time
from math import inf

import structlog
from sqlalchemy import select, update

from app.core.platform.clock import db_now
from app.core.platform.errors import ServiceError
from app.core.platform.probe import CheckResult
from app.core.platform.tables import Model, ModelVersion
from app.core.runtime import Runtime
from app.core.serving.client import Serving
from app.core.serving.references import References

_LIST_SECONDS = 2.0  # to learn what is in use; a database that is away delays no start
_LOOK_SECONDS = 2.0
_NOTE_SECONDS = 60.0  # between two notes of one version
_LONGEST_START = 120.0  # then it is ready without them
_MOST_MODELS = 16
Version = tuple[str, str, int]  # tenant, name, number
log = structlog.get_logger()


class ModelPreloader:
    def __init__(self, runtime: Runtime, serving: Serving, references: References) -> None:
        self._runtime = runtime
        self._serving = serving
        self._references = references
        self._noted: dict[Version, float] = {}
        self._started = time.monotonic()
        self._loading: str | None = None
        self._looked_at = self._started

    def finding(self) -> CheckResult:
        """For those who send requests only to a process that is ready."""
        if self._loading is None:
            return CheckResult("ok", 0.0)
        seconds = time.monotonic() - self._started
        return CheckResult(
            "starting", seconds, f"loading {self._loading}", "wait: it takes seconds"
        )

    async def start(self) -> None:
        """Returns when it is known what has to be loaded, so that nobody finds us ready before."""
        in_use: list[Version] = []
        try:
            async with asyncio.timeout(_LIST_SECONDS):
                in_use = await asyncio.to_thread(self._lately)
        except Exception as error:  # noqa: BLE001 - they are loaded when somebody asks
            log.warning("models_in_use_not_known", reason=repr(error)[:300])
        self._loading = _reference(in_use[0]) if in_use else None
        self._task = asyncio.create_task(self._run(in_use))

    def stop(self) -> None:
        self._task.cancel()

    async def _run(self, in_use: list[Version]) -> None:
        try:
            async with asyncio.timeout(_LONGEST_START):
                await self._load(in_use)
        except Exception as error:  # noqa: BLE001 - they are loaded when somebody asks
            log.warning("models_in_use_not_loaded", reason=repr(error)[:300])
        self._loading = None
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                await self._write_down()
            except Exception as error:  # noqa: BLE001 - the next time is soon
                log.warning("models_in_use_not_noted", reason=repr(error)[:300])

    async def _load(self, in_use: list[Version]) -> None:
        loaded = 0
        for version in in_use:
            self._loading = _reference(version)
            try:
                target = await asyncio.to_thread(self._references.look, version[0], self._loading)
                await asyncio.shield(self._serving.load(target.files))
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


def _reference(version: Version) -> str:
    _, name, number = version
    return f"{name}/versions/{number}"
