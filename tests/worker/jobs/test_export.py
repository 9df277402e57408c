import gc
import hashlib
import io
import json
import zipfile
from collections.abc import Iterator
from typing import Any

import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError
from sqlalchemy import func, select

from app.core.clusterings.revisions import LabeledImage, iterate_pages
from app.core.exports.formats import FORMATS
from app.core.jobs.lifecycle import claim
from app.core.jobs.requests.export import ExportCreate
from app.core.platform.errors import (
    DatasetEmpty,
    ImageMissing,
    InvalidRequest,
    LeaseLost,
    NotFound,
    StorageFull,
)
from app.core.platform.tables import EXCLUDED, Clustering, Dataset, Export, Job
from app.core.runtime import Runtime
from app.core.storage.keys import blob_key
from tests.conftest import MakeSettings
from tests.core.labeled_rows import State, add_images, store_history
from tests.images import png_bytes
from tests.worker.conftest import Claimed
from worker.context import JobContext
from worker.jobs import export
from worker.jobs.export import run_export

IMAGES = 6
HISTORY = [
    State((0, 1, 0, 1, 0, 1), {0: ("cats", True), 1: ("dogs", True)}),
    State((0, 0, 0, 0, 0, 0), {0: ("pets", True), 1: ("dogs", False)}),
    State((0, 0, EXCLUDED, 0, 0, 0), {0: ("pets", True), 1: ("dogs", False)}),
]


def add_clustering(runtime: Runtime) -> Clustering:
    """Six images, merged into one cluster, one of them excluded."""
    data = [png_bytes("red", (n + 1, 2)) for n in range(IMAGES)]
    hashes = [hashlib.sha256(item).hexdigest() for item in data]
    for sha256, item in zip(hashes, data, strict=True):
        runtime.storage.write(blob_key(sha256), item)
    dataset = add_images(runtime, IMAGES, sha256=hashes, bytes=[len(item) for item in data])
    return store_history(runtime, dataset.id, HISTORY)


def add_job(runtime: Runtime, clustering: Clustering, format_: str = "csv", **options: Any) -> Job:
    request = ExportCreate(kind="export", clustering_id=clustering.id, format=format_, **options)
    with runtime.db.write() as session:
        return request.create(session, "default")


def export_of(runtime: Runtime, job: Job) -> tuple[Export, bytes]:
    with runtime.db.read() as session:
        made = session.scalars(select(Export).where(Export.job_id == job.id)).one()
    return made, runtime.storage.read(made.storage_key)


@pytest.mark.parametrize("format_", FORMATS)
def test_every_format(any_runtime: Runtime, claimed: Claimed, format_: str) -> None:
    clustering = add_clustering(any_runtime)
    job = add_job(any_runtime, clustering, format_)
    run_export(claimed(any_runtime, job.id))

    made, data = export_of(any_runtime, job)
    assert (made.clustering_id, made.revision, made.format) == (clustering.id, 3, format_)
    assert (made.image_count, made.bytes) == (5, len(data))
    assert made.sha256 == hashlib.sha256(data).hexdigest()
    assert made.filename.startswith("Holiday-photos-rev3")
    assert made.storage_key == f"exports/{job.id}/{made.filename}"
    with any_runtime.db.read() as session:
        finished = session.get_one(Job, job.id)
    assert finished.status == "succeeded"
    assert finished.result == {
        "export_id": made.id,
        "format": format_,
        "image_count": 5,
        "bytes": len(data),
        "revision": 3,
        "left_out": 0,
    }
    assert (finished.stage, finished.completed, finished.total) == ("export", 6, 6)
    assert "export" in finished.timings
    assert list(any_runtime.settings.temporary_dir.iterdir()) == []


