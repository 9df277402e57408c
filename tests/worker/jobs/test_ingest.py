import pytest
from sqlalchemy import func, select

from app.core.jobs.lifecycle import claim
from app.core.platform.errors import (
    ArchiveTooLarge,
    DatasetEmpty,
    LeaseLost,
    ServiceError,
    TooManyBadFiles,
)
from app.core.platform.tables import Dataset, DatasetIssue, Image, Job
from app.core.runtime import Runtime
from app.core.storage.keys import blob_key
from tests.conftest import MakeSettings
from tests.hostile_images import deep_png, jpeg_of_scans, tiff_of_pages, webp_claiming
from tests.images import jpeg_bytes, png_bytes, tar_of, zip_of
from tests.worker.conftest import AddIngest, Claimed
from worker.jobs import ingest
from worker.jobs.ingest import run_ingest


def dataset_of(runtime: Runtime, job: Job) -> Dataset:
    with runtime.db.read() as session:
        return session.get_one(Dataset, job.dataset_id)


def test_a_thousand_good_and_twenty_bad(
    any_runtime: Runtime, add_ingest: AddIngest, claimed: Claimed
) -> None:
    good = jpeg_bytes()
    files = {f"good/{n:04d}.jpg": good + n.to_bytes(2) for n in range(1000)}
    bad = {f"bad/{n:02d}.jpg": good[: 100 + n] for n in range(10)}
    bad |= {f"bad/{n:02d}.png": b"not an image" for n in range(10, 20)}
    job = add_ingest(any_runtime, zip_of(files | bad))

    run_ingest(claimed(any_runtime, job.id))

    dataset = dataset_of(any_runtime, job)
    assert (dataset.status, dataset.image_count, dataset.issue_count) == ("ready", 1000, 20)
    with any_runtime.db.read() as session:
        assert session.scalar(select(func.count()).select_from(Image)) == 1000
        codes = session.scalars(select(DatasetIssue.code)).all()
        finished = session.get_one(Job, job.id)
    assert codes == ["image_undecodable"] * 20
    assert finished.status == "succeeded"
    assert (finished.completed, finished.total, finished.failed) == (1020, 1020, 20)


def test_too_expensive_images_become_issues(
    runtime: Runtime, add_ingest: AddIngest, claimed: Claimed
) -> None:
    files = {f"good/{n}.jpg": jpeg_bytes(size=(16 + n, 12)) for n in range(20)}
    files["scans.jpg"] = jpeg_of_scans(6_000)
    files["canvas.webp"] = webp_claiming(7_000, 7_000)
    files["pages.tif"] = tiff_of_pages(20_000)  # its first page is an ordinary image
    files["deep.png"] = deep_png(7_000)
    job = add_ingest(runtime, tar_of(files))  # in a zip, the ratio would refuse them

    run_ingest(claimed(runtime, job.id))

    dataset = dataset_of(runtime, job)
    assert (dataset.status, dataset.image_count, dataset.issue_count) == ("ready", 22, 2)
    with runtime.db.read() as session:
        issues = session.execute(select(DatasetIssue.name, DatasetIssue.code)).all()
    assert sorted(map(tuple, issues)) == [
        ("canvas.webp", "image_too_large"),
        ("scans.jpg", "image_undecodable"),
    ]


def test_bytes_are_stored_by_hash_and_the_upload_is_deleted(
    runtime: Runtime, add_ingest: AddIngest, claimed: Claimed
) -> None:
    data = png_bytes()
    job = add_ingest(runtime, zip_of({"a.png": data, "again.png": data}))
    upload = job.config["source"]["key"]

    run_ingest(claimed(runtime, job.id))

    with runtime.db.read() as session:
        images = session.scalars(select(Image).order_by(Image.position)).all()
    assert [image.name for image in images] == ["a.png", "again.png"]
    assert runtime.storage.read(blob_key(images[0].sha256)) == data
    assert not runtime.storage.exists(upload)


def test_labels_come_from_folders_only_on_request(
    runtime: Runtime, add_ingest: AddIngest, claimed: Claimed
) -> None:
    archive = tar_of({"photos/cats/1.jpg": jpeg_bytes(), "2.jpg": jpeg_bytes()})
    for labels_from, expected in (("folder", ["cats", None]), ("none", [None, None])):
        job = add_ingest(runtime, archive, labels_from)
        run_ingest(claimed(runtime, job.id))
        with runtime.db.read() as session:
            query = select(Image.label).where(Image.dataset_id == job.dataset_id)
            assert session.scalars(query.order_by(Image.position)).all() == expected


@pytest.mark.parametrize(
    ("files", "error"),
    [
        ({}, DatasetEmpty),
        ({"a.txt": b"text", "b.txt": b"text"}, DatasetEmpty),
        ({"a.jpg": b"text", "b.txt": b"text"}, TooManyBadFiles),
        ({"bomb.bmp": b"\0" * 60_000_000}, ArchiveTooLarge),
    ],
)
def test_an_upload_without_images_fails(
    runtime: Runtime,
    add_ingest: AddIngest,
    claimed: Claimed,
    files: dict[str, bytes],
    error: type[ServiceError],
) -> None:
    job = add_ingest(runtime, zip_of(files))
    with pytest.raises(error):
        run_ingest(claimed(runtime, job.id))


def test_an_interrupted_ingest_resumes(
    make_settings: MakeSettings,
    add_ingest: AddIngest,
    claimed: Claimed,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ingest, "_COMMIT_ROWS", 10)
    runtime = Runtime(make_settings(torch_threads=1))
    good = jpeg_bytes()
    archive = zip_of({f"{n}.jpg": good + bytes([n]) for n in range(45)})
    undisturbed = add_ingest(runtime, archive)
    run_ingest(claimed(runtime, undisturbed.id))

    job = add_ingest(runtime, archive)
    context = claimed(runtime, job.id)
    with runtime.db.write() as session:  # expires its lease
        session.get_one(Job, job.id).lease_until = 0.0
    taken = None

    def report_then_lose(progress: object) -> None:
        nonlocal taken
        if getattr(progress, "checkpoint", False) and taken is None:
            with runtime.db.write() as session:
                taken = claim(session, job.id, worker="other", lease_seconds=60)

    object.__setattr__(context, "send", report_then_lose)
    with pytest.raises(LeaseLost):
        run_ingest(context)
    with runtime.db.read() as session:
        query = select(func.count()).select_from(Image).where(Image.dataset_id == job.dataset_id)
        assert 0 < (session.scalar(query) or 0) < 45
    assert taken is not None

    run_ingest(type(context)(runtime, taken, taken.fence, lambda _progress: None))

    first, second = dataset_of(runtime, undisturbed), dataset_of(runtime, job)
    assert second.image_count == 45
    assert second.fingerprint == first.fingerprint
    runtime.db.dispose()
