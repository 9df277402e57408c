"""What `name`, `name@alias` and `name/versions/N` stand for right now.

Looked up once a second at most. A reference that has moved keeps its old target until the new
one is loaded: nobody waits for a model while another one of the same name can answer, and one
that turns out to be damaged never takes over.
"""

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import structlog

from app.core.clusterings.names import current_names
from app.core.models import resolve
from app.core.models.files import ModelFiles
from app.core.runtime import Runtime
from app.core.serving.client import Serving

_FRESH_SECONDS = 1.0
_RETRY_SECONDS = 30.0  # before a target that could not be loaded is tried again
_MOST_REFERENCES = 1000
log = structlog.get_logger()


@dataclass(frozen=True, kw_only=True)
class Target:
    """A version, with all that is needed to answer for it."""

    name: str
    version: int
    files: ModelFiles
    feature_dim: int
    labels: list[str]  # as people call the clusters now


@dataclass(eq=False)
class _Known:
    target: Target
    looked_at: float
    look: "asyncio.Task[Target] | None" = None
    loading: "asyncio.Future[Any] | None" = None
    failed_at: float | None = None


class References:
    """For one event loop."""

    def __init__(self, runtime: Runtime, serving: Serving) -> None:
        self._runtime = runtime
        self._serving = serving
        self._known: OrderedDict[tuple[str, str], _Known] = OrderedDict()
        self._forgotten = 0  # times

    async def resolve(self, tenant: str, reference: str) -> Target:
        key = (tenant, reference)
        known = self._known.get(key)
        if known is None:
            before = self._forgotten
            target = await asyncio.to_thread(self.look, tenant, reference)
            if before != self._forgotten:  # it may have moved while we looked
                return target
            self._known[key] = _Known(target, time.monotonic())
            while len(self._known) > _MOST_REFERENCES:
                self._known.popitem(last=False)
            return target
        self._known.move_to_end(key)
        if time.monotonic() - known.looked_at > _FRESH_SECONDS:
            await self._refresh(key, known)
        return known.target

    def prepare(self, tenant: str, reference: str) -> None:
        """Before somebody points at it: refuses damaged files, and waits until it is loaded if
        this process is answering at all."""
        target = self.look(tenant, reference)
        self._serving.prepare(target.files)

    def forget(self, tenant: str, name: str) -> None:
        """After a change made here: the next one to ask sees it. Any thread may say so."""
        self._forgotten += 1
        for key in list(self._known):
            if key[0] == tenant and key[1].partition("@")[0].partition("/")[0] == name:
                self._known.pop(key, None)

    def asked_since(self, moment: float) -> set[tuple[str, str, int]]:
        """Tenant, name and version of what somebody wanted, by the monotonic clock."""
        return {
            (tenant, known.target.name, known.target.version)
            for (tenant, _), known in self._known.items()
            if known.looked_at > moment
        }

    async def _refresh(self, key: tuple[str, str], known: _Known) -> None:
        """One look for all who wait for it."""
        if known.look is None:
            known.look = asyncio.create_task(asyncio.to_thread(self.look, *key))
        try:
            target = await asyncio.shield(known.look)
        except Exception:
            self._known.pop(key, None)
            raise
        finally:
            known.look = None
        known.looked_at = time.monotonic()
        if self._may_take_over(known, target):
            known.target, known.loading = target, None

    def _may_take_over(self, known: _Known, target: Target) -> bool:
        old, new = known.target.files, target.files
        if old == new or self._serving.is_loaded(new) or not self._serving.is_loaded(old):
            return True
        if known.loading is None and _long_ago(known.failed_at):
            known.loading = self._serving.load(new)
        if known.loading is not None and known.loading.done():
            problem, known.loading = known.loading.exception(), None
            if problem is None:
                return True
            known.failed_at = time.monotonic()
            log.error(
                "new_version_refused",
                model=target.name,
                version=target.version,
                reason=str(problem),
                still_serving=known.target.version,
            )
        return False

    def look(self, tenant: str, reference: str) -> Target:
        """In the database, and without taking it as a wish for the model."""
        with self._runtime.db.read() as session:
            model, version = resolve(session, tenant, reference)
            return Target(
                name=model.name,
                version=version.version,
                files=ModelFiles.of(version.folder, version.files, version.manifest),
                feature_dim=version.manifest["feature_dim"],
                labels=current_names(session, version),
            )


def _long_ago(moment: float | None) -> bool:
    return moment is None or time.monotonic() - moment > _RETRY_SECONDS
