"""The request to write a clustering to a file."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field
from sqlalchemy.orm import Session

from app.core.clusterings.review.collection_report import PROOF, Proof, proven_probability
from app.core.clusterings.review.report import pure_clusters
from app.core.clusterings.revisions import check_clusters, open_revision
from app.core.clusterings.rows import get_clustering
from app.core.datasets.rows import get_dataset
from app.core.exports.files import export_filename
from app.core.exports.formats import FormatName
from app.core.jobs.lifecycle import create_job
from app.core.jobs.requests import base
from app.core.platform.errors import DatasetEmpty, InvalidRequest
from app.core.platform.settings.types import UrlBase
from app.core.platform.tables import Clustering, Job


class ExportCreate(base.JobCreateBase):
    """Write a clustering to a file for another program."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "kind": "export",
                    "clustering_id": "cl_01k9z3m4q5r6s7t8v9w0x1y2z3",
                    "format": "parquet",
                    "min_probability": 0.5,
                }
            ]
        }
    )

    kind: Literal["export"]
    clustering_id: str = Field(max_length=40)
    format: FormatName
    revision: int | None = Field(
        default=None, ge=1, le=2**31 - 1, description="By default the current one."
    )
    cluster_ids: list[Annotated[int, Field(ge=0, lt=2**31)]] | None = Field(
        default=None, min_length=1, max_length=base.MAX_CLUSTERS, description="By default all."
    )
    min_probability: float | None = Field(default=None, ge=0, le=1)
    min_purity: float | None = Field(
        default=None,
        ge=0.5,
        lt=1,
        description="Only labels that the review has proven to be so pure, see `proof`, and single "
        "images that people have confirmed. Only for the current revision. The result of the job "
        "has the number of images that are left out.",
    )
    proof: Proof = Field(
        default=PROOF,
        description="With `min_purity`. `groups`: clusters whose lower bound of the 95 % interval "
        "reaches it, each by itself. `collection`: the exported labels reach it together; single "
        "clusters may be less pure, as the review shows. It needs far fewer answers, and not "
        "`cluster_ids` or `min_probability`: a part of the labels is not proven.",
    )
    include_excluded: bool = Field(
        default=False, description="Also export images that were excluded from the clustering."
    )

    validation_fraction: float = Field(
        default=0,
        ge=0,
        le=0.9,
        description="Share of each class that is marked for validation; the rest is for training. "
        "The same images with the same `split_seed` are split in the same way in each format.",
    )
    split_seed: base.Seed = Field(default=0, description="Chooses another split.")
    image_url_base: UrlBase | None = Field(
        default=None,
        max_length=1000,
        description="Address of this service as the reader of the file reaches it, before the "
        "links to images. By default `TEMI_PUBLIC_URL`; without it links are paths.",
        examples=["https://temi.example.org"],
    )

    def create(self, session: Session, tenant: str) -> Job:
        """Fixes the revision: later edits of the clustering do not change the file."""
        clustering = get_clustering(session, tenant, self.clustering_id)
        view = open_revision(session, clustering, self.revision)
        self._check_purity(clustering)
        check_clusters(view, self.cluster_ids or (), "cluster_ids")
        # Locked: its images do not change until the job has ended.
        dataset = get_dataset(session, tenant, clustering.dataset_id, lock=True)
        if dataset.image_count == 0:
            raise DatasetEmpty("The dataset has no images; there is nothing to export.")
        config = {
            "clustering_id": clustering.id,
            "format": self.format,
            "revision": view.revision,
            "cluster_ids": sorted(set(self.cluster_ids)) if self.cluster_ids else None,
            "min_probability": self.min_probability,
            "min_purity": self.min_purity,
            **self._proven(session, clustering),
            "include_excluded": self.include_excluded,
            "validation_fraction": self.validation_fraction,
            "split_seed": self.split_seed,
            "image_url_base": self.image_url_base,
            "filename": export_filename(dataset.name, view.revision, self.format),
        }
        return create_job(
            session, tenant=tenant, kind=self.kind, dataset=dataset, config=config, request=self
        )

    def _check_purity(self, clustering: Clustering) -> None:
        if self.min_purity is None:
            return
        if self.revision not in (None, clustering.revision):
            raise InvalidRequest.field(
                "min_purity",
                f"needs the current revision, {clustering.revision}: the review is about it",
            )
        if self.proof == "collection" and (self.cluster_ids or self.min_probability):
            raise InvalidRequest.field(
                "proof",
                "collection proves all labels together; with cluster_ids or min_probability "
                "choose groups",
            )

    def _proven(self, session: Session, clustering: Clustering) -> dict[str, Any]:
        """Fixed now: later answers do not change the file."""
        clusters = lowest = None
        if self.min_purity is not None and self.proof == "groups":
            clusters = pure_clusters(session, clustering, self.min_purity)
        elif self.min_purity is not None:
            lowest = proven_probability(session, clustering, self.min_purity)
        return {
            "proof": None if self.min_purity is None else self.proof,
            "pure_cluster_ids": clusters,
            "proven_probability": lowest,
        }
