"""Structured logs: readable on a terminal, JSON for machines, one event per line.

Logs of libraries, warnings and uncaught exceptions have the same format.
"""

import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, TextIO

import structlog
from structlog.typing import EventDict, Processor

from app.core.platform.settings import Settings

_process_fields: dict[str, Any] = {}
log = structlog.get_logger()


def configure_logging(settings: Settings) -> None:
    """Configures the whole process; may be called again. Libraries log warnings and errors."""
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        _add_process_fields,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    structlog.configure(
        # Not through Python's logging, which takes twice as long: every request logs a line.
        processors=[*shared, *_renderers(settings.log_format)],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=lambda *_: structlog.WriteLogger(sys.stderr),
        cache_logger_on_first_use=False,
    )
    handler = _Stderr()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.add_logger_name],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *_renderers(settings.log_format),
            ],
        )
    )
    root = logging.getLogger()
    for old in [found for found in root.handlers if isinstance(found, _Stderr)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(max(level, logging.WARNING))
    # A filesystem broker has no host name, which kombu warns about.
    logging.getLogger("kombu.connection").setLevel(logging.ERROR)
    adopt_libraries()
    logging.captureWarnings(True)
    _log_uncaught_exceptions()


def adopt_libraries() -> None:
    """Sends the logs of libraries that write to the terminal through the root logger: uvicorn, and
    torch, which adds its handler when it is imported."""
    for logger in list(logging.root.manager.loggerDict.values()):
        if not isinstance(logger, logging.Logger):
            continue
        own = [handler for handler in logger.handlers if _writes_to_terminal(handler)]
        for handler in own:
            logger.removeHandler(handler)
        if own or logger.name.startswith("uvicorn"):  # its child loggers do not propagate
            logger.setLevel(logging.NOTSET)
            logger.propagate = True


def _writes_to_terminal(handler: logging.Handler) -> bool:
    stream = isinstance(handler, logging.StreamHandler)
    return stream and not isinstance(handler, logging.FileHandler)


def bind_process(**fields: Any) -> None:
    """Adds fields to every line of this process, in all threads."""
    _process_fields.update(_known(fields))


def bind_task(**fields: Any) -> None:
    """Adds fields to all further lines of this task, such as a request, and its threads."""
    structlog.contextvars.bind_contextvars(**_known(fields))


@contextmanager
def bound(**fields: Any) -> Iterator[None]:
    """Adds fields to the lines of this task or thread within the block."""
    with structlog.contextvars.bound_contextvars(**_known(fields)):
        yield


def _known(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def current_request_id() -> str | None:
    """The id of the request that is being handled; None outside of requests."""
    found: str | None = structlog.contextvars.get_contextvars().get("request_id")
    return found


class _Stderr(logging.StreamHandler[TextIO]):
    """Writes to the current `sys.stderr`, which tests and libraries replace."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]
        return sys.stderr


def _renderers(log_format: str) -> list[Processor]:
    if log_format == "json":
        return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    # rich tracebacks print local variables, which takes seconds
    plain = structlog.dev.plain_traceback
    return [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain)]


def _add_process_fields(_logger: Any, _method: str, event: EventDict) -> EventDict:
    return {**_process_fields, **event}


def _log_uncaught_exceptions() -> None:
    """Replaces only Python's default hooks, not those of a debugger or test runner."""
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _log_uncaught
    if threading.excepthook is threading.__excepthook__:
        threading.excepthook = _log_uncaught_in_thread


def _log_uncaught(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    log.critical("uncaught_exception", exc_info=(kind, error, trace))


def _log_uncaught_in_thread(args: threading.ExceptHookArgs) -> None:
    thread = args.thread.name if args.thread else None
    log.critical("uncaught_exception", thread=thread, exc_info=args.exc_value)
