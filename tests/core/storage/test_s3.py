"""A bucket: unreachable servers, damaged data, failed uploads, and the number of requests."""

import hashlib
import os
from pathlib import Path

import pytest

from app.core.platform.errors import StorageCorrupt, StorageUnavailable
from app.core.platform.settings import MiB, Settings
from app.core.storage import Storage, open_storage
from app.core.storage.keys import blob_key
from tests.buckets import new_bucket, s3_client
from tests.conftest import MakeSettings
from tests.core.storage.proxy import Proxy


def _blob(data: bytes) -> str:
    return blob_key(hashlib.sha256(data).hexdigest())


def _copies(settings: Settings) -> list[Path]:
    return [path for path in (settings.cache_dir / "files").rglob("*") if path.is_file()]


def test_an_image_takes_one_put_and_one_get(s3: Storage, proxy: Proxy) -> None:
    images = [f"image {number}".encode() for number in range(20)]
    batch = s3.batch()
    for data in images:
        batch.write(_blob(data), data)
    batch.flush()
    assert (proxy.count("PUT"), len(proxy.requests)) == (20, 20)
    proxy.requests.clear()
    assert [s3.read(_blob(data)) for data in images] == images
    assert (proxy.count("GET"), len(proxy.requests)) == (20, 20)


def test_a_copy_of_an_image_is_fetched_once(s3: Storage, proxy: Proxy) -> None:
    s3.write(_blob(b"image"), b"image")
    proxy.requests.clear()
    assert {s3.path(_blob(b"image")).read_bytes() for _ in range(3)} == {b"image"}
    assert (proxy.count("GET"), len(proxy.requests)) == (1, 1)


def test_a_written_artifact_is_cached(s3: Storage, proxy: Proxy) -> None:
    with s3.writing("embeddings/e/features.npy") as file:
        file.write(b"features")
    proxy.requests.clear()
    assert s3.path("embeddings/e/features.npy").read_bytes() == b"features"
    assert (proxy.count("HEAD"), len(proxy.requests)) == (1, 1)


def test_a_file_that_was_moved_in_is_cached(
    s3: Storage, s3_settings: Settings, proxy: Proxy
) -> None:
    grown = s3_settings.staging_dir / "up_1"
    grown.parent.mkdir()
    grown.write_bytes(b"archive")
    s3.move_in("uploads/up_1", grown)
    assert not grown.exists()
    proxy.requests.clear()
    assert s3.path("uploads/up_1").read_bytes() == b"archive"
    assert (proxy.count("HEAD"), len(proxy.requests)) == (1, 1)


def test_a_changed_file_is_fetched_again(
    s3: Storage, s3_settings: Settings, tmp_path: Path
) -> None:
    """Another host with its own cache writes in between."""
    other = open_storage(s3_settings.model_copy(update={"data_dir": tmp_path / "other"}))
    for data in (b"first", b"second"):
        with other.writing("exports/job/file") as file:
            file.write(data)
        assert s3.path("exports/job/file").read_bytes() == data
        assert s3.read("exports/job/file") == data
    other.delete("exports/job/file")
    with pytest.raises(FileNotFoundError):
        s3.path("exports/job/file")


@pytest.mark.parametrize("key", [_blob(b"data" * 10), "models/m/model.safetensors"])
def test_a_damaged_response_is_requested_again(s3: Storage, proxy: Proxy, key: str) -> None:
    s3.write(key, b"data" * 10)
    for use in (s3.read, lambda key: s3.path(key).read_bytes()):
        proxy.spoil = 1
        assert use(key) == b"data" * 10
        assert proxy.spoil == 0


@pytest.mark.parametrize("key", [_blob(b"data" * 10), "models/m/model.safetensors"])
def test_a_damaged_file_is_neither_returned_nor_cached(
    s3: Storage, s3_settings: Settings, proxy: Proxy, key: str
) -> None:
    s3.write(key, b"data" * 10)
    for use in (s3.read, s3.path):
        proxy.spoil = 2
        with pytest.raises(StorageCorrupt, match="is damaged"):
            use(key)
    assert _copies(s3_settings) == []
    assert s3.path(key).read_bytes() == b"data" * 10  # only the transfer was damaged


