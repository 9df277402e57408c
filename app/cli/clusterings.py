"""`temi clusterings`, without the operations that edit one."""

from collections.abc import Sequence
from itertools import islice
from typing import Annotated, Literal

import typer

from app.cli import (
    clustering_changes,
    clustering_names,
    clustering_operations,
    clustering_review,
    references,
)
from app.cli.connection import connect
from app.cli.options import (
    AsJson,
    ClusterId,
    ClusteringId,
    Limit,
    OfDataset,
    OutFile,
    Yes,
    confirm,
)
from app.cli.output import (
    format_time,
    notices,
    percent,
    print_item,
    print_json,
    print_rows,
    print_table,
    write_bytes,
)
from app.cli.seen_revisions import remember_revision, seen_revision
from app.cli.tables import EXAMPLES, print_clusters
from temi_client import ImageOrder, PlotName, TemiClient

app = typer.Typer(no_args_is_help=True, help="Show and edit clusterings.")
app.add_typer(clustering_names.app)
app.add_typer(clustering_operations.app)
app.add_typer(clustering_changes.app)
app.add_typer(clustering_review.app, name="review")

Sort = Annotated[ImageOrder, typer.Option(help="Order of the images.")]
Excluded = Annotated[
    bool | None,
    typer.Option("--excluded/--not-excluded", help="Only excluded images, or only the others."),
]
Other = Annotated[
    str | None,
    typer.Option(
        help="Another clustering of the dataset, to compare with.",
        callback=references.clustering_id,
        autocompletion=references.complete_clusterings,
    ),
]


@app.command("list")
def list_clusterings(
    ctx: typer.Context, dataset_id: OfDataset = None, as_json: AsJson = False
) -> None:
    """List clusterings, newest first."""
    with connect(ctx) as client:
        print_rows(
            client.clusterings(dataset_id=dataset_id),
            as_json,
            "Clusterings",
            ["id", "model", ">clusters", ">images", "?>revision", "?created", "?dataset"],
            lambda c: (
                *(c.id, f"{c.model.name}/versions/{c.model.version}", c.n_clusters),
                *(c.image_count, c.revision, format_time(c.created_at), c.dataset_id),
            ),
        )


@app.command("show")
def show(ctx: typer.Context, clustering_id: ClusteringId, as_json: AsJson = False) -> None:
    """Show a clustering."""
    with connect(ctx) as client:
        found = client.clustering(clustering_id)
    print_item(found, as_json, f"Clustering {clustering_id}")
    remember_revision(clustering_id, found.revision)


@app.command("clusters")
def list_clusters(
    ctx: typer.Context,
    clustering_id: ClusteringId,
    examples: Annotated[int, typer.Option(min=0, max=24, help="Images per cluster.")] = EXAMPLES,
    as_json: AsJson = False,
) -> None:
    """List the clusters of a clustering with their most representative images."""
    with connect(ctx) as client:
        revision = client.clustering(clustering_id).revision  # before, not to miss an edit
        found = client.clusters(clustering_id, examples=examples)
        print_json(found) if as_json else print_clusters(found)
    remember_revision(clustering_id, revision)


@app.command("cluster")
def show_cluster(
    ctx: typer.Context, clustering_id: ClusteringId, cluster: ClusterId, as_json: AsJson = False
) -> None:
    """Show a cluster."""
    with connect(ctx) as client:
        _remember_first(client, clustering_id)
        found = client.get_cluster(clustering_id, cluster)
        print_item(found, as_json, f"Cluster {cluster} of {clustering_id}")


@app.command("images")
def list_images(
    ctx: typer.Context,
    clustering_id: ClusteringId,
    cluster: ClusterId,
    sort: Sort = "representative",
    similar_to: Annotated[
        str | None, typer.Option(help="An image; the most similar ones are first.")
    ] = None,
    limit: Limit = None,
    as_json: AsJson = False,
) -> None:
    """List the images of a cluster, by default the most representative first."""
    sort = "similar" if similar_to else sort
    with connect(ctx) as client:
        _remember_first(client, clustering_id)
        found = client.cluster_images(clustering_id, cluster, sort=sort, similar_to=similar_to)
        print_rows(
            islice(found, limit),
            as_json,
            f"Images of cluster {cluster}, {sort} first",
            ["image", "name", ">probability", ">margin", ">distance", "?>similarity"],
            lambda i: (
                *(i.image_id, i.name, percent(i.probability)),
                *(f"{i.margin:.3f}", f"{i.distance:.3f}"),
                "" if i.similarity is None else f"{i.similarity:.3f}",
            ),
        )


@app.command("similar")
def list_similar(
    ctx: typer.Context,
    clustering_id: ClusteringId,
    cluster: ClusterId,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Number of clusters.")] = 10,
    as_json: AsJson = False,
) -> None:
    """List the clusters that are most similar to a cluster: candidates to merge."""
    with connect(ctx) as client:
        _remember_first(client, clustering_id)
        print_rows(
            client.similar_clusters(clustering_id, cluster, limit=limit).data,
            as_json,
            f"Clusters similar to cluster {cluster}",
            [">cluster", "label", ">images", ">similarity"],
            lambda c: (c.cluster_id, c.label, c.size, f"{c.similarity:.3f}"),
        )


