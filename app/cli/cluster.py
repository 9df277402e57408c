"""`temi cluster`: uploads a folder of images, clusters it and prints the clusters."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from app.cli.connection import connect
from app.cli.errors import UNREACHABLE, print_error
from app.cli.options import (
    Backbone,
    Beta,
    Clusters,
    Heads,
    LabelsOption,
    Objective,
    Recipe,
    Seed,
    Select,
    Steps,
)
from app.cli.output import notices, results, write_labels
from app.cli.progress import transfer_progress, wait_for_job
from app.cli.tables import EXAMPLES, describe_count, print_clusters, print_metrics
from temi.backbones.catalog import DEFAULT_BACKBONE
from temi.config import AUTO_CLUSTERS
from temi_client import Job, LabelsFrom, ServiceUnreachable, TemiClient
from temi_client.uploads import default_name

_NO_SERVICE = "Start one with [bold]temi serve[/], or add [bold]--local[/] to work without one."
_DEFAULT_OUT = Path("labels.csv")

Folder = Annotated[
    Path,
    typer.Argument(exists=True, readable=True, metavar="FOLDER", help="A folder, zip or tar."),
]
Name = Annotated[
    str | None,
    typer.Option(
        help="Name of the dataset and the model, with --local of the CSV file; default: the "
        "folder's name."
    ),
]
Local = Annotated[bool, typer.Option("--local", help="Compute here, without a service.")]
Out = Annotated[
    Path | None,
    typer.Option(
        dir_okay=False,
        help="CSV file to write, with file, cluster and probability; with --local by default "
        "labels.csv.",
    ),
]


def cluster(
    ctx: typer.Context,
    folder: Folder,
    n_clusters: Clusters = AUTO_CLUSTERS,
    name: Name = None,
    backbone: Backbone = DEFAULT_BACKBONE,
    recipe: Recipe = "default",
    objective: Objective = "temi",
    select: Select = None,
    n_heads: Heads = None,
    beta: Beta = None,
    steps: Steps = None,
    seed: Seed = 0,
    labels_from: LabelsOption = "none",
    local: Local = False,
    out: Out = None,
) -> None:
    """Cluster a folder or archive of images."""
    settings: dict[str, Any] = {
        "n_clusters": n_clusters,
        "recipe": recipe,
        "objective": objective,
        "select": select,
        "n_heads": n_heads,
        "beta": beta,
        "steps": steps,
        "seed": seed,
    }
    if local:
        from app.cli.local_clustering import cluster_images  # imports torch

        return cluster_images(
            folder,
            name or default_name(folder),
            backbone or DEFAULT_BACKBONE,
            settings,
            labels_from,
            out or (Path(f"{name}.csv") if name else _DEFAULT_OUT),
        )
    with connect(ctx) as client:
        _require_service(client)
        dataset_id = _upload(client, folder, name, labels_from)
        job = client.create_job(dataset_id=dataset_id, backbone=backbone, **settings)
        return _report(client, wait_for_job(client, job), out)


def _require_service(client: TemiClient) -> None:
    try:
        client.ready()
    except ServiceUnreachable as error:
        print_error(str(error))
        notices.print(_NO_SERVICE)
        raise typer.Exit(UNREACHABLE) from error


def _upload(client: TemiClient, folder: Path, name: str | None, labels_from: LabelsFrom) -> str:
    notices.print(f"Uploading {escape(str(folder))}")
    with transfer_progress("upload") as progress:
        job = client.upload_dataset(folder, name=name, labels_from=labels_from, progress=progress)
    job = wait_for_job(client, job)
    result = job.result or {}
    dataset_id = str(result.get("dataset_id") or job.dataset_id)
    notices.print(f"Dataset {dataset_id}: {result.get('image_count')} images")
    if result.get("skipped_count"):
        kinds = ", ".join(f"{count} {reason}" for reason, count in result["skipped"].items())
        notices.print(f"{result['skipped_count']} files are not images: {kinds}", markup=False)
    if result.get("issue_count"):
        notices.print(
            f"[yellow]{result['issue_count']} images cannot be read[/]; "
            f"list them with: temi datasets issues {dataset_id}"
        )
    return dataset_id


def _report(client: TemiClient, job: Job, out: Path | None) -> None:
    clustering = client.clustering((job.result or {})["clustering_id"])
    print_clusters(client.clusters(clustering.id, examples=EXAMPLES))
    if count := clustering.metrics.get("count"):
        results.print(describe_count(count), markup=False, soft_wrap=True)
    print_metrics(clustering)
    if out is not None:
        rows = client.assignments(clustering.id)
        write_labels(
            out,
            (
                (row.name, row.cluster_id, row.probability)
                for row in rows
                if row.cluster_id is not None
            ),
        )
        results.print(f"Labels written to {out}", markup=False)
    results.print(f"View the clusters: {client.base_url}  (API: {client.base_url}/docs)")
    results.print(f"Label new images:  temi predict {clustering.model.name} FILES...")
