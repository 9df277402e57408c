"""The review of a clustering by people."""

from datetime import datetime
from typing import Literal

from pydantic import ConfigDict, Field

from temi_client.models.base import ApiModel

AnswerKind = Literal["yes", "no", "which", "none"]


class ClusterReview(ApiModel):
    """What is known of the purity of a cluster."""

    cluster_id: int
    label: str
    named: bool = False
    size: int
    reviewed: int = 0  # images that people have seen
    wrong: int = 0  # of them, those that are still in the cluster and do not belong to it
    sampled: int = 0  # answers to random images
    purity: float | None = None  # None if it is empty
    lower: float | None = None  # None before any random answer
    upper: float | None = None
    basis: str  # answers or probabilities
    meets: bool = False  # the lower bound reaches the purity
    answers_left: int = 0  # expected until it does


class CollectionReview(ApiModel):
    """What is known of the labels as a whole."""

    images: int
    min_probability: float = 0.0  # of those that people have not seen
    sampled: int = 0
    purity: float | None = None
    lower: float | None = None  # None before any random answer
    upper: float | None = None
    basis: str  # answers or probabilities
    meets: bool = False  # the lower bound reaches the purity
    answers_left: int = 0


class ReviewForecast(ApiModel):
    clusters_to_name: int
    answers: int
    images: int
    share: float  # of the collection
    basis: str  # answers or probabilities
    clusters_left: int = 0
    summary: str


class ReviewReport(ApiModel):
    """Purity of the clusters, finished labels, and what is left to do."""

    revision: int
    min_purity: float
    confidence: float
    images: int
    excluded_images: int = 0
    reviewed_images: int = 0
    finished_images: int = 0
    clusters: list[ClusterReview]
    collection: CollectionReview | None = None
    proof: str = "groups"
    forecast: ReviewForecast


class ReviewQuestion(ApiModel):
    """Does this image belong to this cluster?"""

    image_id: str
    name: str
    cluster_id: int
    label: str
    probability: float
    sample: bool  # of the random sample

    def answered(self, answer: AnswerKind, belongs_to: int | None = None) -> "Answer":
        """The answer to this question; `which` needs the cluster that the image belongs to."""
        return Answer(
            image_id=self.image_id,
            cluster_id=self.cluster_id,
            answer=answer,
            belongs_to=belongs_to,
            sample=self.sample,
        )


class ReviewQueue(ApiModel):
    revision: int
    expected_answers: int = 0
    data: list[ReviewQuestion]


class Answer(ApiModel):
    """An answer to a question of the queue."""

    model_config = ConfigDict(extra="forbid")  # you make it: a misspelled field is an error

    image_id: str
    cluster_id: int
    answer: AnswerKind
    belongs_to: int | None = None
    sample: bool = False


class RefusedAnswer(ApiModel):
    image_id: str
    cluster_id: int | None = None  # where the image is now; None if it is excluded


class StoredAnswers(ApiModel):
    revision: int
    stored: list[str] = Field(default_factory=list)
    refused: list[RefusedAnswer] = Field(default_factory=list)  # moved since the question


class ReviewAnswer(ApiModel):
    """The latest answer about an image."""

    image_id: str
    name: str
    cluster_id: int
    answer: str
    belongs_to: int | None = None
    sample: bool = False
    reviewed_by: str | None = None
    reviewed_at: datetime
