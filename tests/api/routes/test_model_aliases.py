"""Aliases over HTTP: set, rolled back, history, damaged versions."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
from fastapi.testclient import TestClient

from app.core.runtime import Runtime
from tests.api.conftest import Json, MakeClustering, store_clustering, upload, work_on
from tests.conftest import MakeClient, MakeSettings
from tests.images import png_bytes

URL = "/v1/models/cats-dogs/aliases/production"


@pytest.fixture
def versions(client: TestClient, dataset: Json, make_clustering: MakeClustering) -> None:
    for _ in range(3):
        make_clustering(dataset["id"])


def _move(client: TestClient, *versions: int) -> None:
    for version in versions:
        answer = client.put(URL, json={"version": version})
        assert answer.status_code == 200, answer.text


def _history(client: TestClient) -> list[Json]:
    data: list[Json] = client.get(f"{URL}/history").json()["data"]
    return data


def _where(client: TestClient) -> int:
    return int(client.get("/v1/models/cats-dogs").json()["aliases"]["production"])


def _damage(client: TestClient, runtime: Runtime, version: int) -> None:
    row = client.get(f"/v1/models/cats-dogs/versions/{version}").json()
    path = runtime.storage.path(f"models/{row['job_id']}/model.safetensors")
    path.write_bytes(path.read_bytes()[:-1] + b"!")


def test_rollback_and_history(any_client: TestClient, any_runtime: Runtime) -> None:
    job = upload(any_client, {"a.png": png_bytes("red"), "b.png": png_bytes("blue")})
    work_on(any_runtime, job["id"])
    for _ in range(3):
        store_clustering(any_runtime, job["dataset_id"])
    _move(any_client, 1, 2, 3)
    for expected in (2, 1):
        answer = any_client.post(f"{URL}:rollback")
        assert answer.status_code == 200
        assert answer.json()["aliases"] == {"latest": 3, "production": expected}
    refused = any_client.post(f"{URL}:rollback")
    assert (refused.status_code, refused.json()["code"]) == (409, "nothing_to_roll_back")
    any_client.delete(URL)
    found = _history(any_client)
    assert [(c["number"], c["kind"], c["before"], c["version"]) for c in found] == [
        (6, "remove", 1, None),
        (5, "rollback", 2, 1),
        (4, "rollback", 3, 2),
        (3, "set", 2, 3),
        (2, "set", 1, 2),
        (1, "set", None, 1),
    ]
    assert {change["alias"] for change in found} == {"production"}
    assert found[0]["changed_by"] is None  # no key was needed
    first = any_client.get(f"{URL}/history", params={"limit": 4}).json()
    rest = any_client.get(f"{URL}/history", params={"cursor": first["next_cursor"]}).json()
    assert first["data"] + rest["data"] == found


def test_the_history_names_the_key(make_client: MakeClient, make_settings: MakeSettings) -> None:
    settings = make_settings(api_key="a-key-of-sixteen+")
    client, runtime = make_client(settings), Runtime(settings)
    owner = {"Authorization": "Bearer a-key-of-sixteen+"}
    body = {"name": "deploy", "scopes": ["read", "write"]}
    key = client.post("/v1/keys", json=body, headers=owner).json()["key"]
    client.headers["Authorization"] = f"Bearer {key}"
    job = upload(client, {"a.png": png_bytes("red"), "b.png": png_bytes("blue")})
    work_on(runtime, job["id"])
    for _ in range(2):
        store_clustering(runtime, job["dataset_id"])
    _move(client, 1, 2)
    client.post(f"{URL}:rollback", headers=owner)
    client.delete(URL)
    assert [change["changed_by"] for change in _history(client)] == [
        *("deploy", "TEMI_API_KEY", "deploy", "deploy"),
    ]
    runtime.db.dispose()


@pytest.mark.usefixtures("versions")
def test_a_repeated_rollback_happens_once(client: TestClient) -> None:
    _move(client, 1, 2, 3)
    headers = {"Idempotency-Key": "one"}
    answers = [client.post(f"{URL}:rollback", headers=headers) for _ in range(3)]
    assert [answer.json()["aliases"]["production"] for answer in answers] == [2, 2, 2]
    assert _where(client) == 2
    other = "/v1/models/cats-dogs/aliases/other:rollback"
    refused = client.post(other, headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (422, "idempotency_mismatch")


@pytest.mark.usefixtures("versions")
def test_an_alias_cannot_be_set_to_a_damaged_version(client: TestClient, runtime: Runtime) -> None:
    _move(client, 1, 2)
    _damage(client, runtime, 3)
    refused = client.put(URL, json={"version": 3})
    assert (refused.status_code, refused.json()["code"]) == (503, "model_integrity")
    assert _where(client) == 2
    _damage(client, runtime, 1)
    refused = client.post(f"{URL}:rollback")
    assert (refused.status_code, refused.json()["code"]) == (503, "model_integrity")
    assert _where(client) == 2
    assert [change["number"] for change in _history(client)] == [2, 1]


@pytest.mark.usefixtures("versions")
def test_concurrent_moves(client: TestClient) -> None:
    _move(client, 1)

    def move(version: int) -> int:
        return client.put(URL, json={"version": version}).status_code

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(move, [2, 3] * 8)) == {200}
    found = _history(client)
    assert [change["number"] for change in found] == list(range(len(found), 0, -1))
    assert _where(client) == found[0]["version"]
    for newer, older in pairwise(found):
        assert newer["before"] == older["version"]


@pytest.mark.usefixtures("versions")
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "cats-dogs/aliases/none/history"),
        ("GET", "cats-dogs/aliases/latest/history"),
        ("GET", "none/aliases/production/history"),
        ("POST", "cats-dogs/aliases/none:rollback"),
        ("POST", "none/aliases/production:rollback"),
    ],
)
def test_unknown_resources(client: TestClient, method: str, path: str) -> None:
    answer = client.request(method, f"/v1/models/{path}")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
