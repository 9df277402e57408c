"""A source that is refused half-way leaves no bytes behind."""

import threading

import pytest

from app.core.platform.tables import Job
from app.core.runtime import Runtime
from tests.images import png_bytes, tar_of, zip_of
from tests.worker.conftest import AddIngest
from tests.worker.job_steps import run_job

_GOOD = {f"{number}.png": png_bytes((number, 0, 0)) for number in range(20)}
_ZIP = bytearray(zip_of(_GOOD))
_ZIP[-12:-10] = (21).to_bytes(2, "little")  # the directory ends before the members that it counts


@pytest.mark.parametrize(
    ("archive", "code"),
    [
        (tar_of(_GOOD | {"../outside.png": png_bytes()}), "archive_unsafe_path"),
        (tar_of(_GOOD)[: 20 * 1024 - 700], "archive_invalid"),
        (bytes(_ZIP), "archive_invalid"),
    ],
)
def test_a_refused_archive_leaves_nothing(
    runtime: Runtime, add_ingest: AddIngest, archive: bytes, code: str
) -> None:
    job = add_ingest(runtime, archive)
    run_job(runtime, job.id, threading.Event())
    with runtime.db.read() as session:
        ended = session.get_one(Job, job.id)
    assert (ended.status, (ended.error or {})["code"]) == ("failed", code)
    blobs = runtime.settings.blob_dir
    assert [path for path in blobs.rglob("*") if path.is_file()] == []
