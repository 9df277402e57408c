"""One trace from a request to the stages of its job, over the real processes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import Service, running
from tests.otlp import Collector, Span, collecting

TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with collecting() as found:
        yield found


@pytest.fixture(scope="module")
def service(collector: Collector, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    settings = {
        "TEMI_TRACING": "otlp",
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint,
        "OTEL_BSP_SCHEDULE_DELAY": "200",
    }
    with running(tmp_path_factory.mktemp("traced") / "data", **settings) as found:
        yield found


def _of(spans: list[Span], trace_id: str, name: str) -> list[Span]:
    return [span for span in spans if span.trace_id == trace_id and span.name == name]


def test_from_the_request_to_the_stages(
    service: Service, collector: Collector, shapes_zip: Path
) -> None:
    with service.client() as client, service.http() as http:
        dataset = client.wait(client.upload_dataset(shapes_zip, name="shapes").id).dataset_id
        headers = {"traceparent": f"00-{TRACE}-{CALLER}-01", "X-Request-ID": "mine"}
        body = {"dataset_id": dataset, "n_clusters": 3, "steps": 5}
        answer = http.post("/v1/jobs", json=body, headers=headers)
        assert answer.headers["traceparent"].startswith(f"00-{TRACE}-")
        client.wait(answer.json()["id"])
    spans = collector.wait(lambda spans: bool(_of(spans, TRACE, "job cluster")))

    (request,) = _of(spans, TRACE, "POST /v1/jobs")
    assert (request.service, request.parent_id) == ("temi-api", CALLER)
    assert request.span_id == answer.headers["traceparent"].split("-")[2]
    assert request.attributes["http.request.method"] == "POST"
    assert request.attributes["http.route"] == "/v1/jobs"
    assert request.attributes["http.response.status_code"] == 202
    assert request.attributes["temi.request_id"] == "mine"

    (attempt,) = _of(spans, TRACE, "job cluster")
    assert (attempt.service, attempt.parent_id) == ("temi-worker", request.span_id)
    assert attempt.attributes["temi.job_id"] == answer.json()["id"]
    assert attempt.attributes["temi.fence"] == 1
    assert attempt.attributes["temi.outcome"] == "succeeded"

    stages = [s for s in spans if s.parent_id == attempt.span_id]
    assert [s.attributes["temi.stage"] for s in sorted(stages, key=lambda s: s.start)] == [
        "embed",
        "mine",
        "train",
        "evaluate",
        "register",
    ]
    assert {stage.trace_id for stage in stages} == {TRACE}
    assert not any(stage.failed for stage in stages)
    embed = next(stage for stage in stages if stage.name == "stage embed")
    assert (embed.attributes["temi.items"], embed.attributes["temi.skipped"]) == (90, False)
    assert all(attempt.start <= stage.end <= attempt.end for stage in stages)


def test_a_caller_without_a_trace_gets_one(service: Service, collector: Collector) -> None:
    with service.http(headers={"traceparent": "00-nonsense-1-1"}) as http:
        answer = http.get("/v1/jobs/none")
    _, trace_id, span_id, _ = answer.headers["traceparent"].split("-")
    spans = collector.wait(lambda spans: bool(_of(spans, trace_id, "GET /v1/jobs/{job_id}")))
    (request,) = _of(spans, trace_id, "GET /v1/jobs/{job_id}")
    assert (request.span_id, request.parent_id) == (span_id, "")
    assert not request.failed  # a 404 is no failure of the service


def test_probes_are_not_traced(service: Service) -> None:
    with service.http() as http:
        assert "traceparent" not in http.get("/livez").headers
