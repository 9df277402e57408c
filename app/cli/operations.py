"""`temi clusterings rename` and its like: what people do to a clustering, and its history."""

from typing import Annotated

import typer

from app.cli.connection import connect
from app.cli.options import AsJson, ClusteringId, ClusterNumber, ImageIds
from app.cli.output import moment, notices, print_item, print_rows
from temi_client import Operation

SeenRevision = Annotated[
    int | None,
    typer.Option("--revision", min=1, help="That you have seen; refused if it is an older one."),
]


def list_operations(
    ctx: typer.Context, clustering_id: ClusteringId, as_json: AsJson = False
) -> None:
    """List what people did to a clustering, newest first."""
    with connect(ctx) as client:
        print_rows(
            client.operations(clustering_id),
            as_json,
            f"Operations on {clustering_id}",
            [">revision", "kind", "what", ">images", "undone by", "time"],
            lambda o: (
                o.revision,
                o.kind,
                f"revision {o.undoes}" if o.undoes else _arguments(o),
                o.moved,
                o.undone_by or "",
                moment(o.created_at),
            ),
        )


def rename(
    ctx: typer.Context,
    clustering_id: ClusteringId,
    cluster: ClusterNumber,
    label: Annotated[str, typer.Argument(metavar="LABEL")],
    revision: SeenRevision = None,
    as_json: AsJson = False,
) -> None:
    """Give a cluster a name."""
    with connect(ctx) as client:
        done = client.rename_cluster(clustering_id, cluster, label, revision=revision)
    _report(done, as_json)


def merge(
    ctx: typer.Context,
    clustering_id: ClusteringId,
    clusters: Annotated[list[int], typer.Argument(metavar="CLUSTERS...", min=0)],
    into: Annotated[
        int | None, typer.Option(min=0, help="One of them; by default the largest.")
    ] = None,
    label: Annotated[str | None, typer.Option(help="A new name for it.")] = None,
    revision: SeenRevision = None,
    as_json: AsJson = False,
) -> None:
    """Put clusters together."""
    if len(clusters) < 2:
        raise typer.BadParameter("Name at least two.", param_hint="CLUSTERS")
    with connect(ctx) as client:
        done = client.merge_clusters(
            clustering_id, clusters, into=into, label=label, revision=revision
        )
    _report(done, as_json)


def split(
    ctx: typer.Context,
    clustering_id: ClusteringId,
    cluster: ClusterNumber,
    parts: Annotated[int, typer.Option(min=2, max=100)] = 2,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    revision: SeenRevision = None,
    as_json: AsJson = False,
) -> None:
    """Divide a cluster by what its images look like."""
    with connect(ctx) as client:
        done = client.split_cluster(
            clustering_id, cluster, parts=parts, seed=seed, revision=revision
        )
    _report(done, as_json)


def move(
    ctx: typer.Context,
    clustering_id: ClusteringId,
    image_ids: ImageIds,
    to: Annotated[int | None, typer.Option(min=0, help="A cluster.")] = None,
    to_new: Annotated[
        str | None, typer.Option(metavar="LABEL", help="A cluster to be made.")
    ] = None,
    revision: SeenRevision = None,
    as_json: AsJson = False,
) -> None:
    """Put images into a cluster, or into a new one; brings back those that were taken out."""
    if (to is None) == (to_new is None):
        raise typer.BadParameter("Give either --to or --to-new.")
    with connect(ctx) as client:
        done = client.move_images(
            clustering_id, image_ids, cluster_id=to, new_cluster=to_new, revision=revision
        )
    _report(done, as_json)


def exclude(
    ctx: typer.Context,
    clustering_id: ClusteringId,
    image_ids: ImageIds,
    revision: SeenRevision = None,
    as_json: AsJson = False,
) -> None:
    """Take images out of the clustering; they stay in the dataset."""
    with connect(ctx) as client:
        done = client.exclude_images(clustering_id, image_ids, revision=revision)
    _report(done, as_json)


def undo(
    ctx: typer.Context,
    clustering_id: ClusteringId,
    revision: SeenRevision = None,
    as_json: AsJson = False,
) -> None:
    """Take back the newest operation that still holds; again, the one before it."""
    with connect(ctx) as client:
        done = client.undo(clustering_id, revision=revision)
    _report(done, as_json)


def _report(done: Operation, as_json: bool) -> None:
    if as_json:
        return print_item(done, as_json, "Operation")
    new = f", new clusters {done.new_cluster_ids}" if done.new_cluster_ids else ""
    return notices.print(
        f"{done.kind}: {done.moved} images moved{new}; now at revision {done.revision}",
        markup=False,
    )


def _arguments(operation: Operation) -> str:
    given = {name: value for name, value in operation.arguments.items() if value is not None}
    return ", ".join(f"{name} {value}" for name, value in given.items())


def add_commands(app: typer.Typer) -> None:
    app.command("operations")(list_operations)
    for command in (rename, merge, split, move, exclude, undo):
        app.command(command.__name__)(command)
