"""The review of a clustering: what to look at, answers, purity and forecast."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from temi_client.models.review import (
    Answer,
    ReviewAnswer,
    ReviewQueue,
    ReviewReport,
    StoredAnswers,
)
from temi_client.resources.base import Resource, path_segment

ReviewOrder = Literal["sample", "gain"]
Proof = Literal["collection", "groups"]


class ReviewMethods(Resource):
    def review(
        self,
        clustering_id: str,
        *,
        min_purity: float | None = None,
        confidence: float | None = None,
        target: float | None = None,
        proof: Proof | None = None,
    ) -> ReviewReport:
        """Returns the purity of each cluster, and what is left to review until the share `target`
        of the collection has a purity of `min_purity` or better: each cluster (`groups`), or the
        labels as a whole (`collection`)."""
        return self._get(
            ReviewReport,
            _path(clustering_id),
            min_purity=min_purity,
            confidence=confidence,
            target=target,
            proof=proof,
        )

    def review_queue(
        self,
        clustering_id: str,
        *,
        limit: int | None = None,
        order: ReviewOrder | None = None,
        labeler: str | None = None,
        min_purity: float | None = None,
        target: float | None = None,
        proof: Proof | None = None,
    ) -> ReviewQueue:
        """Returns the images to review next. Labelers with different names begin with different
        clusters."""
        return self._get(
            ReviewQueue,
            f"{_path(clustering_id)}/queue",
            limit=limit,
            order=order,
            labeler=labeler,
            min_purity=min_purity,
            target=target,
            proof=proof,
        )

    def answer_review(
        self, clustering_id: str, answers: Sequence[Answer], *, revision: int | None = None
    ) -> StoredAnswers:
        """Stores up to 500 answers; `which` and `none` also move the images. Sending them again
        changes nothing."""
        body = {"answers": [answer.model_dump(exclude_none=True) for answer in answers]}
        headers = {"If-Match": "*" if revision is None else f'"{revision}"'}
        return self._post(StoredAnswers, f"{_path(clustering_id)}/answers", body, headers)

    def review_answers(self, clustering_id: str) -> Iterator[ReviewAnswer]:
        """Lists the latest answer about each reviewed image."""
        return self._pages(ReviewAnswer, f"{_path(clustering_id)}/answers")

    def withdraw_answer(self, clustering_id: str, image_id: str) -> None:
        """Deletes an answer, and moves the image back if the answer has moved it."""
        self._delete(f"{_path(clustering_id)}/answers/{path_segment(image_id)}")


def _path(clustering_id: str) -> str:
    return f"/v1/clusterings/{path_segment(clustering_id)}/review"