def test_an_old_revision_with_filters(runtime: Runtime, claimed: Claimed) -> None:
    clustering = add_clustering(runtime)
    options = {"revision": 1, "cluster_ids": [1, 1], "min_probability": 0.6}
    job = add_job(runtime, clustering, "jsonl", **options)
    run_export(claimed(runtime, job.id))
    made, data = export_of(runtime, job)
    rows = [json.loads(line) for line in data.splitlines()]
    assert [(row["name"], row["cluster_id"], row["label"]) for row in rows] == [
        ("image 1.png", 1, "dogs"),
        ("image 3.png", 1, "dogs"),
    ]
    assert made.filters == {
        "cluster_ids": [1],
        "min_probability": 0.6,
        "min_purity": None,
        "proof": None,
        "include_excluded": False,
    }


def test_excluded_images_on_request(runtime: Runtime, claimed: Claimed) -> None:
    job = add_job(runtime, add_clustering(runtime), "image_folder", include_excluded=True)
    run_export(claimed(runtime, job.id))
    names = zipfile.ZipFile(io.BytesIO(export_of(runtime, job)[1])).namelist()
    assert len(names) == 6 + 1  # and the list of classes
    assert "_excluded/image 2.png" in names


def test_links_begin_with_the_requested_or_public_address(
    make_settings: MakeSettings, claimed: Claimed
) -> None:
    runtime = Runtime(make_settings(public_url="https://temi.example.org/"))
    clustering = add_clustering(runtime)
    for given, expected in (
        (None, "https://temi.example.org/v1/"),
        ("http://a/b", "http://a/b/v1/"),
    ):
        job = add_job(runtime, clustering, "coco", image_url_base=given)
        run_export(claimed(runtime, job.id))
        found = json.loads(export_of(runtime, job)[1])
        assert {image["coco_url"][: len(expected)] for image in found["images"]} == {expected}
    runtime.db.dispose()


@pytest.mark.parametrize("address", ["temi.example.org", "ftp://a", "http://", "http://a?b", "//a"])
def test_other_addresses_are_refused(address: str) -> None:
    with pytest.raises(ValidationError, match=r"must look like https://temi\.example\.org"):
        ExportCreate(kind="export", clustering_id="cl", format="csv", image_url_base=address)


def test_a_validation_part(any_runtime: Runtime, claimed: Claimed) -> None:
    clustering = add_clustering(any_runtime)
    options: dict[str, Any] = {"validation_fraction": 0.4, "include_excluded": True}
    job = add_job(any_runtime, clustering, "jsonl", **options)
    run_export(claimed(any_runtime, job.id))
    rows = [json.loads(line) for line in export_of(any_runtime, job)[1].splitlines()]
    splits = [row["split"] for row in rows]
    assert (splits.count("validation"), splits.count("train"), splits.count(None)) == (2, 3, 1)
    with any_runtime.db.read() as session:
        finished = session.get_one(Job, job.id)
    assert (finished.completed, finished.total) == (6, 6)


def test_the_revision_is_fixed_when_the_job_is_created(runtime: Runtime, claimed: Claimed) -> None:
    clustering = add_clustering(runtime)
    job = add_job(runtime, clustering, "csv")
    with runtime.db.write() as session:
        session.get_one(Clustering, clustering.id).revision = 9
        session.get_one(Dataset, clustering.dataset_id).name = "renamed"
    run_export(claimed(runtime, job.id))
    made, _ = export_of(runtime, job)
    assert (made.revision, made.filename) == (3, "Holiday-photos-rev3.csv")


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"revision": 4}, "revision"),
        ({"cluster_ids": [0, 7]}, "cluster_ids"),
        ({"cluster_ids": [1]}, "cluster_ids"),  # merged into another
        ({"cluster_ids": list(range(20_000))}, "cluster_ids"),
    ],
)
def test_unknown_revisions_and_clusters_are_refused(
    any_runtime: Runtime, options: dict[str, Any], field: str
) -> None:
    clustering = add_clustering(any_runtime)
    with pytest.raises(InvalidRequest) as caught:
        add_job(any_runtime, clustering, **options)
    assert [error.field for error in caught.value.errors] == [field]


