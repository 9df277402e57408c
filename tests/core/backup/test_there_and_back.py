"""A restored backup has the same rows and files, on the same or another database."""

from pathlib import Path

import pytest
from sqlalchemy import select, update

from app.core.backup import create as creating
from app.core.backup.create import create_backup
from app.core.backup.restore import restore_backup
from app.core.jobs.lifecycle import claim, claim_next
from app.core.platform.errors import NotEmpty
from app.core.platform.tables import ApiKey, Image, Job, JobLog, RetentionLock, Worker
from app.core.storage.keys import blob_key
from tests.core.backup.instances import MakeInstance, files, fill, rows
from tests.core.storage.deletion.collecting import collected

LAPTOP, HOST = ("sqlite", "folder"), ("postgresql", "folder")
CLUSTER = ("postgresql", "bucket")
WAYS = [(LAPTOP, LAPTOP), (LAPTOP, HOST), (HOST, LAPTOP), (LAPTOP, CLUSTER), (CLUSTER, LAPTOP)]


@pytest.mark.parametrize(("source", "target"), WAYS, ids="-".join)
def test_all_rows_and_files_are_restored(
    make_instance: MakeInstance, tmp_path: Path, source: tuple[str, str], target: tuple[str, str]
) -> None:
    full, empty = make_instance("full", *source), make_instance("empty", *target)
    fill(full)
    full.storage.write("jobs/job_gone/checkpoint", b"unused")
    made = create_backup(full.db, full.storage, tmp_path / "b.tar")
    assert made.missing == []
    assert made.files == len(files(full)) - 1
    manifest = restore_backup(empty.db, empty.storage, tmp_path / "b.tar")
    assert manifest["tables"] == made.tables
    assert rows(empty) == rows(full)
    assert files(empty) == {
        key: data for key, data in files(full).items() if key != "jobs/job_gone/checkpoint"
    }
    assert collected(empty) == set()  # every restored file has an owner
    with full.db.read() as session:
        assert session.scalars(select(RetentionLock)).all() == []


def test_a_backup_without_images(make_instance: MakeInstance, tmp_path: Path) -> None:
    full, empty = make_instance("full", "sqlite"), make_instance("empty", "sqlite")
    fill(full)
    create_backup(full.db, full.storage, tmp_path / "b.tar", images=False)
    restore_backup(empty.db, empty.storage, tmp_path / "b.tar")
    assert rows(empty) == rows(full)
    assert list(empty.storage.list("sha256")) == []
    assert {file.key for file in empty.storage.list("models")} == {
        file.key for file in full.storage.list("models")
    }


def test_running_jobs_are_queued_with_a_new_fence(
    make_instance: MakeInstance, tmp_path: Path
) -> None:
    full, empty = make_instance("full", "sqlite"), make_instance("empty", "sqlite")
    fill(full)
    with full.db.write() as session:
        first = claim_next(session, worker="w", lease_seconds=1e6)
        second = claim_next(session, worker="w", lease_seconds=1e6)
        assert first is not None
        assert second is not None
        session.get_one(Job, second.id).status = "cancelling"
        session.add(Worker(name="w", host="h", pid=1, takes=[], device="cpu", version="1"))
    create_backup(full.db, full.storage, tmp_path / "b.tar")
    restore_backup(empty.db, empty.storage, tmp_path / "b.tar")
    with empty.db.write() as session:
        job = session.get_one(Job, first.id)
        assert (job.status, job.fence, job.worker) == ("queued", first.fence + 1, None)
        assert session.scalars(select(Worker)).all() == []
        lines = session.scalars(select(JobLog.message).where(JobLog.job_id == job.id)).all()
        assert lines[-1] == "Restored from a backup; queued again."
        assert claim(session, first.id, worker="x", lease_seconds=9) is not None
        assert claim(session, second.id, worker="x", lease_seconds=9) is not None


def test_api_keys_are_restored_as_hashes(make_instance: MakeInstance, tmp_path: Path) -> None:
    full, empty = make_instance("full", "sqlite"), make_instance("empty", "sqlite")
    fill(full)
    create_backup(full.db, full.storage, tmp_path / "b.tar")
    restore_backup(empty.db, empty.storage, tmp_path / "b.tar")
    with full.db.read() as before, empty.db.read() as after:
        assert after.scalar(select(ApiKey.sha256)) == before.scalar(select(ApiKey.sha256))


