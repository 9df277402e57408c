"""`temi backup` and `temi restore`: the instance of the settings in one file."""

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn

from app.cli.instance import open_runtime
from app.cli.output import notices, size

Target = Annotated[
    Path, typer.Argument(metavar="FILE", help="To be written; or a folder, for a name by date.")
]
Source = Annotated[
    Path, typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="That a backup wrote.")
]


def backup(
    target: Target,
    without_images: Annotated[
        bool, typer.Option("--without-images", help="They are kept safe elsewhere.")
    ] = False,
) -> None:
    """Write everything to one file, while the service runs: rows, models, features, images."""
    from app.core.backup.create import create_backup

    path = target / f"temi-{time.strftime('%Y%m%d-%H%M%S')}.tar" if target.is_dir() else target
    with open_runtime() as runtime, _Saying() as said:
        made = create_backup(
            runtime.db, runtime.storage, path, images=not without_images, progress=said
        )
    rows = sum(made.tables.values())
    notices.print(f"{rows:,} rows and {made.files:,} files ({size(made.file_bytes)})", markup=False)
    if made.missing:
        notices.print(
            f"[yellow]{len(made.missing):,} files were missing or damaged before[/]; "
            "the backup names them."
        )
    print(made.path)


def restore(source: Source) -> None:
    """Bring a backup into the instance of the settings, which must be empty."""
    from app.core.backup.restore import restore_backup

    with open_runtime() as runtime, _Saying() as said:
        manifest = restore_backup(runtime.db, runtime.storage, source, progress=said)
    rows = sum(manifest["tables"].values())
    notices.print(f"Restored {rows:,} rows and {manifest['files']:,} files.", markup=False)


class _Saying:
    """A line that says how far it is, where somebody looks."""

    def __enter__(self) -> "_Saying":
        self._progress = Progress(
            SpinnerColumn(), TextColumn("{task.description}"), console=notices, transient=True
        )
        self._task = self._progress.add_task("Looking ...", total=None)
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def __call__(self, what: str, count: int) -> None:
        self._progress.update(self._task, description=f"{count:,} {what}")
