"""Versions without files, for tests of the registry's rows."""

from sqlalchemy import select

from app.core.models import registry
from app.core.platform.tables import ModelAliasChange
from app.core.runtime import Runtime


def add(runtime: Runtime, job_id: str | None, name: str = "cats", tenant: str = "t") -> int:
    with runtime.db.write() as session:
        return registry.add_version(
            session,
            tenant=tenant,
            name=name,
            job_id=job_id,
            clustering_id="cl_1",
            folder=f"models/{job_id}",
            manifest={"clusters": []},
            files={"model.safetensors": "00"},
        ).version


def point(runtime: Runtime, alias: str, *versions: int, by: str | None = None) -> None:
    """Sets an alias of `cats` to each of these, one transaction each."""
    for version in versions:
        with runtime.db.write() as session:
            model = registry.get_model(session, "t", "cats", lock=True)
            registry.set_alias(session, model, alias, version, changed_by=by)


def roll_back(runtime: Runtime, alias: str, by: str | None = None) -> int:
    with runtime.db.write() as session:
        model = registry.get_model(session, "t", "cats", lock=True)
        target = registry.rollback_target(session, model, alias)
        registry.rollback_alias(session, model, alias, target, changed_by=by)
        return target.version


def changes(runtime: Runtime) -> list[tuple[int, str, str, int | None, int | None]]:
    """All changes of all aliases, oldest first."""
    with runtime.db.read() as session:
        rows = session.scalars(select(ModelAliasChange).order_by(ModelAliasChange.number))
        return [(row.number, row.alias, row.kind, row.before, row.version) for row in rows]
