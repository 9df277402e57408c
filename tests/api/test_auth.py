"""With an API key set, nothing of the collection is reached without it."""

import pytest
from fastapi.testclient import TestClient

from tests.conftest import MakeClient, MakeSettings

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
    ],
)
def test_no_operation_without_the_key(guarded: TestClient, headers: dict[str, str | bytes]) -> None:
    operations = [(m, p) for m, p in _operations(guarded) if p.startswith("/v1/")]
    assert len(operations) >= 20
    for method, path in operations:
        answer = guarded.request(method, path, headers=headers)  # type: ignore[arg-type]
        if answer.status_code == 422:  # the placeholder is no number: only the key is missing
            path = path.replace("{version}", "1").replace("{cluster_id}", "1")
            answer = guarded.request(method, path, headers=headers)  # type: ignore[arg-type]
        assert answer.status_code == 401, (method, path)
        assert method == "HEAD" or answer.json()["code"] == "unauthorized"  # HEAD has no body
        assert answer.headers["WWW-Authenticate"] == "Bearer"


def test_with_the_key(guarded: TestClient) -> None:
    headers = {"Authorization": f"Bearer {_KEY}"}
    assert guarded.get("/v1/datasets", headers=headers).json()["data"] == []
    assert guarded.get("/v1/datasets/none", headers=headers).status_code == 404


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/metrics", "/", "/docs", "/openapi.json"])
def test_what_tells_nothing_of_the_collection_is_open(guarded: TestClient, path: str) -> None:
    assert guarded.get(path).status_code == 200


def test_without_a_key_set_none_is_needed(client: TestClient) -> None:
    assert client.get("/v1/datasets").status_code == 200
