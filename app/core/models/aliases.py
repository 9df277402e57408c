"""Names that move from version to version, and every move that they ever made."""

from collections.abc import Sequence

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from app.core.models.names import LATEST, check_alias
from app.core.models.versions import get_version
from app.core.platform.errors import NotFound, NothingToRollBack
from app.core.platform.tables import Model, ModelAlias, ModelAliasChange, ModelVersion

# A model that is passed to a function which changes something must be locked.


def aliases(session: Session, model: Model) -> dict[str, int]:
    rows = session.scalars(select(ModelAlias).where(ModelAlias.model_id == model.id))
    assert model.latest_version is not None  # else there would be no model
    return {LATEST: model.latest_version, **{row.alias: row.version for row in rows}}


def set_alias(
    session: Session, model: Model, alias: str, version: int, *, changed_by: str | None = None
) -> None:
    """A request that is sent again finds the alias where it is to be, and is no second move."""
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
    """A query for every move of an alias, also of one that was removed."""
    changes = select(ModelAliasChange).where(
        ModelAliasChange.model_id == model.id, ModelAliasChange.alias == alias
    )
    if session.scalar(changes.limit(1)) is None:
        _get_alias(session, model, alias)  # set before moves were recorded, or not there
    return changes


def rollback_target(session: Session, model: Model, alias: str) -> ModelVersion:
    """The version before the last `set` that was not rolled back yet. Deleted ones are passed
    over."""
    now = _get_alias(session, model, alias).version
    for version in reversed(_earlier(session, model, alias)):
        row = session.get(ModelVersion, (model.id, version))
        if row is not None and version != now:
            return row
    raise NothingToRollBack(
        f"The alias {alias!r} points to version {now}, and there is no earlier one to go back to."
    )


def rollback_alias(
    session: Session, model: Model, alias: str, target: ModelVersion, *, changed_by: str | None
) -> None:
    """To what `rollback_target` found."""
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
    """Where the alias could go back to, the next stop last: every `set` left one behind, every
    rollback used up what it passed."""
    changes = session.scalars(
        alias_changes(session, model, alias).order_by(ModelAliasChange.number)
    )
    stops: list[int] = []
    for change in changes:
        if change.kind == "remove":
            stops = []
        elif change.kind == "set" and change.before is not None:
            stops.append(change.before)
        elif change.kind == "rollback":
            while stops and stops.pop() != change.version:
                pass
    return stops


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
