"""Single images: metadata, bytes, thumbnail, similar images."""

import io
import os

import pytest
from fastapi.testclient import TestClient
from PIL import Image

from app.core.runtime import Runtime
from app.core.storage.keys import blob_key
from tests.api.conftest import Json, MakeClustering, Work, upload
from tests.buckets import any_storage
from tests.images import image_bytes, jpeg_bytes


@pytest.fixture
def image(client: TestClient, dataset: Json) -> Json:
    found: Json = client.get(f"/v1/datasets/{dataset['id']}/images").json()["data"][0]
    return found


def test_the_metadata_of_an_image(client: TestClient, image: Json) -> None:
    assert client.get(f"/v1/images/{image['id']}").json() == image


@any_storage
def test_the_original_bytes(client: TestClient, image: Json) -> None:
    answer = client.get(f"/v1/images/{image['id']}/content")
    assert answer.content == jpeg_bytes("red", (40, 20))
    assert answer.headers["Content-Type"] == "image/jpeg"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "immutable" in answer.headers["Cache-Control"]


@any_storage
def test_a_range_of_the_bytes(client: TestClient, image: Json) -> None:
    url = f"/v1/images/{image['id']}/content"
    answer = client.get(url, headers={"Range": "bytes=2-5"})
    assert answer.status_code == 206
    assert answer.content == jpeg_bytes("red", (40, 20))[2:6]
    assert answer.headers["Content-Range"] == f"bytes 2-5/{image['bytes']}"
    assert client.get(url, headers={"Range": "bytes=999999-"}).status_code == 416


@pytest.mark.parametrize("path", ["content", "thumbnail"])
@any_storage
def test_missing_bytes(client: TestClient, runtime: Runtime, image: Json, path: str) -> None:
    runtime.storage.delete(blob_key(image["sha256"]))
    answer = client.get(f"/v1/images/{image['id']}/{path}")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert "missing from the storage" in answer.json()["detail"]


@any_storage
def test_damaged_bytes(client: TestClient, runtime: Runtime, image: Json) -> None:
    runtime.storage.write(blob_key(image["sha256"]), b"damaged")
    answer = client.get(f"/v1/images/{image['id']}/thumbnail")
    assert (answer.status_code, answer.json()["code"]) == (503, "storage_corrupt")


