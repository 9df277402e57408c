"""A backup of SQLite that is restored on PostgreSQL gives the same labels."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from app.core.backup.create import create_backup
from app.core.backup.restore import restore_backup
from app.core.platform.settings import Settings
from app.core.runtime import Runtime
from tests.api.conftest import COLORS, Json, upload, work_on
from tests.conftest import running_api
from tests.images import jpeg_bytes


def _runtime(settings: Settings) -> Iterator[Runtime]:
    runtime = Runtime(settings)
    yield runtime
    runtime.db.dispose()


@pytest.fixture
def cluster(tmp_path: Path, postgres_url: str, settings: Settings) -> Iterator[Runtime]:
    """The empty instance to restore to."""
    folder = tmp_path / "cluster"
    yield from _runtime(
        settings.model_copy(update={"data_dir": folder, "database_url": postgres_url})
    )


def _labels(client: TestClient) -> list[Json]:
    images = [("files", (name, jpeg_bytes(color, (40, 40)))) for name, color in COLORS.items()]
    answer = client.post("/v1/models/colors:predict", files=images)
    assert answer.status_code == 200, answer.text
    found: list[Json] = answer.json()["data"]
    return found


def test_restored_model_predicts_the_same_labels(
    tmp_path: Path, runtime: Runtime, cluster: Runtime
) -> None:
    with running_api(runtime.settings) as client:
        shades = {
            f"{name}/{size}.jpg": jpeg_bytes(color, (size, size))
            for name, color in COLORS.items()
            for size in range(30, 36)
        }
        ingest = upload(client, shades, name="colors")
        work_on(runtime, ingest["id"])
        body = {"dataset_id": ingest["dataset_id"], "n_clusters": 3, "n_heads": 2, "steps": 30}
        job = client.post("/v1/jobs", json=body).json()
        work_on(runtime, job["id"])
        create_backup(runtime.db, runtime.storage, tmp_path / "laptop.tar")
        before = _labels(client)
        found = client.get(f"/v1/jobs/{job['id']}").json()
    restore_backup(cluster.db, cluster.storage, tmp_path / "laptop.tar")
    with running_api(cluster.settings) as client:
        assert client.get(f"/v1/jobs/{job['id']}").json() == found
        after = _labels(client)
        assert [(row["label"], row["cluster_id"]) for row in after] == [
            (row["label"], row["cluster_id"]) for row in before
        ]
        assert [row["probability"] for row in after] == pytest.approx(
            [row["probability"] for row in before]
        )
        assignments = f"/v1/clusterings/{found['result']['clustering_id']}/assignments"
        image = client.get(assignments).json()["data"][0]["image_id"]
        content = client.get(f"/v1/images/{image}/content").content
        assert content in shades.values()
        again = client.post("/v1/jobs", json=body).json()  # and it goes on from there
        work_on(cluster, again["id"])
        assert client.get(f"/v1/jobs/{again['id']}").json()["status"] == "succeeded"
