"""What every storage does: a key holds a whole file or nothing at any time."""

import hashlib
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.lib.format import open_memmap

from app.core.platform.errors import StorageCorrupt
from app.core.platform.settings import Settings
from app.core.storage import Storage
from app.core.storage.keys import blob_key


def _temporary_files(settings: Settings) -> list[Path]:
    return list(settings.temporary_dir.iterdir())


def _keys(storage: Storage, folder: str) -> list[str]:
    return sorted(file.key for file in storage.list(folder))


def test_a_written_file_is_read(storage: Storage, any_storage_settings: Settings) -> None:
    assert not storage.exists("a/b")
    storage.write("a/b", b"data")
    assert storage.exists("a/b")
    assert storage.read("a/b") == b"data"
    assert storage.path("a/b").read_bytes() == b"data"
    storage.write("a/b", b"others")
    assert storage.read("a/b") == b"others"
    assert storage.path("a/b").read_bytes() == b"others"
    assert storage.size("a/b") == 6
    assert _temporary_files(any_storage_settings) == []


@pytest.mark.parametrize("data", [b"", b"x", bytes(range(256)) * 50_000])  # one in parts
def test_files_of_any_size(storage: Storage, data: bytes) -> None:
    with storage.writing("one/file") as file:
        file.write(data)
    storage.write("two", data)
    for key in ("one/file", "two"):
        assert storage.read(key) == data
        assert storage.path(key).read_bytes() == data
        assert storage.size(key) == len(data)


@pytest.mark.parametrize("name", ["a b.zip", "ä-猫.csv", "100%.txt", "a+b&c=d#1?.json", "q'.csv"])
def test_names_with_any_letters(storage: Storage, name: str) -> None:
    storage.write(f"exports/job/{name}", b"x")
    assert storage.read(f"exports/job/{name}") == b"x"
    assert _keys(storage, "exports/job") == [f"exports/job/{name}"]
    storage.delete_folder("exports/job")
    assert not storage.exists(f"exports/job/{name}")


def test_a_key_is_empty_until_the_block_ends(storage: Storage) -> None:
    with storage.writing("key") as file:
        file.write(b"half")
        file.flush()
        assert not storage.exists("key")
    assert storage.read("key") == b"half"


def test_a_file_can_be_mapped_while_it_is_written(storage: Storage) -> None:
    with storage.writing("array.npy") as file:
        array = open_memmap(file.name, mode="w+", dtype=np.float32, shape=(5, 2))
        array[:] = np.arange(10).reshape(5, 2)
        array.flush()
    found = np.load(storage.path("array.npy"), mmap_mode="r")
    assert found.tolist() == np.arange(10).reshape(5, 2).tolist()


def test_a_failing_block_leaves_nothing(storage: Storage, any_storage_settings: Settings) -> None:
    storage.write("key", b"old")

    def fail() -> None:
        with storage.writing("key") as file:
            file.write(b"new")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail()
    assert storage.read("key") == b"old"
    assert _temporary_files(any_storage_settings) == []


def test_without_replace_the_first_writer_wins(storage: Storage) -> None:
    def write(number: int) -> None:
        with storage.writing("listing", replace=False) as file:
            file.write(bytes([number]) * 100)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    first = storage.read("listing")
    assert first in [bytes([number]) * 100 for number in range(8)]
    write(9)
    assert storage.read("listing") == first
    assert storage.path("listing").read_bytes() == first


def test_a_finished_file_is_moved_in(storage: Storage, tmp_path: Path) -> None:
    for number in range(2):
        path = tmp_path / "finished"
        path.write_bytes(b"finished" * number)
        storage.move_in("uploads/up_1", path)
        assert not path.exists()
        assert storage.path("uploads/up_1").read_bytes() == b"finished" * number


def test_missing_keys(storage: Storage) -> None:
    for use in (storage.read, storage.path, storage.size):
        with pytest.raises(FileNotFoundError):
            use("none/here")
    assert storage.stat("none/here") is None
    assert list(storage.list("none")) == []
    storage.delete("none/here")
    storage.delete_folder("none")
    assert storage.delete_unless_young("none/here", time.time())


def test_a_folder_is_not_a_file(storage: Storage) -> None:
    storage.write("folder/file", b"x")
    with pytest.raises(FileNotFoundError):
        storage.path("folder")
    assert not storage.exists("folder")


def test_a_folder_is_listed_and_deleted_with_all_it_holds(storage: Storage) -> None:
    for key in ("jobs/a/x", "jobs/a/deep/y", "jobs/ab/z"):
        storage.write(key, key.encode())
    assert _keys(storage, "jobs") == ["jobs/a/deep/y", "jobs/a/x", "jobs/ab/z"]
    assert _keys(storage, "jobs/a") == ["jobs/a/deep/y", "jobs/a/x"]
    assert {file.key: file.bytes for file in storage.list("jobs/ab")} == {"jobs/ab/z": 9}
    storage.delete_folder("jobs/a")
    storage.delete_folder("jobs/a")
    assert _keys(storage, "jobs") == ["jobs/ab/z"]


def test_more_files_than_fit_a_page(storage: Storage) -> None:
    batch = storage.batch()
    keys = [f"many/{number % 7}/{number:04d}" for number in range(1100)]
    for key in keys:
        batch.write(key, key.encode())
    batch.flush()
    assert _keys(storage, "many") == sorted(keys)
    assert [storage.read(key).decode() for key in keys[::100]] == keys[::100]
    batch.flush()  # nothing is pending
    storage.delete_folder("many")
    assert _keys(storage, "many") == []


@pytest.mark.parametrize("key", ["../outside", "a/../../outside", "/etc/passwd"])
def test_a_key_that_leaves_the_storage_is_refused(storage: Storage, key: str) -> None:
    uses = (storage.path, storage.read, storage.exists, storage.stat, storage.delete)
    for use in (*uses, storage.delete_folder, lambda key: storage.write(key, b"x")):
        with pytest.raises(ValueError, match="leaves the storage folder"):
            use(key)
    with pytest.raises(ValueError, match="leaves the storage folder"):
        list(storage.list(key))


def test_only_old_files_are_deleted(storage: Storage) -> None:
    storage.write("file", b"x")
    found = storage.stat("file")
    assert found is not None
    assert abs(found.modified - time.time()) < 60
    assert not storage.delete_unless_young("file", time.time() - 100)
    assert storage.exists("file")
    assert storage.delete_unless_young("file", time.time() + 100)
    assert not storage.exists("file")


def test_bytes_that_do_not_match_their_hash_are_not_returned(storage: Storage) -> None:
    sha256 = hashlib.sha256(b"good").hexdigest()
    storage.write(blob_key(sha256), b"good")
    assert storage.read(blob_key(sha256)) == b"good"
    storage.write(blob_key(sha256), b"evil")
    with pytest.raises(StorageCorrupt, match=sha256):
        storage.read(blob_key(sha256))


def test_other_errors_are_passed_on(storage: Storage) -> None:
    with pytest.raises(PermissionError), storage.writing("key"):
        raise PermissionError(13, "not allowed")
    assert not storage.exists("key")
