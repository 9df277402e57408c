"""The cleaner deletes files that no row refers to."""

import time

import pytest

from app.core.datasets.uploads import create_upload
from app.core.platform.tables import BlobDeletion
from app.core.runtime import Runtime
from app.core.storage.deletion.cleanup import Cleanup
from app.core.storage.deletion.collector import parts
from app.core.storage.keys import blob_key, upload_key
from tests.conftest import MakeSettings
from worker.supervision.maintenance import Cleaner


def test_everything_due_is_deleted_in_one_run(make_settings: MakeSettings) -> None:
    runtime = Runtime(make_settings(delete_grace_seconds=0))
    sha256 = "ab" * 32
    runtime.storage.write(blob_key(sha256), b"x")
    with runtime.db.write() as session:
        session.add(BlobDeletion(sha256=sha256))
        upload = create_upload(session, tenant="t", length=1, attributes={}, hours=-1)
    runtime.storage.write(upload_key(upload.id), b"x")
    clean = Cleaner(runtime)
    assert clean() == 2
    assert clean() == 0
    assert not [path for path in runtime.settings.blob_dir.rglob("*") if path.is_file()]
    runtime.db.dispose()


def test_one_folder_a_minute_is_searched_for_lost_files(
    make_settings: MakeSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = Runtime(make_settings())
    now = time.time() + 1e6
    for key in (blob_key("ab" * 32), "jobs/job_gone/model.safetensors", "models/imp_gone/x"):
        runtime.storage.write(key, b"x")
    monkeypatch.setattr(time, "time", lambda: now)
    clean = Cleaner(runtime)
    assert clean() == 0
    removed = 0
    for minute in range(1, len(parts()) + 1):
        monkeypatch.setattr(time, "time", lambda minute=minute: now + 60 * minute)
        found = clean()
        assert found <= 1
        assert clean() == 0  # once a minute
        removed += found
    assert removed == 3
    assert not [path for path in runtime.settings.blob_dir.rglob("*") if path.is_file()]
    runtime.db.dispose()


def test_a_broken_disk_does_not_end_the_cleaner(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_arguments: object) -> int:
        raise OSError("disk")

    monkeypatch.setattr(Cleanup, "run", broken)
    assert Cleaner(runtime)() == 0
