"""Refused images and proposals: lookups, lists, and deletion."""

from collections.abc import Sequence

from sqlalchemy import Select, delete, func, select
from sqlalchemy.orm import Session

from app.core.platform.errors import NotFound
from app.core.platform.tables import Model, Proposal, RefusedImage
from app.core.storage.deletion.cleanup import schedule_hashes

EXAMPLES = 12  # images of a proposal in a list
_CHUNK = 500  # values in one statement


def get_proposal(session: Session, tenant: str, proposal_id: str) -> Proposal:
    found = session.scalar(
        select(Proposal).where(Proposal.id == proposal_id, Proposal.tenant == tenant)
    )
    if found is None:
        raise NotFound(f"There is no proposal {proposal_id}.")
    return found


def get_refused(session: Session, tenant: str, refused_id: str) -> RefusedImage:
    found = session.scalar(
        select(RefusedImage).where(RefusedImage.id == refused_id, RefusedImage.tenant == tenant)
    )
    if found is None:
        raise NotFound(f"There is no refused image {refused_id}.")
    return found


def select_proposals(model: Model, status: str) -> Select[Proposal]:
    """Open ones only if they still have images."""
    query = select(Proposal).where(Proposal.model_id == model.id, Proposal.status == status)
    if status != "open":
        return query
    return query.where(
        select(RefusedImage.id).where(RefusedImage.proposal_id == Proposal.id).exists()
    )


def select_refused(model: Model, proposal_id: str | None) -> Select[RefusedImage]:
    query = select(RefusedImage).where(RefusedImage.model_id == model.id)
    return query if proposal_id is None else query.where(RefusedImage.proposal_id == proposal_id)


def count_refused(session: Session, model: Model) -> int:
    query = select(func.count()).select_from(RefusedImage)
    return session.scalar(query.where(RefusedImage.model_id == model.id)) or 0


def count_open_proposals(session: Session, model: Model) -> int:
    return (
        session.scalar(select(func.count()).select_from(select_proposals(model, "open").subquery()))
        or 0
    )


def count_images(session: Session, proposal_id: str) -> int:
    """The images that the proposal has now."""
    query = select(func.count()).select_from(RefusedImage)
    return session.scalar(query.where(RefusedImage.proposal_id == proposal_id)) or 0


def read_images(
    session: Session, proposal_id: str, limit: int | None = None
) -> Sequence[RefusedImage]:
    """The images of a proposal, the most typical first."""
    query = select(RefusedImage).where(RefusedImage.proposal_id == proposal_id)
    return session.scalars(query.order_by(RefusedImage.rank, RefusedImage.id).limit(limit)).all()


def delete_refused(session: Session, ids: Sequence[str]) -> None:
    """Their bytes are deleted later, unless an image of a dataset has them, too."""
    for start in range(0, len(ids), _CHUNK):
        chosen = RefusedImage.id.in_(ids[start : start + _CHUNK])
        schedule_hashes(session, select(RefusedImage.sha256).where(chosen))
        session.execute(
            delete(RefusedImage).where(chosen).execution_options(synchronize_session=False)
        )


def delete_all_refused(session: Session, model: Model) -> int:
    """Returns how many there were."""
    ids = session.scalars(select(RefusedImage.id).where(RefusedImage.model_id == model.id)).all()
    delete_refused(session, ids)
    return len(ids)
