"""The client against a real HTTP server."""

import io
import zipfile
from pathlib import Path

import pytest

from temi_client import ApiError, JobFailed, ServiceUnreachable, TemiClient
from tests.client.fake_service import FakeService, Request, Response, event, job, page

DATASET = {
    "id": "ds_1",
    "name": "cats",
    "status": "ready",
    "fingerprint": "f",
    "image_count": 2,
    "issue_count": 0,
    "labeled_count": 0,
    "bytes": 10,
    "error": None,
    "created_at": "2026-01-02T03:04:05Z",
    "added_by_a_newer_service": True,
}


def prediction(name: str) -> dict[str, object]:
    return {"image": name, "cluster_id": 1, "label": "cats", "probability": 0.9, "top_k": []}


def folder_of_images(path: Path) -> Path:
    (path / "a").mkdir(parents=True)
    (path / "a" / "1.jpg").write_bytes(b"one")
    (path / "2.jpg").write_bytes(b"two")
    (path / ".hidden").write_bytes(b"secret")
    return path


def test_a_zip_is_sent_unchanged(service: FakeService, client: TemiClient, tmp_path: Path) -> None:
    service.answer("POST", "/v1/datasets", job("queued", kind="ingest"), status=202)
    archive = tmp_path / "cats.zip"
    archive.write_bytes(b"zip bytes")
    assert client.upload_dataset(archive, labels_from="folder").kind == "ingest"
    (sent,) = service.requests
    assert sent.body == b"zip bytes"
    assert sent.query == {"name": ["cats"], "labels_from": ["folder"]}
    assert sent.headers["content-type"] == "application/zip"
    assert sent.headers["content-length"] == "9"
    assert sent.headers["authorization"] == "Bearer a-key-of-sixteen+"


def test_a_folder_is_packed_without_hidden_files(
    service: FakeService, client: TemiClient, tmp_path: Path
) -> None:
    service.answer("POST", "/v1/datasets", job("queued"), status=202)
    client.upload_dataset(str(folder_of_images(tmp_path / "pets")))
    (sent,) = service.requests
    with zipfile.ZipFile(io.BytesIO(sent.body)) as packed:
        assert {name: packed.read(name) for name in packed.namelist()} == {
            "2.jpg": b"two",
            "a/1.jpg": b"one",
        }
        assert {info.compress_type for info in packed.infolist()} == {zipfile.ZIP_STORED}
    assert sent.query["name"] == ["pets"]


def test_a_few_images_are_sent_as_a_form(
    service: FakeService, client: TemiClient, tmp_path: Path
) -> None:
    service.answer("POST", "/v1/datasets", job("queued"), status=202)
    folder = folder_of_images(tmp_path / "pets")
    client.upload_dataset([folder / "2.jpg", folder / "a" / "1.jpg"], name="two")
    (sent,) = service.requests
    assert sent.headers["content-type"].startswith("multipart/form-data")
    assert sent.body.count(b'name="files"') == 2
    assert b'filename="2.jpg"' in sent.body


def test_many_images_are_sent_as_an_archive(
    service: FakeService, client: TemiClient, tmp_path: Path
) -> None:
    service.answer("POST", "/v1/datasets", job("queued"), status=202)
    image = tmp_path / "1.jpg"
    image.write_bytes(b"one")
    client.upload_dataset([image] * 101)
    with zipfile.ZipFile(io.BytesIO(service.requests[0].body)) as packed:
        assert len(set(packed.namelist())) == 101


def test_missing_images_raise_before_the_request(
    service: FakeService, client: TemiClient, tmp_path: Path
) -> None:
    with pytest.raises(FileNotFoundError):
        client.upload_dataset(tmp_path / "missing")
    with pytest.raises(ValueError, match="no images"):
        client.upload_dataset([])
    assert service.requests == []


def test_every_create_call_has_its_own_idempotency_key(
    service: FakeService, client: TemiClient
) -> None:
    service.answer("POST", "/v1/jobs", job("queued"), status=202)
    client.cluster("ds_1", 8, beta=None, seed=3)
    client.cluster("ds_1", 8)
    client.create_job(dataset_id="ds_1", n_clusters=8, idempotency_key="mine")
    keys = [request.headers["idempotency-key"] for request in service.requests]
    assert len(set(keys)) == 3
    assert keys[2] == "mine"
    expected = b'{"kind":"cluster","dataset_id":"ds_1","n_clusters":8,"seed":3}'
    assert service.requests[0].body == expected


def test_lists_follow_all_pages(service: FakeService, client: TemiClient) -> None:
    def route(request: Request) -> Response:
        if "cursor" in request.query:
            return Response(page(DATASET | {"id": "ds_2"}))
        return Response(page(DATASET, next_cursor="next"))

    service.routes["GET", "/v1/datasets"] = route
    assert [dataset.id for dataset in client.datasets()] == ["ds_1", "ds_2"]


