"""The review of a clustering by people."""

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from app.api.schemas.common import shown_fields
from app.api.schemas.operations import ClusterId
from app.core.clusterings.review import answers as review_answers
from app.core.clusterings.review import queue, report
from app.core.platform import tables

MAX_ANSWERS = 500
AnswerKind = Literal["yes", "no", "which", "none"]
ReviewBasis = Literal["answers", "probabilities"]


class ClusterReview(BaseModel):
    """What is known of the purity of a cluster."""

    cluster_id: int
    label: str
    named: bool = Field(description="Whether a person gave the label.")
    size: int
    reviewed: int = Field(description="Images of the cluster that people have seen.")
    wrong: int = Field(
        description="Images that people said do not belong to it and that are still in it."
    )
    sampled: int = Field(description="Answers to random images of the cluster.")
    purity: float | None = Field(
        description="Estimated share of images that belong to it; null if it is empty."
    )
    lower: float | None = Field(
        description="Lower bound of the confidence interval; null before any random answer."
    )
    upper: float | None
    basis: ReviewBasis = Field(
        description="Of `purity`: answers of people, or only the model's probabilities."
    )
    meets: bool = Field(description="Whether `lower` is at least `min_purity`.")
    answers_left: int = Field(description="Answers that are expected until it does.")


class CollectionReview(BaseModel):
    """What is known of the labels as a whole: the most that are proven to be pure enough together,
    or, before there are any, those that the review is to prove."""

    images: int = Field(
        description="Images that were not reviewed and have at least `min_probability`, and images "
        "that people confirmed."
    )
    min_probability: float
    sampled: int = Field(description="Answers to random images of all these.")
    purity: float | None = Field(description="Estimated share of right labels; null without any.")
    lower: float | None = Field(
        description="Lower bound; null before any random answer. The interval holds at every "
        "moment of the review at once: stop when it suffices."
    )
    upper: float | None
    basis: ReviewBasis
    meets: bool = Field(description="Whether `lower` is at least `min_purity`.")
    answers_left: int = Field(description="Answers that are expected until `target` is proven.")


class ReviewForecast(BaseModel):
    """What it takes to reach the target, or as far as answers are worth it."""

    clusters_to_name: int
    answers: int = Field(description="Number of images to review.")
    images: int = Field(description="Images with a finished label after that.")
    share: float = Field(description="The same as a share of the collection.")
    basis: ReviewBasis = Field(
        description="`probabilities`: nothing was reviewed yet, and the model may be wrong."
    )
    clusters_left: int = Field(
        description="Clusters that are not part of it. If the target is not reached, an answer "
        "about them would gain hardly more than its own image: split them, or train again."
    )
    summary: str = Field(
        examples=[
            "Name 42 groups, review 600 photos: 91% of the collection at 95% purity or better."
        ]
    )


class ReviewReport(BaseModel):
    """Purity of the clusters, finished labels, and a forecast."""

    revision: int
    min_purity: float
    confidence: float = Field(description="Level of the intervals.")
    images: int = Field(description="All images of the clustering, also excluded ones.")
    excluded_images: int
    reviewed_images: int
    finished_images: int = Field(
        description="With `proof=groups` images of clusters that meet `min_purity` without known "
        "wrong ones, otherwise those of `collection` once it does; also images that people "
        "confirmed, and excluded ones."
    )
    clusters: list[ClusterReview]
    collection: CollectionReview
    proof: Literal["collection", "groups"]
    forecast: ReviewForecast

    @classmethod
    def of(cls, found: report.Report) -> Self:
        return cls(
            **{
                **vars(found),
                "clusters": [ClusterReview(**row._asdict()) for row in found.clusters],
                "collection": CollectionReview(**found.collection._asdict()),
                "forecast": ReviewForecast(**vars(found.forecast)),
            }
        )


class ReviewQuestion(BaseModel):
    """Does this image belong to this cluster?"""

    image_id: str
    name: str
    cluster_id: int
    label: str
    probability: float
    sample: bool = Field(
        description="Whether it is part of the random sample; otherwise it was chosen for what the "
        "answer gains. Send it back with the answer."
    )


class ReviewQueue(BaseModel):
    revision: int
    expected_answers: int = Field(description="Until the labels meet `min_purity`, by `proof`.")
    data: list[ReviewQuestion]

    @classmethod
    def of(cls, found: queue.Queue) -> Self:
        questions = [ReviewQuestion(**question._asdict()) for question in found.questions]
        return cls(revision=found.revision, expected_answers=found.expected, data=questions)


class AnswerCreate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    image_id: str = Field(max_length=40)
    cluster_id: ClusterId = Field(description="The cluster that the person was asked about.")
    answer: AnswerKind = Field(
        description="`yes`: belongs to it; `no`: does not, without saying where; `which`: belongs "
        "to `belongs_to`, and is moved there; `none`: belongs to no cluster, and is excluded."
    )
    belongs_to: ClusterId | None = Field(default=None, description="With `which`.")
    sample: bool = Field(default=False, description="As in the question of the queue.")

    @model_validator(mode="after")
    def _names_a_cluster(self) -> Self:
        if (self.answer == "which") != (self.belongs_to is not None):
            raise ValueError("give belongs_to with the answer `which`, and only with it")
        return self


class AnswersCreate(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "answers": [
                        {
                            "image_id": "img_01k9z3m4q5r6s7t8v9w0x1y2z3",
                            "cluster_id": 3,
                            "answer": "yes",
                            "sample": True,
                        }
                    ]
                }
            ]
        },
    )

    answers: Annotated[list[AnswerCreate], Field(min_length=1, max_length=MAX_ANSWERS)]

    def to_core(self) -> list[review_answers.Answer]:
        return [review_answers.Answer(**one.model_dump()) for one in self.answers]


class RefusedAnswer(BaseModel):
    image_id: str
    cluster_id: int | None = Field(description="Where the image is now; null if it is excluded.")


class StoredAnswers(BaseModel):
    revision: int = Field(description="Of the clustering, after images were moved.")
    stored: list[str] = Field(description="Ids of the images.")
    refused: list[RefusedAnswer] = Field(
        description="Images that were moved to another cluster since the question; nothing was "
        "stored for them."
    )

    @classmethod
    def of(cls, found: review_answers.Answered) -> Self:
        refused = [RefusedAnswer(**one._asdict()) for one in found.refused]
        return cls(revision=found.revision, stored=found.stored, refused=refused)


class ReviewAnswer(BaseModel):
    """The latest answer about an image."""

    image_id: str
    name: str
    cluster_id: int = Field(description="The cluster that the person was asked about.")
    answer: AnswerKind
    belongs_to: int | None = Field(description="The cluster that the person named, if any.")
    sample: bool
    reviewed_by: str | None = Field(description="Name of the API key; null without one.")
    reviewed_at: datetime

    @classmethod
    def of(cls, row: tables.Review, name: str) -> Self:
        fields = shown_fields(cls, row)
        said = row.belongs_to
        fields["belongs_to"] = None if said == tables.EXCLUDED else said
        kind = review_answers.kind_of(row.cluster_id, said)
        return cls(
            **fields, name=name, answer=kind, sample=row.stratum not in (None, tables.CARRIED)
        )
