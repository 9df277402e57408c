"""The connection to the service: the options before the command, and the client made of them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:  # imported by the first client: `temi --help` needs none
    from temi_client import TemiClient

DEFAULT_SERVER = "http://127.0.0.1:8000"

Server = Annotated[
    str,
    typer.Option(
        "--server",
        metavar="URL",
        envvar="TEMI_SERVER",
        help="Address of the service; HOST:PORT means http://HOST:PORT.",
    ),
]
ApiKey = Annotated[
    str | None, typer.Option("--api-key", metavar="KEY", envvar="TEMI_API_KEY", help="API key.")
]


@dataclass(frozen=True)
class Connection:
    """The value of `ctx.obj` in every command."""

    server: str = DEFAULT_SERVER
    api_key: str | None = None

    @property
    def url(self) -> str:
        return self.server if "://" in self.server else f"http://{self.server}"

    def client(self, *, retries: int = 5, timeout: float = 60.0) -> "TemiClient":
        import httpx

        from temi_client import TemiClient

        try:
            return TemiClient(self.url, self.api_key, retries=retries, timeout=timeout)
        except httpx.InvalidURL as error:
            message = f"{self.server!r} is not a URL: {error}"
            raise typer.BadParameter(message, param_hint="--server") from error


def connection(ctx: typer.Context) -> Connection:
    found: Connection = ctx.obj
    return found


def connect(ctx: typer.Context) -> "TemiClient":
    """Returns a client for interactive use: it gives up after about a second."""
    return connection(ctx).client(retries=2)


def connect_for_transfer(ctx: typer.Context) -> "TemiClient":
    """Returns a client that retries a broken connection for about half a minute.

    A service that cannot be reached at the start raises at once.
    """
    client = connection(ctx).client(retries=6)
    client.ready()
    return client
