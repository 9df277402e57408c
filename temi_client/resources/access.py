"""API keys and the audit log; they need a key with the scope `admin`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from temi_client.models.access import AuditEntry, CreatedKey, Key
from temi_client.resources.base import Resource, path_segment, without_none


class AccessMethods(Resource):
    def create_key(
        self,
        name: str,
        *,
        scopes: Sequence[str] = ("read", "write", "predict"),
        expires_in_days: int | None = None,
        requests_per_minute: int | None = None,
        storage_bytes: int | None = None,
    ) -> CreatedKey:
        """Creates a key of your tenant; its `.key` is returned only this once."""
        settings = without_none(
            {
                "expires_in_days": expires_in_days,
                "requests_per_minute": requests_per_minute,
                "storage_bytes": storage_bytes,
            }
        )
        # Not retried: a request whose response was lost may have created a key.
        response = self._transport.send(
            "POST", "/v1/keys", json={"name": name, "scopes": list(scopes), **settings}, retry=False
        )
        return CreatedKey.model_validate_json(response.content)

    def keys(self) -> Iterator[Key]:
        """Lists the keys of your tenant, newest first, with revoked ones."""
        return self._pages(Key, "/v1/keys")

    def revoke_key(self, key_id: str) -> None:
        self._delete(f"/v1/keys/{path_segment(key_id)}")

    def audit(
        self, *, key_id: str | None = None, since: datetime | None = None
    ) -> Iterator[AuditEntry]:
        """Lists the audit log, newest first. `since` needs a time zone."""
        moment = since.isoformat() if since is not None else None
        return self._pages(AuditEntry, "/v1/audit", key_id=key_id, since=moment)
