"""Writes about what a worker holds, which a database that restarts may delay but not prevent."""

import time
from collections.abc import Callable

import structlog
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from app.core.platform.db import Database

_PAUSE_SECONDS = 0.5
log = structlog.get_logger()


def write_while(
    db: Database, held: Callable[[], bool], action: Callable[[Session], object]
) -> None:
    """Tried again as long as it is `held`: after that, the write would be void anyway."""
    while True:
        try:
            with db.write() as session:
                action(session)
            return
        except DBAPIError as error:
            if not held():
                raise
            log.warning("write_failed", reason=str(error.orig))
        time.sleep(_PAUSE_SECONDS)
