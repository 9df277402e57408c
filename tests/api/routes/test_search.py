"""`:search` by an uploaded photo, an image and a text."""

import pytest
from fastapi.testclient import TestClient

from tests.api.conftest import COLORS, Json, upload, work_on
from tests.images import jpeg_bytes
from tests.trained import EACH


@pytest.fixture
def client(trained: Json) -> TestClient:
    found: TestClient = trained["client"]
    return found


@pytest.fixture
def path(trained: Json) -> str:
    return f"/v1/datasets/{trained['job']['dataset_id']}:search"


def _images(client: TestClient, path: str) -> list[Json]:
    found: list[Json] = client.get(path.replace(":search", "/images")).json()["data"]
    return found


def _colors(body: Json) -> list[str]:
    return [one["name"].partition("/")[0] for one in body["data"]]


@pytest.mark.parametrize("color", COLORS)
def test_an_uploaded_photo(client: TestClient, path: str, color: str) -> None:
    files = {"files": ("new.jpg", jpeg_bytes(COLORS[color], (40, 30)))}
    answer = client.post(path, files=files, params={"limit": EACH})
    assert answer.status_code == 200, answer.text
    assert _colors(answer.json()) == [color] * EACH


def test_a_photo_of_the_dataset_is_equal_to_itself(client: TestClient, path: str) -> None:
    image = _images(client, path)[3]
    content = client.get(f"/v1/images/{image['id']}/content").content
    answer = client.post(path, files={"files": ("same.jpg", content)}, params={"limit": 2})
    first, second = answer.json()["data"]
    assert (first["image_id"], first["similarity"]) == (image["id"], 1.0)
    by_id = client.post(path, json={"image_id": image["id"]}, params={"limit": 1})
    assert by_id.json()["data"] == [second]


def test_an_image_shows_its_neighbors_and_their_clusters(
    client: TestClient, path: str, trained: Json
) -> None:
    image = _images(client, path)[0]
    body = client.post(path, json={"image_id": image["id"]}, params={"limit": 5}).json()
    near = client.get(f"/v1/images/{image['id']}/neighbors", params={"limit": 5}).json()["data"]
    shown = [{name: one[name] for name in near[0]} for one in body["data"]]
    assert shown == near
    clustering = trained["job"]["result"]["clustering_id"]
    assert body["clustering_id"] == clustering
    rows = client.get(f"/v1/clusterings/{clustering}/assignments").json()["data"]
    cluster = {row["image_id"]: row["cluster_id"] for row in rows}
    assert all(one["cluster_id"] == cluster[one["image_id"]] for one in body["data"])
    other = next(number for number in cluster.values() if number != cluster[image["id"]])
    params = {"limit": 500, "cluster_id": other}
    within = client.post(path, json={"image_id": image["id"]}, params=params).json()["data"]
    assert len(within) == EACH
    assert {one["cluster_id"] for one in within} == {other}


def test_an_image_of_another_dataset(client: TestClient, path: str, trained: Json) -> None:
    """Its features are computed by the model of the dataset that is searched."""
    color = next(iter(COLORS))
    job = upload(client, {"one.jpg": jpeg_bytes(COLORS[color], (50, 20))}, name="another")
    work_on(trained["runtime"], job["id"])
    (image,) = client.get(f"/v1/datasets/{job['dataset_id']}/images").json()["data"]
    answer = client.post(path, json={"image_id": image["id"]}, params={"limit": 3})
    assert _colors(answer.json()) == [color] * 3
    # That dataset has nothing to search.
    url = f"/v1/datasets/{job['dataset_id']}:search"
    answer = client.post(url, json={"image_id": image["id"]})
    assert (answer.status_code, answer.json()["code"]) == (409, "features_missing")


def test_a_text_needs_a_text_encoder(client: TestClient, path: str) -> None:
    answer = client.post(path, json={"text": "a red car"})
    assert answer.status_code == 422
    assert "efficientnet_lite0" in answer.json()["detail"]
    assert "clip_vitb16" in answer.json()["detail"]
    assert answer.json()["errors"][0]["field"] == "text"
    assert client.get("/v1/models/colors/versions/1").json()["has_text_encoder"] is False


@pytest.mark.parametrize(
    ("content", "status", "code"),
    [
        (b"", 422, "image_undecodable"),
        (b"no image", 422, "image_undecodable"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", 415, "unsupported_format"),
        (jpeg_bytes("red")[:200], 422, "image_undecodable"),
    ],
)
def test_bad_photos(client: TestClient, path: str, content: bytes, status: int, code: str) -> None:
    answer = client.post(path, files={"files": ("x", content)})
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_bad_requests(client: TestClient, path: str) -> None:
    two = [("files", ("a.jpg", jpeg_bytes("red"))), ("files", ("b.jpg", jpeg_bytes("red")))]
    refused = {
        "too_many_parts": client.post(path, files=two),
        "unsupported_media_type": client.post(path, content=b"x", headers={"Content-Type": "a/b"}),
        "not_found": client.post(path, json={"image_id": "img_unknown"}),
        "body_too_large": client.post(
            path, content=b" " * 20_000_000, headers={"Content-Type": "application/json"}
        ),
    }
    assert {code: answer.json()["code"] for code, answer in refused.items()} == {
        code: code for code in refused
    }
    for body in ({}, {"image_id": "a", "text": "b"}, {"text": ""}, {"text": "x" * 501}, {"x": 1}):
        assert client.post(path, json=body).status_code == 422
    assert client.post(path, content=b"{", headers={"Content-Type": "application/json"}).json()[
        "errors"
    ] == [
        {
            "field": "files",
            "message": "send a photo as multipart/form-data, or JSON with an image_id or a text",
        }
    ]
    good = {"image_id": _images(client, path)[0]["id"]}
    for params in ({"limit": 0}, {"limit": 501}, {"cluster_id": -1}):
        assert client.post(path, json=good, params=params).status_code == 422
    for place in ({"cluster_id": "99"}, {"clustering_id": "cl_unknown"}):
        assert client.post(path, json=good, params=place).status_code == 404
    assert client.post("/v1/datasets/ds_unknown:search", json=good).status_code == 404