@pytest.mark.parametrize(("size", "expected"), [(None, (40, 20)), ("64", (40, 20))])
@any_storage
def test_a_thumbnail(
    client: TestClient, image: Json, size: str | None, expected: tuple[int, int]
) -> None:
    params = {"size": size} if size else {}
    url = f"/v1/images/{image['id']}/thumbnail"
    first, second = (client.get(url, params=params) for _ in range(2))
    assert first.headers["Content-Type"] == "image/webp"
    assert first.content == second.content
    with Image.open(io.BytesIO(first.content)) as small:
        assert (small.format, small.size) == ("WEBP", expected)
    again = client.get(url, params=params, headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    other = client.get(url, params=params, headers={"If-None-Match": '"other"'})
    assert other.status_code == 200


@pytest.mark.parametrize("path", ["content", "thumbnail"])
@pytest.mark.parametrize(
    ("held", "status"),
    [
        ("{tag}", 304),
        ('"other", {tag}', 304),
        ("W/{tag}", 304),
        ('"other",W/{tag} , "third"', 304),
        ("*", 304),
        ('"other"', 200),
        ("", 200),
    ],
)
def test_if_none_match(client: TestClient, image: Json, path: str, held: str, status: int) -> None:
    url = f"/v1/images/{image['id']}/{path}"
    tag = client.get(url).headers["ETag"]
    answer = client.get(url, headers={"If-None-Match": held.format(tag=tag)})
    assert (answer.status_code, answer.headers["ETag"]) == (status, tag)
    assert "immutable" in answer.headers["Cache-Control"]
    assert bool(answer.content) == (status == 200)


def test_the_etag_is_the_hash_of_the_bytes(
    client: TestClient, image: Json, runtime: Runtime
) -> None:
    url = f"/v1/images/{image['id']}/content"
    assert client.get(url).headers["ETag"] == f'"{image["sha256"]}"'
    os.utime(
        runtime.storage.path(blob_key(image["sha256"])), (1, 1)
    )  # as if it were uploaded again
    headers = {"Range": "bytes=0-1", "If-Range": f'"{image["sha256"]}"'}
    assert client.get(url, headers=headers).status_code == 206
    headers["If-Range"] = '"other"'
    assert client.get(url, headers=headers).status_code == 200


@pytest.mark.parametrize(
    ("asked", "expected"), [("bytes=-3", slice(-3, None)), ("bytes=10-", slice(10, None))]
)
def test_a_suffix_range(client: TestClient, image: Json, asked: str, expected: slice) -> None:
    answer = client.get(f"/v1/images/{image['id']}/content", headers={"Range": asked})
    assert (answer.status_code, answer.content) == (206, jpeg_bytes("red", (40, 20))[expected])


@pytest.mark.parametrize(("format_", "kind"), [("HEIF", "image/heif"), ("AVIF", "image/avif")])
def test_heic_and_avif(client: TestClient, work: Work, format_: str, kind: str) -> None:
    job = upload(client, {"photo": image_bytes(format_, "red", (40, 20))})
    work(job["id"])
    found = client.get(f"/v1/datasets/{job['dataset_id']}/images").json()["data"][0]
    assert (found["format"], found["width"], found["height"]) == (format_, 40, 20)
    content = client.get(f"/v1/images/{found['id']}/content")
    assert content.headers["Content-Type"] == kind
    small = client.get(f"/v1/images/{found['id']}/thumbnail?size=64")
    with Image.open(io.BytesIO(small.content)) as opened:
        assert opened.format == "WEBP"


def test_each_thumbnail_size_has_its_own_etag(client: TestClient, image: Json) -> None:
    url = f"/v1/images/{image['id']}/thumbnail"
    tags = {client.get(url, params={"size": size}).headers["ETag"] for size in (64, 128, 256, 512)}
    assert len(tags) == 4


@pytest.mark.parametrize("size", ["0", "-1", "100", "1e9", "big"])
def test_other_sizes_are_refused(client: TestClient, image: Json, size: str) -> None:
    answer = client.get(f"/v1/images/{image['id']}/thumbnail", params={"size": size})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "size")


@pytest.mark.parametrize("path", ["", "/content", "/thumbnail"])
def test_an_unknown_image(client: TestClient, path: str) -> None:
    answer = client.get(f"/v1/images/img_none{path}")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_the_most_similar_images(
    client: TestClient, dataset: Json, make_clustering: MakeClustering
) -> None:
    make_clustering(dataset["id"])  # the angle between images i and i + 1 is 10 degrees
    images = client.get(f"/v1/datasets/{dataset['id']}/images").json()["data"]
    url = f"/v1/images/{images[1]['id']}/neighbors"
    data = client.get(url).json()["data"]
    assert [row["name"] for row in data] == ["cats/a.jpg", "dogs/c.jpg", "dogs/d.jpg"]
    assert [row["similarity"] for row in data] == [0.984808, 0.984808, 0.939693]
    assert data[0]["image_id"] == images[0]["id"]
    assert client.get(url, params={"limit": 1}).json()["data"] == data[:1]
    for limit in ("0", "101"):
        assert client.get(url, params={"limit": limit}).status_code == 422


def test_similar_images_need_features(client: TestClient, image: Json) -> None:
    answer = client.get(f"/v1/images/{image['id']}/neighbors")
    assert (answer.status_code, answer.json()["code"]) == (409, "features_missing")
    assert client.get("/v1/images/img_none/neighbors").status_code == 404
