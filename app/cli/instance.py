"""Commands that work on the database and the storage of the settings, without a service."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer
from rich.markup import escape

from app.cli.errors import FAILED
from app.cli.output import notices
from app.core.platform.processes import restricted_files
from app.core.platform.settings import get_settings

if TYPE_CHECKING:
    from app.core.runtime import Runtime


@contextmanager
def open_runtime() -> "Iterator[Runtime]":
    """With current tables, so that it also works before the first start."""
    from app.core.platform.errors import ServiceError
    from app.core.platform.migrations import upgrade
    from app.core.runtime import Runtime

    runtime = Runtime(get_settings())
    with restricted_files(runtime.settings):
        try:
            upgrade(runtime.db)
            yield runtime
        except ServiceError as error:
            notices.print(f"[red]error[/] {escape(error.detail)}")
            raise typer.Exit(FAILED) from error
        finally:
            runtime.db.dispose()