def test_a_backup_is_restored_only_into_an_empty_instance(
    make_instance: MakeInstance, tmp_path: Path
) -> None:
    full = make_instance("full", "sqlite")
    fill(full)
    create_backup(full.db, full.storage, tmp_path / "b.tar")
    before = rows(full)
    with pytest.raises(NotEmpty):
        restore_backup(full.db, full.storage, tmp_path / "b.tar")
    assert rows(full) == before


def test_an_interrupted_restore_leaves_an_empty_instance(
    make_instance: MakeInstance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full, empty = make_instance("full", "sqlite"), make_instance("empty", "sqlite")
    fill(full)
    create_backup(full.db, full.storage, tmp_path / "b.tar")
    nothing = rows(empty)

    def power_cut(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("app.core.backup.restore._queue_again", power_cut)
        with pytest.raises(KeyboardInterrupt):
            restore_backup(empty.db, empty.storage, tmp_path / "b.tar")
    assert rows(empty) == nothing
    restore_backup(empty.db, empty.storage, tmp_path / "b.tar")
    assert rows(empty) == rows(full)


def test_a_backup_does_not_replace_a_file(make_instance: MakeInstance, tmp_path: Path) -> None:
    full = make_instance("full", "sqlite")
    (tmp_path / "b.tar").write_bytes(b"precious")
    with pytest.raises(FileExistsError):
        create_backup(full.db, full.storage, tmp_path / "b.tar")
    assert (tmp_path / "b.tar").read_bytes() == b"precious"


def test_a_failed_backup_leaves_nothing(
    make_instance: MakeInstance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = make_instance("full", "sqlite")
    fill(full)

    def broken(*_: object) -> None:
        raise OSError("disk")

    monkeypatch.setattr(creating._FileCopier, "copy_images", broken)
    with pytest.raises(OSError, match="disk"):
        create_backup(full.db, full.storage, tmp_path / "b.tar")
    assert [path.name for path in tmp_path.iterdir()] == ["full"]
    with full.db.read() as session:
        assert session.scalars(select(RetentionLock)).all() == []


def test_missing_bytes_are_listed_in_the_backup(
    make_instance: MakeInstance, tmp_path: Path
) -> None:
    full, empty = make_instance("full", "sqlite"), make_instance("empty", "sqlite")
    fill(full)
    with full.db.read() as session:
        lost, damaged = sorted(set(session.scalars(select(Image.sha256))))[:2]
    full.storage.delete(blob_key(lost))
    full.storage.write(blob_key(damaged), b"rotten")
    made = create_backup(full.db, full.storage, tmp_path / "b.tar")
    assert made.missing == [blob_key(lost), blob_key(damaged)]
    assert restore_backup(empty.db, empty.storage, tmp_path / "b.tar")["missing"]["count"] == 2
    assert rows(empty) == rows(full)


def test_nothing_is_collected_while_files_are_copied(
    make_instance: MakeInstance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything is deleted between the snapshot and the first copy."""
    full, empty = make_instance("full", "sqlite"), make_instance("empty", "sqlite")
    service = fill(full)
    with full.db.write() as session:
        session.execute(update(Job).values(status="succeeded"))
    before = rows(full), files(full)
    real = creating._FileCopier.copy_artifacts

    def delete_first(self: creating._FileCopier, keys: object) -> None:
        for number in (0, 1):
            service.delete_dataset(number)
        collected(full)
        real(self, keys)  # type: ignore[arg-type]

    monkeypatch.setattr(creating._FileCopier, "copy_artifacts", delete_first)
    made = create_backup(full.db, full.storage, tmp_path / "b.tar")
    assert made.missing == []
    restore_backup(empty.db, empty.storage, tmp_path / "b.tar")
    assert (rows(empty), files(empty)) == before
    list(full.collector.collect())
    assert collected(full)  # and now they go
    assert list(full.storage.list("sha256")) == []
