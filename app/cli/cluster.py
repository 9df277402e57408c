"""`temi cluster`: a folder of images in, groups out."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.markup import escape

from app.cli.connection import connect
from app.cli.errors import UNREACHABLE
from app.cli.options import LabelsFrom
from app.cli.output import notices, results, write_labels
from app.cli.progress import follow
from app.cli.tables import print_clusters, print_metrics
from app.cli.transfers import transfer
from temi.backbones.catalog import DEFAULT_BACKBONE
from temi_client import Job, ServiceUnreachable, TemiClient

_NO_SERVICE = "Start one with [bold]temi serve[/], or add [bold]--local[/] to work without one."
_DEFAULT_OUT = Path("labels.csv")

Folder = Annotated[
    Path, typer.Argument(exists=True, readable=True, metavar="FOLDER", help="Or a zip or tar.")
]
Clusters = Annotated[int, typer.Option("--clusters", "-k", min=2, help="How many groups.")]
Name = Annotated[str | None, typer.Option(help="Of dataset and model; by default the folder's.")]
Backbone = Annotated[str, typer.Option(help="What turns an image into features.")]
Recipe = Annotated[
    Literal["default", "paper"], typer.Option(help="`paper`: its own schedule, many times slower.")
]
Objective = Annotated[
    Literal["temi", "wpmi", "pmi", "scan"], typer.Option(help="What the heads are trained for.")
]
Heads = Annotated[int | None, typer.Option(min=1, help="Heads trained side by side.")]
Beta = Annotated[float | None, typer.Option(help="Lower uses the clusters more evenly.")]
Steps = Annotated[int | None, typer.Option(min=1, help="Training steps; fewer is quicker.")]
Seed = Annotated[int, typer.Option(min=0)]
Local = Annotated[bool, typer.Option("--local", help="Work here, without a service.")]
Out = Annotated[
    Path | None, typer.Option(dir_okay=False, help="CSV to write: file, cluster, probability.")
]


def cluster(
    ctx: typer.Context,
    folder: Folder,
    clusters: Clusters,
    name: Name = None,
    backbone: Backbone = DEFAULT_BACKBONE,
    recipe: Recipe = "default",
    objective: Objective = "temi",
    heads: Heads = None,
    beta: Beta = None,
    steps: Steps = None,
    seed: Seed = 0,
    labels_from: LabelsFrom = "none",
    local: Local = False,
    out: Out = None,
) -> None:
    """Sort a folder of images into groups."""
    settings: dict[str, Any] = {
        "n_clusters": clusters,
        "recipe": recipe,
        "objective": objective,
        "n_heads": heads,
        "beta": beta,
        "steps": steps,
        "seed": seed,
    }
    if local:
        from app.cli.local import cluster_folder

        if not folder.is_dir():
            raise typer.BadParameter("--local needs a folder.", param_hint="FOLDER")
        return cluster_folder(folder, backbone, settings, out or _DEFAULT_OUT)
    with connect(ctx) as client:
        _require_service(client)
        dataset_id = _upload(client, folder, name, labels_from)
        job = client.create_job(dataset_id=dataset_id, backbone=backbone, **settings)
        return _report(client, follow(client, job), out)


def _require_service(client: TemiClient) -> None:
    try:
        client.ready()
    except ServiceUnreachable as error:
        notices.print(f"[red]error[/] {escape(str(error))}")
        notices.print(_NO_SERVICE)
        raise typer.Exit(UNREACHABLE) from error


def _upload(
    client: TemiClient,
    folder: Path,
    name: str | None,
    labels_from: Literal["none", "folder", "manifest"],
) -> str:
    notices.print(f"Uploading {escape(str(folder))}")
    with transfer("upload") as progress:
        job = client.upload_dataset(folder, name=name, labels_from=labels_from, progress=progress)
    job = follow(client, job)
    found = job.result or {}
    dataset_id = str(found.get("dataset_id") or job.dataset_id)
    notices.print(f"Dataset {dataset_id}: {found.get('image_count')} images")
    if found.get("issue_count"):
        notices.print(
            f"[yellow]{found['issue_count']} files were left out[/]; "
            f"see them with temi datasets issues {dataset_id}"
        )
    return dataset_id


def _report(client: TemiClient, job: Job, out: Path | None) -> None:
    clustering = client.clustering((job.result or {})["clustering_id"])
    print_clusters(client.clusters(clustering.id))
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
        results.print(f"Labels are in {out}", markup=False)
    results.print(f"Look at the groups: {client.base_url}  (API: {client.base_url}/docs)")
    results.print(f"Label new images:   temi predict {clustering.model.name} FILES...")
