"""Drift: whether the images that a version labels are still like those of its training.

Novelty is uniform on images like those of the training, by its definition, so its distribution
needs no reference. The shares of the clusters are compared with those of the training's clustering.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from sqlalchemy import func, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from app.core.platform.clock import db_now
from app.core.platform.tables import Cluster, ModelVersion, PredictionCount

BINS = 10  # of probability and novelty
_SECONDS = 86_400
_MIN_IMAGES = 100  # fewer say little about a distribution
_SOME, _MUCH = 0.1, 0.25  # of the population stability index, as is usual
Verdict = Literal["too_few", "same", "shifted", "changed"]
SUMMARIES: dict[Verdict, str] = {
    "too_few": f"Too few photos for a verdict; {_MIN_IMAGES} are needed.",
    "same": "The photos are like those of the training.",
    "shifted": "The photos are somewhat unlike those of the training. Watch them.",
    "changed": "The photos are no longer what the model was trained on. Train a new version.",
}
Bucket = tuple[str, int]  # kind and bucket


@dataclass(frozen=True, kw_only=True)
class DriftDay:
    day: int  # since 1970, UTC
    images: int
    novel: int  # images more unusual than nine tenths of the training


@dataclass(frozen=True, kw_only=True)
class ClusterShare:
    cluster_id: int
    label: str
    images: int
    trained: int  # images of the training


@dataclass(frozen=True, kw_only=True)
class Drift:
    images: int
    novelty: list[int]  # images by tenth
    probability: list[int]  # images by tenth
    clusters: list[ClusterShare]
    days: list[DriftDay]  # that have images, oldest first
    novelty_shift: float | None  # population stability index; None without novelty
    cluster_shift: float | None  # None without the clustering of the training
    verdict: Verdict

    @property
    def summary(self) -> str:
        return SUMMARIES[self.verdict]


def tenth(value: float) -> int:
    return min(BINS - 1, int(value * BINS))


def add_counts(session: Session, model_id: str, version: int, counts: Mapping[Bucket, int]) -> None:
    """Adds images of today. Does nothing if the version was deleted."""
    if session.get(ModelVersion, (model_id, version)) is None:
        return
    today = int(session.scalars(select(db_now())).one() // _SECONDS)
    dialect = postgresql if session.get_bind().dialect.name == "postgresql" else sqlite
    key = {"model_id": model_id, "version": version, "day": today}
    for (kind, bucket), images in sorted(counts.items()):
        row = dialect.insert(PredictionCount).values(**key, kind=kind, bucket=bucket, images=images)
        session.execute(
            row.on_conflict_do_update(
                index_elements=["model_id", "version", "day", "kind", "bucket"],
                set_={"images": PredictionCount.images + row.excluded.images},
            )
        )


def read_drift(session: Session, version: ModelVersion, days: int) -> Drift:
    """Of the last days, today included."""
    today = int(session.scalars(select(db_now())).one() // _SECONDS)
    rows = session.execute(
        select(
            PredictionCount.day,
            PredictionCount.kind,
            PredictionCount.bucket,
            func.sum(PredictionCount.images),
        )
        .where(
            PredictionCount.model_id == version.model_id,
            PredictionCount.version == version.version,
            PredictionCount.day > today - days,
        )
        .group_by(PredictionCount.day, PredictionCount.kind, PredictionCount.bucket)
    )
    counts: Counter[Bucket] = Counter()
    images_of: Counter[int] = Counter()
    novel_of: Counter[int] = Counter()
    for day, kind, bucket, found in rows:
        counts[kind, bucket] += int(found)
        images_of[day] += int(found) if kind == "probability" else 0
        novel_of[day] += int(found) if (kind, bucket) == ("novelty", BINS - 1) else 0
    novelty, probability = (
        [counts[kind, bucket] for bucket in range(BINS)] for kind in ("novelty", "probability")
    )
    clusters = _shares(session, version, counts)
    trained = [share.trained for share in clusters]
    novelty_shift = stability_index(novelty, [1] * BINS) if sum(novelty) else None
    return Drift(
        images=sum(probability),
        novelty=novelty,
        probability=probability,
        clusters=clusters,
        days=[
            DriftDay(day=day, images=images_of[day], novel=novel_of[day])
            for day in sorted(images_of)
        ],
        novelty_shift=novelty_shift,
        cluster_shift=(
            stability_index([share.images for share in clusters], trained) if any(trained) else None
        ),
        verdict=_verdict(novelty, novelty_shift),
    )


def stability_index(found: Sequence[int], expected: Sequence[int]) -> float:
    """The population stability index of two histograms: 0 if their shares are the same."""
    # Half an image more in each bin, so that empty ones do not make it infinite.
    shares = [
        (np.asarray(each) + 0.5) / (sum(each) + 0.5 * len(each)) for each in (found, expected)
    ]
    return float(((shares[0] - shares[1]) * np.log(shares[0] / shares[1])).sum())


def _verdict(novelty: Sequence[int], shift: float | None) -> Verdict:
    if shift is None or sum(novelty) < _MIN_IMAGES:
        return "too_few"
    low, high = sum(novelty[: BINS // 2]), sum(novelty[BINS // 2 :])
    if shift < _SOME or high <= low:  # more alike than new images are: perhaps the same ones
        return "same"
    return "changed" if shift >= _MUCH else "shifted"


def _shares(
    session: Session, version: ModelVersion, counts: Mapping[Bucket, int]
) -> list[ClusterShare]:
    """By cluster of the training's clustering, and by number if it is gone."""
    found = {bucket: images for (kind, bucket), images in counts.items() if kind == "cluster"}
    rows = session.execute(
        select(Cluster.cluster_id, Cluster.label, Cluster.size).where(
            Cluster.clustering_id == version.clustering_id, Cluster.active
        )
    ).all()
    known = {row.cluster_id: (row.label, row.size) for row in rows}
    return [
        ClusterShare(
            cluster_id=number,
            label=known.get(number, (f"cluster {number}", 0))[0],
            images=found.get(number, 0),
            trained=known.get(number, ("", 0))[1],
        )
        for number in sorted(known.keys() | found.keys())
    ]
