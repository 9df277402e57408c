"""Models and their versions. A version never changes, and its number is never reused."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.core.models.names import LATEST, parse_reference
from app.core.platform.errors import NotFound
from app.core.platform.ids import new_id
from app.core.platform.tables import Model, ModelAlias, ModelVersion


def add_version(
    session: Session,
    *,
    tenant: str,
    name: str,
    job_id: str | None,
    clustering_id: str | None,
    folder: str,
    manifest: dict[str, Any],
    files: Mapping[str, str],
    imported_bytes: int = 0,
) -> ModelVersion:
    model = _find_or_create(session, tenant, name)
    version = session.scalar(  # the row lock gives concurrent jobs different numbers
        update(Model)
        .where(Model.id == model.id)
        .values(last_number=Model.last_number + 1, latest_version=Model.last_number + 1)
        .returning(Model.last_number)
    )
    assert version is not None
    row = ModelVersion(
        model_id=model.id,
        version=version,
        job_id=job_id,
        clustering_id=clustering_id,
        folder=folder,
        manifest=manifest,
        files=dict(files),
        bytes=imported_bytes,
    )
    session.add(row)
    session.flush()
    return row


def _find_or_create(session: Session, tenant: str, name: str) -> Model:
    found = select(Model).where(Model.tenant == tenant, Model.name == name)
    if (model := session.scalar(found)) is not None:
        return model
    # Another job may be registering the first version of this name.
    with suppress(IntegrityError), session.begin_nested():
        session.add(Model(id=new_id("mdl"), tenant=tenant, name=name))
    return session.scalars(found).one()


def get_model(
    session: Session, tenant: str, name: str, *, lock: bool = False, share: bool = False
) -> Model:
    """With `lock`, the row is locked (FOR UPDATE) against changes of its aliases and versions; with
    `share`, it is locked FOR SHARE."""
    query = select(Model).where(Model.tenant == tenant, Model.name == name)
    if lock or share:
        query = query.with_for_update(read=share)
    model = session.scalar(query, execution_options={"populate_existing": lock or share})
    if model is None:
        raise NotFound(f"There is no model {name!r}.")
    if model.latest_version is None:
        raise NotFound(f"There is no model {name!r}: all its versions were deleted.")
    return model


def get_version(session: Session, model: Model, version: int) -> ModelVersion:
    row = session.get(ModelVersion, (model.id, version))
    if row is None:
        raise NotFound(f"The model {model.name!r} has no version {version}.")
    return row


def resolve(
    session: Session, tenant: str, reference: str, *, share: bool = False
) -> tuple[Model, ModelVersion]:
    """Resolves `name` (its latest version), `name@alias` or `name/versions/N`.

    With `share`, the version is not deleted before this transaction ends."""
    parsed = parse_reference(reference)
    model = get_model(session, tenant, parsed.name, share=share)
    if parsed.version is not None:
        return model, get_version(session, model, parsed.version)
    if parsed.alias == LATEST:
        assert model.latest_version is not None  # else get_model raises NotFound
        return model, get_version(session, model, model.latest_version)
    row = session.get(ModelAlias, (model.id, parsed.alias))
    if row is None:
        raise NotFound(f"The model {parsed.name!r} has no alias {parsed.alias!r}.")
    return model, get_version(session, model, row.version)
