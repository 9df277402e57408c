"""The `temi` command. A command module is added by one line below."""

from importlib.metadata import version
from typing import Annotated

import typer

from app.cli import (
    audit,
    backbones,
    backup,
    bench,
    cluster,
    clusterings,
    datasets,
    demo,
    doctor,
    exports,
    gc,
    images,
    ingest,
    jobs,
    keys,
    model_versions,
    models,
    operations,
    predict,
    serve,
    start,
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
    epilog="Options of the connection come before the command: temi --server URL datasets list",
)


@app.callback()
def temi(
    ctx: typer.Context,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
    _version: Version = False,
) -> None:
    """Cluster images without labels, and label new images with the clusters found."""
    ctx.obj = Connection(server, api_key)


app.command("cluster")(cluster.cluster)
app.command("predict")(predict.predict)
app.command("demo")(demo.demo)
datasets.app.command("create")(ingest.create)
datasets.app.command("append")(ingest.append)
app.add_typer(datasets.app, name="datasets")
app.add_typer(uploads.app, name="uploads")
app.add_typer(images.app, name="images")
jobs.app.add_typer(start.app, name="start")
app.add_typer(jobs.app, name="jobs")
operations.add_commands(clusterings.app)
app.add_typer(clusterings.app, name="clusterings")
app.add_typer(exports.app, name="exports")
model_versions.add_commands(models.app)
app.add_typer(models.app, name="models")
app.add_typer(keys.app, name="keys")
app.add_typer(workers.app, name="workers")
app.command("audit")(audit.audit)
app.command("serve")(serve.serve)
app.command("api")(serve.api)
app.command("worker")(serve.worker)
app.command("doctor")(doctor.doctor)
app.command("backbones")(backbones.backbones)
app.command("bench")(bench.bench)
app.add_typer(serve.db_app, name="db")
app.command("backup")(backup.backup)
app.command("restore")(backup.restore)
app.command("gc")(gc.gc)
