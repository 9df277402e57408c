"""Liveness and readiness."""

import os
import subprocess
import sys

from fastapi.testclient import TestClient

from app.core.health import CHECKS
from app.core.platform.settings import Settings
from app.core.platform.version import package_version
from tests.conftest import MakeClient, MakeSettings
from tests.servers import free_port


def test_livez(client: TestClient) -> None:
    assert client.get("/livez").json() == {"alive": True}


def test_readyz(any_client: TestClient) -> None:
    answer = any_client.get("/readyz")
    assert answer.status_code == 200
    body = answer.json()
    assert body["ready"] is True
    assert body["version"] == any_client.get("/openapi.json").json()["info"]["version"]
    assert body["version"] == package_version()
    assert set(body["checks"]) == {*CHECKS, "models"}
    assert {check["status"] for check in body["checks"].values()} == {"ok"}


def test_readyz_names_the_failed_check(
    make_client: MakeClient, make_settings: MakeSettings
) -> None:
    client = make_client(make_settings(broker_url=f"redis://127.0.0.1:{free_port()}/0"))
    answer = client.get("/readyz")
    assert answer.status_code == 503
    checks = answer.json()["checks"]
    assert [name for name, check in checks.items() if not check["ok"]] == ["broker"]
    assert checks["broker"]["status"] == "failed"
    assert "refused" in checks["broker"]["detail"]
    assert "TEMI_BROKER_URL" in checks["broker"]["hint"]
    assert 0 <= checks["broker"]["seconds"] < 3
    assert client.get("/livez").status_code == 200


def test_the_docs(client: TestClient) -> None:
    assert "swagger" in client.get("/docs").text.lower()


def test_the_api_starts_without_torch(settings: Settings) -> None:
    """Torch would cost the API process a gigabyte and seconds at start."""
    script = (
        "import sys; from app.main import create_app; from fastapi.testclient import TestClient\n"
        "with TestClient(create_app(), base_url='http://localhost') as client:\n"
        "    assert client.get('/readyz').status_code == 200\n"
        "print(sorted({'torch', 'timm', 'open_clip', 'sklearn', 'worker'} & set(sys.modules)))"
    )
    environment = os.environ | {"TEMI_DATA_DIR": str(settings.data_dir)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True
    )
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr
