"""The messages of errors that end a command, on stderr.

Apart from `errors`, because it imports the client, which `temi serve` does not need.
"""

from typing import get_args

from pydantic import SecretStr, ValidationError
from pydantic_core import ErrorDetails
from rich.markup import escape

from app.cli.errors import FAILED, INTERRUPTED, UNREACHABLE, USAGE, print_error
from app.cli.output import notices
from temi_client import ApiError, ServiceUnreachable, TemiClientError, UploadInterrupted

_HINTS = {
    "dataset_in_use": "Wait for its jobs or cancel them: temi jobs list --dataset DATASET",
    "version_in_use": "List its aliases and jobs: temi models show NAME, temi jobs list",
    "unauthorized": "Set TEMI_API_KEY, or pass the key before the command: temi --api-key KEY ...",
    "invalid_api_key": "Check TEMI_API_KEY, or ask the operator of the service for a new key.",
    "forbidden": "Ask the operator of the service for a key with more scopes (temi keys create).",
    "source_forbidden": "The operator of the service sets the allowed sources: "
    "TEMI_SOURCE_FOLDERS, TEMI_SOURCE_BUCKETS, TEMI_SOURCE_URLS.",
}


def report_error(error: BaseException) -> int | None:
    """Prints an error that a user can understand, and returns the exit code; None for others."""
    match error:
        case ServiceUnreachable():
            print_error(str(error))
            _print_unreachable_hint(error)
            return UNREACHABLE
        case ApiError():
            print_error(str(error))
            _print_details(error)
            return FAILED
        case TemiClientError() | OSError():  # a failed job, a damaged or unwritable file
            print_error(str(error))
            return FAILED
        case ValidationError() if error.title == "Settings":
            for problem in error.errors(include_url=False):
                print_error(_describe_setting(problem))
            return USAGE
        case KeyboardInterrupt():
            notices.print("Interrupted")
            return INTERRUPTED
    return None


def _describe_setting(problem: ErrorDetails) -> str:
    """An invalid setting with its value, unless the value is a secret or belongs to several."""
    from app.core.platform.settings import Settings

    message = problem["msg"].removeprefix("Value error, ")
    if not problem["loc"]:
        return f"{message} (docs/settings.md)."
    name = str(problem["loc"][0])
    value = (
        ""
        if SecretStr in get_args(Settings.model_fields[name].annotation)
        else f" is {problem['input']!r}"
    )
    return f"TEMI_{name.upper()}{value}: {message} (docs/settings.md)."


def _print_unreachable_hint(error: ServiceUnreachable) -> None:
    if isinstance(error, UploadInterrupted):
        notices.print(
            "The bytes received so far are kept. "
            f"Continue with [bold]--resume {escape(error.upload_id)}[/]."
        )
        return
    notices.print(
        "Start a service with [bold]temi serve[/], or name one before the command: "
        "temi --server URL ..."
    )


def _print_details(error: ApiError) -> None:
    for entry in error.errors:
        notices.print(
            f"  {escape(str(entry.get('field', '')))}: {escape(str(entry.get('message', '')))}"
        )
    if hint := _HINTS.get(error.code):
        notices.print(f"  {escape(hint)}")
    if error.request_id:
        notices.print(f"  request {escape(error.request_id)}")
