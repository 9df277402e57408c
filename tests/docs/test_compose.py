"""docker-compose.yml agrees with the commands, the settings, the secrets and its own schema."""

import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from app.cli import app
from app.core.settings import Settings

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docker-compose.yml"
COMPOSE: dict[str, Any] = yaml.safe_load(FILE.read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if "build" in service}
LONG_RUNNING = [name for name, service in SERVICES.items() if service["restart"] != "no"]
SETTINGS = {f"TEMI_{name.upper()}" for name in Settings.model_fields}
SHARED = ("TEMI_BROKER_URL", "TEMI_STORAGE_URL", "TEMI_S3_ENDPOINT", "TEMI_S3_REGION")

every_service = pytest.mark.parametrize("name", SERVICES)
each_of_ours = pytest.mark.parametrize("name", OURS)


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the script leaves that the page tells to run."""
    folder = tmp_path_factory.mktemp("made") / "secrets"
    script = ROOT / "deploy/compose/new-secrets.sh"
    subprocess.run([script, folder], check=True, capture_output=True)
    return folder


def test_it_is_a_compose_file() -> None:
    check = ["-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(FILE)]
    done = subprocess.run([sys.executable, *check], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_all_parts_are_there() -> None:
    assert set(OURS) == {"api", "worker-cpu", "worker-gpu", "migrate"}
    assert set(SERVICES) - set(OURS) == {
        *("postgres", "redis", "store", "bucket"),
        *("prometheus", "grafana"),
    }


@every_service
def test_images_are_of_a_version(name: str) -> None:
    _, _, tag = SERVICES[name]["image"].partition(":")
    assert tag not in ("", "latest")


@each_of_ours
def test_command_exists(name: str) -> None:
    found: Any = typer.main.get_command(app)
    for word in OURS[name]["command"]:
        found = vars(found)["commands"][word]


@each_of_ours
def test_target_is_in_the_dockerfile(name: str) -> None:
    target = OURS[name]["build"]["target"]
    dockerfile = (ROOT / "Dockerfile").read_text("utf-8")
    assert re.search(rf"^FROM \S+ AS {target}$", dockerfile, re.MULTILINE)
    assert OURS[name]["image"] == f"temi-service:{target}"


@each_of_ours
def test_environment_is_made_of_settings(name: str) -> None:
    assert set(OURS[name]["environment"]) <= SETTINGS


@each_of_ours
def test_database_broker_and_store_are_shared(name: str) -> None:
    environment = OURS[name]["environment"]
    assert {key: environment[key] for key in SHARED} == {
        key: OURS["api"]["environment"][key] for key in SHARED
    }
    assert {"temi_database_url", "temi_s3_access_key", "temi_s3_secret_key"} <= set(
        OURS[name]["secrets"]
    )


@each_of_ours
def test_settings_accept_environment_and_secrets(
    name: str, secrets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key, value in OURS[name]["environment"].items():
        monkeypatch.setenv(key, re.sub(r"\$\{\w+:-(.*?)\}", r"\1", value))
    for secret in OURS[name]["secrets"]:
        (tmp_path / secret).write_bytes((secrets / secret).read_bytes())
    settings = Settings(_env_file=None, _secrets_dir=tmp_path)
    password = (secrets / "postgres_password").read_text()
    assert settings.database_url == f"postgresql+psycopg://temi:{password}@postgres:5432/temi"
    assert settings.s3_secret_key is not None
    assert (settings.api_key is not None) == (name == "api")


def test_open_address_needs_a_key() -> None:
    assert OURS["api"]["environment"]["TEMI_HOST"] == "0.0.0.0"
    assert "temi_api_key" in OURS["api"]["secrets"]
    for service in SERVICES.values():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))


@every_service
def test_every_secret_is_made_and_wired(name: str, secrets: Path) -> None:
    for secret in SERVICES[name].get("secrets", []):
        assert COMPOSE["secrets"][secret] == {"file": f"./secrets/{secret}"}
        assert (secrets / secret).stat().st_size >= 16
    told = re.findall(r"/run/secrets/(\w+)", str(SERVICES[name]))
    assert set(told) <= set(SERVICES[name].get("secrets", []))


def test_secrets_are_used_kept_and_closed(secrets: Path) -> None:
    used = {secret for service in SERVICES.values() for secret in service.get("secrets", [])}
    assert used == set(COMPOSE["secrets"]) == {path.name for path in secrets.iterdir()}
    assert stat.S_IMODE(secrets.stat().st_mode) == 0o700
    before = {path.name: path.read_bytes() for path in secrets.iterdir()}
    subprocess.run([ROOT / "deploy/compose/new-secrets.sh", secrets], check=True)
    assert {path.name: path.read_bytes() for path in secrets.iterdir()} == before
    assert "/secrets/" in (ROOT / ".gitignore").read_text("utf-8").splitlines()


@every_service
def test_waits_for_what_can_come(name: str) -> None:
    for needed, wait in SERVICES[name].get("depends_on", {}).items():
        if wait["condition"] == "service_healthy":
            assert "test" in SERVICES[needed]["healthcheck"]
        else:
            assert wait["condition"] == "service_completed_successfully"
            assert SERVICES[needed]["restart"] == "no"


def test_everything_waits_for_tables_and_bucket() -> None:
    for name in ("api", "worker-cpu", "worker-gpu"):
        assert set(OURS[name]["depends_on"]) == {"migrate", "bucket", "postgres", "redis", "store"}
    bucket = OURS["api"]["environment"]["TEMI_STORAGE_URL"].removeprefix("s3://")
    assert f"mc mb --ignore-existing store/{bucket}" in SERVICES["bucket"]["command"][0]


@pytest.mark.parametrize("name", LONG_RUNNING)
def test_health_is_looked_at_where_it_is_told(name: str) -> None:
    test = " ".join(SERVICES[name]["healthcheck"]["test"])
    environment = SERVICES[name].get("environment", {})
    if name == "api":
        assert f"127.0.0.1:{environment['TEMI_PORT']}/livez" in test
    elif name in OURS:
        assert f"127.0.0.1:{environment['TEMI_METRICS_PORT']}/metrics" in test
    assert test.startswith("CMD ")


@each_of_ours
def test_nothing_is_written_beside_the_volumes(name: str) -> None:
    assert OURS[name]["read_only"] is True
    if name != "migrate":
        assert OURS[name]["volumes"] == [f"{name}:/data"]


def test_volumes_are_named_and_files_exist() -> None:
    mounts = [v.split(":")[0] for s in SERVICES.values() for v in s.get("volumes", [])]
    assert {mount for mount in mounts if not mount.startswith(".")} == set(COMPOSE["volumes"])
    assert all((ROOT / mount).exists() for mount in mounts if mount.startswith("."))


def test_extras_are_only_started_when_asked_for() -> None:
    profiles = {name: s["profiles"] for name, s in SERVICES.items() if "profiles" in s}
    assert profiles == {
        "worker-gpu": ["gpu"],
        "prometheus": ["observe"],
        "grafana": ["observe"],
    }


def test_prometheus_asks_where_figures_are_told() -> None:
    text = (ROOT / "deploy/prometheus/compose.yml").read_text("utf-8")
    jobs = {job["job_name"]: job for job in yaml.safe_load(text)["scrape_configs"]}
    assert "/etc/prometheus/compose.yml" in str(SERVICES["prometheus"]["command"])
    for job, variable in (("temi-api", "TEMI_PORT"), ("temi-worker", "TEMI_METRICS_PORT")):
        (found,) = jobs[job]["dns_sd_configs"]
        for name in found["names"]:
            assert OURS[name]["environment"][variable] == str(found["port"])


def test_grafana_finds_its_source_and_its_dashboard() -> None:
    folder = ROOT / "deploy/grafana/provisioning"
    (source,) = yaml.safe_load((folder / "datasources/prometheus.yml").read_text())["datasources"]
    assert source["url"] == "http://prometheus:9090"
    (provider,) = yaml.safe_load((folder / "dashboards/temi.yml").read_text())["providers"]
    mounts = [volume.split(":")[1] for volume in SERVICES["grafana"]["volumes"]]
    assert f"{provider['options']['path']}/temi.json" in mounts
