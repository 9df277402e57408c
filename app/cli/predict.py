"""`temi predict`."""

import csv
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Annotated

import typer

from app.cli.batch_prediction import BatchPredictor, list_images
from app.cli.connection import connect_for_transfer
from app.cli.errors import FAILED
from app.cli.options import AsJson, FalseAlarmRate, ModelReference
from app.cli.output import atomic_write, notices, print_json, print_saved
from app.cli.progress import StageProgress
from app.cli.tables import print_predictions
from temi_client import Prediction

_STDOUT = Path("-")

Paths = Annotated[
    list[Path] | None,
    typer.Argument(exists=True, metavar="PATHS", help="Images, and folders of images."),
]
ImageIds = Annotated[
    list[str] | None,
    typer.Option("--image-id", help="Image of a dataset, instead of files; repeatable."),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        dir_okay=False,
        help="File to write, .csv or .jsonl; `-` writes JSON lines to stdout.",
    ),
]


def predict(
    ctx: typer.Context,
    model: ModelReference,
    paths: Paths = None,
    image_ids: ImageIds = None,
    top_k: Annotated[int, typer.Option("--top-k", min=1, help="Number of clusters per image.")] = 3,
    neighbors: Annotated[
        int,
        typer.Option(
            min=0, max=50, help="Most similar training images per image, in JSON and .jsonl."
        ),
    ] = 0,
    false_alarm_rate: FalseAlarmRate = None,
    keep: Annotated[
        bool, typer.Option(help="Whether the service may keep refused images, if it is set to.")
    ] = True,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Label images with a model."""
    if bool(paths) == bool(image_ids):
        raise typer.BadParameter("Pass either PATHS or --image-id.")
    _check_suffix(out)
    files = list_images(paths or [])
    if paths and not files:
        raise typer.BadParameter("There is no image in these folders.", param_hint="PATHS")
    with connect_for_transfer(ctx) as client, StageProgress() as progress:
        predictor = BatchPredictor(client, model, top_k, neighbors, false_alarm_rate, keep)
        found = predictor.predict_stored(image_ids) if image_ids else predictor.predict(files)
        rows = _Rows(found, len(image_ids or files), progress)
        if out is not None:
            _write(out, rows)
        elif as_json:
            print_json(rows)
        else:
            listed = list(rows)
    if out is None and not as_json:
        print_predictions(listed, predictor.model)
    if rows.failed:
        notices.print(
            f"[yellow]{rows.failed:,} of {rows.done:,} images have no label[/]; "
            "their rows have the reason."
        )
        raise typer.Exit(FAILED)


class _Rows:
    """The predictions as they arrive, counted."""

    def __init__(self, found: Iterable[Prediction], total: int, progress: StageProgress) -> None:
        self._found = found
        self._total = total
        self._progress = progress
        self.done = self.failed = 0

    def __iter__(self) -> Iterator[Prediction]:
        self._progress.update("predict", 0, self._total)
        for one in self._found:
            self.done += 1
            self.failed += one.error is not None
            self._progress.update("predict", self.done, self._total)
            yield one


def _check_suffix(out: Path | None) -> None:
    if out not in (None, _STDOUT) and out.suffix.lower() not in _WRITERS:
        raise typer.BadParameter(f"{out} does not end with .csv or .jsonl.", param_hint="--out")


def _write(out: Path, rows: Iterable[Prediction]) -> None:
    if out == _STDOUT:
        return _write_lines(sys.stdout, rows)
    with atomic_write(out) as file:
        _WRITERS[out.suffix.lower()](file, rows)
    return print_saved(out)


def _write_lines(file: IO[str], rows: Iterable[Prediction]) -> None:
    for one in rows:
        file.write(f"{one.model_dump_json(exclude_none=True)}\n")


def _write_csv(file: IO[str], rows: Iterable[Prediction]) -> None:
    writer = csv.writer(file)
    writer.writerow(["file", "cluster", "label", "probability", "error", "novelty"])
    for one in rows:
        sure = "" if one.probability is None else f"{one.probability:.4f}"
        error = f"{one.error.detail} ({one.error.code})" if one.error else ""
        novelty = "" if one.novelty is None else f"{one.novelty:.4f}"
        writer.writerow([one.image, one.cluster_id, one.label, sure, error, novelty])


_WRITERS: dict[str, Callable[[IO[str], Iterable[Prediction]], None]] = {
    ".csv": _write_csv,
    ".jsonl": _write_lines,
    ".ndjson": _write_lines,
}
