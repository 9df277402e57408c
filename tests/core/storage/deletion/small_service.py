"""A service without workers: writes files and rows in the same order as the real one."""

import hashlib
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.clusterings.deletion import delete_clustering
from app.core.datasets.changes import delete_dataset, delete_images
from app.core.datasets.embeddings import add_embedding
from app.core.datasets.rows import create_dataset, fingerprint, get_dataset
from app.core.jobs.finished import delete_job
from app.core.jobs.lifecycle import create_job
from app.core.models import deletion, registry
from app.core.platform.ids import new_id
from app.core.platform.tables import (
    OPEN,
    Clustering,
    Dataset,
    Embedding,
    Export,
    Image,
    Job,
    ModelVersion,
)
from app.core.runtime import Runtime
from app.core.storage import store_blob
from app.core.storage.deletion.retention import delete_unless_retained
from app.core.storage.keys import blob_key, export_key

TENANT = "t"
_DATA = [f"picture {number}".encode() for number in range(3)]
PICTURES = {hashlib.sha256(data).hexdigest(): data for data in _DATA}
_FILES = {"model.safetensors": hashlib.sha256(b"m").hexdigest()}


class Waiting(NamedTuple):
    dataset: int
    sha256: str


class SmallService:
    """A step whose object does not exist any more does nothing."""

    def __init__(self, runtime: Runtime, datasets: int = 2) -> None:
        self.runtime = runtime
        self.waiting: list[Waiting] = []  # bytes whose rows are not written yet
        with runtime.db.write() as session:
            made = [create_dataset(session, tenant=TENANT, name="d") for _ in range(datasets)]
            for dataset in made:
                dataset.status = "ready"
            self.datasets = [dataset.id for dataset in made]

    def store_bytes(self, dataset: int, picture: int) -> None:
        sha256, data = list(PICTURES.items())[picture % len(PICTURES)]
        store_blob(self.runtime.storage, sha256, data)
        self.waiting.append(Waiting(dataset % len(self.datasets), sha256))

    def write_rows(self) -> None:
        for waiting in self.waiting:
            with self.runtime.db.write() as session:
                dataset = session.get(Dataset, self.datasets[waiting.dataset])
                if dataset is not None and not self._is_used(dataset.id):
                    self._add_image(session, dataset, waiting.sha256)
                    session.flush()
                    dataset.fingerprint = fingerprint(session, dataset.id)
        self.waiting.clear()

    def delete_image(self, dataset: int, image: int) -> None:
        dataset_id = self.datasets[dataset % len(self.datasets)]
        if self._is_used(dataset_id):
            return
        with self.runtime.db.write() as session:
            ids = session.scalars(select(Image.id).where(Image.dataset_id == dataset_id)).all()
            if ids:
                row = get_dataset(session, TENANT, dataset_id, lock=True)
                delete_images(session, row, [ids[image % len(ids)]])

    def delete_dataset(self, number: int) -> None:
        index = number % len(self.datasets)
        dataset_id = self.datasets[index]
        if self._is_used(dataset_id):
            return
        with self.runtime.db.write() as session:
            leftovers = delete_dataset(session, get_dataset(session, TENANT, dataset_id, lock=True))
            fresh = create_dataset(session, tenant=TENANT, name="d")
            fresh.status = "ready"
            self.datasets[index] = fresh.id
        delete_unless_retained(self.runtime.db, self.runtime.storage, leftovers)

    def start_job(self, number: int) -> None:
        with self.runtime.db.write() as session:
            dataset_id = self.datasets[number % len(self.datasets)]
            dataset = get_dataset(session, TENANT, dataset_id, lock=True)
            create_job(session, tenant=TENANT, kind="cluster", dataset=dataset, config={})

    def embed(self, number: int) -> None:
        """Like the stage: the row first, then the files unless they exist."""
        job = self.job(number, *OPEN)
        if job is None:
            return
        folder = self.folder(job)
        with self.runtime.db.write() as session:
            add_embedding(
                session,
                dataset_id=job.dataset_id,
                backbone_key="tiny",
                fingerprint=job.dataset_fingerprint or "",
                folder=folder,
                rows=1,
            )
        if not self.runtime.storage.exists(f"{folder}/features.npy"):
            self.runtime.storage.write(f"{folder}/features.npy", b"features")
        self.runtime.storage.write(f"jobs/{job.id}/checkpoint", b"c")

    def end_job(self, number: int, succeeded: bool) -> None:
        job = self.job(number, *OPEN)
        if job is None:
            return
        self.embed(number)
        self.runtime.storage.write(f"models/{job.id}/model.safetensors", b"m")
        self.runtime.storage.write(export_key(job.id, "a.csv"), b"e")
        with self.runtime.db.write() as session:
            session.get_one(Job, job.id).status = "succeeded" if succeeded else "failed"
            if succeeded:
                self._register(session, job)

    def end_all_jobs(self) -> None:
        with self.runtime.db.write() as session:
            for job in session.scalars(select(Job).where(Job.status.in_(OPEN))):
                job.status = "cancelled"

    def delete_job(self, number: int) -> None:
        job = self.job(number, "succeeded", "failed", "cancelled")
        if job is not None:
            with self.runtime.db.write() as session:
                leftovers = delete_job(session, TENANT, job.id)
            delete_unless_retained(self.runtime.db, self.runtime.storage, leftovers)

    def delete_version(self, number: int) -> None:
        with self.runtime.db.read() as session:
            versions = session.scalars(select(ModelVersion.version)).all()
        if versions:
            with self.runtime.db.write() as session:
                chosen = versions[number % len(versions)]
                folders = deletion.delete_version(session, TENANT, "m", chosen)
            delete_unless_retained(self.runtime.db, self.runtime.storage, folders)

    def delete_clustering(self, number: int) -> None:
        with self.runtime.db.read() as session:
            ids = session.scalars(select(Clustering.id)).all()
        if ids:
            with self.runtime.db.write() as session:
                files = delete_clustering(session, TENANT, ids[number % len(ids)])
            delete_unless_retained(self.runtime.db, self.runtime.storage, files)

    def used(self) -> set[str]:
        """Keys that rows refer to and that were written before those rows."""
        with self.runtime.db.read() as session:
            hashes = session.scalars(select(Image.sha256))
            folders = session.scalars(select(Clustering.embedding_folder))
            models = session.scalars(select(ModelVersion.folder))
            return {
                *(blob_key(sha256) for sha256 in hashes),
                *(f"{folder}/features.npy" for folder in folders),
                *(f"{folder}/model.safetensors" for folder in models),
                *session.scalars(select(Export.storage_key)),
            }

    def kept_by_jobs(self) -> set[str]:
        """What may stay at the end: files of jobs, and features that are not superseded."""
        storage = self.runtime.storage
        with self.runtime.db.read() as session:
            jobs = {f"jobs/{job_id}/checkpoint" for job_id in session.scalars(select(Job.id))}
            features = {
                f"{row.folder}/features.npy"
                for row in session.scalars(select(Embedding))
                if not self._is_superseded(row)
            }
        return {key for key in jobs | features if storage.exists(key)}

    def _is_superseded(self, row: Embedding) -> bool:
        with self.runtime.db.read() as session:
            now = session.get_one(Dataset, row.dataset_id).fingerprint
            today = session.get(Embedding, (row.dataset_id, row.backbone_key, now))
        return now != row.fingerprint and today is not None

    def _is_used(self, dataset_id: str) -> bool:
        with self.runtime.db.read() as session:
            query = select(Job.id).where(Job.dataset_id == dataset_id, Job.status.in_(OPEN))
            return session.scalar(query.limit(1)) is not None

    def job(self, number: int, *status: str) -> Job | None:
        with self.runtime.db.read() as session:
            jobs = session.scalars(select(Job).where(Job.status.in_(status)).order_by(Job.id)).all()
        return jobs[number % len(jobs)] if jobs else None

    def folder(self, job: Job) -> str:
        return "embeddings/" + hashlib.sha256(str(job.dataset_fingerprint).encode()).hexdigest()[:8]

    def _add_image(self, session: Session, dataset: Dataset, sha256: str) -> None:
        image = Image(
            id=new_id("img"), dataset_id=dataset.id, position=dataset.end_position, name="x",
            sha256=sha256, width=1, height=1, format="PNG", bytes=1,
        )  # fmt: skip
        dataset.end_position += 1
        dataset.image_count += 1
        session.add(image)

    def _register(self, session: Session, job: Job) -> None:
        clustering = Clustering(
            id=new_id("cl"), tenant=TENANT, job_id=job.id, dataset_id=job.dataset_id,
            embedding_folder=self.folder(job), model_name="m", model_version=1, n_clusters=1,
            image_count=0, metrics={},
        )  # fmt: skip
        session.add(clustering)
        session.flush()
        registry.add_version(
            session, tenant=TENANT, name="m", job_id=job.id, clustering_id=clustering.id,
            folder=f"models/{job.id}", manifest={}, files=_FILES,
        )  # fmt: skip
        session.add(
            Export(
                id=new_id("exp"),
                tenant=TENANT,
                job_id=job.id,
                clustering_id=clustering.id,
                revision=1,
                format="csv",
                storage_key=export_key(job.id, "a.csv"),
                filename="a.csv",
                media_type="text/csv",
                image_count=0,
                bytes=1,
                sha256="00",
            )
        )  # fmt: skip
