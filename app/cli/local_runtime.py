"""The runtime of the settings, for commands that use the database and the storage directly."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from app.cli.errors import FAILED, print_error
from app.core.platform.processes import restricted_files
from app.core.platform.settings import get_settings

if TYPE_CHECKING:
    from app.core.runtime import Runtime


@contextmanager
def open_runtime() -> "Iterator[Runtime]":
    """Yields the runtime; creates or migrates the tables, so it works before the first start."""
    from app.core.platform.errors import ServiceError
    from app.core.platform.migrations import upgrade
    from app.core.runtime import Runtime

    runtime = Runtime(get_settings())
    with restricted_files(runtime.settings):
        try:
            upgrade(runtime.db)
            yield runtime
        except ServiceError as error:
            print_error(error.detail)
            raise typer.Exit(FAILED) from error
        finally:
            runtime.db.dispose()
