"""Options and arguments that several commands share."""

from pathlib import Path
from typing import Annotated, Literal

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for other programs.")]
Wait = Annotated[bool, typer.Option("--wait", help="Follow the job until it ends.")]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="At most this many rows.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Priority = Annotated[
    int | None,
    typer.Option(min=-100, max=100, help="Higher runs sooner, among one's own; 0 if not said."),
]
WebhookUrl = Annotated[str | None, typer.Option(help="Address to tell when the job ends.")]
Revision = Annotated[
    int | None, typer.Option(min=1, help="Of the clustering; by default the current one.")
]
MinProbability = Annotated[
    float | None, typer.Option(min=0, max=1, help="Leave out images that are less sure.")
]
OutFile = Annotated[Path, typer.Option("--out", "-o", dir_okay=False, help="File to write.")]
OutFileOrFolder = Annotated[
    Path | None, typer.Option("--out", "-o", help="File or folder to write to; by default here.")
]
LabelsFrom = Annotated[
    Literal["none", "folder", "manifest"],
    typer.Option(
        "--labels-from",
        help="Labels, for metrics only: subfolders, or a manifest.csv or .jsonl at the root.",
    ),
]

DatasetId = Annotated[str, typer.Argument(metavar="DATASET")]
ImageId = Annotated[str, typer.Argument(metavar="IMAGE")]
ImageIds = Annotated[list[str], typer.Argument(metavar="IMAGES...")]
JobId = Annotated[str, typer.Argument(metavar="JOB")]
ClusteringId = Annotated[str, typer.Argument(metavar="CLUSTERING")]
ClusterNumber = Annotated[int, typer.Argument(metavar="CLUSTER", min=0)]
ExportId = Annotated[str, typer.Argument(metavar="EXPORT")]
ModelReference = Annotated[
    str, typer.Argument(metavar="MODEL", help="NAME, NAME@ALIAS or NAME/versions/N")
]


def confirm(question: str, yes: bool) -> None:
    """Deleting is asked about once, unless the command line has answered."""
    if not yes:
        typer.confirm(question, abort=True, err=True)
