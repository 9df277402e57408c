"""`temi models`: versions that are compared, moved back, deleted, and carried elsewhere."""

from pathlib import Path
from typing import Annotated

import typer

from app.cli.comparison import print_comparison
from app.cli.models import Alias, Name, VersionNumber
from app.cli.options import (
    DEFAULT_SERVER,
    ApiKey,
    AsJson,
    OutFileOrFolder,
    Server,
    Yes,
    confirm,
    connect,
    connect_for_transfer,
)
from app.cli.output import moment, notices, print_item, print_rows, print_saved
from app.cli.transfers import transfer


def history(
    name: Name,
    alias: Alias,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """List the moves of an alias, newest first."""
    with connect(server, api_key) as client:
        print_rows(
            client.alias_history(name, alias),
            as_json,
            f"Moves of {name}@{alias}",
            [">number", "kind", ">from", ">to", "by", "at"],
            lambda c: (
                *(c.number, c.kind, c.before or "-", c.version or "-"),
                *(c.changed_by or "", moment(c.changed_at)),
            ),
        )


def rollback(
    name: Name,
    alias: Alias,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Point an alias at the version that it pointed to before."""
    with connect(server, api_key) as client:
        print_item(client.rollback_alias(name, alias), as_json, f"Model {name}")


def delete(
    name: Name,
    version: Annotated[
        int | None, typer.Argument(metavar="[VERSION]", min=1, help="By default all.")
    ] = None,
    yes: Yes = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Delete a version, or a model with all its versions."""
    what = f"{name}, all versions" if version is None else f"version {version} of {name}"
    with connect(server, api_key) as client:
        confirm(f"Delete {what}?", yes)
        if version is None:
            client.delete_model(name)
        else:
            client.delete_version(name, version)
    notices.print(f"Deleted {what}", markup=False)


def compare(
    name: Name,
    left: Annotated[int, typer.Argument(metavar="LEFT", min=1)],
    right: Annotated[int, typer.Argument(metavar="RIGHT", min=1)],
    dataset: Annotated[
        str | None, typer.Option(help="One that both have clustered, if there are several.")
    ] = None,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Show what differs between two versions and where images move."""
    with connect(server, api_key) as client:
        found = client.compare_versions(name, left, right, dataset_id=dataset)
    if as_json:
        print_item(found, as_json, "")
    else:
        print_comparison(found)


def export(
    name: Name,
    version: VersionNumber,
    out: OutFileOrFolder = None,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
) -> None:
    """Save a version as one file, for another service."""
    with connect_for_transfer(server, api_key) as client, transfer("download") as progress:
        saved = client.export_version(name, version, out or Path(), progress=progress)
    print_saved(saved)


def import_(
    file: Annotated[
        Path, typer.Argument(exists=True, dir_okay=False, readable=True, metavar="FILE")
    ],
    name: Annotated[str | None, typer.Option(help="By default that of the file.")] = None,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Register a version from a file that was exported."""
    with connect_for_transfer(server, api_key) as client, transfer("upload") as progress:
        version = client.import_version(file, name=name, progress=progress)
    if as_json:
        print_item(version, as_json, "")
    else:
        notices.print(f"Registered {version.name}, version {version.version}", markup=False)


def add_commands(app: typer.Typer) -> None:
    for command in (history, rollback, delete, compare, export):
        app.command(command.__name__)(command)
    app.command("import")(import_)
