"""Bodies are read after the key is checked, with the limits of each route."""

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.core.runtime import Runtime
from app.main import create_app
from tests.api.conftest import Json, MakeClustering
from tests.conftest import MakeClient, MakeSettings
from tests.http_server import RawClient, running_server, status_of
from tests.images import png_bytes, zip_of
from tests.keys import bearer, make_key
from tests.waiting import wait_until

_KEY = "a-long-enough-key-for-tests"
_MiB = 1024 * 1024


class _Unread:
    """A body that counts the bytes that were read."""

    def __init__(self, piece: bytes, pieces: int) -> None:
        self._piece, self._pieces, self.taken = piece, pieces, 0

    def __iter__(self) -> Iterator[bytes]:
        for _ in range(self._pieces):
            self.taken += len(self._piece)
            yield self._piece


@pytest.fixture
def guarded(make_settings: MakeSettings) -> Iterator[RawClient]:
    with running_server(make_settings(api_key=_KEY)) as client:
        yield client


def _post(path: str, kind: str, length: int, *headers: str, method: str = "POST") -> bytes:
    lines = [
        f"{method} {path} HTTP/1.1",
        "Host: localhost",
        f"Content-Type: {kind}",
        f"Content-Length: {length}",
        *headers,
    ]
    return "\r\n".join([*lines, "", ""]).encode()


@pytest.mark.parametrize(
    ("method", "path", "kind"),
    [
        ("POST", "/v1/jobs", "application/json"),
        ("PATCH", "/v1/datasets/x", "application/json"),
        ("POST", "/v1/datasets", "application/zip"),
        ("POST", "/v1/models:import", "application/zip"),
        ("POST", "/v1/models/x:predict", "application/json"),
        ("POST", "/v2/models/x/infer", "application/json"),
        ("PATCH", "/v1/uploads/x", "application/offset+octet-stream"),
    ],
)
def test_without_a_key_the_body_is_not_read(
    guarded: RawClient, method: str, path: str, kind: str
) -> None:
    opened = guarded.connect(_post(path, kind, 1_000_000, method=method))
    assert opened.recv(1000).startswith(b"HTTP/1.1 401 ")
    opened = guarded.connect(
        _post(path, kind, 1_000_000, f"Authorization: Bearer {_KEY}x", method=method)
    )
    assert opened.recv(1000).startswith(b"HTTP/1.1 401 ")


