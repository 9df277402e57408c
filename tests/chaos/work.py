"""Jobs for the chaos tests, and their expected results."""

import hashlib
import json
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import func, select

from app.core.platform.tables import OPEN, Assignment, Clustering, Dataset, Image, Job, ModelVersion
from app.core.runtime import Runtime
from app.core.storage.keys import blob_key
from temi_client import TemiClient
from tests.chaos.site import Site
from tests.images import jpeg_bytes, zip_of
from tests.waiting import join, wait_until

KINDS = 2
ALL_JOBS_SECONDS = 1200.0  # an upper limit: a hundred disturbed jobs on a busy machine
_AHEAD = 4  # jobs that wait while others run


def archive(kind: int, folder: Path) -> Path:
    """Returns tiny images; the last kind has so many that a kill interrupts its ingest."""
    path = folder / f"kind-{kind}.zip"
    if not path.exists():
        count = 1_000 if kind == KINDS - 1 else 24 + kind
        pictures = [jpeg_bytes((40 * kind, 8 * n, 31 * n % 256)) for n in range(32)]
        files = {f"{n:04d}.jpg": pictures[n % 32] + n.to_bytes(4) for n in range(count)}
        path.write_bytes(zip_of(files | {"not-a-picture.jpg": b"text"}))
    return path


@dataclass
class Uploads:
    """Uploads datasets in a thread, one after the other."""

    site: Site
    folder: Path
    kinds: Iterable[int]
    least: int
    jobs: dict[str, int] = field(default_factory=dict)  # id -> kind
    _enough: threading.Event = field(default_factory=threading.Event)
    _given_up: threading.Event = field(default_factory=threading.Event)
    _error: BaseException | None = None

    def __enter__(self) -> "Uploads":
        self._thread = threading.Thread(target=self._run, name="uploads")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._given_up.set()
        join(self._thread)

    def finish(self) -> None:
        """Stops after at least `least` jobs; returns when all jobs have ended."""
        self._enough.set()
        self._thread.join()
        if self._error is not None:
            raise self._error
        wait_for_all_jobs(self.site)

    def count_ended(self) -> int:
        return max(0, len(self.jobs) - count_open(self.site.runtime))

    def _run(self) -> None:
        try:
            with self.site.client() as client:
                for kind in self.kinds:
                    if self._enough.is_set() and len(self.jobs) >= self.least:
                        return
                    wait_until(self._may_go_on, "there is room for one more job", ALL_JOBS_SECONDS)
                    if self._given_up.is_set():
                        return
                    self.jobs[upload(client, kind, self.folder)] = kind
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            self._error = error

    def _may_go_on(self) -> bool:
        room = count_open(self.site.runtime, patient=True) < _AHEAD
        return room or self._given_up.is_set()


def upload(client: TemiClient, kind: int, folder: Path) -> str:
    return client.upload_dataset(archive(kind, folder), name=f"kind {kind}").id


def cluster(client: TemiClient, dataset_id: str, model: str, *, steps: int) -> str:
    """The same dataset and the same steps give the same bits."""
    job = client.cluster(dataset_id, 3, model_name=model, steps=steps, n_heads=2, seed=1)
    return job.id


def count_open(runtime: Runtime, *, patient: bool = False) -> int:
    """With `patient`, also waits while the database is unavailable."""
    query = select(func.count()).select_from(Job).where(Job.status.in_(OPEN))
    try:
        with runtime.db.read() as session:
            return session.scalar(query) or 0
    except Exception:
        if not patient:
            raise
        return _AHEAD


def wait_for_all_jobs(site: Site) -> None:
    wait_until(lambda: count_open(site.runtime) == 0, "all jobs have ended", ALL_JOBS_SECONDS)


def job_row(runtime: Runtime, job_id: str) -> Job:
    with runtime.db.read() as session:
        return session.get_one(Job, job_id)


def dataset_bits(runtime: Runtime, dataset_id: str) -> str:
    """Returns a hash of all rows of an ingest except ids and times."""
    columns = (Image.position, Image.name, Image.sha256, Image.width, Image.height, Image.bytes)
    with runtime.db.read() as session:
        dataset = session.get_one(Dataset, dataset_id)
        images = session.execute(
            select(*columns).where(Image.dataset_id == dataset_id).order_by(Image.position)
        )
        rows = [list(row) for row in images]
    facts = [dataset.status, dataset.image_count, dataset.issue_count, dataset.end_position]
    assert all(runtime.storage.exists(blob_key(str(row[2]))) for row in rows[:50])
    return _hash([facts, rows])


def clustering_bits(runtime: Runtime, job_id: str) -> str:
    """Returns a hash of the model's files and of every assignment."""
    with runtime.db.read() as session:
        version = session.scalars(select(ModelVersion).where(ModelVersion.job_id == job_id)).one()
        clustering = session.scalars(select(Clustering).where(Clustering.job_id == job_id)).one()
        rows = session.execute(
            select(Assignment.cluster_id, Assignment.probability, Assignment.margin)
            .join(Image, Image.id == Assignment.image_id)
            .where(Assignment.clustering_id == clustering.id)
            .order_by(Image.position)
        )
        assignments = [list(row) for row in rows]
    for name, sha256 in version.files.items():
        data = runtime.storage.read(f"{version.folder}/{name}")
        assert hashlib.sha256(data).hexdigest() == sha256
    return _hash([version.files, assignments])


@dataclass(frozen=True)
class Tally:
    lost: list[str]
    duplicated: int
    different: list[str]

    @property
    def clean(self) -> bool:
        return not self.lost and not self.duplicated and not self.different

    def __str__(self) -> str:
        return (
            f"{len(self.lost)} lost, {self.duplicated} duplicated, {len(self.different)} different"
        )


def tally(runtime: Runtime, jobs: dict[str, int], bits: dict[int, str]) -> Tally:
    """Checks that each ingest job made one dataset, equal to an undisturbed one."""
    with runtime.db.read() as session:
        rows = list(session.scalars(select(Job).where(Job.kind == "ingest")))
        datasets = session.scalar(select(func.count()).select_from(Dataset)) or 0
    ours = {row.id: row for row in rows if row.id in jobs}
    lost = [i for i in jobs if i not in ours or ours[i].status != "succeeded"]
    different = [
        row.id
        for row in ours.values()
        if row.status == "succeeded" and dataset_bits(runtime, row.dataset_id) != bits[jobs[row.id]]
    ]
    return Tally(lost, abs(datasets - len(rows)) + abs(len(rows) - len(jobs)), different)


def undisturbed(
    site: Site, folder: Path, kinds: Iterable[int]
) -> tuple[dict[str, int], dict[int, str]]:
    """Returns the hash of an undisturbed job of each kind."""
    with site.client() as client:
        jobs = {upload(client, kind, folder): kind for kind in kinds}
    wait_for_all_jobs(site)
    bits = {
        kind: dataset_bits(site.runtime, job_row(site.runtime, job_id).dataset_id)
        for job_id, kind in jobs.items()
    }
    return jobs, bits


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()
