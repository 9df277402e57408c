"""Versions that go for good. What they made (clusterings, exports) stays."""

from collections.abc import Sequence

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from app.core.blobs import is_older
from app.core.datasets import OPEN
from app.core.errors import VersionInUse
from app.core.registry.versions import get_model, get_version
from app.core.runtime import Runtime
from app.core.tables import Job, Model, ModelAlias, ModelVersion

FOLDER = "models"
_ORPHAN_SECONDS = 24 * 3600.0  # no import leaves more time between its files and its row


def delete_version(session: Session, tenant: str, name: str, version: int) -> list[str]:
    """Returns the folders in the storage that are of no use once this is committed."""
    model = get_model(session, tenant, name, lock=True)
    return _delete(session, model, [get_version(session, model, version)])


def delete_model(session: Session, tenant: str, name: str) -> list[str]:
    """All its versions. A model that gets this name later counts on from the last number."""
    model = get_model(session, tenant, name, lock=True)
    versions = session.scalars(select(ModelVersion).where(ModelVersion.model_id == model.id))
    return _delete(session, model, versions.all())


def remove_folders(runtime: Runtime, folders: Sequence[str]) -> None:
    """After the commit: a crash in between leaves them to `remove_orphans`."""
    for folder in folders:
        runtime.storage.delete_folder(folder)


def remove_orphans(runtime: Runtime) -> int:
    """Folders without a version: it was deleted, or its import or job did not end well."""
    root = runtime.storage.path(FOLDER)
    found = root.iterdir() if root.is_dir() else ()
    old = {path.name for path in found if is_older(path, _ORPHAN_SECONDS)}
    if not old:
        return 0
    with runtime.db.read() as session:
        # Open jobs first: one that ends in between has its version by then.
        kept = set(session.scalars(select(Job.id).where(Job.status.in_(OPEN))))
        kept |= {folder.split("/")[1] for folder in session.scalars(select(ModelVersion.folder))}
    remove_folders(runtime, [f"{FOLDER}/{name}" for name in old - kept])
    return len(old - kept)


def _delete(session: Session, model: Model, versions: Sequence[ModelVersion]) -> list[str]:
    numbers = [version.version for version in versions]
    _check_no_alias(session, model, numbers)
    _check_no_job(session, model, numbers)
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
            Job.kind.in_(["predict", "finetune"]),
            named.as_string() == model.name,
            version.as_integer().in_(numbers),
        )
        .limit(1)
    ).first()
    if user is not None:
        raise VersionInUse(f"The job {user[0]} uses version {user[1]}; wait for it or cancel it.")
