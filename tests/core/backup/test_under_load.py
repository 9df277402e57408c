"""A backup that is created during writes is a consistent snapshot."""

import threading
from pathlib import Path

import pytest
from sqlalchemy import func, select

from app.core.backup.create import create_backup
from app.core.backup.restore import restore_backup
from app.core.platform.tables import Clustering, Dataset, Image
from app.core.runtime import Runtime
from tests.core.backup.instances import MakeInstance, fill
from tests.waiting import join, wait_until


class _Writer:
    """Ingests, clusters and deletes until it is stopped."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.stopping = threading.Event()
        self.rounds = 0
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._run)

    def __enter__(self) -> "_Writer":
        self.service = fill(self.runtime)
        self.service.end_all_jobs()
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        join(self.thread)

    def _run(self) -> None:
        try:
            while not self.stopping.is_set():
                self._work()
        except Exception as error:  # noqa: BLE001 - raised by the test, not in the thread
            self.error = error

    def _work(self) -> None:
        number = self.rounds
        self.service.store_bytes(number, number)
        self.service.write_rows()
        self.service.start_job(number)
        self.service.end_job(0, succeeded=number % 3 > 0)
        if number % 4 == 3:
            self.service.delete_dataset(number)
        self.rounds += 1


@pytest.mark.parametrize(("source", "target"), [("sqlite", "sqlite"), ("postgresql", "sqlite")])
def test_a_backup_under_load_is_one_snapshot(
    make_instance: MakeInstance, tmp_path: Path, source: str, target: str
) -> None:
    full = make_instance("full", source)
    with _Writer(full) as writer:
        for number in range(3):
            before = writer.rounds
            made = create_backup(full.db, full.storage, tmp_path / f"{number}.tar")
            assert made.missing == []
            wait_until(lambda enough=before + 3: writer.rounds >= enough or writer.error)  # type: ignore[misc]
    assert writer.error is None
    for number in range(3):
        empty = make_instance(f"empty{number}", target)
        restore_backup(empty.db, empty.storage, tmp_path / f"{number}.tar")
        _check_whole(empty)


def _check_whole(runtime: Runtime) -> None:
    """Rows of one transaction are complete, and every row has its files."""
    with runtime.db.read() as session:
        for dataset in session.scalars(select(Dataset)):
            images = select(func.count()).where(Image.dataset_id == dataset.id)
            assert session.scalar(images) == dataset.image_count
        hashes = set(session.scalars(select(Image.sha256)))
        folders = set(session.scalars(select(Clustering.embedding_folder)))
    stored = {file.key for kind in ("sha256", "embeddings") for file in runtime.storage.list(kind)}
    assert {f"sha256/{sha256[:2]}/{sha256}" for sha256 in hashes} <= stored
    assert {f"{folder}/features.npy" for folder in folders} <= stored
