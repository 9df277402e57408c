"""Prometheus metrics: their values and the cost of a scrape."""

import pytest
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import insert, text, update

from app.api.metrics import Metrics, state
from app.core.jobs.lifecycle import Progress, claim, heartbeat
from app.core.jobs.queue_stats import read_queue_stats
from app.core.platform.clock import db_now
from app.core.platform.ids import new_id
from app.core.platform.tables import Dataset, Job
from app.core.runtime import Runtime
from tests.api.conftest import upload
from tests.images import png_bytes
from tests.waiting import LONG_SECONDS

_JOBS = 10_000


def figures(client: TestClient) -> dict[str, float]:
    """Each sample by its name and labels, as `name{label=value}`."""
    families = text_string_to_metric_families(client.get("/metrics").text)
    return {
        _spelled(sample.name, sample.labels): sample.value
        for family in families
        for sample in family.samples
    }


def _spelled(name: str, labels: dict[str, str]) -> str:
    return name + "".join(f"{{{key}={labels[key]}}}" for key in sorted(labels))


def test_requests_by_route(client: TestClient) -> None:
    client.get("/v1/datasets/none")
    client.get("/no/such/path")
    client.request("BREW", "/v1/datasets")
    client.post("/v1/jobs", content=b"x" * 100, headers={"Content-Type": "application/json"})
    shown = figures(client)
    route = "{method=GET}{route=/v1/datasets/{dataset_id}}"
    assert shown[f"temi_http_requests_total{route}{{status=404}}"] == 1
    assert shown[f"temi_http_request_seconds_count{route}"] == 1
    assert shown[f"temi_http_response_bytes_total{route}"] > 100
    assert shown["temi_http_request_bytes_total{method=POST}{route=/v1/jobs}"] == 100
    assert shown["temi_http_requests_in_flight"] == 1  # this very one
    # unknown methods and paths must not become time series
    assert not any("/no/such/path" in name or "BREW" in name for name in shown)
    assert any("{method=other}" in name for name in shown)


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No timeout, so that a slow test machine does not count as an unreachable database."""
    monkeypatch.setattr(state, "_TIMEOUT_SECONDS", LONG_SECONDS)


def test_jobs_by_state(any_client: TestClient, any_runtime: Runtime) -> None:
    waiting, running, dropped = (upload(any_client, {"a.png": png_bytes()})["id"] for _ in range(3))
    any_client.post(f"/v1/jobs/{dropped}:cancel")
    with any_runtime.db.write() as session:
        session.execute(update(Job).where(Job.id == waiting).values(queued_at=db_now() - 90))
        lease = any_runtime.settings.lease_seconds - 0.5  # as claimed half a second ago
        job = claim(session, running, worker="w", lease_seconds=lease)
        assert job is not None
    progress = Progress("ingest", 5, 10, rate=12.5)
    with any_runtime.db.write() as session:
        heartbeat(session, running, job.fence, lease_seconds=lease, progress=progress)
    shown = figures(any_client)
    assert shown["temi_database_up"] == 1
    assert shown["temi_jobs{kind=ingest}{status=cancelled}"] == 1
    assert shown["temi_jobs{kind=ingest}{status=queued}"] == 1
    assert shown["temi_jobs_queued"] == 1
    assert 90 <= shown["temi_oldest_queued_job_seconds"] < 90 + LONG_SECONDS
    stage = "{kind=ingest}{stage=ingest}"
    assert shown[f"temi_jobs_running{stage}"] == 1
    assert 0.5 <= shown[f"temi_job_heartbeat_age_seconds{stage}"] < LONG_SECONDS
    assert shown[f"temi_job_items_per_second{stage}"] == 12.5
    assert shown["temi_webhooks_waiting"] == 0
    assert 0 < shown["temi_storage_free_bytes"] <= shown["temi_storage_total_bytes"]


def test_scrapes_share_one_query(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "_CACHE_SECONDS", LONG_SECONDS)
    before = figures(client)
    upload(client, {"a.png": png_bytes()})
    assert figures(client)["temi_jobs_queued"] == before["temi_jobs_queued"] == 0
    monkeypatch.setattr(state, "_CACHE_SECONDS", 0.0)
    assert figures(client)["temi_jobs_queued"] == 1


def test_predictions(runtime: Runtime) -> None:
    metrics = Metrics(runtime)
    serving = metrics.serving
    serving.answered("ok", images=3, seconds=0.02)
    serving.batch(size=8, wait_seconds=0.002, compute_seconds=0.03)
    serving.waiting(4)
    serving.cache("hit")
    serving.cache("miss")
    serving.loaded(models=2, bytes_=1000)
    serving.unloaded("idle")
    serving.load_seconds(1.5)
    shown = metrics.render().result().decode()
    for line in (
        'temi_predict_requests_total{outcome="ok"} 1.0',
        'temi_predict_images_total{outcome="ok"} 3.0',
        'temi_predict_seconds_bucket{le="0.025"} 1.0',
        'temi_predict_batch_size_bucket{le="4.0"} 0.0',
        'temi_predict_batch_size_bucket{le="8.0"} 1.0',
        "temi_predict_wait_seconds_sum 0.002",
        "temi_predict_compute_seconds_sum 0.03",
        "temi_predict_waiting 4.0",
        'temi_model_cache_requests_total{result="miss"} 1.0',
        "temi_model_cache_models 2.0",
        "temi_model_cache_bytes 1000.0",
        'temi_model_cache_unloads_total{reason="idle"} 1.0',
        "temi_model_load_seconds_count 1.0",
    ):
        assert line in shown


@pytest.fixture
def many_jobs(any_runtime: Runtime) -> None:
    with any_runtime.db.write() as session:
        session.add(Dataset(id="ds_1", tenant="t", name="d"))
        session.flush()
        row = {
            "tenant": "t",
            "dataset_id": "ds_1",
            "config": {"padding": "x" * 500},
            "stages": [],
            "result": {"metrics": {"padding": "x" * 2000}},
        }
        kinds, states = ("ingest", "cluster", "map"), ("succeeded", "failed", "queued")
        rows = [
            row | {"id": new_id("job"), "kind": kinds[n % 3], "status": states[n // 3 % 3]}
            for n in range(_JOBS)
        ]
        session.execute(insert(Job), rows)
    if any_runtime.db.engine.dialect.name == "postgresql":
        with any_runtime.db.engine.connect().execution_options(
            isolation_level="AUTOCOMMIT"
        ) as connection:
            connection.execute(text("VACUUM ANALYZE jobs"))  # as the server does by itself


@pytest.mark.usefixtures("many_jobs")
def test_a_scrape_with_ten_thousand_jobs(any_runtime: Runtime) -> None:
    with any_runtime.db.read() as session:
        load = read_queue_stats(session)
    assert sum(group.count for group in load.groups) == _JOBS


@pytest.mark.usefixtures("many_jobs")
def test_a_scrape_reads_an_index_and_no_row(any_runtime: Runtime) -> None:
    dialect = any_runtime.db.engine.dialect.name
    explain = {"sqlite": "EXPLAIN QUERY PLAN ", "postgresql": "EXPLAIN "}[dialect]
    query = "SELECT kind, status, count(*), min(queued_at) FROM jobs GROUP BY status, kind"
    with any_runtime.db.read() as session:
        plan = " ".join(str(row) for row in session.execute(text(explain + query)))
    assert "ix_jobs_status_kind_queued_at" in plan
    assert "COVERING INDEX" in plan or "Index Only Scan" in plan