def test_unknown_clusterings_and_empty_datasets(runtime: Runtime) -> None:
    clustering = add_clustering(runtime)
    request = ExportCreate(kind="export", clustering_id=clustering.id, format="csv")
    with runtime.db.write() as session, pytest.raises(NotFound):
        request.create(session, "other")
    with runtime.db.write() as session:
        session.get_one(Dataset, clustering.dataset_id).image_count = 0
    with pytest.raises(DatasetEmpty):
        add_job(runtime, clustering)


def test_a_second_attempt_rewrites_the_file(runtime: Runtime, claimed: Claimed) -> None:
    job = add_job(runtime, add_clustering(runtime), "image_folder")
    first = claimed(runtime, job.id)
    with runtime.db.write() as session:  # expires its lease
        session.get_one(Job, job.id).lease_until = 0.0
    with runtime.db.write() as session:
        taken = claim(session, job.id, worker="other", lease_seconds=60)
    assert taken is not None
    with pytest.raises(LeaseLost):
        run_export(first)
    with runtime.db.read() as session:
        assert session.scalar(select(func.count()).select_from(Export)) == 0

    run_export(JobContext(runtime, taken, taken.fence, lambda _progress: None))

    made, data = export_of(runtime, job)
    assert zipfile.ZipFile(io.BytesIO(data)).testzip() is None
    files = list((runtime.settings.blob_dir / f"exports/{job.id}").iterdir())
    assert [file.name for file in files] == [made.filename]


def test_a_missing_image_is_named_and_leaves_no_file(runtime: Runtime, claimed: Claimed) -> None:
    clustering = add_clustering(runtime)
    job = add_job(runtime, clustering, "huggingface")
    runtime.storage.delete(blob_key(hashlib.sha256(png_bytes("red", (4, 2))).hexdigest()))
    with pytest.raises(ImageMissing, match=r"image 3\.png"):
        run_export(claimed(runtime, job.id))
    assert not (runtime.settings.blob_dir / f"exports/{job.id}").exists()
    assert list(runtime.settings.temporary_dir.iterdir()) == []


def test_a_clustering_deleted_during_the_export(any_runtime: Runtime, claimed: Claimed) -> None:
    clustering = add_clustering(any_runtime)
    job = add_job(any_runtime, clustering)
    context = claimed(any_runtime, job.id)
    with any_runtime.db.write() as session:
        session.delete(session.get_one(Clustering, clustering.id))
    with pytest.raises(NotFound):
        run_export(context)


@pytest.mark.parametrize("format_", ["csv", "parquet", "coco", "image_folder", "huggingface"])
def test_a_full_disk(
    runtime: Runtime, claimed: Claimed, small_disk: Any, format_: str, monkeypatch: Any
) -> None:
    clustering = add_clustering(runtime)
    job = add_job(runtime, clustering, format_)
    (small_disk / "filler").write_bytes(b"x" * 1_048_576)
    monkeypatch.setattr(runtime.storage, "_temporary_dir", small_disk)
    with pytest.raises(StorageFull):
        run_export(claimed(runtime, job.id))
    assert [path.name for path in small_disk.iterdir()] == ["filler"]


def test_at_most_two_pages_are_in_memory(
    runtime: Runtime, claimed: Claimed, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 20_000
    # a list inside makes the garbage collector track the row
    dataset = add_images(runtime, count, attributes={"tags": ["x"]})
    state = State((0,) * count, {0: ("cats", True)})
    clustering = store_history(runtime, dataset.id, [state])
    held: list[int] = []

    def watched(*args: Any) -> Iterator[list[LabeledImage]]:
        for page in iterate_pages(*args):
            held.append(sum(type(found) is LabeledImage for found in gc.get_objects()))
            yield page

    monkeypatch.setattr(export, "iterate_pages", watched)
    for format_ in ("csv", "parquet"):
        job = add_job(runtime, clustering, format_)
        run_export(claimed(runtime, job.id))
        made, data = export_of(runtime, job)
        assert made.image_count == count
        if format_ == "parquet":
            assert pq.ParquetFile(io.BytesIO(data)).metadata.num_rows == count
        else:
            assert data.count(b"\r\n") == count + 1
    assert len(held) == 20
    assert 2_000 <= max(held) <= 4_000
