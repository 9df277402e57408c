"""`temi serve`, `temi api`, `temi worker`, `temi db`: the service's own processes."""

import os
import sys
from typing import Annotated

import structlog
import typer
from rich.console import Console

from app.cli.door import check_exposure
from app.core.platform import tracing
from app.core.platform.processes import restrict_new_files, restricted_files
from app.core.platform.settings import Settings, get_settings

_console = Console(stderr=True)
_MORE_SECONDS = 5.0  # to end, after the last request was answered
db_app = typer.Typer(help="The database's tables.", no_args_is_help=True)

Host = Annotated[str | None, typer.Option(help="Address to bind to.")]
Port = Annotated[int | None, typer.Option(help="Port to bind to.")]
Takes = Annotated[
    str | None, typer.Option(metavar="cpu,gpu", help="Which jobs; all if it is not said.")
]


def serve(host: Host = None, port: Port = None) -> None:
    """Run everything on this machine: API and worker, restarted if one dies."""
    settings = _settings(host, port)
    from app.core.platform.logs import configure_logging
    from app.core.platform.supervisor import Supervisor

    configure_logging(settings)
    restrict_new_files(settings)
    _upgrade(settings)
    _greet(settings)
    commands = {"api": _api_command(), "worker": _worker_command()}
    Supervisor(commands, stop_seconds=settings.drain_seconds + _MORE_SECONDS).run()


def api(host: Host = None, port: Port = None) -> None:
    """Run only the API: the workers and the database are elsewhere."""
    settings = _settings(host, port)
    restrict_new_files(settings)
    os.execv(sys.executable, _api_command())  # noqa: S606


def worker(takes: Takes = None) -> None:
    """Run only a worker: the API and the database are elsewhere."""
    if takes is not None:
        os.environ["TEMI_WORKER_TAKES"] = takes
        get_settings.cache_clear()
    _check_tracing(get_settings())
    restrict_new_files(get_settings())
    os.execv(sys.executable, _worker_command())  # noqa: S606


@db_app.command("upgrade")
def db_upgrade() -> None:
    """Create the tables or bring them up to date."""
    with restricted_files(get_settings()):
        _upgrade(get_settings())
    _console.print("The tables are current.")


def _greet(settings: Settings) -> None:
    url, data = f"http://{settings.host}:{settings.port}", str(settings.data_dir.absolute())
    if settings.log_format == "json":  # then machines read this, line by line
        structlog.get_logger().info("serving", url=url, data=data)
    else:
        _console.print(
            f"[bold]TEMI[/] at [link]{url}[/]  (API: /docs)  data in {data}  -  Ctrl-C stops it"
        )


def _check_tracing(settings: Settings) -> None:
    if not tracing.can_trace(settings):
        _console.print(tracing.MISSING, style="red", markup=False)
        raise typer.Exit(2)


def _upgrade(settings: Settings) -> None:
    from app.core.platform.db import Database
    from app.core.platform.migrations import upgrade

    db = Database(settings.sqlalchemy_url)
    upgrade(db)
    db.dispose()


def _settings(host: str | None, port: int | None) -> Settings:
    """Options win over the environment; the children read the same environment."""
    if host is not None:
        os.environ["TEMI_HOST"] = host
    if port is not None:
        os.environ["TEMI_PORT"] = str(port)
    get_settings.cache_clear()
    settings = get_settings()
    check_exposure(settings)
    _check_tracing(settings)
    return settings


def _api_command() -> list[str]:
    return [sys.executable, "-m", "app.server"]


def _worker_command() -> list[str]:
    # One job at a time, in this process's child: the pool must not fork under CUDA.
    return [
        *(
            sys.executable,
            "-m",
            "celery",
            "--quiet",
            "-A",
            "worker.main",
            "worker",
            "--pool",
            "solo",
        ),
        *("--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "WARNING"),
    ]
