"""Keys over REST, for the admins of a tenant."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.core.runtime import Runtime
from tests.keys import bearer, make_key


@pytest.fixture
def admin(any_client: TestClient, any_runtime: Runtime) -> TestClient:
    any_client.headers |= bearer(make_key(any_runtime, scopes=["admin"], name="boss")[1])
    return any_client


def _make(client: TestClient, **body: Any) -> dict[str, Any]:
    answer = client.post("/v1/keys", json={"name": "phone", "scopes": ["read"], **body})
    assert answer.status_code == 201, answer.text
    assert answer.headers["Cache-Control"] == "no-store"
    made: dict[str, Any] = answer.json()
    return made


def test_a_key_is_returned_once_and_works(admin: TestClient) -> None:
    made = _make(admin, scopes=["read", "predict"], requests_per_minute=9, expires_in_days=1)
    listed = admin.get("/v1/keys").json()["data"]
    assert [key["name"] for key in listed] == ["phone", "boss"]
    assert {k: v for k, v in made.items() if k != "key"} == listed[0]
    assert made["key"] not in admin.get("/v1/keys").text
    assert admin.get("/v1/datasets", headers=bearer(made["key"])).status_code == 200
    assert admin.get("/v1/keys", headers=bearer(made["key"])).status_code == 403


def test_a_revoked_key_is_refused_at_once(admin: TestClient) -> None:
    made = _make(admin)
    assert admin.get("/v1/datasets", headers=bearer(made["key"])).status_code == 200
    assert admin.delete(f"/v1/keys/{made['id']}").status_code == 204
    assert admin.get("/v1/datasets", headers=bearer(made["key"])).status_code == 401
    assert admin.get("/v1/keys").json()["data"][0]["revoked_at"] is not None
    assert admin.delete(f"/v1/keys/{made['id']}").status_code == 204


def test_the_first_key_cannot_be_created_by_a_request(any_client: TestClient) -> None:
    answer = any_client.post("/v1/keys", json={"name": "phone", "scopes": ["admin"]})
    assert (answer.status_code, answer.json()["code"]) == (403, "first_key_is_local")
    assert "temi keys create" in answer.json()["detail"]
    assert any_client.get("/v1/datasets").status_code == 200
    assert any_client.get("/v1/keys").json()["data"] == []


def test_keys_of_another_tenant_are_not_found(admin: TestClient, any_runtime: Runtime) -> None:
    foreign, text = make_key(any_runtime, tenant="b", scopes=["admin"])
    assert foreign not in admin.get("/v1/keys").text
    assert admin.delete(f"/v1/keys/{foreign}").status_code == 404
    assert len(admin.get("/v1/keys", headers=bearer(text)).json()["data"]) == 1


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"scopes": []}, "scopes"),
        ({"scopes": ["all"]}, "scopes.0"),
        ({"name": ""}, "name"),
        ({"requests_per_minute": 0}, "requests_per_minute"),
        ({"storage_bytes": -1}, "storage_bytes"),
        ({"expires_in_days": 0}, "expires_in_days"),
        ({"tenant": "b"}, "tenant"),
    ],
)
def test_invalid_key_parameters(client: TestClient, wrong: dict[str, Any], field: str) -> None:
    answer = client.post("/v1/keys", json={"name": "x", "scopes": ["read"], **wrong})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == field
