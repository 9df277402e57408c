"""`temi clusterings suggest-names`."""

from collections.abc import Iterator

import typer

from app.cli.connection import connect_for_transfer
from app.cli.options import AsJson, ClusteringId, OnlyClusters
from app.cli.output import print_rows
from temi_client import ClusterNames, TemiClient

app = typer.Typer()
_BATCH = 100  # clusters of one request


@app.command("suggest-names")
def suggest_names(
    ctx: typer.Context,
    clustering_id: ClusteringId,
    cluster_ids: OnlyClusters = None,
    as_json: AsJson = False,
) -> None:
    """Suggest names for the clusters of a clustering, with their scores and sources."""
    with connect_for_transfer(ctx) as client:
        print_rows(
            _suggestions(client, clustering_id, cluster_ids),
            as_json,
            f"Names for clusters of {clustering_id}",
            [">cluster", "label", "suggestions"],
            lambda one: (
                one.cluster_id,
                one.label,
                ", ".join(
                    f"{name.name} ({name.score:.2f}, {'+'.join(name.sources)})"
                    for name in one.suggestions
                ),
            ),
        )


def _suggestions(
    client: TemiClient, clustering_id: str, cluster_ids: list[int] | None
) -> Iterator[ClusterNames]:
    numbers = cluster_ids or [one.cluster_id for one in client.clusters(clustering_id, examples=0)]
    for start in range(0, len(numbers), _BATCH):
        part = numbers[start : start + _BATCH]
        yield from client.name_suggestions(clustering_id, part).data