def test_malformed_json_without_a_key(make_client: MakeClient, make_settings: MakeSettings) -> None:
    client = make_client(make_settings(api_key=_KEY))
    headers = {"Content-Type": "application/json"}
    answer = client.post("/v1/jobs", content=b"{", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
    answer = client.post("/v1/jobs", content=b"{", headers=headers | bearer(_KEY))
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")


def test_the_scope_is_checked_before_the_body(client: TestClient, runtime: Runtime) -> None:
    _, text = make_key(runtime, scopes=["read"])
    headers = {"Content-Type": "application/json"} | bearer(text)
    answer = client.post("/v1/jobs", content=b"{", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")


@pytest.mark.parametrize("path", ["/v1/datasets/x:predict", "/v1/datasets/infer"])
def test_a_path_that_ends_like_another_has_no_large_limit(client: TestClient, path: str) -> None:
    answer = client.patch(path, content=b"{}," * _MiB, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")


def test_every_route_with_a_body_has_a_limit(client: TestClient) -> None:
    """Each limit belongs to an existing route: a renamed route would lose its limit."""
    from app.api.http.body_limits import _LIMITS

    paths = client.get("/openapi.json").json()["paths"]
    known = {(method.upper(), path) for path, item in paths.items() for method in item}
    assert set(_LIMITS) <= known


def _operations_with_bodies(client: TestClient) -> list[tuple[str, str, list[str]]]:
    paths = client.get("/openapi.json").json()["paths"]
    return [
        (method.upper(), path, sorted(operation["requestBody"]["content"]))
        for path, item in paths.items()
        for method, operation in item.items()
        if "requestBody" in operation
    ]


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", None])
def test_only_declared_media_types(client: TestClient, kind: str | None) -> None:
    operations = _operations_with_bodies(client)
    assert len(operations) >= 12
    for method, path, declared in operations:
        if kind is None and path.startswith("/v2/"):
            continue  # clients of that protocol send none
        assert kind not in declared
        headers = {"Content-Type": kind} if kind else {}
        answer = client.request(method, path, content=b"PK", headers=headers)
        found = (answer.status_code, answer.json()["code"])
        assert found == (415, "unsupported_media_type"), (method, path)


def test_deep_and_wide_json_is_refused(client: TestClient) -> None:
    headers = {"Content-Type": "application/json"}
    for body in (b"[" * 1_000_000, b'{"a":' * 200_000, b"[" + b"{}," * 300_000 + b"{}]"):
        answer = client.post("/v1/jobs", content=body, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
        assert len(answer.content) < 10_000


def test_the_list_of_errors_is_truncated(client: TestClient, dataset: Json) -> None:
    body = {"image_ids": list(range(100_000))}
    answer = client.post(f"/v1/datasets/{dataset['id']}/images:delete", json=body)
    assert answer.status_code == 422
    assert len(answer.content) < 10_000


def test_json_of_many_values_is_not_parsed(client: TestClient) -> None:
    body = b'{"source": {"type": "urls", "urls": [' + b"{}," * 5_000_000 + b"{}]}}"
    answer = client.post("/v1/datasets", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")


# Bodies that do not come


@pytest.fixture
def short_timeout(make_settings: MakeSettings) -> Iterator[RawClient]:
    """A server with a short time limit for bodies."""
    with running_server(
        make_settings(body_seconds=0.5, body_bytes_per_second=10_000_000)
    ) as client:
        yield client


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/v1/jobs", "application/json"),
        ("/v1/datasets", "application/zip"),
        ("/v1/datasets", "multipart/form-data; boundary=b"),
        ("/v1/models:import", "application/zip"),
    ],
)
def test_a_body_that_stops_times_out(short_timeout: RawClient, path: str, kind: str) -> None:
    answer = short_timeout.ask(_post(path, kind, 1_000_000) + b"--b\r\n")
    assert status_of(answer) == 408
    assert b'"body_timeout"' in answer
    assert b"connection: close" in answer.lower()


def test_a_body_that_is_too_slow_times_out(short_timeout: RawClient) -> None:
    opened = short_timeout.connect(_post("/v1/datasets", "application/zip", 1_000_000))
    opened.settimeout(0.05)
    received = b""
    while not received:
        opened.sendall(b"x")
        try:
            received = opened.recv(1000)
        except TimeoutError:
            continue
    assert received.startswith(b"HTTP/1.1 408 ")


def test_a_resumable_upload_keeps_the_received_bytes(short_timeout: RawClient) -> None:
    tus = "Tus-Resumable: 1.0.0"
    create = f"POST /v1/uploads HTTP/1.1\r\nHost: localhost\r\n{tus}\r\nUpload-Length: 100\r\n"
    made = short_timeout.ask((create + "Connection: close\r\n\r\n").encode())
    address = made.decode().lower().partition("location: ")[2].split("\r\n")[0]
    kind = "application/offset+octet-stream"
    piece = _post(address, kind, 100, tus, "Upload-Offset: 0", "Connection: close", method="PATCH")
    answer = short_timeout.ask(piece + b"12345")
    assert status_of(answer) == 204
    assert b"upload-offset: 5" in answer.lower()


def test_a_slow_body_within_the_rate_is_accepted(make_settings: MakeSettings) -> None:
    """The time limit grows with the received bytes: large uploads are not cut off."""
    body = zip_of({f"{i}.png": png_bytes() for i in range(20)})
    settings = make_settings(body_seconds=5, body_bytes_per_second=1)
    with running_server(settings) as server:
        opened = server.connect(_post("/v1/datasets", "application/zip", len(body)))
        for start in range(0, len(body), 1000):
            opened.sendall(body[start : start + 1000])
        assert opened.recv(1000).startswith(b"HTTP/1.1 202 ")


# Predictions

_PREDICTS = [
    ("/v1/models/cats-dogs:predict", "multipart/form-data; boundary=b"),
    ("/v1/models/cats-dogs:predict", "application/json"),
    ("/v2/models/cats-dogs/infer", "application/json"),
]
_PART = b'--b\r\nContent-Disposition: form-data; name="files"; filename="a"\r\n\r\n'


@pytest.fixture
def two_keys(
    make_settings: MakeSettings, runtime: Runtime, dataset: Json, make_clustering: MakeClustering
) -> dict[str, Any]:
    """A model and two keys."""
    make_clustering(dataset["id"])
    scopes = ["predict", "read", "write"]
    return {
        name: make_key(runtime, tenant="default", name=name, scopes=scopes)[1]
        for name in ("one", "other")
    }


@pytest.mark.parametrize(("path", "kind"), _PREDICTS)
def test_incomplete_bodies_take_no_queue_capacity(
    make_settings: MakeSettings, two_keys: dict[str, Any], path: str, kind: str
) -> None:
    settings = make_settings(predict_queue=4)
    app = create_app(settings)
    admission = app.state.serving.admission
    with running_server(settings, app) as server:
        for _ in range(20):
            key = f"Authorization: Bearer {two_keys['one']}"
            server.connect(_post(path, kind, 1_000_000, key) + _PART + b"half")
        wait_until(lambda: admission.arriving_bytes == 20 * len(_PART + b"half"))
        assert admission.images == 0
        # too many embeddings to be answered, and not: no place
        body = json.dumps({"dataset_id": "ds_none"}).encode()
        key = f"Authorization: Bearer {two_keys['other']}"
        head = _post("/v1/models/cats-dogs:predict", "application/json", len(body), key)
        assert server.connect(head + body).recv(1000).startswith(b"HTTP/1.1 404 ")
    wait_until(lambda: admission.arriving_bytes == 0)


def test_bytes_of_incomplete_bodies_are_limited(
    make_settings: MakeSettings, two_keys: dict[str, Any]
) -> None:
    """In total, and for one key while another key sends."""
    settings = make_settings(predict_arriving_bytes=100_000)
    app = create_app(settings)
    admission = app.state.serving.admission
    path, kind = _PREDICTS[1]

    def send(name: str, size: int) -> socket.socket:
        key = f"Authorization: Bearer {two_keys[name]}"
        return server.connect(_post(path, kind, 1_000_000, key) + b"x" * size)

    with running_server(settings, app) as server:
        held = [send("other", 10_000)]
        wait_until(lambda: admission.arriving_bytes == 10_000)
        held.append(send("one", 45_000))
        wait_until(lambda: admission.arriving_bytes == 55_000)
        refused = send("one", 10_000)  # more than half of it
        assert refused.recv(1000).startswith(b"HTTP/1.1 429 ")
        held.append(send("other", 30_000))
        wait_until(lambda: admission.arriving_bytes == 85_000)
        refused = send("other", 20_000)
        assert refused.recv(1000).startswith(b"HTTP/1.1 429 ")
        for one in held:
            one.close()
        wait_until(lambda: admission.arriving_bytes == 0)
