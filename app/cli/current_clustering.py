"""`temi datasets use`, `rollback` and `history`: the clustering that gives the labels."""

import typer

from app.cli.connection import connect
from app.cli.options import AsJson, ClusteringId, DatasetId
from app.cli.output import format_time, print_item, print_rows

app = typer.Typer()


@app.command()
def use(
    ctx: typer.Context, dataset_id: DatasetId, clustering_id: ClusteringId, as_json: AsJson = False
) -> None:
    """Choose the clustering that gives a dataset its labels."""
    with connect(ctx) as client:
        dataset = client.set_current_clustering(dataset_id, clustering_id)
        print_item(dataset, as_json, f"Dataset {dataset.name}")


@app.command()
def rollback(ctx: typer.Context, dataset_id: DatasetId, as_json: AsJson = False) -> None:
    """Set the current clustering back to the one before."""
    with connect(ctx) as client:
        dataset = client.rollback_current_clustering(dataset_id)
        print_item(dataset, as_json, f"Dataset {dataset.name}")


@app.command()
def history(ctx: typer.Context, dataset_id: DatasetId, as_json: AsJson = False) -> None:
    """List the changes of the current clustering, newest first."""
    with connect(ctx) as client:
        print_rows(
            client.current_clustering_history(dataset_id),
            as_json,
            f"Current clustering of {dataset_id}",
            [">number", "kind", "from", "to", "by", "at"],
            lambda c: (
                *(c.number, c.kind, c.before or "-", c.clustering_id or "-"),
                *(c.changed_by or "", format_time(c.changed_at)),
            ),
        )
