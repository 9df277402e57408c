"""Group commit in a local folder, with real processes that are killed or whose syncs fail."""

import errno
import hashlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from app.core.storage import syncing
from app.core.storage.keys import blob_key
from app.core.storage.local import LocalStorage
from app.core.storage.syncing import GroupSync

_FILES = 200
_KILLED = -signal.SIGKILL
# Prints a line after the flush, as an ingest commits its rows after it.
_PROGRAM = """
import sys
from pathlib import Path
from app.core.storage.local import LocalStorage
from tests.core.storage.test_local_batch import contents

batch = LocalStorage(Path(sys.argv[1])).batch()
for key, data in contents().items():
    batch.write(key, data)
batch.flush()
print("committed")
"""


def contents() -> dict[str, bytes]:
    files = [f"{number}".encode() * 500 for number in range(_FILES)]
    return {blob_key(hashlib.sha256(data).hexdigest()): data for data in files}


@pytest.fixture
def faults(tmp_path: Path) -> Path:
    """Builds a library that makes syncs and renames fail in a process that preloads it."""
    compiler = shutil.which("cc")
    if compiler is None or GroupSync.of(tmp_path) is None:
        pytest.skip("needs a C compiler and a file system that is synced as a whole")
    library = tmp_path / "sync_faults.so"
    source = Path(__file__).with_name("sync_faults.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
    return library


def _flush(root: Path, library: Path, **fault: int) -> subprocess.CompletedProcess[str]:
    environment = {name: str(value) for name, value in fault.items()}
    return subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(root)],
        env=os.environ | environment | {"LD_PRELOAD": str(library)},
        capture_output=True,
        text=True,
        check=False,
    )


def _stored(storage: LocalStorage) -> int:
    """The number of keys with files; each file must be whole (`read` compares its hash)."""
    wanted = contents()
    keys = [file.key for file in storage.list("sha256")]
    assert all(storage.read(key) == wanted[key] for key in keys)
    return len(keys)


@pytest.mark.parametrize(
    ("fault", "stored"),
    [
        ({"KILL_AT_SYNC": 1}, 0),
        ({"KILL_AT_RENAME": 1}, 0),
        ({"KILL_AT_RENAME": _FILES // 2}, _FILES // 2 - 1),
        ({"KILL_AT_SYNC": 2}, _FILES),
    ],
    ids=["before the bytes", "before the names", "between two names", "before the last sync"],
)
def test_a_kill_between_the_steps_leaves_whole_files_or_none(
    tmp_path: Path, faults: Path, fault: dict[str, int], stored: int
) -> None:
    storage = LocalStorage(tmp_path / "blobs")
    ran = _flush(storage.root, faults, **fault)
    assert (ran.returncode, ran.stdout) == (_KILLED, "")
    assert _stored(storage) == stored
    ran = _flush(storage.root, faults)  # the job runs again
    assert (ran.returncode, ran.stdout) == (0, "committed\n")
    assert _stored(storage) == _FILES


@pytest.mark.parametrize(
    ("number", "error"),
    [(errno.EIO, "Input/output error"), (errno.ENOSPC, "StorageFull")],
    ids=["damaged disk", "full disk"],
)
@pytest.mark.parametrize(("sync", "stored"), [(1, 0), (2, _FILES)], ids=["bytes", "names"])
def test_an_error_of_a_sync_is_raised_before_the_commit(
    tmp_path: Path, faults: Path, number: int, error: str, sync: int, stored: int
) -> None:
    storage = LocalStorage(tmp_path / "blobs")
    ran = _flush(storage.root, faults, FAIL_AT_SYNC=sync, FAIL_WITH=number)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert error in ran.stderr
    assert _stored(storage) == stored
    assert list((storage.root / "tmp").iterdir()) == []


def test_two_files_of_one_key_leave_the_last(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    batch = storage.batch()
    batch.write("key", b"first")
    batch.write("key", b"last")
    assert len(list((tmp_path / "tmp").iterdir())) == 1
    batch.flush()
    assert storage.read("key") == b"last"
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.parametrize("files", [3, _FILES], ids=["one by one", "together"])
def test_a_batch_of_any_size_is_stored(tmp_path: Path, files: int) -> None:
    storage = LocalStorage(tmp_path)
    batch = storage.batch()
    for number in range(files):
        batch.write(f"folder{number % 7}/{number}", bytes([number]))
    batch.flush()
    found = [storage.read(f"folder{number % 7}/{number}") for number in range(files)]
    assert found == [bytes([number]) for number in range(files)]


def test_a_missing_file_system_type_is_synced_one_by_one() -> None:
    assert GroupSync.of(Path("/proc")) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [("_REPORTS_ERRORS", (99, 0)), ("_WAITS", {})],
    ids=["an old kernel", "another file system"],
)
def test_elsewhere_files_are_synced_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: object
) -> None:
    monkeypatch.setattr(syncing, name, value)
    assert GroupSync.of(tmp_path) is None
    test_a_batch_of_any_size_is_stored(tmp_path, _FILES)
