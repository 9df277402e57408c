"""`temi system`."""

from collections.abc import Iterator

import typer

from app.cli.connection import connect
from app.cli.options import AsJson
from app.cli.output import print_fields, print_item
from temi_client import System


def system(ctx: typer.Context, as_json: AsJson = False) -> None:
    """Show the version, device, storage and limits of the service."""
    with connect(ctx) as client:
        found = client.system()
    if as_json:
        print_item(found, as_json, "System")
    else:
        print_fields("System", _fields(found))


def _fields(found: System) -> Iterator[tuple[str, object]]:
    yield from (("version", found.version), ("mode", found.mode), ("device", found.device))
    yield from ((name, _number(value)) for name, value in found.storage.model_dump().items())
    yield from ((name, _number(value)) for name, value in found.limits.items())
    yield "backbones", ", ".join(one.name for one in found.backbones if one.available)
    yield "auto backbone", found.auto_backbone


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
