"""Health checks report the failing part, and do not hang."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import update

from app.core.health import CHECKS, Health
from app.core.jobs.lifecycle import claim
from app.core.jobs.workers import Identity, record_heartbeat
from app.core.platform.clock import db_now
from app.core.platform.probe import CheckResult
from app.core.platform.settings import Settings
from app.core.platform.tables import Job
from app.core.runtime import Runtime
from temi.backbones.catalog import DEFAULT_BACKBONE
from temi.backbones.embedded import EMBEDDED_BACKBONES
from tests.conftest import MakeSettings
from tests.core.conftest import MakeJob
from tests.servers import free_port, frozen
from tests.waiting import wait_until


def _look(settings: Settings) -> dict[str, CheckResult]:
    runtime = Runtime(settings)
    findings = Health(runtime).check()
    assert list(findings) == list(CHECKS)
    runtime.db.dispose()
    runtime.celery.close()
    return findings


def _wrong(settings: Settings) -> dict[str, str | None]:
    found = _look(settings)
    assert all(finding.hint for finding in found.values() if finding.status == "failed")
    return {name: finding.detail for name, finding in found.items() if finding.status != "ok"}


def test_all_is_well(any_settings: Settings) -> None:
    assert _wrong(any_settings) == {}
    assert all(0 <= finding.seconds < 2 for finding in _look(any_settings).values())


def test_with_redis_all_is_well(make_settings: MakeSettings, redis_url: str) -> None:
    assert _wrong(make_settings(broker_url=redis_url)) == {}


def test_a_missing_database(make_settings: MakeSettings) -> None:
    url = f"postgresql+psycopg://nobody@127.0.0.1:{free_port()}/none"
    found = _look(make_settings(database_url=url))
    assert {name: f.status for name, f in found.items() if not f.ok} == {
        "database": "failed",
        "migrations": "unknown",
        "workers": "unknown",
    }
    assert "refused" in str(found["database"].detail)


def test_a_database_without_tables(make_settings: MakeSettings, tmp_path: Path) -> None:
    found = _look(make_settings(database_url=f"sqlite:///{tmp_path / 'other.db'}"))
    assert found["database"].ok
    assert found["migrations"].status == "failed"
    assert found["migrations"].hint == "run `temi db upgrade`"


def test_an_unreachable_broker(make_settings: MakeSettings) -> None:
    wrong = _wrong(make_settings(broker_url=f"redis://127.0.0.1:{free_port()}/0"))
    assert list(wrong) == ["broker"]


def test_a_storage_that_cannot_be_written(settings: Settings) -> None:
    settings.blob_dir.mkdir(parents=True)
    (settings.blob_dir / "health").write_text("a file where a folder should be")
    assert list(_wrong(settings)) == ["storage"]


def test_a_disk_that_is_nearly_full_is_a_warning(
    make_settings: MakeSettings, settings: Settings, small_disk: Path
) -> None:
    url = settings.sqlalchemy_url  # the disk has no room for a database
    found = _look(make_settings(data_dir=small_disk, database_url=url))["storage"]
    assert (found.ok, found.status) == (True, "warning")
    assert "0.0 of 0.0 GiB are free" in str(found.detail)
    assert "free some space" in str(found.hint)


def test_weights_that_are_not_installed(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = replace(EMBEDDED_BACKBONES[DEFAULT_BACKBONE], package="no_such_package")
    monkeypatch.setitem(EMBEDDED_BACKBONES, DEFAULT_BACKBONE, missing)
    wrong = _wrong(settings)
    assert list(wrong) == ["weights"]
    assert "not installed" in str(wrong["weights"])


def _age(runtime: Runtime, job: Job, queued: float, hinted: float) -> None:
    times = {"queued_at": db_now() - queued, "notify_at": db_now() - hinted}
    with runtime.db.write() as session:
        session.execute(update(Job).where(Job.id == job.id).values(**times))


def test_jobs_that_no_worker_claims_are_a_warning(any_runtime: Runtime, make_job: MakeJob) -> None:
    job = make_job()
    health = Health(any_runtime)
    assert health.check()["workers"].status == "ok"

    _age(any_runtime, job, queued=300, hinted=300)
    found = health.check()["workers"]
    assert (found.ok, found.status) == (True, "warning")
    assert found.detail == "1 jobs are queued, the oldest for 300 s, and no worker checks for them"

    _age(any_runtime, job, queued=300, hinted=-30)
    assert "check for them but claim none" in str(health.check()["workers"].detail)

    busy = make_job()
    with any_runtime.db.write() as session:
        assert claim(session, busy.id, worker="w", lease_seconds=60) is not None
    assert health.check()["workers"].status == "ok"


def test_jobs_without_a_worker_for_their_resource_are_a_warning(
    any_runtime: Runtime, make_job: MakeJob
) -> None:
    busy, waiting = make_job("ingest"), make_job("cluster")
    who = Identity(name="w", host="h", pid=1, takes=("cpu",), device="a CPU", version="1")
    with any_runtime.db.write() as session:
        record_heartbeat(session, who)
        assert claim(session, busy.id, worker="w", lease_seconds=60) is not None
    health = Health(any_runtime)
    assert health.check()["workers"].status == "ok"
    _age(any_runtime, waiting, queued=300, hinted=-30)
    found = health.check()["workers"]
    assert (found.ok, found.status) == (True, "warning")
    assert found.detail == "jobs are queued for gpu, and no worker has it"


def test_a_frozen_database(make_settings: MakeSettings, postgres_url: str) -> None:
    runtime = Runtime(make_settings(database_url=postgres_url))
    health = Health(runtime)
    assert all(finding.ok for finding in health.check().values())
    with frozen(postgres_url):
        for _ in range(2):
            found = health.check()
            assert found["database"].status == "failed"
            assert "no response for" in str(found["database"].detail)  # it was not waited for
            assert found["workers"].status == "unknown"
            assert found["storage"].ok
    _wait_until_well(health)
    runtime.db.dispose()


def test_a_frozen_broker(make_settings: MakeSettings, redis_url: str) -> None:
    runtime = Runtime(make_settings(broker_url=redis_url))
    health = Health(runtime)
    with frozen(redis_url):
        found = asyncio.run(health.check_async())
        assert [name for name, finding in found.items() if not finding.ok] == ["broker"]
    _wait_until_well(health)
    runtime.db.dispose()
    runtime.celery.close()


def _wait_until_well(health: Health) -> None:
    """When the server continues, all checks succeed again."""
    wait_until(lambda: all(finding.ok for finding in health.check().values()), pause=0.2)
