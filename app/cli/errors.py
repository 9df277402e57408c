"""Exit codes, and the one place that turns errors into a line on stderr."""

from typing import Any

import typer
from rich.markup import escape
from typer.core import TyperGroup

from app.cli.output import notices
from temi_client import ApiError, JobFailed, ServiceUnreachable

FAILED = 1  # the job or the service
USAGE = 2  # click's own code for a wrong command line
UNREACHABLE = 3
INTERRUPTED = 130


class ErrorReportingGroup(TyperGroup):
    """Every command below it ends with a message and an exit code, never with a traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except ServiceUnreachable as error:
            _say(str(error))
            notices.print("Start a service with [bold]temi serve[/], or name one with --server.")
            raise typer.Exit(UNREACHABLE) from error
        except ApiError as error:
            _say(str(error))
            for part in error.errors:
                notices.print(
                    f"  {escape(str(part.get('field', '')))}: "
                    f"{escape(str(part.get('message', '')))}"
                )
            if error.request_id:
                notices.print(f"  request {escape(error.request_id)}")
            raise typer.Exit(FAILED) from error
        except JobFailed as error:
            _say(str(error))
            raise typer.Exit(FAILED) from error
        except KeyboardInterrupt:
            notices.print("Interrupted")
            raise typer.Exit(INTERRUPTED) from None


def _say(message: str) -> None:
    notices.print(f"[red]error[/] {escape(message)}")
