"""Ingests from every kind of source that are killed and resume."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from app.core.datasets.rows import create_dataset
from app.core.jobs.lifecycle import claim
from app.core.jobs.requests.ingest import create_ingest_job
from app.core.platform.tables import Dataset, Image, Job
from app.core.runtime import Runtime
from app.core.storage.keys import listing_key
from tests.conftest import MakeSettings
from tests.images import jpeg_bytes
from tests.waiting import wait_until
from tests.worker.conftest import Claimed
from worker.jobs.ingest import run_ingest

_COUNT = 60
# A worker that hangs in the middle of the ingest until it is killed.
_WORKER = """
import sys, time
from pathlib import Path
from app.core.jobs.lifecycle import claim
from app.core.runtime import Runtime
from app.core.platform.settings import Settings
from worker.jobs import ingest
from worker.context import JobContext

real, saves = ingest._save, iter(range(10**6))
def save_two_batches(*given):
    if next(saves) == 2:
        time.sleep(10**6)
    real(*given)

ingest._save = save_two_batches
ingest._COMMIT_ROWS = 5
runtime = Runtime(Settings(_env_file=None, data_dir=Path(sys.argv[1]), source_folders=sys.argv[2]))
with runtime.db.write() as session:
    job = claim(session, sys.argv[3], worker="doomed", lease_seconds=60)
ingest.run_ingest(JobContext(runtime, job, job.fence, lambda _: None))
"""


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(_COUNT):
        (folder / f"{number:02d}.jpg").write_bytes(jpeg_bytes() + bytes([number]))
    return folder


def _add(runtime: Runtime, source: dict[str, Any]) -> Job:
    with runtime.db.write() as session:
        dataset = create_dataset(session, tenant="default", name="test")
        source = {"labels_from": "none", **source}
        return create_ingest_job(session, tenant="default", dataset=dataset, source=source)


def _count(runtime: Runtime, job: Job) -> int:
    with runtime.db.read() as session:
        query = select(func.count()).select_from(Image).where(Image.dataset_id == job.dataset_id)
        return session.scalar(query) or 0


@pytest.mark.parametrize("kind", ["folder", "manifest"])
def test_a_killed_ingest_resumes(
    make_settings: MakeSettings, claimed: Claimed, photos: Path, kind: str
) -> None:
    runtime = Runtime(make_settings(source_folders=str(photos)))
    source: dict[str, Any] = {"type": "folder", "path": str(photos)}
    if kind == "manifest":
        lines = "".join(f"{path}\n" for path in sorted(photos.iterdir()))
        source = {"type": "manifest", "key": "uploads/m", "format": "csv", "rows": _COUNT}
        for key in ("uploads/m", "uploads/undisturbed"):
            runtime.storage.write(key, b"path\n" + lines.encode())
    doomed = _add(runtime, source)
    _run_and_kill(runtime, doomed, photos)
    before = _count(runtime, doomed)
    assert 0 < before < _COUNT
    (photos / "00-new.jpg").write_bytes(jpeg_bytes())  # would shift every position
    with runtime.db.write() as session:
        session.get_one(Job, doomed.id).lease_until = 0.0

    run_ingest(claimed(runtime, doomed.id))

    (photos / "00-new.jpg").unlink()
    undisturbed = _add(runtime, source | {"key": "uploads/undisturbed"})
    run_ingest(claimed(runtime, undisturbed.id))
    with runtime.db.read() as session:
        one, other = (session.get_one(Dataset, job.dataset_id) for job in (doomed, undisturbed))
        job = session.get_one(Job, doomed.id)
        rows = session.scalars(
            select(Image).where(Image.dataset_id == one.id).order_by(Image.position)
        ).all()
    assert one.fingerprint == other.fingerprint
    assert [row.position for row in rows] == list(range(_COUNT))
    assert sorted(row.id for row in rows) == [row.id for row in rows]
    assert (job.completed, job.total, job.failed) == (_COUNT, _COUNT, 0)
    assert not runtime.storage.exists(listing_key(doomed.id))
    runtime.db.dispose()


def _run_and_kill(runtime: Runtime, job: Job, photos: Path) -> None:
    command = [sys.executable, "-c", _WORKER, str(runtime.settings.data_dir), str(photos), job.id]
    environment = os.environ | {"PYTHONPATH": str(Path.cwd())}
    with subprocess.Popen(command, env=environment) as process:
        try:
            wait_until(lambda: process.poll() is not None or _count(runtime, job) > 0)
            assert process.poll() is None
        finally:
            process.send_signal(signal.SIGKILL)


def test_a_resumed_ingest_counts_earlier_images(
    make_settings: MakeSettings, claimed: Claimed, photos: Path
) -> None:
    runtime = Runtime(make_settings(source_folders=str(photos)))
    (photos / "10-bad.jpg").write_bytes(b"text")
    (photos / "zz.txt").write_bytes(b"text")  # after the last image
    job = _add(runtime, {"type": "folder", "path": str(photos)})
    context = claimed(runtime, job.id)
    reports: list[Any] = []

    def fail_late(progress: Any) -> None:
        if progress.checkpoint:
            raise RuntimeError("the power is off")

    object.__setattr__(context, "send", fail_late)
    with pytest.raises(RuntimeError):
        run_ingest(context)
    with runtime.db.write() as session:
        session.get_one(Job, job.id).lease_until = 0.0
    with runtime.db.write() as session:
        again = claim(session, job.id, worker="w", lease_seconds=60)
    assert again is not None
    run_ingest(type(context)(runtime, again, again.fence, reports.append))
    first = reports[0]
    assert (first.completed, first.total) == (_COUNT + 2, _COUNT + 2)
    with runtime.db.read() as session:
        done = session.get_one(Job, job.id)
    assert (done.status, done.completed, done.failed) == ("succeeded", _COUNT + 2, 1)
    assert done.skipped == 1
    runtime.db.dispose()
