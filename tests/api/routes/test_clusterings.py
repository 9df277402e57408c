"""Clusterings, clusters and assignments."""

import math
from base64 import b64encode
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import func, select

from app.core.clusterings.rows import refresh_clusters
from app.core.jobs.lifecycle import create_job
from app.core.platform.tables import (
    Assignment,
    AssignmentChange,
    Cluster,
    ClusteringOperation,
    Dataset,
    Export,
)
from app.core.runtime import Runtime
from tests.api.conftest import Json, MakeClustering, store_clustering, upload, work_on
from tests.images import png_bytes


@pytest.fixture
def clustering(client: TestClient, dataset: Json, make_clustering: MakeClustering) -> Json:
    found: Json = client.get(f"/v1/clusterings/{make_clustering(dataset['id'])}").json()
    return found


def test_a_clustering(client: TestClient, dataset: Json, clustering: Json) -> None:
    assert clustering["dataset_id"] == dataset["id"]
    assert clustering["model"] == {"name": "cats-dogs", "version": 1}
    assert (clustering["n_clusters"], clustering["image_count"]) == (3, 4)
    assert clustering["revision"] == 1
    assert clustering["metrics"] == {"temi": None, "kmeans": None}
    assert client.get(f"/v1/jobs/{clustering['job_id']}").status_code == 200


def test_a_clustering_that_has_not_changed(client: TestClient, clustering: Json) -> None:
    url = f"/v1/clusterings/{clustering['id']}"
    tag = client.get(url).headers["ETag"]
    answer = client.get(url, headers={"If-None-Match": tag})
    assert (answer.status_code, answer.content, answer.headers["ETag"]) == (304, b"", tag)
    assert client.get(url, headers={"If-None-Match": '"7", W/"1"'}).status_code == 304

    body = {"kind": "rename", "cluster_id": 0, "label": "cats"}
    client.post(f"{url}/operations", json=body, headers={"If-Match": tag})
    answer = client.get(url, headers={"If-None-Match": tag})
    assert (answer.status_code, answer.json()["revision"]) == (200, 2)
    assert answer.headers["ETag"] == '"2"'
    missing = client.get("/v1/clusterings/cl_none", headers={"If-None-Match": tag})
    assert missing.status_code == 404


def test_clusterings_are_listed_newest_first(
    client: TestClient, dataset: Json, clustering: Json, make_clustering: MakeClustering
) -> None:
    newer = make_clustering(dataset["id"])
    data = client.get("/v1/clusterings").json()["data"]
    assert [item["id"] for item in data] == [newer, clustering["id"]]
    assert data[0]["model"]["version"] == 2
    params = {"dataset_id": "ds_other"}
    assert client.get("/v1/clusterings", params=params).json()["data"] == []


def test_clusters_with_their_most_probable_images(client: TestClient, clustering: Json) -> None:
    data = client.get(f"/v1/clusterings/{clustering['id']}/clusters").json()["data"]
    assert [(c["cluster_id"], c["label"], c["size"]) for c in data] == [
        (0, "cluster 0", 2),
        (1, "cluster 1", 2),
        (2, "cluster 2", 0),
    ]
    assert [example["name"] for example in data[0]["examples"]] == ["cats/a.jpg", "dogs/c.jpg"]
    assert data[0]["mean_probability"] == pytest.approx((0.9 + 0.9 - 0.8 / 3) / 2, abs=1e-3)
    assert (data[2]["mean_probability"], data[2]["examples"]) == (None, [])


@pytest.mark.parametrize(("examples", "expected"), [(0, 0), (1, 1), (24, 2)])
def test_the_number_of_examples(
    client: TestClient, clustering: Json, examples: int, expected: int
) -> None:
    url = f"/v1/clusterings/{clustering['id']}/clusters"
    listed = client.get(url, params={"examples": examples}).json()["data"]
    assert [len(cluster["examples"]) for cluster in listed] == [expected, expected, 0]
    assert client.get(f"{url}/0", params={"examples": examples}).json() == listed[0]


