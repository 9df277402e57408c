"""`temi models`: models and aliases."""

import typer

from app.cli import model_trust, model_versions
from app.cli.connection import connect
from app.cli.options import Alias, AsJson, Name, VersionNumber
from app.cli.output import format_time, notices, print_item, print_json, print_table
from temi_client import Model

app = typer.Typer(invoke_without_command=True, help="List models and manage their versions.")
app.add_typer(model_versions.app)
app.add_typer(model_trust.app)


@app.callback()
def models(ctx: typer.Context, as_json: AsJson = False) -> None:
    """Lists the models if no command follows."""
    if ctx.invoked_subcommand is None:
        list_models(ctx, as_json)


@app.command("list")
def list_models(ctx: typer.Context, as_json: AsJson = False) -> None:
    """List models."""
    with connect(ctx) as client:
        models = list(client.models())
    if as_json:
        return print_json(models)
    rows = (
        (model.name, model.latest_version, _aliases(model), format_time(model.created_at))
        for model in models
    )
    return print_table("Models", ["name", ">latest", "aliases", "created"], rows)


@app.command("show")
def show(ctx: typer.Context, name: Name, as_json: AsJson = False) -> None:
    """List the versions of a model."""
    with connect(ctx) as client:
        model = client.model(name)
        versions = list(client.model_versions(name))
    if as_json:
        return print_json(versions)
    rows = (
        (
            version.version,
            ", ".join(alias for alias, n in model.aliases.items() if n == version.version),
            version.clustering_id or "imported",
            format_time(version.created_at),
        )
        for version in versions
    )
    return print_table(
        f"Versions of {model.name}", [">version", "aliases", "clustering", "created"], rows
    )


@app.command("alias")
def set_alias(
    ctx: typer.Context, name: Name, alias: Alias, version: VersionNumber, as_json: AsJson = False
) -> None:
    """Set an alias, such as `production`, to a version."""
    with connect(ctx) as client:
        print_item(client.set_alias(name, alias, version), as_json, f"Model {name}")


@app.command("unalias")
def delete_alias(ctx: typer.Context, name: Name, alias: Alias) -> None:
    """Remove an alias."""
    with connect(ctx) as client:
        client.delete_alias(name, alias)
    notices.print(f"Removed {name}@{alias}", markup=False)


@app.command("loaded")
def show_loaded(ctx: typer.Context, as_json: AsJson = False) -> None:
    """List the models loaded for predictions."""
    with connect(ctx) as client:
        loaded = client.loaded_models()
    if as_json:
        return print_json(loaded)
    rows = (
        (f"{one.model.name}, version {one.model.version}", one.backend, one.precision)
        for one in loaded
    )
    return print_table("Loaded models", ["model", "backend", "precision"], rows)


def _aliases(model: Model) -> str:
    return ", ".join(f"{alias} -> {version}" for alias, version in model.aliases.items())
