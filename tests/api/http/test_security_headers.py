"""Security headers of every response; the pages work with them and without a network."""

import re

import pytest
from fastapi.testclient import TestClient

from tests.api.conftest import Json
from tests.conftest import MakeClient, MakeSettings

_ANSWERS = ["/", "/docs", "/livez", "/v1/datasets", "/v1/datasets/none", "/nothing", "/metrics"]


@pytest.mark.parametrize("path", _ANSWERS)
def test_every_response_has_security_headers(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["Referrer-Policy"] == "same-origin"
    scripts = re.findall(r"script-src ([^;]*)", policy)
    assert not any("unsafe" in source or "http" in source for source in scripts)


def test_errors_before_routing_have_security_headers(
    make_client: MakeClient, make_settings: MakeSettings
) -> None:
    client = make_client(make_settings())
    refused = client.get("/", headers={"Host": "evil.example"})
    assert refused.status_code == 421
    assert refused.headers["X-Content-Type-Options"] == "nosniff"
    assert refused.headers["X-Request-ID"]


def test_image_responses_forbid_scripts(client: TestClient, dataset: Json) -> None:
    image = client.get(f"/v1/datasets/{dataset['id']}/images").json()["data"][0]
    for path in ("content", "thumbnail"):
        answer = client.get(f"/v1/images/{image['id']}/{path}")
        assert answer.headers["Content-Type"].startswith("image/")
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        policy = answer.headers["Content-Security-Policy"]
        assert "script-src" not in policy
        assert "sandbox" in policy


def _addresses(html: str) -> list[str]:
    return re.findall(r"""(?:src|href)=["']([^"']+)["']""", html)


def test_swagger_ui_needs_no_network(client: TestClient) -> None:
    page = client.get("/docs")
    assert page.headers["Content-Type"].startswith("text/html")
    assert "<script>" not in page.text  # the policy would not let it run
    assert "//" not in page.text + client.get("/docs/start.js").text  # no address of a host
    sources = re.findall(r"-src ([^;]+)", page.headers["Content-Security-Policy"])
    allowed = {"'none'", "'self'", "'unsafe-inline'", "data:"}
    assert {name for source in sources for name in source.split()} <= allowed
    addresses = [address for address in _addresses(page.text) if address != "data:,"]
    assert len(addresses) == 3
    for address in addresses:
        assert address.startswith("/docs/")
        answer = client.get(address)
        assert answer.status_code == 200
        assert answer.headers["Content-Type"].startswith(("text/javascript", "text/css"))
    assert "SwaggerUIBundle" in client.get("/docs/swagger-ui-bundle.js").text
    assert "/openapi.json" in client.get("/docs/start.js").text


@pytest.mark.parametrize("path", ["/redoc", "/docs/redoc.standalone.js", "/docs/..%2fmain.py"])
def test_other_files_of_swagger_ui_are_not_served(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404