def test_watching_resumes_an_interrupted_stream(service: FakeService, client: TemiClient) -> None:
    def route(request: Request) -> Response:
        if request.headers.get("last-event-id") == "7":
            return Response(event(job("succeeded"), 8), content_type="text/event-stream")
        cut_off = b"id: 9\ndata: {"
        return Response(event(job("running"), 7) + cut_off, content_type="text/event-stream")

    service.routes["GET", "/v1/jobs/job_1/events"] = route
    states = [state.status for state in client.watch("job_1", poll_seconds=0.01)]
    assert states == ["running", "succeeded"]


def test_watching_polls_without_a_stream(service: FakeService, client: TemiClient) -> None:
    answers = iter([job("queued"), job("queued"), job("running"), job("succeeded")])
    service.routes["GET", "/v1/jobs/job_1"] = lambda _: Response(next(answers))
    states = [state.status for state in client.watch("job_1", poll_seconds=0.01)]
    assert states == ["queued", "running", "succeeded"]


def test_watching_polls_after_empty_streams(service: FakeService, client: TemiClient) -> None:
    service.answer("GET", "/v1/jobs/job_1/events", b": ping\n\n", content_type="text/event-stream")
    service.answer("GET", "/v1/jobs/job_1", job("succeeded"))
    assert client.wait("job_1", poll_seconds=0.01).status == "succeeded"


def test_watching_ends_with_the_events(service: FakeService, client: TemiClient) -> None:
    service.answer("GET", "/v1/jobs/job_1/events", b"", status=204)
    service.answer("GET", "/v1/jobs/job_1", job("succeeded"))
    states = [state.status for state in client.watch("job_1", poll_seconds=0.01)]
    assert states == ["succeeded"]
    assert len(service.requests) == 2


def test_watching_a_missing_job_raises(client: TemiClient) -> None:
    with pytest.raises(ApiError) as caught:
        list(client.watch("job_1", poll_seconds=0.01))
    assert caught.value.status == 404


def test_waiting_for_a_failed_job_raises(service: FakeService, client: TemiClient) -> None:
    failed = job("failed", error={"code": "dataset_empty", "detail": "No image in it."})
    service.answer("GET", "/v1/jobs/job_1", failed)
    with pytest.raises(JobFailed, match="No image in it") as caught:
        client.wait("job_1", poll_seconds=0.01)
    assert caught.value.job.error is not None
    assert caught.value.job.error.code == "dataset_empty"


def test_predictions_in_batches_use_one_version(
    service: FakeService, client: TemiClient, tmp_path: Path
) -> None:
    image = tmp_path / "1.jpg"
    image.write_bytes(b"one")

    def route(request: Request) -> Response:
        count = request.body.count(b'name="files"')
        data = [prediction("1.jpg")] * count
        return Response({"model": {"name": "pets", "version": 4}, "data": data})

    service.routes["POST", "/v1/models/pets@live:predict"] = route
    service.routes["POST", "/v1/models/pets/versions/4:predict"] = route
    predictions = client.predict("pets@live", [image] * 70, top_k=2)
    assert len(predictions.data) == 70
    assert predictions.model.version == 4
    assert [request.query["top_k"] for request in service.requests] == [["2"], ["2"]]


def test_names_are_quoted_in_paths(service: FakeService, client: TemiClient) -> None:
    with pytest.raises(ApiError):
        client.model("../jobs?x=1")
    assert service.requests[0].path == "/v1/models/..%2Fjobs%3Fx%3D1"


def test_aliases(service: FakeService, client: TemiClient) -> None:
    model = {
        "name": "pets",
        "latest_version": 2,
        "aliases": {"live": 1},
        "created_at": "2026-01-02T03:04:05Z",
    }
    service.answer("PUT", "/v1/models/pets/aliases/live", model)
    assert client.set_alias("pets", "live", 1).aliases == {"live": 1}
    assert service.requests[0].body == b'{"version":1}'


def test_readiness_is_returned_if_not_ready(service: FakeService, client: TemiClient) -> None:
    checks = {"database": {"ok": False, "detail": "locked"}}
    service.answer("GET", "/readyz", {"ready": False, "checks": checks}, status=503)
    readiness = client.ready()
    assert not readiness.ready
    assert readiness.checks["database"].detail == "locked"


def test_an_unreachable_service_raises() -> None:
    with TemiClient("http://127.0.0.1:9", retries=1) as client:
        with pytest.raises(ServiceUnreachable):
            client.ready()
        with pytest.raises(ServiceUnreachable, match=r"127\.0\.0\.1:9"):
            list(client.models())
