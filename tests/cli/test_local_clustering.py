"""`temi cluster --local`: the same groups as those of the service, from folders and archives."""

import csv
import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants
from PIL import Image
from typer.testing import CliRunner, Result

from app.cli import app
from tests.client.live import Live, running_live
from tests.images import zip_of
from tests.trained import TrainedData, live_copy, trained_data

__all__ = ["trained_data"]

QUICK = ["--heads", "2", "--steps", "40"]


def _run(*words: object, exit_code: int = 0) -> Result:
    answer = CliRunner().invoke(app, ["cluster", *map(str, words), "--local"])
    assert answer.exit_code == exit_code, answer.output
    return answer


def _labels(path: Path) -> dict[str, int]:
    with path.open(newline="") as handle:
        return {row["file"]: int(row["cluster"]) for row in csv.DictReader(handle)}


def _two_colors() -> dict[str, bytes]:
    files = {}
    for number in range(12):
        color = (200 + number, 20, 20) if number % 2 else (20, 20, 200 + number)
        image = io.BytesIO()
        Image.new("RGB", (48, 48), color).save(image, "PNG")
        files[f"{'red' if number % 2 else 'blue'}/{number:02d}.png"] = image.getvalue()
    return dict(sorted(files.items()))


def _write_folder(folder: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def _tar(path: Path, files: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return path


@pytest.fixture
def trained_live(trained_data: TrainedData, tmp_path: Path) -> Iterator[Live]:
    with running_live(live_copy(trained_data, tmp_path / "data")) as running:
        yield running


def test_the_service_gives_the_same_groups(
    trained_data: TrainedData, trained_live: Live, tmp_path: Path
) -> None:
    photos = tmp_path / "photos"
    with trained_live.client() as client:
        (dataset,) = client.datasets()
        for image in client.images(dataset.id):
            (photos / image.name).parent.mkdir(parents=True, exist_ok=True)
            client.image_content(image.id, photos / image.name)
        archive = tmp_path / "photos.zip"
        names = [image.name for image in client.images(dataset.id)]
        archive.write_bytes(zip_of({name: (photos / name).read_bytes() for name in names}))
        clustering = client.clustering(trained_data.job["result"]["clustering_id"])
        served = {row.name: row.cluster_id for row in client.assignments(clustering.id)}
        probabilities = {row.name: row.probability for row in client.assignments(clustering.id)}
    out = tmp_path / "labels.csv"
    _run(archive, "-k", 3, "--heads", 4, "--steps", 60, "--out", out)
    assert _labels(out) == served
    with out.open(newline="") as handle:
        for row in csv.DictReader(handle):
            assert float(row["probability"]) == pytest.approx(probabilities[row["file"]], abs=1e-4)


def test_the_number_of_clusters_is_found(tmp_path: Path) -> None:
    folder = _write_folder(tmp_path / "colors", _two_colors())
    answer = _run(folder, "--out", tmp_path / "labels.csv", *QUICK)
    assert "Found 2 clusters" in answer.stderr
    assert set(_labels(tmp_path / "labels.csv").values()) == {0, 1}


def test_folders_and_archives_give_the_same(tmp_path: Path) -> None:
    files = _two_colors()
    archive = tmp_path / "colors.zip"
    archive.write_bytes(zip_of(files))
    sources = [
        _write_folder(tmp_path / "colors", files),
        archive,
        _tar(tmp_path / "colors.tar.gz", files),
    ]
    found = []
    for number, source in enumerate(sources):
        out = tmp_path / f"{number}.csv"
        answer = _run(source, "-k", 2, "--out", out, *QUICK, "--labels-from", "folder")
        assert "TEMI\t100.0 %" in answer.stdout
        found.append(_labels(out))
    assert found[0] == found[1] == found[2]
    assert list(found[0]) == list(files)


def test_labels_of_a_manifest(tmp_path: Path) -> None:
    files = _two_colors()
    rows = "".join(f"{name},{name.split('/')[0]}\n" for name in files)
    folder = _write_folder(tmp_path / "colors", files)
    words = ("-k", 2, "--out", tmp_path / "labels.csv", *QUICK, "--labels-from", "manifest")
    assert "no manifest" in _run(folder, *words, exit_code=1).stderr
    (folder / "manifest.csv").write_text(f"path,label\n{rows}")
    answer = _run(folder, *words)
    assert "labels of 12 images" in answer.stdout
    assert "skipped" not in answer.stderr


def test_bad_files_are_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = _two_colors()
    bad = {"notes.txt": b"not an image", "broken.png": files["red/01.png"][:40]}
    folder = _write_folder(tmp_path / "colors", files | bad)
    monkeypatch.chdir(folder)  # the labels of an earlier run are no image
    for _ in range(2):
        answer = _run(".", "-k", 2, "--name", "shades", *QUICK)
        assert list(_labels(folder / "shades.csv")) == list(files)
        assert "Clusters of shades" in answer.stdout
        assert "2 files were skipped" in answer.stderr
        assert "image_undecodable" in answer.stderr
        assert "train: 40/40" in answer.stderr


def test_the_backbone_is_chosen_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    folder = _write_folder(tmp_path / "colors", _two_colors())
    words = (folder, "-k", 2, "--out", tmp_path / "labels.csv", *QUICK)
    answer = _run(*words, "--backbone", "auto")
    assert "The backbone is efficientnet_lite0, the best one whose weights are" in answer.stderr
    assert "The backbone is" not in _run(*words).stderr


def test_a_folder_without_images_fails(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not an image")
    out = tmp_path / "labels.csv"
    assert "no readable image" in _run(tmp_path, "-k", 2, "--out", out, exit_code=1).stderr
    assert not out.exists()


def test_a_damaged_archive_fails(tmp_path: Path) -> None:
    archive = tmp_path / "colors.zip"
    archive.write_bytes(zip_of(_two_colors())[:-30])
    assert "archive is damaged" in _run(archive, "-k", 2, exit_code=1).stderr
