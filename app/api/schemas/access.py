"""API keys and the audit log."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from app.api.schemas.common import shown_fields, to_time
from app.core.platform import tables
from app.core.platform.actor import Scope


class KeyCreate(BaseModel):
    """A key of your own tenant."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"name": "label printer", "scopes": ["predict"]}]},
    )

    name: str = Field(min_length=1, max_length=200, description="The user or program of the key.")
    scopes: list[Scope] = Field(
        min_length=1,
        max_length=4,
        description="`read`: read data. `write`: change data. `predict`: predict images. "
        "`admin`: keys and the audit log, and all other scopes.",
    )
    expires_in_days: int | None = Field(default=None, ge=1, le=36_500)
    requests_per_minute: int | None = Field(default=None, ge=1, le=1_000_000)
    storage_bytes: int | None = Field(
        default=None,
        ge=0,
        lt=2**62,
        description="The key adds no more data once the tenant has this many bytes.",
    )


class Key(BaseModel):
    """A key without its secret."""

    id: str = Field(examples=["key_01k9z3m4q5r6s7t8v9w0x1y2z3"])
    name: str
    scopes: list[Scope]
    requests_per_minute: int | None = Field(description="Null: no limit.")
    storage_bytes: int | None = Field(description="Null: no limit.")
    created_at: datetime
    expires_at: datetime | None = Field(description="Null: never.")
    revoked_at: datetime | None

    @classmethod
    def of(cls, row: tables.ApiKey) -> "Key":
        fields: dict[str, Any] = shown_fields(cls, row)
        return cls(**fields)


class CreatedKey(Key):
    """The only response with the secret of a key."""

    key: str = Field(examples=["temi_bm90LWEta2V5LWJ1dC1hLXBpZWNlLW9mLXRleHQtaGVyZS4"])


class AuditEntry(BaseModel):
    """A request that changed data."""

    id: str = Field(examples=["aud_01k9z3m4q5r6s7t8v9w0x1y2z3"])
    at: datetime
    key_id: str | None = Field(
        description="Null: no key was required, or it was the key of the settings."
    )
    key_name: str | None = Field(description="Null: no key was required.")
    method: str = Field(examples=["DELETE"])
    route: str = Field(examples=["/v1/datasets/{dataset_id}"])
    path: str = Field(examples=["/v1/datasets/ds_01k9z3m4q5r6s7t8v9w0x1y2z3"])
    request_id: str | None = Field(description="The `X-Request-ID` of the response.")

    @classmethod
    def of(cls, row: tables.AuditEntry) -> "AuditEntry":
        return cls(**{**shown_fields(cls, row), "at": to_time(row.at)})
