"""`temi backup` and `temi restore`."""

import os
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn

from app.cli.local_runtime import open_runtime
from app.cli.output import format_bytes, notices

Target = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="File to write, or a folder for a file named by date; FOLDER/ is created.",
    ),
]
Source = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", exists=True, dir_okay=False, help="File that `temi backup` wrote."
    ),
]


def backup(
    target: Target,
    without_images: Annotated[
        bool, typer.Option("--without-images", help="Leave out the image files.")
    ] = False,
) -> None:
    """Back up database, models, features and images to one file, also while the service runs."""
    from app.core.backup.create import create_backup

    path = _file(target)
    with open_runtime() as runtime, _Counts() as counts:
        path.parent.mkdir(parents=True, exist_ok=True)
        made = create_backup(
            runtime.db, runtime.storage, path, images=not without_images, progress=counts
        )
    rows = sum(made.tables.values())
    notices.print(
        f"{rows:,} rows and {made.files:,} files ({format_bytes(made.file_bytes)})", markup=False
    )
    if made.missing:
        notices.print(
            f"[yellow]{len(made.missing):,} files were already missing or damaged[/]; "
            "the manifest of the backup lists them."
        )
    print(made.path)


def restore(source: Source) -> None:
    """Restore a backup into an empty installation."""
    from app.core.backup.restore import restore_backup

    with open_runtime() as runtime, _Counts() as counts:
        manifest = restore_backup(runtime.db, runtime.storage, source, progress=counts)
    rows = sum(manifest["tables"].values())
    notices.print(f"Restored {rows:,} rows and {manifest['files']:,} files.", markup=False)


def _file(target: str) -> Path:
    path = Path(target)
    if path.is_dir() or target.endswith(os.sep):
        return path / f"temi-{time.strftime('%Y%m%d-%H%M%S')}.tar"
    return path


class _Counts:
    """Shows on a terminal how many rows or files are done."""

    def __enter__(self) -> "_Counts":
        self._progress = Progress(
            SpinnerColumn(), TextColumn("{task.description}"), console=notices, transient=True
        )
        self._task = self._progress.add_task("Starting ...", total=None)
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def __call__(self, what: str, count: int) -> None:
        self._progress.update(self._task, description=f"{count:,} {what}")
