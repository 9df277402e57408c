"""Downloads: resumed, verified and atomic."""

import hashlib
from pathlib import Path

import pytest

from temi_client import ApiError, CorruptDownload, ServiceUnreachable, TemiClient
from tests.client.fake_service import FakeService, Request, Response

CONTENT = bytes(range(256)) * 40
IMAGE = {
    "id": "img_1",
    "name": "a.jpg",
    "sha256": hashlib.sha256(CONTENT).hexdigest(),
    "width": 1,
    "height": 1,
    "format": "JPEG",
    "bytes": len(CONTENT),
}


@pytest.fixture(autouse=True)
def no_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("temi_client.transport.Backoff._delay", lambda *_: 0.0)


@pytest.fixture
def ranges(service: FakeService) -> list[str]:
    """A service that supports ranges and closes the connection after 1000 bytes, twice."""
    requested: list[str] = []

    def content(request: Request) -> Response:
        given = request.headers.get("range", "bytes=0-")
        requested.append(given)
        rest = CONTENT[int(given.removeprefix("bytes=").rstrip("-")) :]
        status = 206 if "range" in request.headers else 200
        if len(requested) <= 2:
            return Response(rest[:1000], status, "image/jpeg", cut_from=len(rest))
        return Response(rest, status, "image/jpeg")

    service.answer("GET", "/v1/images/img_1", IMAGE)
    service.routes["GET", "/v1/images/img_1/content"] = content
    return requested


def test_an_interrupted_download_is_resumed(
    service: FakeService, ranges: list[str], tmp_path: Path
) -> None:
    target = tmp_path / "a.jpg"
    with TemiClient(service.url, retries=1) as client:
        assert client.image_content("img_1", target) == target
    assert target.read_bytes() == CONTENT
    assert ranges == ["bytes=0-", "bytes=1000-", "bytes=2000-"]
    assert list(tmp_path.iterdir()) == [target]


def test_a_later_call_resumes_a_partial_file(
    client: TemiClient, ranges: list[str], tmp_path: Path
) -> None:
    target = tmp_path / "a.jpg"
    with pytest.raises(ServiceUnreachable):
        client.image_content("img_1", target)
    assert not target.exists()
    ranges.append("a pause")
    client.image_content("img_1", target)
    assert target.read_bytes() == CONTENT
    assert ranges[-1] == "bytes=1000-"


def test_without_range_support_the_download_starts_over(
    service: FakeService, client: TemiClient, ranges: list[str], tmp_path: Path
) -> None:
    target = tmp_path / "a.jpg"
    with pytest.raises(ServiceUnreachable):
        client.image_content("img_1", target)
    service.answer("GET", "/v1/images/img_1/content", CONTENT, content_type="image/jpeg")
    client.image_content("img_1", target)
    assert target.read_bytes() == CONTENT


@pytest.mark.parametrize("sent", [CONTENT[:-1] + b"x", CONTENT + b"x"])
def test_a_corrupt_download_is_deleted(
    service: FakeService, client: TemiClient, tmp_path: Path, sent: bytes
) -> None:
    service.answer("GET", "/v1/images/img_1", IMAGE)
    service.answer("GET", "/v1/images/img_1/content", sent, content_type="image/jpeg")
    target = tmp_path / "a.jpg"
    target.write_bytes(b"an older one")
    with pytest.raises(CorruptDownload, match="damaged"):
        client.image_content("img_1", target)
    assert target.read_bytes() == b"an older one"
    assert list(tmp_path.iterdir()) == [target]


def test_an_interrupted_stream_leaves_no_file(
    service: FakeService, client: TemiClient, tmp_path: Path
) -> None:
    service.routes["GET", "/v1/datasets/ds_1/labels"] = lambda _: Response(
        b'{"image_id": "img_1", "name": "a"}\n', content_type="application/x-ndjson", cut_from=100
    )
    with pytest.raises(ServiceUnreachable):
        client.save_labels("ds_1", tmp_path / "labels.csv")
    with pytest.raises(ServiceUnreachable):
        list(client.labels("ds_1"))
    assert list(tmp_path.iterdir()) == []


def test_a_map_is_saved(service: FakeService, client: TemiClient, tmp_path: Path) -> None:
    service.answer("GET", "/v1/jobs/job_1/map", b"ARROW1", content_type="application/octet-stream")
    seen: list[tuple[int, int]] = []
    saved = client.download_map(
        "job_1", tmp_path / "map.arrow", progress=lambda *now: seen.append(now)
    )
    assert saved.read_bytes() == b"ARROW1"
    assert seen == [(6, 6)]
    with pytest.raises(ApiError):
        client.download_map("job_2", tmp_path / "other.arrow")
