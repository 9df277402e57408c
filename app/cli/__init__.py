"""The `temi` command."""

from importlib.metadata import version
from typing import Annotated

import typer

from app.cli import (
    audit,
    backbones,
    backup,
    bench,
    cluster,
    clustering_operations,
    clusterings,
    current_clustering,
    dataset_ingest,
    datasets,
    demo,
    doctor,
    exports,
    gc,
    images,
    job_start,
    jobs,
    keys,
    model_versions,
    models,
    predict,
    serve,
    uploads,
    workers,
)
from app.cli.connection import DEFAULT_SERVER, ApiKey, Connection, Server
from app.cli.errors import ErrorReportingGroup


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"temi {version('temi-service')}")
        raise typer.Exit


Version = Annotated[
    bool,
    typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version."),
]

app = typer.Typer(
    cls=ErrorReportingGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    epilog="Connection options come before the command: temi --server URL datasets list",
)


@app.callback()
def temi(
    ctx: typer.Context,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
    _version: Version = False,
) -> None:
    """Cluster unlabeled images and label new ones."""
    ctx.obj = Connection(server, api_key)


datasets.app.add_typer(dataset_ingest.app)
datasets.app.add_typer(current_clustering.app)
jobs.app.add_typer(job_start.app, name="start")
clusterings.app.add_typer(clustering_operations.app)
models.app.add_typer(model_versions.app)

_START = "Get started"
app.command(rich_help_panel=_START)(demo.demo)
app.command(rich_help_panel=_START)(cluster.cluster)
app.command(rich_help_panel=_START)(predict.predict)

_RESOURCES = "Resources of the service"
app.add_typer(datasets.app, name="datasets", rich_help_panel=_RESOURCES)
app.add_typer(uploads.app, name="uploads", rich_help_panel=_RESOURCES)
app.add_typer(images.app, name="images", rich_help_panel=_RESOURCES)
app.add_typer(jobs.app, name="jobs", rich_help_panel=_RESOURCES)
app.add_typer(clusterings.app, name="clusterings", rich_help_panel=_RESOURCES)
app.add_typer(exports.app, name="exports", rich_help_panel=_RESOURCES)
app.add_typer(models.app, name="models", rich_help_panel=_RESOURCES)
app.add_typer(workers.app, name="workers", rich_help_panel=_RESOURCES)
app.command(rich_help_panel=_RESOURCES)(audit.audit)

_OPERATION = "Operation, on the machine of the service"
app.command(rich_help_panel=_OPERATION)(serve.serve)
app.command(rich_help_panel=_OPERATION)(serve.api)
app.command(rich_help_panel=_OPERATION)(serve.worker)
app.add_typer(keys.app, name="keys", rich_help_panel=_OPERATION)
app.add_typer(serve.db_app, name="db", rich_help_panel=_OPERATION)
app.command(rich_help_panel=_OPERATION)(backup.backup)
app.command(rich_help_panel=_OPERATION)(backup.restore)
app.command(rich_help_panel=_OPERATION)(gc.gc)
app.command(rich_help_panel=_OPERATION)(doctor.doctor)
app.command(rich_help_panel=_OPERATION)(backbones.backbones)
app.command(rich_help_panel=_OPERATION)(bench.bench)
