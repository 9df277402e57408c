"""Every kind of file is collected if no row refers to it."""

from dataclasses import replace

from app.core.datasets.embeddings import add_embedding
from app.core.jobs.lifecycle import create_job
from app.core.models.deletion import delete_version
from app.core.models.versions import add_version
from app.core.platform.tables import Clustering, Dataset, Embedding, Job
from app.core.runtime import Runtime
from app.core.storage import store_blob
from app.core.storage.deletion.collector import parts
from app.core.storage.deletion.retention import delete_unless_retained, retain
from app.core.storage.keys import blob_key, model_folder, thumbnail_folder, thumbnail_key
from tests.core.clustering_rows import FOLDER, store
from tests.core.conftest import MakeDataset, MakeJob
from tests.core.storage.deletion.collecting import collected

USED, UNUSED = "aa" * 32, "bb" * 32


def _features(runtime: Runtime, dataset: Dataset, fingerprint: str, folder: str) -> None:
    with runtime.db.write() as session:
        add_embedding(
            session,
            dataset_id=dataset.id,
            backbone_key="tiny",
            fingerprint=fingerprint,
            folder=folder,
            rows=1,
        )
    for name in ("hashes.npy", "features.npy", "neighbors-5.json"):
        runtime.storage.write(f"{folder}/{name}", b"x")


def _change(runtime: Runtime, dataset: Dataset, fingerprint: str) -> None:
    with runtime.db.write() as session:
        session.get_one(Dataset, dataset.id).fingerprint = fingerprint


def test_unused_images_and_their_thumbnails_are_collected(
    any_runtime: Runtime, make_dataset: MakeDataset
) -> None:
    make_dataset([USED])
    for sha256 in (USED, UNUSED):
        store_blob(any_runtime.storage, sha256, b"x")
        any_runtime.storage.write(thumbnail_key("t", sha256, 64), b"y")
    assert collected(any_runtime) == {blob_key(UNUSED), thumbnail_folder(UNUSED)}
    assert collected(any_runtime) == set()


def test_files_of_deleted_jobs_are_collected(any_runtime: Runtime, make_job: MakeJob) -> None:
    kept = make_job().id
    for job_id in (kept, "job_gone"):
        any_runtime.storage.write(f"jobs/{job_id}/training.json", b"{}")
        any_runtime.storage.write(f"jobs/{job_id}/deeper/checkpoint", b"x")
    found = list(any_runtime.collector.collect(dry_run=True))
    assert found == []  # young
    assert collected(any_runtime) == {"jobs/job_gone"}
    assert len(list(any_runtime.storage.list("jobs"))) == 2


def test_models_of_a_sweep_stay_while_it_runs_and_while_they_are_registered(
    any_runtime: Runtime, make_job: MakeJob
) -> None:
    job = make_job("sweep")
    folders = [model_folder(job.id, number) for number in range(3)]
    for folder in (*folders, model_folder("job_gone", 1)):
        any_runtime.storage.write(f"{folder}/model.safetensors", b"x")
    assert collected(any_runtime) == {"models/job_gone-1"}
    with any_runtime.db.write() as session:
        for folder in folders[:2]:
            add_version(
                session, tenant="t", name="m", job_id=job.id, clustering_id=None,
                folder=folder, manifest={}, files={},
            )  # fmt: skip
        session.get_one(Job, job.id).status = "failed"
    assert collected(any_runtime) == {folders[2]}
    with any_runtime.db.write() as session:
        delete_version(session, "t", "m", 1)
    assert collected(any_runtime) == {folders[0]}


def test_features_that_a_clustering_was_made_from_stay(any_runtime: Runtime) -> None:
    stored = store(any_runtime, [0, 1])
    any_runtime.storage.write(f"{FOLDER}/features.npy", b"x")
    any_runtime.storage.write("embeddings/unused/features.npy", b"x")
    assert collected(any_runtime) == {"embeddings/unused"}
    with any_runtime.db.write() as session:
        session.delete(session.get_one(Clustering, stored.clustering_id))
    assert collected(any_runtime) == {FOLDER}


