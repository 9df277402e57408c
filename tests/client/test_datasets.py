"""Datasets and images, against the real API."""

import csv
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from temi_client import ApiError, Dataset, Job, Source, TemiClient
from tests.client.live import FILES, Live
from tests.images import jpeg_bytes, zip_of


@pytest.fixture
def dataset(live_client: TemiClient) -> Dataset:
    (found,) = live_client.datasets()
    return found


def test_read_a_dataset(live_client: TemiClient, dataset: Dataset) -> None:
    assert live_client.dataset(dataset.id) == dataset
    assert (dataset.image_count, dataset.issue_count) == (4, 1)
    images = list(live_client.images(dataset.id))
    assert [image.name for image in images] == [name for name in FILES if "bad" not in name]
    assert live_client.image(images[0].id) == images[0]
    cursors = live_client.image_cursors(dataset.id, every=3)
    assert (cursors.count, len(cursors.cursors)) == (4, 2)
    assert list(live_client.images(dataset.id, cursor=cursors.cursors[1])) == images[3:]
    (issue,) = live_client.issues(dataset.id)
    assert issue.name == "bad/text.jpg"


def test_skipped_files_are_counted(live: Live, live_client: TemiClient, tmp_path: Path) -> None:
    archive = tmp_path / "takeout.zip"
    archive.write_bytes(zip_of({"a.jpg": jpeg_bytes(), "a.jpg.json": b"{}", "b.mp4": b"\0video"}))
    job = live_client.upload_dataset(archive)
    live.work(job.id)
    done = live_client.wait(job.id)
    assert (done.counts.completed, done.counts.failed, done.counts.skipped) == (3, 0, 2)
    found = live_client.dataset(str(done.dataset_id))
    assert (found.skipped_count, found.skipped) == (2, {".json": 1, ".mp4": 1})
    live_client.delete_dataset(found.id)


def test_every_kind_of_upload_creates_a_dataset(
    live: Live, live_client: TemiClient, tmp_path: Path
) -> None:
    archive = tmp_path / "pets.tar"
    archive.write_bytes(zip_of(FILES))
    folder = tmp_path / "pets"
    for name, content in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    photo = folder / "cats" / "a.jpg"
    manifest = tmp_path / "listed.csv"
    manifest.write_text(f"path,label,camera\n{photo},cat,X100\n")
    jobs = {
        5: live_client.upload_dataset(archive, labels_from="folder"),
        4: live_client.upload_dataset(folder),
        1: live_client.upload_dataset([photo]),
        3: live_client.create_dataset({"type": "folder", "path": str(folder)}, name="from there"),
        2: live_client.upload_manifest(manifest),
    }
    for job in jobs.values():
        live.work(job.id)
    done = {key: live_client.wait(job.id) for key, job in jobs.items()}
    counts = {key: (job.result or {})["image_count"] for key, job in done.items()}
    assert counts == {5: 4, 4: 4, 1: 1, 3: 4, 2: 1}
    names = [live_client.dataset(str(job.dataset_id)).name for job in jobs.values()]
    assert names == ["pets", "pets", "cats", "from there", "listed"]
    (listed,) = live_client.images(str(jobs[2].dataset_id))
    assert (listed.label, listed.metadata["camera"]) == ("cat", "X100")


