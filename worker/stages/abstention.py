"""Novelty of the images of a predict job, and abstention from a label."""

from typing import Any

import numpy as np

from app.core.platform.tables import EXCLUDED
from app.core.serving.abstention import is_novel
from temi.standardize import chunks
from worker.stages.base import ModelJob
from worker.stages.evaluation import Assignments


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
