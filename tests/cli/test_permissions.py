"""Files of the service are private; files for the user follow the umask."""

import os
import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli import app
from app.cli.output import write_bytes
from app.core.platform.settings import get_settings

run = CliRunner().invoke


def _modes(folder: Path) -> set[int]:
    paths = [folder, *folder.rglob("*")]
    return {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in paths}


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TEMI_DATA_DIR", str(tmp_path / "data"))
    get_settings.cache_clear()
    os.umask(0o022)
    return tmp_path / "data"


@pytest.mark.parametrize("command", [["db", "upgrade"], ["keys", "create", "me"], ["gc"]])
def test_the_data_folder_is_private(data: Path, command: list[str]) -> None:
    assert run(app, command).exit_code == 0
    assert (data / "temi.db").is_file()
    assert _modes(data) == {0}
    assert os.umask(0o022) == 0o022  # restored after the command


def test_a_backup_is_private(data: Path, tmp_path: Path) -> None:
    made = run(app, ["backup", str(tmp_path / "backup.tar")])
    assert made.exit_code == 0, made.output
    assert stat.S_IMODE((tmp_path / "backup.tar").stat().st_mode) == 0o600
    assert _modes(data) == {0}


def test_temi_umask_changes_the_permissions(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEMI_UMASK", "027")
    get_settings.cache_clear()
    assert run(app, ["db", "upgrade"]).exit_code == 0
    assert stat.S_IMODE(data.stat().st_mode) == 0o750
    assert stat.S_IMODE((data / "temi.db").stat().st_mode) == 0o640


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o027, 0o640), (0o077, 0o600)])
def test_files_for_the_user_follow_the_umask(tmp_path: Path, umask: int, mode: int) -> None:
    os.umask(umask)
    write_bytes(tmp_path / "sheet.png", b"picture")
    assert stat.S_IMODE((tmp_path / "sheet.png").stat().st_mode) == mode
