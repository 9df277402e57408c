"""`temi keys`: made in the database itself, for the first key can be asked for with none."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from app.cli.errors import FAILED
from app.cli.options import AsJson
from app.cli.output import moment, notices, print_rows, size
from app.core.platform.actor import DEFAULT_TENANT, SCOPES
from app.core.platform.processes import restricted_files
from app.core.platform.settings import get_settings
from temi_client import Key

if TYPE_CHECKING:
    from app.core.platform.db import Database

app = typer.Typer(no_args_is_help=True, help="API keys, in the database of the settings.")
_GB = 1_000_000_000


class _TenantsKey(Key):
    tenant: str


@app.command("create")
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Who or what will use it.")],
    tenant: Annotated[
        str, typer.Option(help="Whose collections; each tenant sees only its own.")
    ] = DEFAULT_TENANT,
    scope: Annotated[
        list[str] | None,
        typer.Option(help=f"{', '.join(SCOPES)}; repeatable. By default all but admin."),
    ] = None,
    expires_days: Annotated[int | None, typer.Option(min=1, max=36_500)] = None,
    requests_per_minute: Annotated[int | None, typer.Option(min=1, max=1_000_000)] = None,
    storage_gb: Annotated[
        float | None, typer.Option(min=0, max=1e9, help="Most that the tenant's images may take.")
    ] = None,
) -> None:
    """Make a key and print it: nobody can find it out again."""
    from app.core.access.keys import create_key

    with _database() as db, db.write() as session:
        key, text = create_key(
            session,
            tenant=tenant,
            name=name,
            scopes=scope or ["read", "write", "predict"],
            expires_in_days=expires_days,
            requests_per_minute=requests_per_minute,
            storage_bytes=None if storage_gb is None else int(storage_gb * _GB),
        )
    notices.print(
        f"Key {key.id} of tenant {key.tenant}: {', '.join(key.scopes)}. It is shown this once:",
        markup=False,
    )
    print(text)


@app.command("list")
def list_keys(
    tenant: Annotated[str | None, typer.Option(help="Only this one's.")] = None,
    as_json: AsJson = False,
) -> None:
    """List all keys, newest first, also those that were revoked."""
    from sqlalchemy import select

    from app.core.platform.tables import ApiKey

    query = select(ApiKey).order_by(ApiKey.id.desc())
    with _database() as db, db.read() as session:
        rows = session.scalars(query if tenant is None else query.where(ApiKey.tenant == tenant))
        keys = [_TenantsKey.model_validate(row, from_attributes=True) for row in rows]
    print_rows(
        keys,
        as_json,
        "Keys",
        ["id", "tenant", "name", "scopes", ">per minute", ">storage", "expires", "revoked"],
        lambda key: (
            *(key.id, key.tenant, key.name, ", ".join(key.scopes), key.requests_per_minute or "-"),
            "-" if key.storage_bytes is None else size(key.storage_bytes),
            *(moment(key.expires_at), moment(key.revoked_at)),
        ),
    )


@app.command("revoke")
def revoke(key_id: Annotated[str, typer.Argument(metavar="KEY")]) -> None:
    """Revoke a key for good; services that run know it within seconds."""
    from app.core.access.keys import revoke_key

    with _database() as db, db.write() as session:
        key = revoke_key(session, key_id)
    notices.print(f"Revoked {key.id} ({key.name})", markup=False)


@contextmanager
def _database() -> "Iterator[Database]":
    """With current tables, so that the first key can be made before the first start."""
    from app.core.platform.db import Database
    from app.core.platform.errors import ServiceError
    from app.core.platform.migrations import upgrade

    with restricted_files(get_settings()):
        db = Database(get_settings().sqlalchemy_url)
        try:
            upgrade(db)
            yield db
        except ServiceError as error:
            notices.print(f"[red]error[/] {escape(error.detail)}")
            raise typer.Exit(FAILED) from error
        finally:
            db.dispose()
