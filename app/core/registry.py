"""Models by name, version and alias. A version never changes; its files are checked by hash."""

import hashlib
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from sqlalchemy import delete, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.core.errors import InvalidRequest, ModelIntegrity, NotFound
from app.core.ids import new_id
from app.core.storage import LocalStorage
from app.core.tables import Model, ModelAlias, ModelVersion

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
_ALIAS = re.compile(r"[a-z][a-z0-9._-]{0,63}")
_NUMBERED = re.compile(r"(?P<name>[^/@]+)/versions/(?P<version>[0-9]{1,9})")
LATEST = "latest"  # always the newest version; cannot be moved


def slug(text: str) -> str:
    """A model name made from any text."""
    return re.sub(r"[^a-z0-9._-]+", "-", text.lower()).strip("-._")[:100] or "model"


def check_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise InvalidRequest.field(
            "model_name", "use 1 to 100 of a-z, 0-9, '.', '_', '-', starting with a letter or digit"
        )
    return name


def add_version(
    session: Session,
    *,
    tenant: str,
    name: str,
    job_id: str,
    clustering_id: str,
    folder: str,
    manifest: dict[str, Any],
    files: Mapping[str, str],
) -> ModelVersion:
    model = _find_or_create(session, tenant, name)
    version = session.scalar(  # the row is locked until the end: two jobs get two numbers
        update(Model)
        .where(Model.id == model.id)
        .values(latest_version=Model.latest_version + 1)
        .returning(Model.latest_version)
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
    )
    session.add(row)
    session.flush()
    return row


def _find_or_create(session: Session, tenant: str, name: str) -> Model:
    found = select(Model).where(Model.tenant == tenant, Model.name == name)
    if (model := session.scalar(found)) is not None:
        return model
    # Another job may just be registering the first version under this name.
    with suppress(IntegrityError), session.begin_nested():
        session.add(Model(id=new_id("mdl"), tenant=tenant, name=name))
    return session.scalars(found).one()


def get_model(session: Session, tenant: str, name: str) -> Model:
    model = session.scalar(select(Model).where(Model.tenant == tenant, Model.name == name))
    if model is None:
        raise NotFound(f"There is no model {name!r}.")
    return model


def get_version(session: Session, model: Model, version: int) -> ModelVersion:
    row = session.get(ModelVersion, (model.id, version))
    if row is None:
        raise NotFound(f"The model {model.name!r} has no version {version}.")
    return row


def resolve(session: Session, tenant: str, reference: str) -> tuple[Model, ModelVersion]:
    """`name`: its latest version; `name@alias`: where the alias points; `name/versions/N`."""
    if (numbered := _NUMBERED.fullmatch(reference)) is not None:
        model = get_model(session, tenant, numbered["name"])
        return model, get_version(session, model, int(numbered["version"]))
    name, _, alias = reference.partition("@")
    model = get_model(session, tenant, name)
    if alias in ("", LATEST):
        return model, get_version(session, model, model.latest_version)
    row = session.get(ModelAlias, (model.id, alias))
    if row is None:
        raise NotFound(f"The model {name!r} has no alias {alias!r}.")
    return model, get_version(session, model, row.version)


def aliases(session: Session, model: Model) -> dict[str, int]:
    rows = session.scalars(select(ModelAlias).where(ModelAlias.model_id == model.id))
    return {LATEST: model.latest_version, **{row.alias: row.version for row in rows}}


def set_alias(session: Session, model: Model, alias: str, version: int) -> ModelAlias:
    if not _ALIAS.fullmatch(alias) or alias == LATEST:
        raise InvalidRequest.field(
            "alias", "use up to 64 of a-z, 0-9, '.', '_', '-', starting with a letter; not 'latest'"
        )
    get_version(session, model, version)
    row = session.get(ModelAlias, (model.id, alias))
    if row is None:
        row = ModelAlias(model_id=model.id, alias=alias, version=version)
        session.add(row)
    row.version = version
    session.flush()
    return row


def remove_alias(session: Session, model: Model, alias: str) -> None:
    key = (ModelAlias.model_id == model.id, ModelAlias.alias == alias)
    if session.scalar(delete(ModelAlias).where(*key).returning(ModelAlias.alias)) is None:
        raise NotFound(f"The model {model.name!r} has no alias {alias!r}.")


def read_verified(storage: LocalStorage, folder: str, name: str, sha256: str) -> bytes:
    """The bytes of a model's file, never any others."""
    try:
        data = storage.read(f"{folder}/{name}")
    except OSError as error:
        raise ModelIntegrity(f"The model's file {name} cannot be read.") from error
    if hashlib.sha256(data).hexdigest() != sha256:
        raise ModelIntegrity(
            f"The model's file {name} is not what was registered; it is not served. "
            "Restore it from a backup or run the job again."
        )
    return data