def test_too_many_examples(client: TestClient, clustering: Json) -> None:
    url = f"/v1/clusterings/{clustering['id']}/clusters"
    for examples in (-1, 25):
        assert client.get(url, params={"examples": examples}).status_code == 422


def test_clusters_that_a_person_has_named(client: TestClient, clustering: Json) -> None:
    url = f"/v1/clusterings/{clustering['id']}"
    body = {"kind": "rename", "cluster_id": 1, "label": "cats"}
    client.post(f"{url}/operations", json=body, headers={"If-Match": "*"})
    data = client.get(f"{url}/clusters").json()["data"]
    assert [cluster["named"] for cluster in data] == [False, True, False]
    assert client.get(f"{url}/clusters/1").json()["named"] is True


def test_assignments_are_in_the_order_of_the_upload(client: TestClient, clustering: Json) -> None:
    data = client.get(f"/v1/clusterings/{clustering['id']}/assignments").json()["data"]
    assert [row["name"] for row in data] == ["cats/a.jpg", "cats/b.png", "dogs/c.jpg", "dogs/d.jpg"]
    assert [row["cluster_id"] for row in data] == [0, 1, 0, 1]
    assert [row["label"] for row in data] == ["cluster 0", "cluster 1", "cluster 0", "cluster 1"]
    assert data[0]["probability"] == pytest.approx(0.9)
    assert client.get(f"/v1/images/{data[0]['image_id']}").json()["name"] == "cats/a.jpg"


@pytest.mark.parametrize(("cluster_id", "count"), [(1, 2), (2, 0), (99, 0)])
def test_assignments_of_one_cluster(
    client: TestClient, clustering: Json, cluster_id: int, count: int
) -> None:
    url = f"/v1/clusterings/{clustering['id']}/assignments"
    data = client.get(url, params={"cluster_id": cluster_id}).json()["data"]
    assert [row["cluster_id"] for row in data] == [cluster_id] * count


def test_images_of_a_cluster_that_another_clustering_has_in_one_cluster(
    client: TestClient, clustering: Json, runtime: Runtime
) -> None:
    thirds = store_clustering(runtime, clustering["dataset_id"], one_in=3)  # 0, 1, 1, 0
    url = f"/v1/clusterings/{clustering['id']}/assignments"  # 0, 1, 0, 1

    def names(**params: Any) -> list[str]:
        found = client.get(url, params={"other": thirds, **params}).json()["data"]
        return [row["name"] for row in found]

    assert names(cluster_id=0, other_cluster_id=0) == ["cats/a.jpg"]
    assert names(cluster_id=0, other_cluster_id=1) == ["dogs/c.jpg"]
    assert names(other_cluster_id=0) == ["cats/a.jpg", "dogs/d.jpg"]
    assert names(other_cluster_id=0, excluded=True) == names(other_cluster_id=9) == []
    first = client.get(url, params={"other": thirds, "other_cluster_id": 1, "limit": 1}).json()
    rest = names(other_cluster_id=1, cursor=first["next_cursor"])
    assert [first["data"][0]["name"], *rest] == ["cats/b.png", "dogs/c.jpg"]


def test_clusterings_of_two_datasets_cannot_be_compared(
    client: TestClient, clustering: Json, runtime: Runtime
) -> None:
    job = upload(client, {"x.png": png_bytes("red"), "y.png": png_bytes("blue")})
    work_on(runtime, job["id"])
    foreign = store_clustering(runtime, job["dataset_id"])
    url = f"/v1/clusterings/{clustering['id']}/assignments"
    for params, status, field in (
        (f"other={foreign}&other_cluster_id=0", 422, "other"),
        (f"other={foreign}", 422, "other_cluster_id"),
        ("other_cluster_id=0", 422, "other_cluster_id"),
        ("other=cl_none&other_cluster_id=0", 404, None),
    ):
        answer = client.get(f"{url}?{params}")
        assert answer.status_code == status, answer.text
        assert field in [error["field"] for error in answer.json()["errors"]] or field is None


