"""The review of a clustering over HTTP."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.core.runtime import Runtime
from tests.api.conftest import Json, store_clustering, upload, work_on
from tests.images import png_bytes

IMAGES = 60


@pytest.fixture
def url(any_client: TestClient, any_runtime: Runtime) -> str:
    """60 images, which are in clusters 0 and 1 in turn; cluster 2 is empty."""
    job = upload(any_client, {f"{i}.png": png_bytes((i, i, i)) for i in range(IMAGES)})
    work_on(any_runtime, job["id"])
    return f"/v1/clusterings/{store_clustering(any_runtime, job['dataset_id'])}"


def questions(client: TestClient, url: str, **params: Any) -> list[Json]:
    answer = client.get(f"{url}/review/queue", params=params)
    assert answer.status_code == 200, answer.text
    data: list[Json] = answer.json()["data"]
    return data


def reply(client: TestClient, url: str, *answers: Json, **headers: str) -> Any:
    return client.post(f"{url}/review/answers", json={"answers": answers}, headers=headers)


def replied(question: Json, answer: str, **fields: Any) -> Json:
    keys = ("image_id", "cluster_id", "sample")
    return {**{key: question[key] for key in keys}, "answer": answer, **fields}


def review_all(client: TestClient, url: str, wrong: frozenset[str] = frozenset()) -> int:
    """Answers until the queue is empty; wrong images belong to no group."""
    count = 0
    while found := questions(client, url, limit=500):
        count += len(found)
        answers = [replied(q, "none" if q["image_id"] in wrong else "yes") for q in found]
        assert reply(client, url, *answers).status_code == 200
    return count


def test_from_questions_to_a_finished_report(any_client: TestClient, url: str) -> None:
    before = any_client.get(f"{url}/review").json()
    assert before["forecast"]["basis"] == "probabilities"
    assert before["finished_images"] == 0
    assert [row["lower"] for row in before["clusters"]] == [None] * 3
    count = review_all(any_client, url)
    assert count < IMAGES
    after = any_client.get(f"{url}/review").json()
    assert after["finished_images"] == IMAGES
    assert after["reviewed_images"] == count
    assert after["forecast"] == {
        "clusters_to_name": 2,
        "answers": 0,
        "images": IMAGES,
        "share": 1.0,
        "basis": "answers",
        "clusters_left": 0,
        "summary": "Name 2 groups: 100% of the collection at 95% purity or better.",
    }
    for row in after["clusters"][:2]:
        assert row["meets"]
        assert 0.95 <= row["lower"] <= row["purity"] <= row["upper"] == 1
    stricter = any_client.get(f"{url}/review", params={"min_purity": 0.99}).json()
    assert not any(row["meets"] for row in stricter["clusters"])


def test_answers_move_images_and_can_be_withdrawn(any_client: TestClient, url: str) -> None:
    first, second, third = questions(any_client, url, limit=3)
    answer = reply(
        any_client,
        url,
        replied(first, "which", belongs_to=2),
        replied(second, "none"),
        replied(third, "no"),
    )
    assert answer.json() == {
        "revision": 3,
        "stored": [first["image_id"], second["image_id"], third["image_id"]],
        "refused": [],
    }
    assert answer.headers["ETag"] == '"3"'
    rows = any_client.get(f"{url}/review/answers").json()["data"]
    said = {row["image_id"]: (row["answer"], row["belongs_to"], row["sample"]) for row in rows}
    assert said == {
        first["image_id"]: ("which", 2, True),
        second["image_id"]: ("none", None, True),
        third["image_id"]: ("no", None, True),
    }
    late = reply(any_client, url, replied(first, "yes")).json()
    assert late["refused"] == [{"image_id": first["image_id"], "cluster_id": 2}]
    gone = any_client.delete(f"{url}/review/answers/{first['image_id']}")
    assert gone.status_code == 204
    assert gone.headers["ETag"] == '"4"'
    assert any_client.delete(f"{url}/review/answers/{first['image_id']}").status_code == 404
    assert first in questions(any_client, url, limit=3)


def test_bad_requests(any_client: TestClient, url: str) -> None:
    question = questions(any_client, url, limit=1)[0]
    bad: list[tuple[Json, str]] = [
        (replied(question, "maybe"), "answer"),
        (replied(question, "which"), "belongs_to"),
        (replied(question, "yes", belongs_to=1), "belongs_to"),
        (replied(question, "which", belongs_to=99), "there is no cluster 99"),
        ({**replied(question, "yes"), "image_id": "img_x"}, "img_x is not in this clustering"),
        ({**replied(question, "yes"), "comment": "?"}, "comment"),
    ]
    for body, problem in bad:
        answer = reply(any_client, url, body)
        assert answer.status_code == 422, body
        assert problem in answer.text
    assert reply(any_client, url).status_code == 422
    too_many = [replied(question, "yes")] * 501
    assert reply(any_client, url, *too_many).status_code == 422
    stale = reply(any_client, url, replied(question, "yes"), **{"If-Match": '"7"'})
    assert (stale.status_code, stale.json()["code"]) == (412, "revision_stale")
    assert reply(any_client, url, replied(question, "yes"), **{"If-Match": '"1"'}).is_success
    for params in ({"min_purity": 1}, {"min_purity": 0.2}, {"confidence": 1}, {"target": 0}):
        assert any_client.get(f"{url}/review", params=params).status_code == 422, params
    wrong: Json = {"limit": 0, "order": "best", "labeler": "x" * 65}
    for name, value in wrong.items():
        answer = any_client.get(f"{url}/review/queue", params={name: value})
        assert answer.status_code == 422, name
    assert any_client.get("/v1/clusterings/cl_none/review").status_code == 404


def test_an_export_above_a_purity(any_client: TestClient, any_runtime: Runtime, url: str) -> None:
    """Only cluster 0 is reviewed, except for two images of cluster 1."""
    clustering_id = url.rpartition("/")[2]
    for _ in range(10):
        mine = [q for q in questions(any_client, url, limit=500) if q["cluster_id"] == 0]
        if not mine:
            break
        reply(any_client, url, *(replied(q, "yes") for q in mine))
    yes, no = questions(any_client, url, limit=2)
    assert yes["cluster_id"] == 1
    reply(any_client, url, replied(yes, "yes"), replied(no, "no"))
    body = {"kind": "export", "clustering_id": clustering_id, "format": "jsonl", "min_purity": 0.95}
    job = any_client.post("/v1/jobs", json=body)
    assert job.status_code == 202, job.text
    reply(any_client, url, *(replied(q, "yes") for q in questions(any_client, url)))  # too late
    work_on(any_runtime, job.json()["id"])
    result = any_client.get(f"/v1/jobs/{job.json()['id']}").json()["result"]
    export = any_client.get(f"/v1/exports/{result['export_id']}").json()
    assert export["filters"]["min_purity"] == 0.95
    content = any_client.get(f"/v1/exports/{result['export_id']}/content").text
    assert result["image_count"] == len(content.splitlines())
    assert result["image_count"] + result["left_out"] == IMAGES
    assert content.count('"cluster_id":0') == IMAGES / 2
    assert yes["image_id"] in content
    assert no["image_id"] not in content


def test_an_export_above_a_purity_is_of_the_current_revision(
    any_client: TestClient, url: str
) -> None:
    question = questions(any_client, url, limit=1)[0]
    reply(any_client, url, replied(question, "none"))
    body = {"kind": "export", "clustering_id": url.rpartition("/")[2], "format": "csv"}
    refused = any_client.post("/v1/jobs", json={**body, "min_purity": 0.9, "revision": 1})
    assert refused.status_code == 422
    assert "needs the current revision, 2" in refused.text


def test_the_labels_as_a_whole_need_fewer_answers(any_client: TestClient, url: str) -> None:
    count = 0
    options: dict[str, Any] = {"proof": "collection", "min_purity": 0.9}
    while found := questions(any_client, url, limit=5, **options):
        count += len(found)
        assert reply(any_client, url, *(replied(q, "yes") for q in found)).status_code == 200
    report = any_client.get(f"{url}/review", params=options).json()
    assert count < IMAGES
    assert (report["proof"], report["collection"]["meets"]) == ("collection", True)
    assert report["collection"]["lower"] >= 0.9
    assert report["finished_images"] >= 0.95 * IMAGES
    assert report["forecast"]["answers"] == 0


def test_a_part_of_the_labels_is_not_proven_by_the_whole(any_client: TestClient, url: str) -> None:
    body = {
        "kind": "export",
        "clustering_id": url.rsplit("/", 1)[1],
        "format": "csv",
        "min_purity": 0.9,
        "proof": "collection",
    }
    refused = any_client.post("/v1/jobs", json={**body, "cluster_ids": [0]})
    assert refused.status_code == 422
    assert "collection proves all labels together" in refused.text
    made = any_client.post("/v1/jobs", json=body)
    assert made.status_code == 202
    assert made.json()["config"]["proven_probability"] is None  # nothing is proven yet
