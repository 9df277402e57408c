"""Exporting and importing versions over HTTP."""

import io
import json
import zipfile
from concurrent.futures import ThreadPoolExecutor

import pytest
from fastapi.testclient import TestClient

from app.core.runtime import Runtime
from tests.api.conftest import Json, MakeClustering
from tests.conftest import MakeClient, MakeSettings
from tests.core.models.package.archives import packed, parts
from tests.images import ZIP

IMPORT = "/v1/models:import"


def _files(runtime: Runtime) -> list[str]:
    """The files in the storage of models and in its temporary folder."""
    places = (runtime.settings.blob_dir / "models", runtime.settings.blob_dir / "tmp")
    return [str(path) for place in places for path in place.rglob("*") if path.is_file()]


def test_a_version_as_a_file(
    client: TestClient, dataset: Json, make_clustering: MakeClustering
) -> None:
    clustering_id = make_clustering(dataset["id"])
    client.post(
        f"/v1/clusterings/{clustering_id}/operations",
        json={"kind": "rename", "cluster_id": 1, "label": "Hündchen"},
        headers={"If-Match": '"1"'},
    )
    answer = client.get("/v1/models/cats-dogs/versions/1/file")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/zip"
    assert answer.headers["content-disposition"] == 'attachment; filename="cats-dogs-1.temi"'
    assert int(answer.headers["content-length"]) == len(answer.content)
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        manifest = json.loads(archive.read("manifest.json"))
    assert [c["label"] for c in manifest["clusters"]] == ["cluster 0", "Hündchen", "cluster 2"]
    assert manifest["model"] == {"name": "cats-dogs", "version": 1}


def test_a_file_is_imported_as_a_version(any_client: TestClient, any_runtime: Runtime) -> None:
    data = packed(parts())
    answer = any_client.post(IMPORT, content=data, headers=ZIP)
    assert answer.status_code == 201, answer.text
    version = answer.json()
    assert (version["name"], version["version"]) == ("cats", 1)
    assert (version["clustering_id"], version["job_id"]) == (None, None)
    assert answer.headers["Location"] == "/v1/models/cats/versions/1"
    assert any_client.get(answer.headers["Location"]).json() == version
    assert version["manifest"]["model"] == {"name": "cats", "version": 7}
    again = any_client.post(IMPORT, content=data, headers=ZIP).json()
    named = any_client.post(IMPORT, content=data, headers=ZIP, params={"name": "dogs"}).json()
    assert [(v["name"], v["version"]) for v in (again, named)] == [("cats", 2), ("dogs", 1)]
    moved = any_client.put("/v1/models/cats/aliases/live", json={"version": 2})
    assert moved.json()["aliases"] == {"latest": 2, "live": 2}
    exported = any_client.get("/v1/models/dogs/versions/1/file")
    assert any_client.post(IMPORT, content=exported.content, headers=ZIP).json()["version"] == 2
    assert len(_files(any_runtime)) == 4 * 2


def test_a_repeated_import_creates_one_version(client: TestClient, runtime: Runtime) -> None:
    headers, data = {"Idempotency-Key": "one"}, packed(parts())
    answers = [client.post(IMPORT, content=data, headers=headers | ZIP) for _ in range(3)]
    assert [(a.status_code, a.json()["version"]) for a in answers] == [(201, 1)] * 3
    assert len({a.headers["Location"] for a in answers}) == 1
    assert len(_files(runtime)) == 2
    for other in ({"content": packed(parts(seed=1))}, {"content": data, "params": {"name": "x"}}):
        refused = client.post(IMPORT, headers=headers | ZIP, **other)
        assert (refused.status_code, refused.json()["code"]) == (422, "idempotency_mismatch")
    assert len(_files(runtime)) == 2


def test_concurrent_imports(any_client: TestClient) -> None:
    data = packed(parts())
    with ThreadPoolExecutor(6) as pool:
        answers = list(
            pool.map(lambda _: any_client.post(IMPORT, content=data, headers=ZIP), range(6))
        )
    assert sorted(answer.json()["version"] for answer in answers) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("data", "params", "code"),
    [
        (b"", {}, "model_file_invalid"),
        (b"no model", {}, "model_file_invalid"),
        (packed(parts())[:-100], {}, "model_file_invalid"),
        (packed(parts(n_clusters=4)), {}, "model_file_invalid"),
        (packed(parts(feature_dim=7)), {}, "model_file_invalid"),
        (packed(parts(backbone="msn_vitb16", feature_dim=768)), {}, "invalid_request"),
        (packed(parts(model=None)), {}, "invalid_request"),
        (packed(parts()), {"name": "Not A Name"}, "invalid_request"),
        (packed(parts(model={"name": "../x", "version": 1})), {}, "invalid_request"),
    ],
)
def test_refused_files_leave_nothing_in_the_storage(
    client: TestClient, runtime: Runtime, data: bytes, params: dict[str, str], code: str
) -> None:
    answer = client.post(IMPORT, content=data, headers=ZIP, params=params)
    assert (answer.status_code, answer.json()["code"]) == (422, code), answer.text
    assert answer.json()["detail"]
    assert client.get("/v1/models").json()["data"] == []
    assert _files(runtime) == []


def test_a_file_that_is_too_large(make_client: MakeClient, make_settings: MakeSettings) -> None:
    client = make_client(make_settings(max_model_bytes=1000))
    answer = client.post(IMPORT, content=packed(parts()), headers=ZIP)
    assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")
    streamed = client.post(IMPORT, content=iter([packed(parts())]), headers=ZIP)
    assert (streamed.status_code, streamed.json()["code"]) == (413, "body_too_large")


def test_a_damaged_version_is_not_exported(
    client: TestClient, runtime: Runtime, dataset: Json, make_clustering: MakeClustering
) -> None:
    make_clustering(dataset["id"])
    job_id = client.get("/v1/models/cats-dogs/versions/1").json()["job_id"]
    path = runtime.storage.path(f"models/{job_id}/model.safetensors")
    path.write_bytes(path.read_bytes()[:-1])
    answer = client.get("/v1/models/cats-dogs/versions/1/file")
    assert (answer.status_code, answer.json()["code"]) == (503, "model_integrity")


@pytest.mark.parametrize("path", ["none/versions/1/file", "none/versions/0/file"])
def test_unknown_resources(client: TestClient, path: str) -> None:
    assert client.get(f"/v1/models/{path}").status_code in (404, 422)