@pytest.mark.parametrize("cluster_id", ["-1", "x", str(2**31)])
def test_an_invalid_cluster_id(client: TestClient, clustering: Json, cluster_id: str) -> None:
    url = f"/v1/clusterings/{clustering['id']}/assignments"
    assert client.get(url, params={"cluster_id": cluster_id}).status_code == 422


def test_one_cluster(client: TestClient, clustering: Json) -> None:
    url = f"/v1/clusterings/{clustering['id']}/clusters"
    listed = client.get(url).json()["data"]
    assert [client.get(f"{url}/{number}").json() for number in range(3)] == listed
    for path in (f"{url}/3", f"{url}/3/images", f"{url}/2147483647"):
        answer = client.get(path)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert client.get(f"{url}/-1").status_code == 422


def test_merged_clusters_are_no_longer_shown(client: TestClient, clustering: Json) -> None:
    url = f"/v1/clusterings/{clustering['id']}"
    body = {"kind": "merge", "cluster_ids": [0, 1]}
    client.post(f"{url}/operations", json=body, headers={"If-Match": '"1"'})
    assert [c["cluster_id"] for c in client.get(f"{url}/clusters").json()["data"]] == [0, 2]
    assert client.get(f"{url}/clusters/1").status_code == 404


@pytest.fixture
def ranked(any_client: TestClient, any_runtime: Runtime) -> str:
    """The URL of a cluster of six images, two of which have the same numbers."""
    job = upload(any_client, {f"{i}.png": png_bytes((i, 0, 0)) for i in range(6)})
    work_on(any_runtime, job["id"])
    clustering_id = store_clustering(any_runtime, job["dataset_id"], n_clusters=2)
    numbers = [(0.5, 0.1, 0.3), (0.9, 0.8, 0.1), (0.7, 0.4, 0.2)]
    with any_runtime.db.write() as session:
        rows = session.scalars(select(Assignment).order_by(Assignment.image_id)).all()
        for number, row in enumerate(rows):
            row.cluster_id = 0
            row.probability, row.margin, row.distance = numbers[number % 3]
        session.flush()
        refresh_clusters(session, clustering_id)
    return f"/v1/clusterings/{clustering_id}/clusters/0/images"


@pytest.mark.parametrize(
    ("sort", "expected"),
    [("representative", "415230"), ("borderline", "032514"), ("outlier", "305241")],
)
def test_images_of_a_cluster_in_order(
    any_client: TestClient, ranked: str, sort: str, expected: str
) -> None:
    params: dict[str, str] = {"sort": sort}
    data = any_client.get(ranked, params=params).json()["data"]
    assert "".join(row["name"][0] for row in data) == expected
    shown = {"image_id", "name", "probability", "margin", "distance", "similarity"}
    assert (set(data[0]), data[0]["similarity"]) == (shown, None)
    # also where the numbers are equal
    params["limit"] = "2" if sort == "outlier" else "1"
    assert page_by_page(any_client, ranked, params) == data


def page_by_page(client: TestClient, url: str, params: dict[str, str]) -> list[Json]:
    found: list[Json] = []
    while True:
        page = client.get(url, params=params).json()
        found += page["data"]
        if not page["has_more"]:
            return found
        params = {**params, "cursor": page["next_cursor"]}


def test_images_of_a_cluster_by_similarity(any_client: TestClient, ranked: str) -> None:
    images = any_client.get(ranked).json()["data"]
    (third,) = (row["image_id"] for row in images if row["name"] == "2.png")
    params = {"sort": "similar", "similar_to": third}
    data = any_client.get(ranked, params=params).json()["data"]
    assert "".join(row["name"][0] for row in data) == "213045"  # 10 degrees between neighbors
    assert [row["similarity"] for row in data[:3]] == [1.0, 0.984808, 0.984808]
    assert {**data[0], "similarity": None} in images
    for limit in ("1", "2", "6"):
        assert page_by_page(any_client, ranked, {**params, "limit": limit}) == data


