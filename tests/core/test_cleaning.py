"""The sweep that removes what nothing refers to."""

import os
import time

import pytest

from app.core import cleaning
from app.core.cleaning import Cleaner
from app.core.runtime import Runtime
from app.core.storage import blob_key
from app.core.tables import CondemnedBlob
from app.core.uploads import create_upload, upload_key
from tests.conftest import MakeSettings


def test_everything_that_is_due_goes_in_one_round(make_settings: MakeSettings) -> None:
    runtime = Runtime(make_settings(delete_grace_seconds=0))
    sha256 = "ab" * 32
    runtime.storage.write(blob_key(sha256), b"x")
    with runtime.db.write() as session:
        session.add(CondemnedBlob(sha256=sha256))
        upload = create_upload(session, tenant="t", length=1, attributes={}, hours=-1)
    runtime.storage.write(upload_key(upload.id), b"x")
    clean = Cleaner(runtime)
    assert clean() == 2
    assert clean() == 0
    assert not [path for path in runtime.settings.blob_dir.rglob("*") if path.is_file()]
    runtime.db.dispose()


def test_lost_files_are_looked_for_once_a_minute(
    make_settings: MakeSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = Runtime(make_settings(delete_grace_seconds=0))
    now = time.time()
    prefix = int(now / 60 + 1) % 256
    key = blob_key(f"{prefix:02x}" * 32)
    runtime.storage.write(key, b"x")
    os.utime(runtime.storage.path(key), (now - 1e6,) * 2)
    clean = Cleaner(runtime)
    assert clean() == 0
    monkeypatch.setattr(time, "time", lambda: now + 60)
    clean()  # found
    assert clean() == 1  # removed
    assert not runtime.storage.exists(key)
    runtime.db.dispose()


def test_a_broken_disk_does_not_end_the_sweep(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_runtime: Runtime) -> int:
        raise OSError("disk")

    monkeypatch.setattr(cleaning, "remove_condemned", broken)
    assert Cleaner(runtime)() == 0
