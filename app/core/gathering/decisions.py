"""Decisions of people on proposals. Each is one transaction; a repeated one changes nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.clusterings.operations import Move, apply_operation, lock_clustering
from app.core.clusterings.operations.editor import ClusteringEditor, chunked
from app.core.clusterings.rows import Assigned, get_clustering
from app.core.datasets.additions import StoredImage, add_stored_images
from app.core.datasets.rows import get_dataset
from app.core.gathering.features import decode_features, encode_features
from app.core.gathering.queries import delete_refused, get_proposal, read_images
from app.core.jobs.requests.accepted import check_unused_but_refresh, refresh_features
from app.core.platform.clock import db_now
from app.core.platform.errors import DatasetNotReady, NotFound, ProposalDecided
from app.core.platform.tables import (
    EXCLUDED,
    Assignment,
    Clustering,
    Dataset,
    Model,
    ModelVersion,
    Proposal,
    RefusedImage,
)
from temi.gathering import center_distances, center_of


@dataclass(frozen=True, kw_only=True)
class Target:
    """Where an accepted proposal goes: exactly one of the two."""

    cluster_id: int | None = None
    new_cluster: str | None = None


def accept_proposal(
    session: Session, tenant: str, proposal_id: str, target: Target, *, decided_by: str | None
) -> Proposal:
    """Adds the images to the dataset of the version's clustering, and moves them to the group."""
    proposal = _lock_proposal(session, tenant, proposal_id)
    if _was_accepted(proposal, target):
        return proposal
    _check_open(proposal)
    version = session.get_one(ModelVersion, (proposal.model_id, proposal.version))
    clustering = get_clustering(session, tenant, version.clustering_id or "")
    dataset = get_dataset(session, tenant, clustering.dataset_id, lock=True)
    if dataset.status != "ready":
        raise DatasetNotReady("The dataset is being ingested; wait for its ingest job.")
    check_unused_but_refresh(session, dataset, clustering)
    images = _images(session, proposal)
    ids = add_stored_images(session, dataset, [_stored(image) for image in images])
    _extend(session, dataset, clustering, dict(zip(ids, images, strict=True)))
    move = Move(image_ids=ids, cluster_id=target.cluster_id, new_cluster=target.new_cluster)
    done = apply_operation(session, tenant, clustering.id, move, created_by=decided_by)
    proposal.clustering_id = clustering.id
    proposal.cluster_id = done.arguments["cluster_id"]
    proposal.new_cluster = target.new_cluster
    proposal.revision = done.revision
    _decide(session, proposal, "accepted", images, decided_by)
    refresh_features(session, dataset, clustering, version)
    return proposal


def dismiss_proposal(
    session: Session, tenant: str, proposal_id: str, *, decided_by: str | None
) -> Proposal:
    """Deletes the images. The center stays: a later group that is like it is not proposed."""
    proposal = _lock_proposal(session, tenant, proposal_id)
    if proposal.status == "dismissed":
        return proposal
    _check_open(proposal)
    _decide(session, proposal, "dismissed", _images(session, proposal), decided_by)
    return proposal


def _lock_proposal(session: Session, tenant: str, proposal_id: str) -> Proposal:
    """Locks the model first, as keeping and gathering do."""
    proposal = get_proposal(session, tenant, proposal_id)
    session.execute(select(Model.id).where(Model.id == proposal.model_id).with_for_update())
    session.refresh(proposal, with_for_update=True)
    return proposal


def _was_accepted(proposal: Proposal, target: Target) -> bool:
    if proposal.status != "accepted" or proposal.new_cluster != target.new_cluster:
        return False
    return target.cluster_id is None or proposal.cluster_id == target.cluster_id


def _check_open(proposal: Proposal) -> None:
    if proposal.status == "accepted":
        raise ProposalDecided(
            f"The proposal {proposal.id} was accepted: its images are in cluster "
            f"{proposal.cluster_id} of {proposal.clustering_id}. Move them there, or undo it."
        )
    if proposal.status == "dismissed":
        raise ProposalDecided(f"The proposal {proposal.id} was dismissed; its images are deleted.")


def _images(session: Session, proposal: Proposal) -> Sequence[RefusedImage]:
    images = read_images(session, proposal.id)
    if not images:
        raise NotFound(f"The images of the proposal {proposal.id} were deleted.")
    return images


def _stored(image: RefusedImage) -> StoredImage:
    return StoredImage(
        name=image.name,
        sha256=image.sha256,
        width=image.width,
        height=image.height,
        format=image.format,
        bytes=image.bytes,
    )


def _extend(
    session: Session,
    dataset: Dataset,
    clustering: Clustering,
    images: Mapping[str, RefusedImage],
) -> None:
    """Adds the images that the clustering lacks to its excluded ones, as a predict job does. Their
    distance is that to the center of the proposal, which will be their group."""
    lock_clustering(session, clustering)
    present: set[str] = set()
    for chunk in chunked(images):
        query = select(Assignment.image_id).where(
            Assignment.clustering_id == clustering.id, Assignment.image_id.in_(chunk)
        )
        present.update(session.scalars(query))
    distances = center_distances(decode_features([each.features for each in images.values()]))
    rows = [
        Assigned(image_id, EXCLUDED, image.probability, image.margin, distance)
        for (image_id, image), distance in zip(images.items(), distances, strict=True)
        if image_id not in present
    ]
    if rows:
        editor = ClusteringEditor(session, clustering)
        editor.add_images(rows)
        clustering.dataset_fingerprint = dataset.fingerprint
        editor.finish("extend", {"images": len(rows), "job_id": None}, created_by=None)


def _decide(
    session: Session,
    proposal: Proposal,
    status: str,
    images: Sequence[RefusedImage],
    decided_by: str | None,
) -> None:
    features = decode_features([image.features for image in images])
    proposal.center = encode_features(center_of(features))
    proposal.status, proposal.size = status, len(images)
    proposal.decided_by, proposal.decided_at = decided_by, db_now()
    delete_refused(session, [image.id for image in images])
    session.flush()
    session.refresh(proposal)
