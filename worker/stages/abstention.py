"""Novelty of the images of a predict job, abstention from a label, and what is kept of it."""

from typing import Any

import numpy as np
import numpy.typing as npt
from sqlalchemy import select

from app.core.access.quota import quota_of
from app.core.gathering.keeping import Refusal, keep_refused
from app.core.platform.streams import batched
from app.core.platform.tables import EXCLUDED, Image
from app.core.serving.abstention import is_novel
from temi.standardize import chunks
from worker.stages.base import ModelJob
from worker.stages.evaluation import Assignments
from worker.stages.registration import image_ids

_CHUNK = 500  # values in one statement
_SHARED = ("name", "sha256", "width", "height", "format", "bytes")  # columns of an image


def abstain(
    job: ModelJob, metrics: dict[str, Any], assignments: Assignments
) -> tuple[dict[str, Any], Assignments]:
    """Excludes novel images if the job has a false alarm rate. The metrics get the mean novelty,
    which is about a half for images like those of the training, and the number of novel images."""
    detector, rate = job.loaded.detector, job.context.job.config.get("false_alarm_rate")
    if detector is None:
        return metrics, assignments
    features, cluster = job.embedding.features(), assignments.cluster.copy()
    novelty = np.empty(len(features))
    for rows in chunks(len(features)):
        novelty[rows] = detector.novelty(features[rows])
    metrics |= {"mean_novelty": float(novelty.mean()), "novel_images": None}
    if rate is not None:
        novel = np.array([is_novel(value, rate) for value in novelty.tolist()])
        cluster[novel] = EXCLUDED
        metrics["novel_images"] = int(novel.sum())
    return metrics, Assignments(**{**vars(assignments), "cluster": cluster})


def keep_novel_images(job: ModelJob, assignments: Assignments) -> None:
    """Keeps the images that the job has refused, if the service keeps them: the newest, as many as
    a model may have. Doing it again adds nothing."""
    context, settings = job.context, job.context.runtime.settings
    novel = np.flatnonzero(assignments.cluster == EXCLUDED)[-settings.keep_refused :]
    if settings.keep_refused == 0 or not len(novel):
        return
    refusals = _refusals(job, assignments, novel)
    with context.transaction() as session:
        keep_refused(
            session,
            settings,
            tenant=context.job.tenant,
            model_id=job.version.model_id,
            version=job.version.version,
            refusals=refusals,
            quota=quota_of(session, context.job.created_by),
        )


def _refusals(job: ModelJob, assignments: Assignments, rows: npt.NDArray[np.intp]) -> list[Refusal]:
    assert job.loaded.detector is not None  # else no image is novel
    features = job.embedding.features()[rows]
    novelty = job.loaded.detector.novelty(features)
    ids = image_ids(job.context)
    found: dict[str, Image] = {}
    wanted = [ids[row] for row in rows]
    with job.context.runtime.db.read() as session:
        for some in batched(wanted, _CHUNK):
            query = select(Image).where(Image.id.in_(some))
            found |= {image.id: image for image in session.scalars(query)}
    return [
        Refusal(
            **{name: getattr(found[image_id], name) for name in _SHARED},
            novelty=float(novelty[number]),
            probability=float(assignments.probability[rows[number]]),
            margin=float(assignments.margin[rows[number]]),
            features=features[number],
            image_id=image_id,
        )
        for number, image_id in enumerate(wanted)
    ]
