"""Jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import httpx

from temi_client.downloads import Progress, download_stream
from temi_client.errors import JobFailed
from temi_client.events import JobWatcher
from temi_client.models.jobs import CurvePoint, Job, JobKind, JobStatus, ListedKind, LogLine
from temi_client.resources.base import Resource, idempotency_header, path_segment, without_none
from temi_client.resources.review import Proof

SweepParameter = Literal["beta", "n_clusters"]
JobPlotName = Literal["sweep"]
ExportFormat = Literal[
    "csv",
    "jsonl",
    "parquet",
    "coco",
    "coco_images",
    "label_studio",
    "cvat",
    "image_folder",
    "yolo",
    "huggingface",
]


class JobMethods(Resource):
    _http: httpx.Client

    def create_job(
        self, *, kind: JobKind = "cluster", idempotency_key: str | None = None, **settings: Any
    ) -> Job:
        """Starts a job. The service chooses settings that are None; every kind takes `priority`
        and `webhook_url`."""
        body = {"kind": kind, **without_none(settings)}
        return self._post(Job, "/v1/jobs", body, idempotency_header(idempotency_key))

    def cluster(
        self,
        dataset_id: str,
        n_clusters: int | Literal["auto"] = "auto",
        *,
        learn_from: str | None = None,
        **options: Any,
    ) -> Job:
        """Clusters a dataset and registers the model. With `n_clusters="auto"` the service finds
        the number; the clustering's `metrics["count"]` tells why. For `backbone="auto"` it chooses
        the best one whose weights it has; the job's `config["backbone"]` is its name.

        `learn_from` is a clustering of the dataset that people have reviewed or edited: the new
        one continues its clusters, learns from what they said and keeps it. Its
        `metrics["learning"]` counts what it learned from."""
        return self.create_job(
            dataset_id=dataset_id, n_clusters=n_clusters, learn_from=learn_from, **options
        )

    def sweep(
        self,
        dataset_id: str,
        *,
        parameter: SweepParameter = "beta",
        values: Sequence[float] | None = None,
        n_clusters: int | None = None,
        **options: Any,
    ) -> Job:
        """Trains with several values of one setting, compares them, and keeps the clustering and
        the model of each; `job_plot` draws the comparison."""
        return self.create_job(
            kind="sweep",
            dataset_id=dataset_id,
            parameter=parameter,
            values=None if values is None else list(values),
            n_clusters=n_clusters,
            **options,
        )

    def finetune(
        self,
        model: str,
        *,
        dataset_id: str | None = None,
        steps: int | None = None,
        epochs: int | None = None,
        **options: Any,
    ) -> Job:
        """Fine-tunes the backbone of a model and registers a new version."""
        return self.create_job(
            kind="finetune",
            model=model,
            dataset_id=dataset_id,
            steps=steps,
            epochs=epochs,
            **options,
        )

    def predict_dataset(self, model: str, dataset_id: str, **options: Any) -> Job:
        """Assigns the images of a dataset to the clusters of a model. A clustering by the same
        version gets the images that it lacks and keeps its edits, unless `extend` is False."""
        return self.create_job(kind="predict", model=model, dataset_id=dataset_id, **options)

    def map(
        self,
        dataset_id: str,
        *,
        backbone: str | None = None,
        perplexity: float | None = None,
        seed: int | None = None,
        **options: Any,
    ) -> Job:
        """Projects all images to two dimensions; `download_map` saves the result."""
        return self.create_job(
            kind="map",
            dataset_id=dataset_id,
            backbone=backbone,
            perplexity=perplexity,
            seed=seed,
            **options,
        )

    def gather(self, model: str, **options: Any) -> Job:
        """Gathers the images that a model has refused into proposed groups; `proposals` lists
        them. The service does so itself when enough have come."""
        return self.create_job(kind="gather", model=model, **options)

    def export(
        self,
        clustering_id: str,
        format: ExportFormat,
        *,
        revision: int | None = None,
        cluster_ids: Sequence[int] | None = None,
        min_probability: float | None = None,
        min_purity: float | None = None,
        proof: Proof | None = None,
        include_excluded: bool | None = None,
        validation_fraction: float | None = None,
        split_seed: int | None = None,
        image_url_base: str | None = None,
        **options: Any,
    ) -> Job:
        """Exports a clustering to a file; the job's result has the `export_id`. `min_purity`
        leaves out labels that the review has not proven to be so pure: each cluster by itself
        (`proof="groups"`), or all together (`"collection"`)."""
        return self.create_job(
            kind="export",
            clustering_id=clustering_id,
            format=format,
            revision=revision,
            cluster_ids=None if cluster_ids is None else list(cluster_ids),
            min_probability=min_probability,
            min_purity=min_purity,
            proof=proof,
            include_excluded=include_excluded,
            validation_fraction=validation_fraction,
            split_seed=split_seed,
            image_url_base=image_url_base,
            **options,
        )

    def jobs(
        self,
        *,
        kind: ListedKind | None = None,
        status: JobStatus | None = None,
        dataset_id: str | None = None,
    ) -> Iterator[Job]:
        return self._pages(Job, "/v1/jobs", kind=kind, status=status, dataset_id=dataset_id)

    def job(self, job_id: str) -> Job:
        return self._get(Job, _path(job_id))

    def cancel(self, job_id: str) -> Job:
        return self._post(Job, f"{_path(job_id)}:cancel")

    def retry(self, job_id: str) -> Job:
        """Retries a failed or cancelled job; it resumes from its saved results."""
        return self._post(Job, f"{_path(job_id)}:retry")

    def delete_job(self, job_id: str) -> None:
        self._delete(_path(job_id))

    def logs(self, job_id: str, *, after: int | None = None) -> Iterator[LogLine]:
        """Lists the log lines so far, or those `after` a line number."""
        return self._pages(LogLine, f"{_path(job_id)}/logs", after=after)

    def curves(self, job_id: str, *, after: int | None = None) -> Iterator[CurvePoint]:
        """Lists the points of the training curves so far, or those `after` a step."""
        return self._pages(CurvePoint, f"{_path(job_id)}/curves", after=after)

    def download_map(
        self, job_id: str, path: str | Path, *, progress: Progress | None = None
    ) -> Path:
        """Saves the points of a map as an Arrow file."""
        return download_stream(
            self._transport, f"{_path(job_id)}/map", Path(path), progress=progress
        )

    def job_plot(
        self,
        job_id: str,
        name: JobPlotName = "sweep",
        *,
        format: Literal["png", "svg"] = "png",
    ) -> bytes:
        """Returns a plot: of a sweep, the figures of its finished values."""
        path = f"{_path(job_id)}/plots/{path_segment(name)}"
        return self._transport.send("GET", path, params={"format": format}).content

    def watch(self, job_id: str, *, poll_seconds: float = 1.0) -> Iterator[Job]:
        """Yields the states of a job as the service reports them, until the final one."""
        watcher = JobWatcher(
            self._http, path_segment(job_id), lambda: self.job(job_id), poll_seconds
        )
        return watcher.states()

    def wait(self, job_id: str, *, poll_seconds: float = 1.0) -> Job:
        """Returns the succeeded job; raises `JobFailed` if it failed or was cancelled."""
        *_, last = self.watch(job_id, poll_seconds=poll_seconds)
        if last.status != "succeeded":
            raise JobFailed(last)
        return last


def _path(job_id: str) -> str:
    return f"/v1/jobs/{path_segment(job_id)}"
