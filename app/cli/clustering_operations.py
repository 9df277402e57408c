"""`temi clusterings operations`, and a command for each kind of operation."""

import shlex
from collections.abc import Callable
from itertools import takewhile
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from app.cli.connection import connect
from app.cli.errors import FAILED, print_error
from app.cli.options import AsJson, ClusterId, ClusteringId
from app.cli.output import format_time, notices, print_item, print_rows
from app.cli.seen_revisions import remember_revision, seen_revision
from app.cli.tables import EXAMPLES, short_name
from temi_client import ApiError, Operation, Selection, TemiClient

app = typer.Typer()

ExpectedRevision = Annotated[
    int | None,
    typer.Option(
        "--revision",
        min=1,
        help="Fail if the clustering is at another revision; default: the one you saw last.",
    ),
]
OptionalImageIds = Annotated[list[str] | None, typer.Argument(metavar="[IMAGES]")]
FromCluster = Annotated[
    int | None, typer.Option("--from", min=0, help="Instead of IMAGES: all images of a cluster.")
]
MinProbability = Annotated[
    float | None, typer.Option(min=0, max=1, help="With --from: at least this probability.")
]
MaxProbability = Annotated[
    float | None, typer.Option(min=0, max=1, help="With --from: at most this probability.")
]
ExceptImages = Annotated[
    list[str] | None,
    typer.Option("--except", metavar="IMAGE", help="With --from: an image that stays."),
]
Parts = Annotated[int, typer.Option(min=2, max=100)]
Seed = Annotated[int, typer.Option(min=0)]
_WORDS = f"{__name__}.words"


class _EditCommand(TyperCommand):
    """Keeps the words of the command line, which the message of a conflict repeats."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta[_WORDS] = list(args)
        return super().parse_args(ctx, args)


@app.command("operations")
def list_operations(
    ctx: typer.Context, clustering_id: ClusteringId, as_json: AsJson = False
) -> None:
    """List the operations on a clustering, newest first."""
    with connect(ctx) as client:
        revision = client.clustering(clustering_id).revision
        print_rows(
            client.operations(clustering_id),
            as_json,
            f"Operations on {clustering_id}",
            [">revision", "kind", "arguments", ">images", "?undone by", "by", "time"],
            lambda o: (
                o.revision,
                o.kind,
                _arguments(o),
                o.moved,
                o.undone_by or "",
                o.created_by or "",
                format_time(o.created_at),
            ),
        )
    remember_revision(clustering_id, revision)


@app.command(cls=_EditCommand)
def rename(
    ctx: typer.Context,
    clustering_id: ClusteringId,
    cluster: ClusterId,
    label: Annotated[str, typer.Argument(metavar="LABEL")],
    revision: ExpectedRevision = None,
    as_json: AsJson = False,
) -> None:
    """Rename a cluster."""
    _edit(
        ctx,
        clustering_id,
        revision,
        as_json,
        lambda client, at: client.rename_cluster(clustering_id, cluster, label, revision=at),
        lambda _client, _done: f"Cluster {cluster} is now {label!r}",
    )


@app.command(cls=_EditCommand)
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

    def describe(client: TemiClient, done: Operation) -> str:
        kept = client.get_cluster(clustering_id, int(done.arguments["into"]))
        gone = ", ".join(str(number) for number in clusters if number != kept.cluster_id)
        return (
            f"Merged {gone} into cluster {kept.cluster_id} ({kept.label!r}), "
            f"which has {kept.size:,} images now"
        )

    _edit(
        ctx,
        clustering_id,
        revision,
        as_json,
        lambda client, at: client.merge_clusters(
            clustering_id, clusters, into=into, label=label, revision=at
        ),
        describe,
    )


@app.command(cls=_EditCommand)
def split(
    ctx: typer.Context,
    clustering_id: ClusteringId,
    cluster: ClusterId,
    parts: Parts = 2,
    seed: Seed = 0,
    leave: Annotated[
        list[int] | None,
        typer.Option(min=0, help="Part of the preview to move; default: all but part 0."),
    ] = None,
    revision: ExpectedRevision = None,
    as_json: AsJson = False,
) -> None:
    """Split a cluster by the similarity of its images."""

    def describe(client: TemiClient, done: Operation) -> str:
        found = [client.get_cluster(clustering_id, n) for n in (cluster, *done.new_cluster_ids)]
        sizes = ", ".join(f"{one.cluster_id} ({one.size:,} images)" for one in found)
        return f"Split cluster {cluster} into {sizes}"

    _edit(
        ctx,
        clustering_id,
        revision,
        as_json,
        lambda client, at: client.split_cluster(
            clustering_id, cluster, parts=parts, seed=seed, leave=leave or None, revision=at
        ),
        describe,
    )


@app.command("preview-split")
def preview_split(
    ctx: typer.Context,
    clustering_id: ClusteringId,
    cluster: ClusterId,
    parts: Parts = 2,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Show the parts that a split of a cluster would make, without splitting it."""
    with connect(ctx) as client:
        found = client.preview_split(clustering_id, cluster, parts=parts, seed=seed)
    print_rows(
        found.parts,
        as_json,
        f"Parts of cluster {cluster}",
        [">part", ">images", "most typical"],
        lambda part: (
            part.part,
            part.size,
            ", ".join(short_name(example.name) for example in part.examples[:EXAMPLES]),
        ),
    )


