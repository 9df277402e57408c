"""Who may knock: beyond this machine nobody, before there is a key."""

import typer
from rich.markup import escape

from app.cli.errors import USAGE
from app.cli.output import notices
from app.core.platform.settings import Settings

_KEY_NEEDED = """\
[red]Refusing to bind to {host} without an API key.[/]
Anyone who reaches that address could read your photos and use the service.
Make a key with [bold]temi keys create NAME[/], or set TEMI_API_KEY (16 characters or more), or keep
--host 127.0.0.1."""


def has_key(settings: Settings) -> bool:
    """In the settings or in the database."""
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
    """Before anything listens."""
    from sqlalchemy.exc import OperationalError

    if settings.loopback_only:
        return
    try:
        if has_key(settings):
            return
    except OperationalError as error:
        reason = escape(str(error.orig).splitlines()[0])
        notices.print(f"[red]The database cannot be asked whether there is a key:[/] {reason}")
    else:
        notices.print(_KEY_NEEDED.format(host=escape(settings.host)))
    raise typer.Exit(USAGE)