@app.command("hierarchy")
def show_hierarchy(
    ctx: typer.Context,
    clustering_id: ClusteringId,
    groups: Annotated[int, typer.Option(min=1, max=1000, help="Number of groups.")],
    as_json: AsJson = False,
) -> None:
    """Show the clusters in fewer groups of similar ones, and the commands that merge each group."""
    with connect(ctx) as client:
        _remember_first(client, clustering_id)
        found = client.hierarchy(clustering_id, groups)
    if as_json:
        return print_item(found, as_json, f"Groups of {clustering_id}")
    print_table(
        f"{found.n_groups} groups of {clustering_id}",
        ["label", ">images", ">clusters", "cluster ids"],
        (
            (group.label, group.size, len(group.cluster_ids), _numbers(group.cluster_ids, ", "))
            for group in found.groups
        ),
    )
    commands = [
        f"temi clusterings merge {clustering_id} {_numbers(ids)} --into {ids[0]}"
        for ids in (group.cluster_ids for group in found.groups)
        if len(ids) > 1
    ]
    if commands:
        notices.print("To make each group one cluster:")
    for command in commands:
        notices.print(f"  {command}", markup=False, soft_wrap=True)
    return None


def _numbers(cluster_ids: Sequence[int], between: str = " ") -> str:
    return between.join(str(number) for number in cluster_ids)


@app.command("assignments")
def list_assignments(
    ctx: typer.Context,
    clustering_id: ClusteringId,
    cluster: Annotated[int | None, typer.Option(min=0, help="Only this cluster.")] = None,
    excluded: Excluded = None,
    other: Other = None,
    other_cluster: Annotated[
        int | None, typer.Option(min=0, help="Only images in this cluster of --other.")
    ] = None,
    limit: Limit = None,
    as_json: AsJson = False,
) -> None:
    """List the cluster of every image of a clustering."""
    if (other is None) != (other_cluster is None):
        raise typer.BadParameter("Pass --other and --other-cluster together.")
    with connect(ctx) as client:
        _remember_first(client, clustering_id)
        found = client.assignments(
            clustering_id, cluster, excluded=excluded, other=other, other_cluster_id=other_cluster
        )
        print_rows(
            islice(found, limit),
            as_json,
            f"Assignments of {clustering_id}",
            ["image", "name", ">cluster", "label", ">probability"],
            lambda a: (
                a.image_id,
                a.name,
                "-" if a.cluster_id is None else a.cluster_id,
                "excluded" if a.excluded else a.label or "",
                percent(a.probability),
            ),
        )


@app.command("statistics")
def statistics(ctx: typer.Context, clustering_id: ClusteringId, as_json: AsJson = False) -> None:
    """Show the probabilities and cluster sizes of a clustering."""
    with connect(ctx) as client:
        print_item(client.statistics(clustering_id), as_json, f"Statistics of {clustering_id}")


@app.command("contact-sheet")
def contact_sheet(
    ctx: typer.Context,
    clustering_id: ClusteringId,
    cluster: ClusterId,
    out: OutFile,
    rows: Annotated[int, typer.Option(min=1, max=10)] = 3,
    columns: Annotated[int, typer.Option(min=1, max=12)] = 6,
    borderline_rows: Annotated[
        int, typer.Option(min=0, max=5, help="Rows with borderline images.")
    ] = 1,
) -> None:
    """Download the contact sheet of a cluster (PNG)."""
    with connect(ctx) as client:
        sheet = client.contact_sheet(
            clustering_id, cluster, rows=rows, columns=columns, borderline_rows=borderline_rows
        )
    write_bytes(out, sheet)


@app.command("plot")
def plot(
    ctx: typer.Context,
    clustering_id: ClusteringId,
    name: Annotated[PlotName, typer.Argument(help="Name of the plot.")],
    out: OutFile,
) -> None:
    """Download a plot of a clustering (PNG, or SVG if --out ends with .svg)."""
    kind: Literal["png", "svg"] = "svg" if out.suffix.lower() == ".svg" else "png"
    with connect(ctx) as client:
        write_bytes(out, client.plot(clustering_id, name, format=kind))


@app.command("delete")
def delete(ctx: typer.Context, clustering_id: ClusteringId, yes: Yes = False) -> None:
    """Delete a clustering with its history and exports."""
    with connect(ctx) as client:
        found = client.clustering(clustering_id)
        dataset = client.dataset(found.dataset_id)
        what = f"the clustering of dataset {dataset.name} with {found.image_count:,} images"
        confirm(f"Delete {what}, its {found.revision - 1:,} edits and its exports?", yes)
        client.delete_clustering(clustering_id)
    notices.print(f"Deleted {what} ({clustering_id})", markup=False)


def _remember_first(client: TemiClient, clustering_id: str) -> None:
    """For a view of a part: after it, the user has not seen what changed in the other parts."""
    if seen_revision(clustering_id) is None:
        remember_revision(clustering_id, client.clustering(clustering_id).revision)