def test_a_file_of_another_tool_is_read_without_a_checksum(
    s3: Storage, s3_settings: Settings, proxy: Proxy
) -> None:
    client, (bucket, prefix) = s3_client(proxy.url), s3_settings.storage_url[5:].split("/")
    for key in ("models/m/manifest.json", _blob(b"good")):
        client.put_object(Bucket=bucket, Key=f"{prefix}/{key}", Body=b"restored")
    client.close()
    assert s3.read("models/m/manifest.json") == b"restored"
    assert s3.path("models/m/manifest.json").read_bytes() == b"restored"
    with pytest.raises(StorageCorrupt):
        s3.read(_blob(b"good"))  # its key is its SHA-256


def test_a_large_file_is_sent_in_parts_and_read_in_ranges(
    s3: Storage,
    s3_settings: Settings,
    proxy: Proxy,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("app.core.storage.s3._RANGE_BYTES", 3 * MiB)
    data = os.urandom(11 * MiB + 7)
    with s3.writing("embeddings/e/features.npy") as file:
        file.write(data)
    assert sum("partNumber=" in request for request in proxy.requests) == 3
    other = open_storage(s3_settings.model_copy(update={"data_dir": tmp_path / "other"}))
    proxy.requests.clear()
    assert other.path("embeddings/e/features.npy").read_bytes() == data
    assert proxy.count("GET") == 4
    proxy.spoil = 2
    (copy,) = _copies(s3_settings.model_copy(update={"data_dir": tmp_path / "other"}))
    copy.unlink()
    assert other.path("embeddings/e/features.npy").read_bytes() == data


def test_a_failed_upload_leaves_nothing(s3: Storage, s3_settings: Settings, proxy: Proxy) -> None:
    def upload() -> None:
        with s3.writing("models/m/model.safetensors") as file:
            file.write(bytes(12 * MiB))

    proxy.fail_parts = True
    with pytest.raises(StorageUnavailable):
        upload()
    assert not s3.exists("models/m/model.safetensors")
    bucket = s3_settings.storage_url.split("/")[2]
    client = s3_client(proxy.url)
    assert client.list_multipart_uploads(Bucket=bucket).get("Uploads", []) == []
    client.close()
    assert list(s3_settings.temporary_dir.iterdir()) == []
    assert _copies(s3_settings) == []


@pytest.mark.parametrize(
    "use",
    [
        lambda storage: storage.read("key"),
        lambda storage: storage.path("key"),
        lambda storage: storage.path(_blob(b"x")),
        lambda storage: storage.write("key", b"x"),
        lambda storage: storage.exists("key"),
        lambda storage: list(storage.list("folder")),
        lambda storage: storage.delete("key"),
        lambda storage: storage.delete_folder("folder"),
    ],
)
def test_an_unreachable_server(make_settings: MakeSettings, use: object) -> None:
    settings = make_settings(
        storage_url="s3://bucket", s3_endpoint="http://127.0.0.1:9", s3_access_key="a",
        s3_secret_key="b",
    )  # fmt: skip
    with pytest.raises(StorageUnavailable, match="cannot be used") as caught:
        use(open_storage(settings))  # type: ignore[operator]
    assert "127.0.0.1" not in caught.value.detail


def test_a_batch_fails_if_one_put_fails(make_settings: MakeSettings) -> None:
    settings = make_settings(
        storage_url="s3://bucket", s3_endpoint="http://127.0.0.1:9", s3_access_key="a",
        s3_secret_key="b",
    )  # fmt: skip
    batch = open_storage(settings).batch()
    batch.write(_blob(b"x"), b"x")
    for _ in range(2):
        with pytest.raises(StorageUnavailable):
            batch.flush()


def test_a_missing_bucket(s3_url: str, make_settings: MakeSettings) -> None:
    settings = make_settings(**new_bucket(s3_url) | {"storage_url": "s3://no-such-bucket/x"})
    with pytest.raises(StorageUnavailable, match="does not exist"):
        open_storage(settings).write("key", b"x")


def test_temporary_files_of_crashed_writers_are_deleted(s3: Storage, s3_settings: Settings) -> None:
    for name, age in (("stale", 1000.0), ("fresh", 1.0)):
        path = s3_settings.temporary_dir / name
        path.write_bytes(b"x")
        os.utime(path, (10_000.0 - age, 10_000.0 - age))
    assert s3.clean(older_than_seconds=500.0, now=10_000.0) == 1
    assert [path.name for path in s3_settings.temporary_dir.iterdir()] == ["fresh"]
