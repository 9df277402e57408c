"""Options that several commands share."""

from typing import Annotated

import httpx
import typer

from temi_client import TemiClient

DEFAULT_SERVER = "http://127.0.0.1:8000"

Server = Annotated[
    str, typer.Option("--server", envvar="TEMI_SERVER", help="Address of the service.")
]
ApiKey = Annotated[
    str | None,
    typer.Option("--api-key", envvar="TEMI_API_KEY", show_envvar=True, help="If it needs one."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for other programs.")]


def connect(server: str, api_key: str | None) -> TemiClient:
    """A client for someone who waits at a terminal: it gives up after about a second."""
    try:
        return TemiClient(server, api_key, retries=2)
    except httpx.InvalidURL as error:
        raise typer.BadParameter(f"{server!r} is not an address: {error}") from error
