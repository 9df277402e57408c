"""Keeps refused images: at most a number per model, for a number of days, within the quota."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sqlalchemy import func, insert, select
from sqlalchemy.orm import Session

from app.core.access.quota import stored_bytes
from app.core.gathering.features import encode_features
from app.core.gathering.queries import delete_refused
from app.core.jobs.lifecycle import create_job
from app.core.platform.ids import new_id
from app.core.platform.settings import Settings
from app.core.platform.tables import (
    EXCLUDED,
    OPEN,
    Assignment,
    Clustering,
    Dataset,
    Image,
    Job,
    Model,
    ModelVersion,
    RefusedImage,
)

GATHER_IMAGES = 20  # new ones start a gather job
_CHUNK = 500  # values in one statement


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """An image that a version has refused. Its bytes are stored already."""

    name: str
    sha256: str
    width: int
    height: int
    format: str
    bytes: int
    novelty: float
    probability: float
    margin: float
    features: npt.NDArray[np.float32]  # (D,)
    image_id: str | None = None  # in a dataset, which counts its bytes


def keep_refused(
    session: Session,
    settings: Settings,
    *,
    tenant: str,
    model_id: str,
    version: int,
    refusals: Sequence[Refusal],
    quota: int | None,
) -> int:
    """Adds those that are new, drops what is too many, and starts a gather job if enough have come.

    Returns how many were added. Does nothing if the version or its clustering was deleted: there
    would be no group to add them to. The quota leaves images out, it never raises."""
    model = session.scalar(select(Model).where(Model.id == model_id).with_for_update())
    row = session.get(ModelVersion, (model_id, version))
    clustering = session.get(Clustering, row.clustering_id or "") if row else None
    if model is None or clustering is None or settings.keep_refused == 0:
        return 0
    hashes = [refusal.sha256 for refusal in refusals]
    known = _known(session, model_id, version, hashes) | _placed(session, clustering, hashes)
    unique = {each.sha256: each for each in refusals if each.sha256 not in known}
    fresh = list(unique.values())[-settings.keep_refused :]
    fresh = list(_within_quota(session, tenant, fresh, quota))
    if not fresh:
        return 0
    common = {"tenant": tenant, "model_id": model_id, "version": version}
    session.execute(insert(RefusedImage), [common | _values(each) for each in fresh])
    _drop_surplus(session, model_id, settings.keep_refused)
    _start_gathering(session, model, version, clustering)
    return len(fresh)


def _known(session: Session, model_id: str, version: int, hashes: Sequence[str]) -> set[str]:
    found: set[str] = set()
    for start in range(0, len(hashes), _CHUNK):
        query = select(RefusedImage.sha256).where(
            RefusedImage.model_id == model_id,
            RefusedImage.version == version,
            RefusedImage.sha256.in_(hashes[start : start + _CHUNK]),
        )
        found.update(session.scalars(query))
    return found


def _placed(session: Session, clustering: Clustering, hashes: Sequence[str]) -> set[str]:
    """Those that have a group already: a proposal was accepted, or a person has moved them."""
    found: set[str] = set()
    for start in range(0, len(hashes), _CHUNK):
        query = (
            select(Image.sha256)
            .join(Assignment, Assignment.image_id == Image.id)
            .where(
                Image.dataset_id == clustering.dataset_id,
                Image.sha256.in_(hashes[start : start + _CHUNK]),
                Assignment.clustering_id == clustering.id,
                Assignment.cluster_id != EXCLUDED,
            )
        )
        found.update(session.scalars(query))
    return found


def _within_quota(
    session: Session, tenant: str, refusals: Sequence[Refusal], quota: int | None
) -> Iterator[Refusal]:
    left = None if quota is None else quota - stored_bytes(session, tenant)
    for refusal in refusals:
        if left is not None and refusal.image_id is None:
            if refusal.bytes > left:
                continue
            left -= refusal.bytes
        yield refusal


def _values(refusal: Refusal) -> dict[str, object]:
    return {
        **vars(refusal),
        "id": new_id("rfi"),
        "gathered": False,
        "features": encode_features(refusal.features),
    }


def _drop_surplus(session: Session, model_id: str, limit: int) -> None:
    """Drops the oldest; those of a proposal last."""
    of_model = RefusedImage.model_id == model_id
    count = session.scalar(select(func.count()).select_from(RefusedImage).where(of_model)) or 0
    if count <= limit:
        return
    oldest = (
        select(RefusedImage.id)
        .where(of_model)
        .order_by(RefusedImage.proposal_id.is_not(None), RefusedImage.id)
        .limit(count - limit)
    )
    delete_refused(session, session.scalars(oldest).all())


def _start_gathering(session: Session, model: Model, version: int, clustering: Clustering) -> None:
    """Creates a gather job if enough images wait for one, unless one is waiting or running: it
    would be for the same images."""
    waiting = select(func.count()).select_from(RefusedImage)
    waiting = waiting.where(
        RefusedImage.model_id == model.id,
        RefusedImage.version == version,
        RefusedImage.gathered.is_(False),
    )
    if (session.scalar(waiting) or 0) < GATHER_IMAGES or _is_gathering(session, model, version):
        return
    create_job(
        session,
        tenant=model.tenant,
        kind="gather",
        dataset=session.get_one(Dataset, clustering.dataset_id),
        config={"model": {"name": model.name, "version": version}},
    )


def _is_gathering(session: Session, model: Model, version: int) -> bool:
    open_job = select(Job.id).where(
        Job.tenant == model.tenant,
        Job.kind == "gather",
        Job.status.in_(OPEN),
        Job.config[("model", "name")].as_string() == model.name,
        Job.config[("model", "version")].as_integer() == version,
    )
    return session.scalar(open_job.limit(1)) is not None
