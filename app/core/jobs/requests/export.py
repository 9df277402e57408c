"""A request for a file of labels."""

from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.core.clusterings.revisions import check_clusters, open_revision
from app.core.clusterings.rows import get_clustering
from app.core.datasets.rows import get_dataset
from app.core.exports.files import export_filename
from app.core.jobs.lifecycle import create_job
from app.core.jobs.requests.base import JobRequest
from app.core.platform.errors import DatasetEmpty
from app.core.platform.tables import Job


@dataclass(frozen=True, kw_only=True)
class ExportRequest(JobRequest):
    clustering_id: str
    format: str
    revision: int | None = None
    cluster_ids: list[int] | None = None
    min_probability: float | None = None
    include_excluded: bool = False

    def create(self, session: Session, tenant: str) -> Job:
        """The revision is settled here: later edits do not reach the file."""
        clustering = get_clustering(session, tenant, self.clustering_id)
        view = open_revision(session, clustering, self.revision)
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
            "include_excluded": self.include_excluded,
            "filename": export_filename(dataset.name, view.revision, self.format),
        }
        return create_job(
            session, tenant=tenant, kind="export", dataset=dataset, config=config, request=self
        )
