"""Errors and retries, with scripted responses."""

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from temi_client import ApiError, ServiceUnreachable, TemiClient
from tests.client.fake_service import job

PROBLEM = {
    "type": "about:blank",
    "title": "Invalid request",
    "status": 422,
    "detail": "n_clusters: is too large",
    "code": "invalid_request",
    "errors": [{"field": "n_clusters", "message": "is too large"}],
    "request_id": "req_1",
}


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Records the retry delays instead of sleeping."""
    slept: list[float] = []
    monkeypatch.setattr("tenacity.nap.time.sleep", slept.append)
    return slept


def scripted(
    *steps: httpx.Response | Exception, retries: int = 5
) -> tuple[TemiClient, list[httpx.Request]]:
    requests: list[httpx.Request] = []
    script: Iterator[httpx.Response | Exception] = iter(steps)

    def handle(request: httpx.Request) -> httpx.Response:
        request.read()
        requests.append(request)
        step = next(script)
        if isinstance(step, Exception):
            raise step
        return step

    transport = httpx.MockTransport(handle)
    return TemiClient("http://service", retries=retries, transport=transport), requests


def busy(status: int, seconds: str = "7") -> httpx.Response:
    return httpx.Response(status, json={"code": "queue_full"}, headers={"Retry-After": seconds})


def test_all_fields_of_a_problem_are_in_the_error() -> None:
    client, requests = scripted(httpx.Response(422, json=PROBLEM))
    with pytest.raises(ApiError) as caught:
        client.cluster("ds_1", 10_000)
    error = caught.value
    assert (error.status, error.code, error.request_id) == (422, "invalid_request", "req_1")
    assert error.detail == "n_clusters: is too large"
    assert error.errors[0]["field"] == "n_clusters"
    assert len(requests) == 1


@pytest.mark.parametrize("body", [b"", b"<html>Bad gateway</html>", b"[1]", b'{"errors": [3]}'])
def test_an_error_without_a_problem_document(body: bytes) -> None:
    client, _ = scripted(httpx.Response(502, content=body))
    with pytest.raises(ApiError) as caught:
        client.job("job_1")
    assert caught.value.status == 502
    assert caught.value.detail
    assert caught.value.errors == ()


def test_retries_keep_the_key_and_obey_retry_after(waits: list[float]) -> None:
    client, requests = scripted(
        busy(429),
        busy(503, "2"),
        httpx.ConnectError("refused"),
        httpx.Response(202, json=job("queued")),
    )
    assert client.cluster("ds_1", 8).status == "queued"
    assert len({request.headers["idempotency-key"] for request in requests}) == 1
    assert waits[:2] == [7.0, 2.0]
    assert 0.0 <= waits[2] <= 8.0


def test_retry_after_is_capped(waits: list[float]) -> None:
    client, _ = scripted(busy(503, "86400"), httpx.Response(200, json=job()))
    client.job("job_1")
    assert waits == [30.0]


def test_a_request_in_progress_is_retried() -> None:
    running = httpx.Response(409, json={"code": "idempotency_in_progress", "detail": "still"})
    client, requests = scripted(running, httpx.Response(202, json=job("queued")))
    client.cluster("ds_1", 8)
    assert len(requests) == 2


@pytest.mark.parametrize(
    "step",
    [
        lambda: httpx.Response(500, json={"code": "internal_error"}),
        lambda: httpx.Response(409, json={"code": "conflict"}),
        lambda: httpx.ReadTimeout("slow"),
    ],
)
def test_other_errors_are_not_retried(
    step: Callable[[], httpx.Response | Exception],
) -> None:
    client, requests = scripted(step())
    with pytest.raises((ApiError, ServiceUnreachable)):
        client.job("job_1")
    assert len(requests) == 1


def test_retries_are_limited() -> None:
    client, requests = scripted(*[httpx.ConnectError("refused")] * 3, retries=2)
    with pytest.raises(ServiceUnreachable, match="refused"):
        client.job("job_1")
    assert len(requests) == 3


def test_a_body_is_sent_whole_on_every_attempt(tmp_path: Path) -> None:
    archive = tmp_path / "a.tar.gz"
    archive.write_bytes(b"archive")
    client, requests = scripted(busy(503), httpx.Response(202, json=job("queued")))
    client.upload_dataset(archive)
    assert [request.content for request in requests] == [b"archive", b"archive"]
    assert requests[0].headers["content-type"] == "application/gzip"
    assert requests[0].url.params["name"] == "a"
