"""The `temi` command. A command module is added by one line below."""

import typer

from app.cli import backbones, bench, cluster, datasets, demo, doctor, jobs, models, predict, serve
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
app.add_typer(datasets.app, name="datasets")
app.add_typer(jobs.app, name="jobs")
app.add_typer(models.app, name="models")
app.command("serve")(serve.serve)
app.command("api")(serve.api)
app.command("worker")(serve.worker)
app.command("doctor")(doctor.doctor)
app.command("backbones")(backbones.backbones)
app.command("bench")(bench.bench)
app.add_typer(serve.db_app, name="db")