@app.command(cls=_EditCommand)
def move(
    ctx: typer.Context,
    clustering_id: ClusteringId,
    image_ids: OptionalImageIds = None,
    from_cluster: FromCluster = None,
    min_probability: MinProbability = None,
    max_probability: MaxProbability = None,
    except_images: ExceptImages = None,
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
    chosen = _chosen(image_ids, from_cluster, min_probability, max_probability, except_images)
    _edit(
        ctx,
        clustering_id,
        revision,
        as_json,
        lambda client, at: client.move_images(
            clustering_id, chosen, cluster_id=to, new_cluster=to_new, revision=at
        ),
        lambda _client, done: (
            f"Moved {_images(done.moved)} to cluster {done.arguments['cluster_id']}"
        ),
    )


@app.command(cls=_EditCommand)
def exclude(
    ctx: typer.Context,
    clustering_id: ClusteringId,
    image_ids: OptionalImageIds = None,
    from_cluster: FromCluster = None,
    min_probability: MinProbability = None,
    max_probability: MaxProbability = None,
    except_images: ExceptImages = None,
    revision: ExpectedRevision = None,
    as_json: AsJson = False,
) -> None:
    """Exclude images from a clustering; they stay in the dataset."""
    chosen = _chosen(image_ids, from_cluster, min_probability, max_probability, except_images)
    _edit(
        ctx,
        clustering_id,
        revision,
        as_json,
        lambda client, at: client.exclude_images(clustering_id, chosen, revision=at),
        lambda _client, done: f"Excluded {_images(done.moved)}",
    )


@app.command(cls=_EditCommand)
def undo(
    ctx: typer.Context,
    clustering_id: ClusteringId,
    revision: ExpectedRevision = None,
    as_json: AsJson = False,
) -> None:
    """Undo the latest operation that is not undone yet."""
    _edit(
        ctx,
        clustering_id,
        revision,
        as_json,
        lambda client, at: client.undo(clustering_id, revision=at),
        lambda _client, done: f"Undid revision {done.undoes}: {_images(done.moved)} moved back",
    )


@app.command(cls=_EditCommand)
def redo(
    ctx: typer.Context,
    clustering_id: ClusteringId,
    revision: ExpectedRevision = None,
    as_json: AsJson = False,
) -> None:
    """Do the latest undone operation again, if nothing was edited since."""
    _edit(
        ctx,
        clustering_id,
        revision,
        as_json,
        lambda client, at: client.redo(clustering_id, revision=at),
        lambda _client, done: (
            f"Did revision {done.arguments['revision']} again: {_images(done.moved)} moved"
        ),
    )


def _chosen(
    image_ids: list[str] | None,
    from_cluster: int | None,
    min_probability: float | None,
    max_probability: float | None,
    except_images: list[str] | None,
) -> list[str] | Selection:
    """The images of the command line: their ids, or a selection of a cluster."""
    if bool(image_ids) == (from_cluster is not None):
        raise typer.BadParameter("Pass either IMAGES or --from.")
    if from_cluster is not None:
        return Selection(
            cluster_id=from_cluster,
            min_probability=min_probability,
            max_probability=max_probability,
            except_image_ids=except_images or [],
        )
    if min_probability is not None or max_probability is not None or except_images:
        raise typer.BadParameter("Pass --from, too: the other options choose images of a cluster.")
    return image_ids or []


def _edit(
    ctx: typer.Context,
    clustering_id: str,
    revision: int | None,
    as_json: bool,
    operate: Callable[[TemiClient, int], Operation],
    describe: Callable[[TemiClient, Operation], str],
) -> None:
    """Sends an operation with the revision that the user saw, and prints what it did."""
    expected = revision or seen_revision(clustering_id)
    if expected is None:
        raise typer.BadParameter(
            f"You have not seen {clustering_id} yet. Look at it first: "
            f"temi clusterings clusters {clustering_id}"
        )
    with connect(ctx) as client:
        try:
            done = operate(client, expected)
        except ApiError as error:
            if error.code != "revision_stale":
                raise
            _report_conflict(ctx, client, clustering_id, expected)
            raise typer.Exit(FAILED) from error
        remember_revision(clustering_id, done.revision)
        if as_json:
            return print_item(done, as_json, "Operation")
        text = f"{describe(client, done)}; revision {done.revision}"
        notices.print(text, markup=False, soft_wrap=True)
        for warning in done.warnings:
            notices.print(f"Warning: {warning.detail}", markup=False, soft_wrap=True)
        return None


def _report_conflict(
    ctx: typer.Context, client: TemiClient, clustering_id: str, expected: int
) -> None:
    """Prints what others have changed since; the same command works after that."""
    current = client.clustering(clustering_id).revision
    print_error(
        f"Nothing was changed: {clustering_id} is at revision {current}, and you saw {expected}."
    )
    newer = takewhile(lambda one: one.revision > expected, client.operations(clustering_id))
    for one in reversed(list(newer)):
        notices.print(f"  {_summary(one)}", markup=False, soft_wrap=True)
    if current > expected:
        remember_revision(clustering_id, current)
    clusters = f"temi clusterings clusters {clustering_id}"
    notices.print(f"See the clusters: {clusters}", markup=False, soft_wrap=True)
    notices.print(f"Then run it again: {_command(ctx)}", markup=False, soft_wrap=True)


def _summary(one: Operation) -> str:
    what = f"of {_arguments(one)}" if one.undoes else _arguments(one)
    person = f", by {one.created_by}" if one.created_by else ""
    return (
        f"revision {one.revision}: {one.kind} {what}, {_images(one.moved)} moved{person}, "
        f"{format_time(one.created_at)}"
    )


def _command(ctx: typer.Context) -> str:
    """Returns the command line without its revision."""
    words: list[str] = []
    given = iter(ctx.meta[_WORDS])
    for word in given:
        if word == "--revision":
            next(given, None)
        elif not word.startswith("--revision="):
            words.append(word)
    return shlex.join(["temi", *ctx.command_path.split()[1:], *words])


def _images(count: int) -> str:
    return "1 image" if count == 1 else f"{count:,} images"


def _arguments(operation: Operation) -> str:
    if operation.kind == "undo":
        return f"revision {operation.undoes}"
    return _listed(operation.arguments)


def _listed(values: dict[str, Any]) -> str:
    given = {name: value for name, value in values.items() if value is not None}
    return ", ".join(
        f"{name} ({_listed(value)})" if isinstance(value, dict) else f"{name} {value}"
        for name, value in given.items()
    )
