"""A crashed attempt and its retry are one trace, in which the interrupted stage has failed."""

import threading
from collections.abc import Iterator

import pytest

from app.core.platform import tracing
from app.core.platform.tables import Job
from app.core.runtime import Runtime
from tests.images import jpeg_bytes, zip_of
from tests.otlp import Collector, collecting
from tests.waiting import wait_until
from tests.worker.conftest import AddIngest
from tests.worker.job_steps import run_job
from tests.worker.supervision.test_job_supervisor import _children, job_row, running

_TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.fixture
def collector(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    with collecting() as found:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", found.endpoint)
        tracing.start_tracing(runtime.settings.model_copy(update={"tracing": "otlp"}), "worker")
        yield found
        tracing.stop_tracing()


def test_crash_and_retry_are_one_trace(
    runtime: Runtime, add_ingest: AddIngest, collector: Collector
) -> None:
    good = jpeg_bytes()
    job = add_ingest(runtime, zip_of({f"{n}.jpg": good + n.to_bytes(2) for n in range(4000)}))
    with runtime.db.write() as session:
        session.get_one(Job, job.id).traceparent = f"00-{_TRACE}-00f067aa0ba902b7-01"
    with running(runtime, job):
        for child in _children():
            child.kill()
        wait_until(lambda: job_row(runtime, job.id).status == "queued")
    run_job(runtime, job.id, threading.Event())
    tracing.stop_tracing()  # flushes the spans

    spans = sorted(collector.spans, key=lambda span: span.start)
    assert {span.trace_id for span in spans} == {_TRACE}
    first, second = [span for span in spans if span.name == "job ingest"]
    assert (first.attributes["temi.outcome"], first.failed) == ("crashed", True)
    assert (second.attributes["temi.outcome"], second.failed) == ("succeeded", False)
    assert [span.attributes["temi.fence"] for span in (first, second)] == [1, 2]
    cut, done = [span for span in spans if span.name == "stage ingest"]
    assert (cut.parent_id, cut.failed) == (first.span_id, True)
    assert (done.parent_id, done.failed) == (second.span_id, False)
    assert cut.attributes["temi.items"] > 0
    assert done.attributes["temi.items"] <= 4000
