"""Deletes models and versions. Their clusterings and exports stay; the images that they
have refused are deleted."""

from collections.abc import Sequence

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from app.core.models.versions import get_model, get_version
from app.core.platform.errors import VersionInUse
from app.core.platform.tables import OPEN, Job, Model, ModelAlias, ModelVersion, RefusedImage
from app.core.storage.deletion.cleanup import schedule_hashes


def delete_version(session: Session, tenant: str, name: str, version: int) -> list[str]:
    """Returns the storage folders to delete after the commit."""
    model = get_model(session, tenant, name, lock=True)
    return _delete(session, model, [get_version(session, model, version)])


def delete_model(session: Session, tenant: str, name: str) -> list[str]:
    """Deletes all versions. A later model of this name continues their numbers."""
    model = get_model(session, tenant, name, lock=True)
    versions = session.scalars(select(ModelVersion).where(ModelVersion.model_id == model.id))
    return _delete(session, model, versions.all())


def _delete(session: Session, model: Model, versions: Sequence[ModelVersion]) -> list[str]:
    numbers = [version.version for version in versions]
    _check_no_alias(session, model, numbers)
    _check_no_job(session, model, numbers)
    refused = select(RefusedImage.sha256).where(
        RefusedImage.model_id == model.id, RefusedImage.version.in_(numbers)
    )
    schedule_hashes(session, refused)  # the rows are deleted with the versions
    session.execute(
        delete(ModelVersion)
        .where(ModelVersion.model_id == model.id, ModelVersion.version.in_(numbers))
        .execution_options(synchronize_session=False)
    )
    left = select(func.max(ModelVersion.version)).where(ModelVersion.model_id == model.id)
    session.execute(
        update(Model)
        .where(Model.id == model.id)
        .values(latest_version=left.scalar_subquery())
        .execution_options(synchronize_session=False)
    )
    return [version.folder for version in versions]


def _check_no_alias(session: Session, model: Model, numbers: Sequence[int]) -> None:
    row = session.scalar(
        select(ModelAlias)
        .where(ModelAlias.model_id == model.id, ModelAlias.version.in_(numbers))
        .order_by(ModelAlias.alias)
        .limit(1)
    )
    if row is not None:
        raise VersionInUse(
            f"The alias {row.alias!r} points to version {row.version}; move or remove it first."
        )


def _check_no_job(session: Session, model: Model, numbers: Sequence[int]) -> None:
    named, version = Job.config[("model", "name")], Job.config[("model", "version")]
    user = session.execute(
        select(Job.id, version.as_integer())
        .where(
            Job.tenant == model.tenant,
            Job.status.in_(OPEN),
            Job.kind.in_(["predict", "finetune", "gather"]),
            named.as_string() == model.name,
            version.as_integer().in_(numbers),
        )
        .limit(1)
    ).first()
    if user is not None:
        raise VersionInUse(f"The job {user[0]} uses version {user[1]}; wait for it or cancel it.")
