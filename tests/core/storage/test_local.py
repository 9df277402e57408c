"""A folder: full disks, and what is left aside. What every storage does is in test_contract."""

import os
from pathlib import Path

import pytest

from app.core.platform.errors import StorageFull
from app.core.storage import LocalStorage
from app.core.storage.keys import blob_key

_FULL_DEVICE = Path("/dev/full")  # every write to it fails like on a full disk


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path / "blobs")


def _aside(storage: LocalStorage) -> list[Path]:
    return list((storage.root / "tmp").iterdir())


@pytest.mark.parametrize("key", ["../outside", "a/../../outside", "/etc/passwd"])
def test_a_key_that_leaves_the_folder_is_refused(storage: LocalStorage, key: str) -> None:
    for use in (storage.path, storage.read, storage.exists, storage.delete):
        with pytest.raises(ValueError, match="leaves the storage folder"):
            use(key)
    with pytest.raises(ValueError, match="leaves the storage folder"):
        storage.write(key, b"x")
    assert _aside(storage) == []


def test_a_link_does_not_lead_out(storage: LocalStorage, tmp_path: Path) -> None:
    (storage.root / "link").symlink_to(tmp_path)
    with pytest.raises(ValueError, match="leaves the storage folder"):
        storage.write("link/file", b"x")


@pytest.mark.parametrize("key", ["", ".", "tmp", "a/..", "../outside", "/etc"])
def test_a_folder_that_is_not_a_keys_is_not_deleted(storage: LocalStorage, key: str) -> None:
    storage.write("kept", b"x")
    with pytest.raises(ValueError, match="folder"):
        storage.delete_folder(key)
    assert storage.exists("kept")


def test_no_space_left_is_said_so(storage: LocalStorage) -> None:
    storage.write("old", b"old")
    full = _FULL_DEVICE.open("wb", buffering=0)
    with pytest.raises(StorageFull, match="full"), full, storage.writing("new"):
        full.write(b"x")
    assert not storage.exists("new")
    assert storage.read("old") == b"old"
    assert _aside(storage) == []


def test_a_really_full_disk_keeps_old_data(small_disk: Path) -> None:
    storage = LocalStorage(small_disk)
    storage.write("old", b"o" * 600_000)
    for _ in range(3):
        with pytest.raises(StorageFull):
            storage.write("new", b"n" * 600_000)
    assert not storage.exists("new")
    assert storage.read("old") == b"o" * 600_000
    assert _aside(storage) == []
    storage.delete("old")
    storage.write("new", b"n" * 600_000)
    assert storage.read("new") == b"n" * 600_000


def test_clean_removes_only_what_is_old(storage: LocalStorage) -> None:
    for name, age in (("stale", 1000.0), ("fresh", 1.0)):
        path = storage.root / "tmp" / name
        path.write_bytes(b"x")
        os.utime(path, (10_000.0 - age, 10_000.0 - age))
    assert storage.clean(older_than_seconds=500.0, now=10_000.0) == 1
    assert [path.name for path in _aside(storage)] == ["fresh"]


def test_blobs_are_spread_over_folders() -> None:
    assert blob_key("abcd") == "sha256/ab/abcd"


def test_a_batch_appears_whole_when_it_is_kept(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    batch = storage.batch()
    for number in range(20):
        batch.write(f"folder{number % 3}/{number}", bytes([number]))
    assert not any(storage.exists(f"folder{number % 3}/{number}") for number in range(20))
    batch.keep()
    assert [storage.read(f"folder{n % 3}/{n}") for n in range(20)] == [
        bytes([n]) for n in range(20)
    ]
    assert list((tmp_path / "tmp").iterdir()) == []
    batch.keep()  # nothing waits: nothing happens


def test_a_batch_on_a_full_disk_says_so(small_disk: Path) -> None:
    batch = LocalStorage(small_disk).batch()

    def fill() -> None:
        for number in range(64):
            batch.write(f"{number}", b"x" * 65_536)

    with pytest.raises(StorageFull):
        fill()


def test_a_batch_that_finds_the_disk_full_leaves_nothing(small_disk: Path) -> None:
    batch = LocalStorage(small_disk).batch()
    batch.write("a", bytes(600_000))
    with pytest.raises(StorageFull):
        batch.write("b", bytes(600_000))
    assert [path for path in small_disk.rglob("*") if path.is_file()] == []
