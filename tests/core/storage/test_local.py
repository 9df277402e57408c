"""A local folder: full disks and temporary files. test_contract has what all storages do."""

import os
from pathlib import Path

import pytest

from app.core.platform.errors import StorageFull
from app.core.storage.keys import blob_key
from app.core.storage.local import LocalStorage

_FULL_DEVICE = Path("/dev/full")  # every write to it fails like on a full disk


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path / "blobs")


def _temporary_files(storage: LocalStorage) -> list[Path]:
    return list((storage.root / "tmp").iterdir())


@pytest.mark.parametrize("key", ["../outside", "a/../../outside", "/etc/passwd"])
def test_a_key_that_leaves_the_folder_is_refused(storage: LocalStorage, key: str) -> None:
    for use in (storage.path, storage.read, storage.exists, storage.delete):
        with pytest.raises(ValueError, match="leaves the storage folder"):
            use(key)
    with pytest.raises(ValueError, match="leaves the storage folder"):
        storage.write(key, b"x")
    assert _temporary_files(storage) == []


def test_a_link_out_of_the_folder_is_refused(storage: LocalStorage, tmp_path: Path) -> None:
    (storage.root / "link").symlink_to(tmp_path)
    with pytest.raises(ValueError, match="leaves the storage folder"):
        storage.write("link/file", b"x")


@pytest.mark.parametrize("key", ["", ".", "tmp", "a/..", "../outside", "/etc"])
def test_a_folder_outside_the_keys_is_not_deleted(storage: LocalStorage, key: str) -> None:
    storage.write("kept", b"x")
    with pytest.raises(ValueError, match="folder"):
        storage.delete_folder(key)
    assert storage.exists("kept")


def test_a_full_disk_raises_storage_full(storage: LocalStorage) -> None:
    storage.write("old", b"old")
    full = _FULL_DEVICE.open("wb", buffering=0)
    with pytest.raises(StorageFull, match="full"), full, storage.writing("new"):
        full.write(b"x")
    assert not storage.exists("new")
    assert storage.read("old") == b"old"
    assert _temporary_files(storage) == []


def test_a_really_full_disk_keeps_old_data(small_disk: Path) -> None:
    storage = LocalStorage(small_disk)
    storage.write("old", b"o" * 600_000)
    for _ in range(3):
        with pytest.raises(StorageFull):
            storage.write("new", b"n" * 600_000)
    assert not storage.exists("new")
    assert storage.read("old") == b"o" * 600_000
    assert _temporary_files(storage) == []
    storage.delete("old")
    storage.write("new", b"n" * 600_000)
    assert storage.read("new") == b"n" * 600_000


def test_clean_deletes_only_old_files(storage: LocalStorage) -> None:
    for name, age in (("stale", 1000.0), ("fresh", 1.0)):
        path = storage.root / "tmp" / name
        path.write_bytes(b"x")
        os.utime(path, (10_000.0 - age, 10_000.0 - age))
    assert storage.clean(older_than_seconds=500.0, now=10_000.0) == 1
    assert [path.name for path in _temporary_files(storage)] == ["fresh"]


def test_blobs_are_spread_over_folders() -> None:
    assert blob_key("abcd") == "sha256/ab/abcd"


def test_a_batch_is_stored_when_it_is_flushed(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    batch = storage.batch()
    for number in range(20):
        batch.write(f"folder{number % 3}/{number}", bytes([number]))
    assert not any(storage.exists(f"folder{number % 3}/{number}") for number in range(20))
    batch.flush()
    assert [storage.read(f"folder{n % 3}/{n}") for n in range(20)] == [
        bytes([n]) for n in range(20)
    ]
    assert list((tmp_path / "tmp").iterdir()) == []
    batch.flush()  # nothing is pending


def test_no_key_holds_a_file_of_a_batch_that_could_not_be_synced(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    batch = storage.batch()
    for number in range(20):
        batch.write(f"{number}", bytes([number]))
    _temporary_files(storage)[0].unlink()
    with pytest.raises(FileNotFoundError):
        batch.flush()
    assert not any(storage.exists(f"{number}") for number in range(20))


def test_a_batch_on_a_full_disk_raises_storage_full(small_disk: Path) -> None:
    batch = LocalStorage(small_disk).batch()

    def fill() -> None:
        for number in range(64):
            batch.write(f"{number}", b"x" * 65_536)

    with pytest.raises(StorageFull):
        fill()


def test_a_batch_on_a_full_disk_leaves_no_files(small_disk: Path) -> None:
    batch = LocalStorage(small_disk).batch()
    batch.write("a", bytes(600_000))
    with pytest.raises(StorageFull):
        batch.write("b", bytes(600_000))
    assert [path for path in small_disk.rglob("*") if path.is_file()] == []
