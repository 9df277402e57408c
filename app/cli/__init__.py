"""The `temi` command."""

from typing import Annotated, Any

import typer

from app.cli.connection import DEFAULT_SERVER, ApiKey, Connection, Server
from app.cli.error_group import ErrorReportingGroup
from app.cli.lazy_commands import LazyCommand, LazyCommands

_START = "Get started"
_RESOURCES = "Resources of the service"
_OPERATION = "Operation, on the machine of the service"

# The help texts stand here, too: printing them must not import the modules.
COMMANDS = {
    "demo": LazyCommand("demo:demo", _START, "Cluster a few hundred drawings and label new ones."),
    "cluster": LazyCommand("cluster:cluster", _START, "Cluster a folder or archive of images."),
    "predict": LazyCommand("predict:predict", _START, "Label images with a model."),
    "datasets": LazyCommand("datasets:app", _RESOURCES, "Create and manage datasets of images."),
    "uploads": LazyCommand("uploads:app", _RESOURCES, "Send archives as resumable uploads."),
    "images": LazyCommand("images:app", _RESOURCES, "Show, download and delete single images."),
    "jobs": LazyCommand("jobs:app", _RESOURCES, "Start and manage jobs."),
    "clusterings": LazyCommand("clusterings:app", _RESOURCES, "Show and edit clusterings."),
    "exports": LazyCommand("exports:app", _RESOURCES, "Export clusterings to files."),
    "models": LazyCommand("models:app", _RESOURCES, "List models and manage their versions."),
    "proposals": LazyCommand(
        "proposals:app", _RESOURCES, "Decide on groups of images that a model refused."
    ),
    "workers": LazyCommand("workers:app", _RESOURCES, "List workers."),
    "system": LazyCommand(
        "system:system", _RESOURCES, "Show the version, device, storage and limits of the service."
    ),
    "audit": LazyCommand(
        "audit:audit", _RESOURCES, "List the audit log, newest first; needs a key with scope admin."
    ),
    "serve": LazyCommand(
        "serve:serve", _OPERATION, "Run the API and a worker, and restart a process that dies."
    ),
    "api": LazyCommand("serve:api", _OPERATION, "Run only the API."),
    "worker": LazyCommand("serve:worker", _OPERATION, "Run only a worker."),
    "keys": LazyCommand("keys:app", _OPERATION, "Manage API keys, in the database."),
    "db": LazyCommand("serve:db_app", _OPERATION, "Manage the database tables."),
    "backup": LazyCommand(
        "backup:backup",
        _OPERATION,
        "Back up database, models, features and images to one file, also while the service runs.",
    ),
    "restore": LazyCommand(
        "backup:restore", _OPERATION, "Restore a backup into an empty installation."
    ),
    "gc": LazyCommand("gc:gc", _OPERATION, "Remove unreferenced files from the storage."),
    "doctor": LazyCommand(
        "doctor:doctor", _OPERATION, "Check this installation; exit with 1 if a check fails."
    ),
    "backbones": LazyCommand(
        "backbones:app", _OPERATION, "List named backbones and download their weights."
    ),
    "bench": LazyCommand(
        "bench:bench",
        _OPERATION,
        "Measure the speed of each stage on this machine; takes about two minutes.",
    ),
}


class _Temi(ErrorReportingGroup):
    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands: Any = LazyCommands(COMMANDS)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return list(self.commands)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        loaded, self.commands = self.commands, self.commands.summaries()
        try:
            super().format_help(ctx, formatter)
        finally:
            self.commands = loaded


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"temi {version('temi-service')}")
        raise typer.Exit


Version = Annotated[
    bool,
    typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version."),
]

app = typer.Typer(
    cls=_Temi,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    epilog="Connection options come before the command: temi --server URL datasets list",
)


@app.callback()
def temi(
    ctx: typer.Context,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
    _version: Version = False,
) -> None:
    """Cluster unlabeled images and label new ones."""
    ctx.obj = Connection(server, api_key)
