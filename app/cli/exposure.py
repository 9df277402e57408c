"""Refuses to listen beyond this machine without an API key."""

import typer
from rich.markup import escape

from app.cli.errors import USAGE
from app.cli.output import notices
from app.core.platform.settings import Settings

_KEY_NEEDED = """\
[red]Refusing to bind to {host} without an API key.[/]
Anyone who reaches that address could read your photos and use the service.
Create a key with [bold]temi keys create NAME[/], or set TEMI_API_KEY (16 characters or more), or
use --host 127.0.0.1."""


def has_key(settings: Settings) -> bool:
    """Returns whether the settings or the database hold an API key."""
    from app.core.access.keys import database_has_keys
    from app.core.platform.db import Database

    if settings.api_key is not None:
        return True
    db = Database(settings.sqlalchemy_url)
    try:
        return database_has_keys(db)
    finally:
        db.dispose()


def check_exposure(settings: Settings) -> None:
    """Exits with 2 if the service would listen beyond this machine without an API key."""
    from sqlalchemy.exc import OperationalError

    if settings.loopback_only:
        return
    try:
        if has_key(settings):
            return
    except OperationalError as error:
        reason = escape(str(error.orig).splitlines()[0])
        notices.print(f"[red]Cannot check for API keys: the database does not answer:[/] {reason}")
    else:
        notices.print(_KEY_NEEDED.format(host=escape(settings.host)))
    raise typer.Exit(USAGE)
