"""Clusterings: their current state, and every operation that changed it."""

from typing import Any

from sqlalchemy import BigInteger, Double, ForeignKey, Index, String, Text
from sqlalchemy.engine.default import DefaultExecutionContext
from sqlalchemy.orm import Mapped, mapped_column

from app.core.platform.clock import db_now
from app.core.platform.tables.base import Base, Json, created_at_column, id_column, tenant_column

EXCLUDED = -1  # the cluster id of excluded images
CARRIED = -1  # the stratum of an answer about an earlier clustering
ABSENT = -2  # in a change: the image was added to the clustering by this revision


def _first_unused(context: DefaultExecutionContext) -> int:
    parameters = context.get_current_parameters()  # type: ignore[no-untyped-call]
    return int(parameters["n_clusters"])


class Clustering(Base):
    __tablename__ = "clusterings"

    id: Mapped[str] = id_column()
    tenant: Mapped[str] = tenant_column()
    job_id: Mapped[str | None] = mapped_column(  # a sweep has several
        ForeignKey("jobs.id", ondelete="SET NULL"), index=True
    )
    dataset_id: Mapped[str] = mapped_column(
        ForeignKey("datasets.id", ondelete="CASCADE"), index=True
    )
    dataset_fingerprint: Mapped[str | None] = mapped_column(String(64))
    embedding_folder: Mapped[str | None] = mapped_column(String(200))  # its features
    model_name: Mapped[str] = mapped_column(String(100))
    model_version: Mapped[int]
    n_clusters: Mapped[int]  # active ones
    next_cluster_id: Mapped[int] = mapped_column(default=_first_unused)  # ids are never reused
    image_count: Mapped[int]
    revision: Mapped[int] = mapped_column(default=1)
    metrics: Mapped[dict[str, Any]]
    created_at: Mapped[float] = created_at_column()


class Cluster(Base):
    __tablename__ = "clusters"

    clustering_id: Mapped[str] = mapped_column(
        ForeignKey("clusterings.id", ondelete="CASCADE"), primary_key=True
    )
    cluster_id: Mapped[int] = mapped_column(primary_key=True)
    label: Mapped[str] = mapped_column(String(200))
    named: Mapped[bool] = mapped_column(default=False)  # whether a person gave the label
    active: Mapped[bool] = mapped_column(default=True)  # False once merged or undone
    size: Mapped[int]
    mean_probability: Mapped[float | None]


class Assignment(Base):
    """The cluster of an image. Probability, margin and distance are those of the model."""

    __tablename__ = "assignments"
    __table_args__ = (
        Index(
            "ix_assignments_clustering_id_cluster_id_image_id",
            "clustering_id",
            "cluster_id",
            "image_id",
        ),
        Index(  # with the image id: many have the same probability
            "ix_assignments_by_probability_image_id",
            "clustering_id",
            "cluster_id",
            "probability",
            "image_id",
        ),
        Index("ix_assignments_by_margin", "clustering_id", "cluster_id", "margin"),
        Index("ix_assignments_by_distance", "clustering_id", "cluster_id", "distance"),
    )

    clustering_id: Mapped[str] = mapped_column(
        ForeignKey("clusterings.id", ondelete="CASCADE"), primary_key=True
    )
    image_id: Mapped[str] = mapped_column(
        ForeignKey("images.id", ondelete="CASCADE"), primary_key=True, index=True
    )
    cluster_id: Mapped[int]
    probability: Mapped[float]
    margin: Mapped[float]  # to the second most probable cluster
    distance: Mapped[float]  # 1 - cosine to the center of the cluster that the model chose


class ClusteringOperation(Base):
    """An operation of a user, which created `revision` from the one before."""

    __tablename__ = "clustering_operations"

    clustering_id: Mapped[str] = mapped_column(
        ForeignKey("clusterings.id", ondelete="CASCADE"), primary_key=True
    )
    revision: Mapped[int] = mapped_column(primary_key=True)
    kind: Mapped[str] = mapped_column(String(16))
    arguments: Mapped[dict[str, Any]]
    # id -> label, named and active of the clusters it changed; label is None if it created one
    clusters_before: Mapped[dict[str, Any]]
    moved: Mapped[int] = mapped_column(BigInteger, default=0)  # images
    undoes: Mapped[int | None]  # the revision that it undid
    undone_by: Mapped[int | None]
    created_by: Mapped[str | None] = mapped_column(String(200))  # the key's name; None: no key
    created_at: Mapped[float] = created_at_column()


