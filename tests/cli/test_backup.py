"""`temi backup`, `temi restore` and `temi gc`."""

import json
import os
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli import app
from app.core.platform.settings import get_settings
from app.core.runtime import Runtime
from tests.core.backup.instances import files, fill, rows

run = CliRunner().invoke


def _use(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Runtime:
    monkeypatch.chdir(folder.parent)
    monkeypatch.setenv("TEMI_DATA_DIR", str(folder))
    get_settings.cache_clear()
    return Runtime(get_settings())


def test_backup_and_restore(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = _use(monkeypatch, tmp_path / "full")
    assert run(app, ["db", "upgrade"]).exit_code == 0
    fill(full)
    made = run(app, ["backup", str(tmp_path)])
    assert made.exit_code == 0, made.output
    path = Path(made.stdout.strip())
    assert path.parent == tmp_path
    assert " rows and " in made.stderr

    twice = run(app, ["backup", str(path)])
    assert (twice.exit_code, twice.stdout) == (1, "")
    refused = run(app, ["restore", str(path)])
    assert refused.exit_code == 1
    assert "not empty" in refused.stderr

    empty = _use(monkeypatch, tmp_path / "empty")
    restored = run(app, ["restore", str(path)])
    assert restored.exit_code == 0, restored.output
    assert (rows(empty), files(empty)) == (rows(full), files(full))
    for runtime in (full, empty):
        runtime.db.dispose()


@pytest.mark.parametrize("target", ["new/folder/", "new/folder/backup.tar"])
def test_missing_folders_are_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    _use(monkeypatch, tmp_path / "data").db.dispose()
    made = run(app, ["backup", target])
    assert made.exit_code == 0, made.output
    (written,) = (tmp_path / "new" / "folder").iterdir()
    assert Path(made.stdout.strip()).resolve() == written


def test_restoring_a_damaged_file_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _use(monkeypatch, tmp_path / "data")
    (tmp_path / "b.tar").write_bytes(b"x" * 2_000)
    answer = run(app, ["restore", str(tmp_path / "b.tar")])
    assert answer.exit_code == 1
    assert "damaged" in answer.stderr
    assert run(app, ["restore", str(tmp_path / "none.tar")]).exit_code == 2


def test_gc_lists_then_removes_unreferenced_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = _use(monkeypatch, tmp_path / "data")
    runtime.storage.write("jobs/job_gone/model", b"four")
    runtime.storage.write("jobs/job_young/model", b"x")
    then = time.time() - 1e6
    os.utime(tmp_path / "data/blobs/jobs/job_gone/model", (then, then))
    shown = run(app, ["gc", "--dry-run", "--json"])
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.stdout) == [{"kind": "jobs", "files": 1, "bytes": 4}]
    assert runtime.storage.exists("jobs/job_gone/model")
    assert json.loads(run(app, ["gc", "--json"]).stdout) == json.loads(shown.stdout)
    assert [file.key for file in runtime.storage.list("jobs")] == ["jobs/job_young/model"]
    assert run(app, ["gc"]).stdout.split() == ["kind", "files", "size"]  # nothing is left
