"""What a gather job reads and writes: features of refused images, and proposals."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from app.core.gathering.features import decode_features
from app.core.gathering.queries import delete_refused
from app.core.platform.ids import new_id
from app.core.platform.tables import Model, ModelVersion, Proposal, RefusedImage
from temi.gathering import MIN_IMAGES, Gathered, mean_distance

_CHUNK = 500  # values in one statement


@dataclass(frozen=True, kw_only=True)
class RefusedFeatures:
    ids: list[str]  # by the hash of the bytes: the order in which they came changes nothing
    features: npt.NDArray[np.float32]  # (N, D)


@dataclass(frozen=True, kw_only=True)
class Proposed:
    new: list[Proposal]
    open: int  # proposals, new ones included
    dismissed: int  # images that are like those of a dismissed proposal, and were dropped


def read_refused(session: Session, version: ModelVersion) -> RefusedFeatures:
    rows = session.execute(
        select(RefusedImage.id, RefusedImage.features)
        .where(RefusedImage.model_id == version.model_id, RefusedImage.version == version.version)
        .order_by(RefusedImage.sha256)
    ).all()
    features = decode_features([row.features for row in rows]) if rows else np.empty((0, 1))
    return RefusedFeatures(ids=[row.id for row in rows], features=features.astype(np.float32))


def write_proposals(
    session: Session,
    tenant: str,
    version: ModelVersion,
    refused: RefusedFeatures,
    groups: Sequence[Gathered],
    radius: float,
) -> Proposed:
    """Replaces the open proposals of the version. One that still has most of its images in a group
    keeps its id. Images that were decided upon meanwhile are left out."""
    session.execute(select(Model.id).where(Model.id == version.model_id).with_for_update())
    before = _proposals_of(session, version)
    decided = _decided(session, version)
    sizes = Counter(proposal_id for proposal_id in before.values() if proposal_id)
    placed: dict[str, tuple[str, int]] = {}  # image -> proposal and rank
    new: list[Proposal] = []
    kept: set[str] = set()
    dropped: list[str] = []
    for group in groups:
        ids = [refused.ids[row] for row in group.rows if refused.ids[row] in before]
        if len(ids) < MIN_IMAGES:
            continue
        nearest = _nearest(group, decided, radius)
        if nearest is not None and nearest.status == "dismissed":
            dropped += ids
            continue
        values = {
            "size": len(ids),
            "tightness": group.tightness,
            "suggested_cluster_id": nearest.cluster_id if nearest else None,
        }
        proposal_id = _same_proposal([before[each] for each in ids], sizes, kept)
        if proposal_id is None:
            new.append(_new_proposal(tenant, version, values))
            proposal_id = new[-1].id
        else:
            session.execute(update(Proposal).where(Proposal.id == proposal_id).values(values))
        kept.add(proposal_id)
        placed |= {each: (proposal_id, rank) for rank, each in enumerate(ids)}
    session.add_all(new)
    session.flush()
    _place(session, [each for each in refused.ids if each in before], placed)
    delete_refused(session, dropped)
    _delete_others(session, version, kept)
    return Proposed(new=new, open=len(kept), dismissed=len(dropped))


def _proposals_of(session: Session, version: ModelVersion) -> dict[str, str | None]:
    rows = session.execute(
        select(RefusedImage.id, RefusedImage.proposal_id).where(
            RefusedImage.model_id == version.model_id, RefusedImage.version == version.version
        )
    )
    return {image_id: proposal_id for image_id, proposal_id in rows}


def _decided(session: Session, version: ModelVersion) -> Sequence[Proposal]:
    return session.scalars(
        select(Proposal)
        .where(
            Proposal.model_id == version.model_id,
            Proposal.version == version.version,
            Proposal.center.is_not(None),
        )
        .order_by(Proposal.id)
    ).all()


def _nearest(group: Gathered, decided: Sequence[Proposal], radius: float) -> Proposal | None:
    """The decided proposal whose images would have been joined with those of the group."""
    if not decided:
        return None
    centers = decode_features([proposal.center or "" for proposal in decided]).astype(np.float64)
    distances = [mean_distance(group.center, center) for center in centers]
    nearest = int(np.argmin(distances))
    return decided[nearest] if distances[nearest] <= radius else None


def _same_proposal(
    before: Sequence[str | None], sizes: Counter[str], taken: set[str]
) -> str | None:
    """The open proposal that has more than half of its images in the group."""
    for proposal_id, count in Counter(filter(None, before)).most_common():
        if proposal_id not in taken and 2 * count > sizes[proposal_id]:
            return proposal_id
    return None


def _new_proposal(tenant: str, version: ModelVersion, values: dict[str, Any]) -> Proposal:
    return Proposal(
        id=new_id("prp"),
        tenant=tenant,
        model_id=version.model_id,
        version=version.version,
        **values,
    )


def _place(session: Session, seen: Sequence[str], placed: dict[str, tuple[str, int]]) -> None:
    rows = []
    for image_id in seen:
        proposal_id, rank = placed.get(image_id, (None, None))
        rows.append({"id": image_id, "proposal_id": proposal_id, "rank": rank, "gathered": True})
    for start in range(0, len(rows), _CHUNK):
        session.execute(update(RefusedImage), rows[start : start + _CHUNK])


def _delete_others(session: Session, version: ModelVersion, kept: set[str]) -> None:
    session.execute(
        delete(Proposal)
        .where(
            Proposal.model_id == version.model_id,
            Proposal.version == version.version,
            Proposal.status == "open",
            Proposal.id.not_in(kept),
        )
        .execution_options(synchronize_session=False)
    )
