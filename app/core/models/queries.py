"""Queries for lists of models and versions."""

from collections.abc import Collection

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from app.core.platform.tables import Model, ModelVersion


def select_models(tenant: str) -> Select[Model]:
    """Models that have a version."""
    return select(Model).where(Model.tenant == tenant, Model.latest_version.is_not(None))


def select_versions(model: Model) -> Select[ModelVersion]:
    return select(ModelVersion).where(ModelVersion.model_id == model.id)


def version_numbers(session: Session, model: Model) -> list[int]:
    query = select(ModelVersion.version).where(ModelVersion.model_id == model.id)
    return list(session.scalars(query.order_by(ModelVersion.version)))


def versions_in_folders(
    session: Session, tenant: str, folders: Collection[str]
) -> list[tuple[str, int, str]]:
    """Name, version and folder of the tenant's versions in these folders, by name."""
    rows = session.execute(
        select(Model.name, ModelVersion.version, ModelVersion.folder)
        .join(Model, Model.id == ModelVersion.model_id)
        .where(Model.tenant == tenant, ModelVersion.folder.in_(folders))
        .order_by(Model.name, ModelVersion.version)
    )
    return [(name, version, folder) for name, version, folder in rows]
