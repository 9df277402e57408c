"""Supervision of real job processes that are killed."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from app.core.jobs.lifecycle import cancel, claim
from app.core.platform.tables import Dataset, Job
from app.core.runtime import Runtime
from tests.conftest import MakeSettings, migrate
from tests.images import image_bytes, jpeg_bytes, zip_of
from tests.servers import frozen, start_postgres
from tests.waiting import has_ended, join, wait_until
from tests.worker.conftest import AddIngest
from tests.worker.job_steps import run_job
from worker.supervision.job_supervisor import run_waiting_jobs
from worker.supervision.maintenance import republish_due_jobs


def job_row(runtime: Runtime, job_id: str) -> Job:
    with runtime.db.read() as session:
        return session.get_one(Job, job_id)


@pytest.fixture
def small_job(any_runtime: Runtime, add_ingest: AddIngest) -> Job:
    return add_ingest(any_runtime, zip_of({"a.jpg": jpeg_bytes(), "b.jpg": jpeg_bytes()}))


@pytest.fixture(scope="module")
def large_archive() -> bytes:
    good = jpeg_bytes()
    return zip_of({f"{n}.jpg": good + n.to_bytes(2) for n in range(4000)})


@pytest.fixture(scope="module")
def slow_archive() -> bytes:
    """Minutes of decoding: no machine has read it before a test acts on the job."""
    image = image_bytes("PNG", "black", (5000, 5000), mode="1")
    # Bytes after the image: files of this size are decoded few at a time, so progress comes soon.
    return zip_of({f"{n}.png": image + n.to_bytes(2) + bytes(128 * 1024) for n in range(2000)})


@contextmanager
def running(runtime: Runtime, job: Job) -> Iterator[threading.Event]:
    """Runs the job in a thread; yields once its process has reported progress."""
    stopping = threading.Event()
    thread = threading.Thread(target=run_job, args=(runtime, job.id, stopping))
    thread.start()
    try:
        wait_until(lambda: job_row(runtime, job.id).completed > 0)
        yield stopping
    finally:
        stopping.set()
        join(thread)


def _children() -> list[psutil.Process]:
    children = psutil.Process().children(recursive=True)
    return [child for child in children if any("spawn_main" in word for word in _words(child))]


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:  # it has ended in the meantime
        return []


def test_a_job_runs_in_a_child_process_and_succeeds(any_runtime: Runtime, small_job: Job) -> None:
    run_job(any_runtime, small_job.id, threading.Event())

    job = job_row(any_runtime, small_job.id)
    assert job.status == "succeeded"
    assert job.result == {
        "dataset_id": job.dataset_id,
        "image_count": 2,
        "issue_count": 0,
        "skipped_count": 0,
        "skipped": {},
    }
    assert job.fence == 1


def test_a_second_run_of_the_same_job_does_nothing(any_runtime: Runtime, small_job: Job) -> None:
    for _ in range(2):
        run_job(any_runtime, small_job.id, threading.Event())
    assert job_row(any_runtime, small_job.id).fence == 1


def test_one_call_runs_all_waiting_jobs(any_runtime: Runtime, add_ingest: AddIngest) -> None:
    archive = zip_of({"a.jpg": jpeg_bytes()})
    late, soon = (add_ingest(any_runtime, archive) for _ in range(2))
    with any_runtime.db.write() as session:
        session.get_one(Job, soon.id).priority = 5

    assert run_waiting_jobs(any_runtime, threading.Event()) == 2

    first, second = job_row(any_runtime, soon.id), job_row(any_runtime, late.id)
    assert (first.status, second.status) == ("succeeded", "succeeded")
    assert first.finished_at is not None
    assert second.started_at is not None
    assert first.finished_at <= second.started_at
    assert run_waiting_jobs(any_runtime, threading.Event()) == 0


def test_a_stopping_worker_claims_no_job(any_runtime: Runtime, small_job: Job) -> None:
    stopping = threading.Event()
    stopping.set()
    assert run_waiting_jobs(any_runtime, stopping) == 0
    assert job_row(any_runtime, small_job.id).status == "queued"


def test_an_upload_is_kept_only_for_retryable_errors(
    runtime: Runtime, add_ingest: AddIngest
) -> None:
    refused = add_ingest(runtime, zip_of({"a.jpg": b"text"}))
    cancelled = add_ingest(runtime, zip_of({"a.jpg": jpeg_bytes()}))
    with runtime.db.write() as session:
        claim(session, cancelled.id, worker="gone", lease_seconds=-1.0)
        cancel(session, "default", cancelled.id)

    assert run_waiting_jobs(runtime, threading.Event()) == 2

    assert job_row(runtime, refused.id).status == "failed"
    assert job_row(runtime, cancelled.id).status == "cancelled"
    assert not runtime.storage.exists(refused.config["source"]["key"])
    assert runtime.storage.exists(cancelled.config["source"]["key"])


def test_a_job_fails_with_the_code_of_its_error(runtime: Runtime, add_ingest: AddIngest) -> None:
    job = add_ingest(runtime, zip_of({"a.jpg": b"text"}))

    run_job(runtime, job.id, threading.Event())

    failed = job_row(runtime, job.id)
    assert failed.status == "failed"
    assert failed.error is not None
    assert failed.error["code"] == "too_many_bad_files"
    with runtime.db.read() as session:
        assert session.get_one(Dataset, job.dataset_id).status == "failed"


def test_stopping_releases_the_job_without_a_crash(
    runtime: Runtime, add_ingest: AddIngest, slow_archive: bytes
) -> None:
    job = add_ingest(runtime, slow_archive)
    with running(runtime, job) as stopping:
        stopping.set()
        wait_until(lambda: job_row(runtime, job.id).status == "queued")
    assert job_row(runtime, job.id).crashes == 0
    assert _children() == []


def test_a_killed_process_counts_as_a_crash_and_the_job_resumes(
    runtime: Runtime, add_ingest: AddIngest, large_archive: bytes
) -> None:
    job = add_ingest(runtime, large_archive)
    with running(runtime, job):
        for child in _children():
            child.kill()
        wait_until(lambda: job_row(runtime, job.id).status == "queued")
    run_job(runtime, job.id, threading.Event())
    assert job_row(runtime, job.id).status == "succeeded"
    with runtime.db.read() as session:
        assert session.get_one(Dataset, job.dataset_id).image_count == 4000


def test_cancelled_while_it_runs(
    runtime: Runtime, add_ingest: AddIngest, slow_archive: bytes
) -> None:
    job = add_ingest(runtime, slow_archive)
    with running(runtime, job):
        with runtime.db.write() as session:
            assert cancel(session, "default", job.id).status == "cancelling"
        wait_until(lambda: job_row(runtime, job.id).status == "cancelled")
    assert _children() == []


def test_a_job_claimed_by_another_worker_is_given_up(
    runtime: Runtime, add_ingest: AddIngest, slow_archive: bytes
) -> None:
    job = add_ingest(runtime, slow_archive)
    with running(runtime, job):
        with runtime.db.write() as session:  # one transaction: no heartbeat in between
            session.get_one(Job, job.id).lease_until = 0.0
            session.flush()
            taken = claim(session, job.id, worker="other", lease_seconds=600)
        assert taken is not None
        wait_until(lambda: _children() == [])
    after = job_row(runtime, job.id)
    assert (after.status, after.fence, after.worker) == ("running", taken.fence, "other")


def test_three_crashes_without_progress_end_it(
    make_settings: MakeSettings, add_ingest: AddIngest
) -> None:
    runtime = Runtime(make_settings())
    job = add_ingest(runtime, zip_of({"a.jpg": jpeg_bytes()}))
    for _ in range(3):  # a worker claims it and dies
        with runtime.db.write() as session:
            row = claim(session, job.id, worker="doomed", lease_seconds=-1.0)
            assert row is not None

    run_job(runtime, job.id, threading.Event())

    failed = job_row(runtime, job.id)
    assert failed.status == "failed"
    assert failed.error is not None
    assert failed.error["code"] == "worker_crashed"
    runtime.db.dispose()


def test_a_waiting_job_is_republished_once(any_runtime: Runtime, small_job: Job) -> None:
    assert republish_due_jobs(any_runtime) == 1
    assert republish_due_jobs(any_runtime) == 0  # the next one is due in seconds


def test_a_database_outage_counts_as_no_crash(
    make_settings: MakeSettings, add_ingest: AddIngest, large_archive: bytes
) -> None:
    with start_postgres() as server:
        url = f"{server.url}/postgres"
        migrate(url)
        runtime = Runtime(make_settings(database_url=url))
        job = add_ingest(runtime, large_archive)
        with running(runtime, job):
            (child,) = _children()
            server.stop()  # immediately, as in a crash
            wait_until(lambda: has_ended(child))
            server.start()
            wait_until(lambda: job_row(runtime, job.id).status == "queued")
        assert job_row(runtime, job.id).crashes == 0
        run_job(runtime, job.id, threading.Event())
        assert job_row(runtime, job.id).status == "succeeded"
        runtime.db.dispose()


def test_a_frozen_database_ends_the_job_in_time(
    make_settings: MakeSettings, add_ingest: AddIngest, slow_archive: bytes, postgres_url: str
) -> None:
    runtime = Runtime(make_settings(database_url=postgres_url, self_kill_seconds=2.0))
    job = add_ingest(runtime, slow_archive)
    with running(runtime, job):
        (child,) = _children()
        with frozen(postgres_url):  # for less than the statement timeout
            wait_until(lambda: has_ended(child))
        wait_until(lambda: job_row(runtime, job.id).status == "queued")
    assert job_row(runtime, job.id).crashes == 0
    runtime.db.dispose()
