"""The `temi` command. A command module is added by one line below."""

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
from app.cli.errors import ErrorReportingGroup

app = typer.Typer(
    cls=ErrorReportingGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Sort unlabeled photos into meaningful groups, then label new ones.",
)
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
