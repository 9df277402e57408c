"""Drift of the images that a version labels."""

from datetime import UTC, date, datetime

from pydantic import BaseModel, ConfigDict, Field

from app.core.models import drift

_SECONDS = 86_400


class DriftDay(BaseModel):
    day: date = Field(description="In UTC.")
    images: int
    novel: int = Field(description="Images more unusual than nine tenths of the training.")


class ClusterShare(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    cluster_id: int
    label: str
    images: int
    trained: int = Field(description="Images of the training in the cluster now.")


class Drift(BaseModel):
    """Distributions of what a version labeled."""

    images: int
    verdict: drift.Verdict
    summary: str = Field(examples=["The photos are like those of the training."])
    novelty: list[int] = Field(
        description="Images by tenth of the novelty; about equal if they are like the training."
    )
    novelty_shift: float | None = Field(
        description="Population stability index of the novelty; above 0.25 is much."
    )
    probability: list[int] = Field(description="Images by tenth of the calibrated probability.")
    clusters: list[ClusterShare]
    cluster_shift: float | None = Field(
        description="Population stability index of the clusters' shares; null if the clustering of "
        "the training is gone."
    )
    days: list[DriftDay] = Field(description="Days that have images, oldest first.")

    @classmethod
    def of(cls, found: drift.Drift) -> "Drift":
        return cls(
            images=found.images,
            verdict=found.verdict,
            summary=found.summary,
            novelty=found.novelty,
            novelty_shift=found.novelty_shift,
            probability=found.probability,
            clusters=[ClusterShare.model_validate(share) for share in found.clusters],
            cluster_shift=found.cluster_shift,
            days=[
                DriftDay(
                    day=datetime.fromtimestamp(each.day * _SECONDS, UTC).date(),
                    images=each.images,
                    novel=each.novel,
                )
                for each in found.days
            ],
        )
