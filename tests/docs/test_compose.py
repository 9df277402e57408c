"""docker-compose.yml agrees with the commands, the settings, the secrets and its own schema."""

import json
import os
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
from app.core.platform.settings import Settings

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docker-compose.yml"
COMPOSE: dict[str, Any] = yaml.safe_load(FILE.read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if "build" in service}
LONG_RUNNING = [name for name, service in SERVICES.items() if service["restart"] != "no"]
SETTINGS = {f"TEMI_{name.upper()}" for name in Settings.model_fields}
SHARED = ("TEMI_STORAGE_URL", "TEMI_S3_ENDPOINT", "TEMI_S3_REGION")

SERVERS = ("postgres", "redis", "store")

every_service = pytest.mark.parametrize("name", SERVICES)
each_of_ours = pytest.mark.parametrize("name", OURS)


def default(text: str) -> str:
    """With what stands for a variable that is not set."""
    return re.sub(r"\$\{\w+:-(.*?)\}", r"\1", text)


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
    _, _, tag = default(SERVICES[name]["image"]).partition(":")
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
    shared = {"temi_database_url", "temi_broker_url", "temi_s3_access_key", "temi_s3_secret_key"}
    assert shared <= set(OURS[name]["secrets"])


@each_of_ours
def test_settings_accept_environment_and_secrets(
    name: str, secrets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key, value in OURS[name]["environment"].items():
        monkeypatch.setenv(key, default(value))
    for secret in OURS[name]["secrets"]:
        (tmp_path / secret).write_bytes((secrets / secret).read_bytes())
    settings = Settings(_env_file=None, _secrets_dir=tmp_path)
    password = (secrets / "postgres_password").read_text()
    assert settings.database_url == f"postgresql+psycopg://temi:{password}@postgres:5432/temi"
    assert settings.s3_secret_key is not None
    assert re.fullmatch(r"redis://:[0-9a-f]{48}@redis:6379/0", settings.broker_url)
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
    assert f"s3.bucket.create -name {bucket}" in SERVICES["bucket"]["command"][0]
    assert f"grep -w {bucket}" in SERVICES["bucket"]["command"][0]


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


@every_service
def test_memory_is_bounded_and_no_rights_are_gained(name: str) -> None:
    assert re.fullmatch(r"[1-9]\d*[mg]", default(SERVICES[name]["mem_limit"]))
    assert SERVICES[name]["security_opt"] == ["no-new-privileges:true"]


def test_a_worker_has_room_for_the_largest_training_that_is_accepted() -> None:
    most = Settings.model_fields["max_job_bytes"].default
    for name in ("worker-cpu", "worker-gpu"):
        limit = default(OURS[name]["mem_limit"])
        assert int(limit.removesuffix("g")) * 1024**3 > most


def test_the_account_of_the_store_is_of_one_bucket(secrets: Path) -> None:
    bucket = OURS["api"]["environment"]["TEMI_STORAGE_URL"].removeprefix("s3://")
    (account,) = json.loads((secrets / "store_identities").read_text())["identities"]
    assert set(account["actions"]) == {f"{action}:{bucket}" for action in ("Read", "Write", "List")}
    (key,) = account["credentials"]
    assert key == {
        "accessKey": (secrets / "temi_s3_access_key").read_text(),
        "secretKey": (secrets / "temi_s3_secret_key").read_text(),
    }
    assert "-s3.config=/run/secrets/store_identities" in SERVICES["store"]["command"]
    assert SERVICES["store"]["secrets"] == ["store_identities"]


def test_what_asks_for_no_key_listens_inside_the_store_only() -> None:
    command = SERVICES["store"]["command"]
    assert {"-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-s3.ip.bind=0.0.0.0"} <= set(command)
    port = OURS["api"]["environment"]["TEMI_S3_ENDPOINT"].rpartition(":")[2]
    assert f"-s3.port={port}" in command
    assert SERVICES["bucket"]["network_mode"] == "service:store"


def test_redis_asks_for_the_password_that_it_is_given(secrets: Path) -> None:
    config = (secrets / "redis_config").read_text()
    (password,) = re.findall(r"^requirepass (\w+)$", config, re.MULTILINE)
    assert len(password) >= 32
    assert f":{password}@" in (secrets / "temi_broker_url").read_text()
    assert SERVICES["redis"]["command"][1] == "/run/secrets/redis_config"
    assert password not in str(COMPOSE)


def test_servers_have_no_way_out_and_no_port_to_the_host() -> None:
    assert COMPOSE["networks"]["backend"] == {"internal": True}
    for name in SERVERS:
        assert SERVICES[name]["networks"] == ["backend"]
        assert "ports" not in SERVICES[name]
    for name in OURS:
        assert "backend" in OURS[name]["networks"]


def test_images_can_be_named_by_digest(tmp_path: Path) -> None:
    """No registry is asked here: a stand-in for `docker` tells a digest for each image."""
    docker = tmp_path / "docker"
    digest = "sha256:" + "ab" * 32
    docker.write_text(f"#!/bin/sh\necho {digest}\n")
    docker.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    script, target = ROOT / "deploy/compose/pin-images.sh", tmp_path / "images.env"
    subprocess.run([script, target], check=True, env=environment, capture_output=True)

    found = dict(line.split("=", 1) for line in target.read_text().splitlines())
    named = re.findall(r"\$\{(\w+_IMAGE):-(.*?)\}", FILE.read_text("utf-8"))
    assert found == {name: f"{image}@{digest}" for name, image in named}
    others = {s["image"] for name, s in SERVICES.items() if name not in OURS}
    assert all(image.startswith("${") for image in others)
    assert "PYTHON_IMAGE" in found

    docker.write_text("#!/bin/sh\necho nothing\n")
    failed = subprocess.run([script, target], env=environment, capture_output=True)
    assert failed.returncode != 0
    assert dict(line.split("=", 1) for line in target.read_text().splitlines()) == found
