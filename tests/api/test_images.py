"""Single images: their entry, their bytes, a small picture."""

import io

import pytest
from fastapi.testclient import TestClient
from PIL import Image

from tests.api.conftest import Json
from tests.images import jpeg_bytes


@pytest.fixture
def image(client: TestClient, dataset: Json) -> Json:
    found: Json = client.get(f"/v1/datasets/{dataset['id']}/images").json()["data"][0]
    return found


def test_an_entry(client: TestClient, image: Json) -> None:
    assert client.get(f"/v1/images/{image['id']}").json() == image


def test_the_original_bytes(client: TestClient, image: Json) -> None:
    answer = client.get(f"/v1/images/{image['id']}/content")
    assert answer.content == jpeg_bytes("red", (40, 20))
    assert answer.headers["Content-Type"] == "image/jpeg"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "immutable" in answer.headers["Cache-Control"]


def test_a_range_of_the_bytes(client: TestClient, image: Json) -> None:
    url = f"/v1/images/{image['id']}/content"
    answer = client.get(url, headers={"Range": "bytes=2-5"})
    assert answer.status_code == 206
    assert answer.content == jpeg_bytes("red", (40, 20))[2:6]
    assert answer.headers["Content-Range"] == f"bytes 2-5/{image['bytes']}"
    assert client.get(url, headers={"Range": "bytes=999999-"}).status_code == 416


@pytest.mark.parametrize(("size", "expected"), [(None, (40, 20)), ("64", (40, 20))])
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


def test_sizes_have_tags_of_their_own(client: TestClient, image: Json) -> None:
    url = f"/v1/images/{image['id']}/thumbnail"
    tags = {client.get(url, params={"size": size}).headers["ETag"] for size in (64, 128, 256, 512)}
    assert len(tags) == 4


@pytest.mark.parametrize("size", ["0", "-1", "100", "1e9", "big"])
def test_other_sizes_are_refused(client: TestClient, image: Json, size: str) -> None:
    answer = client.get(f"/v1/images/{image['id']}/thumbnail", params={"size": size})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "size")


@pytest.mark.parametrize("path", ["", "/content", "/thumbnail"])
def test_an_image_that_is_not_there(client: TestClient, path: str) -> None:
    answer = client.get(f"/v1/images/img_none{path}")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