class AssignmentChange(Base):
    """The cluster of an image before the operation that created `revision`.

    The key begins with the revision, so that the rows of an operation are appended, and an undo
    reads them together.
    """

    __tablename__ = "assignment_changes"
    __table_args__ = (
        Index("ix_assignment_changes_by_image", "image_id", "clustering_id", "revision"),
    )

    clustering_id: Mapped[str] = mapped_column(
        ForeignKey("clusterings.id", ondelete="CASCADE"), primary_key=True
    )
    revision: Mapped[int] = mapped_column(primary_key=True)
    image_id: Mapped[str] = mapped_column(
        ForeignKey("images.id", ondelete="CASCADE"), primary_key=True
    )
    before: Mapped[int]


class Review(Base):
    """A person's latest answer to the question whether an image belongs to its cluster."""

    __tablename__ = "reviews"
    __table_args__ = (Index("ix_reviews_clustering_id_cluster_id", "clustering_id", "cluster_id"),)

    clustering_id: Mapped[str] = mapped_column(
        ForeignKey("clusterings.id", ondelete="CASCADE"), primary_key=True
    )
    image_id: Mapped[str] = mapped_column(
        ForeignKey("images.id", ondelete="CASCADE"), primary_key=True, index=True
    )
    cluster_id: Mapped[int]  # the cluster that the person was asked about
    # The cluster of the image as the person said: the same one if the answer was yes, None if it
    # was no without saying which, EXCLUDED if the image belongs to none.
    belongs_to: Mapped[int | None]
    # Of a random sample by probability; None: chosen for its gain; CARRIED: of an earlier one.
    stratum: Mapped[int | None]
    reviewed_by: Mapped[str | None] = mapped_column(String(200))  # the key's name; None: no key
    reviewed_at: Mapped[float] = mapped_column(Double(), default=db_now())


class CurrentClusteringChange(Base):
    """A change of the clustering that gives a dataset its labels; rows are never updated."""

    __tablename__ = "current_clustering_changes"

    dataset_id: Mapped[str] = mapped_column(
        ForeignKey("datasets.id", ondelete="CASCADE"), primary_key=True
    )
    number: Mapped[int] = mapped_column(primary_key=True)  # 1, 2, ...
    kind: Mapped[str] = mapped_column(String(16))  # first, set, rollback or delete
    before: Mapped[str | None] = mapped_column(String(40))
    clustering_id: Mapped[str | None] = mapped_column(String(40))
    changed_by: Mapped[str | None] = mapped_column(String(200))  # the key's name; None: no key
    changed_at: Mapped[float] = mapped_column(Double(), default=db_now())


class Export(Base):
    """An exported file of a clustering at one revision."""

    __tablename__ = "exports"

    id: Mapped[str] = id_column()
    tenant: Mapped[str] = tenant_column()
    job_id: Mapped[str | None] = mapped_column(
        ForeignKey("jobs.id", ondelete="SET NULL"), unique=True
    )
    clustering_id: Mapped[str] = mapped_column(
        ForeignKey("clusterings.id", ondelete="CASCADE"), index=True
    )
    revision: Mapped[int]
    format: Mapped[str] = mapped_column(String(24))
    filters: Mapped[dict[str, Any]] = mapped_column(Json, default=dict)
    storage_key: Mapped[str] = mapped_column(String(200), index=True)
    filename: Mapped[str] = mapped_column(Text)
    media_type: Mapped[str] = mapped_column(String(100))
    image_count: Mapped[int] = mapped_column(BigInteger)
    bytes: Mapped[int] = mapped_column(BigInteger)
    sha256: Mapped[str] = mapped_column(String(64))
    created_at: Mapped[float] = created_at_column()
