"""No other user of the machine can read what the running service writes."""

import os
import stat
from pathlib import Path

from tests.e2e.conftest import running
from tests.images import png_bytes, zip_of


def test_all_files_of_a_running_service_are_private(tmp_path: Path) -> None:
    """Written by the API, the worker, the process of a job, and the broker."""
    before = os.umask(0o022)
    try:
        with running(tmp_path / "data") as service, service.client() as client:
            archive = tmp_path / "photos.zip"
            archive.write_bytes(zip_of({"a.png": png_bytes("red"), "b.png": png_bytes("blue")}))
            job = client.wait(client.upload_dataset(str(archive), name="d").id)
            assert job.status == "succeeded"
            found = [tmp_path / "data", *(tmp_path / "data").rglob("*")]
            modes = {path: stat.S_IMODE(path.lstat().st_mode) for path in found if path.exists()}
    finally:
        os.umask(before)
    assert any(path.parent.parent.name == "sha256" for path in modes)
    assert {path: oct(mode) for path, mode in modes.items() if mode & 0o077} == {}