def test_bad_requests_for_images_by_similarity(any_client: TestClient, ranked: str) -> None:
    image = any_client.get(ranked).json()["data"][0]["image_id"]
    cursor = b64encode(b"x img_1").decode()
    for params, status, code in (
        ({"sort": "similar"}, 422, "invalid_request"),
        ({"sort": "outlier", "similar_to": image}, 422, "invalid_request"),
        ({"sort": "similar", "similar_to": image, "cursor": cursor}, 422, "invalid_request"),
        ({"sort": "similar", "similar_to": "img_none"}, 404, "not_found"),
    ):
        answer = any_client.get(ranked, params=params)
        assert (answer.status_code, answer.json()["code"]) == (status, code), params


def test_similar_clusters(any_client: TestClient, ranked: str) -> None:
    url = ranked.partition("/clusters")[0]
    ids = sorted(row["image_id"] for row in any_client.get(ranked).json()["data"])
    for image_ids, label in ((ids[1:2], "near"), (ids[5:], "far")):  # image 0 is at 0 degrees
        body = {"kind": "move", "image_ids": image_ids, "new_cluster": label}
        any_client.post(f"{url}/operations", json=body, headers={"If-Match": "*"})
    found = any_client.get(f"{url}/clusters/2/similar").json()
    assert found["revision"] == 3
    assert [(row["cluster_id"], row["label"], row["size"]) for row in found["data"]] == [
        (0, "cluster 0", 4),
        (3, "far", 1),
    ]
    assert found["data"][1]["similarity"] == pytest.approx(math.cos(math.radians(40)), abs=2e-6)
    one = any_client.get(f"{url}/clusters/2/similar", params={"limit": 1}).json()
    assert one["data"] == found["data"][:1]
    assert any_client.get(f"{url}/clusters/1/similar").json()["data"] == []  # it is empty
    for path, status in (("9/similar", 404), ("2/similar?limit=0", 422)):
        assert any_client.get(f"{url}/clusters/{path}").status_code == status


def test_bad_orders_and_cursors(any_client: TestClient, ranked: str) -> None:
    assert any_client.get(ranked).json()["data"][0]["probability"] == 0.9
    cursors = [b64encode(text).decode() for text in (b"0.5", b"x img_1", b"nan img_1", b"inf i")]
    for params in [{"sort": "best"}, *({"cursor": cursor} for cursor in cursors)]:
        answer = any_client.get(ranked, params=params)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request"), params


def test_statistics(any_client: TestClient, ranked: str) -> None:
    url = ranked.partition("/clusters")[0]
    ids = [row["image_id"] for row in any_client.get(ranked).json()["data"]]
    for revision, body in enumerate(
        (
            {"kind": "move", "image_ids": ids[:1], "cluster_id": 1},
            {"kind": "exclude", "image_ids": ids[1:2]},
            {"kind": "move", "image_ids": ids[2:3], "new_cluster": "x"},
            {"kind": "move", "image_ids": ids[2:3], "cluster_id": 1},
        ),
        start=1,
    ):
        any_client.post(f"{url}/operations", json=body, headers={"If-Match": f'"{revision}"'})
    found = any_client.get(f"{url}/statistics").json()
    counts, sizes = found.pop("probabilities"), found.pop("size_histogram")
    assert found == {
        "revision": 5,
        "images": 5,
        "excluded_images": 1,
        "clusters": 3,
        "empty_clusters": 1,
        "mean_probability": pytest.approx((0.9 + 2 * 0.7 + 2 * 0.5) / 5),
        "median_probability": pytest.approx(0.7, abs=0.001),
        "size_kl": pytest.approx(math.log(3) + 0.6 * math.log(0.6) + 0.4 * math.log(0.4)),
        "sizes": [3, 2, 0],
    }
    assert (len(counts["edges"]), sum(counts["counts"])) == (21, 5)
    assert counts["counts"][18] == 1  # 0.9, which is the lower edge of its bin
    assert (sizes["edges"][0], sizes["edges"][-1], sum(sizes["counts"])) == (0, 3, 3)


