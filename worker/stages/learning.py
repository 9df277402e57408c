"""What a training learns from an earlier clustering.

It is read once, when the job begins, and stored with the job: a resumed job learns the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import safetensors.numpy

from app.core.clusterings.constraints import NOTHING, ClusteringConstraints, collect_constraints
from app.core.clusterings.revisions import RevisionView, open_revision
from app.core.clusterings.rows import cluster_label, get_clustering
from app.core.platform.tables import EXCLUDED
from temi.training.constraints import OUTSIDE, UNKNOWN, Constraints
from worker.context import JobContext
from worker.stages.artifacts import load_json, save_json
from worker.stages.learned import Integers, Learned
from worker.stages.mining import PairedJob
from worker.stages.registration import image_ids


@dataclass(frozen=True)
class LearningFiles:
    """The files of what a job learns from; `None` of a job that learns from nothing."""

    job: PairedJob

    @property
    def source(self) -> dict[str, Any] | None:
        found: dict[str, Any] | None = self.job.context.job.config.get("learn_from")
        return found

    @property
    def summary_key(self) -> str:
        return f"{self.job.folder}/learning.json"

    @property
    def arrays_key(self) -> str:
        return f"{self.job.folder}/learning.safetensors"

    @cached_property
    def learned(self) -> Learned | None:
        if self.source is None:
            return None
        return Learned(**safetensors.numpy.load(self.job.storage.read(self.arrays_key)))

    def constraints(self) -> Constraints | None:
        learned = self.learned
        return None if learned is None else learned.constraints(self.job.training.rows)

    def summary(self) -> dict[str, Any] | None:
        """For `metrics.learning`, and the names of the new clusters."""
        return load_json(self.job.storage, self.summary_key) if self.source else None


def collect_learning(files: LearningFiles) -> None:
    """Reads what people said until the job was created, unless an earlier attempt has done so."""
    job, source = files.job, files.source
    if source is None or job.storage.exists(files.summary_key):
        return
    view = _open(job.context, source)
    found = collect_constraints(
        job.context.runtime.db, view, image_ids(job.context), job.context.job.created_at
    )
    n_clusters = job.n_clusters
    numbers = number_clusters(source["cluster_ids"], n_clusters)
    arrays = vars(_renumber(found, numbers))
    job.storage.write(files.arrays_key, safetensors.numpy.save(arrays))
    learning = {
        "clustering_id": source["clustering_id"],
        "revision": source["revision"],
        **found.counts,
        "cluster_ids": earlier_ids(numbers, n_clusters),
    }
    names = _names(view, numbers, n_clusters)
    save_json(job.storage, files.summary_key, {"learning": learning, "names": names})
    said = ", ".join(f"{count:,} {what}" for what, count in found.counts.items())
    job.context.log(f"Learns from {view.clustering_id} at revision {view.revision}: {said}.")


def number_clusters(cluster_ids: Sequence[int], n_clusters: int) -> dict[int, int]:
    """Maps the earlier clusters to the outputs of the model: the same numbers where possible."""
    free = iter(sorted(set(range(n_clusters)) - set(cluster_ids)))
    return {one: one if one < n_clusters else next(free) for one in sorted(cluster_ids)}


def earlier_ids(numbers: dict[int, int], n_clusters: int) -> list[int | None]:
    """The earlier cluster of each new one; None if it is new."""
    earlier = {number: cluster_id for cluster_id, number in numbers.items()}
    return [earlier.get(number) for number in range(n_clusters)]


def _open(context: JobContext, source: dict[str, Any]) -> RevisionView:
    with context.runtime.db.read() as session:
        clustering = get_clustering(session, context.job.tenant, source["clustering_id"])
        return open_revision(session, clustering, source["revision"])


def _names(view: RevisionView, numbers: dict[int, int], n_clusters: int) -> list[str]:
    names = [cluster_label(number) for number in range(n_clusters)]
    for cluster_id, number in numbers.items():
        label = view.labels.get(cluster_id)
        if label is not None and label != cluster_label(cluster_id):
            names[number] = label
    return names


def _renumber(found: ClusteringConstraints, numbers: dict[int, int]) -> Learned:
    table = np.full(max(numbers) + 1 - NOTHING, UNKNOWN, dtype=np.int64)
    for cluster_id, number in numbers.items():
        table[cluster_id - NOTHING] = number
    clusters, separated = _look_up(table, found.current), _look_up(table, found.separated)
    table[EXCLUDED - NOTHING] = OUTSIDE
    refused = np.stack([found.refused[:, 0], _look_up(table, found.refused[:, 1])], axis=1)
    apart = _look_up(table, found.apart)
    return Learned(
        labels=_look_up(table, found.said),
        clusters=clusters,
        separated=separated,
        refused=refused[refused[:, 1] >= 0],
        apart=apart[(apart >= 0).all(axis=1)],
    )


def _look_up(table: Integers, cluster_ids: Integers) -> Integers:
    """Clusters that are not continued, because they have no images, are UNKNOWN."""
    place = cluster_ids - NOTHING
    return np.where(place < len(table), table[np.minimum(place, len(table) - 1)], UNKNOWN)
