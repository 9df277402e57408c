"""`temi serve`, `temi api`, `temi worker` and `temi db`."""

import os
import sys
from typing import Annotated

import structlog
import typer
from rich.console import Console

from app.cli.errors import FAILED, print_error
from app.cli.exposure import check_exposure
from app.core.platform import tracing
from app.core.platform.processes import restrict_new_files, restricted_files
from app.core.platform.settings import Settings, get_settings

_console = Console(stderr=True)
_EXIT_SECONDS = 5.0  # to exit, after the last request was answered
db_app = typer.Typer(help="Manage the database tables.", no_args_is_help=True)

Host = Annotated[str | None, typer.Option(help="Address to bind to.")]
Port = Annotated[int | None, typer.Option(help="Port to bind to.")]
Takes = Annotated[
    str | None,
    typer.Option(metavar="cpu,gpu", help="Resources whose jobs the worker takes; default: all."),
]


def serve(host: Host = None, port: Port = None) -> None:
    """Run the API and a worker, and restart a process that dies."""
    settings = _settings(host, port)
    from app.core.platform.logs import configure_logging
    from app.core.platform.supervisor import Supervisor

    configure_logging(settings)
    restrict_new_files(settings)
    _upgrade(settings)
    _announce(settings)
    commands = {"api": _api_command(), "worker": _worker_command()}
    Supervisor(commands, stop_seconds=settings.drain_seconds + _EXIT_SECONDS).run()


def api(host: Host = None, port: Port = None) -> None:
    """Run only the API."""
    settings = _settings(host, port)
    restrict_new_files(settings)
    os.execv(sys.executable, _api_command())  # noqa: S606


def worker(takes: Takes = None) -> None:
    """Run only a worker."""
    if takes is not None:
        os.environ["TEMI_WORKER_TAKES"] = takes
        get_settings.cache_clear()
    _check_tracing(get_settings())
    restrict_new_files(get_settings())
    os.execv(sys.executable, _worker_command())  # noqa: S606


@db_app.command("upgrade")
def db_upgrade() -> None:
    """Create or upgrade the tables."""
    with restricted_files(get_settings()):
        _upgrade(get_settings())
    _console.print("The tables are up to date.")


def _announce(settings: Settings) -> None:
    url, data = f"http://{settings.host}:{settings.port}", str(settings.data_dir.absolute())
    if settings.log_format == "json":  # read by programs, line by line
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
    from app.core.platform.errors import DatabaseNewer
    from app.core.platform.migrations import upgrade

    db = Database(settings.sqlalchemy_url)
    try:
        upgrade(db)
    except DatabaseNewer as error:
        print_error(error.detail)
        raise typer.Exit(FAILED) from error
    finally:
        db.dispose()


def _settings(host: str | None, port: int | None) -> Settings:
    """Returns the settings; options override the environment, which child processes inherit."""
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
    return [sys.executable, "-m", "worker"]