def test_statistics_when_all_images_are_excluded(any_client: TestClient, ranked: str) -> None:
    url = ranked.partition("/clusters")[0]
    ids = [row["image_id"] for row in any_client.get(ranked).json()["data"]]
    body = {"kind": "exclude", "image_ids": ids}
    any_client.post(f"{url}/operations", json=body, headers={"If-Match": "*"})
    found = any_client.get(f"{url}/statistics").json()
    assert (found["images"], found["excluded_images"], found["sizes"]) == (0, 6, [0, 0])
    assert (found["mean_probability"], found["median_probability"], found["size_kl"]) == (None,) * 3


def test_a_clustering_is_deleted_with_its_exports(
    any_client: TestClient, ranked: str, any_runtime: Runtime
) -> None:
    url = ranked.partition("/clusters")[0]
    clustering_id = url.rpartition("/")[2]
    body = {"kind": "merge", "cluster_ids": [0, 1]}
    any_client.post(f"{url}/operations", json=body, headers={"If-Match": "*"})
    any_runtime.storage.write("exports/x", b"file")
    with any_runtime.db.write() as session:
        dataset = session.get_one(Dataset, any_client.get(url).json()["dataset_id"])
        config = {"clustering_id": clustering_id}
        job = create_job(session, tenant="default", kind="export", dataset=dataset, config=config)
        other = {"clustering_id": "cl_other"}
        create_job(session, tenant="default", kind="export", dataset=dataset, config=other)
        session.add(
            Export(
                id="exp_1",
                tenant="default",
                clustering_id=clustering_id,
                revision=1,
                format="csv",
                storage_key="exports/x",
                filename="x.csv",
                media_type="text/csv",
                image_count=6,
                bytes=4,
                sha256="00" * 32,
            )
        )
    refused = any_client.delete(url)
    assert (refused.status_code, refused.json()["code"]) == (409, "clustering_in_use")
    assert any_client.get(url).status_code == 200

    any_client.post(f"/v1/jobs/{job.id}:cancel")
    assert any_client.delete(url).status_code == 204
    assert any_client.get(url).status_code == any_client.delete(url).status_code == 404
    assert not any_runtime.storage.exists("exports/x")
    with any_runtime.db.read() as session:
        for table in (Assignment, Cluster, ClusteringOperation, AssignmentChange, Export):
            assert session.scalar(select(func.count()).select_from(table)) == 0
        assert session.get(Dataset, dataset.id) is not None


@pytest.mark.parametrize(
    "path", ["", "/clusters", "/assignments", "/statistics", "/clusters/0", "/clusters/0/similar"]
)
def test_an_unknown_clustering(client: TestClient, path: str) -> None:
    answer = client.get(f"/v1/clusterings/cl_none{path}")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_cursors_of_images_by_similarity(any_client: TestClient, ranked: str) -> None:
    image = any_client.get(ranked).json()["data"][0]["image_id"]
    order = {"sort": "similar", "similar_to": image}
    whole = any_client.get(ranked, params=order).json()["data"]
    found = any_client.get(f"{ranked}/cursors", params=order | {"every": 2}).json()
    assert (found["count"], len(found["cursors"])) == (len(whole), -(-len(whole) // 2))
    for number, cursor in enumerate(found["cursors"]):
        page = order | {"limit": 2} | ({"cursor": cursor} if cursor else {})
        data = any_client.get(ranked, params=page).json()["data"]
        assert data == whole[2 * number : 2 * number + 2]
