"""`temi clusterings changes` and `adopt`: names and edits for a new clustering of a dataset."""

from typing import Annotated

import typer

from app.cli import references
from app.cli.connection import connect
from app.cli.options import AsJson, ClusteringId
from app.cli.output import notices, print_item, print_table
from app.cli.seen_revisions import remember_revision, seen_revision
from temi_client import ChangePart, Changes, GroupChange, TemiClient

app = typer.Typer()

Since = Annotated[
    str | None,
    typer.Option(
        help="The old clustering; default: the current one of the dataset.",
        callback=references.clustering_id,
        autocompletion=references.complete_clusterings,
    ),
]


@app.command()
def changes(
    ctx: typer.Context, clustering_id: ClusteringId, since: Since = None, as_json: AsJson = False
) -> None:
    """Show what becomes of the groups of an earlier clustering."""
    with connect(ctx) as client:
        found = client.changes(clustering_id, since or _current(client, clustering_id))
    if as_json:
        print_item(found, as_json, "Changes")
    else:
        _print_changes(found)
    remember_revision(found.since, found.since_revision)
    remember_revision(found.clustering_id, found.revision)


@app.command()
def adopt(
    ctx: typer.Context,
    clustering_id: ClusteringId,
    since: Since = None,
    approve: Annotated[
        list[int] | None,
        typer.Option(min=0, metavar="CLUSTER", help="A group that takes the new grouping."),
    ] = None,
    reject: Annotated[
        list[int] | None,
        typer.Option(min=0, metavar="CLUSTER", help="A group that keeps its images."),
    ] = None,
    use: Annotated[
        bool, typer.Option("--use", help="Also make it the current clustering of the dataset.")
    ] = False,
    alias: Annotated[
        str | None, typer.Option(help="Also set this alias of the model to its version.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Take over names and edits of an earlier clustering."""
    twice = sorted({*(approve or [])} & {*(reject or [])})
    if twice:
        raise typer.BadParameter(f"Cluster {twice[0]} is in --approve and in --reject.")
    with connect(ctx) as client:
        old = since or _current(client, clustering_id)
        revision, since_revision = seen_revision(clustering_id), seen_revision(old)
        if revision is None or since_revision is None:
            raise typer.BadParameter(
                f"Look at the changes first: temi clusterings changes {clustering_id} --since {old}"
            )
        done = client.adopt(
            clustering_id,
            old,
            decisions={
                **dict.fromkeys(approve or [], "approve"),
                **dict.fromkeys(reject or [], "reject"),
            },
            make_current=use,
            alias=alias,
            revision=revision,
            since_revision=since_revision,
        )
    remember_revision(clustering_id, done.revision)
    if as_json:
        return print_item(done, as_json, "Operation")
    kept, dropped = len(done.arguments["groups"]), done.arguments["dropped_names"]
    text = f"{kept} groups taken over, {done.moved} images moved; revision {done.revision}"
    notices.print(text, markup=False, soft_wrap=True)
    for name in dropped:
        notices.print(f"No group is named {name!r} any more.", markup=False, soft_wrap=True)
    for warning in done.warnings:
        notices.print(f"Warning: {warning.detail}", markup=False, soft_wrap=True)
    notices.print(f"Undo it: temi clusterings undo {clustering_id}", markup=False, soft_wrap=True)
    return None


def _current(client: TemiClient, clustering_id: str) -> str:
    dataset = client.dataset(client.clustering(clustering_id).dataset_id)
    current = dataset.current_clustering_id
    if current is None or current == clustering_id:
        raise typer.BadParameter(
            f"{clustering_id} is the current clustering of {dataset.name!r}; pass --since.",
        )
    return current


def _print_changes(found: Changes) -> None:
    columns = [">id", "group", "becomes", ">stayed", ">left", ">came", ">new", "into", "suggested"]
    print_table(f"Groups of {found.since}", columns, map(_row, found.groups))
    if found.appeared:
        rows = (
            (each.cluster_id, each.label, each.size, each.added, _from(each.sources))
            for each in found.appeared
        )
        columns = [">id", "cluster", ">images", ">new", "from"]
        print_table(f"Appeared in {found.clustering_id}", columns, rows, titled=True)
    if found.missing:
        notices.print(
            f"{found.clustering_id} lacks {found.missing} images of {found.since}: add them with a "
            "predict job before you adopt it.",
            soft_wrap=True,
        )
    command = f"temi clusterings adopt {found.clustering_id} --since {found.since}"
    notices.print(f"Take over names and edits: {command}", markup=False, soft_wrap=True)


def _row(group: GroupChange) -> tuple[object, ...]:
    into = ", ".join(f"{part.cluster_id} ({part.share:.0%})" for part in group.into)
    others = ", ".join(map(str, group.merged_with))
    status = f"merged with {others}" if group.status == "merged" else group.status
    return (
        *(group.cluster_id, group.label, status, group.stayed, group.left, group.came),
        *(group.added, into, group.suggested),
    )


def _from(sources: list[ChangePart]) -> str:
    return ", ".join(f"{part.label} ({part.images})" for part in sources)