def test_images_are_added_and_deleted(
    live: Live, live_client: TemiClient, dataset: Dataset, tmp_path: Path
) -> None:
    photo = tmp_path / "new.jpg"
    photo.write_bytes(jpeg_bytes("yellow"))
    manifest = tmp_path / "listed.jsonl"
    manifest.write_text(f'{{"path": "{photo}"}}\n')
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "other.jpg").write_bytes(jpeg_bytes("orange"))
    folder: Source = {"type": "folder", "path": str(tmp_path / "more")}
    starts: list[Callable[[], Job]] = [
        lambda: live_client.append_images(dataset.id, photo),
        lambda: live_client.append_manifest(dataset.id, manifest),
        lambda: live_client.append_source(dataset.id, folder),
    ]
    for start in starts:
        job = start()
        assert job.dataset_id == dataset.id
        live.work(job.id)
        live_client.wait(job.id)
    images = list(live_client.images(dataset.id))
    assert [image.name.rsplit("/", 1)[-1] for image in images[4:]] == [
        "new.jpg",
        "new.jpg",
        "other.jpg",
    ]
    (twin,) = live_client.duplicates(dataset.id, kind="exact")
    assert (twin.image_id, twin.original_id) == (images[5].id, images[4].id)
    assert live_client.delete_images(dataset.id, [i.id for i in images[:2]]).image_count == 5
    live_client.delete_image(images[2].id)
    with pytest.raises(ApiError) as caught:
        live_client.image(images[2].id)
    assert caught.value.status == 404
    assert live_client.rename_dataset(dataset.id, "Pets").name == "Pets"
    live_client.delete_dataset(dataset.id)
    assert list(live_client.datasets()) == []


def test_a_forbidden_source_raises(live_client: TemiClient) -> None:
    with pytest.raises(ApiError) as caught:
        live_client.create_dataset({"type": "folder", "path": "/etc"}, name="secrets")
    assert caught.value.code == "source_forbidden"
    for source in (
        {"type": "urls", "urls": ["http://127.0.0.1/cat.jpg"]},
        {"type": "objects", "url": "s3://bucket/prefix"},
    ):
        with pytest.raises(ApiError) as caught:
            live_client.create_dataset(source, name="far")  # type: ignore[arg-type]
        assert caught.value.status == 422


def test_a_manifest_needs_a_known_suffix(live_client: TemiClient, tmp_path: Path) -> None:
    other = tmp_path / "list.txt"
    other.write_text("a.jpg")
    with pytest.raises(ValueError, match="manifest"):
        live_client.upload_manifest(other)


def test_labels_of_a_dataset(live_client: TemiClient, dataset: Dataset, tmp_path: Path) -> None:
    rows = list(live_client.labels(dataset.id))
    assert [row.cluster_id for row in rows] == [0, 1, 0, 1]
    assert rows[0].true_label == "cats"
    assert len(list(live_client.labels(dataset.id, min_probability=0.7))) == 2
    assert len(list(live_client.labels(dataset.id, cluster_ids=[1]))) == 2
    (clustering,) = live_client.clusterings(dataset_id=dataset.id)
    same = live_client.labels(dataset.id, clustering_id=clustering.id, revision=1)
    assert list(same) == rows

    saved = live_client.save_labels(dataset.id, tmp_path / "new" / "labels.csv")
    with saved.open(newline="") as file:
        assert [row["name"] for row in csv.DictReader(file)] == [row.name for row in rows]
    arrow = live_client.save_labels(dataset.id, tmp_path / "labels.arrow", "arrow")
    with pa.OSFile(str(arrow)) as source:
        assert pa.ipc.open_stream(source).read_all().num_rows == 4
    lines = live_client.save_labels(dataset.id, tmp_path / "labels.jsonl", "jsonl")
    assert len(lines.read_text().splitlines()) == 4
    with pytest.raises(ApiError):
        live_client.save_labels(dataset.id, tmp_path / "none.csv", revision=9)
    assert sorted(path.name for path in tmp_path.glob("*labels*")) == [
        "labels.arrow",
        "labels.jsonl",
    ]


def test_single_images(live_client: TemiClient, dataset: Dataset, tmp_path: Path) -> None:
    first, *_ = live_client.images(dataset.id)
    seen: list[tuple[int, int]] = []
    saved = live_client.image_content(
        first.id, tmp_path / "a.jpg", progress=lambda done, total: seen.append((done, total))
    )
    assert saved.read_bytes() == FILES["cats/a.jpg"]
    assert seen == [(first.bytes, first.bytes)]
    assert live_client.thumbnail(first.id, 64)[8:12] == b"WEBP"
    (label,) = live_client.image_labels(first.id)
    assert (label.cluster_id, label.label, label.excluded) == (0, "cluster 0", False)
