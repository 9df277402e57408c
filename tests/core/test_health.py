"""The check names the part that is wrong, and only that."""

from pathlib import Path

import pytest

from app.core.health import check_health
from app.core.runtime import Runtime
from app.core.settings import Settings
from tests.conftest import MakeSettings
from tests.servers import free_port


def _wrong(settings: Settings) -> dict[str, str | None]:
    runtime = Runtime(settings)
    findings = check_health(runtime)
    assert set(findings) == {"database", "broker", "storage", "weights"}
    runtime.db.dispose()
    runtime.celery.close()
    return {name: finding.detail for name, finding in findings.items() if not finding.ok}


def test_all_is_well(any_settings: Settings) -> None:
    assert _wrong(any_settings) == {}


def test_with_redis_all_is_well(make_settings: MakeSettings, redis_url: str) -> None:
    assert _wrong(make_settings(broker_url=redis_url)) == {}


def test_a_database_that_is_not_there(make_settings: MakeSettings) -> None:
    url = f"postgresql+psycopg://nobody@127.0.0.1:{free_port()}/none"
    wrong = _wrong(make_settings(database_url=url))
    assert list(wrong) == ["database"]
    assert wrong["database"] is not None
    assert "refused" in wrong["database"]


def test_a_database_without_tables(make_settings: MakeSettings, tmp_path: Path) -> None:
    wrong = _wrong(make_settings(database_url=f"sqlite:///{tmp_path / 'other.db'}"))
    assert wrong == {"database": "the tables are not current; run `temi db upgrade`"}


def test_a_broker_that_is_not_there(make_settings: MakeSettings) -> None:
    wrong = _wrong(make_settings(broker_url=f"redis://127.0.0.1:{free_port()}/0"))
    assert list(wrong) == ["broker"]


def test_a_storage_that_cannot_be_written(settings: Settings) -> None:
    settings.blob_dir.mkdir(parents=True)
    (settings.blob_dir / "health").write_text("a file where a folder should be")
    assert list(_wrong(settings)) == ["storage"]


def test_weights_that_are_not_installed(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("temi.catalog.EMBEDDED_PACKAGE", "no_such_package")
    wrong = _wrong(settings)
    assert list(wrong) == ["weights"]
    assert "not installed" in str(wrong["weights"])
