"""The client, with one method for each operation of the service."""

from __future__ import annotations

from types import TracebackType
from typing import Self

import httpx
from pydantic import ValidationError

from temi_client.models.base import Readiness
from temi_client.resources.access import AccessMethods
from temi_client.resources.clustering_changes import ClusteringChangeMethods
from temi_client.resources.clusterings import ClusteringMethods
from temi_client.resources.datasets import DatasetMethods
from temi_client.resources.exports import ExportMethods
from temi_client.resources.images import ImageMethods
from temi_client.resources.jobs import JobMethods
from temi_client.resources.predictions import PredictionMethods
from temi_client.resources.refusals import RefusalMethods
from temi_client.resources.registry import RegistryMethods
from temi_client.resources.review import ReviewMethods
from temi_client.resources.system import SystemMethods
from temi_client.resources.uploads import UploadMethods
from temi_client.resources.workers import WorkerMethods
from temi_client.transport import Transport, api_error, unreachable


class TemiClient(
    UploadMethods,
    DatasetMethods,
    ImageMethods,
    JobMethods,
    ClusteringMethods,
    ClusteringChangeMethods,
    ExportMethods,
    ReviewMethods,
    RegistryMethods,
    PredictionMethods,
    RefusalMethods,
    WorkerMethods,
    SystemMethods,
    AccessMethods,
):
    """A client of a running service; use it as a context manager."""

    def __init__(
        self,
        base_url: str = "http://127.0.0.1:8000",
        api_key: str | None = None,
        *,
        timeout: float = 60.0,
        retries: int = 5,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._http = httpx.Client(
            base_url=base_url,
            headers={"Authorization": f"Bearer {api_key}"} if api_key else {},
            timeout=httpx.Timeout(timeout, connect=min(timeout, 10.0)),
            transport=transport,
        )
        self._transport = Transport(self._http, retries)

    @property
    def base_url(self) -> str:
        return self._transport.base_url

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def ready(self) -> Readiness:
        """Returns the readiness of the service; raises `ServiceUnreachable` without retries."""
        try:
            response = self._http.get("/readyz")
        except httpx.TransportError as error:
            raise unreachable(self.base_url, error) from error
        try:
            return Readiness.model_validate_json(response.content)
        except ValidationError:
            raise api_error(response) from None
