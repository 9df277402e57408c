"""`temi datasets`: look at collections, change them, take their labels."""

from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from app.cli.connection import connect
from app.cli.options import (
    AsJson,
    DatasetId,
    ImageIds,
    Limit,
    MinProbability,
    Revision,
    Yes,
    confirm,
)
from app.cli.output import moment, notices, print_item, print_rows, print_saved, size
from app.cli.transfers import transfer

app = typer.Typer(no_args_is_help=True, help="Collections of images.")

Format = Annotated[
    Literal["jsonl", "csv", "arrow"] | None,
    typer.Option("--format", "-f", help="By default as the file is named, else jsonl."),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", dir_okay=False, help="File to write; by default JSON lines here."),
]
_SUFFIXES: dict[str, Literal["jsonl", "csv", "arrow"]] = {
    ".csv": "csv",
    ".arrow": "arrow",
    ".arrows": "arrow",
}


@app.command("list")
def list_datasets(ctx: typer.Context, as_json: AsJson = False) -> None:
    """List the datasets, newest first."""
    with connect(ctx) as client:
        print_rows(
            client.datasets(),
            as_json,
            "Datasets",
            ["id", "name", "status", ">images", ">issues", "created"],
            lambda d: (
                *(d.id, d.name, d.status, d.image_count, d.issue_count),
                moment(d.created_at),
            ),
        )


@app.command("show")
def show(ctx: typer.Context, dataset_id: DatasetId, as_json: AsJson = False) -> None:
    """Show one dataset."""
    with connect(ctx) as client:
        print_item(client.dataset(dataset_id), as_json, f"Dataset {dataset_id}")


@app.command("rename")
def rename(
    ctx: typer.Context,
    dataset_id: DatasetId,
    name: Annotated[str, typer.Argument(metavar="NAME")],
    as_json: AsJson = False,
) -> None:
    """Give a dataset another name."""
    with connect(ctx) as client:
        print_item(client.rename_dataset(dataset_id, name), as_json, f"Dataset {dataset_id}")


@app.command("delete")
def delete(ctx: typer.Context, dataset_id: DatasetId, yes: Yes = False) -> None:
    """Delete a dataset with its images, clusterings and exports."""
    with connect(ctx) as client:
        confirm(f"Delete {dataset_id} and everything made from it?", yes)
        client.delete_dataset(dataset_id)
    notices.print(f"Deleted {dataset_id}")


@app.command("delete-images")
def delete_images(
    ctx: typer.Context,
    dataset_id: DatasetId,
    image_ids: ImageIds,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Delete images of a dataset, all of them or none."""
    with connect(ctx) as client:
        confirm(f"Delete {len(image_ids)} images of {dataset_id}?", yes)
        dataset = client.delete_images(dataset_id, image_ids)
    print_item(dataset, as_json, f"Dataset {dataset_id}")


@app.command("images")
def list_images(
    ctx: typer.Context, dataset_id: DatasetId, limit: Limit = None, as_json: AsJson = False
) -> None:
    """List the images of a dataset in the order of the upload."""
    with connect(ctx) as client:
        print_rows(
            islice(client.images(dataset_id), limit),
            as_json,
            f"Images of {dataset_id}",
            ["id", "name", "size", "format", ">bytes", "label"],
            lambda i: (
                *(i.id, i.name, f"{i.width} x {i.height}", i.format, size(i.bytes)),
                i.label or "",
            ),
        )


@app.command("issues")
def list_issues(ctx: typer.Context, dataset_id: DatasetId, as_json: AsJson = False) -> None:
    """List the files of a dataset that could not be used, and why."""
    with connect(ctx) as client:
        print_rows(
            client.issues(dataset_id),
            as_json,
            f"Issues of {dataset_id}",
            ["file", "code", "why"],
            lambda issue: (issue.name, issue.code, issue.detail),
        )


@app.command("duplicates")
def list_duplicates(
    ctx: typer.Context,
    dataset_id: DatasetId,
    kind: Annotated[Literal["exact", "near"] | None, typer.Option(help="Only these.")] = None,
    limit: Limit = None,
    as_json: AsJson = False,
) -> None:
    """List the images that show what an earlier one shows."""
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
    format_: Format = None,
    out: Out = None,
    clustering: Annotated[str | None, typer.Option(help="By default the newest.")] = None,
    revision: Revision = None,
    min_probability: MinProbability = None,
    cluster: Annotated[list[int] | None, typer.Option(min=0, help="Only it; repeatable.")] = None,
) -> None:
    """Print or save the label of every image."""
    suffix = out.suffix.lower() if out else ""
    chosen: Literal["jsonl", "csv", "arrow"] = format_ or _SUFFIXES.get(suffix, "jsonl")
    if out is None and chosen != "jsonl":
        raise typer.BadParameter(f"{chosen} needs a file to write to.", param_hint="--out")
    wanted: dict[str, Any] = {
        "clustering_id": clustering,
        "revision": revision,
        "min_probability": min_probability,
        "cluster_ids": cluster,
    }
    with connect(ctx) as client:
        if out is None:
            for row in client.labels(dataset_id, **wanted):
                print(row.model_dump_json())
            return
        with transfer("labels") as progress:
            client.save_labels(dataset_id, out, chosen, progress=progress, **wanted)
    print_saved(out)
