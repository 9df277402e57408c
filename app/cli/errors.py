"""Exit codes, and the one place that turns errors into a line on stderr."""

from typing import Any

import typer
from rich.markup import escape
from typer.core import TyperGroup

from app.cli.output import notices
from temi_client import ApiError, ServiceUnreachable, TemiClientError, UploadInterrupted

FAILED = 1  # the job or the service
USAGE = 2  # click's own code for a wrong command line
UNREACHABLE = 3
INTERRUPTED = 130

_HINTS = {
    "revision_stale": "Someone changed it meanwhile. Look at it again, then repeat.",
    "dataset_in_use": "Wait for its jobs, or stop them: temi jobs list --dataset DATASET",
    "version_in_use": "See what points to it: temi models show NAME, temi jobs list",
    "unauthorized": "Set TEMI_API_KEY, or add --api-key.",
    "forbidden": "Whoever runs the service makes keys that may do more: temi keys create",
    "source_forbidden": "Whoever runs the service says what it may read: TEMI_SOURCE_FOLDERS, "
    "TEMI_SOURCE_BUCKETS, TEMI_SOURCE_URLS.",
}


class ErrorReportingGroup(TyperGroup):
    """Every command below it ends with a message and an exit code, never with a traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except ServiceUnreachable as error:
            _say(str(error))
            _advise(error)
            raise typer.Exit(UNREACHABLE) from error
        except ApiError as error:
            _say(str(error))
            _explain(error)
            raise typer.Exit(FAILED) from error
        except (TemiClientError, OSError) as error:  # a failed job, a damaged or unwritable file
            _say(str(error))
            raise typer.Exit(FAILED) from error
        except KeyboardInterrupt:
            notices.print("Interrupted")
            raise typer.Exit(INTERRUPTED) from None


def _say(message: str) -> None:
    notices.print(f"[red]error[/] {escape(message)}")


def _advise(error: ServiceUnreachable) -> None:
    if isinstance(error, UploadInterrupted):
        notices.print(
            f"What has arrived is kept. Go on with [bold]--resume {escape(error.upload_id)}[/]."
        )
        return
    notices.print("Start a service with [bold]temi serve[/], or name one with --server.")


def _explain(error: ApiError) -> None:
    for part in error.errors:
        notices.print(
            f"  {escape(str(part.get('field', '')))}: {escape(str(part.get('message', '')))}"
        )
    if hint := _HINTS.get(error.code):
        notices.print(f"  {escape(hint)}")
    if error.request_id:
        notices.print(f"  request {escape(error.request_id)}")
