"""`temi predict` on folders and files, with a real model."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from app.cli import app
from tests.api.conftest import COLORS
from tests.client.live import Live, running_live
from tests.images import jpeg_bytes
from tests.trained import TrainedData, live_copy, trained_data

__all__ = ["trained_data"]

COUNT = 35  # several requests: the service of the test accepts ten images in each


@pytest.fixture
def trained_live(trained_data: TrainedData, tmp_path: Path) -> Iterator[Live]:
    with running_live(live_copy(trained_data, tmp_path / "data")) as running:
        yield running


@pytest.fixture
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of images in subfolders of `photos`, relative to the current folder."""
    monkeypatch.chdir(tmp_path)
    colors = list(COLORS)
    names = [f"photos/{colors[n % 3]}/{n:02d}.jpg" for n in range(COUNT)]
    for name in names:
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(jpeg_bytes(COLORS[path.parent.name], (32, 32)))
    Path("photos/notes.txt").write_text("no image")
    Path("photos/.hidden.jpg").write_bytes(b"")
    Path("photos/gone.jpg").symlink_to("nowhere.jpg")
    return sorted(names)


def _run(live: Live, *words: object, exit_code: int = 0) -> Result:
    words = ("--server", live.url, "predict", "colors", *words)
    answer = CliRunner().invoke(app, [str(word) for word in words])
    assert answer.exit_code == exit_code, answer.output
    return answer


def test_a_folder_to_csv(trained_live: Live, photos: list[str]) -> None:
    answer = _run(trained_live, "photos", "--out", "new/labels.csv")
    with Path("new/labels.csv").open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert [row["file"] for row in rows] == photos
    assert len({(Path(row["file"]).parent.name, row["cluster"]) for row in rows}) == 3
    assert {row["error"] for row in rows} == {""}
    assert f"predict: {COUNT}/{COUNT}" in answer.stderr


def test_a_bad_file_does_not_stop_the_others(trained_live: Live, photos: list[str]) -> None:
    Path("photos/blue/broken.jpg").write_bytes(b"no image")
    Path("empty.jpg").write_bytes(b"")
    answer = _run(trained_live, "photos", "empty.jpg", "--out", "labels.jsonl", exit_code=1)
    rows = [json.loads(line) for line in Path("labels.jsonl").read_text().splitlines()]
    assert [row["image"] for row in rows] == [
        *sorted([*photos, "photos/blue/broken.jpg"]),
        "empty.jpg",
    ]
    failed = [row["image"] for row in rows if "error" in row]
    assert failed == ["photos/blue/broken.jpg", "empty.jpg"]
    assert "2 of 37 images have no label" in answer.stderr


def test_lines_on_stdout(trained_live: Live, photos: list[str]) -> None:
    answer = _run(trained_live, *photos[:2], "--out", "-")
    lines = [line for line in answer.stdout.splitlines() if line.startswith("{")]
    assert [json.loads(line)["image"] for line in lines] == photos[:2]
    assert as_names(_run(trained_live, *photos[:2], "--json")) == photos[:2]


def as_names(answer: Result) -> list[str]:
    return [row["image"] for row in json.loads(answer.stdout)]


@pytest.mark.parametrize("words", [["photos", "--out", "labels.xml"], ["empty"]])
def test_a_wrong_command_line(trained_live: Live, photos: list[str], words: list[str]) -> None:
    Path("empty").mkdir()
    _run(trained_live, *words, exit_code=2)


def test_a_version(trained_live: Live, photos: list[str]) -> None:
    words = ["--server", trained_live.url, "predict", "colors/versions/1", photos[0], "--json"]
    answer = CliRunner().invoke(app, words)
    assert answer.exit_code == 0, answer.output
    assert as_names(answer) == photos[:1]


def test_the_nearest_images_of_the_training(trained_live: Live, photos: list[str]) -> None:
    rows = json.loads(_run(trained_live, *photos[:2], "--neighbors", 3, "--json").stdout)
    for photo, row in zip(photos, rows, strict=False):
        groups = {one["name"].partition("/")[0] for one in row["neighbors"]}
        assert groups == {Path(photo).parent.name}
