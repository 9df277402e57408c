"""`temi clusterings rename`, `merge`, `split`, `move`, `exclude`, `undo` and `operations`."""

from typing import Annotated

import typer

from app.cli.connection import connect
from app.cli.options import AsJson, ClusterId, ClusteringId, ImageIds
from app.cli.output import format_time, notices, print_item, print_rows
from temi_client import Operation

app = typer.Typer()

ExpectedRevision = Annotated[
    int | None,
    typer.Option("--revision", min=1, help="Fail if the clustering is at another revision."),
]


@app.command("operations")
def list_operations(
    ctx: typer.Context, clustering_id: ClusteringId, as_json: AsJson = False
) -> None:
    """List the operations on a clustering, newest first."""
    with connect(ctx) as client:
        print_rows(
            client.operations(clustering_id),
            as_json,
            f"Operations on {clustering_id}",
            [">revision", "kind", "arguments", ">images", "undone by", "time"],
            lambda o: (
                o.revision,
                o.kind,
                f"revision {o.undoes}" if o.undoes else _arguments(o),
                o.moved,
                o.undone_by or "",
                format_time(o.created_at),
            ),
        )


@app.command()
def rename(
    ctx: typer.Context,
    clustering_id: ClusteringId,
    cluster: ClusterId,
    label: Annotated[str, typer.Argument(metavar="LABEL")],
    revision: ExpectedRevision = None,
    as_json: AsJson = False,
) -> None:
    """Rename a cluster."""
    with connect(ctx) as client:
        operation = client.rename_cluster(clustering_id, cluster, label, revision=revision)
    _print_operation(operation, as_json)


@app.command()
def merge(
    ctx: typer.Context,
    clustering_id: ClusteringId,
    clusters: Annotated[list[int], typer.Argument(metavar="CLUSTERS", min=0)],
    into: Annotated[
        int | None, typer.Option(min=0, help="Cluster to keep; default: the largest.")
    ] = None,
    label: Annotated[str | None, typer.Option(help="New label.")] = None,
    revision: ExpectedRevision = None,
    as_json: AsJson = False,
) -> None:
    """Merge clusters."""
    if len(clusters) < 2:
        raise typer.BadParameter("Pass at least two clusters.", param_hint="CLUSTERS")
    with connect(ctx) as client:
        operation = client.merge_clusters(
            clustering_id, clusters, into=into, label=label, revision=revision
        )
    _print_operation(operation, as_json)


@app.command()
def split(
    ctx: typer.Context,
    clustering_id: ClusteringId,
    cluster: ClusterId,
    parts: Annotated[int, typer.Option(min=2, max=100)] = 2,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    revision: ExpectedRevision = None,
    as_json: AsJson = False,
) -> None:
    """Split a cluster by the similarity of its images."""
    with connect(ctx) as client:
        operation = client.split_cluster(
            clustering_id, cluster, parts=parts, seed=seed, revision=revision
        )
    _print_operation(operation, as_json)


@app.command()
def move(
    ctx: typer.Context,
    clustering_id: ClusteringId,
    image_ids: ImageIds,
    to: Annotated[int | None, typer.Option(min=0, help="Target cluster.")] = None,
    to_new: Annotated[
        str | None, typer.Option(metavar="LABEL", help="Label of a new target cluster.")
    ] = None,
    revision: ExpectedRevision = None,
    as_json: AsJson = False,
) -> None:
    """Move images to a cluster or to a new one; excluded images are included again."""
    if (to is None) == (to_new is None):
        raise typer.BadParameter("Pass either --to or --to-new.")
    with connect(ctx) as client:
        operation = client.move_images(
            clustering_id, image_ids, cluster_id=to, new_cluster=to_new, revision=revision
        )
    _print_operation(operation, as_json)


@app.command()
def exclude(
    ctx: typer.Context,
    clustering_id: ClusteringId,
    image_ids: ImageIds,
    revision: ExpectedRevision = None,
    as_json: AsJson = False,
) -> None:
    """Exclude images from a clustering; they stay in the dataset."""
    with connect(ctx) as client:
        operation = client.exclude_images(clustering_id, image_ids, revision=revision)
    _print_operation(operation, as_json)


@app.command()
def undo(
    ctx: typer.Context,
    clustering_id: ClusteringId,
    revision: ExpectedRevision = None,
    as_json: AsJson = False,
) -> None:
    """Undo the latest operation that is not undone yet."""
    with connect(ctx) as client:
        operation = client.undo(clustering_id, revision=revision)
    _print_operation(operation, as_json)


def _print_operation(operation: Operation, as_json: bool) -> None:
    if as_json:
        return print_item(operation, as_json, "Operation")
    new = f", new clusters {operation.new_cluster_ids}" if operation.new_cluster_ids else ""
    return notices.print(
        f"{operation.kind}: {operation.moved} images moved{new}; revision {operation.revision}",
        markup=False,
    )


def _arguments(operation: Operation) -> str:
    given = {name: value for name, value in operation.arguments.items() if value is not None}
    return ", ".join(f"{name} {value}" for name, value in given.items())
