"""In any order of ingests, jobs, deletions and collections, no file that a row needs is deleted.

Time passes by making every file older. No ingest takes longer than the minimum age of garbage. One
long walk finds more errors than many short ones: they need old files that lose their owner and get
a new one.
"""

import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from app.core.platform.settings import Settings
from app.core.runtime import Runtime
from app.core.storage.deletion.collector import parts
from tests.core.storage.deletion.small_service import PICTURES, SmallService

_A_DAY = 25 * 3600.0
_KINDS = ("sha256", "embeddings", "jobs", "models", "exports")


class Walk:
    def __init__(self, runtime: Runtime, seed: int) -> None:
        self.runtime = runtime
        self.service = SmallService(runtime)
        self.random = random.Random(seed)
        hashes = {sha256[:2] for sha256 in PICTURES}
        self.parts = [
            part for part in parts() if part[0].name != "sha256" or part[1][-2:] in hashes
        ]
        self.steps: list[tuple[Callable[[], None], int]] = [
            (lambda: self.service.store_bytes(self.pick(), self.pick()), 6),
            (self.service.write_rows, 4),
            (self.service.waiting.clear, 1),  # an ingest dies
            (lambda: self.service.delete_image(self.pick(), self.pick()), 5),
            (lambda: self.service.delete_dataset(self.pick()), 1),
            (lambda: self.service.start_job(self.pick()), 2),
            (lambda: self.service.embed(self.pick()), 2),
            (lambda: self.service.end_job(self.pick(), succeeded=self.pick() > 0), 4),
            (lambda: self.service.delete_job(self.pick()), 1),
            (lambda: self.service.delete_version(self.pick()), 1),
            (lambda: self.service.delete_clustering(self.pick()), 1),
            (self.a_day_passes, 4),
            (self.collect, 6),
            (self.delete_scheduled, 1),
        ]

    def pick(self) -> int:
        return self.random.randrange(4)

    def go(self, count: int) -> None:
        steps, weights = zip(*self.steps, strict=True)
        for step in self.random.choices(steps, weights, k=count):
            step()
            missing = self.service.used() - self.stored()
            assert not missing, missing

    def finish(self) -> None:
        """Once all jobs have ended, exactly the used files are left."""
        self.service.waiting.clear()
        self.service.end_all_jobs()
        self.a_day_passes()
        self.collect()
        assert self.stored() == self.service.used() | self.service.kept_by_jobs()

    def collect(self) -> None:
        for kind, folder in self.parts:
            list(self.runtime.collector.collect_part(kind, folder))

    def delete_scheduled(self) -> None:
        self.runtime.collector.delete_scheduled_blobs()

    def a_day_passes(self) -> None:
        self.service.write_rows()  # a living ingest commits within seconds
        for path in self.runtime.settings.blob_dir.rglob("*"):
            if path.is_file():
                then = path.stat().st_mtime - _A_DAY
                os.utime(path, (then, then))

    def stored(self) -> set[str]:
        return {file.key for kind in _KINDS for file in self.runtime.storage.list(kind)}


@pytest.fixture
def memory_runtime(sqlite_template: Path) -> Iterator[Runtime]:
    """In memory where possible: each step commits, and a disk would have to sync."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        shutil.copy(sqlite_template, Path(folder) / "temi.db")
        runtime = Runtime(Settings(_env_file=None, data_dir=Path(folder)))
        yield runtime
        runtime.db.dispose()


def test_any_order_on_sqlite(memory_runtime: Runtime) -> None:
    for seed in range(2):
        walk = Walk(memory_runtime, seed)
        walk.go(250)
        walk.finish()


@pytest.mark.parametrize("any_settings", ["postgresql"], indirect=True)
def test_any_order_on_postgresql(any_runtime: Runtime) -> None:
    walk = Walk(any_runtime, seed=9)
    walk.go(200)
    walk.finish()
