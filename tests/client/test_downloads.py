"""Downloads: taken up where they broke off, checked, whole or not there."""

import hashlib
from pathlib import Path

import pytest

from temi_client import ApiError, CorruptDownload, ServiceUnreachable, TemiClient
from tests.client.fake_service import Answer, FakeService, Request

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
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("temi_client.transport.Backoff._delay", lambda *_: 0.0)


@pytest.fixture
def ranges(service: FakeService) -> list[str]:
    """A service that answers ranges, and breaks off after a thousand bytes twice."""
    asked: list[str] = []

    def content(request: Request) -> Answer:
        given = request.headers.get("range", "bytes=0-")
        asked.append(given)
        rest = CONTENT[int(given.removeprefix("bytes=").rstrip("-")) :]
        status = 206 if "range" in request.headers else 200
        if len(asked) <= 2:
            return Answer(rest[:1000], status, "image/jpeg", cut_from=len(rest))
        return Answer(rest, status, "image/jpeg")

    service.answer("GET", "/v1/images/img_1", IMAGE)
    service.routes["GET", "/v1/images/img_1/content"] = content
    return asked


def test_a_broken_download_goes_on(service: FakeService, ranges: list[str], tmp_path: Path) -> None:
    target = tmp_path / "a.jpg"
    with TemiClient(service.url, retries=1) as client:
        assert client.image_content("img_1", target) == target
    assert target.read_bytes() == CONTENT
    assert ranges == ["bytes=0-", "bytes=1000-", "bytes=2000-"]
    assert list(tmp_path.iterdir()) == [target]


def test_a_later_call_takes_up_what_an_earlier_one_left(
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


def test_a_service_without_ranges_starts_from_the_beginning(
    service: FakeService, client: TemiClient, ranges: list[str], tmp_path: Path
) -> None:
    target = tmp_path / "a.jpg"
    with pytest.raises(ServiceUnreachable):
        client.image_content("img_1", target)
    service.answer("GET", "/v1/images/img_1/content", CONTENT, content_type="image/jpeg")
    client.image_content("img_1", target)
    assert target.read_bytes() == CONTENT


@pytest.mark.parametrize("sent", [CONTENT[:-1] + b"x", CONTENT + b"x"])
def test_other_bytes_than_announced_are_not_kept(
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


def test_a_stream_that_is_cut_leaves_nothing(
    service: FakeService, client: TemiClient, tmp_path: Path
) -> None:
    service.routes["GET", "/v1/datasets/ds_1/labels"] = lambda _: Answer(
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
