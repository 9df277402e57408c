"""`temi demo`: uploads the drawings in `demo/`, clusters them and predicts, over REST."""

import hashlib
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

import typer

from app.cli.connection import DEFAULT_SERVER, Connection, connection
from app.cli.embedded_service import embedded_service, free_port
from app.cli.output import notices, results
from app.cli.progress import show_progress
from app.cli.tables import EXAMPLES, print_clusters, print_metrics, print_predictions
from temi.backbones.catalog import DEFAULT_BACKBONE
from temi_client import ApiError, Dataset, Job, ServiceUnreachable, TemiClient

DATASET_NAME = "demo-clipart"
_CONFIG: dict[str, Any] = {"n_clusters": 10, "backbone": DEFAULT_BACKBONE, "seed": 0}
_DEMO_FOLDER = Path(__file__).resolve().parents[2] / "demo"
_PORT = 8000

DemoFolder = Annotated[
    Path, typer.Option("--images", exists=True, file_okay=False, help="Folder of the archives.")
]
StartTimeout = Annotated[
    float, typer.Option(min=1, help="Seconds to wait for the embedded service to start.")
]


def demo(
    ctx: typer.Context,
    images: DemoFolder = _DEMO_FOLDER,
    start_timeout: StartTimeout = 120.0,
) -> None:
    """Cluster a few hundred drawings and label new ones."""
    for needed in ("clipart.zip", "held_back.zip"):
        if not (images / needed).is_file():
            raise typer.BadParameter(f"{images / needed} is missing.", param_hint="--images")
    configured = connection(ctx)
    running = _is_running(configured)
    with _service(configured, running, start_timeout) as service, service.client() as client:
        dataset = _dataset(client, images / "clipart.zip")
        job = _clustering_job(client, dataset)
        _show(client, job, images / "held_back.zip")
    _next_steps(configured.server if running else None)


@contextmanager
def _service(configured: Connection, running: bool, start_seconds: float) -> Iterator[Connection]:
    """Yields the running service, or an embedded one that stops at the end of the demo."""
    if running:
        notices.print(f"Using the service at {configured.server}")
        yield configured
        return
    with embedded_service(free_port(_PORT), configured.api_key, start_seconds) as url:
        notices.print(f"Started a service at {url}")
        yield replace(configured, server=url)
    notices.print("Stopped the service")


def _is_running(configured: Connection) -> bool:
    with configured.client(timeout=5.0) as client:
        try:
            client.ready()
        except (ServiceUnreachable, ApiError):  # nothing, or another program on that port
            return False
        return True


def _dataset(client: TemiClient, archive: Path) -> Dataset:
    size = archive.stat().st_size
    for dataset in client.datasets():
        if (dataset.name, dataset.status, dataset.bytes) == (DATASET_NAME, "ready", size):
            notices.print(f"Using dataset {dataset.id} from an earlier run")
            return dataset
    notices.print(f"Uploading {archive.name} ({size / 1e6:.1f} MB)")
    with archive.open("rb") as handle:
        digest = hashlib.file_digest(handle, "sha256").hexdigest()
    key: str | None = f"demo-upload-{digest}"
    job = client.upload_dataset(
        archive, name=DATASET_NAME, labels_from="folder", idempotency_key=key
    )
    if client.job(job.id).status in ("failed", "cancelled"):
        # The key returns the failed job on every call; a new key starts a new upload.
        job = client.upload_dataset(archive, name=DATASET_NAME, labels_from="folder")
    done = show_progress(client.watch(job.id))
    return client.dataset(str(done.dataset_id))


def _clustering_job(client: TemiClient, dataset: Dataset) -> Job:
    running: Job | None = None
    for job in client.jobs(dataset_id=dataset.id):
        if job.kind != "cluster" or not _same_config(job):
            continue
        if job.status == "succeeded":
            notices.print(f"Using job {job.id} from an earlier run")
            return job
        if not job.finished:
            running = job
    job = running or client.create_job(dataset_id=dataset.id, **_CONFIG)
    notices.print(f"Clustering {dataset.image_count} images into {_CONFIG['n_clusters']} clusters")
    return show_progress(client.watch(job.id))


def _same_config(job: Job) -> bool:
    stored = {**job.config, **job.config.get("train", {})}
    return all(stored.get(name) == value for name, value in _CONFIG.items())


def _show(client: TemiClient, job: Job, held_back: Path) -> None:
    clustering = client.clustering((job.result or {})["clustering_id"])
    majority = _majority_groups(client, clustering.id)
    print_clusters(client.clusters(clustering.id, examples=EXAMPLES), majority)
    print_metrics(clustering)
    results.print(
        "Every run on this machine gives the same clusters. Another kind of processor may assign "
        "a few drawings between two clusters differently (docs/reproducibility.md).\n"
    )
    with tempfile.TemporaryDirectory(prefix="temi-demo-") as folder:
        with zipfile.ZipFile(held_back) as archive:
            archive.extractall(folder)
        files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
        truth = {path.name: path.parent.name for path in files}
        predictions = client.predict(
            clustering.model.name, files, version=clustering.model.version, top_k=1
        )
    by_name = {found.image: truth[PurePosixPath(found.image).name] for found in predictions.data}
    print_predictions(predictions.data, predictions.model, by_name, majority)


def _majority_groups(client: TemiClient, clustering_id: str) -> dict[int, str]:
    """Returns for each cluster the true group (folder) of most of its images."""
    groups: dict[int, Counter[str]] = {}
    for row in client.assignments(clustering_id):
        if row.cluster_id is None:
            continue  # excluded
        groups.setdefault(row.cluster_id, Counter())[PurePosixPath(row.name).parent.name] += 1
    return {cluster: counts.most_common(1)[0][0] for cluster, counts in groups.items()}


def _next_steps(url: str | None) -> None:
    if url is None:
        results.print("Next: `make run` starts a service that keeps running.")
    base = (url or DEFAULT_SERVER).rstrip("/")
    results.print(f"      {base}       the workbench")
    results.print(f"      {base}/docs  the REST API")
