"""Clusterings, clusters and assignments."""

import math
from base64 import b64encode

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
    assert set(data[0]) == {"image_id", "name", "probability", "margin", "distance"}
    # page by page, also where the numbers are equal
    found, params["limit"] = [], "2" if sort == "outlier" else "1"
    while True:
        page = any_client.get(ranked, params=params).json()
        found += page["data"]
        if not page["has_more"]:
            break
        params["cursor"] = page["next_cursor"]
    assert found == data


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


@pytest.mark.parametrize("path", ["", "/clusters", "/assignments", "/statistics", "/clusters/0"])
def test_an_unknown_clustering(client: TestClient, path: str) -> None:
    answer = client.get(f"/v1/clusterings/cl_none{path}")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
