"""`temi datasets`, without `create` and `append`."""

from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli import current_clustering, dataset_ingest, dataset_search, references
from app.cli.connection import connect
from app.cli.options import (
    AsJson,
    DatasetId,
    ImageIds,
    Limit,
    MinProbability,
    OnlyClusters,
    Revision,
    Yes,
    confirm,
)
from app.cli.output import format_bytes, format_time, notices, print_item, print_rows, print_saved
from app.cli.progress import transfer_progress
from temi_client import DuplicateKind, LabelFormat

app = typer.Typer(no_args_is_help=True, help="Create and manage datasets of images.")
app.add_typer(dataset_ingest.app)
app.add_typer(dataset_search.app)
app.add_typer(current_clustering.app)

Format = Annotated[
    LabelFormat | None,
    typer.Option("--format", "-f", help="Default: from the file's suffix, else jsonl."),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", dir_okay=False, help="File to write; default: stdout."),
]
_SUFFIXES: dict[str, LabelFormat] = {".csv": "csv", ".arrow": "arrow", ".arrows": "arrow"}


@app.command("list")
def list_datasets(ctx: typer.Context, as_json: AsJson = False) -> None:
    """List datasets, newest first."""
    with connect(ctx) as client:
        print_rows(
            client.datasets(),
            as_json,
            "Datasets",
            ["id", "name", "status", ">images", "?>issues", "?>skipped", "?created"],
            lambda d: (
                *(d.id, d.name, d.status, d.image_count, d.issue_count, d.skipped_count),
                format_time(d.created_at),
            ),
        )


@app.command("show")
def show(ctx: typer.Context, dataset_id: DatasetId, as_json: AsJson = False) -> None:
    """Show a dataset."""
    with connect(ctx) as client:
        print_item(client.dataset(dataset_id), as_json, f"Dataset {dataset_id}")


@app.command("rename")
def rename(
    ctx: typer.Context,
    dataset_id: DatasetId,
    name: Annotated[str, typer.Argument(metavar="NAME")],
    as_json: AsJson = False,
) -> None:
    """Rename a dataset."""
    with connect(ctx) as client:
        print_item(client.rename_dataset(dataset_id, name), as_json, f"Dataset {dataset_id}")


@app.command("delete")
def delete(ctx: typer.Context, dataset_id: DatasetId, yes: Yes = False) -> None:
    """Delete a dataset with its images, clusterings and exports."""
    with connect(ctx) as client:
        dataset = client.dataset(dataset_id)
        what = f"dataset {dataset.name} with {dataset.image_count:,} images"
        confirm(f"Delete {what}, and all clusterings and exports of it?", yes)
        client.delete_dataset(dataset_id)
    notices.print(f"Deleted {what} ({dataset_id})", markup=False)


@app.command("delete-images")
def delete_images(
    ctx: typer.Context,
    dataset_id: DatasetId,
    image_ids: ImageIds,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Delete images from a dataset, all or none of them."""
    with connect(ctx) as client:
        dataset = client.dataset(dataset_id)
        count = f"{len(image_ids):,} of {dataset.image_count:,} images"
        confirm(f"Delete {count} from dataset {dataset.name}?", yes)
        dataset = client.delete_images(dataset_id, image_ids)
    print_item(dataset, as_json, f"Dataset {dataset_id}")


@app.command("images")
def list_images(
    ctx: typer.Context, dataset_id: DatasetId, limit: Limit = None, as_json: AsJson = False
) -> None:
    """List the images of a dataset, in upload order."""
    with connect(ctx) as client:
        print_rows(
            islice(client.images(dataset_id), limit),
            as_json,
            f"Images of {dataset_id}",
            ["id", "name", "?size", "?format", "?>bytes", "?label"],
            lambda i: (
                *(i.id, i.name, f"{i.width} x {i.height}", i.format, format_bytes(i.bytes)),
                i.label or "",
            ),
        )


@app.command("issues")
def list_issues(ctx: typer.Context, dataset_id: DatasetId, as_json: AsJson = False) -> None:
    """List the files of a dataset that could not be imported, with the reason."""
    with connect(ctx) as client:
        print_rows(
            client.issues(dataset_id),
            as_json,
            f"Issues of {dataset_id}",
            ["file", "code", "reason"],
            lambda issue: (issue.name, issue.code, issue.detail),
        )


@app.command("duplicates")
def list_duplicates(
    ctx: typer.Context,
    dataset_id: DatasetId,
    kind: Annotated[
        DuplicateKind | None, typer.Option(help="Only duplicates of this kind.")
    ] = None,
    limit: Limit = None,
    as_json: AsJson = False,
) -> None:
    """List duplicate images of a dataset."""
    with connect(ctx) as client:
        print_rows(
            islice(client.duplicates(dataset_id, kind=kind), limit),
            as_json,
            f"Duplicates in {dataset_id}",
            ["image", "kind", "of", ">similarity"],
            lambda d: (
                d.name or d.image_id,
                d.kind,
                d.original_name or d.original_id,
                f"{d.similarity:.3f}",
            ),
        )


@app.command("labels")
def labels(
    ctx: typer.Context,
    dataset_id: DatasetId,
    format: Format = None,
    out: Out = None,
    clustering: Annotated[
        str | None,
        typer.Option(
            help="Default: the current clustering.",
            callback=references.clustering_id,
            autocompletion=references.complete_clusterings,
        ),
    ] = None,
    revision: Revision = None,
    min_probability: MinProbability = None,
    cluster_ids: OnlyClusters = None,
) -> None:
    """Print or download the label of every image of a dataset."""
    suffix = out.suffix.lower() if out else ""
    chosen = format or _SUFFIXES.get(suffix, "jsonl")
    if out is None and chosen != "jsonl":
        raise typer.BadParameter(f"Format {chosen} needs --out FILE.", param_hint="--out")
    selection: dict[str, Any] = {
        "clustering_id": clustering,
        "revision": revision,
        "min_probability": min_probability,
        "cluster_ids": cluster_ids,
    }
    with connect(ctx) as client:
        if out is None:
            for row in client.labels(dataset_id, **selection):
                print(row.model_dump_json())
            return
        with transfer_progress("labels") as progress:
            client.save_labels(dataset_id, out, chosen, progress=progress, **selection)
    print_saved(out)
