"""One method for each thing the service can do."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeVar
from urllib.parse import quote

import httpx
from pydantic import BaseModel, ValidationError

from temi_client.errors import JobFailed
from temi_client.events import JobWatcher
from temi_client.models import (
    Assignment,
    Cluster,
    Clustering,
    Dataset,
    DatasetIssue,
    Image,
    Job,
    Model,
    ModelVersion,
    Prediction,
    Predictions,
    Readiness,
)
from temi_client.transport import Transport, api_error, unreachable
from temi_client.uploads import default_name, multipart_body, upload_body

PathLike = str | Path
LabelsFrom = Literal["folder", "none"]
T = TypeVar("T", bound=BaseModel)

_PAGE = 200
_PREDICT_BATCH = 64


class TemiClient:
    """A connection to a running service; use it as a context manager."""

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
        """What the service says about itself; asks once. Unreachable raises."""
        try:
            response = self._http.get("/readyz")
        except httpx.TransportError as error:
            raise unreachable(self.base_url, error) from error
        try:
            return Readiness.model_validate_json(response.content)
        except ValidationError:
            raise api_error(response) from None

    # Datasets

    def upload_dataset(
        self,
        source: PathLike | Sequence[PathLike],
        *,
        name: str | None = None,
        labels_from: LabelsFrom = "none",
        idempotency_key: str | None = None,
    ) -> Job:
        """Send an archive, a folder or a list of images; the answer is the ingest job."""
        chosen = _as_paths(source)
        params = {"name": name or default_name(chosen), "labels_from": labels_from}
        with upload_body(chosen) as body:
            response = self._transport.send(
                "POST",
                "/v1/datasets",
                params=params,
                body=body,
                headers=_idempotency(idempotency_key),
            )
        return Job.model_validate_json(response.content)

    def datasets(self) -> Iterator[Dataset]:
        return self._pages(Dataset, "/v1/datasets")

    def dataset(self, dataset_id: str) -> Dataset:
        return self._get(Dataset, f"/v1/datasets/{_part(dataset_id)}")

    def images(self, dataset_id: str) -> Iterator[Image]:
        return self._pages(Image, f"/v1/datasets/{_part(dataset_id)}/images")

    def issues(self, dataset_id: str) -> Iterator[DatasetIssue]:
        return self._pages(DatasetIssue, f"/v1/datasets/{_part(dataset_id)}/issues")

    # Jobs

    def create_job(
        self, *, kind: str = "cluster", idempotency_key: str | None = None, **settings: Any
    ) -> Job:
        """Start a job. Settings that are None are left to the service."""
        given = {name: value for name, value in settings.items() if value is not None}
        response = self._transport.send(
            "POST",
            "/v1/jobs",
            json={"kind": kind, **given},
            headers=_idempotency(idempotency_key),
        )
        return Job.model_validate_json(response.content)

    def cluster(self, dataset_id: str, n_clusters: int, **options: Any) -> Job:
        return self.create_job(dataset_id=dataset_id, n_clusters=n_clusters, **options)

    def jobs(self, *, status: str | None = None, dataset_id: str | None = None) -> Iterator[Job]:
        return self._pages(Job, "/v1/jobs", status=status, dataset_id=dataset_id)

    def job(self, job_id: str) -> Job:
        return self._get(Job, f"/v1/jobs/{_part(job_id)}")

    def cancel(self, job_id: str) -> Job:
        response = self._transport.send("POST", f"/v1/jobs/{_part(job_id)}:cancel")
        return Job.model_validate_json(response.content)

    def watch(self, job_id: str, *, poll_seconds: float = 1.0) -> Iterator[Job]:
        """Every reported state of the job, the final one last."""
        watcher = JobWatcher(self._http, _part(job_id), lambda: self.job(job_id), poll_seconds)
        return watcher.states()

    def wait(self, job_id: str, *, poll_seconds: float = 1.0) -> Job:
        """The succeeded job; JobFailed if it failed or was cancelled."""
        *_, last = self.watch(job_id, poll_seconds=poll_seconds)
        if last.status != "succeeded":
            raise JobFailed(last)
        return last

    # Clusterings

    def clusterings(self) -> Iterator[Clustering]:
        return self._pages(Clustering, "/v1/clusterings")

    def clustering(self, clustering_id: str) -> Clustering:
        return self._get(Clustering, f"/v1/clusterings/{_part(clustering_id)}")

    def clusters(self, clustering_id: str) -> Iterator[Cluster]:
        return self._pages(Cluster, f"/v1/clusterings/{_part(clustering_id)}/clusters")

    def assignments(
        self, clustering_id: str, cluster_id: int | None = None
    ) -> Iterator[Assignment]:
        path = f"/v1/clusterings/{_part(clustering_id)}/assignments"
        return self._pages(Assignment, path, cluster_id=cluster_id)

    # Models

    def models(self) -> Iterator[Model]:
        return self._pages(Model, "/v1/models")

    def model(self, name: str) -> Model:
        return self._get(Model, f"/v1/models/{_part(name)}")

    def model_versions(self, name: str) -> Iterator[ModelVersion]:
        return self._pages(ModelVersion, f"/v1/models/{_part(name)}/versions")

    def set_alias(self, name: str, alias: str, version: int) -> Model:
        path = f"/v1/models/{_part(name)}/aliases/{_part(alias)}"
        response = self._transport.send("PUT", path, json={"version": version})
        return Model.model_validate_json(response.content)

    def predict(
        self, name: str, paths: Sequence[PathLike], *, top_k: int = 3, version: int | None = None
    ) -> Predictions:
        """Labels for images, by `name`, `name@alias` or a fixed version."""
        files = [Path(path) for path in paths]
        if not files:
            raise ValueError("no images to predict")
        found: list[Prediction] = []
        answer: Predictions | None = None
        for start in range(0, len(files), _PREDICT_BATCH):
            if answer is not None:
                # An alias that moves meanwhile must not mix two versions in one answer.
                name, version = answer.model.name, answer.model.version
            answer = self._predict(name, version, files[start : start + _PREDICT_BATCH], top_k)
            found += answer.data
        assert answer is not None
        return Predictions(model=answer.model, data=found)

    def _predict(
        self, name: str, version: int | None, files: Sequence[Path], top_k: int
    ) -> Predictions:
        fixed = "" if version is None else f"/versions/{version}"
        response = self._transport.send(
            "POST",
            f"/v1/models/{_part(name)}{fixed}:predict",
            params={"top_k": top_k},
            body=multipart_body(files),
        )
        return Predictions.model_validate_json(response.content)

    def _get(self, answer: type[T], path: str) -> T:
        return answer.model_validate_json(self._transport.send("GET", path).content)

    def _pages(self, answer: type[T], path: str, **filters: Any) -> Iterator[T]:
        params = {name: value for name, value in filters.items() if value is not None}
        cursor: str | None = None
        while True:
            asked = {"limit": _PAGE, **params, **({"cursor": cursor} if cursor else {})}
            page = self._transport.send("GET", path, params=asked).json()
            for item in page["data"]:
                yield answer.model_validate(item)
            cursor = page.get("next_cursor")
            if not cursor or not page.get("has_more"):
                return


def _as_paths(source: PathLike | Sequence[PathLike]) -> Path | list[Path]:
    if isinstance(source, str | Path):
        path = Path(source)
        if not path.exists():
            raise FileNotFoundError(f"no such file or folder: {path}")
        return path
    paths = [Path(path) for path in source]
    if not paths:
        raise ValueError("no images to upload")
    return paths


def _idempotency(key: str | None) -> dict[str, str]:
    """One key a call: its retries are the same request, the next call is another one."""
    return {"Idempotency-Key": key or str(uuid.uuid4())}


def _part(value: str) -> str:
    """A value as one piece of a path: a slash in it must not reach another route."""
    return quote(value, safe="@")
