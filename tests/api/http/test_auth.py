"""Once there is a key, requests without a key are refused."""

import pytest
from fastapi.testclient import TestClient

from app.core.platform.tables import Job
from app.core.runtime import Runtime
from tests.api.conftest import upload
from tests.conftest import MakeClient, MakeSettings
from tests.images import png_bytes
from tests.keys import bearer, make_key

_KEY = "a-long-enough-key-for-tests"


@pytest.fixture
def guarded(make_client: MakeClient, make_settings: MakeSettings) -> TestClient:
    return make_client(make_settings(api_key=_KEY))


def _operations(client: TestClient) -> list[tuple[str, str]]:
    paths = client.get("/openapi.json").json()["paths"]
    return [(method.upper(), path) for path, item in paths.items() for method in item]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Bearer {_KEY}x"},
        {"Authorization": f"Basic {_KEY}"},
        {"Authorization": "Bearer "},
        {"Authorization": _KEY},
        {"Authorization": "Bearer schlüssel".encode()},
        {"Authorization": f"Bearer temi_{'0' * 43}"},
    ],
)
def test_operations_require_the_key(guarded: TestClient, headers: dict[str, str | bytes]) -> None:
    operations = [(m, p) for m, p in _operations(guarded) if p.startswith("/v1/")]
    assert len(operations) >= 50
    for method, path in operations:  # the placeholders stay: not even that they are none is told
        answer = guarded.request(method, path, headers=headers)  # type: ignore[arg-type]
        assert answer.status_code == 401, (method, path)
        assert answer.headers["WWW-Authenticate"].startswith("Bearer realm=")
        if method != "HEAD":  # it has no body
            assert answer.json()["code"] in ("unauthorized", "invalid_api_key")


@pytest.mark.parametrize("sent", [None, "Bearer ", f"Basic {_KEY}", _KEY])
def test_no_key(guarded: TestClient, sent: str | None) -> None:
    headers = {"Authorization": sent} if sent else {}
    answer = guarded.get("/v1/datasets", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
    assert answer.json()["detail"].startswith("No API key was sent.")
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="temi"'


@pytest.mark.parametrize("key", ["wrong", f"{_KEY}x", f"temi_{'0' * 43}"])
def test_a_wrong_key(guarded: TestClient, key: str) -> None:
    answer = guarded.get("/v1/datasets", headers=bearer(key))
    assert (answer.status_code, answer.json()["code"]) == (401, "invalid_api_key")
    assert "unknown, revoked or expired" in answer.json()["detail"]
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="temi", error="invalid_token"'


def test_operations_succeed_with_the_key(guarded: TestClient) -> None:
    headers = bearer(_KEY)
    assert guarded.get("/v1/datasets", headers=headers).json()["data"] == []
    assert guarded.get("/v1/datasets/none", headers=headers).status_code == 404


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/metrics", "/", "/docs", "/openapi.json"])
def test_system_routes_require_no_key(guarded: TestClient, path: str) -> None:
    assert guarded.get(path).status_code == 200


def test_no_key_is_required_if_none_is_set(client: TestClient) -> None:
    assert client.get("/v1/datasets").status_code == 200


def test_a_key_of_the_database(any_client: TestClient, any_runtime: Runtime) -> None:
    _, text = make_key(any_runtime, scopes=["read", "write"])
    assert any_client.get("/v1/datasets").status_code == 401
    assert any_client.get("/v1/datasets", headers=bearer(text)).status_code == 200
    assert any_client.get("/v1/datasets/none", headers=bearer(text)).status_code == 404


@pytest.mark.parametrize(
    ("scope", "method", "path"),
    [
        ("read", "GET", "/v1/datasets"),
        ("read", "HEAD", "/v1/uploads/up_1"),
        ("write", "DELETE", "/v1/datasets/none"),
        ("write", "POST", "/v1/jobs"),
        ("predict", "POST", "/v1/models/none:predict"),
        ("predict", "POST", "/v1/models/none/versions/1:predict"),
        ("admin", "GET", "/v1/keys"),
        ("admin", "POST", "/v1/keys"),
        ("admin", "GET", "/v1/audit"),
    ],
)
def test_each_route_needs_its_scope(
    client: TestClient, runtime: Runtime, scope: str, method: str, path: str
) -> None:
    every = ["read", "write", "predict"]
    _, lesser = make_key(runtime, scopes=[one for one in every if one != scope])
    answer = client.request(method, path, headers=bearer(lesser))
    assert answer.status_code == 403
    if method != "HEAD":
        assert answer.json()["code"] == "forbidden"
        assert f"`{scope}`" in answer.json()["detail"]
    _, enough = make_key(runtime, scopes=[scope])
    assert client.request(method, path, headers=bearer(enough)).status_code not in (401, 403)
    _, admin = make_key(runtime, scopes=["admin"])
    assert client.request(method, path, headers=bearer(admin)).status_code not in (401, 403)


def test_a_job_stores_the_key_that_created_it(client: TestClient, runtime: Runtime) -> None:
    key_id, text = make_key(runtime, scopes=["write"])
    client.headers |= bearer(text)
    job = upload(client, {"a.png": png_bytes("red")})
    assert job["created_by"] == key_id
    with runtime.db.read() as session:
        row = session.get_one(Job, job["id"])
    assert (row.tenant, row.created_by) == ("a", key_id)


def test_rate_limited_requests_get_a_retry_after(client: TestClient, runtime: Runtime) -> None:
    _, text = make_key(runtime, requests_per_minute=3)
    _, other = make_key(runtime, requests_per_minute=3)
    answers = [client.get("/v1/datasets", headers=bearer(text)) for _ in range(5)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
    assert answers[-1].json()["code"] == "rate_limited"
    assert 55 <= int(answers[-1].headers["Retry-After"]) <= 60
    assert client.get("/v1/datasets", headers=bearer(other)).status_code == 200
