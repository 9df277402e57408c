"""The group of all commands: an exception ends a command with a message and an exit code."""

import os
import sys
from typing import Any

import typer
from typer.core import TyperGroup

BROKEN_PIPE = 141  # 128 + SIGPIPE, as of other programs whose output is no longer read


class ErrorReportingGroup(TyperGroup):
    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            discard_output()
            raise typer.Exit(BROKEN_PIPE) from None
        except KeyboardInterrupt as error:
            raise _exit(error) from None
        except Exception as error:
            raise _exit(error) from error


def _exit(error: BaseException) -> BaseException:
    """Returns the end of the command for an error that has a message, else the error itself."""
    from app.cli.error_report import report_error  # imports the client

    code = report_error(error)
    return error if code is None else typer.Exit(code)


def discard_output() -> None:
    """Sends what is still buffered for stdout nowhere: its reader, such as `head`, has ended."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
