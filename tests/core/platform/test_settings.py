"""Settings are read from the environment, and invalid values are refused."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from app.core.platform.settings import Settings, get_settings


def test_defaults_need_no_other_server(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)
    assert settings.sqlalchemy_url == f"sqlite:///{tmp_path}/temi.db"
    assert settings.broker_url == "filesystem://"
    assert settings.loopback_only
    assert settings.threads >= 1


def test_the_environment_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("TEMI_PORT=9001\nTEMI_HOST=0.0.0.0\nOTHER=1\n")
    monkeypatch.setenv("TEMI_DATA_DIR", "/somewhere")
    monkeypatch.setenv("TEMI_PORT", "9002")
    settings = get_settings()
    assert settings.data_dir == Path("/somewhere")
    assert settings.port == 9002  # the shell wins over the file
    assert not settings.loopback_only


def test_a_configured_database_is_used(tmp_path: Path) -> None:
    url = "postgresql+psycopg://db/temi"
    assert Settings(data_dir=tmp_path, database_url=url).sqlalchemy_url == url


def test_folders_are_in_the_data_folder(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)
    for folder in (settings.blob_dir, settings.temporary_dir, settings.broker_dir):
        assert folder.is_relative_to(tmp_path)
    assert settings.temporary_dir.is_relative_to(settings.blob_dir)


@pytest.mark.parametrize(
    ("heartbeat", "self_kill", "lease"),
    [(10.0, 5.0, 60.0), (10.0, 60.0, 60.0), (10.0, 10.0, 60.0), (70.0, 80.0, 60.0)],
)
def test_times_that_could_give_a_job_to_two_workers_are_refused(
    heartbeat: float, self_kill: float, lease: float
) -> None:
    with pytest.raises(ValidationError, match="two workers"):
        Settings(heartbeat_seconds=heartbeat, self_kill_seconds=self_kill, lease_seconds=lease)


def test_a_short_api_key_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEMI_API_KEY", "short")
    with pytest.raises(ValidationError, match="16 characters"):
        Settings()
    monkeypatch.setenv("TEMI_API_KEY", "x" * 16)
    settings = Settings()
    assert settings.api_key is not None
    assert "x" * 16 not in repr(settings)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TEMI_DEVICE", "gpu"),
        ("TEMI_PORT", "0"),
        ("TEMI_LOG_FORMAT", "xml"),
        ("TEMI_MAX_BAD_FRACTION", "1.5"),
        ("TEMI_MAX_BODY_BYTES", "-1"),
        ("TEMI_LEASE_SECONDS", "soon"),
    ],
)
def test_invalid_values_are_refused(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ValidationError):
        Settings()


def test_settings_do_not_change(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)
    with pytest.raises(ValidationError):
        settings.port = 1  # type: ignore[misc]


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_c2hvcnQ=", "whsec_?", "A" * 100])
def test_a_secret_that_cannot_sign_is_refused(secret: str) -> None:
    with pytest.raises(ValidationError, match="24 to 64 bytes"):
        Settings(webhook_secret=secret)


def test_a_secret_that_can_sign() -> None:
    settings = Settings(webhook_secret="whsec_" + "A" * 32)
    assert "AAAA" not in repr(settings)


def test_secrets_are_read_from_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in (("access", "who"), ("secret", "word")):
        (tmp_path / f"temi_s3_{name}_key").write_text(f"{value}\n")
    monkeypatch.setenv("TEMI_SECRETS_DIR", str(tmp_path))
    settings = get_settings()
    assert settings.s3_secret_key is not None
    assert settings.s3_secret_key.get_secret_value() == "word"
    assert "word" not in repr(settings)
    monkeypatch.setenv("TEMI_S3_SECRET_KEY", "other")
    get_settings.cache_clear()
    found = get_settings().s3_secret_key
    assert found is not None
    assert found.get_secret_value() == "other"  # the shell wins over the file


@pytest.mark.parametrize("url", ["/folder", "s3://", "s3:///x", "gs://bucket", "s3://b//x", "b"])
def test_a_storage_url_of_another_scheme_is_refused(url: str) -> None:
    with pytest.raises(ValidationError, match="s3://bucket/prefix"):
        Settings(storage_url=url)


def test_a_key_without_its_secret_is_refused() -> None:
    with pytest.raises(ValidationError, match="or neither"):
        Settings(s3_access_key="who")


def test_with_a_bucket_only_the_cache_is_local(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, storage_url="s3://bucket/prefix")
    for folder in (settings.local_dir, settings.temporary_dir, settings.staging_dir):
        assert folder.is_relative_to(tmp_path / "cache")
    assert Settings(upload_dir=tmp_path / "shared").staging_dir == tmp_path / "shared"


def test_worker_takes_is_checked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TEMI_WORKER_TAKES", "gpu")
    assert Settings(data_dir=tmp_path).worker_takes == ("gpu",)
    for wrong in ("", "tpu", "cpu,tpu"):
        with pytest.raises(ValidationError, match="must be some of cpu, gpu"):
            Settings(data_dir=tmp_path, worker_takes=wrong)
