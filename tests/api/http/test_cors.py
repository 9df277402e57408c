"""Pages of configured origins may call the service; all others get what they get without it."""

import pytest
from fastapi.testclient import TestClient
from pydantic import ValidationError

from tests.conftest import MakeClient, MakeSettings
from tests.images import ZIP, png_bytes, zip_of
from tests.keys import bearer

_KEY = "a-long-enough-key-for-tests"
_PAGE = {"Origin": "https://app.example.org", "Sec-Fetch-Site": "cross-site"}
_ORIGINS = "https://app.example.org, http://localhost:5173"
_OTHERS = (
    *("https://evil.example", "null", "http://app.example.org", "https://app.example.org:8443"),
    *("https://app.example.org.evil.example", "http://localhost", "https://example.org"),
)
_READABLE = (
    *("location", "etag", "retry-after", "link", "x-request-id", "www-authenticate", "allow"),
    *("upload-offset", "upload-length", "upload-expires", "tus-resumable", "tus-max-size"),
)
_SENT = (
    *("authorization", "content-type", "idempotency-key", "if-match", "if-none-match", "range"),
    *("last-event-id", "tus-resumable", "upload-offset", "upload-length", "upload-checksum"),
)


@pytest.fixture
def client(make_client: MakeClient, make_settings: MakeSettings) -> TestClient:
    return make_client(make_settings(api_key=_KEY, cors_origins=_ORIGINS))


def _preflight(client: TestClient, origin: str, method: str, *headers: str) -> dict[str, str]:
    asked = {"Origin": origin, "Access-Control-Request-Method": method}
    if headers:
        asked["Access-Control-Request-Headers"] = ", ".join(headers)
    answer = client.options("/v1/datasets/ds_1", headers=asked)
    return {
        "status": str(answer.status_code),
        **{name: value for name, value in answer.headers.items() if name.startswith("access-")},
    }


@pytest.mark.parametrize("origin", ["https://app.example.org", "http://localhost:5173"])
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"])
def test_a_configured_origin_may_send_each_method(
    client: TestClient, origin: str, method: str
) -> None:
    """A preflight has no key."""
    answer = _preflight(client, origin, method, *_SENT)
    assert answer["status"] == "200"
    assert answer["access-control-allow-origin"] == origin
    assert method in answer["access-control-allow-methods"]
    allowed = answer["access-control-allow-headers"].lower().split(", ")
    assert set(_SENT) <= set(allowed)
    assert "access-control-allow-credentials" not in answer


def test_a_preflight_for_other_headers_is_refused(client: TestClient) -> None:
    assert _preflight(client, "https://app.example.org", "GET", "x-other")["status"] == "400"


def test_a_configured_origin_reads_and_writes_with_a_key(client: TestClient) -> None:
    headers = _PAGE | bearer(_KEY)
    archive = zip_of({"a.png": png_bytes()})
    made = client.post("/v1/datasets", content=archive, headers=headers | ZIP)
    assert made.status_code == 202, made.text
    dataset = made.json()["dataset_id"]
    renamed = client.patch(f"/v1/datasets/{dataset}", json={"name": "new"}, headers=headers)
    assert renamed.json()["name"] == "new"
    found = client.get("/v1/datasets", headers=headers)
    assert [one["id"] for one in found.json()["data"]] == [dataset]
    for answer in (made, renamed, found):
        assert answer.headers["Access-Control-Allow-Origin"] == "https://app.example.org"
        assert "Origin" in answer.headers["Vary"]
        readable = answer.headers["Access-Control-Expose-Headers"].lower().split(", ")
        assert set(_READABLE) <= set(readable)


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_a_configured_origin_needs_a_key(client: TestClient, method: str) -> None:
    answer = client.request(method, "/v1/datasets/ds_1", headers=_PAGE)
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
    # The page can read why.
    assert answer.headers["Access-Control-Allow-Origin"] == "https://app.example.org"


@pytest.mark.parametrize("origin", _OTHERS)
def test_other_origins_are_refused(client: TestClient, origin: str) -> None:
    headers = {"Origin": origin, **bearer(_KEY)}
    refused = client.delete("/v1/datasets/ds_1", headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (403, "foreign_origin")
    read = client.get("/v1/datasets", headers=headers)
    asked = _preflight(client, origin, "POST")
    assert asked == {"status": "405"}
    for answer in (refused, read):
        assert not [name for name in answer.headers if name.startswith("access-control-")]


def test_programs_need_no_origin(client: TestClient) -> None:
    answer = client.get("/v1/datasets", headers=bearer(_KEY))
    assert answer.status_code == 200
    assert "Access-Control-Allow-Origin" not in answer.headers


def test_it_is_off_by_default(make_client: MakeClient, make_settings: MakeSettings) -> None:
    client = make_client(make_settings(api_key=_KEY))
    assert _preflight(client, "https://app.example.org", "GET") == {"status": "405"}
    headers = _PAGE | bearer(_KEY)
    assert client.delete("/v1/datasets/ds_1", headers=headers).status_code == 403
    answer = client.get("/v1/datasets", headers=headers)
    assert not [name for name in answer.headers if name.startswith("access-control-")]


@pytest.mark.parametrize(
    "origin",
    [
        *("*", "null", "app.example.org", "https://app.example.org/", "https://*.example.org"),
        *("HTTPS://app.example.org", "https://app.example.org:443", "ftp://app.example.org", "://"),
    ],
)
def test_what_is_not_an_origin_is_refused_at_the_start(
    make_settings: MakeSettings, origin: str
) -> None:
    with pytest.raises(ValidationError, match="is not an origin"):
        make_settings(cors_origins=origin)