def test_superseded_features_are_collected(any_runtime: Runtime, make_dataset: MakeDataset) -> None:
    dataset = make_dataset([USED])
    _change(any_runtime, dataset, "old")
    _features(any_runtime, dataset, "old", "embeddings/old")
    assert collected(any_runtime) == set()
    _change(any_runtime, dataset, "new")
    assert collected(any_runtime) == set()  # the next embedding starts from them
    _features(any_runtime, dataset, "new", "embeddings/new")
    assert collected(any_runtime, dry_run=True) == {"embeddings/old"}
    assert collected(any_runtime) == {"embeddings/old"}
    with any_runtime.db.read() as session:
        assert [row.folder for row in session.query(Embedding)] == ["embeddings/new"]
    assert len(list(any_runtime.storage.list("embeddings"))) == 3


def test_features_stay_while_a_job_may_copy_from_them(
    any_runtime: Runtime, make_job: MakeJob
) -> None:
    job = make_job("cluster")
    with any_runtime.db.read() as session:
        dataset = session.get_one(Dataset, job.dataset_id)
    _features(any_runtime, dataset, "old", "embeddings/old")
    _features(any_runtime, dataset, "new", "embeddings/new")
    _change(any_runtime, dataset, "new")
    assert collected(any_runtime) == set()
    with any_runtime.db.write() as session:
        session.get_one(Job, job.id).status = "succeeded"
    assert collected(any_runtime) == {"embeddings/old"}


def test_files_of_unknown_kinds_stay(any_runtime: Runtime) -> None:
    any_runtime.storage.write("health/probe", b"ok")
    assert collected(any_runtime) == set()
    assert any_runtime.storage.read("health/probe") == b"ok"


def test_a_dry_run_deletes_nothing(any_runtime: Runtime) -> None:
    any_runtime.storage.write("jobs/job_gone/a", b"four")
    any_runtime.storage.write("jobs/job_gone/b", b"five!")
    assert collected(any_runtime, dry_run=True) == {"jobs/job_gone"}
    assert len(list(any_runtime.storage.list("jobs"))) == 2


def test_nothing_is_deleted_while_a_retention_lock_is_held(any_runtime: Runtime) -> None:
    any_runtime.storage.write("jobs/job_gone/a", b"x")
    with retain(any_runtime.db, "a test"):
        assert collected(any_runtime) == set()
        delete_unless_retained(any_runtime.db, any_runtime.storage, ["jobs/job_gone"])
        assert any_runtime.storage.exists("jobs/job_gone/a")
    assert collected(any_runtime) == {"jobs/job_gone"}


def test_a_file_that_is_touched_during_the_collection_stays(
    any_runtime: Runtime,
) -> None:
    """An ingest of the same bytes comes between the query for owners and the deletion."""
    store_blob(any_runtime.storage, UNUSED, b"x")
    kind, folder = next(part for part in parts() if part[1] == f"sha256/{UNUSED[:2]}")
    real = kind.owned

    def ingest_meanwhile(session: object, keys: object) -> set[str]:
        found = real(session, keys)  # type: ignore[arg-type]
        store_blob(any_runtime.storage, UNUSED, b"x")
        return found

    busy = replace(kind, owned=ingest_meanwhile)
    young = any_runtime.storage.stat(blob_key(UNUSED))
    assert young is not None
    now = young.modified + 24 * 3600.0 + 0.001  # barely old, before the ingest
    assert list(any_runtime.collector.collect_part(busy, folder, now=now)) == []
    assert any_runtime.storage.exists(blob_key(UNUSED))


def test_a_job_can_start_after_its_features_were_collected(
    any_runtime: Runtime, make_dataset: MakeDataset
) -> None:
    dataset = make_dataset([USED])
    any_runtime.storage.write("embeddings/again/features.npy", b"x")
    assert collected(any_runtime) == {"embeddings/again"}
    with any_runtime.db.write() as session:
        create_job(session, tenant="t", kind="map", dataset=dataset, config={})
    _features(any_runtime, dataset, "new", "embeddings/again")
    assert collected(any_runtime) == set()
