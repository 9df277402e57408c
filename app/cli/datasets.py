"""`temi datasets`: what was uploaded, and what could not be read."""

from typing import Annotated

import typer

from app.cli.options import DEFAULT_SERVER, ApiKey, AsJson, Server, connect
from app.cli.output import print_json, print_table

app = typer.Typer(no_args_is_help=True, help="Uploaded collections.")


@app.command("list")
def list_datasets(
    server: Server = DEFAULT_SERVER, api_key: ApiKey = None, as_json: AsJson = False
) -> None:
    """List the datasets, newest first."""
    with connect(server, api_key) as client:
        found = list(client.datasets())
    if as_json:
        return print_json(found)
    columns = ["id", "name", "status", ">images", ">issues", "created"]
    rows = (
        (d.id, d.name, d.status, d.image_count, d.issue_count, f"{d.created_at:%Y-%m-%d %H:%M}")
        for d in found
    )
    return print_table("Datasets", columns, rows)


@app.command("issues")
def list_issues(
    dataset_id: Annotated[str, typer.Argument(metavar="DATASET")],
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """List the files of a dataset that could not be used, and why."""
    with connect(server, api_key) as client:
        found = list(client.issues(dataset_id))
    if as_json:
        return print_json(found)
    rows = ((issue.name, issue.code, issue.detail) for issue in found)
    return print_table(f"Issues of {dataset_id}", ["file", "code", "why"], rows)
