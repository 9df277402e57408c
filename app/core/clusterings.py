"""A finished clustering: which image is in which cluster, and how sure that is."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from app.core.errors import NotFound
from app.core.tables import Assignment, Cluster, Clustering

_INSERT_ROWS = 10_000
_EXAMPLES = 8


@dataclass(frozen=True, kw_only=True)
class ClusterSummary:
    cluster_id: int
    size: int
    mean_probability: float | None
    examples: list[int]  # rows of its surest images


def get_clustering(session: Session, tenant: str, clustering_id: str) -> Clustering:
    found = session.scalar(
        select(Clustering).where(Clustering.id == clustering_id, Clustering.tenant == tenant)
    )
    if found is None:
        raise NotFound(f"There is no clustering {clustering_id}.")
    return found


def cluster_label(cluster_id: int) -> str:
    """The name of a cluster until somebody gives it a better one."""
    return f"cluster {cluster_id}"


def summarize(
    assigned: npt.NDArray[np.integer], probability: npt.NDArray[np.floating], n_clusters: int
) -> list[ClusterSummary]:
    """Size, mean probability and surest members of every cluster, empty ones too."""
    order = np.lexsort((-probability, assigned))  # by cluster, surest first
    starts = np.searchsorted(assigned[order], np.arange(n_clusters + 1))
    summaries = []
    for cluster_id, (start, stop) in enumerate(pairwise(starts)):
        rows = order[start:stop]
        summaries.append(
            ClusterSummary(
                cluster_id=cluster_id,
                size=len(rows),
                mean_probability=float(probability[rows].mean()) if len(rows) else None,
                examples=[int(row) for row in rows[:_EXAMPLES]],
            )
        )
    return summaries


def add_clusters(
    session: Session,
    clustering_id: str,
    summaries: Sequence[ClusterSummary],
    examples: dict[int, dict[str, Any]],
) -> None:
    rows = [
        {
            "clustering_id": clustering_id,
            "cluster_id": summary.cluster_id,
            "label": cluster_label(summary.cluster_id),
            "size": summary.size,
            "mean_probability": summary.mean_probability,
            "examples": [examples[row] for row in summary.examples],
        }
        for summary in summaries
    ]
    session.execute(insert(Cluster), rows)


def add_assignments(
    session: Session, clustering_id: str, rows: Iterable[tuple[str, int, float]]
) -> None:
    """(image id, cluster, probability) for every image, in bounded pieces."""
    for chunk in _chunks(rows):
        values = [
            {
                "clustering_id": clustering_id,
                "image_id": image_id,
                "cluster_id": int(cluster_id),
                "probability": float(probability),
            }
            for image_id, cluster_id, probability in chunk
        ]
        session.execute(insert(Assignment), values)


def _chunks(rows: Iterable[tuple[str, int, float]]) -> Iterator[list[tuple[str, int, float]]]:
    iterator = iter(rows)
    while chunk := list(islice(iterator, _INSERT_ROWS)):
        yield chunk
