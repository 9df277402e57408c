"""`temi keys`: works on the database, because the API needs a key to create one."""

from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.local_runtime import open_runtime
from app.cli.options import AsJson
from app.cli.output import format_bytes, format_time, notices, print_rows
from app.core.platform.actor import DEFAULT_TENANT, SCOPES
from temi_client import Key

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

app = typer.Typer(no_args_is_help=True, help="Manage API keys, in the database.")
_GB = 1_000_000_000


class _KeyWithTenant(Key):
    tenant: str


@app.command("create")
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="User or program of the key.")],
    tenant: Annotated[
        str, typer.Option(help="Tenant of the key; tenants are separated from each other.")
    ] = DEFAULT_TENANT,
    scope: Annotated[
        list[str] | None,
        typer.Option(help=f"{', '.join(SCOPES)}; repeatable. Default: all but admin."),
    ] = None,
    expires_days: Annotated[
        int | None, typer.Option(min=1, max=36_500, help="Days until the key expires.")
    ] = None,
    requests_per_minute: Annotated[
        int | None, typer.Option(min=1, max=1_000_000, help="Rate limit of the key.")
    ] = None,
    storage_gb: Annotated[
        float | None, typer.Option(min=0, max=1e9, help="Storage quota of the tenant's images.")
    ] = None,
) -> None:
    """Create an API key and print it; it cannot be shown again."""
    from app.core.access.keys import create_key

    with open_runtime() as runtime, runtime.db.write() as session:
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
        f"Key {key.id} of tenant {key.tenant}: {', '.join(key.scopes)}. It is shown only once:",
        markup=False,
    )
    print(text)


@app.command("list")
def list_keys(
    tenant: Annotated[str | None, typer.Option(help="Only of this tenant.")] = None,
    as_json: AsJson = False,
) -> None:
    """List API keys, newest first, with revoked ones."""
    from sqlalchemy import select

    from app.core.platform.tables import ApiKey

    query = select(ApiKey).order_by(ApiKey.id.desc())
    with open_runtime() as runtime, runtime.db.read() as session:
        rows = session.scalars(query if tenant is None else query.where(ApiKey.tenant == tenant))
        keys = [_KeyWithTenant.model_validate(row, from_attributes=True) for row in rows]
    print_rows(
        keys,
        as_json,
        "Keys",
        ["id", "?tenant", "name", "scopes", "?>per minute", "?>storage", "?expires", "?revoked"],
        lambda key: (
            *(key.id, key.tenant, key.name, ", ".join(key.scopes), key.requests_per_minute or "-"),
            "-" if key.storage_bytes is None else format_bytes(key.storage_bytes),
            *(format_time(key.expires_at), format_time(key.revoked_at)),
        ),
    )


@app.command("revoke")
def revoke(
    key_id: Annotated[str, typer.Argument(metavar="KEY", help="Id, or name if it is unique.")],
) -> None:
    """Revoke an API key; running services refuse it within seconds."""
    from app.core.access.keys import revoke_key

    with open_runtime() as runtime, runtime.db.write() as session:
        key = revoke_key(session, _resolve(session, key_id))
    notices.print(f"Revoked {key.id} ({key.name})", markup=False)


def _resolve(session: "Session", reference: str) -> str:
    """Returns the id of the one active key with this name, or the reference if it is an id."""
    from sqlalchemy import select

    from app.core.platform.tables import ApiKey

    if reference.startswith("key_"):
        return reference
    query = select(ApiKey).where(ApiKey.name == reference, ApiKey.revoked_at.is_(None))
    found = session.scalars(query.order_by(ApiKey.id)).all()
    if len(found) == 1:
        return found[0].id
    if not found:
        raise typer.BadParameter(f"There is no active key {reference!r}. See: temi keys list")
    known = [f"  {key.id}  tenant {key.tenant}" for key in found]
    raise typer.BadParameter(
        "\n".join([f"{len(found)} keys have the name {reference!r}. Pass an id:", *known])
    )
