"""For those who run it: alive, ready, figures, the page."""

import os
import subprocess
import sys

from fastapi.testclient import TestClient

from app.core.settings import Settings
from tests.api.conftest import Json, upload
from tests.conftest import MakeClient, MakeSettings
from tests.images import png_bytes
from tests.servers import free_port


def test_alive(client: TestClient) -> None:
    assert client.get("/livez").json() == {"alive": True}


def test_ready(any_client: TestClient) -> None:
    answer = any_client.get("/readyz")
    assert answer.status_code == 200
    body = answer.json()
    assert body["ready"] is True
    assert set(body["checks"]) == {"database", "broker", "storage", "weights"}


def test_what_is_not_ready_is_named(make_client: MakeClient, make_settings: MakeSettings) -> None:
    client = make_client(make_settings(broker_url=f"redis://127.0.0.1:{free_port()}/0"))
    answer = client.get("/readyz")
    assert answer.status_code == 503
    checks = answer.json()["checks"]
    assert [name for name, check in checks.items() if not check["ok"]] == ["broker"]
    assert "refused" in checks["broker"]["detail"]
    assert client.get("/livez").status_code == 200


def test_figures_of_jobs_and_requests(client: TestClient, dataset: Json) -> None:
    upload(client, {"a.png": png_bytes()})
    client.get("/v1/datasets/none")
    client.get("/no/such/path")
    text = client.get("/metrics").text
    assert 'temi_jobs{kind="ingest",status="succeeded"} 1.0' in text
    assert 'temi_jobs{kind="ingest",status="queued"} 1.0' in text
    route = 'route="/v1/datasets/{dataset_id}"'
    assert f'temi_http_requests_total{{method="GET",{route},status="404"}} 1.0' in text
    assert 'route="unmatched"' in text
    assert "/no/such/path" not in text  # addresses of strangers must not become series
    assert "temi_http_request_seconds_bucket" in text


def test_the_page(client: TestClient) -> None:
    answer = client.get("/")
    assert answer.headers["Content-Type"].startswith("text/html")
    assert "<html" in answer.text


def test_the_docs(client: TestClient) -> None:
    assert "swagger" in client.get("/docs").text.lower()


def test_the_api_starts_without_torch(settings: Settings) -> None:
    """It would cost a gigabyte and seconds in a process that only talks."""
    script = (
        "import sys; from app.main import create_app; from fastapi.testclient import TestClient\n"
        "with TestClient(create_app()) as client:\n"
        "    assert client.get('/readyz').status_code == 200\n"
        "print(sorted({'torch', 'timm', 'open_clip', 'sklearn', 'worker'} & set(sys.modules)))"
    )
    environment = os.environ | {"TEMI_DATA_DIR": str(settings.data_dir)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True
    )
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr
