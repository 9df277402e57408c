"""Keys and the audit log on the wire."""

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

    name: str = Field(min_length=1, max_length=200, description="Who or what will use it.")
    scopes: list[Scope] = Field(
        min_length=1,
        max_length=4,
        description="`read`: look. `write`: change. `predict`: label new images. `admin`: keys and "
        "the audit log, and all of the others.",
    )
    expires_in_days: int | None = Field(default=None, ge=1, le=36_500)
    requests_per_minute: int | None = Field(default=None, ge=1, le=1_000_000)
    storage_bytes: int | None = Field(
        default=None,
        ge=0,
        lt=2**62,
        description="Once the tenant's images take this much, the key adds no more.",
    )


class Key(BaseModel):
    """What is known of a key. The key itself is not."""

    id: str = Field(examples=["key_01k9z3m4q5r6s7t8v9w0x1y2z3"])
    name: str
    scopes: list[Scope]
    requests_per_minute: int | None = Field(description="Null: as many as there are.")
    storage_bytes: int | None = Field(description="Null: as much as there is.")
    created_at: datetime
    expires_at: datetime | None = Field(description="Null: never.")
    revoked_at: datetime | None

    @classmethod
    def of(cls, row: tables.ApiKey) -> "Key":
        fields: dict[str, Any] = shown_fields(cls, row)
        return cls(**fields)


class CreatedKey(Key):
    """The only answer that holds the key itself."""

    key: str = Field(examples=["temi_bm90LWEta2V5LWJ1dC1hLXBpZWNlLW9mLXRleHQtaGVyZS4"])


class AuditEntry(BaseModel):
    """A request that changed something."""

    id: str = Field(examples=["aud_01k9z3m4q5r6s7t8v9w0x1y2z3"])
    at: datetime
    key_id: str | None = Field(description="Null: no key was needed, or that of the settings.")
    key_name: str | None = Field(description="Null: no key was needed.")
    method: str = Field(examples=["DELETE"])
    route: str = Field(examples=["/v1/datasets/{dataset_id}"])
    path: str = Field(examples=["/v1/datasets/ds_01k9z3m4q5r6s7t8v9w0x1y2z3"])
    request_id: str | None = Field(description="As in the answer's `X-Request-ID`.")

    @classmethod
    def of(cls, row: tables.AuditEntry) -> "AuditEntry":
        return cls(**{**shown_fields(cls, row), "at": to_time(row.at)})
