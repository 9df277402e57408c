"""The job that follows an accepted proposal: it computes the features of the added images, so that
searches, splits and similar images know them."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.datasets.rows import check_unused
from app.core.jobs.lifecycle import create_job
from app.core.platform.tables import Clustering, Dataset, Job, ModelVersion


def check_unused_but_refresh(session: Session, dataset: Dataset, clustering: Clustering) -> None:
    """As `check_unused`, but a job that waits to refresh this clustering does not count."""
    waiting = _waiting(session, clustering)
    check_unused(session, dataset, ignored_job=waiting.id if waiting else "")


def refresh_features(
    session: Session, dataset: Dataset, clustering: Clustering, version: ModelVersion
) -> None:
    """Creates a predict job that adds no images; one that still waits is used again. The dataset
    must be locked."""
    waiting = _waiting(session, clustering)
    if waiting is not None:
        waiting.dataset_fingerprint = dataset.fingerprint
        return
    create_job(
        session,
        tenant=clustering.tenant,
        kind="predict",
        dataset=dataset,
        config={
            "clustering_id": clustering.id,
            "model": {"name": clustering.model_name, "version": clustering.model_version},
            "backbone": version.manifest["backbone"],
            "precision": version.manifest["precision"],
            "false_alarm_rate": None,
            "features_only": True,
        },
    )


def _waiting(session: Session, clustering: Clustering) -> Job | None:
    """Locked: no worker claims it before this transaction ends."""
    return session.scalar(
        select(Job)
        .where(
            Job.dataset_id == clustering.dataset_id,
            Job.kind == "predict",
            Job.status == "queued",
            Job.config["clustering_id"].as_string() == clustering.id,
            Job.config["features_only"].as_boolean(),
        )
        .limit(1)
        .with_for_update(skip_locked=True)
    )
