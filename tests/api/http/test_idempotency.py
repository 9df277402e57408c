"""A request that is repeated with its Idempotency-Key happens once."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from fastapi.testclient import TestClient

from app.core.platform.idempotency import in_flight
from app.core.platform.settings import Settings
from tests.api.conftest import Json
from tests.conftest import MakeClient
from tests.images import ZIP, png_bytes, zip_of

_KEY = {"Idempotency-Key": "key-1"}
_BODY = zip_of({"a.png": png_bytes()})


def _datasets(client: TestClient) -> int:
    return len(client.get("/v1/datasets").json()["data"])


def test_the_same_upload_twice_is_one_dataset(any_client: TestClient) -> None:
    first, second = (
        any_client.post("/v1/datasets?name=x", content=_BODY, headers=_KEY | ZIP) for _ in range(2)
    )
    assert first.status_code == second.status_code == 202
    assert first.json() == second.json()
    assert first.headers["Location"] == second.headers["Location"]
    assert _datasets(any_client) == 1


def test_without_a_key_two_datasets_are_created(client: TestClient) -> None:
    for _ in range(2):
        client.post("/v1/datasets", content=_BODY, headers=ZIP)
    assert _datasets(client) == 2


@pytest.mark.parametrize(
    ("query", "body"),
    [
        ("?name=x", zip_of({"b.png": png_bytes("blue")})),
        ("?name=y", _BODY),
        ("?name=x&labels_from=folder", _BODY),
    ],
)
def test_the_same_key_for_another_upload_is_refused(
    client: TestClient, query: str, body: bytes
) -> None:
    client.post("/v1/datasets?name=x", content=_BODY, headers=_KEY | ZIP)
    answer = client.post(f"/v1/datasets{query}", content=body, headers=_KEY | ZIP)
    assert (answer.status_code, answer.json()["code"]) == (422, "idempotency_mismatch")
    assert _datasets(client) == 1


def test_a_refused_upload_leaves_no_file(client: TestClient, settings: Settings) -> None:
    for body in (_BODY, _BODY, zip_of({"b.png": png_bytes("blue")})):
        client.post("/v1/datasets", content=body, headers=_KEY | ZIP)
    assert len(list((settings.blob_dir / "uploads").iterdir())) == 1


@pytest.mark.parametrize("path", ["/v1/datasets", "/v1/jobs"])
def test_a_repetition_while_the_first_request_runs_is_refused(
    client: TestClient, dataset: Json, path: str
) -> None:
    body = {"json": {"dataset_id": dataset["id"], "n_clusters": 2}}
    with in_flight("default", "key-1"):
        arguments = body if path == "/v1/jobs" else {"content": _BODY}
        headers = _KEY if path == "/v1/jobs" else _KEY | ZIP
        answer = client.post(path, headers=headers, **arguments)
        assert (answer.status_code, answer.json()["code"]) == (409, "idempotency_in_progress")
    arguments = body if path == "/v1/jobs" else {"content": _BODY}
    assert client.post(path, headers=headers, **arguments).status_code == 202


def test_a_refused_request_does_not_store_its_key(client: TestClient) -> None:
    assert client.post("/v1/datasets", content=b"no", headers=_KEY | ZIP).status_code == 422
    assert client.post("/v1/datasets", content=_BODY, headers=_KEY | ZIP).status_code == 202


def test_the_same_job_twice_is_one_job(client: TestClient, dataset: Json) -> None:
    body = {"dataset_id": dataset["id"], "n_clusters": 2}
    first, second = (client.post("/v1/jobs", json=body, headers=_KEY) for _ in range(2))
    assert first.status_code == second.status_code == 202
    assert first.json() == second.json()
    other = client.post("/v1/jobs", json=body | {"seed": 1}, headers=_KEY)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_mismatch")
    jobs = client.get("/v1/jobs").json()["data"]
    assert [job["kind"] for job in jobs] == ["cluster", "ingest"]


@pytest.mark.parametrize("key", ["", "x" * 201])
def test_keys_of_an_invalid_length(client: TestClient, key: str) -> None:
    answer = client.post("/v1/datasets", content=_BODY, headers={"Idempotency-Key": key} | ZIP)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")


def test_repetitions_in_two_processes(
    make_client: MakeClient, any_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Across processes the database decides, and both requests get the same response."""
    monkeypatch.setattr("app.core.platform.idempotency._in_flight", _Forgetful())
    clients = [make_client(any_settings) for _ in range(4)]
    for client in clients:
        # FastAPI builds its routes at the first request and mutes warnings meanwhile, which is
        # not safe in threads: a muted warning of one would be an error in another.
        assert client.get("/v1/datasets").status_code == 200

    def post(client: TestClient) -> tuple[int, str]:
        answer = client.post("/v1/datasets", content=_BODY, headers=_KEY | ZIP)
        return answer.status_code, answer.json().get("id", answer.text)

    with ThreadPoolExecutor(4) as pool:
        answers = set(pool.map(post, clients))
    assert len(answers) == 1
    assert answers.pop()[0] == 202
    assert _datasets(clients[0]) == 1


class _Forgetful(set[tuple[str, str]]):
    def __contains__(self, _item: object) -> bool:
        return False
