"""Exit codes, and how an error is printed to stderr."""

from rich.markup import escape

from app.cli.output import notices

FAILED = 1  # the job or the service
USAGE = 2  # click's own code for a wrong command line
UNREACHABLE = 3
INTERRUPTED = 130


def print_error(message: str) -> None:
    notices.print(f"[red]error[/] {escape(message)}", soft_wrap=True)
