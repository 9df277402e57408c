"""The count stage: find the number of clusters of a job that asks for `auto`. A sweep compares its
numbers of clusters in the same way."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from app.core.jobs.kinds import COUNT_STAGE
from app.core.jobs.requests.cluster import close_config
from app.core.platform.tables import Job
from worker.context import JobContext
from worker.stages.artifacts import load_json, save_json
from worker.stages.base import run_stage
from worker.stages.mining import PairedJob

if TYPE_CHECKING:
    from temi.analysis.cluster_count import CountEstimate


def count_key(job: PairedJob) -> str:
    """Of the figures of all numbers that were compared."""
    return f"{job.folder}/count.json"


def count_clusters(job: PairedJob) -> None:
    """Runs the stage if the job has it; afterwards the job's configuration is complete."""
    context = job.context
    if COUNT_STAGE in context.job.stages:
        counted = context.job.config["train"]["n_clusters"] is not None
        run_stage(context, COUNT_STAGE, lambda: _count(job), done=counted)


def compare_counts(job: PairedJob, counts: Sequence[int], seed: int) -> dict[int, dict[str, float]]:
    """Returns the figures of those numbers of clusters that are not too large for the images."""
    if not job.storage.exists(count_key(job)):
        _estimate(job, seed=seed, counts=counts)
    points = load_json(job.storage, count_key(job))["points"]
    return {point["n_clusters"]: point for point in points}


def _count(job: PairedJob) -> None:
    context = job.context
    progress = context.start_progress(COUNT_STAGE, total=0)

    def report(done: int, total: int) -> None:
        progress.total = total
        progress.advance_to(done)

    seed = context.job.config["train"]["seed"]
    _decide(context, _estimate(job, seed=seed, progress=report), job.excluded)


def _estimate(
    job: PairedJob,
    *,
    seed: int,
    counts: Sequence[int] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> "CountEstimate":
    from temi.analysis.cluster_count import estimate_cluster_count  # loads scikit-learn, a second

    features = job.embedding.features()
    with job.context.computing():
        estimate = estimate_cluster_count(features, counts=counts, seed=seed, progress=progress)
    save_json(job.storage, count_key(job), estimate.as_dict())
    return estimate


def _decide(context: JobContext, estimate: "CountEstimate", exclude_duplicates: str) -> None:
    with context.transaction() as session:
        row = session.get_one(Job, context.job.id)
        row.config = config = close_config(session, row, estimate.best, exclude_duplicates)
    context.job.config = config
    others = " and ".join(str(count) for count in estimate.suggested[1:])
    also = f" {others} would be plausible, too." if others else ""
    context.log(f"Found {estimate.best} clusters.{also}")
