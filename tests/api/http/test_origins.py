"""Pages of other sites cannot change data, and cannot read it by DNS rebinding."""

from typing import Any

import pytest
from fastapi.testclient import TestClient
from starlette.datastructures import Headers

from app.api.http.origins import check_origin, host_name, is_loopback
from app.core.platform.errors import ForeignOrigin
from app.core.runtime import Runtime
from tests.conftest import MakeClient, MakeSettings
from tests.images import ZIP, png_bytes, zip_of
from tests.keys import bearer, make_key

_ARCHIVE = zip_of({"a.png": png_bytes()})
_FOREIGN = [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:3000"},
    {"Origin": "http://localhost"},
    {"Origin": "http://127.0.0.1.evil.example"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "cross-site", "Origin": "http://127.0.0.1"},
]
_OWN = [
    {},
    {"Origin": "http://127.0.0.1"},
    {"Origin": "http://127.0.0.1:80"},
    {"Sec-Fetch-Site": "same-origin", "Origin": "http://127.0.0.1"},
    {"Sec-Fetch-Site": "same-origin", "Origin": "https://photos.example"},  # behind a proxy
    {"Sec-Fetch-Site": "none"},
]


def _refused(answer: Any, status: int, code: str) -> None:
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text


@pytest.mark.parametrize("headers", _FOREIGN)
def test_a_page_of_another_site_cannot_change_data(
    client: TestClient, headers: dict[str, str]
) -> None:
    _refused(
        client.post("/v1/datasets", content=_ARCHIVE, headers=headers | ZIP), 403, "foreign_origin"
    )
    body = {"kind": "predict", "dataset_id": "ds_1", "model": "cats"}
    _refused(client.post("/v1/jobs", json=body, headers=headers), 403, "foreign_origin")
    _refused(client.post("/v1/jobs/job_1:cancel", headers=headers), 403, "foreign_origin")
    for method in ("PUT", "PATCH", "DELETE"):
        answer = client.request(method, "/v1/datasets/ds_1", headers=headers)
        _refused(answer, 403, "foreign_origin")
    assert client.get("/v1/datasets").json()["data"] == []


def test_a_page_of_another_site_cannot_change_data_with_a_key(
    client: TestClient, runtime: Runtime
) -> None:
    headers = bearer(make_key(runtime, scopes=["admin"])[1]) | {"Origin": "https://evil.example"}
    _refused(client.delete("/v1/datasets/ds_1", headers=headers), 403, "foreign_origin")


@pytest.mark.parametrize("headers", _OWN)
def test_programs_and_our_own_page_are_allowed(client: TestClient, headers: dict[str, str]) -> None:
    answer = client.post("/v1/datasets", content=_ARCHIVE, headers=headers | ZIP)
    assert answer.status_code == 202, answer.text


@pytest.mark.parametrize("headers", _FOREIGN)
def test_no_cors_headers_for_other_sites(client: TestClient, headers: dict[str, str]) -> None:
    answer = client.get("/v1/datasets", headers=headers)
    assert not [name for name in answer.headers if name.startswith("access-control-")]
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    asked = client.options(
        "/v1/datasets", headers=headers | {"Access-Control-Request-Method": "POST"}
    )
    assert not [name for name in asked.headers if name.startswith("access-control-")]


def test_ports_and_addresses_of_an_origin() -> None:
    check_origin(Headers({"host": "[::1]:8000", "origin": "http://[::1]:8000"}))
    check_origin(Headers({"host": "photos.example", "origin": "https://photos.example"}))
    for origin in ("http://[::1]", "http://[", "http://photos.example:x", "file://", ""):
        with pytest.raises(ForeignOrigin):
            check_origin(Headers({"host": "[::1]:8000", "origin": origin}))


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("localhost", True),
        ("LOCALHOST:8000", True),
        ("127.0.0.1:8000", True),
        ("127.1.2.3", True),
        ("[::1]:8000", True),
        ("[::1]", True),
        ("0.0.0.0:8000", False),
        ("192.168.1.5", False),
        ("evil.example", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("[2001:db8::1]:80", False),
        ("", False),
    ],
)
def test_is_loopback(host: str, local: bool) -> None:
    assert is_loopback(host_name(host)) is local


@pytest.mark.parametrize("path", ["/v1/datasets", "/readyz", "/metrics", "/", "/docs", "/none"])
def test_without_a_key_other_hosts_are_refused(client: TestClient, path: str) -> None:
    answer = client.get(path, headers={"Host": "evil.example:8000"})
    _refused(answer, 421, "host_not_allowed")
    assert "TEMI_ALLOWED_HOSTS" in answer.json()["detail"]
    assert "temi keys create" in answer.json()["detail"]


def test_dns_rebinding_cannot_create_a_key(client: TestClient) -> None:
    body = {"name": "mine", "scopes": ["admin"]}
    headers = {"Host": "evil.example", "Origin": "http://evil.example"}
    _refused(client.post("/v1/keys", json=body, headers=headers), 421, "host_not_allowed")
    assert client.get("/v1/datasets").status_code == 200  # the owner is not shut out


def test_a_second_host_header_is_refused(client: TestClient) -> None:
    headers = [("Host", "127.0.0.1"), ("Host", "evil.example")]
    assert client.get("/v1/datasets", headers=headers).status_code == 421


def test_configured_hosts(make_client: MakeClient, make_settings: MakeSettings) -> None:
    hosts = "photos.example, *.lan"
    client = make_client(make_settings(allowed_hosts=hosts))
    for host, status in {
        "photos.example": 200,
        "PHOTOS.example:443": 200,
        "nas.lan": 200,
        "localhost": 200,
        "lan": 421,
        "photos.example.evil.example": 421,
    }.items():
        answer = client.get("/v1/datasets", headers={"Host": host})
        assert answer.status_code == status, host


def test_with_a_key_any_host_is_allowed(client: TestClient, runtime: Runtime) -> None:
    """The key protects the data; the probes of a cluster use the IP address."""
    key = bearer(make_key(runtime)[1])
    host = {"Host": "10.1.2.3:8000"}
    for path in ("/livez", "/readyz", "/metrics"):
        assert client.get(path, headers=host).status_code == 200
    assert client.get("/v1/datasets", headers=host).status_code == 401
    assert client.get("/v1/datasets", headers=host | key).status_code == 200


def test_with_a_key_and_allowed_hosts_others_are_refused(
    make_client: MakeClient, make_settings: MakeSettings
) -> None:
    key = "a-long-enough-key-for-tests"
    client = make_client(make_settings(api_key=key, allowed_hosts=("photos.example",)))
    for host, status in {"photos.example": 200, "127.0.0.1": 200, "other.example": 421}.items():
        answer = client.get("/v1/datasets", headers=bearer(key) | {"Host": host})
        assert answer.status_code == status, host
    for path in ("/livez", "/readyz", "/metrics"):
        assert client.get(path, headers={"Host": "10.1.2.3:8000"}).status_code == 200
