"""A photo export with sidecars, videos and system files is ingested; what is skipped is counted."""

from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image as Pictures
from sqlalchemy import select

from app.core.datasets.skipped import MAX_REASONS
from app.core.platform.errors import DatasetEmpty, TooManyBadFiles
from app.core.platform.tables import Dataset, DatasetIssue, Image, Job
from app.core.runtime import Runtime
from tests.images import jpeg_bytes, png_bytes, tar_of, zip_of
from tests.worker.conftest import AddIngest, Claimed
from worker.jobs.ingest import run_ingest

_VIDEO = b"\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom" + bytes(64)
_APPLE_DOUBLE = b"\x00\x05\x16\x07\x00\x02\x00\x00Mac OS X" + bytes(64)
Pack = Callable[[dict[str, bytes]], bytes]
_FOLDER = "Takeout/Google Photos/Photos from 2023"


def _takeout() -> dict[str, bytes]:
    """The layout of Google Takeout, zipped on a Mac: each photo has a sidecar."""
    files: dict[str, bytes] = {"Takeout/archive_browser.html": b"<html></html>"}
    for number in range(8):
        name = f"{_FOLDER}/IMG_{number}.jpg"
        files[name] = jpeg_bytes((number, 0, 0))
        files[f"{name}.supplemental-metadata.json"] = b'{"title": "IMG.jpg"}'
        files[f"__MACOSX/{_FOLDER}/._IMG_{number}.jpg"] = _APPLE_DOUBLE
    return files | {
        f"{_FOLDER}/metadata.json": b"{}",
        f"{_FOLDER}/.DS_Store": b"\x00\x00\x00\x01Bud1",
        f"{_FOLDER}/Thumbs.db": b"\xd0\xcf\x11\xe0",
        f"{_FOLDER}/IMG_1.AAE": b"<?xml version='1.0'?>",
        f"{_FOLDER}/IMG_1.xmp": b"<x:xmpmeta/>",
        f"{_FOLDER}/notes.txt": b"BMW and other cars",
        f"{_FOLDER}/clip.MP4": _VIDEO,
        f"{_FOLDER}/PXL.MP": _VIDEO,
        f"{_FOLDER}/README": b"read me",
        f"{_FOLDER}/without_suffix": png_bytes("blue"),
        f"{_FOLDER}/misnamed.txt": png_bytes("green"),
        f"{_FOLDER}/broken.jpg": jpeg_bytes()[:200],
    }


@pytest.mark.parametrize("pack", [zip_of, tar_of])
def test_a_photo_export(
    any_runtime: Runtime, add_ingest: AddIngest, claimed: Claimed, pack: Pack
) -> None:
    job = add_ingest(any_runtime, pack(_takeout()))
    run_ingest(claimed(any_runtime, job.id))

    with any_runtime.db.read() as session:
        dataset, done = session.get_one(Dataset, job.dataset_id), session.get_one(Job, job.id)
        issues = session.scalars(select(DatasetIssue.name)).all()
        names = session.scalars(select(Image.name).order_by(Image.position)).all()
    skipped = {
        **{"system": 10, ".json": 9, ".html": 1, ".aae": 1, ".xmp": 1, ".txt": 1},
        **{".mp4": 1, ".mp": 1, "no suffix": 1},
    }
    assert dataset.skipped == skipped
    assert issues == [f"{_FOLDER}/broken.jpg"]
    assert [Path(name).name for name in names[-2:]] == ["without_suffix", "misnamed.txt"]
    assert (dataset.image_count, dataset.issue_count) == (10, 1)
    assert (done.completed, done.total, done.failed, done.skipped) == (37, 37, 1, 26)
    assert (done.result or {})["skipped"] == skipped
    assert (done.result or {})["skipped_count"] == 26


def test_an_error_names_the_dataset_the_numbers_and_examples(
    runtime: Runtime, add_ingest: AddIngest, claimed: Claimed
) -> None:
    bad = {f"{number}.jpg": jpeg_bytes()[:200] for number in range(5)}
    others = {f"{number}.json": b"{}" for number in range(9)}
    job = add_ingest(runtime, zip_of(bad | others | {"good.png": png_bytes()}))
    with pytest.raises(TooManyBadFiles) as caught:
        run_ingest(claimed(runtime, job.id))
    detail = caught.value.detail
    assert detail.startswith("5 of 6 images of the dataset 'test' cannot be read, and at most 50%")
    assert "'0.jpg' (The JPEG data is damaged" in detail
    assert f"GET /v1/datasets/{job.dataset_id}/issues" in detail
    assert "TEMI_MAX_BAD_FRACTION" in detail


def test_an_error_names_the_kinds_of_files_without_images(
    runtime: Runtime, add_ingest: AddIngest, claimed: Claimed
) -> None:
    job = add_ingest(runtime, zip_of({"a.txt": b"a", "b.txt": b"b", "c.json": b"{}"}))
    with pytest.raises(DatasetEmpty) as caught:
        run_ingest(claimed(runtime, job.id))
    assert "all 3 files are of other kinds (2 .txt, 1 .json)" in caught.value.detail


def test_the_reasons_are_bounded(runtime: Runtime, add_ingest: AddIngest, claimed: Claimed) -> None:
    others = {f"file.x{number}": b"text" for number in range(100)}
    others |= {"a." + "long" * 50: b"text", "a.bad suffix": b"text"}
    job = add_ingest(runtime, zip_of({"good.png": png_bytes()} | others))
    run_ingest(claimed(runtime, job.id))
    with runtime.db.read() as session:
        skipped = session.get_one(Dataset, job.dataset_id).skipped
    assert len(skipped) <= MAX_REASONS
    assert sum(skipped.values()) == 102
    assert skipped["other"] >= 80


def test_images_that_are_not_supported_are_issues(
    runtime: Runtime, add_ingest: AddIngest, claimed: Claimed
) -> None:
    files = {"good.png": png_bytes(), "more.bmp": _bmp(), "vector.svg": b"<svg></svg>"}
    job = add_ingest(runtime, zip_of(files))
    run_ingest(claimed(runtime, job.id))
    with runtime.db.read() as session:
        issues = session.execute(select(DatasetIssue.name, DatasetIssue.code)).all()
    assert list(map(tuple, issues)) == [("vector.svg", "unsupported_format")]


def _bmp() -> bytes:
    out = BytesIO()
    Pictures.new("RGB", (4, 4)).save(out, "BMP")
    return out.getvalue()
