"""Workers."""

from __future__ import annotations

from collections.abc import Iterator

from temi_client.models.workers import Worker
from temi_client.resources.base import Resource


class WorkerMethods(Resource):
    def workers(self) -> Iterator[Worker]:
        """Lists the active workers, by name."""
        return self._pages(Worker, "/v1/workers")
