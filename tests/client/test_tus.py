"""Resumable uploads, against the real API and over broken connections."""

import random
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from temi_client import ApiError, Progress, TemiClient, UploadInterrupted
from temi_client.resources import uploads
from tests.client.live import FILES, Live
from tests.images import zip_of


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """An archive of several blocks, padded with random bytes."""
    noise = random.Random(0).randbytes(1_000_000)
    path = tmp_path / "photos.zip"
    path.write_bytes(zip_of({**FILES, "noise.bin": noise}))
    return path


@pytest.fixture(autouse=True)
def no_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("temi_client.transport.Backoff._delay", lambda *_: 0.0)


class FlakyTransport(httpx.BaseTransport):
    """Real connections; some PATCH requests are interrupted or lose their response."""

    def __init__(self, *faults: str) -> None:
        self._inner = httpx.HTTPTransport()
        self._faults = iter(faults)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        fault = next(self._faults, "") if request.method == "PATCH" else ""
        if fault == "cut":
            request.stream = _TruncatedStream(request.stream)
        response = self._inner.handle_request(request)
        if fault == "lost":
            response.read()
            raise httpx.ReadError("the response was lost")
        return response

    def close(self) -> None:
        self._inner.close()


class _TruncatedStream(httpx.SyncByteStream):
    def __init__(self, stream: object) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        assert isinstance(self._stream, httpx.SyncByteStream)
        for block in self._stream:
            yield block
            raise httpx.WriteError("the connection broke")


def test_an_archive_in_chunks_becomes_a_dataset(
    live: Live, live_client: TemiClient, archive: Path
) -> None:
    seen: list[tuple[int, int]] = []
    upload = live_client.upload_resumable(
        archive, chunk_bytes=300_000, progress=lambda done, total: seen.append((done, total))
    )
    size = archive.stat().st_size
    assert (upload.offset, upload.length) == (size, size)
    assert seen[-1] == (size, size)
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})
    job = live_client.create_dataset({"type": "upload", "upload_id": upload.id}, name="large")
    live.work(job.id)
    assert (live_client.wait(job.id).result or {})["image_count"] == 4


def test_uploads_resume_after_broken_connections(live: Live, archive: Path) -> None:
    faults = FlakyTransport("cut", "", "lost", "cut", "cut", "lost")
    with live.client(transport=faults, retries=3) as client:
        upload = client.upload_resumable(archive, chunk_bytes=300_000)
        job = client.create_dataset({"type": "upload", "upload_id": upload.id}, name="x")
    live.work(job.id)
    with live.client() as client:
        assert (client.wait(job.id).result or {})["image_count"] == 4


def test_an_interrupted_upload_is_resumed_by_id(
    live: Live, live_client: TemiClient, archive: Path
) -> None:
    with (
        live.client(transport=FlakyTransport("", *["cut"] * 9), retries=0) as client,
        pytest.raises(UploadInterrupted) as caught,
    ):
        client.upload_resumable(archive, chunk_bytes=300_000)
    arrived = live_client.upload_state(caught.value.upload_id)
    assert 300_000 <= arrived.offset < arrived.length
    assert arrived.expires_at is not None
    address = f"{live.url}/v1/uploads/{caught.value.upload_id}"
    seen: list[int] = []
    done = live_client.upload_resumable(
        archive, upload=address, progress=lambda sent, _: seen.append(sent)
    )
    assert done.offset == done.length
    assert seen[0] > arrived.offset


def test_resuming_with_another_file_raises(
    live_client: TemiClient, archive: Path, tmp_path: Path
) -> None:
    upload = live_client.upload_resumable(archive)
    other = tmp_path / "other.zip"
    other.write_bytes(b"short")
    with pytest.raises(ValueError, match="resume it with the same file"):
        live_client.upload_resumable(other, upload=upload.id)


def test_a_url_of_another_server_is_not_requested(live: Live, live_client: TemiClient) -> None:
    with pytest.raises(ApiError) as caught:
        live_client.upload_state("http://elsewhere.example/v1/uploads/up_1")
    assert caught.value.status == 404
    assert ("HEAD", "/v1/uploads/{upload_id}") in live.routes


def test_limits_and_deletion(live_client: TemiClient, archive: Path) -> None:
    limits = live_client.upload_limits()
    assert limits.max_bytes > 1_000_000
    assert "creation" in limits.extensions
    upload = live_client.upload_resumable(archive)
    live_client.delete_upload(upload.id)
    with pytest.raises(ApiError):
        live_client.upload_state(upload.id)


@pytest.mark.parametrize(("key", "pieces"), [(None, True), ("mine", False)])
def test_large_archives_are_resumable_without_an_idempotency_key(
    live: Live,
    live_client: TemiClient,
    archive: Path,
    monkeypatch: pytest.MonkeyPatch,
    key: str | None,
    pieces: bool,
) -> None:
    monkeypatch.setattr(uploads, "RESUMABLE_BYTES", 100_000)
    live_client.upload_dataset(archive, idempotency_key=key)
    assert (("PATCH", "/v1/uploads/{upload_id}") in live.routes) == pieces


def test_progress_of_simple_uploads(live_client: TemiClient, tmp_path: Path, archive: Path) -> None:
    photos = [tmp_path / name for name in ("1.jpg", "2.jpg")]
    for photo in photos:
        photo.write_bytes(FILES["cats/a.jpg"])
    seen: list[tuple[int, int]] = []
    note: Progress = lambda done, total: seen.append((done, total))  # noqa: E731
    live_client.upload_dataset(photos, progress=note)
    total = 2 * len(FILES["cats/a.jpg"])
    assert seen[-1] == (total, total)
    live_client.upload_dataset(archive, progress=note)
    assert seen[-1] == (archive.stat().st_size,) * 2
