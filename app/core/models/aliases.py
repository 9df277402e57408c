"""Aliases of model versions, and the history of their changes."""

from collections.abc import Sequence

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from app.core.models.names import LATEST, check_alias
from app.core.models.versions import get_version
from app.core.platform.errors import NotFound, NothingToRollBack
from app.core.platform.history import rollback_stack
from app.core.platform.tables import Model, ModelAlias, ModelAliasChange, ModelVersion

# Functions that change something need a locked model.


def aliases(session: Session, model: Model) -> dict[str, int]:
    rows = session.scalars(select(ModelAlias).where(ModelAlias.model_id == model.id))
    assert model.latest_version is not None  # else get_model raises NotFound
    return {LATEST: model.latest_version, **{row.alias: row.version for row in rows}}


def set_alias(
    session: Session, model: Model, alias: str, version: int, *, changed_by: str | None = None
) -> None:
    """Sets an alias; setting it to the same version again is not recorded."""
    check_alias(alias)
    get_version(session, model, version)
    row = session.get(ModelAlias, (model.id, alias))
    if row is None:
        session.add(ModelAlias(model_id=model.id, alias=alias, version=version))
        _record(session, model, alias, "set", None, version, changed_by)
    elif row.version != version:
        _record(session, model, alias, "set", row.version, version, changed_by)
        row.version = version
    session.flush()


def alias_changes(session: Session, model: Model, alias: str) -> Select[ModelAliasChange]:
    """A query for all changes of an alias, also of a removed one."""
    changes = select(ModelAliasChange).where(
        ModelAliasChange.model_id == model.id, ModelAliasChange.alias == alias
    )
    if session.scalar(changes.limit(1)) is None:
        _get_alias(session, model, alias)  # raises NotFound
    return changes


def rollback_target(session: Session, model: Model, alias: str) -> ModelVersion:
    """The version before the last `set` that was not rolled back. Skips deleted versions."""
    current = _get_alias(session, model, alias).version
    for version in reversed(_earlier(session, model, alias)):
        row = session.get(ModelVersion, (model.id, version))
        if row is not None and version != current:
            return row
    raise NothingToRollBack(
        f"The alias {alias!r} points to version {current}, and no earlier version is left."
    )


def rollback_alias(
    session: Session, model: Model, alias: str, target: ModelVersion, *, changed_by: str | None
) -> None:
    """Sets an alias to the version that `rollback_target` returned."""
    row = _get_alias(session, model, alias)
    _record(session, model, alias, "rollback", row.version, target.version, changed_by)
    row.version = target.version
    session.flush()


def remove_alias(
    session: Session, model: Model, alias: str, *, changed_by: str | None = None
) -> None:
    row = _get_alias(session, model, alias)
    _record(session, model, alias, "remove", row.version, None, changed_by)
    session.delete(row)
    session.flush()


def _get_alias(session: Session, model: Model, alias: str) -> ModelAlias:
    row = session.get(ModelAlias, (model.id, alias))
    if row is None:
        raise NotFound(f"The model {model.name!r} has no alias {alias!r}.")
    return row


def _earlier(session: Session, model: Model, alias: str) -> Sequence[int]:
    """Versions to roll back to, the next one last."""
    changes = session.scalars(
        alias_changes(session, model, alias).order_by(ModelAliasChange.number)
    )
    return rollback_stack((each.kind, each.before, each.version) for each in changes)


def _record(
    session: Session,
    model: Model,
    alias: str,
    kind: str,
    before: int | None,
    version: int | None,
    changed_by: str | None,
) -> None:
    last = select(func.max(ModelAliasChange.number)).where(ModelAliasChange.model_id == model.id)
    session.add(
        ModelAliasChange(
            model_id=model.id,
            number=(session.scalar(last) or 0) + 1,
            alias=alias,
            kind=kind,
            before=before,
            version=version,
            changed_by=changed_by,
        )
    )
