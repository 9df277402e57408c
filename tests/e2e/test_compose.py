"""The processes of docker-compose.yml, without containers."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis
import yaml

from app.core.platform.processes import kill_with_parent
from temi_client import TemiClient
from tests.buckets import s3_client
from tests.servers import Server, free_port, redis_binary
from tests.waiting import LONG_SECONDS, end, wait_until

ROOT = Path(__file__).parents[2]
SERVICES: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]


class Stack:
    """Commands, environment, secrets and health checks of the file, with local addresses."""

    def __init__(self, folder: Path, database_url: str, broker_url: str, s3_url: str) -> None:
        self.folder = folder
        self.secrets = folder / "secrets"
        self.port, self.metrics_port = free_port(), free_port()
        self._changes = {
            "TEMI_S3_ENDPOINT": s3_url,
            "TEMI_PORT": str(self.port),
            "TEMI_METRICS_PORT": str(self.metrics_port),
            "TEMI_SECRETS_DIR": str(self.secrets),
        }
        subprocess.run([ROOT / "deploy/compose/new-secrets.sh", self.secrets], check=True)
        for name, url in (("temi_database_url", database_url), ("temi_broker_url", broker_url)):
            (self.secrets / name).unlink()
            (self.secrets / name).write_text(url)

    def environment(self, name: str) -> dict[str, str]:
        given = {
            key: re.sub(r"\$\{\w+:-(.*?)\}", r"\1", value)
            for key, value in SERVICES[name]["environment"].items()
        }
        changed = {k: v for k, v in self._changes.items() if k in given or "SECRETS" in k}
        return {**os.environ, **given, **changed, "TEMI_DATA_DIR": str(self.folder / name)}

    def command(self, name: str) -> list[str]:
        return [sys.executable, "-m", "app.cli.main", *SERVICES[name]["command"]]

    def client(self, key: str) -> TemiClient:
        return TemiClient(f"http://127.0.0.1:{self.port}", key, timeout=LONG_SECONDS)

    @contextmanager
    def started(self, name: str) -> Iterator[None]:
        log = self.folder / f"{name}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                self.command(name),
                env=self.environment(name),
                stdout=out,
                stderr=out,
                preexec_fn=kill_with_parent(),
            )
        try:
            self._wait_until_healthy(name, process, log)
            yield
        finally:
            end(process)

    def _wait_until_healthy(self, name: str, process: subprocess.Popen[bytes], log: Path) -> None:
        kind, program, *words = SERVICES[name]["healthcheck"]["test"]
        assert (kind, program) == ("CMD", "python")
        words = [w.replace(":8000", f":{self.port}") for w in words]
        words = [w.replace(":9100", f":{self.metrics_port}") for w in words]

        def healthy() -> bool:
            assert process.poll() is None, log.read_text()
            return subprocess.run([sys.executable, *words], capture_output=True).returncode == 0

        wait_until(healthy, f"{name} is healthy", pause=0.2, details=log.read_text)


def test_redis_needs_the_password(tmp_path: Path) -> None:
    """Starts Redis with the configuration of docker-compose.yml."""
    secrets, port = tmp_path / "secrets", free_port()
    subprocess.run([ROOT / "deploy/compose/new-secrets.sh", secrets], check=True)
    program, config, *words = SERVICES["redis"]["command"]
    assert program == "redis-server"
    file = secrets / Path(config).name
    flags = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(tmp_path)]
    url = (secrets / "temi_broker_url").read_text().replace("@redis:6379", f"@127.0.0.1:{port}")
    with (
        redis.Redis.from_url(url) as friend,
        redis.Redis(port=port) as stranger,
        Server(
            url,
            [redis_binary(), str(file), *words, *flags],
            tmp_path,
            connect=friend.ping,
            not_yet=redis.ConnectionError,
        ),
    ):
        assert friend.ping()
        with pytest.raises(redis.AuthenticationError):
            stranger.ping()


@pytest.fixture
def stack(tmp_path: Path, empty_postgres_url: str, redis_url: str, s3_url: str) -> Stack:
    made = Stack(tmp_path, empty_postgres_url, redis_url, s3_url)
    store = s3_client(s3_url)
    bucket = SERVICES["api"]["environment"]["TEMI_STORAGE_URL"].removeprefix("s3://")
    store.create_bucket(Bucket=bucket)  # as the service `bucket` does
    store.close()
    return made


def test_from_empty_servers_to_labels(stack: Stack, shapes_zip: Path, s3_url: str) -> None:
    migrate = stack.command("migrate")
    subprocess.run(migrate, env=stack.environment("migrate"), check=True, capture_output=True)
    key = (stack.secrets / "temi_api_key").read_text()
    with ExitStack() as running:
        for name in ("api", "worker-cpu"):
            running.enter_context(stack.started(name))
        client = running.enter_context(stack.client(key))
        assert client.ready().ready
        ingest = client.wait(client.upload_dataset(shapes_zip, name="shapes").id)
        assert ingest.dataset_id is not None
        job = client.wait(client.cluster(ingest.dataset_id, 3, steps=5).id)
        assert job.result is not None
        assert len(list(client.assignments(job.result["clustering_id"]))) == 90

    assert not list((stack.folder / "api").rglob("model.safetensors"))
    store = s3_client(s3_url)
    stored = [found["Key"] for found in store.list_objects_v2(Bucket="temi")["Contents"]]
    store.close()
    assert any(key.endswith("model.safetensors") for key in stored)
    assert sum(key.startswith("sha256/") for key in stored) == 90
