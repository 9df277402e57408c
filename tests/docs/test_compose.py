"""docker-compose.yml and the Dockerfile agree with the commands and the settings."""

import re
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from app.cli import app
from app.core.settings import Settings

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if "build" in service}
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
_SETTINGS = {f"TEMI_{name.upper()}" for name in Settings.model_fields}

each_of_ours = pytest.mark.parametrize("name", OURS)


def test_all_parts_are_there() -> None:
    assert set(SERVICES) == {"api", "worker", "worker-gpu", "migrate", "postgres", "redis"}
    assert SERVICES["postgres"]["image"] == "postgres:17"
    assert SERVICES["redis"]["image"] == "redis:7"


@each_of_ours
def test_command_exists(name: str) -> None:
    found: Any = typer.main.get_command(app)
    for word in OURS[name]["command"]:
        found = vars(found)["commands"][word]


@each_of_ours
def test_environment_is_made_of_settings(name: str) -> None:
    assert set(OURS[name]["environment"]) <= _SETTINGS


@each_of_ours
def test_database_broker_and_files_are_shared(name: str) -> None:
    shared = ("TEMI_DATABASE_URL", "TEMI_BROKER_URL", "TEMI_DATA_DIR")
    environment = OURS[name]["environment"]
    assert {key: environment[key] for key in shared} == {
        key: OURS["api"]["environment"][key] for key in shared
    }
    assert OURS[name]["volumes"] == [f"data:{environment['TEMI_DATA_DIR']}"]


def test_settings_accept_the_environment() -> None:
    for service in OURS.values():
        given = {
            key.removeprefix("TEMI_").lower(): re.sub(r"\$\{.*?\}", "a-secret-of-letters", value)
            for key, value in service["environment"].items()
        }
        Settings.model_validate(given)


def test_open_address_needs_a_key() -> None:
    environment = OURS["api"]["environment"]
    assert environment["TEMI_HOST"] == "0.0.0.0"
    assert environment["TEMI_API_KEY"].startswith("${TEMI_API_KEY:?")


def test_secrets_are_in_the_example() -> None:
    text = (ROOT / "docker-compose.yml").read_text("utf-8")
    example = (ROOT / ".env.example").read_text("utf-8")
    assert set(re.findall(r"\$\{(\w+)", text)) == set(re.findall(r"^(\w+)=$", example, re.M))


@pytest.mark.parametrize("name", SERVICES)
def test_waits_for_what_can_come(name: str) -> None:
    for needed, wait in SERVICES[name].get("depends_on", {}).items():
        if wait["condition"] == "service_healthy":
            assert "test" in SERVICES[needed]["healthcheck"]
        else:
            assert wait["condition"] == "service_completed_successfully"
            assert SERVICES[needed]["restart"] == "no"


def test_everything_waits_for_the_tables() -> None:
    for name in ("api", "worker", "worker-gpu"):
        assert set(OURS[name]["depends_on"]) == {"migrate", "postgres", "redis"}
    assert set(OURS["migrate"]["depends_on"]) == {"postgres"}


def test_volumes_are_named() -> None:
    used = {v.partition(":")[0] for s in SERVICES.values() for v in s.get("volumes", [])}
    assert used == set(COMPOSE["volumes"])


def test_gpu_worker_is_only_started_when_asked_for() -> None:
    assert SERVICES["worker-gpu"]["profiles"] == ["gpu"]
    assert [name for name, service in SERVICES.items() if "profiles" in service] == ["worker-gpu"]


def test_dockerfile_copies_what_exists_and_is_let_through() -> None:
    ignored = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    for line in re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE, re.MULTILINE):
        for source in line.split()[:-1]:
            assert (ROOT / source).exists()
            assert f"!{source}" in ignored or f"!{source}/" in ignored


def test_dockerfile_settings_exist_and_user_is_not_root() -> None:
    assert set(re.findall(r"TEMI_[A-Z_]+(?==)", DOCKERFILE)) <= _SETTINGS
    assert re.search(r"^USER temi$", DOCKERFILE, re.MULTILINE)
