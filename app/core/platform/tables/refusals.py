"""Images that a model has refused, and the groups that they are proposed to be."""

from sqlalchemy import BigInteger, Double, ForeignKey, ForeignKeyConstraint, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.core.platform.tables.base import Base, created_at_column, id_column, tenant_column


class Proposal(Base):
    """A group of refused images. An open one has images; a decided one keeps its center."""

    __tablename__ = "proposals"
    __table_args__ = (
        ForeignKeyConstraint(
            ["model_id", "version"],
            ["model_versions.model_id", "model_versions.version"],
            ondelete="CASCADE",
        ),
        Index("ix_proposals_model_id_version", "model_id", "version"),
    )

    id: Mapped[str] = id_column()
    tenant: Mapped[str] = tenant_column()
    model_id: Mapped[str] = mapped_column(String(40))
    version: Mapped[int]
    status: Mapped[str] = mapped_column(String(16), default="open")  # accepted, dismissed
    size: Mapped[int]  # images when it was gathered, or decided
    tightness: Mapped[float]  # mean cosine of two images
    # The group that a similar proposal was accepted as: until the next training the version refuses
    # such images again.
    suggested_cluster_id: Mapped[int | None]
    center: Mapped[str | None] = mapped_column(Text)  # of a decided one; base64 of float32
    clustering_id: Mapped[str | None] = mapped_column(String(40))  # where an accepted one went
    cluster_id: Mapped[int | None]
    new_cluster: Mapped[str | None] = mapped_column(String(200))  # the name that was given
    revision: Mapped[int | None]
    created_at: Mapped[float] = created_at_column()
    decided_by: Mapped[str | None] = mapped_column(String(200))  # the key's name; None: no key
    decided_at: Mapped[float | None] = mapped_column(Double())


class RefusedImage(Base):
    """An image that a version did not know, kept with its features until it is decided upon."""

    __tablename__ = "refused_images"
    __table_args__ = (
        ForeignKeyConstraint(
            ["model_id", "version"],
            ["model_versions.model_id", "model_versions.version"],
            ondelete="CASCADE",
        ),
        Index(
            "ix_refused_images_model_id_version_sha256",
            "model_id",
            "version",
            "sha256",
            unique=True,
        ),
    )

    id: Mapped[str] = id_column()
    tenant: Mapped[str] = tenant_column()
    model_id: Mapped[str] = mapped_column(String(40))
    version: Mapped[int]
    image_id: Mapped[str | None] = mapped_column(  # of a dataset, if a predict job refused it
        ForeignKey("images.id", ondelete="CASCADE"), index=True
    )
    proposal_id: Mapped[str | None] = mapped_column(
        ForeignKey("proposals.id", ondelete="SET NULL"), index=True
    )
    rank: Mapped[int | None]  # in the proposal, the most typical image first
    gathered: Mapped[bool] = mapped_column(default=False)  # whether a gather job has seen it
    name: Mapped[str] = mapped_column(Text)
    sha256: Mapped[str] = mapped_column(String(64), index=True)
    width: Mapped[int]
    height: Mapped[int]
    format: Mapped[str] = mapped_column(String(16))
    bytes: Mapped[int] = mapped_column(BigInteger)
    novelty: Mapped[float]
    probability: Mapped[float]  # of the most probable cluster
    margin: Mapped[float]
    features: Mapped[str] = mapped_column(Text, deferred=True)  # base64 of float32
    kept_at: Mapped[float] = created_at_column()
