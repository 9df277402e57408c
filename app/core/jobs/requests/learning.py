"""What a training may learn from: a clustering of the same dataset that people have reviewed."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from app.core.clusterings.constraints import has_answers, kept_clusters
from app.core.clusterings.rows import get_clustering
from app.core.models.files import BACKBONE_FILE
from app.core.models.versions import get_model, get_version
from app.core.platform.errors import InvalidRequest, NotFound
from app.core.platform.tables import Clustering, Dataset
from temi.config import MAX_CONSENSUS_CLUSTERS

_FIELD = "learn_from"


@dataclass(frozen=True, kw_only=True)
class LearningSource:
    clustering: Clustering
    cluster_ids: list[int]  # that the new clustering continues

    def n_clusters(self, wanted: int | None) -> int:
        """The number of clusters, at least those that are continued."""
        kept = len(self.cluster_ids)
        if wanted is not None and wanted < kept:
            raise InvalidRequest.field(
                "n_clusters",
                f"must be at least {kept}, the number of clusters with images of "
                f"{self.clustering.id}; merge some of them first",
            )
        chosen = wanted or max(2, kept)
        if chosen > MAX_CONSENSUS_CLUSTERS:
            raise InvalidRequest.field(
                "n_clusters",
                f"must be at most {MAX_CONSENSUS_CLUSTERS:,} with {_FIELD}, not {chosen:,}",
            )
        return chosen

    def as_config(self) -> dict[str, Any]:
        """Fixes the revision: what people say later does not change the training."""
        return {
            "clustering_id": self.clustering.id,
            "revision": self.clustering.revision,
            "cluster_ids": self.cluster_ids,
        }


def find_source(
    session: Session, tenant: str, dataset: Dataset, clustering_id: str
) -> LearningSource:
    """Raises InvalidRequest if there is nothing to learn from the clustering."""
    try:
        clustering = get_clustering(session, tenant, clustering_id)
    except NotFound as error:
        raise InvalidRequest.field(_FIELD, f"there is no clustering {clustering_id}") from error
    if clustering.dataset_id != dataset.id:
        raise InvalidRequest.field(
            _FIELD,
            f"{clustering_id} is a clustering of {clustering.dataset_id}, not of {dataset.id}",
        )
    kept = kept_clusters(session, clustering)
    if not has_answers(session, clustering_id) or not kept:
        raise InvalidRequest.field(
            _FIELD,
            f"{clustering_id} has nothing to learn from: review some of its images first, or move, "
            "merge, split or exclude some",
        )
    return LearningSource(clustering=clustering, cluster_ids=kept)


def source_backbone(
    session: Session, tenant: str, source: LearningSource
) -> tuple[str, str] | None:
    """Backbone and precision of the model of the clustering, unless its weights are its own."""
    clustering = source.clustering
    try:
        version = get_version(
            session, get_model(session, tenant, clustering.model_name), clustering.model_version
        )
    except NotFound:  # it was deleted
        return None
    if BACKBONE_FILE in version.files:
        return None
    return str(version.manifest["backbone"]), str(version.manifest["precision"])
